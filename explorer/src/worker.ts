// The library on a thread of its own: questions of workshop.ts are answered one by one, so that the page stays free.

import { CoreError, CoreModule } from './module';
import type { Asked, Told } from './workshop';

const modules = new Map<string, CoreModule>();

onmessage = ({ data }: MessageEvent<Asked>) => {
  const began = performance.now();
  if (data.compiled) modules.set(data.name, CoreModule.of(data.compiled));
  let told: Told;
  try {
    told = { ...modules.get(data.name)!.call(data.request, data.bytes), took: performance.now() - began };
  } catch (error) {
    told = { error: (error as Error).message, isRefusal: error instanceof CoreError };
  }
  (postMessage as unknown as (message: Told, transfer: Transferable[]) => void)(told, 'bytes' in told ? [told.bytes.buffer] : []);
};
