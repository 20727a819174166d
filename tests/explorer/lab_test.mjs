// The lab's page: the stored run, a file of one's own, files that are wrong.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

const { POSENC, WEB, CHROMIUM, SOURCE } = process.env;
const require = createRequire(join(WEB, 'package.json'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const desk = JSON.parse(readFileSync(join(SOURCE, 'explorer/src/data/desk.json'), 'utf8'));

let browser, server, address;
before(async () => {
  server = spawn(POSENC, ['explore', '--quiet'], { stdio: ['ignore', 'pipe', 'inherit'] });
  address = await new Promise((resolve) => server.stdout.once('data', (text) => resolve(String(text).trim())));
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
});
after(async () => {
  await browser?.close();
  server?.kill('SIGTERM');
});

async function open(hash, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage(), complaints = [], asked = [];
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()); });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${address}${hash}`);
  await page.waitForSelector(`#page-${new URLSearchParams(hash.slice(1)).get('p')}[data-ready=yes]`);
  await page.evaluate(() => Promise.all([...document.querySelectorAll('pe-story, pe-figure')].map((one) => one.ready)));
  return { context, page, complaints, asked };
}
const give = (page, name, text) => page.locator('#lab-file').setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(text) });
const violations = async (page) => {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
  return found.violations.map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 160)}`);
};

test('every verdict and result of the stored run is there', async () => {
  const { context, page, complaints } = await open('#v=1&p=lab&run=desk');
  assert.equal(await page.locator('tr[id^="claim-"]').count(), desk.verdicts.length);
  const counts = {};
  for (const answer of ['Reproduced', 'Refuted', 'Undecided', 'Not testable here']) counts[answer] = desk.verdicts.filter((one) => one.verdict === answer.toLowerCase()).length;
  assert.ok(Object.values(counts).every((count) => count > 0));
  for (const [answer, count] of Object.entries(counts)) {
    assert.equal(await page.getByRole('heading', { name: `${answer} (${count})`, exact: true }).count(), 1, answer);
  }
  const failed = desk.verdicts.find((one) => one.verdict === 'refuted');
  assert.match(await page.locator(`#claim-${failed.id}`).textContent(), new RegExp(failed.threshold.replace(/[.±]/g, '\\$&')));
  // two seeds have a range, and no interval
  assert.doesNotMatch(await page.locator('#page-lab').textContent(), /95% interval/);
  assert.match(await page.locator('#claim-rope-breaks').textContent(), /range of 2 seeds/);
  const rows = await page.locator('.lab-results tbody tr').evaluateAll((list) => list.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const texts = desk.results.filter((one) => one.task === 'text' && one.extension === 'none' && one.by_size[0].size === 32);
  assert.deepEqual(rows, texts.map((one) => [one.scheme, String(one.seeds), ...one.by_size.map((at) => at.mean.toFixed(2))]));
  assert.equal(await page.locator('.surface path.stroke').count(), 2 * texts.length, 'a line and a mark in the legend for each scheme');
  assert.match(await page.locator('pe-story').textContent(), /What was published/);
  assert.deepEqual(complaints, []);
  await context.close();
});

test('the run on a GPU comes first, and the other is chosen', async () => {
  const { context, page, complaints } = await open('#v=1&p=lab');
  const gpu = JSON.parse(readFileSync(join(SOURCE, 'docs/lab/gpu/summary.json'), 'utf8'));
  assert.match(await page.locator('#page-lab .note').first().textContent(), new RegExp(`${gpu.models} of ${gpu.models_planned} models`));
  assert.equal(await page.locator('tr[id^="claim-"]').count(), gpu.verdicts.length);
  const decided = gpu.verdicts.find((one) => one.values.length === 5);
  assert.match(await page.locator(`#claim-${decided.id}`).textContent(), /95% interval/);
  const groups = await page.locator('#lab-task option').evaluateAll((list) => list.map((one) => one.value));
  assert.deepEqual(new Set(groups.map((one) => one.replace(/-\d+$/, ''))), new Set(['text', 'RoPE varied', 'extensions', 'pass keys', 'repeat']));
  const colours = await page.locator('.surface path.stroke').evaluateAll((list) => list.map((one) => one.getAttribute('class')));
  const lines = gpu.results.filter((one) => one.task === 'text' && one.extension === 'none' && !one.scheme.endsWith('fine-tuned')).length;
  assert.equal(new Set(colours).size, lines, 'a colour for each scheme');
  await page.getByLabel('Run', { exact: true }).selectOption('desk');
  await page.waitForFunction((count) => document.querySelectorAll('tr[id^="claim-"]').length === count, desk.verdicts.length);
  await page.waitForFunction(() => location.hash.includes('run=desk'));
  assert.deepEqual(complaints, []);
  await context.close();
});

