// The library, as WebAssembly. The one file that touches its memory: questions go in and answers come out as JSON, each with
// bytes of their own for files and long lists of numbers. An error of the library traps; its message is read and a fresh
// instance is made.

export type Scheme = { scheme: string; [field: string]: unknown };
export type Answer = { json: any; bytes: Uint8Array };

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
}

/// What the library refused, in its own words.
export class CoreError extends Error {}

/// A file of the site; in the single file it is in the page itself.
export async function fileBytes(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const inside = document.getElementById(name)?.textContent;
  if (inside) return Uint8Array.from(atob(inside.trim()), (c) => c.charCodeAt(0));
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

const read = (core: Exports, at: number, size: number): string => new TextDecoder().decode(new Uint8Array(core.memory.buffer, at, size));

class Module {
  private instance?: Exports;
  private constructor(private readonly compiled: WebAssembly.Module) {}

  static async load(name: string): Promise<Module> {
    return new Module(await WebAssembly.compile(await fileBytes(name)));
  }

  private exports(): Exports {
    if (!this.instance) {
      this.instance = new WebAssembly.Instance(this.compiled).exports as unknown as Exports;
      this.instance.__wasm_call_ctors();
    }
    return this.instance;
  }

  call(request: object, bytes: Uint8Array = new Uint8Array()): Answer {
    const core = this.exports();
    const text = new TextEncoder().encode(JSON.stringify(request));
    const at = core.pe_alloc(text.length), bytesAt = core.pe_alloc(bytes.length);
    // pe_alloc may have grown the memory: its buffer is taken only now.
    new Uint8Array(core.memory.buffer, at, text.length).set(text);
    new Uint8Array(core.memory.buffer, bytesAt, bytes.length).set(bytes);
    try {
      core.pe_call(at, text.length, bytesAt, bytes.length);
    } catch (trap) {
      const message = read(core, core.pe_error(), core.pe_error_size());
      this.instance = undefined;
      throw message ? new CoreError(message) : trap;
    }
    const answer = {
      json: JSON.parse(read(core, core.pe_text(), core.pe_text_size())),
      bytes: new Uint8Array(core.memory.buffer, core.pe_bytes(), core.pe_bytes_size()).slice(),
    };
    core.pe_free(at);
    core.pe_free(bytesAt);
    return answer;
  }
}

const loaded = new Map<string, Promise<Module>>();
function module(name: string): Promise<Module> {
  if (!loaded.has(name)) loaded.set(name, Module.load(name));
  return loaded.get(name)!;
}

const inTools = new Set(['scores', 'dots', 'frequencies', 'story', 'cell', 'schemes', 'prove', 'cost', 'model', 'diagnose', 'exercise', 'grade', 'questions',
                         'cards', 'review', 'walkthroughs', 'grade-blank']);

// What the small module has said it does not have: the call, its kind and its schemes.
const elsewhere = new Set<string>();
const kindOf = (request: any): string => [request.call, request.kind, ...[request.scheme ?? request.schemes ?? []].flat().map((one: Scheme) => one?.scheme)].join(' ');

/// Asks the library. The tables of waves and their figures are in the small module, everything is in the large one.
export async function ask(request: { call: string; [field: string]: unknown }, bytes?: Uint8Array): Promise<Answer> {
  const kind = kindOf(request);
  if (!inTools.has(request.call) && !elsewhere.has(kind)) {
    const core = await module('core.wasm');
    try {
      return core.call(request, bytes);
    } catch (error) {
      if (!(error instanceof CoreError) || error.message !== 'is in tools.wasm') throw error;
      elsewhere.add(kind);
    }
  }
  return (await module('tools.wasm')).call(request, bytes);
}

export const doubles = (bytes: Uint8Array): Float64Array =>
  new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);

// --- figures -------------------------------------------------------------------------------------------------

export type Axis = {
  label: string; least: number; most: number; log: boolean; reversed: boolean; shown: boolean;
  ticks: { at: number; text: string }[];
};
export type Series = { name: string; x: Float64Array; y: Float64Array; style: number; drawing: 'line' | 'dots' | 'line-and-dots' | 'steps' | 'bars' };
export type Envelope = { name: string; x: Float64Array; low: Float64Array; high: Float64Array; style: number };
export type Heat = {
  columns: Float64Array; rows: Float64Array; values: Float64Array; least: number; most: number; label: string;
};
export type Panel = {
  title: string; x: Axis; y: Axis; heat: Heat | null; series: Series[]; envelopes: Envelope[];
  bands: { from: number; to: number; text: string }[];
  rules: { vertical: boolean; at: number; text: string }[];
  words: { x: number; y: number; text: string }[];
  frames: { left: number; right: number; low: number; high: number }[];
  equal: boolean; width: number;
};
export type Figure = {
  kind: string; title: string; subtitle: string; note: string; width: number; height: number;
  rows: { panels: Panel[]; height: number }[];
};

/// A figure of the library: the same numbers as `posenc plot KIND … --json`.
export async function figure(request: object): Promise<Figure> {
  const { json, bytes } = await ask({ call: 'figure', ...request });
  const numbers = doubles(bytes);
  const revive = (value: any): any => {
    if (Array.isArray(value)) return value.map(revive);
    if (value === null || typeof value !== 'object') return value;
    if ('from' in value && 'count' in value) return numbers.subarray(value.from, value.from + value.count);
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, revive(one)]));
  };
  return revive(json);
}
