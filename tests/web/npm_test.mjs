// The npm package as its users get it: installed into an empty project, it gives the numbers of the program and refuses what the
// program refuses, in the same words.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { SOURCE, dataOf, file, installed, noise, npy, posenc, program, refusal, rotated } from './npm_project.mjs';

const { PosencError, check, diagnose, init, inspect, positions, tabulate, version } = posenc;
const fuzz = (name) => join(SOURCE, 'tests/fuzz/corpus/model', name);

/// Refused with a sentence that matches.
async function refuses(promise, sentence) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof PosencError, `not a PosencError: ${error.stack}`);
    assert.match(error.message, sentence);
    assert.ok(!error.message.includes('\n') && !/unreachable|RuntimeError/.test(error.message), error.message);
    return true;
  });
}

test('models are read as the program reads them', async () => {
  const families = JSON.parse(readFileSync(join(SOURCE, 'tests/oracle/data/configs/families.json'), 'utf8'));
  const wanted = ['llama', 'gemma3', 'phi3', 'qwen2_vl', 'mpt', 't5', 'bert'], asked = new Set();
  let compared = 0;
  for (const { name, config } of families) {
    const model = await inspect(config);
    assert.deepEqual(model, await inspect(JSON.stringify(config)), name);
    assert.deepEqual(model, await inspect(Buffer.from(JSON.stringify(config))), name);
    // the program is started for one config of each of these types, and for every tenth
    if (compared % 10 !== 0 && (!wanted.includes(config.model_type) || asked.has(config.model_type))) { ++compared; continue; }
    ++compared;
    asked.add(config.model_type);
    const { source, ...printed } = JSON.parse(program(['inspect', file(JSON.stringify(config), '.json'), '--json']));
    assert.ok(source);
    assert.deepEqual(model, printed, name);
  }
  assert.ok(compared >= 90 && asked.size >= 9, `${compared} configs, ${asked.size} types`);
});

test('GGUF files are read as the program reads them', async () => {
  for (const name of ['gguf_llama', 'gguf_yarn', 'gguf_bloom', 'gguf_qwen2vl']) {
    const { source, ...printed } = JSON.parse(program(['inspect', fuzz(name), '--json']));
    assert.ok(source);
    const bytes = readFileSync(fuzz(name));
    assert.deepEqual(await inspect(bytes), printed, name);
    assert.deepEqual(await inspect(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)), printed, name);
  }
});

test('check and diagnose give the documents of the program', async () => {
  const before = { data: noise(2 * 3 * 24 * 16), shape: [2, 3, 24, 16] };
  const cases = [
    [rotated(before), { scheme: 'rope', dims: 16 }, true],
    [rotated(before, { base: 500000, first: 7 }), { scheme: 'rope', dims: 16, base: 500000 }, false],
    [rotated(before, { layout: 'interleaved' }), { scheme: 'rope', dims: 16 }, false],
    [before, { scheme: 'rope', dims: 16 }, false],
  ];
  for (const [after, scheme, agrees] of cases) {
    const files = [file(npy(before), '.npy'), file(npy(after), '.npy')];
    const mine = await check(before, after, { scheme });
    assert.deepEqual(mine, JSON.parse(program(['check', JSON.stringify(scheme), ...files, '--json'], [0, 1])), JSON.stringify(scheme));
    assert.equal(mine.agrees, agrees);
    assert.deepEqual(await check(readFileSync(files[0]), readFileSync(files[1]), { scheme }), mine);
    assert.deepEqual(await diagnose(before, after), JSON.parse(program(['diagnose', ...files, '--json'], [0, 1])));
  }
  const found = await diagnose(before, cases[1][0]);
  assert.deepEqual([found.verdict, found.best.base, found.best.first_position], ['sure', 500000, 7]);
  // positions, the position of the first token, and another order of the axes
  assert.equal((await check(before, cases[1][0], { scheme: cases[1][1], first: 7 })).agrees, true);
  const ids = Float64Array.from({ length: 24 }, (_, i) => i + 7);
  assert.equal((await check(before, cases[1][0], { scheme: cases[1][1], positions: ids })).agrees, true);
  assert.equal((await check(before, cases[1][0], { scheme: cases[1][1], positions: BigInt64Array.from(ids, BigInt) })).agrees, true);
  const turned = ({ data, shape: [b, h, s, d] }) => ({ shape: [b, s, h, d], data: Float32Array.from(data, (_, i) => {
    const [batch, token, head, feature] = [Math.floor(i / (s * h * d)), Math.floor(i / (h * d)) % s, Math.floor(i / d) % h, i % d];
    return data[((batch * h + head) * s + token) * d + feature];
  }) });
  assert.equal((await check(turned(before), turned(cases[0][0]), { scheme: cases[0][1], order: 'bshd' })).agrees, true);
  assert.equal((await check(turned(before), turned(cases[0][0]), { scheme: cases[0][1] })).agrees, false);
});

