// Everything that goes in and comes out. The fields of results are those of the program's --json.

import type { Scheme } from './schemes.js';

export type DType = 'f32' | 'f64' | 'f16' | 'bf16';

/** The array that holds elements of a type: f16 and bf16 as their 16 bits. */
export type DataOf<D extends DType> = D extends 'f32' ? Float32Array : D extends 'f64' ? Float64Array : Uint16Array;

/** A dense tensor, last axis contiguous. `dtype` is needed for a Uint16Array: "f16" or "bf16". */
export interface Tensor {
  readonly data: Float32Array | Float64Array | Uint16Array;
  readonly shape: readonly number[];
  readonly dtype?: DType;
}
/** A tensor, or the bytes of a .npy file. */
export type TensorSource = Tensor | Uint8Array | ArrayBuffer;

/**
 * Integers below 2^53: a list, a list for each axis, or what `positions()` returns, [count] or [axes, count]. A tensor of
 * ONNX Runtime, whose data is a BigInt64Array, also fits.
 */
export type PositionSource =
  | readonly number[] | readonly bigint[] | IntegerArray
  | readonly (readonly number[] | IntegerArray)[]
  | { readonly data: readonly number[] | IntegerArray; readonly shape: readonly number[] };
export type IntegerArray =
  | Float64Array | BigInt64Array | BigUint64Array | Int32Array | Uint32Array | Int16Array | Uint16Array | Int8Array | Uint8Array;

/** A config.json, as text or as an object; or the bytes of one, or of the beginning of a .gguf file. */
export type ModelSource = string | object | Uint8Array | ArrayBuffer;

// --- inspect -------------------------------------------------------------------------------------------------

export interface LayerTemperature {
  scale: number;
  length: number;
  shift: number;
  rule: string;
  formula: string;
}

/** Layers that treat position in the same way. */
export interface LayerGroup {
  /** "0-31", "0-2,4-6"; null if the file does not list them. */
  layers: string | null;
  layer_type: string | null;
  /** With `magnitude` for rope; `{ scheme, available: false }` if posenc does not compute it. */
  scheme: (Required<Scheme> & { magnitude?: number }) | { scheme: string; available: false };
  /** Radians per position, at the trained length. */
  frequencies: number[];
  softmax_factor: number;
  /** Scores are not divided by √D (T5). */
  unscaled: boolean;
  /** The position of the first token (RoBERTa: 2). */
  first_position: number;
  /** Of a scheme that posenc does not compute. */
  formula?: string;
  causal: boolean | null;
  window: number | null;
  chunk: number | null;
  scale: number | null;
  softcap: number | null;
  sinks: boolean;
  temperature: LayerTemperature | null;
  other_attention: string | null;
  token_mixer: string | null;
}

/** How a model encodes position: what `posenc inspect --json` prints. */
export interface Model {
  model_type: string;
  layers: LayerGroup[];
  /** Vision and audio encoders, codecs, draft models. */
  parts: { part: string; model_type: string; layers: LayerGroup[] }[];
  trained_length: number | null;
  usable_length: number | null;
  /** Keys that are ignored, renamed, or contradict each other. */
  warnings: string[];
  /** The family is not known: everything here is an assumption. */
  is_assumed: boolean;
  assumed: string[];
  notes: string[];
}

// --- check, diagnose -----------------------------------------------------------------------------------------

/** The order of a tensor's axes: b batch, h heads, s sequence, d features. */
export type Order = 'sd' | 'hsd' | 'shd' | 'bsd' | 'bhsd' | 'bshd';

export interface DiagnoseOptions {
  /** The position of each token, if known; otherwise consecutive, from a position that is determined. */
  positions?: PositionSource;
  /** Default: heads before the sequence, "bhsd". */
  order?: Order;
}

interface CheckSettings extends DiagnoseOptions {
  /** The position of the first token, if they are consecutive. Default: that of the model, else 0. */
  first?: number;
  /** For a bias: the position of each key. */
  keys?: PositionSource;
  /** For a bias: compare only keys at or before their query. */
  causal?: boolean;
  /** Tokens in the whole sequence, for scalings that depend on it; default: up to the last position. */
  length?: number;
  /** The trained table, if the scheme has one. */
  weights?: TensorSource;
  /** Relative to the norm of a pair or the size of an element. Default: by type, 2e-6 for f32. */
  tolerance?: number;
}
/** What is expected: a scheme, or a layer of a model. */
export type CheckOptions = CheckSettings & (
  | { scheme: Scheme | Scheme['scheme']; model?: undefined }
  | { model: ModelSource; scheme?: undefined; /** Counted from 0. */ layer?: number; /** "encoder", "decoder", "vision" … */ part?: string }
);

export type AngleKind = 'exact' | 'hf-f32' | 'ggml-f32' | 'bf16-frequencies' | 'bf16-positions' | 'bf16-angles' | 'f16-frequencies' | 'f16-angles';

/** A convention that may have made one tensor from another. */
export interface Convention {
  scheme: string;
  layout?: string;
  spacing?: string;
  sign?: number;
  dims?: number;
  first_dim?: number;
  base?: number;
  sections?: number[];
  section_order?: string;
  scaling?: { type: string; [field: string]: unknown };
  heads?: number;
  max_bias?: number;
  buckets?: number;
  max_distance?: number;
  bidirectional?: boolean;
  magnitude: number;
  first_position: number;
  numerics: AngleKind;
  numerics_sure: boolean;
  /** Sine and cosine are exchanged. */
  swapped: boolean;
  /** What the convention does not explain, relative to the change. */
  residual: number;
  reversed: boolean;
  along_heads: boolean;
  position_factor: number;
  input_factor: number;
  /** If they are not consecutive. */
  positions: number[];
}

