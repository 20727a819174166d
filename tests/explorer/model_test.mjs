// The models of the lab in the page: the library's forward pass, what breaks past the trained length, and trained tables.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { POSENC, complaints, contextOf, go, open, places, sameAsTheProgram, setUp, settled, tearDown } from './site.mjs';

const { SOURCE, WASM } = process.env;
const schemes = ['alibi', 'learned', 'none', 'rope', 'sinusoidal'];
const fileOf = (scheme) => join(SOURCE, 'explorer/models', `${scheme}.safetensors`);

let context, page;
before(async () => {
  await setUp();
  context = await contextOf();
  page = await open(context, places.program);
});
after(async () => {
  await tearDown();
  assert.deepEqual(complaints, []);
});

const headOf = (bytes) => JSON.parse(bytes.toString('utf8', 8, 8 + Number(bytes.readBigUInt64LE(0))));
test('a model has at most 250 KB and 0.3 million parameters, and was trained on text', () => {
  for (const scheme of schemes) {
    const bytes = readFileSync(fileOf(scheme)), { __metadata__: said, ...tensors } = headOf(bytes);
    assert.ok(bytes.length <= 250_000, `${scheme}: ${bytes.length} bytes`);
    const parameters = Object.entries(tensors).filter(([name]) => !name.endsWith('.scales')).reduce((sum, [, one]) => sum + one.shape.reduce((a, b) => a * b, 1), 0);
    assert.ok(parameters <= 300_000, `${scheme}: ${parameters}`);
    const scores = JSON.parse(said.scores);
    assert.equal(scores[0].size, JSON.parse(said.shape).context);
    assert.ok(Math.exp(scores[0].nll) < 10,  // guessing would be 80
      `${scheme}: perplexity ${Math.exp(scores[0].nll)} at the trained length`);
  }
});

