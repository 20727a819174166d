import { formulas } from 'posenc-formulas/frank';
import { question } from 'posenc-guesses/frank';
import { explore } from '../controls';
import { h } from '../dom';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type ChoiceParam, type TextParam, shared, view } from '../state';
import { type PeStory, type StoryChoice, storyOf } from '../story';
import { requirementChecks, width } from './frank_requirements';
import { wordCards } from './word_cards';

const seats: TextParam = { key: 'seats', label: 'Seats', kind: 'text', start: 'Frank Emma Daniel Alex', longest: 40 };
const join: ChoiceParam = { key: 'join', label: 'P is', kind: 'choice', start: 'added', options: [['added', 'added'], ['concatenated', 'concatenated']] };

// What is as in the source text is not said: the story then has its errata.
function choice(): StoryChoice {
  const base = view.get(shared.base), d = view.get(width), concatenated = view.get(join) === 'concatenated';
  return {
    fields: { ...(base === shared.base.start ? {} : { base }), ...(d === width.start ? {} : { width: d }), concatenated },
    words: `${base === shared.base.start ? '' : ` --base ${base}`}${d === width.start ? '' : ` --width ${d}`}${concatenated ? ' --concatenate' : ''}`,
  };
}

// The stages in the order of the calculation: their name in the story's table of distances, and the matrix with position.
const stages = [['X', 'X\''], ['Q', 'Q\''], ['K', 'K\''], ['V', 'V\''], ['scores', 'S\''], ['weights', 'A\''], ['output', 'O\'']];

// How far Frank and Alex are apart at each stage, without and with position: the story's matrix D as bars.
function distances(story: PeStory): HTMLElement {
  const strip = h('ol', { class: 'pipeline', 'aria-label': 'Stages of the calculation' });
  story.addEventListener('told', () => {
    const matrix = story.matrices().find((one) => one.name === 'D');
    if (!matrix) return;
    const rows = matrix.values as (number | null)[][] | number[];
    const at = (row: number, column: number): number => (Array.isArray(rows[row]) ? (rows[row] as number[])[column] : (rows as number[])[row * 2 + column]);
    const bar = (kind: string, value: number, largest: number) => {
      const line = h('span', { class: `bar ${kind}` }, h('span', { class: 'filled' }, h('span', { class: 'visually-hidden' }, `${kind} position `)), h('span', { class: 'amount' }, value.toFixed(matrix.digits)));
      line.style.setProperty('--share', `${largest ? (100 * value) / largest : 0}%`);
      return line;
    };
    strip.replaceChildren(...stages.map(([name, shown], i) => h('li', {}, h('button', {
      type: 'button', onclick: () => {
        const to = story.querySelector(`[data-matrix="${CSS.escape(shown)}"]`);
        to?.scrollIntoView({ block: 'center' });
        to?.querySelector('button')?.focus({ preventScroll: true });
      },
    }, h('strong', {}, name), bar('without', at(i, 0), Math.max(at(i, 0), at(i, 1))), bar('with', at(i, 1), Math.max(at(i, 0), at(i, 1)))))));
  });
  return h('div', {}, strip, h('p', { class: 'note' }, h('span', { class: 'key without' }), ' without position ', h('span', { class: 'key with' }), ' with position; each stage has a scale of its own. Press a stage to see its numbers.'));
}

export const page: Page = {
  id: 'frank', title: 'Frank and Alex: one calculation from start to end',
  goal: 'Follow four rows through Q, K, V, scores, softmax and output; open any cell into its products.',
  render(root) {
    const own = () => (view.get(seats) === seats.start ? '' : view.get(seats));
    const story = storyOf({ name: 'frank-and-alex', text: own, more: choice });
    const now = () => own() + choice().words;
    let last = now();
    view.onChange(() => {
      if (now() === last) return;
      last = now();
      story.request();
    });
    root.append(
      text('Frank and Alex have identical rows, but sit in different seats. Without position they stay indistinguishable through the whole layer. Press any number to open it into its products.'),
      explore([join, width, shared.base], section('Who sits where', h('p', { class: 'hint' }, 'Drag a name, press it to move it one seat, or use Alt with the arrow keys. The rows of X move along, the rows of P stay with the seats.'), wordCards(seats, 1)),
      section('How far apart they are, stage by stage', distances(story), h('p', { class: 'hint' }, 'P is added, X + P, or concatenated, [X P]. With d below 6, X and the weights keep their first d features. The same weights serve both halves of [X P]: the projections stay as they are, with twice the parameters.')),
      guess(question),
      maths(math(formulas.stages), math(formulas.output)),
      section('Three requirements on P',
        text('Unique: no two seats share a row. Consistent: a seat has the same row in every sequence. Any length: every seat has a row, however long the table. It is better still if the dot product of two rows depends only on how far apart the seats are. The checks measure 512 seats, with d and base of the example. Of the rows to choose from, only sinusoids pass all four.'), requirementChecks()),
      section('The calculation', story)));
  },
};
