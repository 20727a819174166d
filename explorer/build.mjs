// Builds the site: node build.mjs SOURCE WEB OUT PYFTSUBSET. WEB has node_modules; OUT has the modules and gets site/ and
// site.cpp, which holds the site for the program. PYFTSUBSET is fonttools' program of that name.

import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { basename, join, resolve } from 'node:path';
import { readModels } from './models/read.mjs';
import { glyphsOf, readFormulas, writeFont, writePages } from './formulas.mjs';
import { pageFiles, paragraphsOfPage, readGuides, readIndex, readSchemePages } from './guides.mjs';

const [source, web, out, subsetter] = process.argv.slice(2);
const require = createRequire(join(web, 'package.json'));
const esbuild = require('esbuild');
const site = join(out, 'site');
rmSync(site, { recursive: true, force: true });
mkdirSync(site, { recursive: true });

execFileSync(process.execPath, [join(web, 'node_modules/typescript/bin/tsc'), '-p', join(source, 'tsconfig.json')], { stdio: 'inherit' });
const formulas = readFormulas(source, require('temml'));
const formulaModules = join(out, 'formulas');
writePages(formulas, formulaModules, 'formulas');
writeFont({ tool: subsetter, font: join(web, 'node_modules/@fontsource/stix-two-math/files/stix-two-math-latin-400-normal.woff2'), to: join(site, 'math.woff2'), codes: glyphsOf(formulas) });
const guesses = JSON.parse(readFileSync(join(source, '../content/guesses.json'), 'utf8'));
writePages(guesses, join(out, 'guesses'), 'question');
const schemePages = join(out, 'scheme_pages.js');
writeFileSync(schemePages, `export const schemePages = ${JSON.stringify(readSchemePages(join(source, '../content'), join(source, '../include/posenc/schemes')))};\n`);
// a page loads the guide that it shows, and the search all of them
const guideList = join(out, 'guides.js'), searched = join(out, 'search_index.js'), guides = readGuides(join(source, '../docs'));
const { stories, ...index } = readIndex(join(source, '../content'), join(source, 'src'));
writePages(Object.fromEntries(guides.map(({ id, sections }) => [id, sections])), join(out, 'guides'), 'sections');
writeFileSync(guideList, `export const guides = [${guides.map(({ id, title }) => `{ id: '${id}', title: ${JSON.stringify(title)}, load: () => import('./guides/${id}.js') }`).join(', ')}];\n`);
writeFileSync(searched, `export const index = ${JSON.stringify(index)};\n`);
const storyList = join(out, 'stories.js');
writeFileSync(storyList, `export const stories = ${JSON.stringify(stories)};\n`);
// What a module answers.
function askModule(name, request) {
  const core = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(join(out, name)))).exports;
  core.__wasm_call_ctors();
  const asked = new TextEncoder().encode(JSON.stringify(request)), at = core.pe_alloc(asked.length);
  new Uint8Array(core.memory.buffer, at, asked.length).set(asked);
  core.pe_call(at, asked.length, core.pe_alloc(0), 0);
  const bytes = (from, count) => new Uint8Array(core.memory.buffer, from, count).slice();
  return { json: JSON.parse(new TextDecoder().decode(bytes(core.pe_text(), core.pe_text_size()))), bytes: bytes(core.pe_bytes(), core.pe_bytes_size()) };
}
// The questions of the path, with their numbers: the module that asks them in the page asks them here.
const invented = join(out, 'invented.js');
const { json: allQuestions } = askModule('practice.wasm', { call: 'questions' });
const named = [...readFileSync(join(source, 'src/pages/invent_steps.ts'), 'utf8').matchAll(/'([a-z]+(?:-[a-z]+)+)'/g)].map(([, id]) => id);
writeFileSync(invented, `export const questions = ${JSON.stringify(named.map((id) => {
  const one = allQuestions.find((known) => known.id === id);
  if (!one) throw new Error(`the path asks '${id}', which is no question of content/`);
  return { id, prompt: one.prompt, choices: one.choices, answer: one.answer };
}))};\n`);
// What the library answers before anybody chose something else is asked here: pages that begin with it need no module then.
const storyAnswers = join(out, 'story_answers.js');
writePages(Object.fromEntries(stories.map(({ name }) => [name, askModule('stories.wasm', { call: 'story', name, text: '' }).json])), join(out, 'story_answers'), 'story');
writeFileSync(storyAnswers, `export const answers = {${stories.map(({ name }) => `'${name}': () => import('./story_answers/${name}.js')`).join(', ')}};\n`);
const schemeList = join(out, 'scheme_list.js'), firstExercise = join(out, 'first_exercise.js');
const properties = askModule('figures.wasm', { call: 'prove', scheme: { scheme: 'sinusoidal' }, length: 8 }).json.findings.map(({ property, heading, statement }) => ({ property, heading, statement }));
writeFileSync(schemeList, `export const list = ${JSON.stringify(askModule('figures.wasm', { call: 'schemes' }).json)};\nexport const properties = ${JSON.stringify(properties)};\n`);
writeFileSync(firstExercise, `export const exercise = ${JSON.stringify(askModule('practice.wasm', { call: 'exercise', seed: 1 }).json)};\n`);
// The models of the lab: what their heads say, without their weights.
const modelFiles = readdirSync(join(source, 'models')).filter((name) => name.endsWith('.safetensors')).sort();
const labModels = join(out, 'lab_models.js');
writeFileSync(labModels, `export const models = ${JSON.stringify(readModels(join(source, 'models'), modelFiles))};\n`);
const common = { bundle: true, minify: true, target: 'es2022', charset: 'utf8', logLevel: 'warning', external: ['./math.woff2'],
  alias: { 'posenc-guides': guideList, 'posenc-search-index': searched, 'posenc-stories': storyList, 'posenc-story-answers': storyAnswers, 'posenc-lab-models': labModels, 'posenc-invented': invented, 'posenc-scheme-list': schemeList, 'posenc-first-exercise': firstExercise, 'posenc-formulas': formulaModules, 'posenc-guesses': join(out, 'guesses'), 'posenc-scheme-pages': schemePages } };
