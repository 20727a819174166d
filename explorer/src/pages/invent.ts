// A path of eight steps to positional encodings: each is a first idea, a figure in which it fails, and what that asks for.

import { questions } from 'posenc-invented';
import { explore } from '../controls';
import { announce, h, prose } from '../dom';
import { figureOf } from '../figure';
import { type Page, localStorageGet, localStorageSet, text } from '../lesson';
import { type NumberParam, linkTo, view } from '../state';
import { figures } from './invent_figures';
import { type Choice, type Step, steps } from './invent_steps';

const step: NumberParam = { key: 'step', label: 'Step', kind: 'whole', start: 1, least: 1, most: steps.length, steps: 'even' };

// --- what was reached, in this browser ----------------------------------------------------------------------------

const stored = 'posenc-invented';
const done = (): Set<number> => new Set((localStorageGet(stored) ?? '').split(',').filter(Boolean).map(Number));
const keep = (number: number): void => localStorageSet(stored, [...done().add(number)].sort((a, b) => a - b).join());
const linkToStep = (number: number): string => `${linkTo('invent')}&step=${number}`;

// --- three questions -------------------------------------------------------------------------------------------------

const byId = new Map(questions.map((one) => [one.id, one]));
function questionBox(asked: Step['questions'][number], number: number): HTMLElement {
  const { prompt, choices, answer } = typeof asked === 'string' ? byId.get(asked)! : asked;
  const result = h('p', { class: 'verdict', role: 'status' });
  const say = (kind: string, head: string, words: string) => {
    result.className = `verdict ${kind}`;
    result.replaceChildren(...(head ? [h('strong', {}, head)] : []), prose(words));
  };
  const choose = (choice: Choice, button: HTMLElement) => {
    button.parentElement!.querySelectorAll('button').forEach((one) => one.removeAttribute('aria-pressed'));
    button.setAttribute('aria-pressed', 'true');
    say(choice.right ? 'right' : 'wrong', choice.right ? '✓ Right. ' : '✗ Not quite. ', choice.because || (choice.right ? answer : ''));
  };
  const buttons = choices.length
    ? choices.map((choice) => h('button', { type: 'button', onclick: (event: Event) => choose(choice, event.currentTarget as HTMLElement) }, prose(choice.text)))
    : [h('button', { type: 'button', onclick: () => say('', '', answer) }, 'Show the answer')];
  return h('div', { class: 'asked' }, h('p', {}, h('strong', {}, `${number}. `), prose(prompt)), h('div', { class: 'choices', role: 'group', 'aria-label': `Answers to question ${number}` }, ...buttons), result);
}

// From here on there is enough to practise.
const middle = 5;

function whole(at: number): Node[] {
  const one = steps[at - 1], { params, config } = figures[at - 1];
  const to = (number: number, words: string, kind: string) => h('a', { class: `button ${kind}`, href: linkToStep(number), onclick: () => { if (number > at) keep(at); } }, words);
  const end = h('a', { class: 'button primary', href: linkTo('practice'), onclick: () => keep(at) }, 'To the practice');
  const practice = h('a', { class: 'button', href: linkTo('practice') }, 'Practise what you have so far');
  return [h('h2', { tabindex: -1 }, `${at}. ${one.title}`), text(one.idea),
    explore(params, figureOf(config)),
    h('p', { class: 'fails' }, h('strong', {}, at < steps.length ? 'Where it fails. ' : 'What is left. '), prose(one.failure)),
    h('p', { class: 'wanted' }, h('strong', {}, at < steps.length ? 'Wanted: ' : 'So: '), prose(one.wanted)),
    ...(one.more ? [h('p', { class: 'hint' }, 'More: ', ...one.more.flatMap(([page, words], i) => [i ? ', ' : '', h('a', { href: linkTo(page) }, words)]), '.')] : []),
    h('section', { class: 'three' }, h('h3', {}, 'Three questions'), ...one.questions.map((asked, i) => questionBox(asked, i + 1))),
    h('p', { class: 'presets' }, ...(at > 1 ? [to(at - 1, `Back: ${steps[at - 2].short}`, '')] : []), at < steps.length ? to(at + 1, `Next: ${steps[at].short}`, 'primary') : end, ...(at === middle ? [practice] : []))];
}

export const page: Page = {
  id: 'invent', title: 'You could have invented it',
  goal: 'Eight ideas, each the answer to the failure of the one before it, from counting to RoPE and long contexts.',
  render(root) {
    const list = h('ol', { class: 'path', 'aria-label': 'Steps' }), place = h('div', {});
    // whoever comes back goes on where they were
    if (!view.names(step.key)) view.set(step, Math.min(steps.length, Math.max(0, ...done()) + 1));
    let drawn = 0;
    const draw = () => {
      const at = view.get(step);
      if (at === drawn) return;
      const isFirst = drawn === 0, reached = done();
      drawn = at;
      list.replaceChildren(...steps.map((one, i) => h('li', {}, h('a', { href: linkToStep(i + 1), 'aria-current': i + 1 === at ? 'step' : undefined }, one.short, reached.has(i + 1) ? h('span', { 'aria-label': ' done' }, ' ✓') : ''))));
      place.replaceChildren(...whole(at));
      if (isFirst) return;
      scrollTo(0, 0);
      place.querySelector('h2')!.focus({ preventScroll: true });
      announce(steps[at - 1].title);
    };
    root.append(list, place);
    view.onChange(draw);
    draw();
  },
};
