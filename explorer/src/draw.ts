// A figure of the library as SVG, with heat maps on canvases below it.

import type { Axis, Figure, Heat, Panel, Series } from './core';
import { h, shown } from './dom';
import { Shape, shape } from './shape';

const textWidth = 6.3, line = 16;
const dashes = ['', '10 4', '3 3', '10 3 2 3', '', '6 4', '2 5', '12 3 3 3'];

/// Colours are classes of the style sheet, so that dark mode and print need no second drawing.
export const styleClass = (style: number): string => (style < 0 ? 'line-grey' : `line-${style % 8}`);

export type Placed = { panel: Panel; left: number; top: number; width: number; height: number };
export type Drawn = { root: SVGElement; shape: Shape; canvases: HTMLCanvasElement[]; scales: HTMLCanvasElement[]; placed: Placed[]; width: number; height: number };

function fraction(axis: Axis, value: number): number {
  const at = axis.log
    ? (Math.log(value) - Math.log(axis.least)) / (Math.log(axis.most) - Math.log(axis.least))
    : (value - axis.least) / (axis.most - axis.least);
  return axis.reversed ? 1 - at : at;
}
export const toX = (place: Placed, value: number): number => place.left + fraction(place.panel.x, value) * place.width;
export const toY = (place: Placed, value: number): number =>
  place.top + (1 - fraction(place.panel.y, value)) * place.height;
/// As toX and toY, for many values of one panel.
function scales(place: Placed): [(value: number) => number, (value: number) => number] {
  const { panel: { x, y }, left, top, width, height } = place;
  const line = (axis: Axis, from: number, to: number): (value: number) => number => {
    const slope = (to - from) / (axis.most - axis.least), least = axis.least;
    return (value) => from + (value - least) * slope;
  };
  return [x.log ? (value) => toX(place, value) : x.reversed ? line(x, left + width, left) : line(x, left, left + width),
    y.log ? (value) => toY(place, value) : y.reversed ? line(y, top, top + height) : line(y, top + height, top)];
}
function valueAt(axis: Axis, share: number): number {
  let at = Math.min(1, Math.max(0, share));
  if (axis.reversed) at = 1 - at;
  return axis.log ? Math.exp(Math.log(axis.least) + at * (Math.log(axis.most) - Math.log(axis.least))) : axis.least + at * (axis.most - axis.least);
}
export const fromX = (place: Placed, pixel: number): number => valueAt(place.panel.x, (pixel - place.left) / place.width);
export const fromY = (place: Placed, pixel: number): number => valueAt(place.panel.y, 1 - (pixel - place.top) / place.height);

// The same few axes are asked for at every step of a slider.
const knownTicks = new Map<string, { at: number; text: string }[]>();
function roundTicks(axis: Axis, room: number): { at: number; text: string }[] {
  const key = `${axis.least} ${axis.most} ${axis.log} ${room}`, known = knownTicks.get(key);
  if (known) return known;
  if (knownTicks.size > 500) knownTicks.clear();
  const made = newTicks(axis, room);
  knownTicks.set(key, made);
  return made;
}
function newTicks(axis: Axis, room: number): { at: number; text: string }[] {
  const least = Math.min(axis.least, axis.most), most = Math.max(axis.least, axis.most);
  if (axis.log) {
    const ticks = [];
    const decades = Math.log10(most / least), skip = Math.max(1, Math.ceil(decades / Math.max(2, room / 60)));
    for (let power = Math.ceil(Math.log10(least) - 1e-9); 10 ** power <= most * 1.0001; power += skip) {
      const value = 10 ** power;
      ticks.push({ at: value, text: Math.abs(power) <= 4 ? shown(value) : `1e${power}` });
    }
    return ticks;
  }
  const rough = (most - least) / Math.max(2, Math.floor(room / 70));
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * size).find((k) => k >= rough) ?? rough;
  const ticks = [];
  for (let k = Math.ceil(least / step - 1e-9); k * step <= most + step * 1e-9; ++k) {
    ticks.push({ at: k * step, text: shown(Number((k * step).toPrecision(12)), 6) });
  }
  return ticks;
}

// Ticks of the library, thinned where they would touch.
function ticksOf(axis: Axis, room: number, vertical: boolean): { at: number; text: string }[] {
  const ticks = axis.ticks.length ? axis.ticks : roundTicks(axis, room);
  const need = vertical ? 14 : Math.max(...ticks.map((tick) => tick.text.length), 1) * textWidth + 10;
  const keep = Math.max(1, Math.ceil((ticks.length * need) / Math.max(room, need)));
  return ticks.filter((_, index) => index % keep === 0);
}

