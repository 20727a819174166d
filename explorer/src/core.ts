// The library, as WebAssembly: which module answers a question, and figures as the page draws them.

import { type Answer, CoreError } from './module';
import { type Turn, askModule, isBegun } from './workshop';

export { CoreError } from './module';
export { fileBytes } from './loading';
export { Superseded, type Turn } from './workshop';
export type Scheme = { scheme: string; [field: string]: unknown };

// The small module has what the first pages draw; the module of figures has that, too, and the rest of what is computed.
const small = 'core.wasm', large = 'figures.wasm';
const modules: { [module: string]: string[] } = {
  [large]: ['scores', 'dots', 'frequencies', 'schemes', 'prove', 'cost'],
  'lab.wasm': ['model-run', 'model-write', 'model-tensor'],
  'stories.wasm': ['story', 'cell'],
  'practice.wasm': ['exercise', 'grade', 'questions', 'cards', 'review', 'walkthroughs', 'grade-blank'],
  'models.wasm': ['model', 'diagnose'],
};
const moduleOf: { [call: string]: string } = Object.fromEntries(Object.entries(modules).flatMap(([module, calls]) => calls.map((call) => [call, module])));

// What the small module has said it does not have: the call, its kind and its schemes.
const elsewhere = new Set<string>();
const kindOf = (request: any): string => [request.call, request.kind, ...[request.scheme ?? request.schemes ?? []].flat().map((one: Scheme) => one?.scheme)].join(' ');

/// Asks the library: the module that has the answer, of two the one that is there or on its way.
export async function ask(request: { call: string; [field: string]: unknown }, bytes?: Uint8Array, turn: Turn = { owner: request }): Promise<Answer & { took: number }> {
  const known = moduleOf[request.call], kind = kindOf(request);
  if (known) return askModule(known, request, bytes, turn);
  if (!elsewhere.has(kind) && (isBegun(small) || !isBegun(large))) {
    try {
      return await askModule(small, request, bytes, turn);
    } catch (error) {
      if (!(error instanceof CoreError) || error.message !== `is in ${large}`) throw error;
      elsewhere.add(kind);
    }
  }
  return askModule(large, request, bytes, turn);
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

/// A figure of the library: the same numbers as `posenc plot KIND … --json`. `table`: the bytes of a trained table, of which
/// the request has the shape.
export async function figure(request: object, turn?: Turn, table?: Uint8Array): Promise<Figure & { took: number }> {
  const { json, bytes, took } = await ask({ call: 'figure', ...request }, table, turn);
  const numbers = doubles(bytes);
  // the answer is nobody else's: lists take their places in it
  const revive = (value: any): void => {
    for (const key in value) {
      const one = value[key];
      if (one === null || typeof one !== 'object') continue;
      if ('from' in one && 'count' in one) value[key] = numbers.subarray(one.from, one.from + one.count);
      else revive(one);
    }
  };
  revive(json);
  return { ...json, took };
}
