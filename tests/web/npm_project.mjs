// What the tests of the npm package share: the package, packed and installed into an empty project, and the program.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/// SOURCE: the tree. PACKAGE: the folder of the npm package. POSENC: the program.
export const { SOURCE, PACKAGE, POSENC, WEB } = process.env;
export const folder = mkdtempSync(join(tmpdir(), 'posenc-npm-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/// Packs as packaging/npm/build.sh does.
export function pack(out, environment = {}) {
  const script = 'set -euo pipefail; root=$1; source "$root/packaging/archive.sh"; pack_npm "$2" "$3"';
  return execFileSync('bash', ['-c', script, 'bash', SOURCE, PACKAGE, out], { encoding: 'utf8', env: { ...process.env, ...environment } }).trim();
}

/// An empty project into which the package is installed, without asking a registry.
export const archive = pack(join(folder, 'archives'));
export const project = join(folder, 'project');
mkdirSync(project);
writeFileSync(join(project, 'package.json'), '{"name":"empty","private":true,"type":"module"}');
execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error', archive], { cwd: project, stdio: ['ignore', 'ignore', 'inherit'] });
export const installed = join(project, 'node_modules/posenc');
export const posenc = await import(pathToFileURL(createRequire(join(project, 'package.json')).resolve('posenc')));

/// What the program prints; with a status that is not expected, what it said.
export function program(words, statuses = [0]) {
  const done = spawnSync(POSENC, words, { encoding: 'utf8', maxBuffer: 1 << 28 });
  assert.ok(statuses.includes(done.status), `posenc ${words.join(' ')}: ${done.stderr}`);
  return done.stdout;
}
export const refusal = (words) => {
  const done = spawnSync(POSENC, words, { encoding: 'utf8' });
  assert.notEqual(done.status, 0, `posenc ${words.join(' ')} was not refused`);
  return done.stderr;
};

let files = 0;
export function file(bytes, ending = '') {
  const path = join(folder, `file-${++files}${ending}`);
  writeFileSync(path, bytes);
  return path;
}

/// A .npy file of version 1.0.
export function npy({ data, shape }) {
  const code = { Float32Array: '<f4', Float64Array: '<f8', BigInt64Array: '<i8' }[data.constructor.name];
  const text = `{'descr': '${code}', 'fortran_order': False, 'shape': (${shape.join(', ')}${shape.length === 1 ? ',' : ''}), }`;
  const head = `${text.padEnd(128 - 10 - 1)}\n`;
  const start = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, head.length & 255, head.length >> 8]);
  return Buffer.concat([start, Buffer.from(head), Buffer.from(data.buffer, data.byteOffset, data.byteLength)]);
}
/// The data of a .npy file.
export function dataOf(path) {
  const bytes = readFileSync(path);
  return bytes.subarray(10 + bytes.readUInt16LE(8));
}

/// The same numbers every time.
export function noise(count, seed = 1) {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}

/// Rotated in float64 by halves or interleaved, and rounded: an implementation of its own.
export function rotated({ data, shape }, { base = 10000, first = 0, layout = 'halves' } = {}) {
  const features = shape.at(-1), sequence = shape.at(-2), out = new Float32Array(data.length);
  for (let row = 0; row < data.length / features; ++row) {
    for (let pair = 0; pair < features / 2; ++pair) {
      const angle = (first + (row % sequence)) * base ** (-2 * pair / features);
      const a = row * features + (layout === 'halves' ? pair : 2 * pair), b = layout === 'halves' ? a + features / 2 : a + 1;
      out[a] = data[a] * Math.cos(angle) - data[b] * Math.sin(angle);
      out[b] = data[a] * Math.sin(angle) + data[b] * Math.cos(angle);
    }
  }
  return { data: out, shape };
}