// Panels that are aligned ask for each other's.
const labelWidths = new WeakMap<Axis, number>();
function labelWidth(axis: Axis): number {
  let width = labelWidths.get(axis);
  if (width === undefined) labelWidths.set(axis, width = Math.max(1, ...[60, 120, 200, 400].flatMap((room) => ticksOf(axis, room, true)).map((tick) => tick.text.length)) * (textWidth + 0.7));
  return width;
}

// As toFixed(1), several times as fast: a path has thousands of them.
const tenth = (value: number): number => Math.round(value * 10) / 10;

function pathOf(place: Placed, series: Series): string {
  const [across, down] = scales(place), isLog = place.panel.y.log;
  let path = '', pen = false, lastX = 0, lastY = 0;
  for (let i = 0; i < series.x.length; ++i) {
    const y = series.y[i];
    if (!Number.isFinite(y) || (isLog && y <= 0)) {
      pen = false;
      continue;
    }
    const atX = across(series.x[i]), atY = down(y);
    // Points within the same pixel are one; the table has them all.
    if (pen && Math.abs(atX - lastX) < 0.7 && Math.abs(atY - lastY) < 0.7 && i + 1 < series.x.length) continue;
    lastX = atX;
    lastY = atY;
    const px = tenth(atX), py = tenth(atY);
    if (!pen) path += `M${px} ${py}`;
    else if (series.drawing === 'steps') path += `H${px}V${py}`;
    else path += `L${px} ${py}`;
    pen = true;
  }
  return path;
}

function drawSeries(place: Placed, series: Series): Shape {
  const look = styleClass(series.style);
  if (series.drawing === 'bars') {
    const group = shape('g', { class: `${look} bars` });
    const base = toY(place, Math.max(Math.min(0, place.panel.y.most), place.panel.y.least));
    const gap = series.x.length > 1 ? Math.abs(toX(place, series.x[1]) - toX(place, series.x[0])) : 12;
    const wide = Math.max(1, Math.min(28, gap * 0.7));
    series.y.forEach((value, i) => {
      const top = toY(place, value);
      group.append(shape('rect', {
        x: (toX(place, series.x[i]) - wide / 2).toFixed(1), y: Math.min(top, base).toFixed(1), width: wide.toFixed(1),
        height: Math.max(0.5, Math.abs(top - base)).toFixed(1),
      }));
    });
    return group;
  }
  const line = () => shape('path', { class: `${look} stroke`, d: pathOf(place, series), 'stroke-dasharray': dashes[Math.max(0, series.style) % 8] });
  if (series.drawing === 'dots' || series.drawing === 'line-and-dots') {
    // lines of no length with round ends: one element for all of them
    const [across, down] = scales(place);
    let path = '';
    series.y.forEach((value, i) => { if (Number.isFinite(value)) path += `M${tenth(across(series.x[i]))} ${tenth(down(value))}h0`; });
    const points = shape('path', { class: `${look} points`, d: path, 'stroke-linecap': 'round' });
    return series.drawing === 'dots' ? points : shape('g', {}, line(), points);
  }
  return line();
}

function envelopePath(place: Placed, x: Float64Array, low: Float64Array, high: Float64Array): string {
  const [across, down] = scales(place);
  let path = '';
  for (let i = 0; i < x.length; ++i) path += `${i ? 'L' : 'M'}${tenth(across(x[i]))} ${tenth(down(high[i]))}`;
  for (let i = x.length - 1; i >= 0; --i) path += `L${tenth(across(x[i]))} ${tenth(down(low[i]))}`;
  return path + 'Z';
}

// --- colours of a heat map: blue – paper – orange, safe for the colour-blind --------------------------------

const mix = (a: number[], b: number[], share: number): number[] => a.map((v, i) => Math.round(v + (b[i] - v) * share));
let prefersDark: MediaQueryList | undefined;
export const isDark = (): boolean =>
  document.documentElement.dataset.theme === 'dark' || (document.documentElement.dataset.theme !== 'light' && (prefersDark ??= matchMedia('(prefers-color-scheme: dark)')).matches);
