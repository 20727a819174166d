// Pictures of every page for people to look at: node screenshots.mjs FOLDER [PAGE …], with the variables of the tests.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { contextOf, go, open, pages, places, setUp, tearDown } from './site.mjs';

const [folder, ...wanted] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
await setUp();
try {
  for (const colorScheme of ['light', 'dark']) {
    for (const [name, viewport] of [['wide', { width: 1280, height: 900 }], ['phone', { width: 390, height: 844 }]]) {
      const context = await contextOf({ colorScheme, viewport });
      const page = await open(context, places.program);
      for (const id of wanted.length ? wanted : pages) {
        await go(page, `#v=1&p=${id}${id === 'search' ? '&q=yarn' : ''}`);
        if (id === 'schemes') await page.waitForSelector('#page-schemes[data-done=yes]', { timeout: 120_000 });
        await page.waitForTimeout(300);
        await page.screenshot({ path: join(folder, `${id}-${name}-${colorScheme}.png`), fullPage: true });
      }
      await context.close();
    }
  }
} finally {
  await tearDown();
}
