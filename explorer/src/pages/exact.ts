import { formulas } from 'posenc-formulas/exact';
import { question } from 'posenc-guesses/exact';
import { controls } from '../controls';
import { figureOf } from '../figure';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type NumberParam, shared, view } from '../state';
import { sized } from './schemes_of_view';

const far: NumberParam = { key: 'far', label: 'Last position', kind: 'whole', start: 1_000_000, least: 64, most: 100_000_000, steps: 'octaves' };
const width: NumberParam = { ...shared.width, key: 'dims', label: 'Rotary dimensions', start: 128 };
const scheme = () => sized('rope', view.get(width), view.get(shared.base));

export const page: Page = {
  id: 'exact', title: 'Exactness: what float32 and bf16 do to the angle',
  goal: 'See how the error of an angle grows with position, and why exact angles avoid it.',
  render(root) {
    root.append(
      text('Engines form the angle as float32(position) · float32(frequency). The product is rounded before its sine is taken: the larger the angle, the larger the error. In bf16 even the position is rounded: 257 becomes 256.'),
      maths(math(formulas.bound, 'Error of an angle formed in float32, roughly')),
      guess(question,
      controls(width, shared.base, far, shared.m),
      section('Error against position', figureOf({
        label: 'Largest error of a cosine or sine against position',
        cursor: { param: shared.m, axis: 'x', range: () => [1, view.get(far)] },
        request: () => ({ kind: 'error', schemes: [scheme().json], zoom: { from: 1, to: view.get(far) } }),
        command: () => `posenc plot error ${scheme().words} --zoom 1:${view.get(far)}`,
      }))));
  },
};