const coloursOf: { [dark: string]: Uint32Array } = {};
export const heatColours = (dark = isDark()): Uint32Array => coloursOf[String(dark)] ??= mixColours(dark);
function mixColours(dark: boolean): Uint32Array {
  const paper = dark ? [24, 27, 33] : [255, 255, 255];
  const below = dark ? [[52, 104, 160], [140, 200, 255]] : [[74, 140, 194], [8, 48, 107]];
  const above = dark ? [[168, 96, 24], [255, 196, 110]] : [[253, 190, 122], [224, 108, 0]];
  const colours = new Uint32Array(513);
  for (let i = 0; i <= 512; ++i) {
    const value = (i - 256) / 256, [half, end] = value < 0 ? below : above, size = Math.abs(value);
    const [r, g, b] = size < 0.5 ? mix(paper, half, size * 2) : mix(half, end, size * 2 - 1);
    colours[i] = 0xff000000 | (b << 16) | (g << 8) | r;
  }
  return colours;
}

// A scale with both signs has its paper at 0; others run from paper to one end.
function shareOf({ least, most }: { least: number; most: number }): (value: number) => number {
  if (least < 0 && most > 0) return (value) => value / Math.max(-least, most);
  const size = Math.max(most - least, 1e-300), paper = most <= 0 ? most : least;
  return (value) => (value - paper) / size;
}

// Rows from the top, columns from the left.
function paintCells(canvas: HTMLCanvasElement, columns: number, rows: number, range: { least: number; most: number }, dark: boolean, valueAt: (row: number, column: number) => number): void {
  // a canvas that is given its size again is a new one to the browser, which lays it out anew
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const context = canvas.getContext('2d')!;
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer), colours = heatColours(dark), grey = 0xff999999, share = shareOf(range);
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      const value = valueAt(row, column);
      pixels[row * columns + column] = value !== value ? grey : colours[Math.max(0, Math.min(512, Math.round(256 + 256 * share(value))))];
    }
  }
  context.putImageData(image, 0, 0);
}

// The index in the map of a row and a column as they lie in the drawing.
function cellsOf(place: Placed): (row: number, column: number) => number {
  const { columns, rows } = place.panel.heat!, wide = columns.length, high = rows.length;
  const upsideDown = toY(place, rows[0]) > toY(place, rows[high - 1]), mirrored = toX(place, columns[0]) > toX(place, columns[wide - 1]);
  return (row, column) => (upsideDown ? high - 1 - row : row) * wide + (mirrored ? wide - 1 - column : column);
}

export function paintHeat(canvas: HTMLCanvasElement, place: Placed, dark = isDark()): void {
  const heat = place.panel.heat!, at = cellsOf(place);
  paintCells(canvas, heat.columns.length, heat.rows.length, heat, dark, (row, column) => heat.values[at(row, column)]);
}
/// A map without axes, from its first row down.
export function paintMini(canvas: HTMLCanvasElement, heat: Heat, dark = isDark()): void {
  paintCells(canvas, heat.columns.length, heat.rows.length, heat, dark, (row, column) => heat.values[row * heat.columns.length + column]);
}

// --- the scale of colours beside a map -----------------------------------------------------------------------

const scaleSteps = 128, scaleWidth = 12, scaleRoom = 62, scaleHeight = 220;
// Where a canvas lies; one that lies there already is not laid out again.
function put(canvas: HTMLCanvasElement, place: { left: string; top: string; width: string; height: string }): void {
  for (const [side, value] of Object.entries(place) as [keyof typeof place, string][]) if (canvas.style[side] !== value) canvas.style[side] = value;
}

/// Its range is in the element, so that it can be painted again for other colours.
export function paintScale(canvas: HTMLCanvasElement, dark = isDark()): void {
  const least = Number(canvas.dataset.least), most = Number(canvas.dataset.most);
  paintCells(canvas, 1, scaleSteps + 1, { least, most }, dark, (row) => most - (row * (most - least)) / scaleSteps);
}
function drawScale(root: Shape, place: Placed, before?: HTMLCanvasElement): HTMLCanvasElement {
  const { least, most } = place.panel.heat!, left = place.left + place.width + 10, height = Math.min(place.height, scaleHeight);
  const canvas = before ?? h('canvas', { class: 'heat scale', 'aria-hidden': 'true' }), isPainted = canvas.dataset.least === String(least) && canvas.dataset.most === String(most);
  put(canvas, { left: `${left}px`, top: `${place.top}px`, width: `${scaleWidth}px`, height: `${height}px` });
  Object.assign(canvas.dataset, { least, most });
  if (!isPainted) paintScale(canvas);
  const marks = shape('g'), mark = (value: number, y: number) => marks.append(shape('text', { class: 'tick', x: left + scaleWidth + 4, y }, shown(value, 3)));
  mark(most, place.top + 9);
  if (least < 0 && most > 0 && height > 44) mark(0, place.top + (height * most) / (most - least) + 4);
  mark(least, place.top + height);
  root.append(marks);
  return canvas;
}

