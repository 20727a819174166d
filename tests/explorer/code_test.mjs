// The code beside each figure gives the numbers of the figure: numpy, torch where it is installed, and C++.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { WEB, contextOf, go, open, pages, places, setUp, tearDown, whole } from './site.mjs';

const { BUILD, CXX, LIBRARY, PYTHON, SOURCE } = process.env;
const figures = [];
let codeOf;

before(async () => {
  const esbuild = createRequire(join(WEB, 'package.json'))('esbuild');
  const made = esbuild.buildSync({ entryPoints: [join(SOURCE, 'explorer/src/figure_code.ts')], bundle: true, write: false, format: 'esm' }).outputFiles[0].text;
  ({ codeOf } = await import(`data:text/javascript,${encodeURIComponent(made)}`));
  await setUp();
  const page = await open(await contextOf(), places.program);
  const views = pages.map((id) => `p=${id}`).concat(Array.from({ length: 8 }, (_, i) => `p=invent&step=${i + 1}`), ['p=waves&lay=sin-cos&d=16', 'p=waves&s=rope&d=16', 'p=phasors&s=rope']);
  for (const view of views) {
    await go(page, `#v=1&${view}`);
    await whole(page, /p=(\w+)/.exec(view)[1]);
    for (const text of await page.evaluate(() => [...document.querySelectorAll('pe-figure')].map((one) => JSON.stringify({ request: one.question(), numbers: one.numbers().slice(1) })))) {
      const { request, numbers } = JSON.parse(text);
      if (request.kind && !figures.some((one) => JSON.stringify(one.request) === JSON.stringify(request))) figures.push({ name: `${view}: ${JSON.stringify(request)}`, request, numbers });
    }
  }
});
after(tearDown);

// Sorted numbers and a search: whether one of them is close.
function finder(list) {
  const sorted = Float64Array.from(list.filter((one) => Number.isFinite(one))).sort();
  return (value, bound) => {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value - bound) low = middle + 1;
      else high = middle;
    }
    return low < sorted.length && sorted[low] <= value + bound;
  };
}
const bound = (value) => 2e-9 * Math.max(1, Math.abs(value));

// What is drawn of a formula's numbers: of waves the whole positions, of clocks the tips of the hands, of scalings two methods.
const drawn = {
  waves: ({ numbers }) => numbers.filter(([, series, x]) => series === '' && Number.isInteger(x)).map((row) => row[3]),
  phasors: ({ numbers, request: { at, key, shift } }) => numbers.filter(([, series, x, y]) => /^(query at |key at )?position/.test(series) && Math.abs(Math.hypot(x, y) - 1) < 1e-9 && [at, key, at + (shift ?? 0)].some((one) => series.endsWith(String(one)))).map((row) => row[3]),
  fingerprint: ({ numbers, request }) => numbers.filter(([panel]) => panel === `Values at position ${request.at}`).map((row) => row[3]),
  scaling: ({ numbers }) => numbers.filter(([panel, series]) => series === 'linear' || series === 'ntk' || /Wavelength/.test(panel)).map((row) => row[3]),
  decay: ({ numbers, request }) => numbers.filter(([, series]) => series.startsWith(request.schemes[0].scheme)).map((row) => row[3]),
};
const wanted = (one) => (drawn[one.request.kind] ?? (({ numbers }) => numbers.map((row) => row[3])))(one).filter((value) => typeof value === 'number' && Number.isFinite(value));

function inPython(language, have) {
  const asked = figures.map((one) => codeOf(one.request).find((code) => code.language === language)?.text);
  const program = `import json, math\nfor text in json.loads(${JSON.stringify(JSON.stringify(asked))}):\n    if text is None:\n        print("null")\n        continue\n    names = {}\n    exec(text, names)\n    print(json.dumps([float(v) for v in names["y"].reshape(-1)]))\n`;
  writeFileSync(join(places.scratch, `${language}.py`), program);
  const lines = execFileSync(PYTHON, [join(places.scratch, `${language}.py`)], { encoding: 'utf8', maxBuffer: 1 << 28 }).trim().split('\n');
  assert.equal(lines.length, figures.length);
  let compared = 0;
  figures.forEach((one, i) => {
    const numbers = JSON.parse(lines[i]);
    if (!numbers) return;
    const known = finder(numbers), list = wanted(one);
    assert.ok(list.length > 2, `${one.name}: nothing to compare`);
    for (const value of list) assert.ok(known(value, bound(value)), `${language}, ${one.name}: ${value} is drawn and not in\n${asked[i]}`);
    ++compared;
  });
  assert.ok(compared >= have, `${compared} figures`);
  return compared;
}

const has = (module) => spawnSync(PYTHON, ['-c', `import ${module}`]).status === 0;
for (const [language, module] of [['numpy', 'numpy'], ['torch', 'torch']]) {
  test(`${language} gives the numbers of every figure that has it`, (t) => {
    if (!has(module)) return t.skip(`${module} is not installed`);
    t.diagnostic(`${inPython(language, 12)} of ${figures.length} figures`);
  });
}

test('C++ gives the numbers of every figure', (t) => {
  const asked = figures.map((one) => codeOf(one.request).find((code) => code.language === 'C++')?.text), native = asked.flatMap((text, i) => (text ? [i] : []));
  // each main() becomes a function of one program
  const body = native.map((i) => asked[i].replace(/#include.*\n/g, '').replace('int main()', `void figure_${i}()`)).join('\n');
  const source = `#include <posenc/aliases.h>\n#include <posenc/figures.h>\n\n#include <cstdio>\n${body}\nint main() {\n${native.map((i) => `  std::printf("# ${i}\\n"); figure_${i}();`).join('\n')}\n}\n`;
  const [file, program] = [join(places.scratch, 'figures.cpp'), join(places.scratch, 'figures')];
  writeFileSync(file, source);
  // what posenc.pc says that a program links
  const needs = /^Requires: (.*)$/m.exec(readFileSync(join(BUILD, 'posenc.pc'), 'utf8'))[1].split(/,\s*/).map((one) => one.split(' ')[0]);
  const flags = execFileSync('pkg-config', ['--libs', ...needs], { encoding: 'utf8' }).trim().split(/\s+/);
  execFileSync(CXX, ['-std=c++20', `-I${SOURCE}/include`, file, LIBRARY, ...flags, '-ldl', '-pthread', '-o', program]);
  const parts = execFileSync(program, { encoding: 'utf8', maxBuffer: 1 << 28 }).split(/^# (\d+)\n/m).slice(1);
  for (let k = 0; k < parts.length; k += 2) {
    const one = figures[Number(parts[k])], printed = parts[k + 1].trim().split('\n').filter(Boolean).map((row) => Number(row.split(' ').at(-1)));
    const known = finder(printed), list = one.numbers.filter(([, series]) => !/ (lowest|highest)$/.test(series)).map((row) => row[3]).filter((value) => typeof value === 'number' && Number.isFinite(value));
    assert.ok(list.length > 5, one.name);
    for (const value of list) assert.ok(known(value, 1e-14 * Math.max(1, Math.abs(value))), `${one.name}: ${value}`);
  }
  assert.ok(native.length >= 25, String(native.length));
  t.diagnostic(`${native.length} of ${figures.length} figures`);
});
