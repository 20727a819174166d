// The three requirements on P, and the one that makes distances useful, as live checks: measured by the library for the
// rows that the controls describe.

import { controls } from '../controls';
import { ask } from '../core';
import { copyText, h, prose, words as inWords } from '../dom';
import { type ChoiceParam, type NumberParam, shared, view } from '../state';
import { follow } from '../follow';
import { sized } from './schemes_of_view';

/// d of the example: X has six features.
export const width: NumberParam = { ...shared.width, start: 6, least: 2, most: 6, steps: 'even' };

const rows: ChoiceParam = {
  key: 'rows', label: 'Rows of P', kind: 'choice', start: 'sinusoidal',
  options: [['sinusoidal', 'Sinusoidal'], ['steps', 'Bad idea 1: add p · 0.0001'], ['shift', 'Bad idea 2: random + constant shift'], ['constant', 'One random row for every seat'], ['learned', 'Learned (random numbers)']],
};
const seats = 512;
const requirements = [['unique', 'Unique'], ['consistent', 'Consistent'], ['any-length', 'Any length'], ['dot-by-distance', 'Distances']];

function chosen() {
  const name = view.get(rows), d = view.get(width);
  if (name !== 'constant') return sized(name, d, view.get(shared.base));
  return { json: { scheme: 'shift', width: d, step: 0 }, words: `shift --width ${d} --step 0` };
}

export function requirementChecks(): HTMLElement {
  const list = h('ul', { class: 'requirements' }), verdict = h('p', { class: 'verdict', role: 'status' }), code = h('code');
  const box = h('div', {}, list, verdict);
  let asked = 0, last = '';
  const refresh = async () => {
    const { json: scheme, words } = chosen();
    if (words === last) return;
    last = words;
    const mine = ++asked;
    box.dataset.waiting = 'yes';
    const { json } = await ask({ call: 'prove', scheme, length: seats, properties: requirements.map(([property]) => property) });
    if (mine !== asked) return;
    const found = requirements.map(([property, title]) => ({ title, ...json.findings.find((one: any) => one.property === property) }));
    list.replaceChildren(...found.map((one) => h('li', { 'data-outcome': one.outcome }, h('span', { class: `mark ${one.outcome}`, role: 'img', 'aria-label': one.outcome }, one.outcome === 'holds' ? '✓' : '✗'), ' ',
      h('strong', {}, one.title), ': ', prose(`${one.statement}. ${one.meaning}`))));
    const failed = found.filter((one) => one.outcome !== 'holds').map((one) => one.title.toLowerCase());
    verdict.className = `verdict ${failed.length ? 'wrong' : 'right'}`;
    verdict.textContent = failed.length ? `Fails: ${failed.join(' and ')}.` : 'All of them hold.';
    code.replaceChildren(...inWords(`posenc prove ${words} --length ${seats}`));
    delete box.dataset.waiting;
  };
  follow(box, refresh, true);
  refresh();
  return h('div', {}, controls(rows), box,
    h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), code, h('button', { type: 'button', onclick: () => copyText(code.textContent!) }, 'Copy')));
}
