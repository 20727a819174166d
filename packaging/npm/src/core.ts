// The library as WebAssembly: loaded when it is first needed, and the one file that touches its memory. An error of the
// library traps; its message is read, and the next call has a fresh instance.

import type { CoreSource, ResponseLike } from './types.js';

/** What the library refused, in one sentence that names the value and the rule. */
export class PosencError extends Error {
  override readonly name = 'PosencError';
}

export const fail = (sentence: string): never => { throw new PosencError(sentence); };

interface Exports {
  memory: WebAssembly.Memory;
  __wasm_call_ctors(): void;
  pe_alloc(bytes: number): number;
  pe_free(at: number): void;
  pe_call(text: number, size: number, bytes: number, count: number): void;
  pe_text(): number;
  pe_text_size(): number;
  pe_bytes(): number;
  pe_bytes_size(): number;
  pe_error(): number;
  pe_error_size(): number;
  pe_out_of_memory(): number;
}

export interface Answer { json: any; bytes: Uint8Array<ArrayBuffer> }

declare const POSENC_VERSION: string;  // set by build.mjs
/** The version of the library and of this package. */
export const version: string = POSENC_VERSION;

const mostBytes = 2 ** 29;  // of all tensors and files of a call; the module's memory ends at 2^31
const keptBytes = 2 ** 26;  // an instance with more memory is not used again: memory never shrinks

// --- loading -------------------------------------------------------------------------------------------------

async function unpacked(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;  // a server may have unpacked it
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const isResponse = (source: object): source is ResponseLike => typeof (source as ResponseLike).arrayBuffer === 'function';

async function bytesOf(source: CoreSource): Promise<Uint8Array<ArrayBuffer>> {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer as ArrayBuffer, source.byteOffset, source.byteLength);
  if (typeof source !== 'object' || source === null || !isResponse(source)) fail('init: expected bytes, a Response or a WebAssembly.Module');
  const response = source as ResponseLike;
  if (!response.ok) fail(`init: ${response.url || 'the response'} has status ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function compile(source: CoreSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  const bytes = await bytesOf(source);
  try {
    return await WebAssembly.compile(await unpacked(bytes));
  } catch (error) {
    return fail(`init: these ${bytes.length} bytes are not the core of posenc (${(error as Error).message})`);
  }
}

async function instantiate(compiled: WebAssembly.Module): Promise<Exports> {
  const exports = (await WebAssembly.instantiate(compiled, {})).exports as unknown as Exports;
  exports.__wasm_call_ctors();
  return exports;
}

let loader: () => Promise<CoreSource>;
/** Where the core is; set by browser.ts and node.ts. */
export function loadFrom(how: () => Promise<CoreSource>): void { loader = how; }

let module: Promise<WebAssembly.Module> | undefined;
let instance: Promise<Exports> | undefined;

function loaded(): Promise<WebAssembly.Module> {
  if (!module) {
    const mine = (async () => compile(await loader()))();
    mine.catch(() => { if (module === mine) module = undefined; });  // the next call tries again
    module = mine;
  }
  return module;
}

/**
 * Loads the core now, from `source` or from the file beside this module. Calling it is only needed to choose the source
 * or the moment: the first call of any function loads the core by itself.
 */
export async function init(source?: CoreSource | PromiseLike<CoreSource>): Promise<void> {
  if (source === undefined) {
    await loaded();
    return;
  }
  const compiled = await compile(await source);
  let found: unknown;
  try {
    const core = await instantiate(compiled);
    found = run(core, { call: 'version' }, []).json.version;
  } catch (error) {
    fail(`init: this module is not the core of posenc (${(error as Error).message})`);
  }
  if (found !== version) fail(`init: this core is of posenc ${found}, and the package is posenc ${version}`);
  module = Promise.resolve(compiled);
  instance = undefined;
}

// --- calls ---------------------------------------------------------------------------------------------------

const read = (core: Exports, at: number, size: number): string => new TextDecoder().decode(new Uint8Array(core.memory.buffer, at, size));

function run(core: Exports, request: object, pieces: readonly ArrayBufferView[]): Answer {
  const text = new TextEncoder().encode(JSON.stringify(request));
  const size = pieces.reduce((sum, one) => sum + padded(one.byteLength), 0);
  const at = core.pe_alloc(text.length), bytesAt = core.pe_alloc(size);
  if (at === 0 || bytesAt === 0) fail(`${size} bytes do not fit in the memory of WebAssembly`);
  // pe_alloc may have grown the memory: its buffer is taken only now.
  new Uint8Array(core.memory.buffer, at, text.length).set(text);
  let to = bytesAt;
  for (const one of pieces) {
    new Uint8Array(core.memory.buffer, to, one.byteLength).set(new Uint8Array(one.buffer, one.byteOffset, one.byteLength));
    to += padded(one.byteLength);
  }
  core.pe_call(at, text.length, bytesAt, size);
  const answer = {
    json: JSON.parse(read(core, core.pe_text(), core.pe_text_size())),
    bytes: new Uint8Array(core.memory.buffer, core.pe_bytes(), core.pe_bytes_size()).slice() as Uint8Array<ArrayBuffer>,
  };
  core.pe_free(at);
  core.pe_free(bytesAt);
  return answer;
}

const padded = (bytes: number): number => Math.ceil(bytes / 8) * 8;

/** Collects the bytes of a call; a field of the request says where its piece is. */
export class Pieces {
  readonly list: ArrayBufferView[] = [];
  private size = 0;
  constructor(private readonly verb: string) {}

  add(piece: ArrayBufferView): { at: number; size: number } {
    const at = this.size;
    this.size += padded(piece.byteLength);
    if (this.size > mostBytes) fail(`${this.verb}: needs ${this.size} bytes of input; the limit is ${mostBytes}`);
    this.list.push(piece);
    return { at, size: piece.byteLength };
  }
}

/** Asks the library. */
export async function ask(request: { call: string; [field: string]: unknown }, pieces?: Pieces): Promise<Answer> {
  for (;;) {
    const mine = instance ??= loaded().then(instantiate);
    let core: Exports;
    try {
      core = await mine;
    } catch (error) {
      if (instance === mine) instance = undefined;
      throw error;
    }
    // Another call may have trapped while this one waited: its instance is not to be used again.
    if (instance !== mine) continue;
    try {
      return run(core, request, pieces?.list ?? []);
    } catch (error) {
      instance = undefined;
      if (error instanceof PosencError) throw error;
      const sentence = read(core, core.pe_error(), core.pe_error_size());
      if (sentence) fail(sentence);
      if (core.pe_out_of_memory()) fail(`${request.call}: this needs more than the 2 GiB of memory that WebAssembly has`);
      return fail(`${request.call}: the core failed without a message (${(error as Error).message})`);
    } finally {
      if (core.memory.buffer.byteLength > keptBytes && instance === mine) instance = undefined;
    }
  }
}
