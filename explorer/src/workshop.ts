// Questions to the library, in the order in which they came, one at a time, on a thread of its own. What nobody waits for
// any more is not begun; what takes long and is superseded is given up.

import { load, startWorker } from './loading';
import { type Answer, CoreError, CoreModule } from './module';

export type Asked = { name: string; compiled?: WebAssembly.Module; request: object; bytes?: Uint8Array };
export type Told = (Answer & { took: number }) | { error: string; isRefusal: boolean };

/// Who asks: a newer question of the same owner replaces an older one. `isPatient`: a long answer, which may be given up.
export type Turn = { owner: object; isPatient?: boolean };
/// A question that was replaced before it was answered.
export class Superseded extends Error {}

const compiled = new Map<string, Promise<WebAssembly.Module>>();
const begun = window.posencBegun || undefined;
window.posencBegun ??= false;  // from here on it would come too late
if (begun) {
  compiled.set(begun.name, begun.compiled);
  begun.compiled.catch(() => compiled.delete(begun.name));
}
/// Whether a module is there or on its way.
export const isBegun = (name: string): boolean => compiled.has(name);
function compiledModule(name: string): Promise<WebAssembly.Module> {
  let found = compiled.get(name);
  if (!found) {
    // one after the other: the first figure does not share its download with what comes later
    const before = [...compiled.values()].at(-1)?.catch(() => undefined);
    compiled.set(name, found = Promise.resolve(before).then(() => load(name)));
    found.catch(() => compiled.delete(name));  // the next question tries again
  }
  return found;
}

/// Begins to load what a page is about to ask for.
export function expect(name: string): void {
  void compiledModule(name);
  if (!isAlone && !worker) setUpWorker();
}

type Job = Turn & { name: string; compiled: WebAssembly.Module; request: object; bytes?: Uint8Array; began: number; resolve(answer: Answer & { took: number }): void; reject(error: Error): void };

// Longer than a step of a drag may wait.
const longRun = 150;

let worker: Worker | undefined, running: Job | undefined;
const queue: Job[] = [], sent = new Set<string>();

function end(): void {
  worker?.terminate();
  worker = undefined;
  sent.clear();
}

function settle(told: Told): void {
  const job = running;
  running = undefined;
  if (job && 'error' in told) job.reject(told.isRefusal ? new CoreError(told.error) : new Error(told.error));
  else if (job) job.resolve(told as Answer & { took: number });
  next();
}

// A browser that refuses threads, perhaps to a file from a disk: the page computes by itself.
const here = new Map<string, CoreModule>();
let isAlone = false;
function answerHere({ name, compiled, request, bytes }: Job): void {
  const began = performance.now();
  if (!here.has(name)) here.set(name, CoreModule.of(compiled));
  try {
    settle({ ...here.get(name)!.call(request, bytes), took: performance.now() - began });
  } catch (error) {
    settle({ error: (error as Error).message, isRefusal: error instanceof CoreError });
  }
}

function setUpWorker(): void {
  try {
    worker = begun?.worker ?? startWorker();
    if (begun) begun.worker = undefined;  // one that is ended is followed by another
    worker.onmessage = ({ data }) => settle(data);
    // it could not even start
    worker.onerror = () => { isAlone = true; end(); if (running) answerHere(running); };
  } catch {
    isAlone = true;
  }
}

function next(): void {
  if (running || !queue.length) return;
  const job = running = queue.shift()!;
  job.began = performance.now();
  if (!isAlone && !worker) setUpWorker();
  if (isAlone) return answerHere(job);
  const asked: Asked = { name: job.name, request: job.request, bytes: job.bytes };
  if (!sent.has(job.name)) asked.compiled = job.compiled;
  sent.add(job.name);
  worker!.postMessage(asked);
}

/// Asks a module. Throws: CoreError for what the library refuses, Superseded.
export async function askModule(name: string, request: object, bytes: Uint8Array | undefined, turn: Turn): Promise<Answer & { took: number }> {
  const module = await compiledModule(name);
  return new Promise((resolve, reject) => {
    for (let i = queue.length - 1; i >= 0; --i) if (queue[i].owner === turn.owner) queue.splice(i, 1)[0].reject(new Superseded());
    if (running?.isPatient && running.owner === turn.owner && performance.now() - running.began > longRun) {
      running.reject(new Superseded());
      running = undefined;
      end();
    }
    queue.push({ ...turn, name, compiled: module, request, bytes, began: 0, resolve, reject });
    next();
  });
}