test('check compares with a layer of a model', async () => {
  const model = { model_type: 'gemma3_text', hidden_size: 64, num_attention_heads: 4, head_dim: 16, num_hidden_layers: 12, rope_theta: 1000000, rope_local_base_freq: 10000, sliding_window: 8, sliding_window_pattern: 6 };
  const before = { data: noise(20 * 16), shape: [20, 16] };
  const [local, global] = [rotated(before), rotated(before, { base: 1000000 })];
  assert.equal((await check(before, local, { model, layer: 0 })).agrees, true);
  assert.equal((await check(before, local, { model, layer: 5 })).agrees, false);
  assert.equal((await check(before, global, { model, layer: 5 })).agrees, true);
  await refuses(check(before, local, { model }), /layers of gemma3_text differ; choose a layer: .*sliding/);
  await refuses(check(before, local, { model, layer: 12 }), /^layer 12: the model has layers 0-11$/);
  const llama = { model_type: 'llama', hidden_size: 64, num_attention_heads: 4, num_hidden_layers: 2 };
  assert.equal((await check(before, local, { model: llama })).agrees, true);
  const path = file(JSON.stringify(llama), '.json');
  assert.deepEqual(await check(before, local, { model: llama }), JSON.parse(program(['check', '--model', path, file(npy(before), '.npy'), file(npy(local), '.npy'), '--json'])));
});

test('tables have the bytes of the program', async () => {
  const out = file('', '.npy');
  const bytesOf = (values) => Buffer.from(values.data.buffer, values.data.byteOffset, values.data.byteLength);
  for (const [scheme, first, count, dtype] of [
    [{ scheme: 'sinusoidal', width: 128 }, 0, 512, 'f32'], [{ scheme: 'sinusoidal', width: 64, base: 500000 }, 1000003, 64, 'f16'],
    [{ scheme: 'sinusoidal', width: 64 }, 9007199254740000, 64, 'f64'], [{ scheme: 'rope', dims: 64, scaling: { type: 'llama3', factor: 8 } }, 131000, 64, 'bf16'],
    [{ scheme: 'rope', dims: 32 }, 2 ** 53 - 8, 8, 'f32']]) {
    const table = await tabulate(scheme, { first, count, dtype });
    program(['table', JSON.stringify(scheme), '--positions', `${first}:${first + count}`, '--dtype', dtype, '-o', out, '--force', '--quiet']);
    const mine = table.kind === 'rotation' ? Buffer.concat([bytesOf(table.cosines), bytesOf(table.sines)]) : bytesOf(table);
    assert.ok(mine.length > 0 && mine.equals(dataOf(out)), JSON.stringify(scheme));
    const listed = await tabulate(scheme, { positions: Array.from({ length: count }, (_, i) => first + i), dtype });
    assert.deepEqual(listed, table);
  }
  const bias = await tabulate({ scheme: 'alibi', heads: 6 }, { queries: [5, 6], keys: [0, 1, 2, 3, 4, 5, 6] });
  program(['table', '{"scheme":"alibi","heads":6}', '--queries', '5:7', '--keys', '0:7', '-o', out, '--force', '--quiet']);
  assert.deepEqual([bias.kind, ...bias.shape], ['bias', 6, 2, 7]);
  assert.ok(bytesOf(bias).equals(dataOf(out)));
  // M-RoPE: three axes, from positions()
  const scheme = { scheme: 'rope', dims: 16, sections: [2, 3, 3] };
  const ids = await positions({ spec: 'text:2 image:4x4 text:2' });
  const path = file(npy({ data: BigInt64Array.from(ids.data, BigInt), shape: ids.shape }), '.npy');
  program(['table', JSON.stringify(scheme), '--positions', `@${path}`, '-o', out, '--force', '--quiet']);
  const mixed = await tabulate(scheme, { positions: ids });
  assert.ok(Buffer.concat([bytesOf(mixed.cosines), bytesOf(mixed.sines)]).equals(dataOf(out)));
  // a trained table
  const weights = { data: noise(10 * 4), shape: [10, 4] };
  assert.deepEqual([...(await tabulate({ scheme: 'learned', rows: 10, width: 4 }, { positions: [9, 0], weights })).data], [...weights.data.subarray(36), ...weights.data.subarray(0, 4)]);
});