const { metafile } = esbuild.buildSync({ ...common, entryPoints: [join(source, 'src/main.ts')], outdir: site, format: 'esm', splitting: true, chunkNames: '[name]-[hash]', metafile: true });
esbuild.buildSync({ ...common, entryPoints: [join(source, 'src/style.css')], outdir: site });
esbuild.buildSync({ ...common, entryPoints: [join(source, 'src/worker.ts')], outdir: site, format: 'iife' });
cpSync(join(source, 'src/icon.svg'), join(site, 'icon.svg'));
for (const name of modelFiles) cpSync(join(source, 'models', name), join(out, `model-${name}`));
const embedded = ['core.wasm', 'figures.wasm', 'lab.wasm', ...modelFiles.map((name) => `model-${name}`), 'models.wasm', 'posenc.apkg', 'practice.wasm', 'stories.wasm'];  // in the order of their names
for (const name of embedded) cpSync(join(out, name), join(site, name));

// --- what arrives first: what main.js needs is named in the page; what each page needs besides, in first.js ------------------
const { titles } = await import(`data:text/javascript,${encodeURIComponent(esbuild.transformSync(readFileSync(join(source, 'src/titles.ts'), 'utf8'), { loader: 'ts' }).code)}`);
const sources = pageFiles(join(source, 'src'));
const outputs = Object.fromEntries(Object.entries(metafile.outputs).map(([path, one]) => [basename(path), one]));
const neededBy = (name, found = new Set()) => {
  for (const one of outputs[name].imports) {
    const file = basename(one.path);
    if (one.kind !== 'import-statement' || found.has(file)) continue;
    found.add(file);
    neededBy(file, found);
  }
  return found;
};
const ofMain = neededBy('main.js');
const scriptOf = (id) => Object.keys(outputs).find((name) => resolve(outputs[name].entryPoint ?? '') === sources[id]);
const preloads = [...ofMain].map((name) => `<link rel="modulepreload" href="${name}">\n`).join('');
const shell = readFileSync(join(source, 'src/index.html'), 'utf8').replace('<link rel="modulepreload" href="main.js">\n', (main) => main + preloads);
writeFileSync(join(site, 'index.html'), shell);
const bundled = async (entry) => import(`data:text/javascript;base64,${Buffer.from(esbuild.buildSync({ entryPoints: [entry], bundle: true, write: false, format: 'esm', platform: 'node', target: 'node20', logLevel: 'warning' }).outputFiles[0].contents).toString('base64')}`);
const { covers, ownCovers } = await bundled(join(source, 'src/covers.ts'));
const beginnings = Object.fromEntries(titles.map(({ id, first }) => {
  const script = scriptOf(id);
  return [id, { cover: ownCovers.includes(id) ? `${id}.svg` : undefined, module: first && `${first}.wasm`, scripts: [script, ...neededBy(script)].filter((name) => !ofMain.has(name)) }];
}));
esbuild.buildSync({ ...common, entryPoints: [join(source, 'src/first.ts')], outdir: site, format: 'iife', define: { beginnings: JSON.stringify(beginnings) } });

const attribute = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

