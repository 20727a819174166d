// Pictures of every page for people to look at: node screenshots.mjs FOLDER [PAGE …], with the variables of the tests.
// Wide and at 390 pixels, light and dark, and as printed (PAGE.pdf).

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { contextOf, go, open, pages, places, setUp, settled, tearDown, whole } from './site.mjs';

const [folder, ...wanted] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
await setUp();
try {
  for (const [name, viewport] of [['wide', { width: 1280, height: 900 }], ['phone', { width: 390, height: 844 }]]) {
    const page = await open(await contextOf({ viewport }), places.program);
    for (const id of wanted.length ? wanted : pages) {
      await page.emulateMedia({ colorScheme: 'light', media: 'screen' });
      await go(page, `#v=1&p=${id}${id === 'search' ? '&q=yarn' : ''}`);
      // what loads when it comes near
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      await whole(page, id);
      await page.evaluate(() => scrollTo(0, 0));
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        await settled(page);
        await page.screenshot({ path: join(folder, `${id}-${name}-${colorScheme}.png`), fullPage: true });
      }
      await page.emulateMedia({ media: 'print' });
      if (name === 'wide') await page.pdf({ path: join(folder, `${id}.pdf`), format: 'A4' });
    }
    await page.context().close();
  }
} finally {
  await tearDown();
}
