import { formulas } from 'posenc-formulas/distance';
import { controls } from '../controls';
import { figureOf } from '../figure';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type ChoiceParam, type NumberParam, shared, view } from '../state';
import { storyOf } from '../story';
import { chosen, schemeParam } from './schemes_of_view';

const first: NumberParam = { key: 'from', label: 'First position', kind: 'whole', start: 0, least: 0, most: 100_000_000, steps: 'octaves' };
const count: NumberParam = { key: 'count', label: 'Positions', kind: 'whole', start: 24, least: 8, most: 64 };
const numerics: ChoiceParam = {
  key: 'num', label: 'Angle', kind: 'choice', start: 'exact',
  options: [['exact', 'exact'], ['hf-f32', 'float32, as Hugging Face'], ['ggml-f32', 'float32, as ggml']],
};

export const page: Page = {
  id: 'distance', title: 'The dot product depends only on the distance',
  goal: 'See that P(m)·P(n) is one number for each distance m − n, and what breaks that.',
  render(root) {
    const angles = () => (['sinusoidal', 'rope'].includes(view.get(schemeParam)) ? view.get(numerics) : 'exact');
    const range = () => `${view.get(first)}:${view.get(first) + view.get(count)}`;
    root.append(
      text('Multiply the vectors of two positions. Each line below is one distance; it is flat when the product is the same wherever the two positions are.'),
      maths(math(formulas.sum)),
      guess({
        question: 'Is a closer pair of positions always more similar (a larger dot product)?',
        choices: [
          { text: 'Yes, similarity falls at every step', because: 'It falls at first, then oscillates: a sum of cosines is not monotone.' },
          { text: 'No, it falls overall but oscillates', right: true, because: 'The product is Σ cos(ω_i · distance). Each cosine rises again, so a farther position can be more similar than a closer one.' },
        ],
      },
      controls(schemeParam, shared.width, shared.base, first, count, numerics),
      section('One line for each distance', figureOf({
        label: 'Dot products of pairs of positions, one line for each distance',
        request: () => ({ kind: 'dots', schemes: [chosen().json], zoom: { from: view.get(first), to: view.get(first) + view.get(count) }, numerics: angles() }),
        command: () => `posenc plot dots ${chosen().words} --zoom ${range()}${angles() === 'exact' ? '' : ` --numerics ${angles()}`}`,
      }), text('Choose float32 and a first position of 10,000,000: the lines are no longer flat. The angle was rounded before its sine was taken. The two bad ideas break the flatness by themselves: their vectors grow with the position.')),
      section('Why it is so', storyOf({ name: 'dot-product' }))));
  },
};
