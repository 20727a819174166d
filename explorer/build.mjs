// Builds the site: node build.mjs SOURCE WEB OUT VERSION. WEB has node_modules; OUT has the modules and gets site/ and
// site.cpp, which holds the site for the program.

import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { readGuides, readIndex } from './guides.mjs';

const [source, web, out] = process.argv.slice(2);
const require = createRequire(join(web, 'package.json'));
const esbuild = require('esbuild');
const site = join(out, 'site');
rmSync(site, { recursive: true, force: true });
mkdirSync(site, { recursive: true });

execFileSync(process.execPath, [join(web, 'node_modules/typescript/bin/tsc'), '-p', join(source, 'tsconfig.json')], { stdio: 'inherit' });
const documents = join(out, 'documents.js');
writeFileSync(documents, `export const guides = ${JSON.stringify(readGuides(join(source, '../docs')))};\nexport const index = ${JSON.stringify(readIndex(join(source, '../content')))};\n`);
const common = { bundle: true, minify: true, target: 'es2022', charset: 'utf8', logLevel: 'warning', alias: { 'posenc-documents': documents } };
esbuild.buildSync({ ...common, entryPoints: [join(source, 'src/main.ts')], outdir: site, format: 'esm', splitting: true, chunkNames: '[name]-[hash]' });
esbuild.buildSync({ ...common, entryPoints: [join(source, 'src/style.css')], outdir: site });
for (const name of ['index.html', 'icon.svg']) cpSync(join(source, 'src', name), join(site, name));
for (const name of ['core.wasm', 'tools.wasm']) cpSync(join(out, name), join(site, name));

// --- one file: everything inside, scripts allowed by their hash alone -----------------------------------------
const script = esbuild.buildSync({ ...common, entryPoints: [join(source, 'src/main.ts')], format: 'iife', write: false }).outputFiles[0].text.replaceAll('</script', '<\\/script');
const style = readFileSync(join(site, 'style.css'), 'utf8');
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const icon = `data:image/svg+xml,${encodeURIComponent(readFileSync(join(source, 'src/icon.svg'), 'utf8'))}`;
const replaceOnce = (text, from, to) => {
  if (!text.includes(from)) throw new Error(`index.html has no ${from}`);
  return text.replace(from, () => to);
};
let page = readFileSync(join(source, 'src/index.html'), 'utf8');
page = page.replace(/content="default-src[^"]*"/, () =>
  `content="default-src 'none'; script-src ${hash(script)} 'wasm-unsafe-eval'; style-src ${hash(style)}; img-src data: blob:; base-uri 'none'; form-action 'none'"`);
page = replaceOnce(page, '<link rel="stylesheet" href="style.css">', `<style>${style}</style>`);
page = replaceOnce(page, '<link rel="modulepreload" href="main.js">\n', '');
page = replaceOnce(page, '<script type="module" src="main.js"></script>\n', '');
page = page.replaceAll('href="icon.svg"', `href="${icon}"`).replaceAll('src="icon.svg"', `src="${icon}"`);
const modules = ['core.wasm', 'tools.wasm'].map((name) => `<script type="text/plain" id="${name}">@${name}@</script>\n`).join('');
page = replaceOnce(page, '</body>', `${modules}<script>${script}</script>\n</body>`);
writeFileSync(join(out, 'single.html'), page);

// --- for the program -------------------------------------------------------------------------------------------
const types = { html: 'text/html; charset=utf-8', js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml', wasm: 'application/wasm' };
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
${names.map((name, i) => `      {"/${name}", "${types[name.split('.').pop()]}", between(${symbol(i)}, ${symbol(i)}_end)},`).join('\n')}
  };
  return files;
}
std::string_view single_page() { return between(${symbol(names.length)}, ${symbol(names.length)}_end); }
}  // namespace posenc::cli
`;
writeFileSync(join(out, 'site.cpp'), code);
