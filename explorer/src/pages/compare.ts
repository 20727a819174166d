import { question } from 'posenc-guesses/schemes';
import { list, properties } from 'posenc-scheme-list';
import { type Heat, ask, figure } from '../core';
import desk from '../data/desk.json';
import { code, copyText, h, prose, put, shown, svg, write } from '../dom';
import { isDark, paintMini } from '../draw';
import { type Summary, groupsOf } from '../lab_summary';
import { type Page, guess, section, text } from '../lesson';
import { spend, withFrame } from '../pace';
import { type ChoiceParam, type NumberParam, type TextParam, linkTo, shared, view } from '../state';
import { controls } from '../controls';
import { rove } from '../roving';

const hiddenColumns: TextParam = { key: 'off', label: 'Columns that are not shown', kind: 'text', start: '', longest: 400 };
const command = 'posenc prove --length 64', positions = 24, distances = 64, keys = 64;

const distance: NumberParam = { ...shared.m, label: 'Distance m', start: 16, most: distances - 1, steps: 'even' };

type Line = { y: Float64Array; least: number; most: number };
type Cost = { operations: number; numbers: number; parameters: number };
type Measured = { findings: any[]; heat?: Heat; decay?: Line; cost?: Cost };
type Row = { name: string; family: string; trained: string; is?: Measured };

// Measured once in a document, however often the page is opened.
const measured = new Map<string, Measured>();

const settle = <T>(promise: Promise<T>): Promise<T | undefined> => promise.catch(() => undefined);

// Similarities of positions: cosines of the angle between two vectors, or what a bias adds. A scheme may have neither.
async function heatOf(scheme: any, family: string): Promise<Heat | undefined> {
  if (family === 'nothing') return undefined;
  if (family !== 'bias') return (await figure({ kind: 'similarity', schemes: [scheme], zoom: { from: 0, to: positions } })).rows[0].panels[0].heat ?? undefined;
  const { bytes } = await ask({ call: 'scores', scheme, length: positions, head: 0 });
  const values = new Float64Array(bytes.buffer), places = Float64Array.from({ length: positions }, (_, i) => i);
  return { columns: places, rows: places, values, least: Math.min(...values), most: Math.max(...values), label: 'bias' };
}
async function decayOf(scheme: any): Promise<Line | undefined> {
  const { panels: [panel] } = (await figure({ kind: 'decay', schemes: [scheme], zoom: { from: 0, to: distances } })).rows[0];
  const line = panel.series[0];
  return line && { y: line.y, least: panel.y.least, most: panel.y.most };
}

async function measure({ name, family, fields }: any): Promise<Measured> {
  const sized: any = { scheme: name };
  for (const field of fields) if (field.name === 'width' || field.name === 'dims') sized[field.name] = 64;
  const { json } = await ask({ call: 'prove', scheme: { scheme: name }, length: 64 });
  const found: Measured = { findings: json.findings, heat: await settle(heatOf(sized, family)), decay: family === 'nothing' ? undefined : await settle(decayOf(sized)),
    cost: await settle(ask({ call: 'cost', scheme: sized, keys }).then((answer) => answer.json)) };
  measured.set(name, found);
  return found;
}

// Perplexity at the longest length over that at the trained one, from the lab's stored run.
const trained = groupsOf(desk as unknown as Summary).find((one) => one.key === 'text-32')!;
function extrapolation(name: string): { text: string; words: string; value: number } | undefined {
  const found = trained.results.find((one) => one.scheme === name);
  if (!found) return undefined;
  const first = found.by_size[0], last = found.by_size.at(-1)!, ratio = last.mean / first.mean;
  return { text: `× ${ratio.toFixed(2)}`, value: ratio, words: `Perplexity ${last.mean.toFixed(2)} at ${last.size} tokens, ${first.mean.toFixed(2)} at ${first.size}, the trained length` };
}

