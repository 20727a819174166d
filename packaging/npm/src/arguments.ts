// From what callers pass to what the core reads: pieces of bytes, and fields that describe them.

import { Pieces, fail } from './core.js';
import type { DType, ModelSource, PositionSource, TensorSource } from './types.js';
import type { Scheme } from './schemes.js';

/** "null", "a number", "an array", "a Float32Array". */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== 'object') return `a ${typeof value}`;
  if (Array.isArray(value)) return 'an array';
  const name = value.constructor?.name ?? 'object';
  return `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`;
}

function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  // also a Buffer of Node, and arrays of another realm
  return ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]' ? value as Uint8Array : undefined;
}

/** An object as JSON text. NaN and infinities, which JSON would silently make null, are refused. */
function jsonOf(value: object, verb: string): string {
  try {
    return JSON.stringify(value, (key, one: unknown) =>
      typeof one === 'number' && !Number.isFinite(one) ? fail(`${verb}: ${key} is ${one}, which JSON cannot represent`) : one);
  } catch (error) {
    if (error instanceof Error && error.name === 'PosencError') throw error;
    return fail(`${verb}: the object cannot be written as JSON (${(error as Error).message.split('\n')[0]})`);
  }
}

export function modelPiece(model: ModelSource, verb: string, pieces: Pieces): object {
  const bytes = bytesOf(model);
  if (bytes) return pieces.add(bytes);
  if (typeof model === 'string') return pieces.add(new TextEncoder().encode(model));
  if (typeof model !== 'object' || model === null || Array.isArray(model) || ArrayBuffer.isView(model)) {
    fail(`${verb}: a model is JSON text, an object, or the bytes of a file, not ${kindOf(model)}`);
  }
  return pieces.add(new TextEncoder().encode(jsonOf(model, verb)));
}

export function schemeField(scheme: Scheme | Scheme['scheme'], verb: string): object {
  if (typeof scheme === 'string') return { scheme };
  if (typeof scheme !== 'object' || scheme === null || Array.isArray(scheme)) {
    fail(`${verb}: a scheme is a name or an object such as { scheme: "rope", dims: 128 }, not ${kindOf(scheme)}`);
  }
  return JSON.parse(jsonOf(scheme, verb));
}

const typeOf: { [name: string]: DType } = { Float32Array: 'f32', Float64Array: 'f64' };

export function tensorPiece(tensor: TensorSource, name: string, verb: string, pieces: Pieces): object {
  const bytes = bytesOf(tensor);
  if (bytes) return { ...pieces.add(bytes), npy: true };
  const { data, shape, dtype } = (tensor ?? {}) as { data?: unknown; shape?: unknown; dtype?: unknown };
  const kind = Object.prototype.toString.call(data).slice(8, -1);
  if (!ArrayBuffer.isView(data) || !(kind in typeOf || kind === 'Uint16Array')) {
    fail(`${verb}: ${name} is { data, shape } with a Float32Array, Float64Array or Uint16Array, or a .npy file, not ${kindOf(data ?? tensor)}`);
  }
  if (!Array.isArray(shape)) fail(`${verb}: ${name}.shape is an array of integers, not ${kindOf(shape)}`);
  const known = typeOf[kind];
  if (known && dtype !== undefined && dtype !== known) fail(`${verb}: ${name} is a ${kind}, but its dtype is ${String(dtype)}`);
  if (!known && dtype !== 'f16' && dtype !== 'bf16') fail(`${verb}: ${name} is a Uint16Array, whose dtype must be f16 or bf16 but is ${String(dtype)}`);
  return { ...pieces.add(data as ArrayBufferView), dtype: known ?? dtype, shape: listField(shape) };
}

type NumberList = ArrayLike<number | bigint>;
const isList = (value: unknown): value is NumberList =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && typeof (value as unknown as NumberList).length === 'number');

/** A list as a plain array; the core refuses anything else. */
export const listField = (value: unknown): unknown => (isList(value) ? Array.from(value, (one) => (typeof one === 'bigint' ? Number(one) : one)) : value);

function write(to: Float64Array, from: number, list: NumberList, name: string, verb: string): void {
  for (let i = 0; i < list.length; ++i) {
    const one = list[i]!;
    if (typeof one === 'bigint' && (one >= 2n ** 53n || one <= -(2n ** 53n))) fail(`${verb}: ${name} must be integers below 2^53 but number ${i} is ${one}`);
    // anything but a number becomes NaN, which the core refuses
    to[from + i] = typeof one === 'number' || typeof one === 'bigint' ? Number(one) : NaN;
  }
}

/** `axes`: rows of equal length; whether there was more than a plain list is in `rows`. */
export function positionsPiece(source: PositionSource, name: string, verb: string, pieces: Pieces): { axes: number; rows: boolean } {
  const wrong = (): never => fail(`${verb}: ${name} are a list of integers, a list for each axis, or { data, shape }, not ${kindOf(source)}`);
  let values: Float64Array, axes = 1, rows = false;
  if (isList(source)) {
    if (source.length > 0 && isList(source[0])) {
      const lists = source as unknown as readonly NumberList[], length = lists[0]!.length;
      rows = true;
      axes = lists.length;
      values = new Float64Array(axes * length);
      lists.forEach((list, axis) => {
        if (!isList(list) || list.length !== length) fail(`${verb}: ${name} must have rows of equal length`);
        write(values, axis * length, list, name, verb);
      });
    } else {
      values = new Float64Array(source.length);
      write(values, 0, source as NumberList, name, verb);
    }
  } else {
    const { data, shape } = (source ?? {}) as unknown as { data: NumberList; shape: readonly number[] };
    if (!isList(data) || !Array.isArray(shape)) wrong();
    if (shape.length < 1 || shape.length > 2 || shape.reduce((product, extent) => product * extent, 1) !== data.length) {
      fail(`${verb}: ${name} have shape [${shape}] and ${data.length} elements; expected [count] or [axes, count]`);
    }
    rows = shape.length === 2;
    axes = rows ? shape[0]! : 1;
    values = new Float64Array(data.length);
    write(values, 0, data, name, verb);
  }
  if (values.length === 0) fail(`${verb}: ${name} are empty`);
  return { ...pieces.add(values), axes, rows };
}

/** Options that are not known: a misspelt one must not be ignored. */
export function refuseOthers(options: object, known: readonly string[], verb: string): void {
  if (typeof options !== 'object' || options === null) fail(`${verb}: options are an object, not ${kindOf(options)}`);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) fail(`${verb}: there is no option ${name}; choose from: ${known.join(', ')}`);
  }
}

/** Numbers and flags of the request; others are refused, and NaN is not taken for a missing field. */
export function plain(options: object, names: { [name: string]: 'number' | 'boolean' | 'string' }, verb: string): { [name: string]: unknown } {
  const fields: { [name: string]: unknown } = {};
  for (const [name, type] of Object.entries(names)) {
    const value = (options as { [name: string]: unknown })[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== type) fail(`${verb}: ${name} must be a ${type} but is ${kindOf(value)}`);
    if (typeof value === 'number' && !Number.isFinite(value)) fail(`${verb}: ${name} must be finite but is ${value}`);
    fields[name] = value;
  }
  return fields;
}
