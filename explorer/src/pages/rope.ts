import { formulas } from 'posenc-formulas/rope';
import { question } from 'posenc-guesses/rope';
import { explore } from '../controls';
import { h, put, shown, svg, write } from '../dom';
import { follow } from '../follow';
import { type Page, guess, localStorageGet, math, maths, section, text } from '../lesson';
import { type NumberParam, embedded, linkToStory, shared, view } from '../state';
import { storyOf } from '../story';
import { arcPath, ropeClock } from './rope_clock';
import { RopeTable, positions } from './rope_table';
import { scoreCurve, scoreTrace } from './rope_trace';

const query: NumberParam = { ...shared.m, label: 'Query, m', most: positions - 1, steps: 'even' };
const key: NumberParam = { ...shared.n, label: 'Key, n', most: positions - 1, steps: 'even' };
const dims: NumberParam = { ...shared.width, key: 'dp', label: 'Rotary dimensions', start: 16, most: 32 };
const pair: NumberParam = { key: 'i', label: 'Pair i', kind: 'whole', start: 2, least: 0, most: 15 };

const isAsked = (): boolean => !embedded && !view.isChosen() && !view.hides('predict') && localStorageGet('posenc-guesses') !== 'off' && localStorageGet('posenc-drawn rope') === null;

// A clock for every pair; the one that is pressed becomes the large one.
function smallClocks(): { root: HTMLElement; draw(table: RopeTable, m: number, n: number, chosen: number): void } {
  const root = h('div', { class: 'small-clocks', role: 'group', 'aria-label': 'Every pair as a clock' });
  const half = 34, reach = 26;
  const made: { button: HTMLElement; arc: SVGElement; hands: SVGElement[]; value: HTMLElement; pace: HTMLElement }[] = [];
  const one = (index: number) => {
    const arc = svg('path', { class: 'arc' }), hands = ['line-1', 'line-0'].map((look) => svg('line', { class: `hand ${look}`, x1: half, y1: half }));
    const value = h('strong'), pace = h('small');
    const button = h('button', { type: 'button', onclick: () => { if (!view.locks(pair.key)) view.set(pair, index); } },
      svg('svg', { viewBox: `0 0 ${2 * half} ${2 * half}`, 'aria-hidden': 'true' }, svg('circle', { class: 'face', cx: half, cy: half, r: reach }), arc, ...hands) as unknown as HTMLElement, h('span', {}, `pair ${index}`), pace, value);
    return { button, arc, hands, value, pace };
  };
  return {
    root,
    draw(table, m, n, chosen) {
      // those that are there stay
      for (const { button } of made.splice(table.pairs)) button.remove();
      while (made.length < table.pairs) {
        made.push(one(made.length));
        root.append(made.at(-1)!.button);
      }
      made.forEach(({ button, arc, hands, value, pace }, index) => {
        put(button, { 'aria-pressed': String(index === chosen) });
        put(arc, { d: arcPath(table, m, n, index, 12, half) });
        [n, m].forEach((p, which) => put(hands[which], { x2: (half + reach * table.cos(p, index)).toFixed(1), y2: (half - reach * table.sin(p, index)).toFixed(1) }));
        write(pace, `a turn in ${shown((2 * Math.PI) / table.frequency(index), 3)}`);
        write(value, shown(table.between(m, n, index), 3));
      });
    },
  };
}

// Moves one or both while it is pressed: nothing moves by itself.
function moveButtons(clear: () => void): HTMLElement {
  let timer = 0, running: HTMLElement | undefined;
  const stop = () => {
    clearInterval(timer);
    running?.setAttribute('aria-pressed', 'false');
    running = undefined;
  };
  const button = (words: string, params: NumberParam[]) => {
    const made = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => {
      const wasRunning = running === made;
      stop();
      if (wasRunning || params.some((one) => view.locks(one.key))) return;
      running = made;
      made.setAttribute('aria-pressed', 'true');
      timer = setInterval(() => {
        if (!made.isConnected || params.some((one) => view.get(one) >= one.most)) return stop();
        for (const one of params) view.set(one, view.get(one) + 1);
      }, matchMedia('(prefers-reduced-motion: reduce)').matches ? 1000 : 60) as unknown as number;
    } }, words);
    return made;
  };
  return h('p', { class: 'presets' }, button('Move both', [query, key]), button('Move the query', [query]), button('Move the key', [key]), h('button', { type: 'button', class: 'quiet', onclick: () => { stop(); clear(); } }, 'Clear the trace'));
}