const nothing = () => h('span', { class: 'hint' }, '–');
function mapCell(row: Measured): HTMLElement {
  if (!row.heat) return nothing();
  const canvas = h('canvas', { class: 'mini', role: 'img', 'aria-label': `Map of ${positions} by ${positions} positions, from ${shown(row.heat.least)} to ${shown(row.heat.most)}` });
  paintMini(canvas, row.heat, isDark() && !matchMedia('print').matches);
  return canvas;
}
function decayCell(row: Measured): HTMLElement {
  if (!row.decay) return nothing();
  const { y, least, most } = row.decay, wide = 84, high = 40;
  // what differs by rounding alone is level
  const isLevel = most - least < 1e-9 * Math.max(Math.abs(least), Math.abs(most));
  // a vector of zeros is similar to nothing: a gap
  const path = [...y].map((value, i) => Number.isNaN(value) ? '' : `${i && !Number.isNaN(y[i - 1]) ? 'L' : 'M'}${((i * wide) / (y.length - 1)).toFixed(1)} ${(isLevel ? high / 2 : high - ((value - least) / (most - least)) * high).toFixed(1)}`).join('');
  const line = svg('line', { class: 'cursor', y1: -2, y2: high + 2 }), value = h('small');
  const box = h('div', { class: 'spark' }, svg('svg', { viewBox: `-2 -2 ${wide + 4} ${high + 4}`, width: wide + 4, height: high + 4, role: 'img', 'aria-label': `From ${shown(y[0])} at distance 0 to ${shown(y[y.length - 1])} at distance ${y.length - 1}` },
    svg('path', { class: 'line-0 stroke', d: path }), line), value);
  // one distance for all schemes: where the pointer is over one of them, or what the control says
  const place = () => {
    const m = view.get(distance), x = String((m * wide) / (y.length - 1));
    put(line, { x1: x, x2: x });
    write(value, shown(y[m], 3));
  };
  box.addEventListener('pointermove', (event) => {
    const { left, width } = box.querySelector('svg')!.getBoundingClientRect();
    view.set(distance, Math.round(((event.clientX - left) / width) * (y.length - 1)));
  });
  box.addEventListener('posenc-place', place);
  place();
  return box;
}
function findingCell(one: any): HTMLElement {
  const mark = one.outcome === 'holds' ? '✓' : one.outcome === 'fails' ? '✗' : '–';
  const words = one.outcome === 'does-not-apply' ? `${one.heading}: does not apply` : `${one.statement}: ${one.outcome} (${shown(one.measured)}, bound ${shown(one.bound)})`;
  return h('span', { class: `mark ${one.outcome}`, title: words, tabindex: 0, role: 'img', 'aria-label': words }, mark);
}

type Column = { key: string; title: string; about: string; isNarrow?: boolean; cell: (row: Row) => HTMLElement; rank?: (row: Row) => number };
// A cell that has as much room before it is measured.
const once = (cell: (is: Measured) => HTMLElement, room = '') => (row: Row): HTMLElement => (row.is ? cell(row.is) : h('span', { class: `hint ${room}`, 'aria-label': 'not measured yet' }, '…'));
const fixed: Column[] = [
  { key: 'map', title: 'Map', about: `similarity of ${positions} positions, or the bias of head 0`, cell: once(mapCell, 'mini') },
  { key: 'decay', title: 'Decay', about: `similarity or bias (or the row of a trained table) against distances 0 to ${distances - 1}`, cell: once(decayCell, 'spark') },
  { key: 'trained', title: 'Trained table', about: 'the axes of its trained table', cell: (row) => (row.trained ? h('div', { class: 'trained' }, row.trained) : nothing()), rank: (row) => (row.trained ? 1 : 0) },
];
const costWords = ({ operations, numbers, parameters }: Cost) => `${shown(operations)} sums and products for one token, ${shown(numbers)} numbers read beside q, k and v, ${shown(parameters)} trained numbers`;
const cost: Column = {
  key: 'cost', title: 'Cost per token', isNarrow: true, about: `sums and products that it adds for one token at head dimension 64 that attends to ${keys} keys: counted, not timed`,
  cell: once(({ cost }) => (cost ? h('span', { title: costWords(cost), tabindex: 0, role: 'img', 'aria-label': costWords(cost) }, shown(cost.operations)) : nothing())),
  rank: (row) => -(row.is?.cost?.operations ?? Infinity),
};
const lab: Column = {
  key: 'lab', title: 'Extrapolation', isNarrow: true, about: 'perplexity at 8 times the trained length over that at the trained length, in the lab',
  cell: (row) => { const found = extrapolation(row.name); return found ? h('span', { title: found.words, tabindex: 0, role: 'img', 'aria-label': found.words }, found.text) : nothing(); },
  rank: (row) => -(extrapolation(row.name)?.value ?? Infinity),
};
const rankOf = (outcome = ''): number => ({ holds: 2, fails: 1 })[outcome] ?? 0;
const columns: Column[] = [...fixed, ...properties.map((one, index): Column => ({ key: one.property, title: one.heading, about: one.statement, isNarrow: true, cell: once(({ findings }) => findingCell(findings[index])), rank: (row) => rankOf(row.is?.findings[index].outcome) })), cost, lab];
const sort: ChoiceParam = { key: 'sort', label: 'Order', kind: 'choice', start: 'list', options: [['list', 'as listed'], ['family', 'by family'], ['met', 'by properties that hold'],
  ...columns.filter((one) => one.rank).map((one): [string, string] => [one.key, `by: ${one.title}`])] };

