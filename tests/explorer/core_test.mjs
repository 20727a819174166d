// The modules give the same bytes as the program: tables by their SHA-256, errors by their words.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

const { POSENC, WASM, WEB } = process.env;
const { transformSync } = createRequire(join(WEB, 'package.json'))('esbuild');
const source = readFileSync(new URL('../../explorer/src/codec.ts', import.meta.url), 'utf8');
const { decode, encode } = await import(`data:text/javascript,${encodeURIComponent(transformSync(source, { loader: 'ts' }).code)}`);

function load(name) {
  const compiled = new WebAssembly.Module(readFileSync(join(WASM, name)));
  let core;
  const read = (at, size) => new TextDecoder().decode(new Uint8Array(core.memory.buffer, at, size));
  return {
    compiled,
    call(request, bytes = new Uint8Array()) {
      if (!core) {
        core = new WebAssembly.Instance(compiled).exports;
        core.__wasm_call_ctors();
      }
      const text = request instanceof Uint8Array ? request : encode(request);
      const at = core.pe_alloc(text.length), bytesAt = core.pe_alloc(bytes.length);
      new Uint8Array(core.memory.buffer, at, text.length).set(text);
      new Uint8Array(core.memory.buffer, bytesAt, bytes.length).set(bytes);
      try {
        core.pe_call(at, text.length, bytesAt, bytes.length);
      } catch (trap) {
        const message = read(core.pe_error(), core.pe_error_size());
        core = undefined;
        throw new Error(message || String(trap));
      }
      return { json: decode(new Uint8Array(core.memory.buffer, core.pe_text(), core.pe_text_size())),
               bytes: new Uint8Array(core.memory.buffer, core.pe_bytes(), core.pe_bytes_size()).slice() };
    },
  };
}
const core = load('core.wasm'), tools = load('tools.wasm');
const sha = (bytes) => createHash('sha256').update(bytes).digest('hex');

test('values survive the way into a module and back', () => {
  const value = { a: [null, true, false, 0, -1, 2 ** 53 - 1, -(2 ** 53 - 1), 0.1, -1e300, 'é λ 🜁', '', [], {}], b: { c: { d: [[[1]]] } }, long: 'x'.repeat(1000) };
  assert.deepEqual(decode(encode(value)), value);
  assert.deepEqual(decode(encode({ here: 1, gone: undefined })), { here: 1 });
});

test('bytes that are no question are refused', () => {
  const whole = encode({ call: 'table', scheme: { scheme: 'sinusoidal', width: 8 }, count: 2 });
  for (let cut = 0; cut < whole.length; ++cut) assert.throws(() => core.call(whole.subarray(0, cut)), /request: cut short|no call|must be/, String(cut));
  assert.throws(() => core.call(Uint8Array.from([9])), /unknown tag/);
  assert.throws(() => core.call(new Uint8Array(5000).fill(6).map((_, i) => [6, 1, 0, 0, 0][i % 5])), /too deep/);
});

test('no module imports anything', () => {
  for (const one of [core, tools]) assert.deepEqual(WebAssembly.Module.imports(one.compiled), []);
});

test('tables have the bytes of the program', () => {
  const folder = mkdtempSync(join(tmpdir(), 'posenc-'));
  try {
    for (const [scheme, first, count, dtype] of [
      [{ scheme: 'sinusoidal', width: 128 }, 0, 4096, 'f32'], [{ scheme: 'sinusoidal', width: 64, base: 500000 }, 1000003, 256, 'f16'],
      [{ scheme: 'sinusoidal', width: 32, layout: 'sin-cos', spacing: 'inclusive' }, 5, 100, 'bf16'],
      [{ scheme: 'sinusoidal', width: 64 }, 9007199254740000, 64, 'f64'], [{ scheme: 'shift', width: 16 }, 0, 50, 'f32']]) {
      const file = join(folder, `${Math.random()}.npy`);
      execFileSync(POSENC, ['table', JSON.stringify(scheme), '--positions', `${first}:${first + count}`, '--dtype', dtype, '-o', file, '--quiet']);
      const npy = readFileSync(file);
      const data = npy.subarray(10 + npy.readUInt16LE(8));
      for (const one of [core, tools]) {
        const { json, bytes } = one.call({ call: 'table', scheme, first, count, dtype });
        assert.equal(json.rows, count);
        assert.equal(sha(bytes), sha(data), JSON.stringify(scheme));
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an error has the words of the program, and the next call works', () => {
  const scheme = { scheme: 'sinusoidal', width: 7 };
  const program = spawnSync(POSENC, ['table', JSON.stringify(scheme), '--positions', '0:2'], { encoding: 'utf8' }).stderr;
  assert.throws(() => core.call({ call: 'table', scheme }), (error) => {
    assert.ok(error.message.length > 10 && program.includes(error.message), `${error.message} / ${program}`);
    return true;
  });
  assert.equal(core.call({ call: 'table', scheme: { scheme: 'sinusoidal', width: 8 }, count: 2 }).json.rows, 2);
  assert.throws(() => core.call({ call: 'story', name: 'rope' }), /no call 'story'/);
});

test('hostile requests are refused with a message', () => {
  for (const request of [{}, { call: 'figure' }, { call: 'figure', kind: 'waves', zoom: { from: 5, to: 1 } }, { call: 'table', scheme: 3 },
    { call: 'table', scheme: { scheme: 'sinusoidal' }, count: 1e12 }, { call: 'table', scheme: { scheme: 'sinusoidal' }, count: 1.5 },
    { call: 'scores', scheme: { scheme: 'alibi' }, length: 1e6 }, { call: 'model' }, { call: 'diagnose', first_bytes: 99 }, { call: 'grade', seed: -1.5 }]) {
    assert.throws(() => tools.call(request), (error) => !/RuntimeError/.test(error.message) && error.message.length > 5, JSON.stringify(request));
  }
});

test('what the small module leaves to the large one, it says', () => {
  for (const request of [{ call: 'figure', kind: 'decay' }, { call: 'figure', kind: 'dots' }, { call: 'table', scheme: { scheme: 'learned' } }, { call: 'closest', scheme: { scheme: 'alibi' } }]) {
    assert.throws(() => core.call(request), { message: 'is in tools.wasm' }, JSON.stringify(request));
  }
});

test('a figure of the page is the figure of the program', () => {
  const want = JSON.parse(execFileSync(POSENC, ['plot', 'dots', 'rope', '--dims', '16', '--zoom', '0:20', '--json'], { encoding: 'utf8' }));
  const { json, bytes } = tools.call({ call: 'figure', kind: 'dots', schemes: [{ scheme: 'rope', dims: 16 }], zoom: { from: 0, to: 20 } });
  const numbers = new Float64Array(bytes.buffer);
  assert.equal(json.title, want.title);
  const mine = json.rows.flatMap((row) => row.panels).flatMap((panel) => panel.series.map((one) => [...numbers.subarray(one.y.from, one.y.from + one.y.count)]));
  const theirs = (want.rows ? want.rows.flatMap((row) => row.panels) : want.panels.flat()).flatMap((panel) => panel.series.map((one) => one.y));
  assert.deepEqual(mine, theirs);
});
