// The dot product at each distance, over all pairs of positions, beside its closed form.

import { ask, doubles } from '../core';
import { copyText, h, shown, words as inWords } from '../dom';
import { follow } from '../follow';
import type { Named } from './schemes_of_view';

const length = 64, rows = 12;
// The distance of two doubles in units of the last place of the second.
const ulps = (value: number, exact: number): number => Math.abs(value - exact) / 2 ** (Math.floor(Math.log2(Math.max(Math.abs(exact), 2 ** -1022))) - 52);

// Digits below digits: zeros at the end stay.
const aligned = (value: number): string => value.toPrecision(8).replace('-', '−');

export function closedForm(scheme: () => Named): HTMLElement {
  const body = h('tbody'), code = h('code'), note = h('p', { class: 'note' });
  let asked = 0, last = '';
  const refresh = async () => {
    const { json, words } = scheme(), key = JSON.stringify(json);
    if (key === last) return;
    last = key;
    const mine = ++asked;
    note.dataset.waiting = 'yes';
    const numbers = doubles((await ask({ call: 'dots', scheme: json, length })).bytes);
    if (mine !== asked) return;
    const line = (at: number) => [...numbers.subarray(4 * at, 4 * at + 4)];
    body.replaceChildren(...Array.from({ length: Math.min(rows, numbers.length / 4) }, (_, at) => {
      const [distance, least, most, closed] = line(at), off = Math.max(ulps(least, closed), ulps(most, closed));
      return h('tr', {}, h('th', { scope: 'row' }, shown(distance)), h('td', {}, aligned(least)), h('td', {}, aligned(most)), h('td', {}, Number.isNaN(closed) ? '–' : aligned(closed)), h('td', {}, Number.isNaN(closed) ? '–' : shown(Number(off.toPrecision(3)))));
    }));
    note.textContent = `Over all pairs among positions 0 to ${length - 1}, for distances 0 to ${rows - 1}. An ulp is the gap between two adjacent doubles.`;
    code.replaceChildren(...inWords(`posenc prove ${words} --length ${length}`));
    delete note.dataset.waiting;
  };
  follow(note, refresh, true);
  refresh();
  return h('div', {}, h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Closed form against measured' }, h('table', { class: 'numbers' },
    h('thead', {}, h('tr', {}, ...['Distance', 'Smallest', 'Largest', 'Closed form', 'Residual in ulps'].map((one) => h('th', { scope: 'col' }, one)))), body)), note,
    h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), code, h('button', { type: 'button', onclick: () => copyText(code.textContent!) }, 'Copy')));
}
