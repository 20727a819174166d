// Files of the user's: each that is wrong gets one line that names it, and the page works afterwards.

import assert from 'node:assert/strict';
import { closeSync, ftruncateSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { complaints, contextOf, go, open, places, posenc, setUp, tearDown } from './site.mjs';

let page, good;
const scratch = (name) => join(places.scratch, name);
const file = (name, bytes) => { writeFileSync(scratch(name), bytes); return scratch(name); };
function sparse(name, size) {
  const handle = openSync(scratch(name), 'w');
  ftruncateSync(handle, size);
  closeSync(handle);
  return scratch(name);
}
before(async () => {
  await setUp();
  page = await open(await contextOf({ acceptDownloads: true }), places.program);
  good = ['q.npy', 'q_rotated.npy'].map(scratch);
  posenc(`posenc table sinusoidal --width 32 --positions 7:39 --dtype f32 -o ${good[0]} --quiet`);
  posenc(`posenc apply rope ${good[0]} -o ${good[1]} --base 777 --quiet`);
});
after(tearDown);

const give = (index, path) => page.locator(`#npy-${index}`).setInputFiles(path);
const until = (pattern, selector) => page.waitForFunction(([source, where]) => [...document.querySelectorAll(where)].some((one) => new RegExp(source).test(one.textContent)), [pattern.source, selector]);
const refused = async () => (await page.locator('#page-check .refused').allInnerTexts()).join('\n');

test('two files of 500 MB are refused unread, and everything works afterwards', async () => {
  await go(page, '#v=1&p=check');
  const [one, other] = [sparse('large-before.npy', 5e8), sparse('large-after.npy', 5e8)];
  const began = Date.now();
  await give(0, one);
  await give(1, other);
  await until(/large-after\.npy: it has 500 MB.*16 tokens/, '.refused');
  assert.match(await refused(), /large-before\.npy: it has 500 MB/);
  assert.ok(Date.now() - began < 5000, `${Date.now() - began} ms`);
  await give(0, good[0]);
  await give(1, good[1]);
  await until(/base 777/, '.result');
  assert.equal(await refused(), '');
  await go(page, '#v=1&p=frank');
  assert.ok(await page.locator('pe-story table').count() > 5);
});

test('a file that is wrong is named, in either place', async () => {
  await go(page, '#v=1&p=check');
  const bytes = readFileSync(good[1]);
  const wrong = [['empty.npy', Buffer.alloc(0), /empty\.npy: is empty/], ['cut.npy', bytes.subarray(0, 200), /cut\.npy: byte/], ['picture.npy', Buffer.from('\x89PNG\r\n\x1a\n' + ' '.repeat(40), 'latin1'), /picture\.npy: .*not a \.npy/],
    ['words.npy', Buffer.from('hello, this is no tensor at all'), /words\.npy: /], ['cut.safetensors', Buffer.from([255, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0x7d]), /cut\.safetensors: its header would have 255 bytes/],
    ['none.safetensors', Buffer.from('no header'), /none\.safetensors: is no \.safetensors file/]];
  for (const [name, content, message] of wrong) {
    for (const place of [0, 1]) {
      await give(1 - place, good[1 - place]);
      await give(place, file(name, content));
      await until(message, '#page-check .refused');
    }
    await give(0, good[0]);
    await give(1, good[1]);
    await until(/base 777/, '.result');
    assert.equal(await refused(), '', name);
  }
  assert.deepEqual(complaints.splice(0), []);
});

test('a .safetensors whose header is JSON but no header says so', async () => {
  await go(page, '#v=1&p=check');
  for (const head of ['{"q":{"dtype":"F32"}}', '{"q":{"dtype":"F32","shape":[4],"data_offsets":[0]}}', '{"q":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}}', '{"q":null}', '[]', '7']) {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(head.length));
    await give(0, good[0]);
    await give(0, file('odd.safetensors', Buffer.concat([length, Buffer.from(head), Buffer.alloc(16)])));
    await until(/^odd\.safetensors: (has no tensor|is no \.safetensors)/, '#page-check .refused');
  }
  assert.deepEqual(complaints.splice(0), []);
});

function safetensors(tensors) {
  let at = 0;
  const header = {};
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
  }
  const text = Buffer.from(JSON.stringify({ __metadata__: { format: 'pt' }, ...header })), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...Object.values(tensors).map((one) => one.bytes)]);
}
const dataOf = (path) => { const npy = readFileSync(path); return npy.subarray(10 + npy.readUInt16LE(8)); };

