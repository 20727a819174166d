// The package in Node: the core is a file beside this module.

import { readFile } from 'node:fs/promises';
import { PosencError, loadFrom } from './core.js';

loadFrom(async () => {
  const url = new URL('./posenc.wasm.gz', import.meta.url);
  try {
    return await readFile(url);
  } catch (error) {
    throw new PosencError(`init: ${url} could not be read (${(error as Error).message}); pass the file to init()`);
  }
});

export * from './index.js';
