// A sentence whose words are dragged. Without position every score moves along with its two words and keeps its number;
// with position the same drag changes them all.

import { control } from '../controls';
import { ask, doubles } from '../core';
import { h, shown } from '../dom';
import { type FlagParam, type TextParam, linkTo, view } from '../state';
import { wordCards } from './word_cards';

/// The same key as on the page about order: a link takes the sentence along.
const words: TextParam = { key: 'text', label: 'Sentence', kind: 'text', start: 'dog bites man', longest: 120 };
const positions: FlagParam = { key: 'pos', label: 'Give the words their positions', kind: 'flag', start: false };

type Scores = { labels: string[]; values: Map<string, number> };
const between = (one: string, other: string): string => `${one}→${other}`;

async function load(): Promise<Scores> {
  const { json, bytes } = await ask({ call: 'sentence', text: view.get(words), positions: view.get(positions) });
  const labels: string[] = json.words, numbers = doubles(bytes), values = new Map<string, number>();
  labels.forEach((row, i) => labels.forEach((column, j) => values.set(between(row, column), numbers[i * labels.length + j])));
  return { labels, values };
}

// Rounded as shown: what nobody can see has not changed.
const text = (value: number): string => value.toFixed(2).replace('-', '−').replace(/^−(0\.00)$/, '$1');

/// Every score is an element of its own that knows its two words, so that it can fly to where they are now.
function scoreBoard(): { root: HTMLElement; draw(now: Scores, changed: Set<string>): void } {
  const root = h('div', { class: 'board', role: 'img' });
  const tiles = new Map<string, HTMLElement>();
  const put = (name: string, kind: string, row: number, column: number): HTMLElement => {
    let tile = tiles.get(name);
    if (!tile) {
      tile = h('div', { class: kind, 'aria-hidden': 'true' });
      tiles.set(name, tile);
      root.append(tile);
    }
    tile.style.setProperty('--row', String(row));
    tile.style.setProperty('--column', String(column));
    return tile;
  };
  return {
    root,
    draw({ labels, values }, changed) {
      const used = new Set<string>(), largest = Math.max(...[...values.values()].map(Math.abs), 1e-9);
      root.style.setProperty('--count', String(labels.length));
      const place = (name: string, kind: string, row: number, column: number): HTMLElement => { used.add(name); return put(name, kind, row, column); };
      labels.forEach((label, i) => {
        place(`row ${label}`, 'side', i + 1, 0).textContent = label;
        place(`column ${label}`, 'side top', 0, i + 1).textContent = label;
        labels.forEach((other, j) => {
          const id = between(label, other), value = values.get(id)!, tile = place(id, 'tile cell', i + 1, j + 1);
          tile.textContent = text(value);
          tile.classList.toggle('below', value < 0);
          tile.classList.toggle('above', value >= 0);
          tile.classList.toggle('changed', changed.has(id));
          tile.style.setProperty('--share', `${((86 * Math.abs(value)) / largest).toFixed(1)}%`);
        });
      });
      for (const [name, tile] of tiles) if (!used.has(name)) { tile.remove(); tiles.delete(name); }
      root.setAttribute('aria-label', `Scores: ${labels.map((label) => `${label}: ${labels.map((other) => `${other} ${text(values.get(between(label, other))!)}`).join(', ')}`).join('; ')}`);
    },
  };
}

// A drag in one press, for those who do not see that words can be dragged, or cannot.
function swapButton(): HTMLElement {
  const button = h('button', { type: 'button', class: 'swap', onclick: () => {
    const list = view.get(words).trim().split(/\s+/);
    view.set(words, [list.at(-1), ...list.slice(1, -1), list[0]].join(' '));
  } }, 'Swap the first and the last word');
  const refresh = () => { button.disabled = view.locks(words.key) || view.get(words).trim().split(/\s+/).length < 2; };
  view.onChange(refresh);
  refresh();
  return button;
}

/// `leadsOn`: with a link to what follows from it.
export function hero(leadsOn = false): HTMLElement {
  const board = scoreBoard();
  board.root.style.setProperty('--count', String(view.get(words).split(/\s+/).length));  // as high as it will be
  const said = h('p', { class: 'hero-said', role: 'status' }, 'Drag a word to another place.');
  let before: Scores | undefined, asked = 0, seen = '', had = view.get(positions);
  const refresh = async () => {
    const key = `${view.get(words)} ${view.get(positions)}`;
    if (key === seen) return;
    seen = key;
    const mine = ++asked;
    let now: Scores;
    try {
      now = await load();
    } catch (error) {
      said.textContent = (error as Error).message;
      return;
    }
    if (mine !== asked) return;
    const isSame = before && before.labels.length === now.labels.length && before.labels.every((label) => now.labels.includes(label));
    const changed = new Set(isSame ? [...now.values.keys()].filter((id) => text(now.values.get(id)!) !== text(before!.values.get(id)!)) : []);
    board.draw(now, changed);
    const all = now.values.size, order = `“${now.labels.join(' ').replace(/\.\d+/g, '')}”`;
    if (!before || !isSame) said.textContent = 'Drag a word to another place.';
    else if (had !== view.get(positions)) said.textContent = view.get(positions) ? 'Now every word also carries its position. Drag a word again.' : 'Without position again.';
    else if (before.labels.join() !== now.labels.join()) said.textContent = changed.size ? `${order} is another sentence now: ${shown(changed.size)} of ${all} scores changed.` : `${order}: the scores flew along with their words, and none of the ${all} changed. Attention cannot tell the difference.`;
    if (leadsOn && changed.size && had && view.get(positions)) said.append(' ', h('a', { href: linkTo('invent') }, 'What should a position look like in numbers?'));
    had = view.get(positions);
    before = now;
  };
  view.onChange(() => { if (board.root.isConnected) refresh(); });
  refresh();
  return h('section', { class: 'hero', 'aria-label': 'A sentence to rearrange' }, wordCards(words), h('div', { class: 'hero-line' }, swapButton(), control(positions)), board.root, said,
    h('p', { class: 'note' }, 'A word is a vector, here a list of eight numbers. A score is the dot product of two of them: multiply them number by number, and add up. A Transformer mixes words by these scores alone.'));
}
