// What the packed models of the lab say about themselves: the heads of explorer/models/*.safetensors.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const order = ['rope', 'alibi', 'sinusoidal', 'learned', 'none'];

/// For the page: sizes, and the losses that were measured after training, to four digits.
export function readModels(folder, names) {
  return names.map((name) => {
    const bytes = readFileSync(join(folder, name)), size = Number(bytes.readBigUInt64LE(0)), head = JSON.parse(bytes.toString('utf8', 8, 8 + size));
    const { __metadata__: said, ...tensors } = head, shape = JSON.parse(said.shape), scores = JSON.parse(said.scores);
    const parameters = Object.entries(tensors).filter(([one]) => !one.endsWith('.scales')).reduce((sum, [, one]) => sum + one.shape.reduce((a, b) => a * b, 1), 0);
    const rounded = (value) => Number(value.toPrecision(4)), longest = scores.at(-1);
    return { scheme: shape.scheme, layers: shape.layers, heads: shape.heads, width: shape.width, vocabulary: shape.vocabulary, context: shape.context, parameters, bytes: bytes.length,
      scores: scores.map((one) => ({ size: one.size, nll: rounded(one.nll) })),
      longest: { size: longest.size, tokens: longest.tokens, nll_by_position: longest.by_position.map(rounded) } };
  }).sort((a, b) => order.indexOf(a.scheme) - order.indexOf(b.scheme));
}
