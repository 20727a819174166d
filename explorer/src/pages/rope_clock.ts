// The large clock: the query and the key of one pair as two hands, each of which can be dragged around.

import { announce, h, put as place, shown, svg } from '../dom';
import { type NumberParam, held, view } from '../state';
import type { RopeTable } from './rope_table';

const size = 320, middle = size / 2, reach = 118;

type Hand = { param: NumberParam; name: string; letter: string; look: string; line: SVGElement; tip: SVGElement; label: SVGElement };

const point = (cos: number, sin: number, length = reach): [number, number] => [middle + length * cos, middle - length * sin];

/// Two hands on any drawing; the arc is the angle between them, the shorter way.
export function arcPath(table: RopeTable, m: number, n: number, pair: number, radius: number, centre = middle): string {
  const at = (p: number) => [centre + radius * table.cos(p, pair), centre - radius * table.sin(p, pair)];
  const [ax, ay] = at(n), [bx, by] = at(m), cross = table.cos(n, pair) * table.sin(m, pair) - table.sin(n, pair) * table.cos(m, pair);
  return `M${ax.toFixed(1)} ${ay.toFixed(1)}A${radius} ${radius} 0 0 ${cross > 0 ? 0 : 1} ${bx.toFixed(1)} ${by.toFixed(1)}`;
}

export function ropeClock(query: NumberParam, key: NumberParam): { root: HTMLElement; draw(table: RopeTable, pair: number): void } {
  const picture = svg('svg', { class: 'clock', viewBox: `0 0 ${size} ${size}` });
  const arc = svg('path', { class: 'arc' });
  picture.append(svg('circle', { class: 'face', cx: middle, cy: middle, r: reach }), svg('line', { class: 'grid', x1: middle - reach, x2: middle + reach, y1: middle, y2: middle }), svg('line', { class: 'grid', x1: middle, x2: middle, y1: middle - reach, y2: middle + reach }), arc);
  let table: RopeTable | undefined, pair = 0;
  const hand = (param: NumberParam, name: string, letter: string, look: string): Hand => {
    const line = svg('line', { class: `hand ${look}`, x1: middle, y1: middle });
    const tip = svg('circle', { class: `tip ${look}`, r: 12, tabindex: 0, role: 'slider', 'aria-label': name, 'aria-valuemin': param.least, 'aria-valuemax': param.most });
    const label = svg('text', { class: 'tip-label', 'text-anchor': 'middle', 'aria-hidden': 'true' }, letter);
    picture.append(line, tip, label);
    return { param, name, letter, look, line, tip, label };
  };
  const hands = [hand(key, 'Key, position n', 'k', 'line-1'), hand(query, 'Query, position m', 'q', 'line-0')];
  const put = (one: Hand, value: number) => {
    if (view.locks(one.param.key)) return;
    view.set(one.param, held(one.param, value));
    if (table) announce(`${one.param.key} = ${view.get(one.param)}, score ${shown(table.score(view.get(query), view.get(key)))}`);
  };
  for (const one of hands) {
    // The place is kept as a real number, so that a slow drag adds up; a full turn is a wavelength.
    let exact = 0, last: number | undefined;
    const angle = (event: PointerEvent): number => {
      const box = picture.getBoundingClientRect();
      return Math.atan2(box.y + box.height / 2 - event.clientY, event.clientX - box.x - box.width / 2);
    };
    one.tip.addEventListener('pointerdown', (event) => {
      one.tip.setPointerCapture(event.pointerId);
      exact = view.get(one.param);
      last = angle(event);
    });
    one.tip.addEventListener('pointermove', (event) => {
      if (last === undefined || !table) return;
      const now = angle(event), turned = Math.atan2(Math.sin(now - last), Math.cos(now - last));
      last = now;
      exact = Math.min(one.param.most, Math.max(one.param.least, exact + turned / table.frequency(pair)));
      put(one, Math.round(exact));
    });
    for (const end of ['pointerup', 'pointercancel'] as const) one.tip.addEventListener(end, () => { last = undefined; });
    one.tip.addEventListener('keydown', (event) => {
      const now = view.get(one.param), step = event.shiftKey ? 10 : 1;
      const to: { [key: string]: number } = { ArrowRight: now + step, ArrowUp: now + step, ArrowLeft: now - step, ArrowDown: now - step, Home: one.param.least, End: one.param.most };
      if (!(event.key in to)) return;
      event.preventDefault();
      put(one, to[event.key]);
    });
  }
  const root = h('div', { class: 'clock-holder' }, picture as unknown as HTMLElement);
  return {
    root,
    draw(made, chosen) {
      table = made;
      pair = chosen;
      const m = view.get(query), n = view.get(key);
      place(arc, { d: arcPath(table, m, n, pair, 46) });
      for (const one of hands) {
        const at = view.get(one.param), [x, y] = point(table.cos(at, pair), table.sin(at, pair));
        place(one.line, { x2: x.toFixed(1), y2: y.toFixed(1) });
        place(one.tip, { cx: x.toFixed(1), cy: y.toFixed(1), 'aria-valuenow': at, 'aria-disabled': String(view.locks(one.param.key)) });
        const [beside, below] = point(table.cos(at, pair), table.sin(at, pair), reach + 27);
        place(one.label, { x: beside.toFixed(1), y: (below + 5).toFixed(1) });
      }
    },
  };
}
