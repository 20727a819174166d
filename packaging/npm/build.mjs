// Makes the folder of the npm package: node build.mjs SOURCE WEB WASM OUT VERSION. SOURCE is packaging/npm; WEB has node_modules with
// esbuild and typescript; WASM has package.wasm, and figures.wasm, which lists the schemes.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { schemeTypes } from './scheme_types.mjs';

const [source, web, wasm, out, version] = process.argv.slice(2);
const esbuild = createRequire(join(web, 'package.json'))('esbuild');
const root = resolve(source, '../..');
const dist = join(out, 'dist');
rmSync(out, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

// --- types ---------------------------------------------------------------------------------------------------
const figures = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(join(wasm, 'figures.wasm')))).exports;
figures.__wasm_call_ctors();
const question = new TextEncoder().encode(JSON.stringify({ call: 'schemes' }));
const at = figures.pe_alloc(question.length);
new Uint8Array(figures.memory.buffer, at, question.length).set(question);
figures.pe_call(at, question.length, 0, 0);
const listed = JSON.parse(new TextDecoder().decode(new Uint8Array(figures.memory.buffer, figures.pe_text(), figures.pe_text_size())));

// tsc reads a copy of the sources that has the made file beside the others
const copy = join(wasm, 'npm-types');
rmSync(copy, { recursive: true, force: true });
mkdirSync(copy);
cpSync(join(source, 'src'), join(copy, 'src'), { recursive: true });
writeFileSync(join(copy, 'src/schemes.ts'), schemeTypes(listed));
// Node's one function, without the types of all of Node
writeFileSync(join(copy, 'node.d.ts'), "declare module 'node:fs/promises' {\n  export function readFile(path: URL): Promise<Uint8Array>;\n}\n");
const settings = JSON.parse(readFileSync(join(source, 'tsconfig.json'), 'utf8'));
writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify({
  ...settings, compilerOptions: { ...settings.compilerOptions, rootDir: '.', outDir: 'made' }, include: ['src', 'node.d.ts'] }));
execFileSync(process.execPath, [join(web, 'node_modules/typescript/bin/tsc'), '-p', join(copy, 'tsconfig.json')], { stdio: 'inherit' });
const declarations = join(copy, 'made/src');
for (const name of ['index', 'types', 'schemes']) cpSync(join(declarations, `${name}.d.ts`), join(dist, `${name}.d.ts`));
// of core.ts, users see only what index.ts exports
writeFileSync(join(dist, 'core.d.ts'), publicOf(readFileSync(join(declarations, 'core.d.ts'), 'utf8'), ['PosencError', 'version', 'init']));

/** The declarations of these names, with their comments, and the imports. */
function publicOf(text, names) {
  const imports = text.split('\n').filter((line) => line.startsWith('import type'));
  const found = names.map((name) => {
    const match = new RegExp(`(?:/\\*\\*(?:[^*]|\\*(?!/))*\\*/\\n)?export declare (?:class|const|function) ${name}\\b[^{;]*(?:\\{[^}]*\\}|;)`).exec(text);
    if (!match) throw new Error(`core.d.ts has no ${name}`);
    return match[0];
  });
  return `${[...imports, ...found].join('\n')}\n`;
}

// --- code ----------------------------------------------------------------------------------------------------
for (const name of ['browser', 'node']) {
  esbuild.buildSync({
    absWorkingDir: root, entryPoints: [join(source, `src/${name}.ts`)], outfile: join(dist, `${name}.js`), bundle: true, format: 'esm', target: 'es2022', charset: 'utf8',
    logLevel: 'warning', external: ['node:*'], legalComments: 'none', define: { POSENC_VERSION: JSON.stringify(version) },
    banner: { js: `// posenc ${version}. Apache-2.0; the licences of what it includes are in NOTICE.` },
  });
}
// Packed by the program of that name, whose bytes do not depend on the version of Node.
writeFileSync(join(dist, 'posenc.wasm.gz'), execFileSync('gzip', ['-9nc', join(wasm, 'package.wasm')], { maxBuffer: 1 << 28 }));

// --- the rest ------------------------------------------------------------------------------------------------
const description = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
writeFileSync(join(out, 'package.json'), `${JSON.stringify({ ...description, version }, null, 2)}\n`);
for (const name of ['README.md', 'NOTICE']) cpSync(join(source, name), join(out, name));
cpSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
