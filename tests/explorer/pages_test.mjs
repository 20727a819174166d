// What each page is for, done by keyboard, with the numbers that the program prints; links, exports, keys, paper.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { complaints, contextOf, go, open, pages, places, posenc, sameAsTheProgram, setUp, settled, shownPage, tearDown, whole } from './site.mjs';

let context, page;
before(async () => {
  await setUp();
  context = await contextOf({ permissions: ['clipboard-read', 'clipboard-write'], acceptDownloads: true });
  page = await open(context, places.program);
});
after(async () => {
  await tearDown();
  assert.deepEqual(complaints, []);
});

const figure = (index = 0) => page.locator('pe-figure').nth(index);
const press = async (locator, ...keys) => {
  await locator.focus();
  for (const key of keys) await page.keyboard.press(key);
  await settled(page);
};
const field = (name) => page.getByRole('textbox', { name, exact: true });
const textOf = (selector) => page.locator(selector).first().textContent();
const until = (pattern, selector) => page.waitForFunction(([source, where]) => new RegExp(source).test(document.querySelector(where)?.textContent ?? ''), [pattern.source, selector]);
const matrices = (story) => page.evaluate((name) => [...document.querySelectorAll('pe-story')].find((one) => one.story?.story === name).matrices(), story);

// --- each page's main interaction, by keyboard ------------------------------------------------------------------