test('positions are those of the program', async () => {
  for (const [request, words] of [
    [{ lengths: [5, 3, 8] }, ['--lengths', '5,3,8']], [{ grid: [2, 3, 4], first: 7 }, ['--grid', '2,3,4', '--first', '7']],
    [{ grid: [14, 3], centred: true }, ['--grid', '14,3', '--centred']], [{ random: 40, below: 500, seed: 7 }, ['--random', '40,500', '--seed', '7']],
    [{ random: 3, below: 2 ** 53 }, ['--random', '3,9007199254740992']],
    [{ spec: 'text:5 image:4x6 text:3 video:3x4x4@1 text:4', family: 'qwen2.5-vl' }, ['--family', 'qwen2.5-vl', '--spec', 'text:5 image:4x6 text:3 video:3x4x4@1 text:4']]]) {
    const { data, shape } = await positions(request);
    assert.deepEqual({ shape, positions: [...data] }, JSON.parse(program(['positions', ...words, '--json'])), JSON.stringify(request));
  }
  const mask = [[0, 0, 1, 1], [1, 1, 1, 0]], path = file(npy({ data: BigInt64Array.from(mask.flat(), BigInt), shape: [2, 4] }), '.npy');
  for (const rule of ['cumulative', 'roberta']) {
    const { data, shape } = await positions({ mask, rule });
    assert.deepEqual({ shape, positions: [...data] }, JSON.parse(program(['positions', '--mask', path, '--rule', rule, '--json'])));
  }
  assert.deepEqual((await positions({ mask: Uint8Array.of(0, 1, 1) })).shape, [3]);
});

test('an error has the words of the program, and the next call works', async () => {
  for (const scheme of [{ scheme: 'sinusoidal', width: 7 }, { scheme: 'rope', dims: 0 }, { scheme: 'rops' }, { scheme: 'rope', them: 1 }, { scheme: 'rope', scaling: { type: 'yarn', factor: -1 } }]) {
    let said = '';
    await tabulate(scheme, { count: 2 }).catch((error) => { said = error.message; assert.ok(error instanceof PosencError); });
    assert.ok(said.length > 10 && refusal(['table', JSON.stringify(scheme), '--positions', '0:2']).includes(said), said);
    assert.equal((await tabulate('sinusoidal', { count: 2 })).shape[0], 2);
  }
  for (const config of ['{"model_type": "llama"', '{"model_type": "nothing"}', '[]', '', '{"model_type":"llama","rope_scaling":{"rope_type":"what"}}', '{"model_type":"llama","rope_theta":-1}']) {
    let said = '';
    await inspect(config).catch((error) => { said = error.message; });
    assert.ok(said.length > 5 && refusal(['inspect', file(config, '.json')]).includes(said), `${config}: ${said}`);
  }
  // several at once, of which one traps
  const both = await Promise.allSettled([tabulate('rope', { count: 1 }), tabulate({ scheme: 'rope', dims: 7 }, { count: 1 }), tabulate('rope', { count: 1 })]);
  assert.deepEqual(both.map((one) => one.status), ['fulfilled', 'rejected', 'fulfilled']);
});