// The same model in a few lines of JavaScript, in doubles: an oracle that shares no code with the library.
function oracle(scheme, symbols) {
  const bytes = readFileSync(fileOf(scheme)), size = Number(bytes.readBigUInt64LE(0)), head = headOf(bytes), shape = JSON.parse(head.__metadata__.shape);
  const raw = (name) => { const { data_offsets: [from, to] } = head[name]; return bytes.subarray(8 + size + from, 8 + size + to); };
  const floats = (name) => { const part = raw(name); return Array.from({ length: part.length / 4 }, (_, i) => part.readFloatLE(4 * i)); };
  const matrix = (name) => { const part = raw(name), scales = floats(`${name}.scales`), [rows, columns] = head[name].shape; return Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => Math.fround(scales[i] * part.readInt8(i * columns + j)))); };
  const times = (x, w, bias) => x.map((row) => bias.map((b, j) => b + row.reduce((sum, value, i) => sum + value * w[i][j], 0)));
  const norm = (x, name) => { const weight = floats(`${name}.weight`), bias = floats(`${name}.bias`); return x.map((row) => { const mean = row.reduce((a, b) => a + b) / row.length, spread = Math.sqrt(row.reduce((a, b) => a + (b - mean) ** 2, 0) / row.length + 1e-5); return row.map((value, i) => ((value - mean) / spread) * weight[i] + bias[i]); }); };
  const gelu = (v) => 0.5 * v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3)));
  const { width, heads, layers } = shape, d = width / heads, table = matrix('token.table');
  let x = symbols.map((symbol) => [...table[symbol]]);
  if (scheme === 'learned') { const rows = matrix('position.table'); x = x.map((row, p) => row.map((value, i) => value + rows[p][i])); }
  if (scheme === 'sinusoidal') x = x.map((row, p) => row.map((value, i) => value + 0.02 * Math.SQRT2 * (i % 2 ? Math.cos : Math.sin)(p * 10000 ** (-(i - (i % 2)) / width))));
  // halves of a head are rotated against each other
  const rotated = (v, p) => scheme !== 'rope' ? v : v.map((value, i) => { const pair = i % (d / 2), angle = p * 10000 ** (-2 * pair / d); return i < d / 2 ? value * Math.cos(angle) - v[i + d / 2] * Math.sin(angle) : value * Math.cos(angle) + v[i - d / 2] * Math.sin(angle); });
  for (let layer = 0; layer < layers; ++layer) {
    const name = `layer.${layer}`, qkv = times(norm(x, `${name}.norm1`), matrix(`${name}.qkv.weight`), floats(`${name}.qkv.bias`)), mixed = x.map(() => Array(width).fill(0));
    for (let h = 0; h < heads; ++h) {
      const part = (which) => qkv.map((row) => row.slice(which * width + h * d, which * width + (h + 1) * d)), q = part(0).map(rotated), k = part(1).map(rotated), v = part(2);
      q.forEach((query, i) => {
        const scores = k.slice(0, i + 1).map((key, j) => query.reduce((sum, value, f) => sum + value * key[f], 0) / Math.sqrt(d) - (scheme === 'alibi' ? 2 ** (-8 * (h + 1) / heads) * (i - j) : 0));
        const most = Math.max(...scores), weights = scores.map((score) => Math.exp(score - most)), sum = weights.reduce((a, b) => a + b);
        weights.forEach((weight, j) => { for (let f = 0; f < d; ++f) mixed[i][h * d + f] += (weight / sum) * v[j][f]; });
      });
    }
    const out = times(mixed, matrix(`${name}.out.weight`), floats(`${name}.out.bias`));
    x = x.map((row, i) => row.map((value, j) => value + out[i][j]));
    const up = times(norm(x, `${name}.norm2`), matrix(`${name}.up.weight`), floats(`${name}.up.bias`)).map((row) => row.map(gelu)), down = times(up, matrix(`${name}.down.weight`), floats(`${name}.down.bias`));
    x = x.map((row, i) => row.map((value, j) => value + down[i][j]));
  }
  return norm(x, 'norm').slice(0, -1).map((row, i) => {
    const logits = table.map((token) => token.reduce((sum, value, j) => sum + value * row[j], 0)), most = Math.max(...logits);
    return Math.log(logits.reduce((sum, one) => sum + Math.exp(one - most), 0)) + most - logits[symbols[i + 1]];
  });
}

test('the forward pass of the page is that of an oracle, for every scheme', () => {
  const core = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(join(WASM, 'lab.wasm')))).exports;
  core.__wasm_call_ctors();
  const run = (scheme, text) => {
    const request = new TextEncoder().encode(JSON.stringify({ call: 'model-run', text, layer: 1, head: 2 })), weights = readFileSync(fileOf(scheme));
    const at = core.pe_alloc(request.length), from = core.pe_alloc(weights.length);
    new Uint8Array(core.memory.buffer, at, request.length).set(request);
    new Uint8Array(core.memory.buffer, from, weights.length).set(weights);
    core.pe_call(at, request.length, from, weights.length);
    return new Float64Array(core.memory.buffer.slice(core.pe_bytes(), core.pe_bytes() + core.pe_bytes_size()));
  };
  const text = 'Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse'.slice(0, 80);
  for (const scheme of schemes) {
    const alphabet = JSON.parse(headOf(readFileSync(fileOf(scheme))).__metadata__.alphabet), want = oracle(scheme, [...text].map((one) => alphabet.indexOf(one.charCodeAt(0)))), have = run(scheme, text);
    assert.equal(have.length, text.length - 1 + text.length ** 2);
    want.forEach((loss, i) => assert.ok(Math.abs(loss - have[i]) < 2e-4 * Math.max(1, loss), `${scheme}, character ${i + 1}: ${have[i]} is ${loss}`));
    // rows of weights sum to 1, and nobody looks ahead
    const map = have.subarray(text.length - 1);
    for (let i = 0; i < text.length; ++i) {
      const row = map.subarray(i * text.length, (i + 1) * text.length);
      assert.ok(Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-5);
      assert.ok(row.subarray(i + 1).every((weight) => weight === 0));
    }
  }
});

