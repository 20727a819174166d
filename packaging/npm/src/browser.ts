// The package in a browser: the core is beside this module. Bundlers know this form of a URL and copy the file.

import { PosencError, loadFrom } from './core.js';

loadFrom(async () => {
  const url = new URL('./posenc.wasm.gz', import.meta.url);
  try {
    return await fetch(url);
  } catch (error) {
    throw new PosencError(`init: ${url} could not be loaded (${(error as Error).message}); pass the file to init()`);
  }
});

export * from './index.js';