// --- what stands for a page where its scripts do not run: a figure as SVG, and as the picture of a preview ---------------------
const { cardOf, svgOf } = await bundled(join(source, 'cover.ts'));
const { requestOf } = await bundled(join(source, 'src/plot_words.ts'));
// Every worked example has the figure of its command: an error here is one that the page would show.
for (const { name, figure } of stories) {
  if (!figure) continue;
  try {
    askModule('figures.wasm', { call: 'figure', ...requestOf(figure) });
  } catch (error) {
    throw new Error(`the page cannot draw the figure of the worked example ${name}, ${figure}: ${error.message}`);
  }
}
const css = readFileSync(join(source, 'src/style.css'), 'utf8');
const colours = Object.fromEntries([...css.slice(0, css.indexOf('@media')).matchAll(/--([a-z0-9-]+): (#[0-9a-f]{3,6})/g)].map(([, name, value]) => [name, value]));
const ruleOf = (pattern) => [...css.matchAll(pattern)].map(([rule]) => rule).join('');
const rules = ruleOf(/:root \{[^}]*\}/g) + ruleOf(/^@media screen and \(prefers-color-scheme: dark\) \{ :root:not\([^)]*\) \{[^}]*\} \}/gms) + ruleOf(/(?<=^|\} )(\.drawing[^{]*|\.plot|\.plot\.bare|\.grid|\.band|\.rule|rect\.frame|\.stroke|\.bars, \.dots|\.points|\.shade|\.line-[a-z0-9]+) \{[^}]*\}/gm);
for (const { id } of titles) {
  if (!covers[id]) continue;
  const { json, bytes } = askModule('figures.wasm', { call: 'figure', ...requestOf(`plot ${covers[id]}`) }), numbers = new Float64Array(bytes.buffer);
  const revive = (value) => Array.isArray(value) ? value.map(revive) : value === null || typeof value !== 'object' ? value
    : 'from' in value && 'count' in value ? numbers.subarray(value.from, value.from + value.count) : Object.fromEntries(Object.entries(value).map(([key, one]) => [key, revive(one)]));
  const made = revive(json);
  writeFileSync(join(site, `${id}.svg`), svgOf(made, rules));
  writeFileSync(join(site, `${id}.png`), cardOf(made, colours));
}
const previewOf = (id) => covers[id] ? `<meta property="og:image" content="${id}.png">\n<meta property="og:image:width" content="1200">\n<meta property="og:image:height" content="630">\n<meta name="twitter:card" content="summary_large_image">\n` : '';
// The first figure of these is in the page itself, before any script: it stays until the page has drawn its own.
const isStill = (id) => id !== 'start' && ownCovers.includes(id);
// The rows of Frank and the others: a table is smaller than a picture of it.
const withPosition = askModule('stories.wasm', { call: 'story', name: 'frank-and-alex', text: '' }).json.steps.flatMap((step) => step.blocks).find((block) => block.name === 'X\'');
const tableOf = ({ caption, rows, columns, values, digits }) => `<table class="first"><caption>${attribute(caption)}</caption>${rows.map((row, i) => `<tr><th>${attribute(row)}</th>${columns.map((_, k) => `<td>${(values.flat()[i * columns.length + k]).toFixed(digits).replace('-', '−')}</td>`).join('')}</tr>`).join('')}</table>\n`;
const stillOf = (id) => `<p class="first"><img src="${id}.svg" alt="posenc plot ${attribute(covers[id])}" width="900" height="${/height="(\d+)"/.exec(readFileSync(join(site, `${id}.svg`), 'utf8'))[1]}"></p>\n`;
const withPreview = (page, id) => page.replace('<link rel="icon"', () => `${previewOf(id)}<link rel="canonical" href="${id === 'start' ? 'index' : id}.html">\n<link rel="icon"`)
  .replace('<noscript>', () => covers[id] && !isStill(id) ? `<noscript><p><img src="${id}.svg" alt="posenc plot ${attribute(covers[id])}" width="900"></p>` : '<noscript>');

// --- a page is a page: each with its title, its description and its text, for a preview and for those who run no scripts ------
for (const { id, title, goal, isHidden } of titles) {
  if (isHidden || id === 'start') continue;
  const named = `${attribute(title)} · posenc`;
  writeFileSync(join(site, `${id}.html`), withPreview(shell, id).replace('<html lang="en">', `<html lang="en" data-page="${id}">`).replace(/<title>[^<]*<\/title>/, `<title>${named}</title>`)
    .replace(/(<meta name="description" content=")[^"]*/, `$1${attribute(goal)}`).replace(/(<meta property="og:title" content=")[^"]*/, `$1${named}`).replace(/(<meta property="og:description" content=")[^"]*/, `$1${attribute(goal)}`)
    .replace(/<h1>[^<]*<\/h1>/, () => `<h1>${attribute(title)}</h1>\n<p class="goal">${attribute(goal)}</p>\n${isStill(id) ? stillOf(id) : id === 'frank' ? tableOf(withPosition) : ''}${paragraphsOfPage(sources[id])}`));
}

