// A figure alone, in a frame of somebody's text: what is kept is marked, and the style sheet hides the rest.

import { h } from './dom';
import { view } from './state';

const figures = 'pe-figure, .hero, .rope-view, pe-story, table.schemes';
const site = (): string => `${location.origin}${location.pathname}${view.hash()}`;

/// Shows figure `number` of the page, from 1 on, the controls that change it, and a link to the whole page. A page with
/// fewer figures is shown whole.
export function showOne(main: HTMLElement, number: number): void {
  const found = main.querySelectorAll<HTMLElement>(figures)[number - 1];
  main.querySelectorAll('[data-kept]').forEach((one) => one.removeAttribute('data-kept'));
  const open = h('a', { href: site(), target: '_blank', rel: 'noopener', class: 'whole-page' }, 'Open in the posenc explorer');
  main.append(h('p', { class: 'hint' }, open));
  view.onChange(() => { open.href = site(); });
  if (!found) {
    main.dataset.kept = 'whole';
    return;
  }
  const strip = found.closest('.explore')?.querySelector<HTMLElement>(':scope > .strip');
  for (const one of [found, strip, open.parentElement]) {
    if (!one) continue;
    for (let above = one.parentElement; above && above !== main; above = above.parentElement) above.dataset.kept ??= 'part';
    one.dataset.kept = 'whole';
  }
}
