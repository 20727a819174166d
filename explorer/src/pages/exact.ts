import { formulas } from 'posenc-formulas/exact';
import { question } from 'posenc-guesses/exact';
import { explore } from '../controls';
import { h, shown, write } from '../dom';
import { type PeFigure, figureOf } from '../figure';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type NumberParam, shared, view } from '../state';
import { sized } from './schemes_of_view';

const far: NumberParam = { key: 'far', label: 'Last position', kind: 'whole', start: 1_000_000, least: 64, most: 100_000_000, steps: 'octaves' };
const width: NumberParam = { ...shared.width, key: 'dims', label: 'Rotary dimensions', start: 128 };
const scheme = () => sized('rope', view.get(width), view.get(shared.base));

// How many bits each way loses at position m, against an exact angle that is rounded to float32 once.
function bitsLost(figure: PeFigure): HTMLElement {
  const words = h('p', { class: 'note', role: 'status' });
  figure.addEventListener('drawn', () => {
    const m = Math.min(Math.max(1, view.get(shared.m)), view.get(far)), values = figure.valuesAt(m), best = values.find((one) => one.name === 'exact, in float32')?.y;
    if (!best) return;
    const lost = values.filter((one) => one.name !== 'exact, in float32' && one.y > 0).map((one) => `${one.name} ${Math.max(0, Math.log2(one.y / best)).toFixed(1)}`);
    write(words, `Bits lost near position ${shown(m)}, against an exact angle rounded to float32: ${lost.join('; ')}.`);
  });
  return words;
}

export const page: Page = {
  id: 'exact', title: 'Exactness: what float32 and bf16 do to the angle',
  goal: 'See how the error of an angle grows with position, and why exact angles avoid it.',
  render(root) {
    const figure: PeFigure = figureOf({
      label: 'Largest error of an angle against position',
      cursor: { param: shared.m, axis: 'x', range: () => [1, view.get(far)] },
      request: () => ({ kind: 'error', schemes: [scheme().json], zoom: { from: 1, to: view.get(far) } }),
      command: () => `posenc plot error ${scheme().words} --zoom 1:${view.get(far)}`,
    });
    root.append(
      text('Engines form the angle as float32(position) · float32(frequency). The product is rounded before its sine is taken: the larger the angle, the larger the error. In bf16 even the position is rounded: 257 becomes 256.'),
      explore([shared.m, far, width, shared.base],
      section('Error against position', figure, bitsLost(figure)),
      guess(question),
      maths(math(formulas.bound, 'Error of an angle formed in float32, roughly'))));
  },
};
