// The numbers of a figure at a place: what lies under the pointer, and at the cursor.

import type { Panel, Series } from './core';
import { h, shown, write } from './dom';
import { type Placed, fromX, fromY, styleClass, toX, toY } from './draw';

export type Value = { name: string; text: string; style: number; y: number };
export type Reading = { where: string; values: Value[] };

const digits = 5, most = 8;
const named = (axis: Panel['x'], value: number): string => {
  // where the library names a place (a pair, a number of its own), its name is used
  const tick = axis.ticks.find((one) => one.at === value);
  return `${axis.label || 'x'} ${tick && axis.label ? tick.text : shown(value, digits)}`;
};

/// The index of the number closest to `value`.
export function nearest(list: Float64Array, value: number): number {
  let best = 0;
  for (let i = 1; i < list.length; ++i) if (Math.abs(list[i] - value) < Math.abs(list[best] - value)) best = i;
  return best;
}

/// Whether a line has a value at `x`: it may begin later and end earlier than its panel, give or take half a step.
export function reaches(list: Float64Array, x: number): boolean {
  const last = list.length - 1;
  if (last < 0) return false;
  const slack = 1e-9 * Math.abs(x) + (last ? Math.abs(list[last] - list[0]) / last / 2 : 0);
  return x >= Math.min(list[0], list[last]) - slack && x <= Math.max(list[0], list[last]) + slack;
}

const inPanel = ({ left, top, width, height }: Placed, px: number, py: number): boolean => px >= left && px <= left + width && py >= top && py <= top + height;
/// Hands of clocks have no axes: there is nothing to read off.
const isReadable = (panel: Panel): boolean => panel.x.shown || panel.y.shown || !panel.equal;

// Labels of the last row of a column of panels serve all of them.
const labelled = (place: Placed, placed: Placed[]): Panel['x'] =>
  place.panel.x.label ? place.panel.x : placed.find((one) => one.panel.x.label && one.panel.x.least === place.panel.x.least && one.panel.x.most === place.panel.x.most)?.panel.x ?? place.panel.x;

/// What is under a point of the drawing.
export function readingAt(placed: Placed[], px: number, py: number): Reading | undefined {
  const place = placed.find((one) => isReadable(one.panel) && inPanel(one, px, py));
  if (!place) return undefined;
  const { panel } = place, { heat } = panel;
  if (heat) {
    const row = nearest(heat.rows, fromY(place, py)), column = nearest(heat.columns, fromX(place, px));
    const value = heat.values[row * heat.columns.length + column];
    return { where: `${named(panel.y, heat.rows[row])}, ${named(panel.x, heat.columns[column])}`, values: [{ name: heat.label || 'value', text: Number.isNaN(value) ? 'not shown' : shown(value, digits), style: NaN, y: value }] };
  }
  return readingOf(place, fromX(place, px), labelled(place, placed));
}

// Dots without a name mark the points of a line, unless they are all there is.
function linesOf(panel: Panel): Series[] {
  const all = panel.series.filter((one) => one.x.length > 0), lines = all.filter((one) => one.drawing !== 'dots' || one.name);
  return lines.length ? lines : all;
}

/// The value of each line of a panel closest to a place on its axis.
export function readingOf({ panel }: Placed, x: number, axis = panel.x): Reading | undefined {
  const lines = linesOf(panel).filter((one) => reaches(one.x, x)), areas = panel.envelopes.filter((one) => reaches(one.x, x)), first = lines[0]?.x ?? areas[0]?.x;
  if (!first) return undefined;
  const at = (list: Float64Array) => nearest(list, x);
  const values: Value[] = [
    ...lines.map((one) => ({ name: one.name, text: shown(one.y[at(one.x)], digits), style: one.style, y: one.y[at(one.x)] })),
    ...areas.map((one) => ({ name: one.name, text: `${shown(one.low[at(one.x)], digits)} to ${shown(one.high[at(one.x)], digits)}`, style: one.style, y: NaN })),
  ];
  return { where: named(axis, first[at(first)]), values: values.slice(0, most) };
}

/// The box beside the pointer. It is for the eye: screen readers hear the live region.
export function readoutBox({ where, values }: Reading): HTMLElement {
  return h('div', { class: 'readout', 'aria-hidden': 'true' }, h('div', { class: 'where' }, where),
    ...values.map((one) => h('div', {}, Number.isNaN(one.style) ? '' : h('span', { class: `key ${styleClass(one.style)}` }), h('span', {}, one.name), h('strong', {}, one.text))));
}

/// Beside the point, within the drawing.
export function placeBox(box: HTMLElement, px: number, py: number, width: number, height: number): void {
  const { offsetWidth: wide, offsetHeight: high } = box, gap = 14;
  box.style.left = `${Math.max(0, px + gap + wide > width ? px - gap - wide : px + gap)}px`;
  box.style.top = `${Math.max(0, Math.min(height - high, py - high - gap > 0 ? py - high - gap : py + gap))}px`;
}

export type Mark = { look: string; left: string; right: string; top: string; text: string };
/// Marks on the lines at the cursor, and the number itself where a panel has one or two of them.
export function chipsAt(placed: Placed[], value: number, width: number): Mark[] {
  return placed.flatMap((place) => {
    const { panel } = place, least = Math.min(panel.x.least, panel.x.most), greatest = Math.max(panel.x.least, panel.x.most);
    if (panel.heat || !isReadable(panel) || value < least || value > greatest) return [];
    const lines = linesOf(panel).filter((one) => one.drawing !== 'bars' && reaches(one.x, value)), x = toX(place, value);
    return lines.flatMap((one) => {
      const y = one.y[nearest(one.x, value)], at = toY(place, y);
      if (!Number.isFinite(at) || at < place.top - 1 || at > place.top + place.height + 1) return [];
      const pixels = (value: number) => `${value.toFixed(1)}px`;
      const dot = { look: `at-cursor ${styleClass(one.style)}`, left: pixels(x), right: 'auto', top: pixels(at), text: '' };
      if (lines.length > 2) return [dot];
      const isBefore = x > place.left + place.width - 70, top = pixels(Math.max(place.top + 8, Math.min(place.top + place.height - 8, at)));
      return [dot, { look: 'chip', left: isBefore ? 'auto' : pixels(x + 8), right: isBefore ? pixels(width - x + 8) : 'auto', top, text: shown(y, 4) }];
    });
  });
}

/// Puts the marks where they are now. Those that are there are moved: what is made anew is styled and laid out anew.
export function placeMarks(host: HTMLElement, marks: Mark[]): void {
  marks.forEach(({ look, left, right, top, text }, i) => {
    const mark = (host.children[i] ?? host.appendChild(h('span', { 'aria-hidden': 'true' }))) as HTMLElement;
    if (mark.className !== look) mark.className = look;
    write(mark, text);
    const at = `${left} ${right} ${top}`;
    if (known.get(mark) === at) return;
    known.set(mark, at);
    Object.assign(mark.style, { left, right, top });
  });
  while (host.children.length > marks.length) host.lastElementChild!.remove();
}
const known = new WeakMap<HTMLElement, string>();
