// Every page in a real browser: from the program, from an exported folder and from one file. One browser for all.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { contrast } from './contrast.mjs';
import { POSENC, axe, complaints, contextOf, go, open, pages, places, setUp, settled, shownPage, tearDown, whole } from './site.mjs';

let address, context, page;
before(async () => {
  await setUp();
  address = places.program;
  context = await contextOf();
  page = await open(context, address);
});
after(tearDown);

for (const place of ['folder', 'file']) {
  test(`every page opens from the ${place}`, async () => {
    const context = await contextOf();
    const page = await open(context, places[place]);
    for (const id of pages) {
      await go(page, `#v=1&p=${id}`);
      assert.ok((await page.locator('main').innerText()).length > (id === 'search' ? 50 : 200), id);
      assert.equal(await page.locator('.refused').count(), 0, id);
    }
    await context.close();
    assert.deepEqual(complaints.splice(0), []);
  });
}

test('every page opens from the program, no wider than 320 pixels, without axe violations in light and dark', async () => {
  const context = await contextOf({ viewport: { width: 320, height: 700 }, reducedMotion: 'reduce' });
  const page = await open(context, address);
  await page.evaluate(axe);
  const violations = (context, options) => page.evaluate(async ([where, more]) => (await window.axe.run(where ?? document, { resultTypes: ['violations'], preload: false, ...more })).violations
    .map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 160)} ${one.nodes[0].failureSummary?.slice(0, 200)}`), [context, options]);
  // Axe judges the whole document by every rule, once. Colours are judged in light and in dark: every text by the formula
  // (contrast.mjs), and by axe one element of each kind (tag, class, font, colours, what is behind it) that no page had
  // before: hundreds of cells that look alike need not be looked at one by one, twice.
  const ofColours = ['color-contrast', 'link-in-text-block'], known = new Set();
  await page.evaluate(() => window.axe.configure({ rules: [{ id: 'color-contrast', selector: '[data-kind]' }] }));
  const looks = async (options) => {
    await page.evaluate(contrast);
    const { pale, kinds } = await page.evaluate(() => window.paleTexts());
    const seen = kinds.filter(([kind]) => known.has(kind)).map(([, at]) => at);  // a text that was drawn anew since has no mark
    kinds.forEach(([kind]) => known.add(kind));
    await page.evaluate((marks) => marks.forEach((at) => document.querySelector(`[data-kind="${at}"]`)?.removeAttribute('data-kind')), seen);
    const found = options.runOnly && seen.length === kinds.length ? [] : await violations(null, options);
    await page.evaluate(() => document.querySelectorAll('[data-kind]').forEach((one) => one.removeAttribute('data-kind')));
    return [...pale, ...found];
  };
  const colours = () => looks({ runOnly: ofColours });
  for (const id of pages) {
    await page.emulateMedia({ colorScheme: 'light' });
    await go(page, `#v=1&p=${id}`);
    await whole(page, id);
    assert.ok((await page.locator('main').innerText()).length > (id === 'search' ? 50 : 200), id);
    assert.equal(await page.locator('.refused').count(), 0, id);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 320, `${id} is ${wide} wide`);
    // a number beside its name keeps some width, and labels within a figure do not lie upon each other
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('.facts dd')].filter((one) => one.clientWidth < 48).map((one) => `${one.textContent} has ${one.clientWidth} pixels`)), [], id);
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('svg.drawing')].flatMap((drawing) => {
      const boxes = [...drawing.querySelectorAll('text')].filter((one) => one.textContent).map((one) => [one.textContent, one.getBoundingClientRect()]);
      return boxes.flatMap(([text, a], i) => boxes.slice(i + 1).filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5).map(([other]) => `${text} | ${other}`));
    })), [], id);
    const moving = await page.evaluate(() => document.getAnimations().length + [...document.querySelectorAll('*')].filter((one) => getComputedStyle(one).transitionDuration !== '0s').length);
    assert.equal(moving, 0, `${id} moves where nobody wants it to`);
    assert.deepEqual(await looks({}), [], `${id}, light`);
    if (id === 'schemes') {
      const schemes = JSON.parse(execFileSync(POSENC, ['list', '--json']));
      assert.equal(await page.locator('table.schemes tbody tr').count(), schemes.length);
    }
    await page.emulateMedia({ colorScheme: 'dark' });
    assert.deepEqual(await colours(), [], `${id}, dark`);
    // paper: light whatever the screen is, without what can only be pressed
    await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
    const paper = await page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('main')).color,
      [...document.querySelectorAll('header, nav, .tools, .controls, footer.steps')].filter((one) => one.checkVisibility()).length]);
    assert.deepEqual(paper, ['rgb(255, 255, 255)', 'rgb(0, 0, 0)', 0], `${id} on paper`);
    await page.emulateMedia({ media: 'screen' });
  }
  // the check itself: a text that is too pale is found, in the dark alone
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('@media (prefers-color-scheme: dark) { h1 { color: #333; } }');
    document.adoptedStyleSheets = [sheet];
  });
  assert.match((await colours()).join(), /contrast 1\.\d.*<h1.*color-contrast.*<h1/s);
  await page.emulateMedia({ colorScheme: 'light' });
  assert.deepEqual(await colours(), []);
  await context.close();
  assert.deepEqual(complaints.splice(0), []);
});