/// Diagonal lines where a map is negative, as an image over it.
export function hatchNegative(canvas: HTMLCanvasElement, place: Placed): HTMLCanvasElement {
  const heat = place.panel.heat!, width = Math.round(parseFloat(canvas.style.width)) * 2, height = Math.round(parseFloat(canvas.style.height)) * 2;
  const over = h('canvas', { class: 'heat hatch', width, height, 'aria-hidden': 'true' });
  for (const side of ['left', 'top', 'width', 'height'] as const) over.style[side] = canvas.style[side];
  const context = over.getContext('2d')!, image = context.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
  const columns = heat.columns.length, rows = heat.rows.length, at = cellsOf(place);
  for (let y = 0; y < height; ++y) {
    const row = Math.floor((y * rows) / height);
    for (let x = 0; x < width; ++x) {
      if ((x + y) % 8 < 2 && heat.values[at(row, Math.floor((x * columns) / width))] < 0) pixels[y * width + x] = 0xb0000000;
    }
  }
  context.putImageData(image, 0, 0);
  return over;
}

// --- panels ----------------------------------------------------------------------------------------------------

type Key = { name: string; style: number; isDots: boolean };
function legendOf(panel: Panel): Key[] {
  const named = new Map<string, Key>();
  for (const one of [...panel.series, ...panel.envelopes]) if (one.name && !named.has(one.name)) named.set(one.name, { name: one.name, style: one.style, isDots: 'drawing' in one && one.drawing === 'dots' });
  return [...named.values()];
}

