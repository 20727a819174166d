// What the tests of the site share: the program that serves it, a plain static server, one file, and a browser.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

export const { POSENC, WEB, CHROMIUM } = process.env;
const require = createRequire(join(WEB, 'package.json'));
const { chromium } = require('playwright-core');
export const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
/// Every page, from the list of the site itself.
const titles = readFileSync(new URL('../../explorer/src/titles.ts', import.meta.url), 'utf8');
export const pages = [...titles.matchAll(/\{ id: '(\w+)'/g)].map(([, id]) => id);

let browser, server, files, folder;
/// Errors and warnings of the console, and requests to other hosts.
export const complaints = [];
/// Where the site is: {program, folder, file}, and a folder for other files.
export const places = {};

// Compressed, as hosts send it.
const known = new Map();
function zipped(path) {
  if (!known.has(path)) known.set(path, gzipSync(readFileSync(path)));
  return known.get(path);
}

export async function setUp(launch = {}) {
  folder = mkdtempSync(join(tmpdir(), 'posenc-'));
  server = spawn(POSENC, ['explore', '--quiet'], { stdio: ['ignore', 'pipe', 'inherit'] });
  places.program = await new Promise((resolve) => server.stdout.once('data', (text) => resolve(String(text).trim())));
  execFileSync(POSENC, ['explore', '--quiet', '--export', join(folder, 'site')]);
  execFileSync(POSENC, ['explore', '--quiet', '--single-file', join(folder, 'one.html')]);
  const types = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', png: 'image/png', wasm: 'application/wasm', woff2: 'font/woff2' };
  files = http.createServer((request, response) => {
    const path = request.url.split('?')[0].replace('/below/', '/');
    try {
      const send = (status, name) => response.writeHead(status, { 'content-type': types[name.split('.').pop()] ?? 'application/octet-stream', 'content-encoding': 'gzip' }).end(zipped(join(folder, 'site', name)));
      if (existsSync(join(folder, 'site', path))) send(200, path === '/' ? 'index.html' : path);
      else send(404, '404.html');
    } catch {
      response.writeHead(500).end();
    }
  });
  await new Promise((resolve) => files.listen(0, '127.0.0.1', resolve));
  places.folder = `http://127.0.0.1:${files.address().port}/below/`;
  places.file = `file://${join(folder, 'one.html')}`;
  places.scratch = folder;
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'], ...launch });
}
export async function tearDown() {
  await browser?.close();
  server?.kill('SIGTERM');
  files?.close();
  if (folder) rmSync(folder, { recursive: true });
}

export async function contextOf(options = {}, guesses = 'off') {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await context.addInitScript((value) => { try { localStorage.setItem('posenc-guesses', value); } catch { /* a file may refuse */ } }, guesses);
  return context;
}
export async function open(context, url) {
  const page = await context.newPage();
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complaints.push(`${page.url()}: ${message.text()}`); });
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`));
  page.on('request', (request) => {
    const from = new URL(request.url());
    if (!['127.0.0.1', ''].includes(from.hostname) && !['data:', 'blob:', 'file:'].includes(from.protocol)) complaints.push(`another host: ${request.url()}`);
  });
  await page.goto(url);
  return page;
}
export async function shownPage(page, id) {
  await page.waitForSelector(`#page-${id}[data-ready=yes]`, { timeout: 30_000 });
  await settled(page);
}
export async function go(page, hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await shownPage(page, new URLSearchParams(hash.slice(1)).get('p'));
}
/// All figures have drawn what the view asks for, and what waits until the cursor rests has been computed.
export const settled = (page) => page.evaluate(async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  for (let i = 0; i < 2 || document.querySelector('main [data-waiting]'); ++i) {
    await frame();
    await Promise.all([...document.querySelectorAll('pe-figure, pe-story')].map((one) => one.ready));
  }
});
/// Nothing is added to the page any more: parts that load by themselves are there, tables are whole.
export async function whole(page, id) {
  // the box for files loads when it comes near the viewport, which could be at any later moment
  if (id === 'start') {
    await page.locator('#my-model').scrollIntoViewIfNeeded();
    await page.waitForSelector('#config-file');
  }
  if (id === 'schemes') await page.waitForSelector('#page-schemes[data-done=yes]', { timeout: 120_000 });
  await page.evaluate(() => new Promise((resolve) => {
    let waiting = setTimeout(resolve, 80);
    new MutationObserver(() => {
      clearTimeout(waiting);
      waiting = setTimeout(resolve, 80);
    }).observe(document.querySelector('main'), { childList: true, subtree: true });
  }));
}

/// What the program prints. `words` may have quotes, as under a story.
export function posenc(words, ...more) {
  const list = [...words.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, quoted, single, plain]) => quoted ?? single ?? plain);
  assert.equal(list.shift(), 'posenc');
  const done = spawnSync(POSENC, [...list, ...more], { encoding: 'utf8', maxBuffer: 1 << 28 });
  assert.equal(done.status, 0, `${words}: ${done.stderr}`);
  return done.stdout;
}

/// The command under a figure prints the numbers of the figure, every one and no other.
export async function sameAsTheProgram(figure) {
  // as one text: thousands of values on their own take longer on the way here than to compute
  const { command, numbers } = JSON.parse(await figure.evaluate((one) => JSON.stringify({ command: one.querySelector('.command code').textContent, numbers: one.numbers() })));
  const want = JSON.parse(posenc(command, '--json'));
  const panels = want.rows ? want.rows.flatMap((row) => row.panels) : want.panels.flat();
  const theirs = panels.flatMap((panel) => panel.series ?? []).flatMap((one) => one.y);
  const maps = panels.flatMap((panel) => panel.heat_map?.values?.flat() ?? []);
  const mine = numbers.slice(1), drawn = mine.filter(([, series]) => !/ (lowest|highest)$/.test(series));
  assert.ok(mine.length > 5, command);
  // To the last bit but where a figure asks the C library (circles, logarithms).
  const printed = [...theirs, ...maps], have = drawn.map(([, , , y]) => y);
  assert.equal(have.length, printed.length, command);
  const sorted = (list) => Float64Array.from(list, (value) => value ?? NaN).sort();
  const a = sorted(have), b = sorted(printed);
  const off = a.findIndex((value, k) => !(value === b[k] || (value !== value && b[k] !== b[k]) || (/ (phasors|error|query-factor) /.test(command) && Math.abs(value - b[k]) <= 1e-15 * Math.max(0.5, Math.abs(b[k])))));
  assert.equal(off, -1, `${command}: ${a[off]} is ${b[off]} there`);
  return { command, numbers: have };
}
