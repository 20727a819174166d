// A tour: a few views in order, each with a sentence or two. The stop is in the address, as everything else.

import stops from '../../content/tour.json';
import { announce, h } from './dom';
import { type NumberParam, linkTo, view } from './state';

export const stop: NumberParam = { key: 'tour', label: 'Stop', kind: 'whole', start: 0, least: 0, most: stops.length };

export const linkToStop = (number: number): string => `${linkTo(stops[number - 1].view.replace('p=', ''))}&tour=${number}`;

const bar = h('aside', { class: 'tour', 'aria-label': 'Tour' });
let shown = 0;

/// Puts the bar above the page while there is a stop in the address.
export function showTour(): void {
  const number = view.get(stop), main = document.getElementById('main')!;
  if (number === 0) return bar.remove();
  if (bar.parentElement !== main || main.firstElementChild !== bar) main.prepend(bar);
  if (number === shown) return;
  shown = number;
  const step = (to: number, words: string, kind: string) => (to >= 1 && to <= stops.length ? h('a', { class: `button ${kind}`, href: linkToStop(to) }, words) : null);
  bar.replaceChildren(h('p', {}, h('strong', {}, `${number} of ${stops.length} `), stops[number - 1].text),
    h('div', { class: 'tools' }, ...[step(number - 1, 'Back', ''), step(number + 1, 'Next', 'primary'), h('button', { type: 'button', class: 'quiet', onclick: () => view.set(stop, 0) }, number === stops.length ? 'End the tour' : 'Leave the tour')].filter((one) => one !== null)));
  announce(stops[number - 1].text);
}
