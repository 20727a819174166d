// A path of eight steps to positional encodings: each is a first idea, a figure in which it fails, and what that asks for.

import { questions } from 'posenc-invented';
import { explore } from '../controls';
import { announce, h, prose } from '../dom';
import { type FigureConfig, figureOf } from '../figure';
import { type Page, localStorageGet, localStorageSet, text } from '../lesson';
import { type NumberParam, type Param, linkTo, shared, view } from '../state';
import { type Choice, type Step, steps } from './invent_steps';
import { sized } from './schemes_of_view';

const step: NumberParam = { key: 'step', label: 'Step', kind: 'whole', start: 1, least: 1, most: steps.length, steps: 'even' };
const m: NumberParam = { ...shared.m, label: 'Position m', start: 5, most: 511 };
const n: NumberParam = { ...shared.n, label: 'Position n (key)', start: 2, most: 511 };
const length: NumberParam = { key: 'words', label: 'Words in the text', kind: 'whole', start: 16, least: 8, most: 512, steps: 'octaves' };
const shift: NumberParam = { key: 'k', label: 'Shift k', kind: 'whole', start: 3, least: 0, most: 64, steps: 'octaves' };
const heads: NumberParam = { key: 'heads', label: 'Heads', kind: 'whole', start: 4, least: 1, most: 16, steps: 'even' };
const trained: NumberParam = { key: 'trained', label: 'Trained length', kind: 'whole', start: 4096, least: 256, most: 65_536, steps: 'octaves' };

// One number for each position, as wide as a figure needs.
function counted(label: string, stepOf: () => number): FigureConfig {
  const scheme = () => ({ scheme: 'steps', width: 2, step: stepOf() });
  return {
    label, cursor: { param: m, axis: 'x', range: () => [0, view.get(length) - 1] },
    request: () => ({ kind: 'waves', schemes: [scheme()], features: [0], zoom: { from: 0, to: view.get(length) } }),
    command: () => `posenc plot waves steps --width 2 --step ${stepOf()} --features 0 --zoom 0:${view.get(length)}`,
  };
}
const sinusoids = sized('sinusoidal', 16, 10_000), rope = sized('rope', 16, 10_000), longer = sized('rope', 128, 10_000);
const unseen = (param: NumberParam) => ({ param, axis: 'x' as const, range: (): [number, number] => [0, param.most], isUnseen: true });

const figures: { params: Param[]; config: FigureConfig }[] = [
  { params: [m, length], config: counted('The position itself, against position', () => 1) },
  { params: [m, length], config: counted('The position divided by the length, against position', () => 1 / (view.get(length) - 1)) },
  { params: [m], config: { label: 'Binary digits of position m, and smooth features beside them', cursor: unseen(m), request: () => ({ kind: 'fingerprint', schemes: [sinusoids.json], at: view.get(m) }), command: () => `posenc plot fingerprint ${sinusoids.words} --at ${view.get(m)}` } },
  { params: [m, length], config: { label: 'Waves against position', cursor: { param: m, axis: 'x', range: () => [0, view.get(length) - 1] }, request: () => ({ kind: 'waves', schemes: [sinusoids.json], zoom: { from: 0, to: view.get(length) } }), command: () => `posenc plot waves ${sinusoids.words} --zoom 0:${view.get(length)}` } },
  { params: [m, shift], config: { label: 'Pairs as clock hands, and the same hands k positions later', cursor: unseen(m), request: () => ({ kind: 'phasors', schemes: [sinusoids.json], at: view.get(m), shift: view.get(shift) }), command: () => `posenc plot phasors ${sinusoids.words} --at ${view.get(m)} --shift ${view.get(shift)}` } },
  { params: [m, n], config: { label: 'Query and key as clock hands', cursor: unseen(m), request: () => ({ kind: 'phasors', schemes: [rope.json], at: view.get(m), key: view.get(n) }), command: () => `posenc plot phasors ${rope.words} --at ${view.get(m)} --key ${view.get(n)}` } },
  { params: [heads], config: { label: 'What ALiBi adds to a score, for each head', request: () => ({ kind: 'bias', schemes: [{ scheme: 'alibi', heads: view.get(heads) }], lines: true, zoom: { from: 0, to: 64 } }), command: () => `posenc plot bias alibi --heads ${view.get(heads)} --lines --zoom 0:64` } },
  { params: [trained], config: { label: 'The wavelength of each pair beside the trained length', request: () => ({ kind: 'scaling', schemes: [longer.json], trained: view.get(trained), factor: 8 }), command: () => `posenc plot scaling ${longer.words} --trained ${view.get(trained)} --factor 8` } },
];

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

function whole(at: number): Node[] {
  const one = steps[at - 1], { params, config } = figures[at - 1];
  const to = (number: number, words: string, kind: string) => h('a', { class: `button ${kind}`, href: linkToStep(number), onclick: () => { if (number > at) keep(at); } }, words);
  const end = h('a', { class: 'button primary', href: linkTo('practice'), onclick: () => keep(at) }, 'To the practice');
  return [h('h2', { tabindex: -1 }, `${at}. ${one.title}`), text(one.idea),
    explore(params, figureOf(config)),
    h('p', { class: 'fails' }, h('strong', {}, at < steps.length ? 'Where it fails. ' : 'What is left. '), prose(one.failure)),
    h('p', { class: 'wanted' }, h('strong', {}, at < steps.length ? 'Wanted: ' : 'So: '), prose(one.wanted)),
    ...(one.more ? [h('p', { class: 'hint' }, 'More: ', ...one.more.flatMap(([page, words], i) => [i ? ', ' : '', h('a', { href: linkTo(page) }, words)]), '.')] : []),
    h('section', { class: 'three' }, h('h3', {}, 'Three questions'), ...one.questions.map((asked, i) => questionBox(asked, i + 1))),
    h('p', { class: 'presets' }, ...(at > 1 ? [to(at - 1, `Back: ${steps[at - 2].short}`, '')] : []), at < steps.length ? to(at + 1, `Next: ${steps[at].short}`, 'primary') : end)];
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
