// What a page is made of: a goal, a guess, figures, and what to take away.

import { h, prose } from './dom';
import { view } from './state';

export type Page = {
  id: string;
  title: string;
  /// in the map: what one learns there
  goal: string;
  render(root: HTMLElement): void | Promise<void>;
};

export const text = (...paragraphs: string[]): DocumentFragment => {
  const fragment = document.createDocumentFragment();
  for (const paragraph of paragraphs) fragment.append(h('p', {}, prose(paragraph)));
  return fragment;
};

/// A formula that was set when the site was built.
export function math(mathml: string, label = ''): HTMLElement {
  const holder = h('div', { class: 'math' });
  if (label) holder.append(h('span', { class: 'math-label' }, label));
  holder.insertAdjacentHTML('beforeend', mathml);
  // Wider than a phone: it scrolls, and keys must reach what scrolls.
  const sized = new ResizeObserver(() => {
    if (holder.scrollWidth > holder.clientWidth + 1) holder.tabIndex = 0;
    else holder.removeAttribute('tabindex');
  });
  sized.observe(holder);
  view.atEnd(() => sized.disconnect());  // while it observes it holds the whole page
  return holder;
}
export const maths = (...formulas: HTMLElement[]): HTMLElement => h('div', { class: formulas.every((one) => one.querySelector('.math-label')) ? 'maths labelled' : 'maths' }, ...formulas);

export const section = (title: string, ...children: (Node | string)[]): HTMLElement =>
  h('section', {}, h('h2', {}, title), ...children);

export type Guess = { question: string; choices: { text: string; right?: boolean; because: string }[] };

/// A question beside the figures, which answer it: asked once and remembered, and closed where the address already is a
/// view, a link of somebody's or a stop of the tour.
export function guess(ask: Guess): HTMLElement {
  if (view.hides('predict') || localStorageGet('posenc-guesses') === 'off') return h('div');
  const stored = `posenc-guess ${ask.question}`, before = localStorageGet(stored);
  const result = h('p', { class: 'verdict', role: 'status' }), list = h('div', { class: 'choices', role: 'group', 'aria-label': 'Possible answers' });
  const buttons = ask.choices.map((choice, index) => h('button', { type: 'button', onclick: () => choose(index) }, h('kbd', {}, String(index + 1)), ' ', prose(choice.text)));
  const choose = (index: number) => {
    const choice = ask.choices[index];
    buttons.forEach((other, i) => (i === index ? other.setAttribute('aria-pressed', 'true') : other.removeAttribute('aria-pressed')));
    result.className = `verdict ${choice.right ? 'right' : 'wrong'}`;
    result.replaceChildren(h('strong', {}, choice.right ? '✓ Right. ' : '✗ Not quite. '), prose(choice.because));
    localStorageSet(stored, String(index));
  };
  const skip = h('button', { type: 'button', class: 'quiet', onclick: () => {
    localStorageSet('posenc-guesses', 'off');
    const next = box.parentElement?.querySelector<HTMLElement>('.guess ~ section h2, .guess ~ * h2') ?? document.querySelector('h1');
    box.remove();
    next?.setAttribute('tabindex', '-1');
    next?.focus();
  } }, 'No guesses on any page');
  const box = h('details', { class: 'guess' }, h('summary', {}, h('strong', {}, 'Guess: '), prose(ask.question)), list, result, skip);
  list.append(...buttons);
  if (before !== null && ask.choices[Number(before)]) choose(Number(before));
  box.open = before === null && !view.isChosen();
  const onKey = (event: KeyboardEvent) => {
    const from = event.target as Element;
    if (!box.open || event.ctrlKey || event.metaKey || event.altKey || from.closest('input, select, textarea, .surface, .flash-card')) return;
    if (buttons[Number(event.key) - 1]) choose(Number(event.key) - 1);
  };
  addEventListener('keydown', onKey);
  view.atEnd(() => removeEventListener('keydown', onKey));
  return box;
}

// A page from a disk, or a browser that keeps nothing, may refuse.
export function localStorageGet(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
export function localStorageSet(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch { /* nothing is kept */ }
}
