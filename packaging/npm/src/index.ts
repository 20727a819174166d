// Positional encodings of Transformers, computed by the library posenc as WebAssembly. Every function returns a promise:
// the first call loads the core.

import { Pieces, ask } from './core.js';
import { listField, modelPiece, plain, positionsPiece, refuseOthers, schemeField, tensorPiece } from './arguments.js';
import type { Scheme } from './schemes.js';
import type {
  CheckOptions, CheckResult, DType, DataOf, DiagnoseOptions, Diagnosis, Model, ModelSource, PositionIds, PositionSource,
  PositionsRequest, Table, TabulateOptions, TensorSource, Values,
} from './types.js';

export { PosencError, init, version } from './core.js';
export type * from './schemes.js';
export type * from './types.js';

/**
 * How a model encodes position: which scheme in which layers, with which frequencies, and what the config leaves open.
 * @throws PosencError that names key, value and rule.
 */
export async function inspect(model: ModelSource): Promise<Model> {
  const pieces = new Pieces('inspect');
  return (await ask({ call: 'inspect', model: modelPiece(model, 'inspect', pieces) }, pieces)).json;
}

/**
 * Whether `after` is what a scheme or a model makes of `before`, element by element; if not, what was applied instead. Both are
 * vectors, [..., sequence, features], or for a bias scores before the softmax, [..., heads, queries, keys]. The float32
 * angles of Hugging Face and ggml count as correct.
 * @throws PosencError for shapes, types, positions and schemes that are invalid.
 */
export async function check(before: TensorSource, after: TensorSource, options: CheckOptions): Promise<CheckResult> {
  const verb = 'check', pieces = new Pieces(verb);
  refuseOthers(options, ['scheme', 'model', 'layer', 'part', 'positions', 'first', 'keys', 'causal', 'weights', 'tolerance', 'order', 'length'], verb);
  const { scheme, model, positions, keys, weights } = options;
  return (await ask({
    call: verb,
    scheme: scheme === undefined ? undefined : schemeField(scheme, verb),
    model: model === undefined ? undefined : modelPiece(model, verb, pieces),
    before: tensorPiece(before, 'before', verb, pieces),
    after: tensorPiece(after, 'after', verb, pieces),
    positions: optionalPositions(positions, 'positions', verb, pieces),
    keys: optionalPositions(keys, 'keys', verb, pieces),
    weights: weights === undefined ? undefined : tensorPiece(weights, 'weights', verb, pieces),
    ...plain(options, { layer: 'number', part: 'string', first: 'number', causal: 'boolean', tolerance: 'number', order: 'string', length: 'number' }, verb),
  }, pieces)).json;
}

/**
 * The convention, or the bug, that made `after` from `before`; shapes as in check.
 * @throws PosencError for shapes that differ, numbers that are not finite, and positions that are invalid.
 */
export async function diagnose(before: TensorSource, after: TensorSource, options: DiagnoseOptions = {}): Promise<Diagnosis> {
  const verb = 'diagnose', pieces = new Pieces(verb);
  refuseOthers(options, ['positions', 'order'], verb);
  return (await ask({
    call: verb,
    before: tensorPiece(before, 'before', verb, pieces),
    after: tensorPiece(after, 'after', verb, pieces),
    positions: optionalPositions(options.positions, 'positions', verb, pieces),
    ...plain(options, { order: 'string' }, verb),
  }, pieces)).json;
}

/**
 * The values of a scheme, correctly rounded in f32, f16 and bf16 at every position below 2^53: vectors to add, cosines and sines of a rotation, or
 * what a bias adds to scores.
 * @throws PosencError that names scheme, field, value and rule.
 */
export async function tabulate<D extends DType = 'f32'>(scheme: Scheme | Scheme['scheme'], options: TabulateOptions<D>): Promise<Table<D>> {
  const verb = 'tabulate', pieces = new Pieces(verb);
  refuseOthers(options, ['count', 'first', 'positions', 'queries', 'keys', 'dtype', 'numerics', 'length', 'head', 'weights'], verb);
  const { positions, queries, keys, weights } = options;
  const { json, bytes } = await ask({
    call: verb,
    scheme: schemeField(scheme, verb),
    positions: optionalPositions(positions, 'positions', verb, pieces),
    queries: optionalPositions(queries, 'queries', verb, pieces),
    keys: optionalPositions(keys, 'keys', verb, pieces),
    weights: weights === undefined ? undefined : tensorPiece(weights, 'weights', verb, pieces),
    ...plain(options, { count: 'number', first: 'number', dtype: 'string', numerics: 'string', length: 'number', head: 'number' }, verb),
  }, pieces);
  const { kind, dtype, shape } = json as { kind: Table<D>['kind']; dtype: D; shape: number[] };
  const values = (from: number, to: number): Values<D> => ({ data: elements(bytes.buffer.slice(from, to), dtype), shape: [...shape], dtype });
  if (kind !== 'rotation') return { kind, ...values(0, bytes.length) };
  const half = bytes.length / 2;
  return { kind, cosines: values(0, half), sines: values(half, bytes.length) };
}

/**
 * The positions of tokens: packed sequences, padded batches, grids, random positions, and the mixed input of M-RoPE.
 * @throws PosencError for requests that cannot be met, and positions of 2^53 or more.
 */
export async function positions(request: PositionsRequest): Promise<PositionIds> {
  const verb = 'positions', pieces = new Pieces(verb);
  const kinds = ['lengths', 'grid', 'mask', 'random', 'spec'];
  refuseOthers(request, [...kinds, 'first', 'centred', 'rule', 'padding', 'below', 'seed', 'family', 'merge', 'rate'], verb);
  const given = kinds.filter((kind) => kind in request);
  const mask = 'mask' in request ? positionsPiece(request.mask, 'mask', verb, pieces) : undefined;
  const list = (name: 'lengths' | 'grid') => listField((request as { [name: string]: unknown })[name]);
  const { json, bytes } = await ask({
    call: verb,
    kind: given.length === 1 ? given[0] : '',
    lengths: list('lengths'),
    grid: list('grid'),
    mask,
    batched: mask?.rows,
    ...plain(request, { first: 'number', centred: 'boolean', rule: 'string', padding: 'number', random: 'number', below: 'number', seed: 'number', spec: 'string', family: 'string', merge: 'number', rate: 'number' }, verb),
  }, pieces);
  return { data: new Float64Array(bytes.buffer), shape: json.shape };
}

const optionalPositions = (source: PositionSource | undefined, name: string, verb: string, pieces: Pieces): object | undefined =>
  (source === undefined ? undefined : positionsPiece(source, name, verb, pieces));

function elements<D extends DType>(buffer: ArrayBuffer, dtype: D): DataOf<D> {
  const made = dtype === 'f32' ? new Float32Array(buffer) : dtype === 'f64' ? new Float64Array(buffer) : new Uint16Array(buffer);
  return made as DataOf<D>;
}
