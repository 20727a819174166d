// The npm package as a file: what is in it, its size, its types, its README, and a browser that uses it.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import test from 'node:test';
import { SOURCE, WEB, archive, folder, installed, pack, project } from './npm_project.mjs';

const sha = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');
const listing = (path, below = '') => readdirSync(join(path, below), { withFileTypes: true }).flatMap((one) =>
  (one.isDirectory() ? listing(path, join(below, one.name)) : [join(below, one.name)])).sort();

test('the archive is reproducible, small and complete', () => {
  assert.equal(sha(pack(join(folder, 'again'))), sha(archive));
  assert.notEqual(sha(pack(join(folder, 'later'), { SOURCE_DATE_EPOCH: '1800000000' })), sha(archive));
  const names = listing(installed);
  assert.deepEqual(names, ['LICENSE', 'NOTICE', 'README.md', 'dist/browser.js', 'dist/core.d.ts', 'dist/index.d.ts', 'dist/node.js', 'dist/posenc.wasm.gz', 'dist/schemes.d.ts', 'dist/types.d.ts', 'package.json']);
  const bytes = names.reduce((sum, name) => sum + statSync(join(installed, name)).size, 0);
  console.log(`${bytes} bytes unpacked, ${statSync(archive).size} packed`);
  assert.ok(bytes < 700_000, `${bytes} bytes`);
  // what npm itself would pack
  const [packed] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--loglevel=error'], { cwd: installed, encoding: 'utf8' }));
  assert.deepEqual(packed.files.map((one) => one.path).sort(), names);
  assert.equal(packed.filename, archive.split('/').pop());
  const description = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  for (const kind of ['dependencies', 'peerDependencies', 'optionalDependencies', 'scripts']) assert.equal(description[kind], undefined);
  for (const name of names) assert.ok(!readFileSync(join(installed, name)).includes(SOURCE), `${name} names a folder of this machine`);
});

const readme = readFileSync(join(SOURCE, 'packaging/npm/README.md'), 'utf8');
const snippets = [...readme.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code);

test('the snippets of the README run and print what they say', () => {
  assert.ok(snippets.length >= 6);
  writeFileSync(join(project, 'model.gguf'), readFileSync(join(SOURCE, 'tests/fuzz/corpus/model/gguf_llama')));
  snippets.forEach((code, i) => {
    writeFileSync(join(project, `snippet_${i}.mjs`), code);
    const done = spawnSync(process.execPath, [`snippet_${i}.mjs`], { cwd: project, encoding: 'utf8' });
    assert.equal(done.status, 0, done.stderr);
    const printed = done.stdout.trim().split('\n');
    const said = code.split('\n').filter((line) => line.includes('console.log('));
    assert.equal(printed.length, said.length, `${code}\n${done.stdout}`);
    said.forEach((line, k) => {
      // what follows: exactly this, up to an ellipsis or a colon, or in words
      const [, comment] = /;  \/\/ (.*)$/.exec(line) ?? [];
      if (comment && !/^(false, and)/.test(comment)) {
        const wanted = comment.replace(/( …|:[^:]*rows.*|: time.*)$/, '');
        assert.ok(printed[k].startsWith(wanted), `${line}\nprinted ${printed[k]}`);
      }
    });
  });
});

