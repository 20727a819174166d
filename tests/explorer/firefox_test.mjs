// Every page in Firefox: it opens, its figures are drawn by the library, and keys and the pointer read them. Driven by Marionette,
// which Debian's firefox-esr has built in.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

const { FIREFOX, POSENC, SOURCE } = process.env;
const pages = [...readFileSync(join(SOURCE, 'explorer/src/titles.ts'), 'utf8').matchAll(/\{ id: '(\w+)'/g)].map(([, id]) => id);
let folder, server, browser, socket, address, count = 0, left = Buffer.alloc(0);
const waiting = new Map();

function take(data) {
  left = Buffer.concat([left, data]);
  for (;;) {
    const colon = left.indexOf(':'), size = Number(left.toString('latin1', 0, colon));
    if (colon < 0 || left.length < colon + 1 + size) return;
    const message = JSON.parse(left.toString('utf8', colon + 1, colon + 1 + size));
    left = left.subarray(colon + 1 + size);
    if (Array.isArray(message)) waiting.get(message[1])?.(message);
  }
}
const ask = (command, parameters = {}) => new Promise((resolve, reject) => {
  const id = ++count, text = Buffer.from(JSON.stringify([0, id, command, parameters]));
  waiting.set(id, ([, , error, result]) => (error ? reject(new Error(`${command}: ${error.message}`)) : resolve(result)));
  socket.write(Buffer.concat([Buffer.from(`${text.length}:`), text]));
});
const run = async (script, ...args) => (await ask('WebDriver:ExecuteAsyncScript', { script: `const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -1); (async () => { ${script} })().then(done, (error) => done({ failed: String(error) }));`, args, scriptTimeout: 60_000 })).value;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'posenc-'));
  const port = await new Promise((resolve) => { const free = net.createServer().listen(0, '127.0.0.1', () => { const { port } = free.address(); free.close(() => resolve(port)); }); });
  // nothing leaves the machine
  writeFileSync(join(folder, 'user.js'), [['marionette.port', port], ['network.proxy.type', 1], ['network.proxy.http', '127.0.0.1'], ['network.proxy.http_port', 9], ['network.proxy.ssl', '127.0.0.1'], ['network.proxy.ssl_port', 9], ['network.proxy.no_proxies_on', '127.0.0.1, localhost'], ['app.update.enabled', false], ['browser.shell.checkDefaultBrowser', false], ['datareporting.policy.dataSubmissionEnabled', false], ['toolkit.telemetry.enabled', false], ['network.captive-portal-service.enabled', false], ['network.connectivity-service.enabled', false], ['services.settings.server', 'http://127.0.0.1:9']]
    .map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`).join('\n'));
  server = spawn(POSENC, ['explore', '--quiet'], { stdio: ['ignore', 'pipe', 'inherit'] });
  address = await new Promise((resolve) => server.stdout.once('data', (text) => resolve(String(text).trim())));
  browser = spawn(FIREFOX, ['--headless', '--marionette', '--no-remote', '--profile', folder, '--width', '1280', '--height', '900', 'about:blank'], { stdio: 'ignore', env: { ...process.env, HOME: folder, MOZ_CRASHREPORTER_DISABLE: '1' } });
  for (let tries = 0; !socket; ++tries) {
    socket = await new Promise((resolve) => { const one = net.connect(port, '127.0.0.1', () => resolve(one)).on('error', () => resolve(undefined)); });
    if (socket) break;
    assert.ok(tries < 150, 'Firefox does not start');
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  socket.on('data', take);
  await ask('WebDriver:NewSession', {});
  await ask('WebDriver:Navigate', { url: `${address}#v=1&p=guides` });
});
after(async () => {
  await ask('Marionette:Quit', { flags: ['eForceQuit'] }).catch(() => undefined);
  socket?.destroy();
  browser?.kill();
  server?.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
});

const open = (id, more = '') => run(`
  const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
  window.wrong ??= [];
  window.onerror = (message) => window.wrong.push(message);
  location.hash = '#v=1&p=' + given[0] + given[1];
  const end = performance.now() + 40000;
  while (!document.querySelector('#page-' + given[0] + '[data-ready=yes]')) { if (performance.now() > end) return { failed: given[0] + ' does not open' }; await pause(20); }
  for (let calm = 0; calm < 3;) { if (performance.now() > end) return { failed: given[0] + ' is never at rest' }; await pause(60); calm = document.querySelector('main [data-waiting]') ? 0 : calm + 1; }
  return { words: document.querySelector('main').innerText.length, refused: document.querySelectorAll('.refused').length, wrong: window.wrong.splice(0), wide: document.documentElement.scrollWidth,
    figures: [...document.querySelectorAll('pe-figure')].map((one) => [one.numbers().length, one.querySelector('svg.drawing') !== null]) };`, id, more);

test('every page opens, and its figures are drawn', async (t) => {
  let figures = 0;
  for (const id of pages) {
    const seen = await open(id);
    assert.equal(seen.failed, undefined, seen.failed);
    assert.ok(seen.words > (id === 'search' ? 40 : 200), id);
    assert.deepEqual([seen.refused, seen.wrong], [0, []], id);
    assert.ok(seen.wide <= 1280, `${id} is ${seen.wide} wide`);
    for (const [numbers, isDrawn] of seen.figures) assert.ok(numbers > 5 && isDrawn, id);
    figures += seen.figures.length;
  }
  assert.ok(figures >= 18, String(figures));
  t.diagnostic(`${figures} figures`);
});

test('keys move the cursor, the pointer reads a value of the table', async () => {
  await open('waves', '&d=16&len=64&m=20');
  const seen = await run(`
    const figure = document.querySelectorAll('pe-figure')[1], surface = figure.querySelector('.surface'), map = figure.querySelector('canvas.heat');
    document.querySelector('pe-figure .surface').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
    const said = document.getElementById('live').textContent;
    map.scrollIntoView({ block: 'center' });
    const box = map.getBoundingClientRect();
    surface.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: box.x + box.width * 3.5 / 16, clientY: box.y + box.height * 20.5 / 64 }));
    return { said, read: figure.querySelector('.readout').innerText };`);
  assert.match(seen.said, /m = 21/);
  const value = Number(/([−\d.]+)\s*$/.exec(seen.read.trim())[1].replace('−', '-'));
  assert.match(seen.read, /position 20, feature 3/);
  assert.ok(Math.abs(value - Math.cos(20 * 10000 ** (-2 / 16))) < 1e-4, seen.read);
});

test('a model reads a text', async () => {
  const seen = await open('model', '&ms=alibi&chars=128');
  assert.equal(seen.failed, undefined);
  assert.match(await run(`return document.querySelector('.reading').textContent;`), /ALiBi: [\d.]+ nats/);
});