test('wrong arguments are refused', async () => {
  const x = { data: noise(32), shape: [8, 4] }, rope = { scheme: 'rope', dims: 4 };
  for (const value of [undefined, null, 42, true, [], new Float32Array(4), () => 0, Symbol('x')]) await refuses(inspect(value), /^inspect: a model is /);
  const circle = {};
  circle.self = circle;
  await refuses(inspect(circle), /cannot be written as JSON/);
  await refuses(inspect({ model_type: 'llama', rope_theta: NaN }), /rope_theta is NaN/);
  await refuses(tabulate({ scheme: 'rope', base: Infinity }, { count: 1 }), /base is Infinity/);
  await refuses(check(x, x, {}), /needs a scheme or a model, and not both/);
  await refuses(check(x, x, { scheme: rope, model: {} }), /not both/);
  await refuses(check(x, x, { scheme: rope, positon: [1] }), /there is no option positon/);
  await refuses(check(x, { data: noise(32), shape: [4, 8] }, { scheme: rope }), /check: /);
  await refuses(check({ data: noise(31), shape: [8, 4] }, x, { scheme: rope }), /before has shape \[8, 4\], which is 32 elements, but its data has 31/);
  await refuses(check({ data: noise(32), shape: [-8, -4] }, x, { scheme: rope }), /not negative/);
  await refuses(check({ data: noise(32), shape: [2.5, 4] }, x, { scheme: rope }), /shape of integers/);
  await refuses(check({ data: noise(32), shape: [2 ** 40, 2 ** 40] }, x, { scheme: rope }), /too many elements/);
  await refuses(check({ data: noise(1), shape: Array(9).fill(1) }, x, { scheme: rope }), /more than 8 axes/);
  await refuses(check({ data: [1, 2], shape: [2] }, x, { scheme: rope }), /not an array/);
  await refuses(check({ data: new Uint16Array(32), shape: [8, 4] }, x, { scheme: rope }), /dtype must be f16 or bf16/);
  await refuses(check({ data: noise(32).fill(NaN), shape: [8, 4] }, x, { scheme: rope }), /not finite/);
  await refuses(check(x, x, { scheme: rope, tolerance: NaN }), /tolerance must be finite/);
  await refuses(check(x, x, { scheme: rope, tolerance: -1 }), /tolerance/);
  await refuses(check(x, x, { scheme: rope, order: 'dsh' }), /order must be/);
  await refuses(diagnose(x, { data: noise(64), shape: [16, 4] }), /diagnose: /);
  await refuses(diagnose({ data: noise(32).fill(Infinity), shape: [8, 4] }, x), /not finite/);
  await refuses(diagnose(Buffer.from('not an array'), x), /byte 0/);
  await refuses(diagnose(npy(x).subarray(0, 150), npy(x)), /byte/);
  const result = await check(x, { data: rotated(x).data.fill(NaN, 5, 6), shape: [8, 4] }, { scheme: rope });
  assert.equal(result.agrees, false);
  for (const list of [[1.5], [NaN], ['1'], [2 ** 53], [-(2 ** 53)], [2n ** 53n], [Infinity], [{}], [null]]) {
    await refuses(tabulate(rope, { positions: list }), /positions must be integers below 2\^53 but number 0 is/);
  }
  await refuses(tabulate(rope, { positions: [] }), /empty/);
  await refuses(tabulate(rope, { positions: [[1, 2], [3]] }), /equal length/);
  await refuses(tabulate(rope, { positions: { data: [1, 2], shape: [3] } }), /have shape \[3\] and 2 elements/);
  await refuses(tabulate(rope, { positions: 'abc' }), /not a string/);
  await refuses(tabulate(rope, {}), /positions are missing/);
  await refuses(tabulate(rope, { first: 2 ** 53 - 2, count: 3 }), /below 2\^53/);
  await refuses(tabulate(rope, { count: 2, dtype: 'i64' }), /dtype must be/);
  await refuses(tabulate(rope, { count: 2, dtype: 'f8' }), /f8/);
  await refuses(tabulate(rope, { count: 2, queries: [1] }), /only biases take queries/);
  await refuses(tabulate('none', { count: 2 }), /has no table/);
  await refuses(tabulate({ scheme: 'rope', scaling: { type: 'dynamic' } }, { count: 2 }), /depends on the length/);
  await refuses(tabulate({ scheme: 'rope', dims: 16, sections: [4, 4] }, { count: 2 }), /2 axes, got 1/);
  await refuses(positions({}), /exactly one of/);
  await refuses(positions({ lengths: [1], grid: [1] }), /exactly one of/);
  for (const lengths of [5, 'abc', [-1], [1.5], [NaN], undefined, null]) await refuses(positions({ lengths }), /^positions: lengths must be/);
  await refuses(positions({ mask: [0, 2] }), /only 0 and 1/);
  await refuses(positions({ random: 5, below: 4 }), /random/);
  await refuses(positions({ spec: 'text:5 picture:2x2' }), /picture/);
  await refuses(positions({ lengths: [3], first: 2 ** 53 - 2 }), /below 2\^53/);
});

