// One module of the library. The one file that touches its memory: questions go in and answers come out as JSON, each with
// bytes of their own for files and long lists of numbers. An error of the library traps; its message is read and a fresh
// instance is made.

export type Answer = { json: any; bytes: Uint8Array<ArrayBuffer> };

export interface Exports {
  memory: { buffer: ArrayBuffer };
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

/// What the library refused, in its own words.
export class CoreError extends Error {}

const tooLarge = 'is too large for this page: it ran out of memory';

// JavaScript sees an address as a signed integer: from 2 GiB on it is negative.
const bytesAt = (core: Exports, at: number, size: number): Uint8Array<ArrayBuffer> => new Uint8Array(core.memory.buffer, at >>> 0, size >>> 0);
const textAt = (core: Exports, at: number, size: number): string => new TextDecoder().decode(bytesAt(core, at, size));

export class CoreModule {
  private instance?: Exports;
  constructor(private readonly make: () => Exports) {}

  static of(compiled: WebAssembly.Module): CoreModule {
    return new CoreModule(() => new WebAssembly.Instance(compiled).exports as unknown as Exports);
  }

  call(request: object, bytes: Uint8Array = new Uint8Array()): Answer {
    let core: Exports | undefined = this.instance;
    // Whatever goes wrong on the way, the next call begins with a fresh instance.
    this.instance = undefined;
    try {
      if (!core) {
        core = this.make();
        core.__wasm_call_ctors();
      }
      const answer = exchange(core, new TextEncoder().encode(JSON.stringify(request)), bytes);
      this.instance = core;
      return answer;
    } catch (trap) {
      if (trap instanceof CoreError || !core) throw trap;
      const message = textAt(core, core.pe_error(), core.pe_error_size());
      if (message) throw new CoreError(message);
      throw core.pe_out_of_memory() ? new CoreError(tooLarge) : trap;
    }
  }
}

function exchange(core: Exports, text: Uint8Array, bytes: Uint8Array): Answer {
  const at = core.pe_alloc(text.length), from = core.pe_alloc(bytes.length);
  if (at === 0 || from === 0) throw new CoreError(tooLarge);
  // pe_alloc may have grown the memory: its buffer is taken only now.
  bytesAt(core, at, text.length).set(text);
  bytesAt(core, from, bytes.length).set(bytes);
  core.pe_call(at, text.length, from, bytes.length);
  const answer = { json: JSON.parse(textAt(core, core.pe_text(), core.pe_text_size())), bytes: bytesAt(core, core.pe_bytes(), core.pe_bytes_size()).slice() };
  core.pe_free(at);
  core.pe_free(from);
  return answer;
}