export const page: Page = {
  id: 'schemes', title: 'All schemes side by side',
  goal: 'Compare every scheme: where it acts, its map of positions, and each property measured in this page.',
  render(root) {
    const rows = list.schemes.map(({ name, family, trained_table: axes }): Row => ({ name, family, trained: axes?.join(' × ') ?? '', is: measured.get(name) }));
    const progress = h('p', { class: 'note', role: 'status' }, 'Measuring…');
    const off = (): Set<string> => new Set(view.get(hiddenColumns).split(',').filter(Boolean));
    const picker = h('div', { class: 'controls columns', role: 'group', 'aria-label': 'Columns' }, ...columns.map((column) => {
      const box = h('input', { type: 'checkbox', id: `column-${column.key}`, disabled: view.locks(hiddenColumns.key) });
      box.addEventListener('change', () => {
        const next = off();
        if (box.checked) next.delete(column.key);
        else next.add(column.key);
        view.set(hiddenColumns, [...next].join(','));
      });
      return h('div', { class: 'control check' }, box, h('label', { for: box.id, title: column.about }, column.title));
    }));
    const head = h('tr'), body = h('tbody'), table = h('table', { class: 'schemes' }, h('thead', {}, head), body);
    root.append(
      text('Every ✓ and ✗ is measured now, by the library, on 64 features and 64 positions; hover or focus one to read the number. Trained tables are filled with random numbers. The cost per token is counted, not timed: sums and products that a scheme adds for one token, at head dimension 64 that attends to 64 keys.'),
      controls(sort, distance),
      h('details', { class: 'picker' }, h('summary', {}, 'Choose columns'), picker),
      section('Properties', progress, h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Properties of every scheme' }, table),
          h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), code(command), h('button', { type: 'button', onclick: () => copyText(command) }, 'Copy'))),
      h('details', {}, h('summary', {}, 'What the columns mean'), h('dl', { class: 'facts' }, ...columns.flatMap((one) => [h('dt', {}, one.title), h('dd', {}, prose(one.about))]))),
      guess(question));

    const kept = () => { const hidden = off(); return columns.filter((one) => !hidden.has(one.key)); };
    const lines = new Map<Row, HTMLElement>();
    const lineOf = (row: Row, shownColumns = kept()): HTMLElement => {
      const line = h('tr', {}, h('th', { scope: 'row' }, h('a', { href: `${linkTo('reference')}&q=${row.name}` }, row.name), h('small', {}, row.family)), ...shownColumns.map((one) => h('td', {}, one.cell(row))));
      lines.set(row, line);
      for (const spark of line.querySelectorAll('.spark')) watched.observe(spark);
      return line;
    };
    const draw = () => {
      const met = (row: Row) => row.is?.findings.filter((one) => one.outcome === 'holds').length ?? -1;
      const ordered = [...rows], by = view.get(sort), column = columns.find((one) => one.key === by), shownColumns = kept();
      if (by === 'family') ordered.sort((a, b) => a.family.localeCompare(b.family));
      else if (by === 'met') ordered.sort((a, b) => met(b) - met(a));
      else if (column?.rank) ordered.sort((a, b) => column.rank!(b) - column.rank!(a));
      head.replaceChildren(h('th', { scope: 'col' }, 'Scheme'), ...shownColumns.map((one) => h('th', { scope: 'col', title: one.about, class: one.isNarrow ? 'narrow' : undefined }, one.isNarrow ? h('span', {}, one.title) : one.title)));
      watched.disconnect();
      inSight.clear();
      body.replaceChildren(...ordered.map((row) => lineOf(row, shownColumns)));
      rove(body, '[tabindex]');
      for (const column of columns) (picker.querySelector(`#column-${column.key}`) as HTMLInputElement).checked = shownColumns.includes(column);
    };
    // those in sight at every step, all of them at rest
    let resting = 0;
    const inSight = new Set<Element>(), watched = new IntersectionObserver((changes) => { for (const one of changes) inSight[one.isIntersecting ? 'add' : 'delete'](one.target); });
    view.atEnd(() => watched.disconnect());
    const placeSparks = () => {
      const isMoving = view.isMoving(100), place = new Event('posenc-place');
      spend(() => { for (const one of isMoving ? inSight : body.querySelectorAll('.spark')) one.dispatchEvent(place); });
      clearTimeout(resting);
      if (isMoving) resting = setTimeout(placeSparks, 120) as unknown as number;
    };
    let drawn = '';
    view.onChange(() => {
      const now = `${view.get(sort)} ${view.get(hiddenColumns)}`;
      if (now !== drawn) draw();
      else withFrame(placeSparks);
      drawn = now;
    });
    // maps are painted: again for other colours, and for paper, which is light
    const changes = ['posenc-theme', 'beforeprint', 'afterprint'];
    for (const change of changes) addEventListener(change, draw);
    view.atEnd(() => { for (const change of changes) removeEventListener(change, draw); });
    const fill = async () => {
      for (const [index, row] of rows.entries()) {
        if (row.is) continue;
        row.is = await measure(list.schemes[index]);
        if (!root.isConnected) return;
        lines.get(row)!.replaceWith(lineOf(row));
        progress.textContent = `${index + 1} of ${rows.length} schemes measured`;
        await new Promise((resolve) => setTimeout(resolve));  // the page stays alive between schemes
      }
      progress.textContent = `${rows.length} schemes measured`;
      draw();
      root.dataset.done = 'yes';
    };
    draw();
    fill().catch((error) => { progress.textContent = String(error); });
  },
};