// Parts of which there are more or fewer from step to step are groups, so that what follows them stays where it is.
function drawPanel(drawing: Shape, place: Placed, legendTop: number, outer: { left: number; width: number }, clip: string): void {
  const { panel } = place, { left, top, width, height } = place, root = shape('g'), part = (): Shape => { const made = shape('g'); root.append(made); return made; };
  drawing.append(root);
  root.append(shape('clipPath', { id: clip }, shape('rect', { x: left, y: top - 2, width, height: height + 4 })));
  const isBare = panel.equal && !panel.x.shown && !panel.y.shown;  // hands of clocks have their own circles
  if (!panel.heat) root.append(shape('rect', { class: isBare ? 'plot bare' : 'plot', x: left, y: top, width, height }));
  const bands = part(), notes = part(), lines = part(), down = part(), across = part();
  for (const band of panel.bands) {
    const a = toX(place, band.from), b = toX(place, band.to);
    bands.append(shape('rect', { class: 'band', x: Math.min(a, b), y: top, width: Math.abs(b - a), height }));
    if (band.text) notes.append(shape('text', { class: 'small', x: Math.min(a, b) + 5, y: top + 13 }, band.text));
  }
  if (panel.y.shown) {
    for (const tick of ticksOf(panel.y, height, true)) {
      const y = toY(place, tick.at);
      if (y < top - 1 || y > top + height + 1) continue;
      if (!panel.heat) lines.append(shape('line', { class: 'grid', x1: left, x2: left + width, y1: y, y2: y }));
      down.append(shape('text', { class: 'tick', x: left - 6, y: y + 4, 'text-anchor': 'end' }, tick.text));
    }
    const middle = top + height / 2;
    root.append(shape('text', { class: 'label', x: outer.left + 11, y: middle, 'text-anchor': 'middle',
      transform: `rotate(-90 ${outer.left + 11} ${middle})` }, panel.y.label));
  }
  if (panel.x.shown) {
    for (const tick of ticksOf(panel.x, width, false)) {
      const x = toX(place, tick.at);
      if (x < left - 1 || x > left + width + 1) continue;
      across.append(shape('text', { class: 'tick', x, y: top + height + 16, 'text-anchor': 'middle' }, tick.text));
    }
    root.append(shape('text', { class: 'label', x: left + width / 2, y: top + height + 33, 'text-anchor': 'middle' }, panel.x.label));
  }
  const inside = shape('g', { 'clip-path': `url(#${clip})` }), areas = shape('g'), series = shape('g'), rules = shape('g'), ruled = shape('g'), frames = shape('g');
  for (const one of [areas, series, rules, ruled, frames]) inside.append(one);
  for (const one of panel.envelopes) {
    areas.append(shape('path', { class: `${styleClass(one.style)} shade`, d: envelopePath(place, one.x, one.low, one.high) }));
  }
  for (const one of panel.series) series.append(drawSeries(place, one));
  const taken: number[] = [];
  for (const rule of [...panel.rules].sort((a, b) => toY(place, a.at) - toY(place, b.at))) {
    const at = rule.vertical ? toX(place, rule.at) : toY(place, rule.at);
    rules.append(shape('line', rule.vertical ? { class: 'rule', x1: at, x2: at, y1: top, y2: top + height }
                                            : { class: 'rule', x1: left, x2: left + width, y1: at, y2: at }));
    if (rule.text && rule.vertical) {
      ruled.append(shape('text', { class: 'small', x: at + 4, y: top + 13 }, rule.text));
    } else if (rule.text) {
      // above its line, or below it where there is no room or another label
      const above = at - 4, y = at - top < 14 || taken.some((one) => Math.abs(one - above) < 12) ? at + 12 : above;
      taken.push(y);
      ruled.append(shape('text', { class: 'small', x: left + 4, y }, rule.text));
    }
  }
  for (const frame of panel.frames) {
    const a = toX(place, frame.left), b = toX(place, frame.right), c = toY(place, frame.high), d = toY(place, frame.low);
    frames.append(shape('rect', { class: 'frame', x: Math.min(a, b), y: Math.min(c, d), width: Math.abs(b - a), height: Math.abs(d - c) }));
  }
  root.append(inside);
  const said = part(), heading = part(), keys = part(), names = part();
  for (const words of panel.words) {
    // one below the other where there is no room for both
    const lines = outer.width < 560 ? words.text.split(' · ') : [words.text];
    lines.forEach((one, index) => said.append(shape('text', { class: 'small', x: toX(place, words.x), y: toY(place, words.y) + 4 + 11 * index, 'text-anchor': 'middle' }, one)));
  }
  const titles = titleLines(panel.title, outer.width);
  titles.forEach((words, index) => heading.append(shape('text', { class: 'panel-title', x: outer.left, y: legendTop - 6 - (titles.length - 1 - index) * line }, words)));
  let x = outer.left, y = legendTop + 10;
  for (const { name, style, isDots } of legendOf(panel)) {
    const wide = 42 + name.length * (textWidth + 0.4);
    if (x + wide > outer.left + outer.width && x > outer.left) {
      x = outer.left;
      y += line;
    }
    keys.append(isDots ? shape('path', { class: `${styleClass(style)} points`, d: [3, 11, 19].map((at) => `M${tenth(x + at)} ${y - 4}h0`).join(''), 'stroke-linecap': 'round' })
      : shape('path', { class: `${styleClass(style)} stroke`, d: `M${x} ${y - 4}h22`, 'stroke-dasharray': dashes[Math.max(0, style) % 8] }));
    names.append(shape('text', { class: 'legend', x: x + 27, y }, name));
    x += wide;
  }
}

// A title in as many lines as it needs.
function titleLines(title: string, width: number): string[] {
  const most = Math.max(12, Math.floor(width / 7.9)), lines: string[] = [];
  for (const word of title.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < most) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return title ? lines : [];
}

const titleHeight = (panel: Panel, width: number): number => 2 + titleLines(panel.title, width).length * line;

function legendRows(panel: Panel, width: number): number {
  let x = 0, rows = 0;
  for (const { name } of legendOf(panel)) {
    const wide = 42 + name.length * (textWidth + 0.4);
    if (rows === 0 || x + wide > width) {
      ++rows;
      x = 0;
    }
    x += wide;
  }
  return rows;
}

