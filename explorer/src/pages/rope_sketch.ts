// Draw where you think the line goes: the score against distance is covered until the reader has drawn it, or asks for it. Asked
// once, and never in the way of a link, the tour or paper.

import { announce, h, shown } from '../dom';
import { localStorageGet, localStorageSet } from '../lesson';
import { embedded, view } from '../state';
import { type RopeTable, positions } from './rope_table';

const stored = 'posenc-drawn rope', places = 64, last = positions - 1;

/// What is drawn at a distance, on both sides of 0 alike; between the places it is interpolated.
function at(line: (number | null)[], distance: number): number | undefined {
  const place = (Math.abs(distance) / last) * (places - 1), low = Math.floor(place), from = line[low], to = line[Math.min(low + 1, places - 1)];
  return from === null || to === null ? undefined : from + (to - from) * (place - low);
}

function kept(): (number | null)[] | undefined {
  try {
    const line = JSON.parse(localStorageGet(stored) ?? 'null');
    return Array.isArray(line) && line.length === places && line.every((one) => one === null || (typeof one === 'number' && Math.abs(one) <= 1)) ? line : undefined;
  } catch {
    return undefined;
  }
}

/// `curve` is covered by this; `point` tells which distance and score a place of the screen is, `draw` shows a line.
export function ropeSketch(curve: HTMLElement, point: (event: PointerEvent) => { distance: number; score: number }, draw: (value: (distance: number) => number | undefined) => void, table: () => RopeTable): HTMLElement {
  const words = h('p', { class: 'hint sketch-words', role: 'status' });
  if (view.hides('predict') || localStorageGet('posenc-guesses') === 'off' || embedded) return h('div', { class: 'sketch-words' });  // as high as the room that waits for it
  let line = kept(), isOpen = line !== undefined || localStorageGet(stored) !== null, before: { distance: number; score: number } | undefined;
  const button = (text: string, act: () => void) => h('button', { type: 'button', class: 'quiet', onclick: act }, text);
  const keep = () => localStorageSet(stored, JSON.stringify(line ?? []));
  const tell = () => {
    curve.classList.toggle('covered', !isOpen);
    draw((distance) => line && at(line, distance));
    if (!isOpen) return words.replaceChildren('Before you look: at distance 0 the score is 1. Draw here how it goes on, then let go. ', button('Show the line', () => { isOpen = true; line = undefined; keep(); tell(); }));
    const again = button(line ? 'Draw again' : 'Draw it first', () => { isOpen = false; line = undefined; tell(); });
    const compared = Array.from({ length: positions }, (_, distance) => [line && at(line, distance), table().score(distance, 0)]).filter((one): one is [number, number] => one[0] !== undefined);
    const away = compared.reduce((sum, [mine, right]) => sum + Math.abs(mine - right), 0) / compared.length;
    words.replaceChildren(compared.length ? `Dashed: your line, ${shown(away, 2)} from the score on average. ` : '', 'It falls at first; then every fast pair comes around again. ', again);
  };
  const put = (now: { distance: number; score: number }) => {
    line ??= Array(places).fill(null);
    // every place that was passed since the last event
    const from = before ?? now, a = Math.round((Math.abs(from.distance) / last) * (places - 1)), b = Math.round((Math.abs(now.distance) / last) * (places - 1));
    for (let place = Math.min(a, b); place <= Math.max(a, b); ++place) line[place] = Math.max(-1, Math.min(1, a === b ? now.score : from.score + ((now.score - from.score) * (place - a)) / (b - a)));
    before = now;
    draw((distance) => at(line!, distance));
  };
  curve.addEventListener('pointerdown', (event) => {
    if (isOpen) return;
    curve.setPointerCapture(event.pointerId);
    before = undefined;
    put(point(event));
  });
  curve.addEventListener('pointermove', (event) => { if (!isOpen && before) put(point(event)); });
  const end = () => {
    if (isOpen || !before) return;
    before = undefined;
    // a touch is no line
    if (line!.filter((one) => one !== null).length < places / 4) { line = undefined; return tell(); }
    isOpen = true;
    keep();
    tell();
    announce(words.textContent!);
  };
  curve.addEventListener('pointerup', end);
  curve.addEventListener('pointercancel', end);
  if (view.isChosen()) isOpen = true;
  tell();
  return words;
}
