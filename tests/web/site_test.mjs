// The site as a static host serves it: unpacked somewhere below its root, by Python's plain server, in a browser.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

const { SOURCE, POSENC, WEB, CHROMIUM, PYTHON } = process.env;
const folder = mkdtempSync(join(tmpdir(), 'posenc-site-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const pack = (out) => execFileSync('bash', ['-c', 'set -euo pipefail; root=$1; source "$root/packaging/archive.sh"; pack_site "$2" "$3"', 'bash', SOURCE, POSENC, out], { encoding: 'utf8' }).trim();
const sha = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');
const archive = pack(join(folder, 'out'));
const below = join(folder, 'host/any/path');
mkdirSync(below, { recursive: true });
execFileSync('tar', ['-xzf', archive, '-C', below]);
const [site] = readdirSync(below);

test('the archive is reproducible and has one folder', () => {
  const [, version] = /POSENC_VERSION "(.*)"/.exec(readFileSync(join(SOURCE, 'include/posenc/version.h'), 'utf8'));
  assert.deepEqual(readdirSync(below), [`posenc-site-${version}`]);
  assert.equal(archive, join(folder, 'out', `posenc-site-${version}.tar.gz`));
  assert.equal(sha(pack(join(folder, 'again'))), sha(archive));
});

test('no file asks for one at the root of the host', () => {
  for (const name of readdirSync(join(below, site)).filter((one) => /\.(html|css)$/.test(one))) {
    const found = /(?:href|src)="\/[^"]*"|url\(["']?\//.exec(readFileSync(join(below, site, name), 'utf8'));
    assert.equal(found, null, `${name}: ${found?.[0]}`);
  }
});

test('every page loads below any path, without a request that fails', { skip: CHROMIUM ? false : 'there is no chromium here' }, async () => {
  const server = spawn(PYTHON, ['-u', '-m', 'http.server', '--bind', '127.0.0.1', '--directory', join(folder, 'host'), '0'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const port = await new Promise((resolve) => server.stdout.once('data', (text) => resolve(/port (\d+)/.exec(text)[1])));
  const { chromium } = createRequire(join(WEB, 'package.json'))('playwright-core');
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  try {
    const address = `http://127.0.0.1:${port}/any/path/${site}/`;
    const titles = readFileSync(join(SOURCE, 'explorer/src/titles.ts'), 'utf8');
    const pages = [...titles.matchAll(/\{ id: '(\w+)'/g)].map(([, id]) => id);
    assert.ok(pages.length > 8);
    const tab = await browser.newPage(), faults = [], asked = new Set();
    tab.on('request', (request) => { asked.add(request.url()); });
    tab.on('requestfailed', (request) => faults.push(`${request.url()}: ${request.failure()?.errorText}`));
    tab.on('response', (response) => { if (response.status() >= 400) faults.push(`${response.url()}: ${response.status()}`); });
    tab.on('pageerror', (error) => faults.push(error.message));
    await tab.goto(address);
    for (const id of pages) {
      await tab.evaluate((to) => { location.hash = to; }, `#p=${id}`);
      await tab.waitForSelector(`#page-${id}[data-ready=yes]`, { timeout: 60_000 });
    }
    assert.deepEqual(faults, []);
    assert.deepEqual([...asked].filter((url) => !url.startsWith(address) && !/^(data|blob):/.test(url)), []);
    assert.ok([...asked].some((url) => url.endsWith('/figures.wasm')));
  } finally {
    await browser.close();
    server.kill();
  }
});
