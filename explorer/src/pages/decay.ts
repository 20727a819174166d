import { formulas } from 'posenc-formulas/decay';
import { question } from 'posenc-guesses/decay';
import { control, controls, explore } from '../controls';
import { figureOf } from '../figure';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type ChoiceParam, type FlagParam, type NumberParam, shared, view } from '../state';
import { type Named, sized } from './schemes_of_view';

const reach: NumberParam = { key: 'reach', label: 'Distances', kind: 'whole', start: 256, least: 16, most: 65_536, steps: 'octaves' };
const heads: NumberParam = { key: 'heads', label: 'Heads (ALiBi)', kind: 'whole', start: 8, least: 1, most: 64 };
const head: ChoiceParam = { key: 'head', label: 'Head', kind: 'choice', start: 'all', options: [['all', 'several'], ...Array.from({ length: heads.most }, (_, i): [string, string] => [String(i), `head ${i}`])] };
const axes: ChoiceParam = { key: 'axes', label: 'Axes', kind: 'choice', start: 'linear', options: [['linear', 'linear'], ['log', 'log distance'], ['both', 'both log']] };
const flags: { param: FlagParam; make: () => Named }[] = [
  { param: { key: 'rope', label: 'RoPE', kind: 'flag', start: true }, make: () => sized('rope', view.get(shared.width), view.get(shared.base)) },
  { param: { key: 'sin', label: 'Sinusoidal', kind: 'flag', start: false }, make: () => sized('sinusoidal', view.get(shared.width), view.get(shared.base)) },
  { param: { key: 'alibi', label: 'ALiBi', kind: 'flag', start: true }, make: () => ({ json: { scheme: 'alibi', heads: view.get(heads) }, words: `alibi --heads ${view.get(heads)}` }) },
];
const bound: FlagParam = { key: 'bound', label: 'Bound of RoPE', kind: 'flag', start: false };
const isBounded = () => view.get(bound) && view.get(flags[0].param);
const bias: ChoiceParam = { key: 'bias', label: 'Bias', kind: 'choice', start: 'alibi', options: [['alibi', 'ALiBi'], ['sandwich', 'Sandwich'], ['kerple', 'KERPLE'], ['t5', 'T5 (bucket numbers)']] };
const biasScheme = (): Named => {
  const name = view.get(bias);
  if (name === 'alibi') return { json: { scheme: name, heads: view.get(heads) }, words: `alibi --heads ${view.get(heads)}` };
  return { json: { scheme: name }, words: name };
};

// The head that is chosen, as far as there are so many.
const chosenHead = (count: number): { json: { head?: number }; words: string } => {
  const number = view.get(head) === 'all' ? undefined : Math.min(Number(view.get(head)), count - 1);
  return number === undefined ? { json: {}, words: '' } : { json: { head: number }, words: ` --head ${number}` };
};
const headCounts: { [bias: string]: () => number } = { alibi: () => view.get(heads), sandwich: () => 12 };
const biasHead = () => (view.get(bias) in headCounts ? chosenHead(headCounts[view.get(bias)]()) : { json: {}, words: '' });
// Only heads that ALiBi has now are offered.
function headControl(): HTMLElement {
  const made = control(head), list = made.querySelector('select')!;
  let known = -1;
  const refresh = () => {
    if (known === view.get(heads)) return;
    known = view.get(heads);
    [...list.options].forEach((option, index) => { if (option.hidden !== index > known) option.hidden = option.disabled = index > known; });
  };
  view.onChange(refresh);
  refresh();
  return made;
}
const axisFlags = () => {
  const chosen = view.get(axes);
  return { json: { log_x: chosen !== 'linear', log_y: chosen === 'both' }, words: `${chosen !== 'linear' ? ' --log-x' : ''}${chosen === 'both' ? ' --log-y' : ''}` };
};

export const page: Page = {
  id: 'decay', title: 'Decay: does similarity fall with distance?',
  goal: 'Compare how schemes weigh near and far positions.',
  render(root) {
    const picked = () => {
      const list = flags.filter((one) => view.get(one.param)).map((one) => one.make());
      return list.length ? list : [flags[0].make()];
    };
    root.append(
      text('Sinusoidal vectors and RoPE give a sum of cosines of the distance: it falls overall, but oscillates. ALiBi subtracts a straight line, with a slope of its own for each head.'),
      explore([shared.m, reach, shared.width, shared.base, heads, headControl(), axes, ...flags.map((one) => one.param), bound],
      section('Score against distance', figureOf({
        label: 'Score against distance',
        cursor: { param: shared.m, axis: 'x', range: () => [view.get(axes) === 'linear' ? 0 : 1, view.get(reach)] },
        request: () => ({ kind: 'decay', schemes: picked().map((one) => one.json), zoom: { from: 0, to: view.get(reach) + 1 }, ...chosenHead(view.get(heads)).json, ...axisFlags().json, bound: isBounded() }),
        command: () => `posenc plot decay ${picked().map((one) => one.words).join(' ')}${isBounded() ? ' --bound' : ''} --zoom 0:${view.get(reach) + 1}${chosenHead(view.get(heads)).words}${axisFlags().words}`,
      })),
      guess(question),
      maths(math(formulas.rope, 'RoPE, mean over pairs'), math(formulas.alibi, 'ALiBi, head h of H')),
      section('Which pairs make this value', text('At distance m the hand of pair i has rotated by m · ω_i. RoPE\'s score is the mean of how far the hands reach to the right: fast pairs average out, slow ones still point right.'), figureOf({
        label: 'Hands of the pairs at distance m',
        cursor: { param: shared.m, axis: 'x', range: () => [0, view.get(reach)], isUnseen: true },
        request: () => ({ kind: 'phasors', schemes: [flags[0].make().json], at: view.get(shared.m) }),
        command: () => `posenc plot phasors ${flags[0].make().words} --at ${view.get(shared.m)}`,
      })),
      section('What is added to the scores', controls(bias), figureOf({
        label: 'Bias of each head against distance',
        cursor: { param: shared.m, axis: 'x', range: () => [0, 127] },
        request: () => ({ kind: 'bias', schemes: [biasScheme().json], lines: true, zoom: { from: 0, to: 128 }, ...biasHead().json }),
        command: () => `posenc plot bias ${biasScheme().words} --lines --zoom 0:128${biasHead().words}`,
      }))));
  },
};
