// The score against the distance, and how it went while the hands were moved.

import { h, put, shown, svg } from '../dom';
import { type RopeTable, positions } from './rope_table';

const wide = 460, high = 200, left = 40, top = 12, low = 38, longest = 160;

const frame = (label: string, across: string): SVGElement => {
  const plot = { x: left, y: top, width: wide - left - 8, height: high - top - low };
  const root = svg('svg', { class: 'drawing trace', viewBox: `0 0 ${wide} ${high}`, role: 'img', 'aria-label': label }, svg('rect', { class: 'plot', ...plot }));
  for (const value of [1, 0, -1]) {
    const y = yOf(value);
    root.append(svg('line', { class: 'grid', x1: left, x2: wide - 8, y1: y, y2: y }), svg('text', { class: 'tick', x: left - 6, y: y + 4, 'text-anchor': 'end' }, String(value).replace('-', '−')));
  }
  root.append(svg('text', { class: 'label', x: left + plot.width / 2, y: high - 4, 'text-anchor': 'middle' }, across));
  return root;
};
const tenth = (value: number): number => Math.round(value * 10) / 10;
const yOf = (score: number): number => top + ((1 - score) / 2) * (high - top - low);

export type ScoreCurve = {
  root: HTMLElement;
  draw(table: RopeTable, m: number, n: number): void;
  /// Which distance and score a place of the screen is.
  point(event: PointerEvent): { distance: number; score: number };
  /// A line of the reader's beside the right one.
  drawOwn(value: (distance: number) => number | undefined): void;
};
/// A curve of the score against m − n, with a dot at the distance of now.
export function scoreCurve(): ScoreCurve {
  const root = frame('Score against the distance m − n', 'distance m − n'), line = svg('path', { class: 'line-2 stroke right-one' }), own = svg('path', { class: 'line-1 stroke own', 'stroke-dasharray': '6 4' }), dot = svg('circle', { class: 'line-2 dots', r: 6 });
  const last = positions - 1, xOf = (distance: number) => left + ((distance + last) / (2 * last)) * (wide - left - 8);
  for (const at of [-200, -100, 0, 100, 200]) root.append(svg('text', { class: 'tick', x: xOf(at), y: high - low + 14, 'text-anchor': 'middle' }, shown(at)));
  root.append(line, own, dot);
  let drawn: RopeTable | undefined;
  return {
    root: h('div', { class: 'trace-holder' }, root as unknown as HTMLElement),
    point(event) {
      const box = root.getBoundingClientRect(), x = ((event.clientX - box.x) / box.width) * wide, y = ((event.clientY - box.y) / box.height) * high;
      return { distance: Math.max(-last, Math.min(last, ((x - left) / (wide - left - 8)) * 2 * last - last)), score: 1 - (2 * (y - top)) / (high - top - low) };
    },
    drawOwn(value) {
      let path = '', pen = false;
      for (let distance = -last; distance <= last; distance += 3) {
        const y = value(distance);
        if (y !== undefined) path += `${pen ? 'L' : 'M'}${xOf(distance).toFixed(1)} ${yOf(y).toFixed(1)}`;
        pen = y !== undefined;
      }
      own.setAttribute('d', path);
    },
    draw(table, m, n) {
      if (table !== drawn) {
        drawn = table;
        let path = '';
        const scores = Array.from({ length: positions }, (_, distance) => tenth(yOf(table.score(distance, 0))));
        for (let distance = -last; distance <= last; ++distance) path += `${path ? 'L' : 'M'}${tenth(xOf(distance))} ${scores[Math.abs(distance)]}`;
        line.setAttribute('d', path);
      }
      put(dot, { cx: tenth(xOf(m - n)), cy: tenth(yOf(table.score(m, n))) });
    },
  };
}

/// The last steps: level while both move, up and down while one does.
export function scoreTrace(): { root: HTMLElement; draw(table: RopeTable, m: number, n: number): void; clear(): void } {
  const root = frame('Score at each of the last steps', 'step after step'), both = svg('path', { class: 'line-2 stroke both' }), one = svg('path', { class: 'line-1 stroke' }), dot = svg('circle', { class: 'line-2 dots', r: 5 });
  root.append(svg('text', { class: 'small', x: left + 8, y: top + 15 }, 'flat: both moved · else: one moved'), both, one, dot);
  let steps: { m: number; n: number; score: number }[] = [];
  const xOf = (index: number) => left + (index / longest) * (wide - left - 8);
  return {
    root: h('div', { class: 'trace-holder' }, root as unknown as HTMLElement),
    clear() { steps = []; },
    draw(table, m, n) {
      const before = steps.at(-1);
      if (before?.m === m && before.n === n) return;
      steps = [...steps, { m, n, score: table.score(m, n) }].slice(-longest);
      const paths = { both: '', one: '' };
      steps.slice(1).forEach((step, i) => {
        const from = steps[i];
        paths[step.m - step.n === from.m - from.n ? 'both' : 'one'] += `M${tenth(xOf(i))} ${tenth(yOf(from.score))}L${tenth(xOf(i + 1))} ${tenth(yOf(step.score))}`;
      });
      put(both, { d: paths.both });
      put(one, { d: paths.one });
      put(dot, { cx: tenth(xOf(steps.length - 1)), cy: tenth(yOf(steps.at(-1)!.score)) });
    },
  };
}
