// A tensor in a file of the user's: .npy as it is, .safetensors by one of its names. Only what is needed is read, so that a
// file of many gigabytes costs nothing, and what is too large is refused before it is read.

import { npyHead } from './dom';

/// One head and 16 tokens are enough; this is thousands of times as much.
export const mostBytes = 64 << 20;
const longestHeader = 100_000_000;

export type Tensors = { file: File; names: string[]; read(name: string): Promise<Uint8Array> };

const megabytes = (bytes: number): string => `${(bytes / 1e6).toLocaleString('en', { maximumFractionDigits: 1 })} MB`;
function refuseLarge(what: string, bytes: number): void {
  if (bytes > mostBytes) throw new Error(`${what} has ${megabytes(bytes)}, and this page reads up to ${megabytes(mostBytes)}. One head and 16 tokens are enough`);
}
const bytesOf = async (part: Blob): Promise<Uint8Array<ArrayBuffer>> => new Uint8Array(await part.arrayBuffer());

// The name of the type in a .npy file, and its bytes. NumPy has no bfloat16: its bits are read as such.
const types: { [dtype: string]: [string, number] } = { F64: ['<f8', 8], F32: ['<f4', 4], F16: ['<f2', 2], BF16: ['<u2', 2] };

async function openSafetensors(file: File, header: number): Promise<Tensors> {
  if (header > longestHeader || 8 + header > file.size) throw new Error(`its header would have ${header.toLocaleString('en')} bytes, more than the file`);
  let entries: [string, any][];
  try {
    entries = Object.entries(JSON.parse(new TextDecoder().decode(await bytesOf(file.slice(8, 8 + header)))));
  } catch {
    throw new Error('is no .safetensors file: its header is not JSON');
  }
  const isNumbers = (list: unknown): boolean => Array.isArray(list) && list.every((one) => Number.isSafeInteger(one) && one >= 0);
  const isWhole = (one: any): boolean => isNumbers(one?.shape) && isNumbers(one.data_offsets) && one.data_offsets.length === 2;
  const known = new Map(entries.filter(([name, one]) => name !== '__metadata__' && one?.dtype in types && isWhole(one)));
  if (!known.size) throw new Error('has no tensor of type F64, F32, F16 or BF16');
  return {
    file, names: [...known.keys()],
    async read(name) {
      const { dtype, shape, data_offsets: [from, to] } = known.get(name) as { dtype: string; shape: number[]; data_offsets: number[] };
      const [descr, size] = types[dtype], count = shape.reduce((product, one) => product * one, 1);
      if (to - from !== count * size || 8 + header + to > file.size) throw new Error(`${name}: its bytes do not fit its shape, or the file was cut`);
      refuseLarge(`the tensor ${name}`, to - from);
      return joined(npyHead(shape, descr), await bytesOf(file.slice(8 + header + from, 8 + header + to)));
    },
  };
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

/// Throws: Error that says what is wrong, without the name of the file.
export async function openTensors(file: File): Promise<Tensors> {
  if (file.size === 0) throw new Error('is empty');
  const start = await bytesOf(file.slice(0, 9)), header = start.length === 9 && start[8] === 0x7b ? Number(new DataView(start.buffer).getBigUint64(0, true)) : -1;
  if (header >= 0) return openSafetensors(file, header);
  if (/\.safetensors$/i.test(file.name)) throw new Error('is no .safetensors file: it does not begin with the length of a header');
  refuseLarge('it', file.size);
  return { file, names: [''], read: () => bytesOf(file) };
}