test('tasks and schemes are chosen, and the link keeps it', async () => {
  const { context, page } = await open('#v=1&p=lab&run=desk');
  const copy = await page.locator('#lab-task option').evaluateAll((list) => list.map((one) => one.value).find((value) => value.startsWith('copy-')));
  await page.locator('#lab-task').selectOption(copy);
  await page.waitForFunction(() => /100 %|% *$/.test(document.querySelector('.lab-results tbody td:nth-child(3)')?.textContent ?? ''));
  const lines = () => page.locator('.surface path.stroke').count();
  const before = await lines();
  await page.getByLabel('alibi', { exact: true }).uncheck();
  assert.equal(await lines(), before - 2);
  await page.waitForTimeout(250);
  const link = page.url();
  assert.match(link, /off=alibi/);
  await context.close();
  const again = await open(link.slice(link.indexOf('#')));
  assert.equal(await again.page.locator('.surface path.stroke').count(), before - 2);
  assert.equal(await again.page.locator('#lab-task').inputValue(), copy);
  await again.context.close();
});

test('a summary of one\'s own, and files that are none', async () => {
  const { context, page, complaints } = await open('#v=1&p=lab&run=desk', { viewport: { width: 320, height: 700 }, colorScheme: 'dark' });
  const own = structuredClone(desk);
  Object.assign(own, { preset: '', text: 'my text', models: 3, models_planned: 7 });
  own.verdicts[0].claim = 'A claim <b>of mine</b>.';
  await give(page, 'mine.json', JSON.stringify(own));
  await page.waitForFunction(() => /mine\.json/.test(document.querySelector('#page-lab .note')?.textContent ?? ''));
  assert.match(await page.locator('#page-lab .note').first().textContent(), /3 of 7 models, trained on my text/);
  assert.match(await page.locator(`#claim-${own.verdicts[0].id}`).textContent(), /A claim <b>of mine<\/b>\./);
  assert.equal(await page.locator('#page-lab .command code').first().textContent(), 'posenc lab train');
  const wrong = [['a.json', 'not json', /a\.json: is not JSON/], ['b.json', '{"format":"other"}', /"format" must be "posenc-lab-summary-1"/],
    ['c.json', JSON.stringify({ ...own, verdicts: 3 }), /has no list "verdicts"/],
    ['d.json', JSON.stringify({ ...own, verdicts: [{ ...own.verdicts[0], verdict: 'proved' }] }), /is "proved", expected one of/],
    ['e.json', JSON.stringify({ ...own, results: [{ ...own.results[0], by_size: [{ size: 1 }] }] }), /"mean" of results\[0\]\.by_size\[0\] must be a number/],
    ['f.json', 'null', /is no summary\.json/]];
  for (const [name, text, message] of wrong) {
    await give(page, name, text);
    await page.waitForFunction((file) => document.querySelector('#page-lab .drop .refused')?.textContent?.startsWith(file), name);
    assert.match(await page.locator('#page-lab .drop .refused').textContent(), message);
    assert.match(await page.locator('#page-lab .note').first().textContent(), /mine\.json/, 'what was shown stays');
  }
  assert.deepEqual(await violations(page), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 320);
  // five seeds have one
  const five = structuredClone(own);
  for (const one of five.verdicts) if (one.values.length) Object.assign(one, { values: [1, 2, 3, 4, 5], interval_95: [1.5, 4.5] });
  await give(page, 'five.json', JSON.stringify(five));
  await page.waitForFunction(() => /five\.json/.test(document.querySelector('#page-lab .note')?.textContent ?? ''));
  assert.match(await page.locator('#claim-rope-breaks').textContent(), /95% interval/);
  // a run without results yet
  await give(page, 'empty.json', JSON.stringify({ ...own, results: [], verdicts: [] }));
  await page.waitForFunction(() => /no results yet/.test(document.querySelector('#page-lab')?.textContent ?? ''));
  assert.deepEqual(complaints, []);
  await context.close();
});

test('the first load does not fetch it', async () => {
  const { context, asked } = await open('#v=1&p=start');
  assert.ok(asked.length > 2);
  assert.deepEqual(asked.filter((url) => /\/lab[-_.]/.test(url)), []);
  await context.close();
});
