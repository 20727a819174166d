// The scheme that the controls describe, as JSON for the library and as words for the command line.

import type { Scheme } from '../core';
import { type ChoiceParam, shared, view } from '../state';

export const schemeParam: ChoiceParam = {
  key: 's', label: 'Scheme', kind: 'choice', start: 'sinusoidal',
  options: [['sinusoidal', 'Sinusoidal'], ['rope', 'RoPE'], ['steps', 'Bad idea 1: add p · 0.0001'], ['shift', 'Bad idea 2: random + constant shift']],
};
/// Also a table that nobody trained yet: figures fill it with random numbers.
export const vectorSchemeParam: ChoiceParam = { ...schemeParam, options: [...schemeParam.options, ['learned', 'Learned (random numbers)']] };
export const waveSchemeParam: ChoiceParam = { ...schemeParam, options: schemeParam.options.slice(0, 2) };

export type Named = { json: Scheme; words: string };

export function sized(name: string, width: number, base: number): Named {
  if (name === 'rope') return { json: { scheme: 'rope', dims: width, base }, words: `rope --dims ${width} --base ${base}` };
  if (name === 'sinusoidal') return { json: { scheme: name, width, base }, words: `sinusoidal --width ${width} --base ${base}` };
  return { json: { scheme: name, width }, words: `${name} --width ${width}` };
}

export const chosen = (param: ChoiceParam = schemeParam): Named =>
  sized(view.get(param), view.get(shared.width), view.get(shared.base));