test('forced colours leave what colours say', async () => {
  const context = await contextOf({ forcedColors: 'active' });
  const page = await open(context, address);
  for (const id of ['waves', 'schemes', 'model', 'frank', 'rope']) {
    await go(page, `#v=1&p=${id}`);
    await whole(page, id);
    const seen = await page.evaluate(() => {
      const look = (one, name) => getComputedStyle(one)[name], paper = look(document.body, 'backgroundColor');
      const strokes = [...document.querySelectorAll('.stroke:not(.bare), .hand')].map((one) => look(one, 'stroke'));
      const marked = [...document.querySelectorAll('.tinted .t7, nav a[aria-current], .mark.holds, .bar .filled')].map((one) => look(one, 'backgroundColor') + look(one, 'backgroundImage'));
      return { isForced: matchMedia('(forced-colors: active)').matches, paper, lost: strokes.filter((one) => one === paper || one === 'none').length, same: marked.filter((one) => one === `${paper}none`).length, marked: marked.length };
    });
    assert.ok(seen.isForced && seen.marked > 0, id);
    assert.deepEqual([seen.lost, seen.same], [0, 0], `${id}: ${JSON.stringify(seen)}`);
  }
  await context.close();
  assert.deepEqual(complaints.splice(0), []);
});

test('maps follow the colours of the system', async () => {
  await go(page, '#v=1&p=waves&d=16&len=64');
  const corner = () => page.locator('pe-figure canvas.heat').first().evaluate((one) => one.toDataURL());
  const light = await corner();
  await page.emulateMedia({ colorScheme: 'dark' });
  await settled(page);
  assert.notEqual(await corner(), light);
  // paper is light
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  assert.equal(await corner(), light);
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  assert.notEqual(await corner(), light);
  await page.emulateMedia({ colorScheme: 'light' });
  await settled(page);
  assert.equal(await corner(), light);
});

test('a link restores the view; numbers are held in range; unknown keys are ignored', async () => {
  await go(page, '#v=1&p=waves&d=32&base=500&len=300&m=40');
  const numbers = (one) => one.locator('pe-figure').first().evaluate((figure) => JSON.stringify(figure.numbers()));
  const link = await page.evaluate(() => location.href), seen = await numbers(page);
  const other = await open(context, link);
  await other.waitForSelector('#page-waves[data-ready=yes]');
  await settled(other);
  assert.equal(await numbers(other), seen);
  assert.equal(await other.getByLabel('Width d').first().inputValue(), '32');
  await other.close();
  await go(page, '#v=1&p=waves&d=99999&nonsense=1&m=-5&base=abc');
  assert.equal(await page.getByLabel('Width d').first().inputValue(), '512');
});

test('a link that is followed wins over an address that waits to be written', async () => {
  await go(page, '#v=1&p=waves&m=37');
  // the event of the new address is held back until the old view would have been written
  const address = await page.evaluate(async () => {
    addEventListener('hashchange', (event) => event.stopImmediatePropagation(), { capture: true, once: true });
    document.querySelector('pe-figure .surface').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
    location.hash = '#v=1&p=exact';
    await new Promise((resolve) => setTimeout(resolve, 250));
    return location.hash;
  });
  assert.equal(address, '#v=1&p=exact');
  await page.evaluate(() => dispatchEvent(new HashChangeEvent('hashchange')));
  await page.waitForSelector('#page-exact[data-ready=yes]');
});