/// Draws into `width` pixels; beside each other where there is room, else one below the other. `name` is the drawing's own in
/// the document; an earlier drawing becomes this one, so that only what differs is laid out again: its elements, and its
/// canvases if there are as many.
export function drawFigure(figure: Figure, width: number, name: string, before?: Drawn): Drawn {
  const narrow = width < 560;
  const rows = figure.rows.flatMap((row) => narrow ? row.panels.map((panel) => ({ panels: [panel], height: row.height })) : [row]);
  const whole = figure.rows.reduce((sum, row) => sum + row.height, 0);
  // panels that are one below the other need their own height each
  const bodyHeight = narrow ? Math.max(300, Math.min(figure.height * 0.95, 200 * rows.length)) : Math.min(figure.height * 0.8, Math.max(300, width * 0.55));
  const maps = figure.rows.flatMap((row) => row.panels).filter((one) => one.heat), kept = before && before.canvases.length === maps.length && before.scales.length === maps.filter((one) => one.heat!.label !== '').length ? before : undefined;
  const placed: Placed[] = [], canvases: HTMLCanvasElement[] = [], scales: HTMLCanvasElement[] = [];
  const panels = shape('g'), root = shape('svg', { class: 'drawing', role: 'img', 'aria-label': [figure.title, figure.subtitle].filter(Boolean).join('. ') });
  let y = 4;
  for (const row of rows) {
    const shares = row.panels.reduce((sum, panel) => sum + panel.width, 0), gap = 22;
    const free = width - gap * (row.panels.length - 1);
    let x = 0, lowest = 0;
    const heads = row.panels.map((panel) => titleHeight(panel, (free * panel.width) / shares) + legendRows(panel, (free * panel.width) / shares) * line);
    const head = Math.max(...heads);
    for (const panel of row.panels) {
      const outer = { left: x, width: (free * panel.width) / shares };
      // panels that are one below the other and share an axis are aligned
      const column = row.panels.indexOf(panel), sharing = rows.map((other) => other.panels[column]).filter((other) => other && row.panels.length === 1 && other.x.least === panel.x.least && other.x.most === panel.x.most);
      const labels = panel.y.shown ? Math.max(...[panel, ...sharing].map((one) => (one.y.shown ? labelWidth(one.y) : 0))) : 0;
      const left = x + (panel.y.shown ? labels + (panel.y.label ? 29 : 10) : 2);
      // the binary counter has no label, and no scale
      const hasScale = panel.heat !== null && panel.heat.label !== '';
      let inner = Math.max(40, outer.width - (left - x) - (hasScale ? scaleRoom : 8));
      let height = Math.max(rows.length > 4 ? 46 : 90, (bodyHeight * row.height) / whole - head - 40);
      if (panel.equal) {  // one unit is as long on both axes
        const ratio = Math.abs((panel.y.most - panel.y.least) / (panel.x.most - panel.x.least));
        if (inner * ratio > height * 1.4) inner = (height * 1.4) / ratio;
        height = inner * ratio;
      }
      const place = { panel, left, top: y + head + 4, width: inner, height };
      placed.push(place);
      drawPanel(panels, place, y + titleHeight(panel, outer.width), outer, `clip-${name}-${placed.length}`);
      if (hasScale) scales.push(drawScale(panels, place, kept?.scales[scales.length]));
      lowest = Math.max(lowest, place.top + height + (panel.x.shown ? 40 : 10));
      x += outer.width + gap;
    }
    y = lowest + 6;
  }
  for (const place of placed) {
    const { heat } = place.panel;
    if (!heat) continue;
    const canvas = kept?.canvases[canvases.length] ?? h('canvas', { class: 'heat', 'aria-hidden': 'true' });
    const step = (list: Float64Array): number => (list.length > 1 ? (list[1] - list[0]) / 2 : 0.5);
    const half = step(heat.columns), tall = step(heat.rows), { columns, rows: down } = heat;
    const x1 = toX(place, columns[0] - half), x2 = toX(place, columns[columns.length - 1] + half);
    const y1 = toY(place, down[0] - tall), y2 = toY(place, down[down.length - 1] + tall);
    put(canvas, { left: `${Math.min(x1, x2)}px`, top: `${Math.min(y1, y2)}px`, width: `${Math.abs(x2 - x1)}px`, height: `${Math.abs(y2 - y1)}px` });
    paintHeat(canvas, place);
    canvases.push(canvas);
  }
  Object.assign(root.attributes, { viewBox: `0 0 ${width} ${Math.ceil(y)}`, width, height: Math.ceil(y) });
  // what figure.ts draws into has its place whatever there is of panels
  root.append(panels);
  root.append(shape('g', { class: 'cursors' }));
  return { root: root.show(before?.shape), shape: root, canvases, scales, placed, width, height: Math.ceil(y) };
}