test('the types hold, strictly, with either resolution', () => {
  const uses = `import { check, diagnose, inspect, init, positions, tabulate, PosencError, type Model, type RopeScheme, type Scheme, type Table } from 'posenc';
const rope: RopeScheme = { scheme: 'rope', dims: 64, scaling: { type: 'yarn', factor: 4 } };
const all: Scheme[] = [rope, { scheme: 'none' }, { scheme: 'alibi', heads: 8 }];
const model: Model = await inspect('{}');
const table: Table<'f16'> = await tabulate(rope, { count: 2, dtype: 'f16' });
const bits: Uint16Array = table.kind === 'rotation' ? table.sines.data : table.data;
const plain = await tabulate('sinusoidal', { positions: [1, 2] });
const row: Float32Array | undefined = plain.kind === 'addition' ? plain.data : undefined;
const x = { data: new Float32Array(4), shape: [1, 4] };
(await check(x, new Uint8Array(), { model: {}, layer: 1 })).first_difference?.index.length;
(await diagnose(x, x)).best?.scaling?.type;
const ids = await positions({ grid: [1, 2] });
await check(x, x, { scheme: 'rope', positions: ids });
await init(new Uint8Array());
throw new PosencError([all, model, bits, row].join());
// @ts-expect-error: unknown scheme
await tabulate('rops', { count: 1 });
// @ts-expect-error: unknown field
await tabulate({ scheme: 'rope', them: 1 }, { count: 1 });
// @ts-expect-error: a scheme or a model is needed
await check(x, x, {});
// @ts-expect-error: not a tensor
await diagnose([1, 2], x);
// @ts-expect-error: of which kind?
await positions({ first: 1 });
`;
  writeFileSync(join(project, 'uses.mts'), uses);
  const names = snippets.map((code, i) => {
    if (code.includes('node:fs')) return null;  // would need the types of Node
    writeFileSync(join(project, `typed_${i}.mts`), code);
    return `typed_${i}.mts`;
  }).filter(Boolean);
  writeFileSync(join(project, 'console.d.mts'), 'declare global { const console: { log(...values: unknown[]): void } }\nexport {};\n');
  for (const [module, resolution, lib] of [['nodenext', 'nodenext', ['ES2022']], ['esnext', 'bundler', ['ES2022', 'DOM']]]) {
    const dom = lib.includes('DOM');
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({
      compilerOptions: { strict: true, noUncheckedIndexedAccess: false, exactOptionalPropertyTypes: true, module, moduleResolution: resolution, target: 'es2022', lib, types: [], noEmit: true, skipLibCheck: false },
      files: [...names, 'uses.mts', ...(dom ? [] : ['console.d.mts'])] }));
    const done = spawnSync(process.execPath, [join(WEB, 'node_modules/typescript/bin/tsc'), '-p', project], { encoding: 'utf8' });
    assert.equal(done.status, 0, `${resolution}: ${done.stdout}${done.stderr}`);
  }
});

test('a browser computes the same', { skip: process.env.CHROMIUM ? false : 'there is no chromium here' }, async () => {
  const { chromium } = createRequire(join(WEB, 'package.json'))('playwright-core');
  const page = `<!doctype html><meta http-equiv="content-security-policy" content="default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; connect-src 'self'"><script type="module">
import * as posenc from './posenc/dist/browser.js';
const table = await posenc.tabulate({ scheme: 'rope', dims: 64 }, { first: 1000003, count: 8 });
const refused = await posenc.tabulate('rops', { count: 1 }).catch((error) => error instanceof posenc.PosencError && error.message);
const model = await posenc.inspect({ model_type: 'llama' });
const x = { data: Float32Array.from({ length: 64 }, (_, i) => Math.sin(i * i)), shape: [16, 4] };
window.result = { sines: [...table.sines.data], refused, frequencies: model.layers[0].frequencies, verdict: (await posenc.diagnose(x, x)).verdict, ids: [...(await posenc.positions({ lengths: [2, 1] })).data] };
</script>`;
  const types = { html: 'text/html', js: 'text/javascript' };
  const asked = [];
  const server = http.createServer((request, response) => {
    asked.push(request.url);
    const path = request.url.replace('/any/path/', '');
    try {
      const bytes = path === 'index.html' ? page : readFileSync(join(installed, path.replace('posenc/', '')));
      response.writeHead(200, { 'content-type': types[path.split('.').pop()] ?? 'application/octet-stream' }).end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  try {
    const tab = await browser.newPage(), complaints = [];
    tab.on('console', (message) => { if (message.type() === 'error' && !/favicon/.test(message.location().url)) complaints.push(message.text()); });
    tab.on('pageerror', (error) => complaints.push(error.message));
    await tab.goto(`http://127.0.0.1:${server.address().port}/any/path/index.html`);
    const result = await tab.waitForFunction(() => window.result, undefined, { timeout: 60_000 }).then((handle) => handle.jsonValue());
    assert.deepEqual(complaints, []);
    assert.deepEqual(asked.filter((path) => !path.includes('favicon')), ['/any/path/index.html', '/any/path/posenc/dist/browser.js', '/any/path/posenc/dist/posenc.wasm.gz']);
    const { posenc } = await import('./npm_project.mjs');
    assert.deepEqual(result.sines, [...(await posenc.tabulate({ scheme: 'rope', dims: 64 }, { first: 1000003, count: 8 })).sines.data]);
    assert.deepEqual(result.frequencies, (await posenc.inspect({ model_type: 'llama' })).layers[0].frequencies);
    assert.match(result.refused, /rops/);
    assert.deepEqual([result.verdict, ...result.ids], ['unchanged', 0, 1, 0]);
  } finally {
    await browser.close();
    server.close();
  }
});
