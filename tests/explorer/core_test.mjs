// The modules give the same bytes as the program: tables by their SHA-256, errors by their words.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

const { POSENC, WASM } = process.env;

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
      const text = new TextEncoder().encode(typeof request === 'string' ? request : JSON.stringify(request));
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
      return { json: JSON.parse(read(core.pe_text(), core.pe_text_size())),
               bytes: new Uint8Array(core.memory.buffer, core.pe_bytes(), core.pe_bytes_size()).slice() };
    },
  };
}
const [core, figures, stories, practice, models] = ['core', 'figures', 'stories', 'practice', 'models'].map((name) => load(`${name}.wasm`));
const homes = { story: stories, cell: stories, exercise: practice, grade: practice, questions: practice, cards: practice, review: practice, walkthroughs: practice, 'grade-blank': practice, model: models, diagnose: models };
/// What the page asks besides the small module.
const tools = { call: (request, bytes) => (homes[request.call] ?? figures).call(request, bytes) };
const sha = (bytes) => createHash('sha256').update(bytes).digest('hex');

test('values survive the way into a module and back', () => {
  const scheme = (fields) => tools.call({ call: 'prove', properties: [], scheme: { scheme: 'rope', dims: 8, gone: undefined, ...fields } }).json.scheme;
  for (const base of [10000.1, 2 ** 53 - 1, 2 ** 60, 1e20, 1e36]) assert.equal(scheme({ base }).base, base);
  const words = ['é', 'λ', '🜁', '"\\'], story = tools.call({ call: 'story', name: 'dog-bites-man', text: words.join(' ') });
  for (const word of words) assert.ok(JSON.stringify(story.json).includes(JSON.stringify(word).slice(1, -1)), word);
});

test('text that is no question is refused', () => {
  const whole = JSON.stringify({ call: 'table', scheme: { scheme: 'sinusoidal', width: 8 }, count: 2 });
  for (let cut = 0; cut < whole.length; ++cut) assert.throws(() => core.call(whole.slice(0, cut)), /^Error: line 1, column/, String(cut));
  assert.throws(() => core.call('[]'), /no call ''/);
  assert.throws(() => core.call('['.repeat(5000)), /nested deeper than 64/);
});