test('keys move the cursor of all figures, and it is announced', async () => {
  await go(page, '#v=1&p=waves&m=37');
  const surface = page.locator('pe-figure .surface').first();
  await surface.focus();
  for (const [key, m] of [['ArrowRight', '38'], ['Shift+ArrowRight', '48'], ['PageUp', '96'], ['PageDown', '48'], ['End', '127'], ['Home', '0']]) {
    await page.keyboard.press(key);
    assert.equal(await page.getByLabel('Position m').first().inputValue(), m, key);
  }
  await page.keyboard.press('ArrowRight');
  assert.match(await page.locator('#live').innerText(), /m = 1, .*0\.8415/);
  await settled(page);
  assert.match(await page.locator('pe-figure').nth(2).locator('.command code').textContent(), /--at 1/);
  await page.waitForFunction(() => /m=1\b/.test(location.hash));
});

const figuresInSight = (page) => page.evaluate(() => [...document.querySelectorAll('pe-figure svg.drawing, pe-story table, table.schemes')].filter((one) => one.checkVisibility() && one.getBoundingClientRect().width > 50).length);

test('a guess is asked once, is remembered, and hides no figure', async () => {
  const context = await contextOf({}, 'on');
  const page = await open(context, `${address}#v=1&p=waves`);
  await shownPage(page, 'waves');
  assert.equal(await figuresInSight(page), 3);
  assert.equal(await page.locator('.guess').evaluate((one) => one.open), true);
  // the keys that its answers show
  await page.keyboard.press('1');
  assert.match(await page.locator('.guess .verdict').innerText(), /Not quite/);
  await page.keyboard.press('2');
  assert.match(await page.locator('.guess .verdict').innerText(), /Right/);
  await page.reload();
  await shownPage(page, 'waves');
  assert.equal(await page.locator('.guess').evaluate((one) => one.open), false);
  await page.locator('.guess summary').click();
  assert.match(await page.locator('.guess .verdict').innerText(), /Right/);
  await page.getByRole('button', { name: 'No guesses on any page' }).click();
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H2');
  await context.close();
});

test('a line is drawn before it is shown: once, by hand or by a key, never on paper or in a link', async () => {
  const context = await contextOf({}, 'on');
  const page = await open(context, `${address}#v=1&p=rope`);
  await shownPage(page, 'rope');
  const line = page.locator('.right-one'), words = page.locator('.sketch-words'), curve = page.locator('.trace-holder').first();
  const isSeen = () => line.evaluate((one) => getComputedStyle(one).visibility === 'visible');
  assert.equal(await isSeen(), false);
  await words.getByRole('button', { name: 'Show the line' }).waitFor();
  await page.emulateMedia({ media: 'print' });
  assert.deepEqual([await isSeen(), await words.isVisible()], [true, false]);
  await page.emulateMedia({ media: 'screen' });
  // a touch is no line; a level one at 1 is as far from the score as its mean is below 1
  await curve.evaluate((one) => one.scrollIntoView({ block: 'center' }));
  const box = await curve.locator('rect.plot').boundingBox(), middle = box.x + box.width / 2;
  await page.mouse.click(middle + 40, box.y + 30);
  assert.equal(await isSeen(), false);
  await page.mouse.move(middle, box.y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width, box.y, { steps: 12 });
  await page.mouse.up();
  assert.equal(await isSeen(), true);
  const score = (distance) => Array.from({ length: 8 }, (_, i) => Math.cos(distance * 10000 ** (-i / 8)) / 8).reduce((sum, one) => sum + one);
  const mean = Array.from({ length: 256 }, (_, distance) => 1 - score(distance)).reduce((sum, one) => sum + one) / 256;
  const away = Number(/your line, ([\d.]+) from the score/.exec(await words.innerText())[1]);
  assert.ok(Math.abs(away - mean) < 0.02, `${away} is ${mean}`);
  // remembered
  await page.reload();
  await shownPage(page, 'rope');
  assert.equal(await isSeen(), true);
  assert.match(await words.innerText(), new RegExp(`your line, ${away} from`));
  // again, and shown without drawing
  await words.getByRole('button', { name: 'Draw again' }).press('Enter');
  assert.equal(await isSeen(), false);
  await words.getByRole('button', { name: 'Show the line' }).press('Enter');
  assert.deepEqual([await isSeen(), await page.locator('.own').getAttribute('d')], [true, '']);
  await context.close();
  const linked = await contextOf({}, 'on'), other = await open(linked, `${address}#v=1&p=rope&m=40`);
  await shownPage(other, 'rope');
  assert.equal(await other.locator('.right-one').evaluate((one) => getComputedStyle(one).visibility), 'visible');
  await linked.close();
  assert.deepEqual(complaints.splice(0), []);
});

