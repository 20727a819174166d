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
  new ResizeObserver(() => {
    if (holder.scrollWidth > holder.clientWidth + 1) holder.tabIndex = 0;
    else holder.removeAttribute('tabindex');
  }).observe(holder);
  return holder;
}
export const maths = (...formulas: HTMLElement[]): HTMLElement => h('div', { class: formulas.every((one) => one.querySelector('.math-label')) ? 'maths labelled' : 'maths' }, ...formulas);

export const section = (title: string, ...children: (Node | string)[]): HTMLElement =>
  h('section', {}, h('h2', {}, title), ...children);

export type Guess = { question: string; choices: { text: string; right?: boolean; because: string }[] };

/// Predict, then reveal: `hidden` is shown after a guess, or at once where guesses are switched off.
export function guess(ask: Guess, ...hidden: Node[]): HTMLElement {
  const result = h('p', { class: 'verdict', role: 'status' });
  const rest = h('div', { class: 'revealed' }, ...hidden);
  const off = view.hides('predict') || localStorageGet('posenc-guesses') === 'off';
  const box = h('div', { class: 'guess' }, h('h2', {}, 'First, a guess'), h('p', {}, prose(ask.question)));
  const list = h('div', { class: 'choices', role: 'group', 'aria-label': 'Possible answers' });
  const reveal = () => {
    rest.hidden = false;
    rest.querySelectorAll('pe-figure').forEach((figure) => (figure as any).request?.());
  };
  ask.choices.forEach((choice, index) => {
    const button = h('button', { type: 'button' }, h('kbd', {}, String(index + 1)), ' ', prose(choice.text));
    button.addEventListener('click', () => {
      list.querySelectorAll('button').forEach((other) => other.removeAttribute('aria-pressed'));
      button.setAttribute('aria-pressed', 'true');
      result.className = `verdict ${choice.right ? 'right' : 'wrong'}`;
      result.replaceChildren(h('strong', {}, choice.right ? '✓ Right. ' : '✗ Not quite. '), prose(choice.because));
      reveal();
    });
    list.append(button);
  });
  const skip = h('button', { type: 'button', class: 'quiet', onclick: () => {
    localStorageSet('posenc-guesses', 'off');
    box.remove();
    reveal();
  } }, 'Skip guesses on all pages');
  box.append(list, result, skip);
  if (off) return h('div', {}, rest);
  rest.hidden = true;
  return h('div', {}, box, rest);
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