const interactions = {
  async start() {
    await press(figure().locator('.surface'), 'ArrowDown');
    assert.match(await textOf('#live'), /m = 38/);
    await sameAsTheProgram(figure());
    await press(page.getByRole('link', { name: 'What is in my model?' }), 'Enter');
    await page.waitForSelector('#config-file');
    // a poster: a dial for every pair, and as many that never complete a turn as the program's frequencies say
    await press(page.getByRole('button', { name: 'Llama 3.1 8B' }), 'Enter');
    await until(/llama/, '.result');
    const config = join(places.scratch, 'llama.json');
    writeFileSync(config, JSON.stringify(JSON.parse(readFileSync(new URL('../../explorer/src/data/models.json', import.meta.url), 'utf8')).find((one) => one.name === 'Llama 3.1 8B').config));
    const llama = JSON.parse(posenc(`posenc inspect ${config} --json`)), paces = llama.layers[0].frequencies;
    const slow = paces.filter((pace) => pace * llama.trained_length < 2 * Math.PI).length;
    assert.deepEqual([await page.locator('.poster .dial').count(), await page.locator('.poster .cut').count()], [paces.length, slow]);
    assert.match(await page.locator('.poster').getAttribute('aria-label'), new RegExp(`^Llama 3.1 8B: ${paces.length} clocks, .* ${slow} of its`));
    await page.waitForFunction(() => /mine=Llama/.test(location.hash));
    const [picture] = await Promise.all([page.waitForEvent('download'), page.locator('.poster-box').getByRole('button', { name: 'SVG' }).click()]);
    assert.match(readFileSync(await picture.path(), 'utf8'), /^<svg .*Llama 3\.1 8B.*<\/svg>$/s);
    await press(page.getByRole('button', { name: 'GPT-2' }), 'Enter');
    await until(/gpt2/, '.result');
    assert.equal(await page.locator('.poster').count(), 0);
    assert.match(await textOf('.result'), /Trained on 1,024 positions\. *\n*A trained table: 1,024 rows of 768/);
    await page.locator('#model-name').focus();
    await page.keyboard.type('deepseek v3');
    await page.keyboard.press('Enter');
    await until(/DeepSeek-V3: deepseek_v3/, '.result');
    await page.locator('#model-name').fill('nobody 7B');
    await page.keyboard.press('Enter');
    await until(/nobody 7B: not among the 14 models/, '.result');
  },
  async order() {
    await press(page.locator('.word').first(), 'Alt+ArrowRight');
    await until(/bites dog man/, 'pe-story .command code');
    const printed = JSON.parse(posenc('posenc explain dog-bites-man --text "bites dog man" --json'));
    const want = printed.steps.flatMap((step) => step.blocks).filter((block) => block.kind === 'matrix');
    const have = await matrices('dog-bites-man');
    assert.ok(want.length > 3);
    assert.deepEqual(have.map((one) => one.values), want.map((one) => one.values));
    assert.match(await textOf('pe-story >> nth=1'), /Line 4/);
    // without position order is lost; a scheme, and a causal mask alone, bring it back
    const measured = (scheme, property) => JSON.parse(posenc(`posenc prove ${scheme} --length 64 --json`)).schemes[0].findings.find((one) => one.property === property);
    const meter = async () => Number((await textOf('.meter-number')).replace('−', '-'));
    assert.ok(await meter() < 1e-9 && measured('none', 'sees-order').outcome === 'fails');
    await until(/Order is lost/, '.meter');
    await press(page.getByLabel('Causal mask', { exact: true }), 'Space');
    await until(/Order matters/, '.meter');
    assert.ok(Math.abs(await meter() / measured('none', 'sees-order-causal').measured - 1) < 0.01);
    await press(page.getByLabel('Causal mask', { exact: true }), 'Space');
    await page.getByLabel('Position', { exact: true }).selectOption('alibi');
    await until(/prove alibi/, '.meter + .command code');
    assert.ok(Math.abs(await meter() / measured('alibi', 'sees-order').measured - 1) < 0.01);
  },
  async waves() {
    const before = (await sameAsTheProgram(figure())).numbers;
    await press(field('Base'), 'PageUp');
    const after = await sameAsTheProgram(figure());
    assert.match(after.command, /--base 20000/);
    assert.notDeepEqual(after.numbers, before);
    await sameAsTheProgram(figure(1));
    await page.getByLabel('Layout', { exact: true }).selectOption('sin-cos');
    await settled(page);
    assert.match((await sameAsTheProgram(figure(1))).command, /--layout sin-cos/);
    assert.equal(await page.locator('#page-waves .maths:visible').count(), 1);
    await page.getByLabel('Scheme', { exact: true }).selectOption('steps');
    assert.equal(await page.locator('#page-waves .maths:visible math').count(), 1);  // its own formula, and no wavelength
    await until(/nearly the same code/, '#page-waves section:last-of-type > .note');
  },
  async phasors() {
    await press(field('Shift k'), 'ArrowUp');
    assert.match((await sameAsTheProgram(figure())).command, /--shift 4/);
    // R(k) stays put when m moves, and carries each position to the one k later
    const matrix = await sameAsTheProgram(figure(1));
    assert.match(matrix.command, /plot rotation sinusoidal --width 16 .* --shift 4/);
    await press(field('Position m'), 'PageUp');
    const elsewhere = await sameAsTheProgram(figure(1));
    assert.notEqual(elsewhere.command, matrix.command);
    assert.deepEqual(elsewhere.numbers, matrix.numbers);
    assert.ok(Number(/at most ([\d.e+-]*\d)/.exec(await figure(1).locator('.note').textContent())[1]) < 1e-14);
    await press(field('Shift k'), 'ArrowUp');
    assert.notDeepEqual((await sameAsTheProgram(figure(1))).numbers, matrix.numbers);
    await page.getByLabel('Pairs', { exact: true }).selectOption('apart');
    await settled(page);
    assert.match((await sameAsTheProgram(figure(1))).command, /--layout sin-cos/);
    // RoPE: a query at m, a key at n, and the score between them
    await page.getByLabel('Scheme', { exact: true }).selectOption('rope');
    await settled(page);
    const score = async () => Number(/hands, ([\d.e+-]*\d);/.exec(await figure().locator('.note').textContent())[1]);
    assert.match((await sameAsTheProgram(figure())).command, /plot phasors rope --dims 16 .* --at 74 --key 12$/);
    const mean = (distance) => Array.from({ length: 8 }, (_, i) => Math.cos(distance * 10000 ** (-i / 8))).reduce((sum, one) => sum + one) / 8;
    assert.ok(Math.abs(await score() - mean(62)) < 1e-6);
    await press(field('Position m (query)'), 'ArrowUp');
    assert.ok(Math.abs(await score() - mean(63)) < 1e-6);
    await press(field('Position n (key)'), 'ArrowUp');
    assert.ok(Math.abs(await score() - mean(62)) < 1e-6, 'it depends only on the distance');
    await press(page.getByRole('button', { name: 'Spin' }), 'Enter');
    await page.waitForFunction(() => [...document.querySelectorAll('main .control')].some((one) => /query/.test(one.textContent) && Number(one.querySelector('input').value) > 77));
    await press(page.getByRole('button', { name: 'Stop' }), 'Enter');
  },
  async distance() {
    const spread = async () => Number(/at most ([\d.e+-]*\d)/.exec(await figure().locator('.note').textContent())[1]);
    await sameAsTheProgram(figure());
    assert.ok(await spread() < 1e-9);
    // the map is constant along its diagonals
    const { numbers: map } = await sameAsTheProgram(figure(1)), side = Math.sqrt(map.length);
    const uneven = () => Math.max(...map.map((value, i) => (i % side && i >= side ? Math.abs(value - map[i - side - 1]) : 0)));
    assert.equal(side, 24);
    assert.ok(uneven() < 1e-12, String(uneven()));
    // the closed form: a sum of cosines, and the measured products within an ulp or two
    const lines = await page.locator('table.numbers tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => Number(cell.textContent))));
    for (const [distance, least, most, closed, ulps] of lines) {
      const sum = Array.from({ length: 32 }, (_, i) => Math.cos(distance * 10000 ** (-i / 32))).reduce((total, one) => total + one);
      for (const value of [least, most, closed]) assert.ok(Math.abs(value - sum) < 1e-6, `${distance}: ${value}`);
      assert.ok(ulps <= 8, String(ulps));
    }
    assert.equal(lines.length, 12);
    await page.getByLabel('Vectors rounded to', { exact: true }).selectOption('f16');
    await settled(page);
    assert.match((await sameAsTheProgram(figure())).command, /--dtype f16/);
    assert.ok(await spread() > 1e-5);
    await page.getByLabel('Vectors rounded to', { exact: true }).selectOption('f64');
    await page.getByLabel('Scheme', { exact: true }).selectOption('learned');
    await settled(page);
    await sameAsTheProgram(figure());
    assert.ok(await spread() > 0.5);
    map.splice(0, map.length, ...(await sameAsTheProgram(figure(1))).numbers);
    assert.ok(uneven() > 0.1);
    await page.getByLabel('Scheme', { exact: true }).selectOption('shift');
    await settled(page);
    await sameAsTheProgram(figure());
    assert.ok(await spread() > 1e-6);
  },
  async frank() {
    const cell = page.getByRole('button', { name: /^K' Frank knows-upscale/ });
    await press(cell, 'Enter');
    await until(/1\.86205/, 'pe-story');
    assert.match(posenc('posenc explain frank-and-alex --cell "K\' Frank knows-upscale"'), /= 1\.862\n/);
    const printed = JSON.parse(posenc('posenc explain frank-and-alex --json')).steps.flatMap((step) => step.blocks).find((block) => block.name === 'D').values;
    const bars = await page.locator('.pipeline .amount').allTextContents();
    assert.deepEqual(bars, printed.flat().map((value) => value.toFixed(3)));
    await press(page.locator('.pipeline button').nth(1), 'Enter');
    assert.match(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), /^Q' Frank/);
    // another order of seats
    await press(page.locator('.word').first(), 'Alt+ArrowRight');
    await until(/--text "Emma Frank Daniel Alex"/, 'pe-story .command code');
    const moved = JSON.parse(posenc('posenc explain frank-and-alex --text "Emma Frank Daniel Alex" --json')).steps.flatMap((step) => step.blocks).filter((block) => block.kind === 'matrix');
    assert.deepEqual((await matrices('frank-and-alex')).map((one) => one.values), moved.map((one) => one.values));
    assert.deepEqual(await page.locator('.pipeline .amount').allTextContents(), moved.find((block) => block.name === 'D').values.flat().map((value) => value.toFixed(3)));
    await press(cell, 'ArrowDown');
    assert.notEqual(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), await cell.getAttribute('aria-label'));
    // the three requirements on P, as in the story and the question, and a wish: which of them fail, and the program's own words
    const names = { unique: 'unique', consistent: 'consistent', 'any-length': 'any length', 'dot-by-distance': 'distances' };
    const checked = async () => {
      await settled(page);
      const { findings } = JSON.parse(posenc(`${await page.locator('code', { hasText: 'posenc prove' }).textContent()} --json`)).schemes[0];
      const found = Object.keys(names).map((name) => findings.find((one) => one.property === name));
      const lines = page.locator('.requirements li');
      assert.deepEqual(await lines.evaluateAll((all) => all.map((one) => one.dataset.outcome)), found.map((one) => one.outcome));
      const texts = await lines.allTextContents();
      found.forEach((one, i) => assert.ok(texts[i].includes(one.meaning.replace('ω_i', 'ωi').replace('2^53', '253')), `${texts[i]} / ${one.meaning}`));
      const failed = found.filter((one) => one.outcome === 'fails').map((one) => one.property);
      assert.equal(await page.locator('.requirements + .verdict').textContent(), failed.length ? `Fails: ${failed.map((one) => names[one]).join(' and ')}.` : 'All of them hold.');
      return { failed, texts };
    };
    const rows = page.getByLabel('Rows of P', { exact: true });
    for (const [kind, fails] of Object.entries({ steps: ['dot-by-distance'], shift: ['dot-by-distance'], constant: ['unique'], learned: ['any-length', 'dot-by-distance'], sinusoidal: [] })) {
      await rows.selectOption(kind);
      assert.deepEqual((await checked()).failed, fails, kind);
    }
    const six = (await checked()).texts[0];
    await press(field('Width d'), 'ArrowDown');
    const four = (await checked()).texts[0];
    await press(field('Base'), 'PageDown');
    assert.equal(new Set([six, four, (await checked()).texts[0]]).size, 3);
    // the example with that d and base, then concatenated: every number as the program prints it
    const told = async (flags) => {
      await until(new RegExp(` Alex"${flags}$`), 'pe-story .command code');
      const want = JSON.parse(posenc(`${await textOf('pe-story .command code')} --json`)).steps.flatMap((step) => step.blocks).filter((block) => block.kind === 'matrix');
      const have = await matrices('frank-and-alex');
      assert.deepEqual(have.map((one) => [one.name, one.columns, one.values]), want.map((one) => [one.name, one.columns, one.values]));
      assert.deepEqual(await page.locator('.pipeline .amount').allTextContents(), want.find((one) => one.name === 'D').values.flat().map((value) => value.toFixed(3)));
      return Object.fromEntries(have.map((one) => [one.name, one]));
    };
    const sum = await told(' --base 5000 --width 4');
    await page.getByLabel('P is', { exact: true }).selectOption('concatenated');
    const both = await told(' --base 5000 --width 4 --concatenate');
    assert.deepEqual([sum, both].map((one) => one["X'"].columns.length), [4, 8]);
    sum["Q'"].values.flat().forEach((value, i) => assert.ok(Math.abs(value - both["Q'"].values.flat()[i]) < 1e-12));
    await press(page.getByRole('button', { name: /^Q' Frank upscale/ }), 'Enter');
    await until(/ --concatenate --cell /, '.opened code');
    const opened = await textOf('.opened:has(code)');
    assert.equal(opened.split(' × ').length - 1, 8);
    assert.match(posenc(`${await textOf('.opened code')}`), new RegExp(`= ${both["Q'"].values[1][1].toFixed(3)}\n`));
    await press(field('Base'), 'PageUp');
    await press(field('Width d'), 'ArrowUp');
    assert.notDeepEqual((await told(' --concatenate'))["Q'"].values, both["Q'"].values);
  },
  async schemes() {
    await page.waitForSelector('#page-schemes[data-done=yes]', { timeout: 60_000 });
    const rows = await page.locator('table.schemes tbody tr').evaluateAll((lines) => Object.fromEntries(lines.map((line) => [line.querySelector('th').firstChild.textContent, [...line.querySelectorAll('.mark')].map((mark) => mark.className.split(' ')[1])])));
    const printed = JSON.parse(posenc(`${await textOf('#page-schemes .command code')} --json`));
    for (const one of printed.schemes ?? printed) {
      const name = one.scheme.scheme ?? one.scheme;
      assert.deepEqual(rows[name], (one.findings ?? one.properties).map((finding) => finding.outcome), name);
    }
    const costs = await page.locator('table.schemes tbody tr').evaluateAll((lines) => Object.fromEntries(lines.map((line) => [line.querySelector('th').firstChild.textContent, line.querySelector('td:nth-last-child(2)').textContent])));
    for (const scheme of ['rope --dims 64', 'sinusoidal --width 64', 'alibi', 't5', 'shaw', 'fire']) {
      const { cost_per_token: cost } = JSON.parse(posenc(`posenc prove ${scheme} --length 64 --json`)).schemes[0];
      assert.equal(costs[scheme.split(' ')[0]], cost.operations.toLocaleString('en'), scheme);
    }
    const first = () => textOf('table.schemes tbody th');
    const before = await first();
    await press(page.getByLabel('Order', { exact: true }), 'ArrowDown', 'ArrowDown');
    assert.notEqual(await first(), before);
    await page.locator('.picker summary').focus();
    await page.keyboard.press('Enter');
    const titles = () => page.locator('table.schemes thead th').allTextContents();
    const all = await titles();
    await press(page.getByLabel('Decay', { exact: true }), 'Space');
    assert.deepEqual(await titles(), all.filter((title) => title !== 'Decay'));
    assert.ok(await page.locator('table.schemes canvas.mini').count() >= 10);
    await page.getByLabel('Order', { exact: true }).selectOption('lab');
    // the lab's order, from the smallest loss of quality to the largest
    const ratios = (await page.locator('table.schemes tbody td:last-child').allTextContents()).map((words) => Number(/× ([\d.]+)/.exec(words)?.[1] ?? Infinity));
    assert.ok(ratios.filter(Number.isFinite).length >= 6);
    assert.deepEqual(ratios, [...ratios].sort((a, b) => a - b));
  },
  async decay() {
    await press(page.getByLabel('Sinusoidal', { exact: true }), 'Space');
    assert.match((await sameAsTheProgram(figure())).command, /sinusoidal/);
    await press(page.getByLabel('Bound of RoPE', { exact: true }), 'Space');
    assert.match((await sameAsTheProgram(figure())).command, /--bound/);
    await press(page.getByLabel('Bound of RoPE', { exact: true }), 'Space');
    await page.getByLabel('Bias', { exact: true }).selectOption('t5');
    await settled(page);
    assert.match((await sameAsTheProgram(figure(2))).command, /plot bias t5/);
    assert.match((await sameAsTheProgram(figure(1))).command, /plot phasors rope .* --at 37/);
    await page.getByLabel('Axes', { exact: true }).selectOption('both');
    await page.getByLabel('Head', { exact: true }).selectOption('5');
    await settled(page);
    assert.match((await sameAsTheProgram(figure())).command, /alibi --heads 8 --zoom 0:257 --head 5 --log-x --log-y$/);
    assert.ok(/H[\d.]+V/.test(await figure(2).locator('path.stroke').last().getAttribute('d')), 'a staircase is drawn');
  },
  async context() {
    await press(field('Times longer'), 'PageUp');
    assert.match((await sameAsTheProgram(figure())).command, /--factor 16/);
    // a model's own setting beside the others: the same method is the same line
    await page.getByLabel('Model', { exact: true }).selectOption('Llama 3.1 8B');
    await until(/--compare --trained 8192 --factor 8$/, 'pe-figure .command code');
    await settled(page);
    await sameAsTheProgram(figure());
    const ratios = (await figure().evaluate((one) => one.numbers())).filter(([panel]) => /relative to the given/.test(panel));
    assert.ok(ratios.length > 5 * 60);
    assert.ok(ratios.filter(([, name]) => name === 'llama3').every(([, , , y]) => y === 1));
    assert.ok(ratios.some(([, name, , y]) => name === 'yarn' && Math.abs(y - 1) > 0.05));
    await page.getByLabel('Model', { exact: true }).selectOption('Phi-3.5 mini');
    await until(/longrope.*--compare --trained 4096 --factor 32$/, 'pe-figure .command code');
    await settled(page);
    assert.match(await figure().textContent(), /given: longrope/);
    await sameAsTheProgram(figure());
    await press(field('Pair i'), 'ArrowUp');
    await until(/^Pair 1: wavelength .* with the model's own setting/, '#page-context section .note[role=status]');
    await page.getByLabel('Model', { exact: true }).selectOption('');
    await press(field('Times longer'), 'Control+End', 'PageDown', 'PageDown');
    await press(page.getByLabel('Method', { exact: true }), 'ArrowDown');
    await until(/"rope_type": "llama3"/, '#page-context pre');
    await until(/Read back.*llama3.*16/, '#page-context section:nth-of-type(3) .note[role=status]');
    const config = join(places.scratch, 'config.json');
    writeFileSync(config, '{"model_type":"llama","hidden_size":64,"num_attention_heads":2,"num_hidden_layers":3,"rope_theta":1234.5,"max_position_embeddings":77}');
    await page.locator('#config-file').setInputFiles(config);
    await until(/1,234\.5/, '.result');
    const printed = JSON.parse(posenc(`posenc inspect ${config} --json`));
    assert.match(await textOf('.result'), new RegExp(`Trained on ${printed.trained_length} positions`));
  },
  async exact() {
    await press(field('Last position'), 'PageDown');
    assert.match((await sameAsTheProgram(figure())).command, /--zoom 1:500000/);
  },
  async check() {
    await press(page.locator('#try-example'), 'Enter');
    await until(/Sure: one convention/, '.result');
    const [before, after] = ['before.npy', 'after.npy'].map((name) => join(places.scratch, name));
    posenc(`posenc table sinusoidal --width 32 --positions 7:39 --dtype f32 -o ${before} --quiet`);
    posenc(`posenc apply rope ${before} -o ${after} --base 777 --quiet`);
    await page.locator('#npy-0').setInputFiles(before);
    await page.locator('#npy-1').setInputFiles(after);
    await until(/777/, '.result');
    const printed = JSON.parse(posenc(`posenc diagnose --before ${before} --after ${after} --json`));
    assert.equal(printed.verdict, 'sure');
    assert.match(await textOf('.result h3'), /^Sure/);
    assert.match(await textOf('.result'), /RoPE: 16 pairs in each head \(halves: features i and i \+ 16\), base 777/);
  },
  async practice() {
    await press(page.getByRole('button', { name: 'Show answer' }), 'Enter');
    const answer = await textOf('.exercise .verdict strong');
    await page.locator('#answer').focus();
    await page.keyboard.type(answer);
    await page.keyboard.press('Enter');
    await until(/Right/, '.exercise .verdict');
    // rows of the table, number by number: a usual mistake is named, and all right numbers open the question
    await page.getByLabel('d0 = sin(1 / 1)').fill('0.017');
    await page.keyboard.press('Tab');
    await until(/degrees/, '.walkthrough .control');
    for (const p of [1, 2]) {
      for (const [d, value] of [Math.sin(p), Math.cos(p), Math.sin(p / 100), Math.cos(p / 100)].entries()) {
        await page.locator(`#blank-${p - 1}-${d}`).fill(value.toFixed(3));
        await page.keyboard.press('Tab');
      }
    }
    await until(/PE\(2\) = /, '.walkthrough div:nth-of-type(2) > .note');
    await press(page.locator('.walkthrough .after button').first(), 'Enter');
    await until(/./, '.walkthrough .after .verdict');
    // the proof: each line is brought to its place with the arrow keys
    const proof = posenc('posenc explain permutation-proof --json'), right = JSON.parse(proof).steps.map((step) => /^Line \d+: (.*)/.exec(step.heading)?.[1]).filter(Boolean);
    for (let place = 0; place < right.length; ++place) {
      const now = await page.locator('.ordering .line').allTextContents();
      await press(page.locator('.ordering .line').nth(now.indexOf(right[place])), ...Array(now.indexOf(right[place]) - place).fill('ArrowUp'));
    }
    await press(page.locator('#check-order'), 'Enter');
    await until(/✓ Right/, '#page-practice section:nth-of-type(3) .verdict');
    await press(page.locator('.ordering .line').first(), 'ArrowDown');
    await press(page.locator('#check-order'), 'Enter');
    await until(/Not yet: 2 of 4/, '#page-practice section:nth-of-type(3) .verdict');
    await press(page.locator('.flash-card'), 'Space');
    assert.equal(await page.locator('.flash-card .back').isVisible(), true);
    const front = await textOf('.flash-card .front');
    await page.keyboard.press('4');
    await page.waitForFunction((text) => document.querySelector('.flash-card .front')?.innerText !== text, front);
    const [deck] = await Promise.all([page.waitForEvent('download'), press(page.locator('#anki'), 'Enter')]);
    assert.equal(readFileSync(await deck.path()).subarray(0, 2).toString(), 'PK');
  },
  async reference() {
    const commands = await page.locator('.entry .command').evaluateAll((lines) => lines.filter((line) => line.querySelector('span').textContent === 'Command line').map((line) => line.querySelector('code').textContent));
    const all = JSON.parse(posenc('posenc list --json')).length;
    assert.ok(commands.length > all, 'schemes and scalings');
    const without = await page.locator('.entry').evaluateAll((list) => list.filter((one) => !one.querySelector('math')).map((one) => one.querySelector('h2').firstChild.textContent));
    assert.deepEqual(without, [], 'every scheme and scaling has its formula in formulas.json');
    for (const command of new Set(commands)) assert.match(posenc(command), /./);
    await page.getByLabel('Search').last().fill('alibi');
    await page.keyboard.press('Tab');
    await settled(page);
    assert.equal(await page.locator('.entry h2').first().evaluate((one) => one.firstChild.textContent), 'alibi');
    assert.ok(await page.locator('.entry math').count() > 0);
  },
  async guides() {
    const before = await textOf('.guide h2');
    await press(page.getByLabel('Guide', { exact: true }), 'ArrowDown');
    assert.notEqual(await textOf('.guide h2'), before);
  },
  async rope() {
    const score = async () => Number((await textOf('#rope-score')).replace('−', '-'));
    const mean = (distance, pairs = 8) => Array.from({ length: pairs }, (_, i) => Math.cos(distance * 10000 ** (-i / pairs))).reduce((sum, one) => sum + one) / pairs;
    await until(/m − n = 25\./, '.reading');
    assert.ok(Math.abs(await score() - mean(25)) < 1e-6);
    const tip = (name) => page.getByRole('slider', { name });
    await press(tip(/Query/), 'ArrowRight');
    await until(/m − n = 26\./, '.reading');
    assert.ok(Math.abs(await score() - mean(26)) < 1e-6);
    await press(tip(/Key/), 'ArrowRight');
    await until(/m − n = 25\./, '.reading');
    assert.ok(Math.abs(await score() - mean(25)) < 1e-6, 'it depends on the distance alone');
    // both move: the trace is level
    const before = await score();
    await press(page.getByRole('button', { name: 'Move both' }), 'Enter');
    await page.waitForFunction(() => Number([...document.querySelectorAll('.control')].find((one) => /Query/.test(one.textContent)).querySelector('input').value) > 44);
    await press(page.getByRole('button', { name: 'Move both' }), 'Enter');
    assert.equal(await score(), before);
    assert.ok((await page.locator('path.both').getAttribute('d')).length > 20);
    await page.waitForFunction(() => !document.querySelector('.sketch-room'));
    // a hand is dragged around: a quarter of a turn of pair 2 is a quarter of its wavelength
    const m = Number(await tip(/Query/).getAttribute('aria-valuenow')), box = await page.locator('.clock').boundingBox(), at = await tip(/Query/).boundingBox();
    const [cx, cy, x, y] = [box.x + box.width / 2, box.y + box.height / 2, at.x + at.width / 2, at.y + at.height / 2];
    await page.mouse.move(x, y);
    await page.mouse.down();
    for (let step = 1; step <= 9; ++step) {
      const turn = (step * Math.PI) / 18;
      await page.mouse.move(cx + (x - cx) * Math.cos(turn) + (y - cy) * Math.sin(turn), cy - (x - cx) * Math.sin(turn) + (y - cy) * Math.cos(turn));
    }
    await page.mouse.up();
    assert.ok(Math.abs(Number(await tip(/Query/).getAttribute('aria-valuenow')) - m - Math.PI / 2 / 0.1) <= 1.5);
    await press(page.locator('.small-clocks button').nth(5), 'Enter');
    await until(/Pair 5 rotates/, '.reading');
  },
  async invent() {
    const steps = page.locator('.path a'), next = page.locator('.presets .primary');
    await page.evaluate(() => localStorage.removeItem('posenc-invented'));
    await go(page, '#v=1&p=order');
    await go(page, '#v=1&p=invent');
    assert.equal(await steps.count(), 8);
    const seen = [];
    for (let at = 1; at <= 8; ++at) {
      await page.waitForFunction((number) => document.querySelector('.path [aria-current=step]')?.parentElement === document.querySelectorAll('.path li')[number - 1], at);
      await settled(page);
      // an idea, a figure that the program prints, what fails, what that asks for, and three questions
      seen.push((await sameAsTheProgram(figure())).command.split(' ')[2]);
      assert.match(await textOf('.fails'), at < 8 ? /^Where it fails\. / : /^What is left\. /);
      assert.ok((await textOf('.wanted')).length > 20);
      const asked = await page.locator('.asked').all();
      assert.equal(asked.length, 3);
      for (const one of asked) {
        await press(one.locator('button').first(), 'Enter');
        assert.ok((await one.locator('.verdict').textContent()).length > 12, `step ${at}`);
        for (const button of await one.locator('button').all()) await button.click();
        const right = await one.locator('button').count() > 1;
        if (right) assert.equal(await one.locator('[aria-pressed=true]').count(), 1);
      }
      if (at < 8) await press(next, 'Enter');
      if (at < 8) await page.waitForFunction(() => document.activeElement.tagName === 'H2');
    }
    assert.deepEqual(seen, ['waves', 'waves', 'fingerprint', 'waves', 'phasors', 'phasors', 'bias', 'scaling']);
    // who comes back goes on where they were; a link decides for itself
    assert.deepEqual(await page.evaluate(() => localStorage.getItem('posenc-invented')), '1,2,3,4,5,6,7');
    await go(page, '#v=1&p=order');
    await go(page, '#v=1&p=invent');
    assert.match(await textOf('main h2'), /^8\./);
    // digits that jump are counted; query and key that move together keep their score
    await go(page, '#v=1&p=invent&step=3&m=8');
    assert.match(await figure().locator('.note').textContent(), /^From position 7 to 8, 4 binary digits change\.$/);
    await go(page, '#v=1&p=invent&step=6&m=5&n=2');
    const said = () => figure().locator('.note').textContent(), before = await said();
    await press(field('Move both by'), 'PageUp', 'PageUp', 'PageUp');
    const { command } = await sameAsTheProgram(figure());
    assert.match(command, /--at 13 --key 10$/);
    assert.equal(await said(), before);
    await press(field('Position m'), 'ArrowUp');
    assert.notEqual(await said(), before);
    // a word's features are lost beside the code of a long text
    await go(page, '#v=1&p=invent&step=1&words=512');
    await sameAsTheProgram(figure());
    const lines = await figure().locator('line.rule').evaluateAll((all) => all.map((one) => Number(one.getAttribute('y1'))));
    assert.ok(lines.length === 2 && Math.abs(lines[0] - lines[1]) < 3, lines.join());
    await go(page, '#v=1&p=invent&step=2&words=256&m=5');
    assert.match(await textOf('main h2'), /^2\./);
    assert.deepEqual(await figure().locator('.chip').allTextContents().then((all) => [...new Set(all)]), ['0.01961']);
    await press(next, 'Enter');
    await page.waitForFunction(() => /^3/.test(document.querySelector('main h2').textContent));
  },
  async images() {
    // the prompt: the positions that the program prints, in the figure and on the patches
    const { command } = await sameAsTheProgram(figure());
    assert.match(command, /plot ids .* --spec 'text:6 image:8x12 text:5 video:4x8x12@1 text:6'/);
    assert.equal(await page.locator('.patches button').count(), 24);
    await press(field('Text before it'), 'ArrowUp');
    assert.match((await sameAsTheProgram(figure())).command, /'text:7 image/);
    await press(page.locator('.patches button').nth(7), 'Enter');
    await until(/^Token 14, in row 1 and column 1 of the image, has time 7, height 8, width 8\.$/, '.patches-said');
    assert.equal(await page.locator('.patches [aria-pressed=true]').textContent(), '8, 8');
    await press(page.locator('.patches button').nth(7), 'ArrowRight');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), '8, 9');
    await press(field('Token'), 'Control+Home');
    await until(/^Token 0 has time 0, height 0, width 0\. All three are the same/, '.patches-said');
    await press(field('Video frames'), 'Control+Home');
    assert.match((await sameAsTheProgram(figure())).command, /image:8x12 text:6'/);
    // which pair rotates with which axis: constant along a row, along a column, or along neither
    const alike = async () => {
      await settled(page);
      const { numbers } = await sameAsTheProgram(figure(1)), side = 16, first = numbers.slice(0, side * side);
      const differs = (step, edge) => first.some((value, k) => edge(k) && Math.abs(value - first[k + step]) > 1e-9);
      return { across: !differs(1, (k) => k % side < side - 1), down: !differs(side, (k) => k < side * (side - 1)) };
    };
    assert.deepEqual(await alike(), { across: false, down: false });
    await page.getByLabel('Axes of the pairs', { exact: true }).selectOption('axial');
    assert.deepEqual(await alike(), { across: true, down: false });
    assert.equal(await field('Direction, degrees').isVisible(), false);
    await page.getByLabel('Axes of the pairs', { exact: true }).selectOption('chunked');
    assert.deepEqual(await alike(), { across: true, down: true }, 'pair 0 rotates with time');
    await page.getByLabel('Axes of the pairs', { exact: true }).selectOption('interleaved');
    await settled(page);
    assert.match((await sameAsTheProgram(figure(1))).command, /--section-order interleaved/);
  },
  async stories() {
    const names = JSON.parse(posenc('posenc explain --json')).map((one) => one.story);
    assert.ok(names.length >= 16);
    const links = await page.locator('#page-stories .map a').evaluateAll((all) => all.map((one) => new URLSearchParams(one.hash.slice(1)).get('story')));
    assert.deepEqual(links, names, 'one order, that of content/topics.json');
    for (const name of links) {
      await go(page, `#v=1&p=stories&story=${name}`);
      await page.waitForFunction((story) => [...document.querySelectorAll('pe-story')].some((one) => one.story?.story === story || one.querySelector('.refused')), name);
      assert.equal(await page.locator('pe-story .refused').allTextContents().then(String), '', name);
      const want = JSON.parse(posenc(`posenc explain ${name} --json`)).steps.flatMap((step) => step.blocks).filter((block) => block.kind === 'matrix');
      // to the last bit but where a story asks the C library for a sine of a large angle
      const have = (await matrices(name)).map((one) => one.values.flat()), all = want.map((block) => block.values.flat());
      assert.deepEqual(have.map((one) => one.length), all.map((one) => one.length), name);
      have.flat().forEach((value, i) => assert.ok(value === all.flat()[i] || Math.abs(value - all.flat()[i]) <= 1e-15 * Math.max(0.5, Math.abs(value)), `${name}: ${value} is ${all.flat()[i]} there`));
      // behind its line: the same in numpy, and the figure of its command
      const { python, figure: words } = JSON.parse(readFileSync(new URL(`../../content/stories/${name}.json`, import.meta.url), 'utf8'));
      assert.equal(await page.locator('.story-code pre').isVisible(), false);
      await press(page.locator('.story-code summary'), 'Enter');
      assert.equal(await page.locator('.story-code pre').textContent(), python.join('\n'), name);
      assert.equal(await page.locator('.story-code pe-figure').count(), words ? 1 : 0, name);
      if (words) assert.equal((await sameAsTheProgram(figure())).command, `posenc ${words}`);
    }
    await go(page, '#v=1&p=stories&story=nobody');
    await until(/no worked example “nobody”/, '#page-stories');
  },
  async search() {
    const found = async (words) => {
      await go(page, `#v=1&p=search&q=${encodeURIComponent(words)}`);
      await page.waitForFunction((text) => document.querySelector('#page-search input').value === text, words);
      return page.locator('.found li').evaluateAll((all) => all.map((one) => ({ title: one.querySelector('a').textContent, where: one.querySelector('small').textContent, link: one.querySelector('a').hash })));
    };
    // every page by the name that the list of pages shows, first
    for (const name of ['Order', 'Waves', 'Phasors', 'Distance', 'Frank and Alex', 'Frank', 'RoPE', 'Images and video', 'All schemes', 'Decay', 'Longer context', 'Exactness', 'Check mine', 'Lab', 'Practice', 'Reference', 'Guides', 'Worked examples']) {
      const [first] = await found(name);
      assert.equal(first?.where, 'Page', `${name}: ${JSON.stringify(first)}`);
      assert.ok(first.title.startsWith(name), `${name}: ${first.title}`);
    }
    const rope = await found('rope');
    assert.ok(rope.some((one) => one.where === 'Guide: RoPE: rotary position' || /Guide: RoPE/.test(one.where)));
    assert.ok(rope.every((one) => !/Properties/.test(one.title)), 'nothing is found within a word');
    assert.match((await found('gpt-2'))[0].title, /GPT-2/);
    assert.ok((await found('cat sat')).some((one) => one.link.includes('story=cat-sat')));
    assert.deepEqual(await found('zzzzqq'), []);
    await go(page, '#v=1&p=search');

    await page.locator('#page-search input').focus();
    await page.keyboard.type('yarn');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelectorAll('.found li').length > 1);
  },
};

const elsewhere = ['lab', 'model', 'tables'];  // lab_test.mjs, model_test.mjs
for (const id of pages.filter((one) => !elsewhere.includes(one))) {
  test(`${id}: its main interaction, by keyboard`, async () => {
    await go(page, `#v=1&p=${id}`);
    await interactions[id]();
    assert.deepEqual(complaints.splice(0), []);
  });
}

// --- links ------------------------------------------------------------------------------------------------------

const views = {
  start: 'm=11', order: 'text=cat+sees+dog', waves: 'd=32&base=500&len=300&m=40&lay=sin-cos', phasors: 's=rope&dp=8&m=9&k=2&pairs=together', distance: 's=rope&d=16&from=1000&num=hf-f32&type=f32',
  frank: 'seats=Alex+Emma+Daniel+Frank&rows=shift&join=concatenated&d=4&base=500', schemes: 'sort=family&off=map,decay', decay: 'sin=1&reach=64&bias=sandwich&axes=both&head=2', context: 'model=Phi-3.5+mini&dims=96&trained=4096&x=32&method=linear&i=20', exact: 'far=5000&m=12', check: '',
  model: 'ms=alibi&chars=128&layer=3&head=2&all=0&m=20', tables: 'rows=32&tab=heatmap&m=5', rope: 'm=40&n=9&i=1&dp=8', invent: 'step=4&m=9&words=64', images: 'm=20&r=6&c=8&f=2&way=mixed&dir=60&col=3', stories: 'story=cat-sat', practice: 'seed=9', reference: 'q=kerple', guides: 'g=rope', search: 'q=yarn',
};

test('a copied link restores the view of every page', async () => {
  const other = await open(context, 'about:blank');
  const state = (one) => one.evaluate(() => JSON.stringify({ text: document.querySelector('main').innerText, numbers: [...document.querySelectorAll('pe-figure')].map((figure) => figure.numbers()), fields: [...document.querySelectorAll('main input, main select')].map((input) => input.type === 'checkbox' ? input.checked : input.value) }));
  for (const id of pages) {
    await page.bringToFront();  // one behind another gets a frame a second
    await go(page, `#v=1&p=${id}&${views[id] ?? ''}`);
    await whole(page, id);
    const before = await state(page);
    await page.locator('header .copy-link').click();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    // another document, not the same one with another address
    await other.goto('about:blank');
    await other.goto(link);
    await other.bringToFront();
    await shownPage(other, id);
    await whole(other, id);
    assert.deepEqual(JSON.parse(await state(other)), JSON.parse(before), id);
  }
  await other.close();
  await page.bringToFront();
});

test('the tour leads through its stops, and ends', async () => {
  await go(page, '#v=1&p=start');
  await page.getByRole('link', { name: /Take the tour/ }).click();
  const stops = JSON.parse(readFileSync(new URL('../../content/tour.json', import.meta.url), 'utf8'));
  for (const [index, { view, text }] of stops.entries()) {
    await shownPage(page, /p=(\w+)/.exec(view)[1]);
    await until(new RegExp(`^${index + 1} of ${stops.length} `), 'aside.tour');
    assert.ok((await textOf('aside.tour')).includes(text));
    assert.equal(await page.locator('main .refused').count(), 0);
    if (index + 1 < stops.length) await press(page.locator('aside.tour').getByRole('link', { name: 'Next' }), 'Enter');
  }
  await press(page.getByRole('button', { name: 'End the tour' }), 'Enter');
  assert.equal(await page.locator('aside.tour').count(), 0);
  assert.deepEqual(complaints.splice(0), []);
});

test('other pages keep the cursor and the scheme', async () => {
  await go(page, '#v=1&p=waves&d=32&base=500&m=20&len=64&s=rope');
  await page.locator('nav a', { hasText: 'Distance' }).click();
  await shownPage(page, 'distance');
  assert.deepEqual([await field('Width d').inputValue(), await field('Base').inputValue(), await field('Position m').inputValue(), await page.getByLabel('Scheme', { exact: true }).inputValue()], ['32', '500', '20', 'rope']);
  assert.ok(!page.url().includes('len='), 'what only the other page has stays there');
});

test('a teacher locks and hides, on every page', async () => {
  await go(page, '#v=1&p=waves&lock=d,base&hide=commands,data');
  assert.equal(await field('Width d').isDisabled(), true);
  assert.equal(await field('Position m').isDisabled(), false);
  await figure().getByRole('button', { name: /^More/ }).click();
  assert.equal(await page.locator('pe-figure .command').first().isVisible(), false);
  assert.equal(await page.locator('pe-figure .tools').first().isVisible(), true);
  const keys = 'with,causal,d,base,m,n,s,lay,len,k,dp,pairs,from,count,num,type,text,seats,join,rows,bound,rope,sin,alibi,heads,head,reach,axes,bias,dims,trained,x,i,method,model,far,seed,print,q,g,sort,off,task,rel,size,pos,mine,story,ms,chars,layer,all,txt,tab,words,r,c,f,way,dir,col,both,run';
  for (const id of pages) {
    await go(page, `#v=1&p=${id}&lock=${keys}&hide=commands,exports,data`);
    const left = await page.evaluate(() => ({
      open: [...document.querySelectorAll('main .controls:not(.walkthrough *) input, main .controls select, main .word, main .swap')].filter((one) => one.checkVisibility() && !one.disabled).map((one) => one.outerHTML.slice(0, 100)),
      shown: [...document.querySelectorAll('main .command, main pe-figure .tools, main details.data')].filter((one) => one.checkVisibility()).length,
    }));
    assert.deepEqual(left, { open: [], shown: 0 }, id);
    // nor do the figures move
    const moved = await page.evaluate(() => {
      const live = document.getElementById('live');
      live.textContent = '';
      for (const one of document.querySelectorAll('pe-figure .surface')) one.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
      return live.textContent;
    });
    assert.equal(moved, '', id);
  }
});

// --- keys -------------------------------------------------------------------------------------------------------

test('the Tab key reaches everything on every page, in order, and leaves again', async () => {
  const keys = await context.newCDPSession(page);
  await page.bringToFront();
  for (const id of pages) {
    await go(page, `#v=1&p=${id}`);
    await whole(page, id);
    await page.evaluate(() => {
      const shown = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled;
      window.wanted = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter((one) => one.tabIndex >= 0 && shown(one));
      window.reached = [];
      addEventListener('focusin', window.note ??= (event) => window.reached.push(event.target));
      document.activeElement.blur();
      document.querySelector('.skip').focus();
    });
    const count = await page.evaluate(() => window.wanted.length);
    const most = Math.min(count, 60);
    // real key events, one behind the other: the browser takes them in order, nobody waits for an answer to each
    const key = { key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 };
    await Promise.all(Array(most - 1).fill(0).flatMap(() => [keys.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', ...key }), keys.send('Input.dispatchKeyEvent', { type: 'keyUp', ...key })]));
    const missed = await page.evaluate((limit) => {
      const met = new Set(window.reached);
      // a page of hundreds of cells is not walked whole: the rest must take the focus when asked
      return window.wanted.filter((one, index) => {
        if (index < limit - 1) return !met.has(one);
        one.focus({ preventScroll: true });
        return document.activeElement !== one;
      }).map((one) => one.outerHTML.slice(0, 120));
    }, most);
    assert.deepEqual(missed, [], id);
    assert.ok(count > 10, id);
  }
});

test('the box for files keeps the focus when it takes the place of its button', async () => {
  const other = await context.newPage();
  let arrive;
  const released = new Promise((resolve) => { arrive = resolve; });
  // every script that is asked for after the page is there waits
  let isHeld = false;
  await other.route('**/*.js', async (route) => {
    if (isHeld) await released;
    await route.continue();
  });
  await other.setViewportSize({ width: 800, height: 300 });
  await other.goto(places.program);
  await shownPage(other, 'start');
  isHeld = true;
  await other.evaluate(() => document.querySelector('#my-model button').focus());
  assert.equal(await other.evaluate(() => document.activeElement.textContent), 'Choose a file');
  arrive();
  await other.waitForSelector('#config-file');
  assert.equal(await other.evaluate(() => document.activeElement.id), 'config-file');
  await other.close();
});

// --- behind every figure ----------------------------------------------------------------------------------------

test('PNG, SVG, CSV and NPY hold the figure; the table shows its numbers', async () => {
  await go(page, '#v=1&p=waves&d=16&len=64');
  const saved = async (one, name) => {
    const [file] = await Promise.all([page.waitForEvent('download'), one.getByRole('button', { name, exact: true }).click()]);
    return readFileSync(await file.path());
  };
  for (const one of [figure(0), figure(1)]) await one.getByRole('button', { name: /^More/ }).click();
  const map = figure(1), numbers = await map.evaluate((one) => one.numbers().slice(1).map((row) => row[3]));
  assert.deepEqual((await saved(map, 'CSV')).toString().trim().split('\r\n').slice(1).map((line) => Number(line.split(',').at(-1))), numbers);
  const npy = await saved(map, 'NPY'), header = npy.subarray(10, 10 + npy.readUInt16LE(8)).toString();
  assert.match(header, /'descr': '<f8', 'fortran_order': False, 'shape': \(64, 16\)/);
  assert.deepEqual([...new Float64Array(new Uint8Array(npy.subarray(10 + npy.readUInt16LE(8))).buffer)], numbers);
  assert.equal((await saved(map, 'PNG')).subarray(1, 4).toString(), 'PNG');
  const svg = (await saved(map, 'SVG')).toString();
  assert.match(svg, /^<svg .*<image .*<\/svg>$/s);
  await map.locator('details.data > summary').click();
  await map.locator('tbody tr').nth(100).waitFor({ state: 'attached' });
  const lines = (await saved(figure(0), 'SVG')).toString();
  assert.match(lines, /<path [^>]*stroke="rgb/);
});

// What stands under and behind a figure, for all of them: keys, the live region, the table, four files, the command.
test('every figure has its keys, its table, its files and its command', async () => {
  let count = 0;
  for (const id of pages) {
    await go(page, `#v=1&p=${id}&${views[id] ?? ''}`);
    for (const [index, one] of (await page.locator('pe-figure').all()).entries()) {
      const found = await one.evaluate(async (figure) => {
        const surface = figure.querySelector('.surface'), live = document.getElementById('live');
        const value = (key, more = {}) => {
          surface.dispatchEvent(new KeyboardEvent('keydown', { key, ...more }));
          return Number(/^\w+ = ([−\d,.]+)/.exec(live.textContent)?.[1].replaceAll(',', '').replace('−', '-'));
        };
        const keys = { least: value('Home'), most: value('End'), home: value('Home'), one: value('ArrowRight'), eleven: value('ArrowRight', { shiftKey: true }), back: value('ArrowLeft'), twice: value('PageUp'), half: value('PageDown'), up: value('ArrowUp') };
        const files = {}, make = URL.createObjectURL, click = HTMLAnchorElement.prototype.click;
        let names = [];
        URL.createObjectURL = (blob) => { names.push(blob); return 'blob:none'; };
        HTMLAnchorElement.prototype.click = function () { files[this.download.split('.').pop()] = names.at(-1); };
        const count = figure.numbers().length - 1;  // now: a figure may be drawn again, with more points, at any moment
        for (const button of figure.querySelectorAll('.tools button')) if (['PNG', 'SVG', 'CSV', 'NPY'].includes(button.textContent)) button.click();
        while (!files.png) await new Promise((resolve) => setTimeout(resolve, 5));
        Object.assign(URL, { createObjectURL: make });
        HTMLAnchorElement.prototype.click = click;
        const details = figure.querySelector('details.data');
        details.open = true;
        await new Promise((resolve) => details.addEventListener('toggle', resolve, { once: true }));
        const rows = details.querySelectorAll('tbody tr').length;
        details.open = false;
        return { keys, rows, numbers: count, lines: (await files.csv.text()).trim().split('\r\n').length - 1, svg: (await files.svg.text()).slice(0, 5),
          png: [...new Uint8Array(await files.png.slice(0, 4).arrayBuffer())], npy: new TextDecoder('latin1').decode(await files.npy.slice(1, 6).arrayBuffer()),
          label: surface.getAttribute('aria-label'), tabindex: surface.tabIndex, picture: figure.querySelector('svg.drawing')?.getAttribute('aria-label') ?? '' };
      });
      const place = `${id}, figure ${index + 1}`, { least, most, home, one: next, eleven, back, twice, half, up } = found.keys, within = (value) => Math.min(most, Math.max(least, value));
      assert.ok(most > least, `${place}: ${JSON.stringify(found.keys)}`);
      assert.deepEqual([home, next, eleven, back], [least, within(least + 1), within(least + 11), within(within(least + 11) - 1)], place);
      assert.deepEqual([twice, half], [within(Math.max(1, back) * 2), within(Math.floor(twice / 2))], place);
      assert.ok([within(half - 1), within(half + 1)].includes(up), place);
      assert.equal(found.lines, found.numbers, `${place}: CSV`);
      assert.ok(found.numbers > 5 && found.rows >= Math.min(found.numbers, 398), `${place}: table of ${found.rows}`);
      assert.deepEqual([found.svg, found.npy, found.png], ['<svg ', 'NUMPY', [0x89, 0x50, 0x4e, 0x47]], place);
      assert.ok(found.label.length > 10 && found.picture.length > 10 && found.tabindex === 0, place);
      await settled(page);
      // what the lab trains takes hours: its command is tested there
      if (!['lab', 'model'].includes(id) && !(id === 'tables' && index === 0)) await sameAsTheProgram(one);
      ++count;
    }
  }
  assert.ok(count >= 15, String(count));
});

test('every figure follows a finger', async () => {
  const context = await contextOf({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const page = await open(context, places.program);
  const fingers = await context.newCDPSession(page);
  const touch = (type, ...touchPoints) => fingers.send('Input.dispatchTouchEvent', { type, touchPoints });
  for (const id of pages) {
    await go(page, `#v=1&p=${id}`);
    for (const [index, one] of (await page.locator('pe-figure .surface').all()).entries()) {
      const box = await one.evaluate((surface) => {
        const plot = surface.querySelector('rect.plot, canvas.heat') ?? surface;
        plot.scrollIntoView({ block: 'center' });
        const { x, y, width, height } = plot.getBoundingClientRect();
        document.getElementById('live').textContent = '';
        return { x, y, width, height, isVertical: surface.classList.contains('vertical') };
      });
      const at = (across, down) => ({ x: box.x + box.width * across, y: Math.min(800, Math.max(60, box.y + box.height * down)) });
      const said = () => page.evaluate(() => Number(/= ([\d,]+)/.exec(document.getElementById('live').textContent)?.[1].replaceAll(',', '')));
      const from = box.isVertical ? at(0.5, 0.3) : at(0.3, 0.5), to = box.isVertical ? at(0.5, 0.7) : at(0.7, 0.5);
      // a map is touched first: until then a finger on it scrolls the page
      if (box.isVertical) {
        await one.focus();
        await touch('touchStart', from);
        await touch('touchEnd');
      }
      const scrolled = await page.evaluate(() => scrollY);
      await touch('touchStart', from);
      await touch('touchMove', { x: from.x * 0.95 + to.x * 0.05, y: from.y * 0.95 + to.y * 0.05 });
      const before = await said();
      for (const share of [0.5, 1]) await touch('touchMove', { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share });
      await touch('touchEnd');
      const after = await said();
      assert.ok(after > 0 && after !== before, `${id}, figure ${index + 1}: ${before} to ${after}`);
      assert.equal(await page.evaluate(() => scrollY), scrolled, `${id}, figure ${index + 1} scrolls`);
    }
  }
  await context.close();
});

// Bytes as a host sends them, and not time: every other module is held back, so that what appears needs no more than was sent.
const mostOf = { core: 210_000, figures: 347_000, lab: 420_000, stories: 362_000, practice: 310_000, none: 140_000 };
test('the first figure of every page needs one module, and few bytes', async (t) => {
  const { gzipSync } = await import('node:zlib');
  const titles = readFileSync(new URL('../../explorer/src/titles.ts', import.meta.url), 'utf8');
  const begins = Object.fromEntries([...titles.matchAll(/\{ id: '(\w+)'.*?(?:first: '(\w+)')? \},?\n/g)].map(([, id, first]) => [id, first ?? 'none']));
  assert.deepEqual(Object.keys(begins), pages);
  // the first figure of the page, or what the page has in its place
  const drawn = 'pe-figure .surface svg, pe-figure .surface canvas, .board .tile, .rope-view svg path[d], pe-story .matrix, table.schemes tbody tr, .exercise form, .entry, .drop, .map li, .found, .guide h2, .guide p, .poster';
  const first = () => {
    const host = document.querySelector('main pe-figure, main .hero, main .rope-view, main pe-story, main table.schemes, main .exercise');
    return host ? host.querySelector('.surface svg, .surface canvas, .board .tile, svg path[d], .matrix, tbody tr, form') !== null : true;
  };
  const sizes = [];
  for (const id of pages) {
    if (id === 'search') continue;
    const context = await contextOf(), page = await context.newPage(), name = begins[id];
    let bytes = 0;
    const asked = new Set();
    await page.route('**', async (route) => {
      const file = new URL(route.request().url()).pathname.split('/').pop();
      if (/^blob:/.test(route.request().url())) return route.continue();
      asked.add(file);
      if (file.endsWith('.wasm') && file !== `${name}.wasm`) return;  // never answered
      if (id === 'tables' && file.endsWith('.safetensors')) return;  // so that its first figure is drawn without
      const answer = await route.fetch(), body = await answer.body();
      bytes += gzipSync(body).length;
      await route.fulfill({ response: answer, body });
    });
    const file = id === 'start' ? 'index.html' : `${id}.html`, more = id === 'stories' ? '#v=1&p=stories&story=rope' : '';
    await page.goto(places.folder + file + more);
    await page.waitForSelector(`#page-${id}`);
    await page.waitForSelector(drawn, { timeout: 60_000 }).catch(() => assert.fail(`${id} shows nothing with ${name}.wasm alone`));
    if (name !== 'none') await page.waitForFunction(first, undefined, { timeout: 60_000 }).catch(() => assert.fail(`${id} shows nothing with ${name}.wasm alone`));
    sizes.push([bytes, id]);
    assert.ok(bytes > 20_000 && bytes < mostOf[name], `${id} took ${bytes} bytes before its first figure`);
    assert.ok(!asked.has('models.wasm') || id === 'context' || id === 'start' || id === 'check', `${id} asks for the module that reads files`);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await context.close();
  }
  sizes.sort((a, b) => b[0] - a[0]);
  t.diagnostic(sizes.map(([bytes, id]) => `${id} ${(bytes / 1000).toFixed(0)} kB`).join(', '));
});

test('every kind of series is drawn as the library asks', async () => {
  await go(page, '#v=1&p=waves&d=16&len=64');
  assert.ok(await figure(2).locator('g.bars rect').count() >= 16, 'a fingerprint has bars');
  await go(page, '#v=1&p=distance');
  assert.ok((await figure(0).locator('path.points').first().getAttribute('d')).split('M').length > 10, 'lines with dots');
  assert.ok(await figure(0).locator('path.stroke').count() > 2);
});

test('formulas are MathML in the font of the site', async () => {
  await go(page, '#v=1&p=waves');
  assert.ok(await page.locator('.maths math').count() >= 2);
  assert.equal(await page.evaluate(async () => (await document.fonts.load('16px "posenc math"', '∑')).length), 1);
  assert.equal(await page.locator('math[style], math [style]').count(), 0);
  // the conjugate key of RoPE has its bar, drawn by any browser
  await go(page, '#v=1&p=rope');
  assert.deepEqual(await page.locator('math mover > mo').allTextContents(), ['‾', '‾']);
  for (const id of ['order', 'waves', 'phasors', 'distance', 'frank', 'rope', 'decay', 'context', 'reference']) {
    await go(page, `#v=1&p=${id}`);
    const all = await page.locator('math *').evaluateAll((list) => [...new Set(list.map((one) => one.localName))]);
    assert.deepEqual(all.filter((name) => !/^(mrow|mi|mn|mo|mtext|mspace|msup|msub|msubsup|mfrac|msqrt|mroot|munder|mover|munderover|mtable|mtr|mtd|mpadded|mphantom|mstyle|semantics|mmultiscripts)$/.test(name)), [], `${id}: not in MathML Core`);
  }
});

// --- paper ------------------------------------------------------------------------------------------------------

test('cards print one on a page, or eight; maps have lines where they are negative', async () => {
  await go(page, '#v=1&p=practice');
  const cards = await page.locator('.print-card').count();
  const whole = await page.locator('.print-card').evaluateAll((list) => list.map((card) => ({ front: card.querySelector('.front').textContent, back: card.lastElementChild.textContent })));
  const sheets = async () => Math.max(...[...(await page.pdf({ format: 'A4' })).toString('latin1').matchAll(/\/Count (\d+)/g)].map((match) => Number(match[1])));
  assert.equal(await sheets(), cards);
  await page.getByLabel('On paper').selectOption('8');
  assert.equal(await sheets(), Math.ceil(cards / 8));
  await page.getByLabel('On paper').selectOption('2');
  assert.equal(await sheets(), 2 * Math.ceil(cards / 8));
  const fronts = await page.locator('.sheet').first().locator('.front').allTextContents(), backs = await page.locator('.sheet').nth(1).locator('.print-card').allTextContents();
  assert.equal(fronts.length, 8);
  // the back of the first card lies behind it: in the second column
  assert.deepEqual([fronts[0], backs[1], backs[0]], [whole[0].front, whole[0].back, whole[1].back]);
  await go(page, '#v=1&p=waves&d=16&len=64');
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  const marked = await figure(1).locator('canvas.hatch').evaluate((one) => new Uint32Array(one.getContext('2d').getImageData(0, 0, one.width, one.height).data.buffer).filter(Boolean).length / one.width / one.height);
  assert.ok(marked > 0.02 && marked < 0.25, String(marked));
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  assert.equal(await page.locator('canvas.hatch').count(), 0);
});
