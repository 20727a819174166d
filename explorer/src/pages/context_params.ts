// The numbers of the page on longer contexts.

import { type NumberParam, shared } from '../state';

export const trained: NumberParam = { key: 'trained', label: 'Trained length', kind: 'whole', start: 8192, least: 128, most: 1_048_576, steps: 'octaves' };
export const factor: NumberParam = { key: 'x', label: 'Times longer', kind: 'real', start: 8, least: 1, most: 64, steps: 'octaves' };
export const pair: NumberParam = { key: 'i', label: 'Pair i', kind: 'whole', start: 0, least: 0, most: 255 };
export const dims: NumberParam = { ...shared.width, key: 'dims', label: 'Rotary dimensions', start: 128 };
