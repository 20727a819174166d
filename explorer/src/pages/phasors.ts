import { formulas } from 'posenc-formulas/phasors';
import { controls } from '../controls';
import { figureOf } from '../figure';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type NumberParam, shared, view } from '../state';
import { storyOf } from '../story';
import { sized, waveSchemeParam } from './schemes_of_view';

const shift: NumberParam = { key: 'k', label: 'Shift k', kind: 'whole', start: 3, least: 0, most: 4096, steps: 'octaves' };
const width: NumberParam = { ...shared.width, key: 'dp', start: 16, most: 64 };
const scheme = () => sized(view.get(waveSchemeParam), view.get(width), view.get(shared.base));

export const page: Page = {
  id: 'phasors', title: 'Phasors: a shift is a rotation',
  goal: 'See each pair as a clock hand, and why moving by k positions rotates every hand by a fixed angle.',
  render(root) {
    root.append(
      text('Sine and cosine of a pair are the coordinates of a clock hand. One position further, the hand of pair i rotates by ω_i. The second hands show the position k later.'),
      maths(math(formulas.shift)),
      guess({
        question: 'Keep k and change the position m. What happens to the angle between the two hands of a pair?',
        choices: [
          { text: 'It grows with m', because: 'Both hands rotate together: each by m · ω_i. Their difference is k · ω_i.' },
          { text: 'It stays the same', right: true, because: 'The angle is k · ω_i, whatever m is. That is what lets a model learn "k tokens back" once for all positions.' },
          { text: 'It depends on the width only', because: 'The width decides ω_i; the angle between the hands is k · ω_i.' },
        ],
      },
      controls(waveSchemeParam, width, shared.base, shared.m, shift),
      section('The hands', figureOf({
        label: 'Pairs as clock hands at position m and m + k',
        cursor: { param: shared.m, axis: 'x', range: () => [0, shared.m.most], isUnseen: true },
        request: () => ({ kind: 'phasors', schemes: [scheme().json], at: view.get(shared.m), shift: view.get(shift) }),
        command: () => `posenc plot phasors ${scheme().words} --at ${view.get(shared.m)} --shift ${view.get(shift)}`,
      })),
      section('The rotation matrix, step by step', storyOf({ name: 'shift' }))));
  },
};