test('one .safetensors file holds both tensors, and another is chosen by its name', async () => {
  const [one, other] = good.map(dataOf), shape = [32, 32];
  // bfloat16 is the upper half of a float32
  const halved = (bytes) => { const out = Buffer.alloc(bytes.length / 2); for (let i = 0; i < out.length / 2; ++i) bytes.copy(out, 2 * i, 4 * i + 2, 4 * i + 4); return out; };
  await go(page, '#v=1&p=start');
  await go(page, '#v=1&p=check');
  await give(0, file('both.safetensors', safetensors({ ids: { dtype: 'I64', shape: [4], bytes: Buffer.alloc(32) }, q: { dtype: 'F32', shape, bytes: one }, q_rotated: { dtype: 'F32', shape, bytes: other } })));
  await until(/base 777/, '.result');
  assert.deepEqual(await page.locator('.drop select').evaluateAll((all) => all.map((select) => [select.value, select.options.length])), [['q', 2], ['q_rotated', 2]]);
  await page.locator('#tensor-1').selectOption('q');
  await until(/Unchanged/, '.result');
  await give(1, file('low.safetensors', safetensors({ after: { dtype: 'BF16', shape, bytes: halved(other) } })));
  await until(/RoPE: 16 pairs/, '.result');
  // a large tensor is refused by its own size, not by that of the file
  const large = scratch('large.safetensors'), head = safetensors({ q: { dtype: 'F32', shape: [100_000_000], bytes: Buffer.alloc(0) } }).toString().replace('[0,0]', '[0,400000000]').slice(8), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(head.length));
  writeFileSync(large, Buffer.concat([length, Buffer.from(head)]));
  const handle = openSync(large, 'r+');
  ftruncateSync(handle, 8 + head.length + 400_000_000);
  closeSync(handle);
  await give(1, large);
  await until(/large\.safetensors: the tensor q has 400 MB/, '.refused');
});

test('a config with a byte order mark is read; a large file that is none is refused', async () => {
  await go(page, '#v=1&p=context');
  await page.locator('#config-file').setInputFiles(file('windows.json', '\ufeff{"model_type":"llama","hidden_size":64,"num_attention_heads":2,"num_hidden_layers":3,"rope_theta":1234.5,"max_position_embeddings":77}'));
  await until(/RoPE: 16 pairs.*base 1,234\.5.*clocks never complete a turn/, '.result');
  await page.locator('#config-file').setInputFiles(sparse('large.json', 5e8));
  await until(/large\.json is too large for a config\.json/, '.result .refused');
});

// Every other place that takes a file: what a good one is, what shows it, and where a refusal stands.
const config = '{"model_type":"llama","hidden_size":64,"num_attention_heads":2,"num_hidden_layers":3,"rope_theta":1234.5,"max_position_embeddings":77}';
const desk = readFileSync(new URL('../../explorer/src/data/desk.json', import.meta.url));
const boxes = [
  { id: 'context', input: '#config-file', refused: '.result .refused', name: 'good.json', bytes: () => Buffer.from(config), shown: [/base 1,234\.5/, '.result'] },
  { id: 'start', input: '#config-file', refused: '.result .refused', name: 'good.json', bytes: () => Buffer.from(config), shown: [/base 1,234\.5/, '.result'] },
  { id: 'tables', input: '#table-file', refused: '.drop .refused', name: 'good.npy', bytes: () => readFileSync(good[0]), shown: [/Trained: good\.npy/, '#page-tables h2'] },
  { id: 'lab', input: '#lab-file', refused: '.drop .refused', name: 'good.json', bytes: () => desk, shown: [/Shown: good\.json/, '#page-lab .note'] },
  { id: 'practice', input: '#progress-file', refused: '#page-practice .note.refused', name: 'good.json', bytes: () => progress, shown: undefined },
];
let progress;
for (const { id, input, refused: at, name, bytes, shown } of boxes) {
  test(`${id}: a file that is empty, cut, of another kind or of 500 MB is named, and a good one is taken afterwards`, async () => {
    await go(page, `#v=1&p=${id}`);
    if (id === 'start') await page.locator('#my-model button').first().click();
    await page.waitForSelector(input, { state: 'attached' });
    if (id === 'practice') {
      await page.locator('.flash-card').press(' ');
      await page.locator('.flash-card').press('3');
      const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save progress' }).click()]);
      progress = readFileSync(await saved.path());
    }
    const whole = bytes(), kind = name.split('.')[1];
    assert.ok(whole.length > 40, id);
    const wrong = [['empty', Buffer.alloc(0)], ['cut', whole.subarray(0, Math.ceil(whole.length / 2))], ['picture', Buffer.from('\x89PNG\r\n\x1a\n' + '\0'.repeat(90), 'latin1')], ['words', Buffer.from('hello, this is none of that')]];
    const paths = [...wrong.map(([what, content]) => file(`${what}-${id}.${kind}`, content)), sparse(`huge-${id}.${kind}`, 5e8)];
    for (const path of paths) {
      const called = path.split('/').pop();
      await page.locator(input).setInputFiles(path);
      await page.waitForFunction(([where, start]) => [`${start}: `, `${start} is `].some((said) => document.querySelector(where)?.textContent.startsWith(said)), [at, called], { timeout: 10_000 }).catch(() => assert.fail(`${called} is not named`));
      const said = await page.locator(at).first().innerText();
      assert.ok(said.length < 260 && !said.includes('\n') && !/undefined|TypeError|RangeError|NaN/.test(said), said);
    }
    await page.locator(input).setInputFiles(file(name, whole));
    await page.waitForFunction((where) => document.querySelector(where) === null, at);
    if (shown) await until(...shown);
    assert.deepEqual(complaints.splice(0), []);
  });
}

test('a download that failed is tried again', async () => {
  const other = await (await contextOf()).newPage();
  await other.route('**/stories.wasm', (route) => route.abort());
  await other.goto(`${places.program}#v=1&p=order`);
  await other.waitForFunction(() => /stories\.wasm could not be loaded/.test(document.querySelector('pe-story')?.textContent ?? ''));
  await other.unroute('**/stories.wasm');
  await other.locator('.word').first().click();
  await other.waitForFunction(() => document.querySelector('pe-story table'));
  await other.context().close();
});