test('the tour and a link to a view show their figures to somebody who has answered no guess', async () => {
  const context = await contextOf({}, 'on');
  const page = await open(context, address);
  await page.getByRole('link', { name: /Take the tour/ }).click();
  const stops = JSON.parse(readFileSync(new URL('../../content/tour.json', import.meta.url), 'utf8'));
  for (const [index, stop] of stops.entries()) {
    const id = /p=(\w+)/.exec(stop.view)[1];
    await shownPage(page, id);
    await page.waitForFunction((words) => document.querySelector('aside.tour')?.textContent.startsWith(words), `${index + 1} of `);
    await page.waitForFunction(() => document.querySelector('pe-figure svg.drawing, pe-story table, table.schemes tbody tr'));
    assert.ok(await figuresInSight(page) > 0, `stop ${index + 1}`);
    assert.equal(await page.locator('.guess').evaluate((one) => one.open), false, `stop ${index + 1}`);
    if (index + 1 < stops.length) await page.locator('aside.tour').getByRole('link', { name: 'Next' }).click();
  }
  await go(page, '#v=1&p=waves&d=32&m=100');
  assert.equal(await figuresInSight(page), 3);
  assert.equal(await page.locator('.guess').evaluate((one) => one.open), false);
  await context.close();
});

test('paper has the figures, drawn, while a guess is open', async () => {
  const context = await contextOf({}, 'on');
  const page = await open(context, `${address}#v=1&p=waves`);
  await shownPage(page, 'waves');
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await page.emulateMedia({ media: 'print' });
  assert.equal(await figuresInSight(page), 3);
  assert.equal(await page.locator('.guess').isVisible(), false);
  assert.ok(await page.locator('pe-figure .command').first().isVisible());
  await context.close();
});

test('a link to no page, or of a later version, says so; back returns to where the page was left', async () => {
  const other = await open(context, `${address}#v=1&p=nope`);
  await other.waitForSelector('#page-none');
  assert.match(await other.locator('main').innerText(), /no page “nope”/);
  await other.goto('about:blank');
  await other.goto(`${address}#v=2&p=waves`);
  await other.waitForSelector('#page-none');
  assert.match(await other.locator('main').innerText(), /later version/);
  await other.getByRole('link', { name: 'To the start' }).click();
  await shownPage(other, 'start');
  await go(other, '#v=1&p=waves');
  await other.evaluate(() => scrollTo(0, 900));
  await other.waitForFunction(() => scrollY === 900);
  await other.waitForTimeout(50);
  await go(other, '#v=1&p=exact');
  assert.equal(await other.evaluate(() => scrollY), 0);
  await other.goBack();
  await shownPage(other, 'waves');
  await other.waitForFunction(() => scrollY === 900);
  await go(other, '#v=1&p=context&model=%7B%7D');
  assert.equal(await other.locator('.refused').count(), 0);
  await other.close();
  assert.deepEqual(complaints.splice(0), []);
});

test('each page has an address, a title and a text of its own', async () => {
  const still = await contextOf({ javaScriptEnabled: false });
  for (const id of ['waves', 'rope', 'stories', 'exact']) {
    const bare = await still.newPage();
    await bare.goto(`${places.folder}${id}.html`);
    assert.match(await bare.title(), / · posenc$/);
    assert.equal(await bare.locator('meta[property="og:title"]').getAttribute('content'), await bare.title());
    assert.ok((await bare.locator('meta[name=description]').getAttribute('content')).length > 20);
    assert.ok((await bare.locator('main').innerText()).length > 100, id);
    // a figure where no script runs, and the picture of a preview
    assert.ok(await bare.locator('main img').evaluate((image) => image.naturalWidth === 900 && image.naturalHeight > 100), id);
    const picture = await (await fetch(`${places.folder}${await bare.locator('meta[property="og:image"]').getAttribute('content')}`)).arrayBuffer(), view = new DataView(picture);
    assert.deepEqual([view.getUint32(0), view.getUint32(16), view.getUint32(20)], [0x89504e47, 1200, 630], id);
    await bare.close();
    const alive = await open(context, `${places.folder}${id}.html`);
    await shownPage(alive, id);
    await alive.close();
  }
  await still.close();
  assert.deepEqual(complaints.splice(0), []);
});

