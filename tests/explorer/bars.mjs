// Prints how the site stands against its bars, on a slow phone: node bars.mjs [PAGE…], with the variables of the tests
// (POSENC, WEB, CHROMIUM). No test: time on a machine, which other work on it changes. What is counted in bytes and in
// pixels is tested (pages_test.mjs, browser_test.mjs).
//
// - a step of each slider, on a processor four times as slow: time of the main thread without that of an empty step; a
//   frame has 16.7 ms. Chromium makes a thread slower by busy waits after each 200 µs of the clock, and counts time in which the thread
//   was idle, or had to wait for a processor, as work: beside other programs it becomes much slower than four times. So the same steps
//   are timed at full speed, too, and what the throttle makes of a known amount of work is printed: where that is far from 4, the
//   machine is busy. Neither figure is a bar then: figures are drawn less often where the clock says that frames are late (pace.ts).
// - the first figure at 1.6 Mbit/s, 150 ms and a processor four times as slow; the bar is 2.5 s
// - how far things moved meanwhile; the bar is 0.05

import { contextOf, go, pages, places, setUp, settled, tearDown, whole } from './site.mjs';

const slower = 4, frame = 16.7, asked = process.argv.slice(2), ids = pages.filter((id) => id !== 'search' && (!asked.length || asked.includes(id)));

// What counts as the first figure of a page: the first thing that was computed.
const isThere = () => {
  // what the page was built with
  const still = document.querySelector('main .first img');
  if ((still?.complete && still.naturalWidth) || document.querySelector('main table.first')) return true;
  const host = document.querySelector('main pe-figure, main .hero, main .rope-view, main pe-story, main table.schemes, main .exercise, main .map, main .drop, main .guide, main .entry');
  return host !== null && (host.matches('.map, .drop, .guide, .entry') || [...host.querySelectorAll('.surface img.cover')].some((one) => one.complete && one.naturalWidth) || host.querySelector('.surface svg path, .surface svg text, .board .tile, svg path[d], .matrix, tbody tr, form') !== null);
};

async function firstFigure(id) {
  const context = await contextOf({ viewport: { width: 390, height: 844 } }, 'on'), page = await context.newPage(), client = await context.newCDPSession(page);
  await client.send('Network.enable');
  await client.send('Network.emulateNetworkConditions', { offline: false, latency: 150, downloadThroughput: 1.6e6 / 8, uploadThroughput: 750e3 / 8 });
  await client.send('Emulation.setCPUThrottlingRate', { rate: slower });
  await context.addInitScript(() => {
    window.shifted = 0;
    new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value; }).observe({ type: 'layout-shift', buffered: true });
  });
  await page.addInitScript(`window.isThere = ${isThere}; (function look() { if (document.body && window.isThere()) window.there = performance.now(); else requestAnimationFrame(look); })();`);
  await page.goto(`${places.folder}${id === 'start' ? 'index' : id}.html${id === 'stories' ? '#v=1&p=stories&story=rope' : ''}`);
  await page.waitForFunction(() => window.there, undefined, { timeout: 60_000 });
  await page.waitForTimeout(1500);
  const result = await page.evaluate(() => [window.there, window.shifted]);
  await context.close();
  return result;
}

async function steps(page, client, slider, count = 10) {
  const busy = async () => (await client.send('Performance.getMetrics')).metrics.find((one) => one.name === 'TaskDuration').value;
  const began = await busy();
  await slider.evaluate(async (input, [count, isEmpty]) => {
    const most = Number(input.max), from = Number(input.value);
    for (let i = 1; i <= count; ++i) {
      if (!isEmpty) input.value = String(Math.round(i % 2 ? Math.min(most, from + (most * i) / count) : most * (1 - i / (2 * count))));
      input.dispatchEvent(new Event(isEmpty ? 'nothing' : 'input', { bubbles: true }));
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    }
  }, [Math.abs(count), count < 0]);
  return (1000 * (await busy() - began)) / Math.abs(count);
}

// Milliseconds of the main thread for a known amount of work, in pieces of a frame's size.
async function known(page, client) {
  const busy = async () => (await client.send('Performance.getMetrics')).metrics.find((one) => one.name === 'TaskDuration').value;
  const began = await busy();
  await page.evaluate(async () => {
    for (let i = 0; i < 20; ++i) {
      let x = 1;
      for (let k = 0; k < 500_000; ++k) x = (x * 1103515245 + 12345) & 0x7fffffff;
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, x === 0 ? 1 : 0)));
    }
  });
  return 1000 * (await busy() - began);
}
const middle = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

await setUp();
try {
  const moves = [], rates = [];
  const context = await contextOf(), page = await context.newPage(), client = await context.newCDPSession(page);
  await client.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.goto(places.program);
  for (const id of ids) {
    await go(page, `#v=1&p=${id}`);
    await whole(page, id);
    const fast = await known(page, client);
    await client.send('Emulation.setCPUThrottlingRate', { rate: slower });
    rates.push(await known(page, client) / fast);
    await client.send('Emulation.setCPUThrottlingRate', { rate: 1 });
    for (const slider of await page.locator('main input[type=range]:visible').all()) {
      const timed = async () => {
        const empty = await steps(page, client, slider, -10);
        await steps(page, client, slider);  // until the page has noticed
        return Math.max(0, await steps(page, client, slider) - empty);
      };
      const full = await timed();
      await settled(page);
      await client.send('Emulation.setCPUThrottlingRate', { rate: slower });
      moves.push([await timed(), `${id}: ${await slider.getAttribute('aria-label')}`, full]);
      await client.send('Emulation.setCPUThrottlingRate', { rate: 1 });
      await settled(page);
    }
  }
  await context.close();
  moves.sort((a, b) => b[0] - a[0]);
  console.log(`${moves.length} sliders; over ${frame} ms a step on a processor ${slower} times as slow: ${moves.filter(([ms]) => ms > frame).length}`);
  console.log(`at full speed, times ${slower}: ${moves.filter(([, , full]) => slower * full > frame).length} over; the throttle made known work ${middle(rates).toFixed(1)} (up to ${Math.max(...rates).toFixed(1)}) times as long`);
  for (const [ms, name, full] of moves.slice(0, 12)) console.log(`  ${ms.toFixed(1)} ms, at full speed ${full.toFixed(1)} ms  ${name}`);
  for (const id of ids) {
    const [there, shifted] = await firstFigure(id);
    console.log(`${id}: first figure ${(there / 1000).toFixed(2)} s${there > 2500 ? ' (over)' : ''}, shift ${shifted.toFixed(3)}${shifted > 0.05 ? ' (over)' : ''}`);
  }
} finally {
  await tearDown();
}
