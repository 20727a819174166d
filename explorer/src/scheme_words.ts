// What a scheme is, in a sentence: of a model that was read, or of tensors that were diagnosed.

import { shown } from './dom';

const upper = (text: string): string => text[0].toUpperCase() + text.slice(1);
const isPlain = (scaling: any): boolean => !scaling || ['none', 'default', undefined].includes(scaling.type);

function scalingWords(scaling: any): string {
  if (isPlain(scaling)) return '';
  const names: { [type: string]: string } = { llama3: 'the Llama 3 method', yarn: 'YaRN', linear: 'linear interpolation', dynamic: 'dynamic NTK', ntk: 'NTK', longrope: 'LongRoPE' };
  const factor = typeof scaling.factor === 'number' ? `, ${shown(scaling.factor)} times longer` : '';
  return `, extended by ${names[scaling.type] ?? scaling.type}${factor}${scaling.original_length ? ` than ${shown(scaling.original_length)} positions` : ''}`;
}

function ropeWords(scheme: any): string {
  const pairs = scheme.dims / 2, places: { [layout: string]: string } = { halves: `features i and i + ${pairs}`, interleaved: 'features 2i and 2i + 1' };
  const sections = scheme.sections?.length ? `, in sections of ${scheme.sections.join(', ')} pairs, one for each axis of a position` : '';
  return `RoPE: ${pairs} pairs in each head (${scheme.layout}: ${places[scheme.layout] ?? scheme.layout})${scheme.first_dim ? ` from feature ${scheme.first_dim} on` : ''}, base ${shown(scheme.base, 8)}${scalingWords(scheme.scaling)}${sections}`;
}

const others: { [name: string]: (scheme: any) => string } = {
  rope: ropeWords,
  none: () => 'No position: the layer sees order only through its mask',
  learned: (one) => `A trained table: ${shown(one.rows)} rows of ${shown(one.width)} numbers, added to the embeddings`,
  sinusoidal: (one) => `Sinusoids of width ${shown(one.width)}, base ${shown(one.base ?? 10_000, 8)}, added to the embeddings`,
  alibi: (one) => `ALiBi: ${one.heads} heads, each with a slope of its own`,
  t5: (one) => `T5's bias: ${one.heads} heads, ${one.buckets} trained numbers each for distances up to ${one.max_distance}`,
};

/// "RoPE: 64 pairs in each head (halves: features i and i + 64), base 500,000".
export function schemeWords(scheme: any): string {
  const words = others[scheme.scheme];
  if (words) return words(scheme);
  const fields = Object.entries(scheme).filter(([name, value]) => name !== 'scheme' && ['number', 'string'].includes(typeof value)).map(([name, value]) => `${name.replaceAll('_', ' ')} ${typeof value === 'number' ? shown(value, 8) : value}`);
  return `${upper(scheme.scheme)}${fields.length ? `: ${fields.join(', ')}` : ''}`;
}

/// How many pairs never complete a turn in training.
export function turnWords(frequencies: number[], trained: number | null): string {
  const rotating = frequencies.filter((one) => one > 0);
  if (!rotating.length || !trained) return '';
  const slow = rotating.filter((one) => (2 * Math.PI) / one > trained).length, longest = (2 * Math.PI) / Math.min(...rotating);
  return slow ? `${slow} of its ${rotating.length} clocks never complete a turn within the ${shown(trained)} positions of training; the slowest needs ${shown(Math.round(longest))}.`
    : `All ${rotating.length} clocks complete a turn within the ${shown(trained)} positions of training.`;
}

export const verdictWords: { [verdict: string]: string } = {
  sure: 'Sure: one convention reproduces every value', likely: 'Likely: this convention reproduces the values, but it is not the only one', unchanged: 'Unchanged: the two tensors are the same',
  'unknown-frequencies': 'A rotation, at frequencies of no known scheme', 'not-a-rotation': 'No known convention reproduces the change', 'too-little': 'Too few tokens to tell', 'no-position': 'The change does not depend on the position',
};

/// The convention that explains two tensors.
export function conventionWords(best: any): string {
  const parts = [schemeWords({ ...best, first_dim: best.first_dim || 0 })];
  if (best.scheme === 'rope' && best.layout === 'halves') parts.push('Hugging Face\'s code for Llama pairs features like this');
  if (best.scheme === 'rope' && best.layout === 'interleaved') parts.push('GPT-J pairs features like this; Hugging Face’s Llama expects halves');
  if (best.sign === -1) parts.push('It rotates the other way round');
  parts.push(`The first token has position ${shown(best.first_position)}`);
  if (Math.abs(best.magnitude - 1) > 1e-3) parts.push(`Vectors are multiplied by ${shown(best.magnitude)}`);
  parts.push(best.numerics === 'exact' ? (best.numerics_sure ? 'Angles are exact' : 'Nothing speaks against exact angles') : `Angles are formed as ${best.numerics}`);
  return `${parts.join('. ')}.`;
}
