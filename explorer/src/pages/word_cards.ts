// Words of the view as cards, to be put in another order by dragging, pressing or Alt and the arrow keys.

import { h } from '../dom';
import { type TextParam, view } from '../state';

const isStill = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
const farEnough = 6;  // pixels: less is a press

/// `first` is the number of the first place.
export function wordCards(words: TextParam, first = 0): HTMLElement {
  const box = h('div', { class: 'cards-row', role: 'group', 'aria-label': 'Words. Alt+Left and Alt+Right move the focused word.' });
  const listed = () => view.get(words).trim().split(/\s+/);
  const move = (from: number, to: number) => {
    const list = listed();
    if (to < 0 || to >= list.length || to === from) return;
    const before = [...box.children].map((one) => (one as HTMLElement).getBoundingClientRect());
    const order = list.map((_, i) => i);
    order.splice(to, 0, ...order.splice(from, 1));
    view.set(words, order.map((i) => list[i]).join(' '));
    // each card flies from where it was
    if (!isStill()) order.forEach((was, now) => {
      const card = box.children[now] as HTMLElement, at = card.getBoundingClientRect();
      card.animate([{ transform: `translate(${before[was].x - at.x}px, ${before[was].y - at.y}px)` }, { transform: 'none' }], { duration: 220, easing: 'ease-out' });
    });
    (box.children[to] as HTMLElement | undefined)?.focus();
  };
  const drag = (card: HTMLElement, index: number) => {
    let from: PointerEvent | undefined, isDragged = false;
    card.addEventListener('pointerdown', (event) => {
      for (const flight of box.getAnimations({ subtree: true })) flight.finish();  // a place is where a card will be
      from = event;
      isDragged = false;
      card.setPointerCapture(event.pointerId);
    });
    card.addEventListener('pointermove', (event) => {
      if (!from) return;
      const across = event.clientX - from.clientX, down = event.clientY - from.clientY;
      isDragged ||= Math.hypot(across, down) > farEnough;
      if (isDragged) card.style.transform = `translate(${across}px, ${down}px)`;
    });
    const drop = (event: PointerEvent) => {
      if (!from) return;
      from = undefined;
      card.style.transform = '';
      if (!isDragged || event.type === 'pointercancel') return;
      const places = [...box.children].map((one) => one.getBoundingClientRect());
      const apart = places.map((place) => Math.hypot(event.clientX - place.x - place.width / 2, event.clientY - place.y - place.height / 2));
      move(index, apart.indexOf(Math.min(...apart)));
    };
    card.addEventListener('pointerup', drop);
    card.addEventListener('pointercancel', drop);
    card.addEventListener('click', (event) => {
      if (isDragged && event.detail) return;
      move(index, (index + 1) % box.children.length);
    });
  };
  let drawn = '';
  const refresh = () => {
    const now = `${view.get(words)} ${view.locks(words.key)}`;
    if (now === drawn) return;
    drawn = now;
    box.replaceChildren(...listed().map((word, index) => {
      const card = h('button', { type: 'button', class: 'word', disabled: view.locks(words.key) }, h('span', {}, word), ' ', h('small', {}, String(first + index)));
      card.addEventListener('keydown', (event) => {
        if (!event.altKey || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
        event.preventDefault();
        move(index, index + (event.key === 'ArrowRight' ? 1 : -1));
      });
      drag(card, index);
      return card;
    }));
  };
  view.onChange(refresh);
  refresh();
  return box;
}