export const page: Page = {
  id: 'rope', title: 'RoPE: rotate the query and the key',
  goal: 'Drag the two hands. The score follows the angle between them, and so only the distance m\u00a0−\u00a0n.',
  async render(root) {
    const clock = ropeClock(query, key), clocks = smallClocks(), curve = scoreCurve(), trace = scoreTrace(), words = h('p', { class: 'reading', role: 'status' });
    let table = await RopeTable.load(view.get(dims), view.get(shared.base)), loaded = `${view.get(dims)} ${view.get(shared.base)}`, frame = 0;
    const reading = h('span'), score = h('strong', { id: 'rope-score' });
    words.append(reading, score);
    // what asks for a line is loaded a moment after the first figure; until then the line is not shown either
    const sketch = h('div', { class: 'sketch-room' });
    curve.root.classList.toggle('covered', isAsked());
    setTimeout(() => import('./rope_sketch').then(({ ropeSketch }) => sketch.replaceWith(ropeSketch(curve.root, curve.point, curve.drawOwn, () => table))), 1000);
    const chosenPair = () => Math.min(view.get(pair), table.pairs - 1);
    const drawClocks = () => clocks.draw(table, view.get(query), view.get(key), chosenPair());
    const draw = () => {
      frame = 0;
      const m = view.get(query), n = view.get(key), chosen = chosenPair(), radians = Math.abs(m - n) * table.frequency(chosen);
      clock.draw(table, chosen);
      curve.draw(table, m, n);
      trace.draw(table, m, n);
      write(reading, `m − n = ${shown(m - n)}. Pair ${chosen} rotates by ${shown(table.frequency(chosen))} a position, so its hands are ${shown(radians)} radians apart: cosine ${shown(table.between(m, n, chosen))}. Mean of all ${table.pairs} pairs: `);
      write(score, shown(table.score(m, n), 6));
    };
    const refresh = async () => {
      const wanted = `${view.get(dims)} ${view.get(shared.base)}`;
      if (wanted !== loaded) {
        loaded = wanted;
        const made = await RopeTable.load(view.get(dims), view.get(shared.base));
        if (wanted !== loaded) return;
        table = made;
        trace.clear();
        drawClocks();
      }
      // at most once in a frame
      frame ||= requestAnimationFrame(draw);
    };
    view.onChange(refresh);
    follow(clocks.root, drawClocks);
    drawClocks();
    draw();
    root.append(
      text('Every pair of features is a clock hand. RoPE rotates the query\'s hand by its position m and the key\'s by its position n; each pair has a pace of its own. The score of a pair is the cosine of the angle between its hands.'),
      explore([query, key, pair, dims, shared.base],
        h('div', { class: 'rope-view' }, h('div', {}, clock.root, h('p', { class: 'hint' }, 'Drag the tips, or focus one and use the arrow keys.')), h('div', { class: 'rope-traces' }, curve.root, sketch, trace.root)),
        words, moveButtons(() => { trace.clear(); draw(); }),
        section('Every pair at once', text('Fast pairs tell neighbours apart, slow ones tell near from far. Press a clock to make it the large one.'), clocks.root),
        guess(question),
        section('Why only the distance is left', text('As a complex number, a pair is rotated by multiplying it with e^(imω). In the product with the conjugate key the two rotations become one, by m − n.'), maths(math(formulas.complex, 'One pair'), math(formulas.score, 'All pairs, query and key alike'))),
        section('By hand', storyOf({ name: 'rope' }), h('p', {}, 'More: ', h('a', { href: linkToStory('kv-cache') }, 'why keys are rotated once and kept'), ', ', h('a', { href: linkToStory('why-inside-attention') }, 'why position belongs inside attention'), ', ', h('a', { href: linkToStory('context-extension') }, 'how RoPE is extended'), '.'))));
  },
};
