// Prints how fast the waves page follows a drag at 4096 positions × 128 features: node frames.mjs, with the variables of
// the tests (POSENC, WEB, CHROMIUM). No test: a figure of a machine, not of the code alone.

import { contextOf, go, open, places, setUp, tearDown } from './site.mjs';

const middle = (list, share = 0.5) => [...list].sort((a, b) => a - b)[Math.floor(list.length * share)];

// A mouse that moves with every frame, by events of the browser itself.
async function drag(page, name, from, to) {
  const client = await page.context().newCDPSession(page);
  await client.send('Performance.enable');
  const scriptSeconds = async () => (await client.send('Performance.getMetrics')).metrics.find((one) => one.name === 'ScriptDuration').value;
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.evaluate(() => {
    window.frames = [];
    window.dragging = true;
    let last = performance.now();
    const next = () => {
      const now = performance.now();
      window.frames.push(now - last);
      last = now;
      if (window.dragging) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  const before = await scriptSeconds(), steps = 150;
  for (let i = 1; i <= steps; ++i) {
    await page.mouse.move(from[0] + ((to[0] - from[0]) * i) / steps, from[1] + ((to[1] - from[1]) * i) / steps);
  }
  const script = await scriptSeconds() - before;
  const frames = (await page.evaluate(() => { window.dragging = false; return window.frames; })).slice(5);
  await page.mouse.up();
  console.log(`${name}: frame p50 ${middle(frames).toFixed(2)} ms, p95 ${middle(frames, 0.95).toFixed(2)} ms (${frames.length} frames); script ${((1000 * script) / frames.length).toFixed(2)} ms per frame`);
}

await setUp();
try {
  const page = await open(await contextOf(), places.program);
  await go(page, '#v=1&p=waves&d=128&len=4096&m=100');
  const map = page.locator('pe-figure .surface').nth(1);
  await map.scrollIntoViewIfNeeded();
  const box = await map.boundingBox();
  const x = box.x + box.width / 2;
  await drag(page, 'position m, dragged on the map', [x, box.y + 60], [x, box.y + box.height - 80]);
  const slider = page.locator('.control', { hasText: 'Base' }).locator('input[type=range]');
  await slider.scrollIntoViewIfNeeded();
  const bar = await slider.boundingBox();
  await drag(page, 'base, dragged on its slider (every figure is computed anew)', [bar.x + bar.width * 0.3, bar.y + bar.height / 2], [bar.x + bar.width * 0.9, bar.y + bar.height / 2]);
} finally {
  await tearDown();
}