test('files that are cut or that claim too much are refused', async () => {
  const whole = readFileSync(fuzz('gguf_yarn'));
  for (let size = 4; size < whole.length; size += 7) await inspect(whole.subarray(0, size)).then(() => {}, (error) => assert.ok(error instanceof PosencError && error.message.length > 5, error.stack));
  await refuses(inspect(whole.subarray(0, 200)), /^byte \d+: /);
  for (const [at, what] of [[8, 'tensors'], [16, 'keys'], [24, 'a key']]) {
    const claims = Buffer.from(whole);
    claims.writeBigUInt64LE(200_000_000n, at);
    await refuses(inspect(claims), /^byte \d+: /, what);
    claims.writeBigUInt64LE(2n ** 63n, at);
    await refuses(inspect(claims), /^byte \d+: /, what);
  }
  await refuses(inspect('['.repeat(100_000)), /line 1, column/);
  await refuses(inspect(' '.repeat(17_000_000)), /16,?000,?000|long/);
  const npyClaims = npy({ data: noise(4), shape: [50_000_000] });
  await refuses(diagnose(npyClaims, npyClaims), /byte/);
});

test('what does not fit in memory is refused by its size', async () => {
  const large = { data: new Float32Array(2 ** 28), shape: [2 ** 20, 2 ** 8] };  // 1 GiB, never touched
  await refuses(check(large, large, { scheme: { scheme: 'rope', dims: 256 } }), /needs 1073741824 bytes of input; the limit is 536870912/);
  await refuses(inspect(new Uint8Array(2 ** 31 + 8)), /needs 2147483656 bytes of input/);
  await refuses(tabulate({ scheme: 'rope', dims: 4096 }, { count: 2 ** 20 }), /a table has 1 to 67108864 numbers/);
  await refuses(tabulate({ scheme: 'alibi', heads: 65535 }, { queries: [0], keys: Array.from({ length: 5000 }, (_, i) => i) }), /67108864/);
  await refuses(positions({ lengths: [2 ** 52, 2 ** 52] }), /more than 16777216 positions/);
  await refuses(positions({ grid: [2 ** 30, 2 ** 30, 2 ** 30] }), /more than 16777216 positions/);
  await refuses(positions({ spec: 'text:999999999999' }), /more than 16777216 positions/);
  await refuses(positions({ random: 2 ** 40, below: 2 ** 41 }), /more than 16777216 positions/);
  // what just fits
  await refuses(inspect(new Uint8Array(2 ** 29)), /^(?!inspect: needs).*text is/);
  assert.equal((await positions({ lengths: [2 ** 24] })).data[2 ** 24 - 1], 2 ** 24 - 1);
  await refuses(positions({ lengths: [2 ** 24 + 1] }), /more than 16777216 positions/);
  await refuses(positions({ random: 3, below: 2 ** 53 + 2 }), /below|2\^53/);
  assert.equal((await tabulate('rope', { count: 1 })).kind, 'rotation');
});

test('the core can be given', async () => {
  const bytes = readFileSync(join(installed, 'dist/posenc.wasm.gz'));
  await init();
  await init(bytes);
  await init(Promise.resolve(new Response(bytes)));
  const plain = new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer());
  await init(plain);
  await init(await WebAssembly.compile(plain));
  assert.equal((await tabulate('rope', { count: 1 })).kind, 'rotation');
  await refuses(init(new Uint8Array(8)), /not the core of posenc/);
  await refuses(init(bytes.subarray(0, 1000)), /not the core of posenc/);
  await refuses(init(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)), /not the core of posenc/);  // an empty module
  await refuses(init(new Response('', { status: 404 })), /status 404/);
  await refuses(init(42), /expected bytes, a Response or a WebAssembly.Module/);
  assert.equal((await tabulate('rope', { count: 1 })).kind, 'rotation');  // the one that works stays
  assert.match(readFileSync(join(SOURCE, 'include/posenc/version.h'), 'utf8'), new RegExp(`"${version.replaceAll('.', '\\.')}"`));
});