writeFileSync(join(site, 'index.html'), withPreview(shell, 'start'));

// What a host shows for an address that it does not have: it runs nothing, as it may lie below any folder.
writeFileSync(join(site, '404.html'), `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Not found · posenc</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'">
<link rel="stylesheet" href="style.css">
</head>
<body>
<main>
<h1>Not found</h1>
<p>The explorer of posenc has no page at this address. It has these:</p>
<ul>
${titles.filter((one) => !one.isHidden).map(({ id, short, goal }) => `<li><a href="${id === 'start' ? 'index' : id}.html">${attribute(short)}</a>${goal ? `: ${attribute(goal)}` : ''}</li>`).join('\n')}
</ul>
</main>
</body>
</html>
`);

// --- one file: everything inside, scripts allowed by their hash alone -----------------------------------------
const script = esbuild.buildSync({ ...common, entryPoints: [join(source, 'src/main.ts')], format: 'iife', write: false }).outputFiles[0].text.replaceAll('</script', '<\\/script');
const replaceOnce = (text, from, to) => {
  if (!text.includes(from)) throw new Error(`the site has no ${from}`);
  return text.replace(from, () => to);
};
const font = `data:font/woff2;base64,${readFileSync(join(site, 'math.woff2')).toString('base64')}`;
const style = replaceOnce(readFileSync(join(site, 'style.css'), 'utf8'), './math.woff2', font);
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const icon = `data:image/svg+xml,${encodeURIComponent(readFileSync(join(source, 'src/icon.svg'), 'utf8'))}`;
let page = readFileSync(join(source, 'src/index.html'), 'utf8');
page = page.replace(/content="default-src[^"]*"/, () =>
  `content="default-src 'none'; script-src ${hash(script)} 'wasm-unsafe-eval'; style-src ${hash(style)}; img-src data: blob:; font-src data:; worker-src blob:; base-uri 'none'; form-action 'none'"`);
page = replaceOnce(page, '<link rel="stylesheet" href="style.css">', `<style>${style}</style>`);
page = replaceOnce(page, '<script async src="first.js"></script>\n<link rel="modulepreload" href="main.js">\n', '');
page = replaceOnce(page, '<script type="module" src="main.js"></script>\n', '');
page = page.replaceAll('href="icon.svg"', `href="${icon}"`).replaceAll('src="icon.svg"', `src="${icon}"`);
const modules = embedded.map((name) => `<script type="text/plain" id="${name}">@${name}@</script>\n`).join('');
const worker = readFileSync(join(site, 'worker.js'), 'utf8').replaceAll('</script', '<\\/script');
page = replaceOnce(page, '</body>', `${modules}<script type="text/plain" id="worker.js">${worker}</script>\n<script>${script}</script>\n</body>`);
writeFileSync(join(out, 'single.html'), page);

// --- for the program -------------------------------------------------------------------------------------------
const types = { html: 'text/html; charset=utf-8', js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml', wasm: 'application/wasm', woff2: 'font/woff2', apkg: 'application/octet-stream', png: 'image/png', safetensors: 'application/octet-stream' };
const names = readdirSync(site).sort();
const all = [...names.map((name) => join(site, name)), join(out, 'single.html')];
const digest = createHash('sha256');
for (const path of all) digest.update(readFileSync(path));
const symbol = (index) => `posenc_site_${index}`;
const code = `// Made by explorer/build.mjs. ${digest.digest('hex')}
#include "cli/server/site.h"

${all.map((path, i) => `__asm__(".pushsection .rodata\\n.global ${symbol(i)}\\n${symbol(i)}:\\n.incbin \\"${path}\\"\\n.global ${symbol(i)}_end\\n${symbol(i)}_end:\\n.byte 0\\n.popsection\\n");
extern "C" const char ${symbol(i)}[], ${symbol(i)}_end[];`).join('\n')}

namespace posenc::cli {
namespace {
std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }
}  // namespace
std::span<const SiteFile> site_files() {
  static const SiteFile files[] = {
${names.map((name, i) => `      {"/${name}", "${types[name.split('.').pop()]}", between(${symbol(i)}, ${symbol(i)}_end), "\\"${createHash('sha256').update(readFileSync(join(site, name))).digest('hex').slice(0, 32)}\\""},`).join('\n')}
  };
  return files;
}
std::string_view single_page() { return between(${symbol(names.length)}, ${symbol(names.length)}_end); }
}  // namespace posenc::cli
`;
writeFileSync(join(out, 'site.cpp'), code);
