import { formulas } from 'posenc-formulas/distance';
import { question } from 'posenc-guesses/distance';
import { explore } from '../controls';
import { figureOf } from '../figure';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type ChoiceParam, type NumberParam, shared, view } from '../state';
import { storyOf } from '../story';
import { closedForm } from './closed_form';
import { chosen as scheme, vectorSchemeParam } from './schemes_of_view';

const first: NumberParam = { key: 'from', label: 'First position', kind: 'whole', start: 0, least: 0, most: 100_000_000, steps: 'octaves' };
const count: NumberParam = { key: 'count', label: 'Positions', kind: 'whole', start: 24, least: 8, most: 64 };
const numerics: ChoiceParam = {
  key: 'num', label: 'Angle', kind: 'choice', start: 'exact',
  options: [['exact', 'exact'], ['hf-f32', 'float32, as Hugging Face'], ['ggml-f32', 'float32, as ggml']],
};

const m: NumberParam = { ...shared.m, start: 12 };
const rounded: ChoiceParam = {
  key: 'type', label: 'Vectors rounded to', kind: 'choice', start: 'f64', options: [['f64', 'float64'], ['f32', 'float32'], ['f16', 'float16'], ['bf16', 'bfloat16']],
};

export const page: Page = {
  id: 'distance', title: 'The dot product depends only on the distance',
  goal: 'See that P(m)·P(n) is one number for each distance m − n, and what breaks that.',
  render(root) {
    const angles = () => (['sinusoidal', 'rope'].includes(view.get(vectorSchemeParam)) ? view.get(numerics) : 'exact');
    // A trained table has 512 rows.
    const from = () => (view.get(vectorSchemeParam) === 'learned' ? Math.min(view.get(first), 512 - view.get(count)) : view.get(first));
    const chosen = () => scheme(vectorSchemeParam);
    const request = () => ({ schemes: [chosen().json], zoom: { from: from(), to: from() + view.get(count) }, numerics: angles(), dtype: view.get(rounded) });
    const flags = () => `${chosen().words} --zoom ${from()}:${from() + view.get(count)}${angles() === 'exact' ? '' : ` --numerics ${angles()}`}${view.get(rounded) === 'f64' ? '' : ` --dtype ${view.get(rounded)}`}`;
    const shown = (): [number, number] => [from(), from() + view.get(count) - 1];
    root.append(
      text('Multiply the vectors of two positions. Each line below is one distance; it is flat when the product is the same wherever the two positions are.'),
      explore([m, first, count, shared.width, shared.base, vectorSchemeParam, numerics, rounded],
      section('One line for each distance', figureOf({
        label: 'Dot products of pairs of positions, one line for each distance',
        cursor: { param: m, axis: 'x', range: shown },
        request: () => ({ kind: 'dots', ...request() }),
        command: () => `posenc plot dots ${flags()}`,
      }), text('Three things break the flatness. An angle that was rounded: choose float32 angles and a first position of 10,000,000. Vectors that were rounded: choose float16. Vectors that are not sinusoids: a learned table, and the two bad ideas, whose vectors grow with the position.')),
      guess(question),
      section('Closed form against measured', maths(math(formulas.sum)), closedForm(chosen)),
      section('Every pair of positions as a map', text('The same vectors, divided by their lengths. Where similarity depends only on the distance, the map is constant along every diagonal (a Toeplitz matrix).'), figureOf({
        label: 'Cosine similarity of every pair of positions, as a map',
        cursor: { param: m, axis: 'y', range: shown },
        request: () => ({ kind: 'similarity', ...request() }),
        command: () => `posenc plot similarity ${flags()}`,
      })),
      section('Why it is so', storyOf({ name: 'dot-product' }))));
  },
};