const reading = () => page.locator('#page-model .reading').innerText();
const run = async (hash) => { await go(page, hash); await page.waitForFunction(() => /nats/.test(document.querySelector('.reading')?.textContent ?? '')); await settled(page); return reading(); };
const beyond = (text) => Number(/, ([\d.]+) after them/.exec(text)[1]), within = (text) => Number(/: ([\d.]+) nats/.exec(text)[1]);

test('past its trained length RoPE is lost and ALiBi reads on', async () => {
  const rope = await run('#v=1&p=model&ms=rope&chars=512'), alibi = await run('#v=1&p=model&ms=alibi&chars=512');
  assert.ok(beyond(rope) > within(rope) + 0.5, rope);
  assert.match(rope, /it is lost/);
  assert.ok(beyond(alibi) < within(alibi) + 0.15, alibi);
  assert.match(alibi, /as if nothing had happened/);
  // at the trained length nothing is past it
  assert.match(await run('#v=1&p=model&ms=rope&chars=64'), /It was trained on 64 at a time/);
});

test('a text of one\'s own is read, characters that the book has not are named, and the model writes on', async () => {
  await run('#v=1&p=model&ms=alibi&chars=64');
  await page.getByLabel('Your own text').fill('The whale é was white, and the sea was');
  await page.waitForFunction(() => /do not occur in the book/.test(document.querySelector('.reading').textContent));
  assert.equal(await page.locator('.tinted span').count(), 38);
  await page.getByRole('button', { name: 'Let it write on' }).click();
  await page.waitForFunction(() => document.querySelector('.written strong')?.textContent.length >= 8);
  await page.getByLabel('Your own text').fill('x');
  await page.waitForFunction(() => /at least two characters/.test(document.querySelector('.reading').textContent));
  await page.getByLabel('Your own text').fill('Call me');
  await page.waitForFunction(() => /nats/.test(document.querySelector('.reading').textContent));
});

test('weights are loaded when they are asked for, and no earlier', async () => {
  const other = await contextOf(), fresh = await other.newPage(), loaded = [];
  fresh.on('request', (request) => { if (/model-\w+\.safetensors|lab\.wasm/.test(request.url())) loaded.push(request.url().split('/').at(-1)); });
  await fresh.goto(`${places.program}#v=1&p=start`);
  await fresh.waitForSelector('#page-start[data-ready=yes]');
  assert.deepEqual(loaded, []);
  await fresh.goto(`${places.program}#v=1&p=model`);
  await fresh.waitForFunction(() => /nats/.test(document.querySelector('.reading')?.textContent ?? ''));
  assert.deepEqual([...new Set(loaded)].sort(), ['lab.wasm', 'model-rope.safetensors']);
  await other.close();
});

test('the command under the models trains them: that of the script', () => {
  const script = readFileSync(join(SOURCE, 'explorer/models/train.sh'), 'utf8'), written = readFileSync(join(SOURCE, 'explorer/src/pages/model.ts'), 'utf8');
  const flags = (text) => Object.fromEntries([...text.matchAll(/--(size|width|heads|layers|batch) (\d+)/g)].map(([, name, value]) => [name, value]));
  assert.deepEqual(flags(script), flags(written));
  assert.equal(/STEPS:-(\d+)/.exec(script)[1], /--steps (\d+)/.exec(written)[1]);
});

// --- trained tables -------------------------------------------------------------------------------------------------

const safetensors = (tensors) => {
  let from = 0;
  const head = {}, parts = [];
  for (const [name, [dtype, shape, data]] of Object.entries(tensors)) { head[name] = { dtype, shape, data_offsets: [from, from += data.length] }; parts.push(data); }
  const text = Buffer.from(JSON.stringify(head)), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
};