test('no module imports anything', () => {
  for (const one of [core, figures, stories, practice, models, load('package.wasm')]) assert.deepEqual(WebAssembly.Module.imports(one.compiled), []);
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
      for (const one of [core, figures]) {
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

test('every worked example, and all that is practised, is in its module', () => {
  const program = (...words) => JSON.parse(execFileSync(POSENC, [...words, '--json'], { encoding: 'utf8', maxBuffer: 1 << 28 }));
  const names = readdirSync(new URL('../../content/stories', import.meta.url)).map((name) => name.replace('.json', ''));
  assert.ok(names.length >= 16);
  for (const name of names) assert.deepEqual(stories.call({ call: 'story', name }).json.steps.map((step) => step.heading), program('explain', name).steps.map((step) => step.heading), name);
  for (const [call, least] of [['questions', 90], ['cards', 60], ['walkthroughs', 1]]) assert.ok(practice.call({ call }).json.length >= least, call);
  const kinds = practice.call({ call: 'exercise', seed: 1 }).json.kinds;
  for (const { name } of kinds) assert.equal(practice.call({ call: 'exercise', kind: name, seed: 3 }).json.kind, name);
});

test('what the small module leaves to the large one, it says', () => {
  for (const request of [{ call: 'figure', kind: 'decay' }, { call: 'figure', kind: 'dots' }, { call: 'table', scheme: { scheme: 'learned' } }, { call: 'closest', scheme: { scheme: 'alibi' } }]) {
    assert.throws(() => core.call(request), { message: 'is in figures.wasm' }, JSON.stringify(request));
  }
});

// The page's own way in and out, with a module that is none: addresses from 2 GiB on, and whatever goes wrong.
test('the page reads addresses above 2 GiB, and drops an instance after any error', async () => {
  const { transformSync } = createRequire(join(process.env.WEB, 'package.json'))('esbuild');
  const source = readFileSync(new URL('../../explorer/src/module.ts', import.meta.url), 'utf8');
  const { CoreModule } = await import(`data:text/javascript,${encodeURIComponent(transformSync(source, { loader: 'ts' }).code)}`);
  const memory = new WebAssembly.Memory({ initial: 32_770 }), high = 2 ** 31, text = new TextEncoder().encode('{"ok":true}');
  let made = 0, fails;
  const exports = () => {
    ++made;
    let next = high;
    return { memory, __wasm_call_ctors() {}, pe_free() {},
      pe_alloc(bytes) { const at = next; next += bytes + 16; return fails === 'alloc' ? 0 : at | 0; },
      pe_call() { if (fails === 'call') throw new RangeError('offset'); new Uint8Array(memory.buffer, high + 4096, text.length).set(text); },
      pe_text: () => (high + 4096) | 0, pe_text_size: () => (fails === 'text' ? 3 : text.length), pe_bytes: () => high | 0, pe_bytes_size: () => 5,
      pe_error: () => 0, pe_error_size: () => 0, pe_out_of_memory: () => 0 };
  };
  const module = new CoreModule(exports), bytes = Uint8Array.from([1, 2, 3]);
  assert.deepEqual(module.call({}, bytes).json, { ok: true });
  assert.equal(new TextDecoder().decode(module.call({}, bytes).bytes), '{}' + '\0'.repeat(3), 'the question lies at 2 GiB');
  assert.equal(made, 1);
  for (const [where, message] of [['call', /offset/], ['alloc', /too large for this page/], ['text', /JSON/]]) {
    fails = where;
    const before = made;
    assert.throws(() => module.call({}, bytes), message, where);
    fails = undefined;
    assert.deepEqual(module.call({}, bytes).json, { ok: true }, where);
    assert.equal(made, before + 1, `${where}: a fresh instance`);
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

test('scores of a sentence are those of the worked example, in both modules', () => {
  const text = 'the cat sat on the mat', told = tools.call({ call: 'story', name: 'dog-bites-man', text }).json.steps.flatMap((step) => step.blocks);
  const matrix = (name) => told.find((block) => block.kind === 'matrix' && block.name === name).values.flat();
  for (const one of [core, figures]) {
    for (const [positions, name] of [[false, 'S1'], [true, "S1'"]]) {
      const { json, bytes } = one.call({ call: 'sentence', text, positions });
      assert.equal(json.words.join(' '), 'the cat sat on the.2 mat');
      const want = matrix(name);
      [...new Float64Array(bytes.buffer)].forEach((value, i) => assert.ok(Math.abs(value - want[i]) < 1e-12, `${name}: ${value} is ${want[i]} there`));
    }
  }
});

// --- guesses ----------------------------------------------------------------------------------------------------

// Every number in a question or an answer is either what the question sets, or computed here. A new one fails.
test('the numbers of guesses are computed', () => {
  const guesses = JSON.parse(readFileSync(new URL('../../content/guesses.json', import.meta.url), 'utf8'));
  const program = (...words) => JSON.parse(spawnSync(POSENC, [...words, '--json'], { encoding: 'utf8', maxBuffer: 1 << 28 }).stdout);
  const wavelengths = (dims, base) => [...new Float64Array(tools.call({ call: 'frequencies', scheme: { scheme: 'rope', dims, base } }).bytes.buffer)].map((one) => (2 * Math.PI) / one);
  // the largest error of a sine or cosine there, of all pairs
  const valuesAt = (position, numerics) => program('plot', 'heatmap', 'rope', '--dims', '128', '--zoom', `${position}:${position + 1}`, '--numerics', numerics).panels[0].heat_map.values.flat();
  const errorAt = (position) => {
    const exact = valuesAt(position, 'exact');
    return Math.max(...valuesAt(position, 'hf-f32').map((value, i) => Math.abs(value - exact[i])));
  };
  const spacing = (value) => value - Math.max(...[...new Float32Array(new Uint32Array([new Uint32Array(new Float32Array([value]).buffer)[0] - 1]).buffer)]);
  // as many digits as are written
  const rounds = (value) => (text) => {
    const digits = text.replace(/e.*/, '').replace(/[,.]/g, '').replace(/^0+|0+$/g, '').length;
    return Number(value.toPrecision(digits)) === Number(text.replaceAll(',', ''));
  };
  // the order of magnitude: "about 2e-2"
  const near = (value) => (text) => Math.abs(Math.log2(value / Number(text))) < 1;
  const checks = {
    order: {}, phasors: {}, distance: {}, frank: {}, rope: {}, tables: { 5: 'n', 6: 'n', 7: 'n' }, schemes: { 5: 'T5' },
    waves: { '10,000': 'base', 10000: 'base', 64: 'width', 628: rounds(wavelengths(64, 10000)[16]), '47,000': rounds(wavelengths(64, 10000).at(-1)), '47,100': rounds(wavelengths(64, 10000).at(-1)), '62/64': (text) => text === `${2 * (64 / 2 - 1)}/64`, 1: 'exponent that it is not' },
    decay: { '10,000': 'base', '500,000': 'base', 3: 'Llama 3', 1: 'cosine of 0' },
    context: { '10,000': 'base', 10000: 'base', 128: 'dims', '4,096': 'trained', '126/128': (text) => text === `${2 * (128 / 2 - 1)}/128`, '54,000': rounds(wavelengths(128, 10000).at(-1)) },
    exact: { 32: 'float32', '1,048,576': 'position', 128: 'dims', '6e-8': near(2 ** -24), '1e-4': near(errorAt(4096)), '4,096': 'position', '2e-2': near(errorAt(1048576)), 24: (text) => 2 ** Number(text) === 2 / spacing(2), '1/16': () => spacing(1048576) === 1 / 16 },
    check: { 1: 'index', 2: 'index', 0: 'distance' },
  };
  assert.deepEqual(Object.keys(guesses), Object.keys(guesses).filter((page) => page in checks), 'a page without checks');
  for (const [page, { question, choices }] of Object.entries(guesses)) {
    const words = [question, ...choices.flatMap((one) => [one.text, one.because])].join(' ').replace(/\d?π|\d+i\b/g, ' ');
    for (const [number] of words.matchAll(/\d[\d,]*\d(?:\/\d+)?|\d+(?:e-?\d+)?(?:\/\d+)?/g)) {
      const known = checks[page][number];
      assert.ok(known !== undefined, `${page}: ${number} is not checked`);
      if (typeof known === 'function') assert.ok(known(number), `${page}: ${number}`);
    }
  }
  // what the right answers say, measured
  const outcome = (scheme, property) => tools.call({ call: 'prove', scheme: { scheme }, length: 64 }).json.findings.find((one) => one.property === property).outcome;
  assert.deepEqual(['rope', 't5', 'alibi'].map((scheme) => outcome(scheme, 'relative')), ['holds', 'holds', 'holds']);
  assert.equal(outcome('sinusoidal', 'monotone'), 'fails');
  const far = (base) => program('plot', 'decay', 'rope', '--dims', '64', '--base', base, '--zoom', '128:257').panels[0].series[0].y.reduce((sum, y) => sum + y, 0);
  assert.ok(far('500000') > far('10000'));
  // and the check itself: another number is found wrong
  assert.equal(rounds(wavelengths(64, 10000).at(-1))('48,000'), false);
  assert.equal(near(errorAt(1048576))('1e-4'), false);
});