export interface Diagnosis {
  verdict: 'sure' | 'likely' | 'unchanged' | 'unknown-frequencies' | 'not-a-rotation' | 'too-little' | 'no-position';
  best: Convention | null;
  others: Convention[];
  remarks: string[];
}

export interface CheckResult {
  agrees: boolean;
  verdict: 'agrees' | 'agrees-up-to-query' | 'agrees-up-to-permutation' | 'differs' | 'inconclusive';
  max_abs_error: number;
  first_difference: { index: number[]; expected: number; got: number } | null;
  /** What was applied instead, if it differs. */
  diagnosis: Diagnosis | null;
  /** The kind of angles with which it agrees. */
  numerics: 'exact' | 'hf-f32' | 'ggml-f32';
  /** What to change, one sentence each. */
  advice: string[];
  tolerance: number;
  /** Scores that were not compared. */
  masked: number;
  /** If only some heads or tokens differ: "heads 3 and 7 differ, the other 6 agree", and their numbers. */
  where: string;
  heads: number[];
  tokens: number[];
  /** Why it is inconclusive: what these tensors cannot tell apart, and what would. */
  reason: string;
  /** Known mistakes that these tensors rule out; `difference` is in units of what is certain to be seen. */
  excluded: Alternative[];
  /** Known mistakes that would not have been seen. */
  unseen: Alternative[];
  /** Tokens (for a bias: keys) that would decide, with the first position on each axis. */
  deciding: { tokens: number; first_positions: number[] }[];
  /** The same tokens in float32 would decide. */
  float32_decides: boolean;
}

export interface Alternative {
  what: string;
  difference: number;
  /** It only rounds positions, frequencies or angles to 16 bits. */
  is_rounding: boolean;
}

// --- tabulate ------------------------------------------------------------------------------------------------

export interface TabulateOptions<D extends DType = 'f32'> {
  /** Consecutive positions: how many, and the first (default 0). */
  count?: number;
  first?: number;
  /** Or a list of them; of a bias, `queries` and `keys` (default: those of the queries). */
  positions?: PositionSource;
  queries?: PositionSource;
  keys?: PositionSource;
  dtype?: D;
  /** "exact": correctly rounded. "hf-f32" and "ggml-f32": with the float32 angles of those engines. */
  numerics?: 'exact' | 'hf-f32' | 'ggml-f32';
  /** Tokens in the whole sequence, for scalings that depend on it (dynamic, longrope). */
  length?: number;
  /** For rotations that differ from head to head. */
  head?: number;
  /** The trained table, if the scheme has one. */
  weights?: TensorSource;
}

export interface Values<D extends DType = DType> {
  data: DataOf<D>;
  shape: number[];
  dtype: D;
}
/** Vectors that are added to tokens, [positions, width]. */
export interface AdditionTable<D extends DType> extends Values<D> { kind: 'addition' }
/** What a bias adds to scores, [heads, queries, keys]. */
export interface BiasTable<D extends DType> extends Values<D> { kind: 'bias' }
/** The cosines and sines of a rotation, both [positions, pairs]. */
export interface RotationTable<D extends DType> { kind: 'rotation'; cosines: Values<D>; sines: Values<D> }
export type Table<D extends DType = 'f32'> = AdditionTable<D> | RotationTable<D> | BiasTable<D>;

// --- positions -----------------------------------------------------------------------------------------------

export type MropeFamily = 'qwen2-vl' | 'qwen2.5-vl' | 'qwen3-vl' | 'glm4v' | 'qwen2.5-omni';

export type PositionsRequest = { /** Added to every position. */ first?: number } & (
  /** Packed sequences: [3, 2] → 0 1 2 0 1. */
  | { lengths: readonly number[] }
  /** Every point of a grid, row by row: [axes, points]. `centred`: 2i + 1 − n in place of i. */
  | { grid: readonly number[]; centred?: boolean }
  /** 1 for a token, 0 for padding: [sequence], or a row for each sequence of a batch. */
  | { mask: PositionSource; rule?: 'cumulative' | 'roberta'; padding?: number }
  /** This many different positions below another number, in ascending order. */
  | { random: number; below: number; seed?: number }
  /** A prompt of text, images, video and audio: "text:5 image:4x6 text:3", [3, tokens] (M-RoPE). */
  | { spec: string; family?: MropeFamily; merge?: number; rate?: number }
);

/** Exact integers, in float64. For ONNX Runtime: `BigInt64Array.from(ids.data, BigInt)`. */
export interface PositionIds {
  data: Float64Array;
  shape: number[];
}

// --- init ----------------------------------------------------------------------------------------------------

/** As `fetch` returns it. */
export interface ResponseLike {
  readonly ok: boolean;
  readonly status: number;
  readonly url: string;
  arrayBuffer(): Promise<ArrayBuffer>;
}
/** A WebAssembly.Module. */
export interface CompiledModule { readonly [Symbol.toStringTag]?: string }
/** The file posenc.wasm.gz of the package, packed or not: its bytes, the response to a request for it, or a module. */
export type CoreSource = Uint8Array | ArrayBuffer | ResponseLike | CompiledModule;
