import { formulas } from 'posenc-formulas/phasors';
import { question } from 'posenc-guesses/phasors';
import { controlWhile, controls, explore } from '../controls';
import { h } from '../dom';
import { figureOf } from '../figure';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type ChoiceParam, type NumberParam, shared, view } from '../state';
import { storyOf } from '../story';
import { type Named, sized, waveSchemeParam } from './schemes_of_view';

const shift: NumberParam = { key: 'k', label: 'Shift k', kind: 'whole', start: 3, least: 0, most: 4096, steps: 'octaves' };
const width: NumberParam = { ...shared.width, key: 'dp', start: 16, most: 64 };
const layout: ChoiceParam = { key: 'pairs', label: 'Pairs', kind: 'choice', start: 'usual', options: [['usual', 'as usual'], ['together', '(2i, 2i + 1)'], ['apart', '(i, i + d/2)']] };
const query: NumberParam = { ...shared.m, label: 'Position m (query)' };
const key: NumberParam = { ...shared.n, label: 'Position n (key)' };
// The vectors as they are laid out: sinusoids usually side by side, RoPE usually in halves.
const laidOut = (): Named => {
  const { json, words } = scheme(), chosen = view.get(layout);
  if (chosen === 'usual') return { json, words };
  const name = chosen === 'together' ? 'interleaved' : isRope() ? 'halves' : 'sin-cos';
  return { json: { ...json, layout: name }, words: `${words} --layout ${name}` };
};
const isRope = () => view.get(waveSchemeParam) === 'rope';
const scheme = () => sized(view.get(waveSchemeParam), view.get(width), view.get(shared.base));

// Moves m by one position at a time while it is pressed: nothing moves by itself.
function spinButton(): HTMLElement {
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    button.setAttribute('aria-pressed', 'false');
    button.textContent = 'Spin';
  };
  const button = h('button', { type: 'button', class: 'spin', 'aria-pressed': 'false', onclick: () => {
    if (timer) return stop();
    button.setAttribute('aria-pressed', 'true');
    button.textContent = 'Stop';
    timer = setInterval(() => {
      if (!button.isConnected || view.get(shared.m) >= shared.m.most || view.locks('m')) stop();
      else view.set(shared.m, view.get(shared.m) + 1);
    }, matchMedia('(prefers-reduced-motion: reduce)').matches ? 1000 : 80) as unknown as number;
  } }, 'Spin');
  return h('p', { class: 'presets' }, button, h('span', { class: 'hint' }, 'Or drag across the hands, or focus them and use the arrow keys.'));
}

// Two texts of which the scheme decides.
function eitherOf(ofRope: () => Node, ofWaves: () => Node): HTMLElement {
  const rope = h('div', {}, ofRope()), waves = h('div', {}, ofWaves());
  const refresh = () => { rope.hidden = !isRope(); waves.hidden = isRope(); };
  view.onChange(refresh);
  refresh();
  return h('div', {}, rope, waves);
}

export const page: Page = {
  id: 'phasors', title: 'Phasors: a shift is a rotation',
  goal: 'See each pair as a clock hand, and why moving by k positions rotates every hand by a fixed angle.',
  render(root) {
    root.append(
      text('Sine and cosine of a pair are the coordinates of a clock hand. One position further, the hand of pair i rotates by ω_i. RoPE rotates the pairs of queries and keys in the same way: choose it to see both.'),
      explore([controlWhile(query, isRope), controlWhile(shared.m, () => !isRope()), controlWhile(key, isRope), shift, waveSchemeParam, width, shared.base],
      section('The hands',
        eitherOf(() => text('The query at position m has rotated by m · ω_i, the key at position n by n · ω_i. Both start pointing right, so the score of a pair is the cosine of the angle between its hands. Move m and n by the same amount: the hands rotate, the angles stay.'),
          () => text('On each clock the dashed hand is where the pair is k positions later. Change m: all hands rotate, but the angle between the two hands of a pair stays k · ω_i.')),
        figureOf({
          label: 'Pairs as clock hands',
          cursor: { param: shared.m, axis: 'x', range: () => [0, shared.m.most], isUnseen: true },
          request: () => ({ kind: 'phasors', schemes: [scheme().json], at: view.get(shared.m), ...(isRope() ? { key: view.get(key) } : { shift: view.get(shift) }) }),
          command: () => `posenc plot phasors ${scheme().words} --at ${view.get(shared.m)} ${isRope() ? `--key ${view.get(key)}` : `--shift ${view.get(shift)}`}`,
        }), spinButton()),
      guess(question),
      eitherOf(() => maths(math(formulas.rope, 'The score of a rotated query and key')), () => maths(math(formulas.shift))),
      section('The matrix R(k)', text('Change m: the matrix stays as it is, and it still carries the vector of m to that of m + k. Change k: every pair rotates by k · ω_i. Each pair is a 2 × 2 block; where its two features are depends on the layout.'), controls(layout), figureOf({
        label: 'The matrix that moves every position by k',
        cursor: { param: shared.m, axis: 'x', range: () => [0, shared.m.most], isUnseen: true },
        request: () => ({ kind: 'rotation', schemes: [laidOut().json], at: view.get(shared.m), shift: view.get(shift) }),
        command: () => `posenc plot rotation ${laidOut().words} --at ${view.get(shared.m)} --shift ${view.get(shift)}`,
      })),
      section('The rotation matrix, step by step', storyOf({ name: 'shift' }))));
  },
};
