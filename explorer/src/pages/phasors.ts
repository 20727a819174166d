import { formulas } from 'posenc-formulas/phasors';
import { question } from 'posenc-guesses/phasors';
import { controls } from '../controls';
import { figureOf } from '../figure';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type ChoiceParam, type NumberParam, shared, view } from '../state';
import { storyOf } from '../story';
import { type Named, sized, waveSchemeParam } from './schemes_of_view';

const shift: NumberParam = { key: 'k', label: 'Shift k', kind: 'whole', start: 3, least: 0, most: 4096, steps: 'octaves' };
const width: NumberParam = { ...shared.width, key: 'dp', start: 16, most: 64 };
const layout: ChoiceParam = { key: 'pairs', label: 'Pairs', kind: 'choice', start: 'usual', options: [['usual', 'as usual'], ['together', '(2i, 2i + 1)'], ['apart', '(i, i + d/2)']] };
// The vectors as they are laid out: sinusoids usually side by side, RoPE usually in halves.
const laidOut = (): Named => {
  const { json, words } = scheme(), isRope = json.scheme === 'rope', chosen = view.get(layout);
  if (chosen === 'usual') return { json, words };
  const name = chosen === 'together' ? 'interleaved' : isRope ? 'halves' : 'sin-cos';
  return { json: { ...json, layout: name }, words: `${words} --layout ${name}` };
};
const scheme = () => sized(view.get(waveSchemeParam), view.get(width), view.get(shared.base));

export const page: Page = {
  id: 'phasors', title: 'Phasors: a shift is a rotation',
  goal: 'See each pair as a clock hand, and why moving by k positions rotates every hand by a fixed angle.',
  render(root) {
    root.append(
      text('Sine and cosine of a pair are the coordinates of a clock hand. One position further, the hand of pair i rotates by ω_i. The second hands show the position k later.'),
      maths(math(formulas.shift)),
      guess(question,
      controls(waveSchemeParam, width, shared.base, shared.m, shift),
      section('The hands', figureOf({
        label: 'Pairs as clock hands at position m and m + k',
        cursor: { param: shared.m, axis: 'x', range: () => [0, shared.m.most], isUnseen: true },
        request: () => ({ kind: 'phasors', schemes: [scheme().json], at: view.get(shared.m), shift: view.get(shift) }),
        command: () => `posenc plot phasors ${scheme().words} --at ${view.get(shared.m)} --shift ${view.get(shift)}`,
      })),
      section('The matrix R(k)', text('Change m: the matrix stays as it is, and it still carries the vector of m to that of m + k. Change k: every pair rotates by k · ω_i. Each pair is a 2 × 2 block; where its two features are depends on the layout.'), controls(layout), figureOf({
        label: 'The matrix that moves every position by k',
        cursor: { param: shared.m, axis: 'x', range: () => [0, shared.m.most], isUnseen: true },
        request: () => ({ kind: 'rotation', schemes: [laidOut().json], at: view.get(shared.m), shift: view.get(shift) }),
        command: () => `posenc plot rotation ${laidOut().words} --at ${view.get(shared.m)} --shift ${view.get(shift)}`,
      })),
      section('The rotation matrix, step by step', storyOf({ name: 'shift' }))));
  },
};