test('neighbours in the trained table are similar as far as it was trained; sinusoids have one value per distance', async () => {
  await go(page, '#v=1&p=tables&rows=128');
  const similarity = () => page.locator('pe-figure').first().evaluate((one) => one.numbers().slice(1).map((row) => row[3]));
  const map = await similarity(), at = (i, j) => map[i * 128 + j];
  const mean = (from, to) => { let sum = 0; for (let i = from; i < to; ++i) sum += at(i, i + 1); return sum / (to - from); };
  assert.equal(map.length, 128 * 128);
  assert.ok(mean(2, 62) > mean(70, 126) + 0.1, `${mean(2, 62)} and ${mean(70, 126)}`);
  await sameAsTheProgram(page.locator('pe-figure').nth(1));
});

test('a model\'s .safetensors: only its table is read; what is none is named, and the page goes on', async () => {
  await go(page, '#v=1&p=tables');
  const numbers = Float32Array.from({ length: 40 * 6 }, (_, i) => Math.sin(i * i)), input = page.locator('#table-file');
  const wpe = ['F32', [40, 6], Buffer.from(numbers.buffer)], other = ['F32', [2], Buffer.alloc(8)];
  await input.setInputFiles({ name: 'gpt2.safetensors', mimeType: 'x', buffer: safetensors({ 'transformer.wpe.weight': wpe, 'h.0.bias': other }) });
  await page.waitForFunction(() => /gpt2/.test(document.querySelector('#page-tables h2').textContent));
  await settled(page);
  assert.match(await page.locator('#page-tables [role=status]').first().innerText(), /40 positions of 6 numbers/);
  const map = await page.locator('pe-figure').first().evaluate((one) => one.numbers().slice(1).map((row) => row[3]));
  const dot = (i, j) => { let sum = 0; for (let f = 0; f < 6; ++f) sum += numbers[6 * i + f] * numbers[6 * j + f]; return sum; };
  assert.equal(map.length, 40 * 40);
  for (const [i, j] of [[0, 1], [3, 17], [39, 38]]) assert.ok(Math.abs(map[i * 40 + j] - dot(i, j) / Math.sqrt(dot(i, i) * dot(j, j))) < 1e-6);
  for (const [name, buffer, words] of [
    ['empty.safetensors', Buffer.alloc(0), /empty\.safetensors: is empty/], ['none.safetensors', safetensors({ 'h.0.bias': other, 'h.1.bias': other }), /none\.safetensors: has no table of positions/],
    ['cut.safetensors', safetensors({ 'wpe.weight': wpe }).subarray(0, 300), /cut\.safetensors: .*cut/], ['picture.png', Buffer.from('\x89PNG\r\n\x1a\nxxxx', 'latin1'), /picture\.png: /],
    ['flat.safetensors', safetensors({ 'wpe.weight': ['F32', [240], wpe[2]] }), /flat\.safetensors: has the shape \[240\]/]]) {
    await input.setInputFiles({ name, mimeType: 'x', buffer });
    await page.waitForFunction((one) => document.querySelector('#page-tables .refused')?.textContent.startsWith(one), name);
    assert.match(await page.locator('#page-tables .refused').innerText(), words);
  }
  await input.setInputFiles({ name: 'bert.safetensors', mimeType: 'x', buffer: safetensors({ 'bert.embeddings.position_embeddings.weight': ['F16', [40, 6], Buffer.alloc(480, 0x3c)], 'x.bias': other }) });
  await page.waitForFunction(() => /bert/.test(document.querySelector('#page-tables h2').textContent));
  await settled(page);
  assert.equal(await page.locator('#page-tables .refused').count(), 0);
});

test('the program packs what it trained', () => {
  const folder = join(places.scratch, 'run'), file = join(places.scratch, 'packed.safetensors');
  execFileSync(POSENC, ['lab', 'train', '--scheme', 'rope', '--size', '16', '--width', '16', '--heads', '2', '--layers', '1', '--steps', '2', '--batch', '4', '-o', folder, '--quiet']);
  execFileSync(POSENC, ['lab', 'pack', folder, '-o', file]);
  assert.ok(statSync(file).size > 2000);
  assert.equal(JSON.parse(headOf(readFileSync(file)).__metadata__.shape).scheme, 'rope');
});
