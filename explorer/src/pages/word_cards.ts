// Words of the view as cards, to be put in another order by dragging, pressing or Alt and the arrow keys.

import { h } from '../dom';
import { type TextParam, view } from '../state';

/// `first` is the number of the first place.
export function wordCards(words: TextParam, first = 0): HTMLElement {
  const box = h('div', { class: 'cards-row', role: 'group', 'aria-label': 'Words. Alt+Left and Alt+Right move the focused word.' });
  const move = (from: number, to: number) => {
    const list = view.get(words).trim().split(/\s+/);
    if (to < 0 || to >= list.length) return;
    list.splice(to, 0, ...list.splice(from, 1));
    view.set(words, list.join(' '));
    (box.children[to] as HTMLElement | undefined)?.focus();
  };
  let dragged = -1;
  const refresh = () => {
    const list = view.get(words).trim().split(/\s+/);
    box.replaceChildren(...list.map((word, index) => {
      const card = h('button', { type: 'button', class: 'word', draggable: 'true', disabled: view.locks(words.key) },
        h('span', {}, word), ' ', h('small', {}, String(first + index)));
      card.addEventListener('keydown', (event) => {
        if (!event.altKey || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
        event.preventDefault();
        move(index, index + (event.key === 'ArrowRight' ? 1 : -1));
      });
      card.addEventListener('click', () => move(index, (index + 1) % list.length));
      card.addEventListener('dragstart', () => { dragged = index; });
      card.addEventListener('dragover', (event) => event.preventDefault());
      card.addEventListener('drop', () => move(dragged, index));
      return card;
    }));
  };
  view.onChange(refresh);
  refresh();
  return box;
}