test('the first figure is in the page before its scripts, and not in a view of somebody\'s own', async () => {
  const other = await contextOf(), page = await other.newPage();
  await page.route('**/main.js', (route) => route.abort());
  for (const id of ['waves', 'context', 'images']) {
    await page.goto(`${places.folder}${id}.html`);
    await page.waitForFunction(() => document.querySelector('.first img')?.naturalWidth === 900);
    assert.ok(await page.locator('.first img').isVisible(), id);
  }
  await page.goto(`${places.folder}frank.html`);
  assert.equal(await page.locator('table.first td:visible').count(), 24);
  await page.goto(`${places.folder}waves.html#v=1&p=waves&d=16`);
  await page.waitForFunction(() => document.documentElement.dataset.view === 'own');
  assert.ok(!await page.locator('.first img').isVisible());
  await page.unroute('**/main.js');
  // what the reference lists and the first exercise need no module
  await page.route('**/*.wasm', (route) => route.abort());
  for (const [id, there] of [['reference', '.entry'], ['practice', '.exercise form']]) {
    await page.goto(`${places.folder}${id}.html`);
    await page.waitForSelector(there);
  }
  await other.close();
});

test('the picture that stands for a page is its first figure, as it opens', async () => {
  const text = readFileSync(new URL('../../explorer/src/covers.ts', import.meta.url), 'utf8').split('// pages whose first figure is another')[0];
  const covers = [...text.matchAll(/^  (\w+): (['`])(.*)\2,$/gm)];
  assert.ok(covers.length >= 10);
  for (const [, id, , words] of covers) {
    await go(page, `#v=1&p=${id}`);
    await whole(page, id);
    const commands = await page.locator('pe-figure .command code').allTextContents();
    assert.ok(commands.includes(`posenc plot ${words}`), `${id}: ${commands.join('; ')}`);
  }
});

test('opened from a folder by a browser that runs no scripts there, the page says why', async () => {
  const other = await context.newPage();
  await other.goto(`file://${places.scratch}/site/index.html`);
  await other.waitForFunction(() => /posenc explore --single-file/.test(document.querySelector('main').innerText), null, { timeout: 8000 });
  await other.close();
});

test('stories: words are shuffled, cells open', async () => {
  await go(page, '#v=1&p=order');
  await page.locator('.word').first().focus();
  await page.keyboard.press('Alt+ArrowRight');
  await page.waitForFunction(() => document.querySelector('pe-story .command code')?.textContent?.includes('bites dog man'));
  await go(page, '#v=1&p=frank');
  await page.getByRole('button', { name: /^K' Frank knows-upscale/ }).click();
  await page.waitForFunction(() => /1\.86205/.test(document.querySelector('pe-story')?.textContent ?? ''));
});

test('a config and two tensors are read', async () => {
  await go(page, '#v=1&p=context');
  await page.locator('#config-file').setInputFiles({ name: 'config.json', mimeType: 'application/json', buffer: Buffer.from('{"model_type":"llama","hidden_size":64,"num_attention_heads":2,"num_hidden_layers":3,"rope_theta":1234.5,"max_position_embeddings":77}') });
  await page.waitForFunction(() => /base 1,234\.5/.test(document.querySelector('.result')?.textContent ?? ''));
  await page.locator('#config-file').setInputFiles({ name: 'bad.json', mimeType: 'application/json', buffer: Buffer.from('{"model_type": "nobody"}') });
  await page.waitForFunction(() => /bad\.json: .*nobody/.test(document.querySelector('.result .refused')?.textContent ?? ''));
  await go(page, '#v=1&p=check');
  await page.locator('#try-example').click();
  await page.waitForFunction(() => /^Sure: one convention/.test(document.querySelector('.result')?.textContent ?? ''));
  assert.match(await page.locator('.result').innerText(), /interleaved/);
  assert.match(await page.locator('.result').innerText(), /base 500,000/);
});

test('an exercise is graded; cards print one on a page', async () => {
  await go(page, '#v=1&p=practice&seed=7');
  await page.getByRole('button', { name: 'Show answer' }).click();
  const answer = await page.locator('.exercise .verdict strong').innerText();
  await page.locator('#answer').fill(answer);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => /Right/.test(document.querySelector('.exercise .verdict')?.textContent ?? ''));
  await page.locator('#answer').fill('123456.789');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => /Not quite/.test(document.querySelector('.exercise .verdict')?.textContent ?? ''));
  const cards = await page.locator('.print-card').count();
  const pdf = (await page.pdf({ format: 'A5' })).toString('latin1');
  const count = Math.max(...[...pdf.matchAll(/\/Count (\d+)/g)].map((match) => Number(match[1])));
  assert.equal(count, cards);
});

test('wheel, two fingers and keys zoom', async () => {
  const context = await contextOf({ hasTouch: true });
  const page = await open(context, address);
  await go(page, '#v=1&p=waves&len=128');
  const surface = page.locator('pe-figure .surface').first();
  const length = () => page.evaluate(() => Number(new URLSearchParams(location.hash.slice(1)).get('len') ?? 128));
  const until = (wanted) => page.waitForFunction((value) => Number(new URLSearchParams(location.hash.slice(1)).get('len') ?? 128) === value, wanted);
  await surface.hover();
  // a pointer that passes by scrolls the page
  await page.mouse.wheel(0, 120);
  assert.equal(await length(), 128);
  await surface.focus();
  await page.keyboard.press('-');
  await until(256);
  await page.keyboard.press('+');
  await page.keyboard.press('+');
  await until(64);
  await surface.hover();
  await page.mouse.wheel(0, 480);
  await page.waitForFunction(() => Number(new URLSearchParams(location.hash.slice(1)).get('len')) > 64);
  const wide = await length();
  await surface.evaluate((one) => {
    const finger = (type, id, x) => one.dispatchEvent(new PointerEvent(type, { pointerId: id, pointerType: 'touch', buttons: 1, bubbles: true, clientX: x, clientY: 300 }));
    one.setPointerCapture = () => {};
    finger('pointerdown', 1, 200);
    finger('pointerdown', 2, 300);
    finger('pointermove', 2, 400);  // twice as far apart: half as many positions
    finger('pointerup', 2, 400);
    finger('pointerup', 1, 200);
  });
  await until(wide / 2);
  await settled(page);
  const command = await page.locator('pe-figure .command code').first().innerText();
  assert.match(command, new RegExp(`--zoom 0:${wide / 2}$`));
  await context.close();
});

test('guides are pages, and the search finds them', async () => {
  await page.getByRole('searchbox', { name: 'Search' }).fill('yarn magnitude');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#page-search[data-ready=yes]');
  const found = page.locator('.found a');
  assert.ok(await found.count() > 2);
  await page.locator('.found li', { hasText: 'Guide: RoPE' }).first().locator('a').click();
  await page.waitForSelector('#page-guides[data-ready=yes]');
  assert.match(await page.locator('.guide h2').innerText(), /RoPE/);
  assert.match(page.url(), /part=/);
  // every guide of docs/ is there, with its tables and code
  const ids = await page.locator('#page-guides select option').evaluateAll((options) => options.map((one) => one.value));
  for (const id of ['command-line', 'rope', 'attention', 'models', 'python', 'c', 'practice', 'concepts']) assert.ok(ids.includes(id), id);
  await go(page, '#v=1&p=guides&g=models');
  await page.waitForFunction(() => /config/.test(document.querySelector('.guide pre')?.textContent ?? ''));
  assert.ok(await page.locator('.guide table').count() > 0);
  await go(page, '#v=1&p=search&q=zzzzqq');
  await page.waitForFunction(() => /0 found/.test(document.querySelector('#page-search')?.textContent ?? ''));
  assert.deepEqual(complaints.splice(0), []);
});

test('a guide that does not arrive says so, and nothing else is lost', async () => {
  const other = await contextOf(), fresh = await other.newPage();
  await fresh.route('**/concepts-*.js', (route) => route.abort());
  await fresh.goto(`${places.program}#v=1&p=guides&g=models`);
  await shownPage(fresh, 'guides');
  const said = (words) => fresh.waitForFunction((text) => document.querySelector('.guide:not([data-waiting])')?.textContent.includes(text), words);
  await said('config');
  await go(fresh, '#v=1&p=guides&g=concepts');
  await said('did not arrive');
  await go(fresh, '#v=1&p=guides&g=models');
  await said('config');
  await go(fresh, '#v=1&p=search&q=config');
  assert.ok(await fresh.locator('.found a').count() > 2);
  await other.close();
});

test('nothing moves while a page appears', async () => {
  const shifts = [];
  const all = pages.map((id) => (id === 'stories' ? 'stories&story=rope' : id === 'search' ? 'search&q=yarn' : id));
  for (const [viewport, ids] of [[{ width: 390, height: 844 }, all], [{ width: 1280, height: 900 }, all]]) {
    const context = await contextOf({ viewport }, 'on');
    await context.addInitScript(() => {
      window.shifted = 0;
      new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value; }).observe({ type: 'layout-shift', buffered: true });
    });
    const page = await context.newPage();
    for (const id of ids) {
      await page.goto('about:blank');
      await page.goto(`${places.folder}#v=1&p=${id}`);
      await shownPage(page, id.split('&')[0]);
      if (id === 'schemes') await page.waitForSelector('table.schemes tbody tr:nth-child(3)');
      const shifted = await page.evaluate(() => new Promise((resolve) => setTimeout(() => resolve(window.shifted), 150)));
      if (shifted >= 0.05) shifts.push(`${id}, ${viewport.width} px: ${shifted.toFixed(3)}`);
    }
    await context.close();
  }
  assert.deepEqual(shifts, []);
});

test('a figure alone, in a frame of another page', async () => {
  const context = await contextOf({ viewport: { width: 800, height: 500 } });
  // the address of the guide's frame, with fewer features
  const [, shown] = /<iframe src="posenc\/([^"]*)"/.exec(readFileSync(`${process.env.SOURCE}/docs/guide/explorer.md`, 'utf8'));
  assert.match(shown, /&d=32&/);
  const page = await open(context, places.folder + shown.replace('&d=32&', '&d=16&'));
  await shownPage(page, 'waves');
  await page.waitForSelector('.whole-page');
  const seen = () => page.evaluate(() => ({ figures: [...document.querySelectorAll('pe-figure')].map((one) => one.checkVisibility()), around: [...document.querySelectorAll('header, nav, h1, h2, .goal, .steps, main p:not(pe-figure *, :has(.whole-page)), .guess')].filter((one) => one.checkVisibility()).map((one) => one.outerHTML.slice(0, 60)) }));
  assert.deepEqual(await seen(), { figures: [false, true, false], around: [] });
  // its controls work, and the link leads to the same view of the whole page
  await page.getByLabel('Base').first().focus();
  await page.keyboard.press('PageUp');
  await settled(page);
  assert.match(await page.locator('pe-figure .command code').nth(1).textContent(), /--width 16 --base 20000/);
  const link = await page.locator('.whole-page').getAttribute('href');
  assert.ok(!link.includes('embed') && link.includes('base=20000') && link.includes('p=waves'), link);
  // by the name alone, and a page without that many figures is whole
  await page.goto(`${places.folder}?embed=rope`);
  await shownPage(page, 'rope');
  await page.waitForSelector('.whole-page');
  assert.ok(await page.locator('.rope-view').isVisible());
  assert.equal(await page.locator('nav').isVisible(), false);
  await page.goto(`${places.folder}?embed=guides`);
  await shownPage(page, 'guides');
  await page.waitForSelector('.whole-page');
  assert.ok(await page.locator('.guide h2').isVisible());
  await context.close();
  assert.deepEqual(complaints.splice(0), []);
});

test('an address that the site does not have leads to those it has', async () => {
  const bare = await context.newPage();
  for (const address of [places.program, places.folder]) {
    const answer = await bare.goto(`${address}nowhere.html`);
    assert.equal(answer.status(), 404);
    assert.equal(await bare.locator('h1').innerText(), 'Not found');
    await bare.getByRole('link', { name: 'Waves' }).click();
    await shownPage(bare, 'waves');
  }
  await bare.close();
});

test('first load', async (t) => {
  const { gzipSync } = await import('node:zlib');
  const context = await contextOf();
  const page = await context.newPage();
  let bytes = 0;
  page.on('response', async (response) => {
    if (response.url().endsWith('.woff2')) return;
    const body = await response.body();  // before the sum is read: several responses wait at once
    bytes += gzipSync(body, { level: 9 }).length;
  });
  await page.goto(address);
  await page.waitForSelector('#page-start[data-ready=yes]');
  await settled(page);
  await page.waitForTimeout(300);
  t.diagnostic(`first load: ${bytes} bytes gzipped`);
  assert.ok(bytes < 200_000, `${bytes} bytes`);
  await context.close();
});
