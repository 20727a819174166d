import { type PeFigure, figureOf } from '../figure';
import { controlWhile, explore } from '../controls';
import { h, shown, write } from '../dom';
import { follow, watchSight } from '../follow';
import { type Page, section, text } from '../lesson';
import { rove } from '../roving';
import { type ChoiceParam, type NumberParam, shared, view } from '../state';
import type { Named } from './schemes_of_view';

const words: NumberParam = { key: 'words', label: 'Text before it', kind: 'whole', start: 6, least: 1, most: 64, steps: 'even' };
const rows: NumberParam = { key: 'r', label: 'Patches down', kind: 'whole', start: 8, least: 4, most: 24, multipleOf: 2, steps: 'even' };
const columns: NumberParam = { key: 'c', label: 'Patches across', kind: 'whole', start: 12, least: 4, most: 24, multipleOf: 2, steps: 'even' };
const frames: NumberParam = { key: 'f', label: 'Video frames', kind: 'whole', start: 4, least: 0, most: 12, steps: 'even' };
const token: NumberParam = { ...shared.m, label: 'Token', most: 4096 };

const way: ChoiceParam = { key: 'way', label: 'Axes of the pairs', kind: 'choice', start: 'mixed', options: [['axial', 'axial: rows, then columns'], ['mixed', 'mixed: any direction'], ['chunked', 'M-RoPE: sections in a row'], ['interleaved', 'M-RoPE: sections interleaved']] };
const direction: NumberParam = { key: 'dir', label: 'Direction, degrees', kind: 'whole', start: 30, least: 0, most: 180, steps: 'even' };
const column: NumberParam = { key: 'col', label: 'Column', kind: 'whole', start: 5, least: 0, most: 15, steps: 'even' };

const prompt = () => {
  const size = `${view.get(rows)}x${view.get(columns)}`;
  return `text:${view.get(words)} image:${size}${view.get(frames) ? ` text:5 video:${view.get(frames)}x${size}@1` : ''} text:6`;
};
// The axes of Qwen2.5-VL: 16 pairs for time, 24 for height, 24 for width.
const threeAxes = { scheme: 'rope', dims: 128, base: 10_000, sections: [16, 24, 24] };

const ways: { [key: string]: { named: () => Named; features: number[]; about: string } } = {
  axial: { named: () => ({ json: { scheme: 'patch-rope', dims: 64, base: 100, patches: [16, 16] }, words: 'patch-rope --dims 64 --base 100 --patches 16,16' }), features: [0, 4, 8, 12, 16, 20, 24, 28],
    about: 'The first half of the pairs rotates with the row, the second half with the column. No pair sees a diagonal.' },
  mixed: { named: () => ({ json: { scheme: 'rope-mixed', heads: 1, dims: 64, base: 100, directions: [view.get(direction) / 360] }, words: `rope-mixed --heads 1 --dims 64 --base 100 --directions ${view.get(direction) / 360}` }), features: [0, 2, 4, 6, 16, 18, 20, 22],
    about: 'Each pair has a frequency for rows and one for columns, so its wave runs in any direction. They are trained; here a head begins at the direction of the slider, and its second half at a right angle to it.' },
  chunked: { named: () => ({ json: threeAxes, words: 'rope --dims 128 --base 10000 --sections 16,24,24' }), features: [0, 15, 16, 24, 32, 40, 48, 56],
    about: 'Pairs 0 to 15 rotate with time, 16 to 39 with height, 40 to 63 with width. Pairs slow down along the way: time has all the fast ones, and width is left with the slowest.' },
  interleaved: { named: () => ({ json: { ...threeAxes, sections: [24, 20, 20], section_order: 'interleaved' }, words: 'rope --dims 128 --base 10000 --sections 24,20,20 --section-order interleaved' }), features: [0, 1, 2, 3, 4, 5, 6, 7],
    about: 'Time, height and width take turns, so each of them has fast pairs and slow ones. Later models order their sections like this.' },
};

// Kept: asking the window for its width lays out the page.
let isWide = innerWidth > 700;
addEventListener('resize', () => { isWide = innerWidth > 700; });

// The patches of the image, two by two as one token. A press moves the cursor there.
function picture(figure: PeFigure): HTMLElement {
  const merged = 2;  // of Qwen2.5-VL
  const body = h('tbody'), said = h('p', { class: 'note patches-said', role: 'status' });
  let drawn = '', cells: HTMLElement[] = [], pressed: HTMLElement | undefined;
  const mark = (position: Map<string, Float64Array>) => {
    const at = view.get(token), first = view.get(words), across = view.get(columns) / merged, count = (view.get(rows) / merged) * across;
    const now = cells[at - first];
    if (now !== pressed) {
      pressed?.setAttribute('aria-pressed', 'false');
      now?.setAttribute('aria-pressed', 'true');
      pressed = now;
    }
    const [time, height, width] = ['time', 'height', 'width'].map((axis) => position.get(axis)?.[at]);
    write(said, time === undefined ? '' : `Token ${shown(at)}${at >= first && at < first + count ? `, in row ${Math.floor((at - first) / across)} and column ${(at - first) % across} of the image,` : ''} has time ${shown(time)}, height ${shown(height!)}, width ${shown(width!)}.${time === height && time === width ? ' All three are the same, as they always are in text: there it is plain RoPE.' : ''}`);
  };
  let positions = new Map<string, Float64Array>();
  // the cells that are there are kept, with their places in the order of the table
  const fill = () => {
    const first = view.get(words), across = view.get(columns) / merged, down = view.get(rows) / merged, key = `${first} ${across} ${down}`;
    if (key === drawn) return mark(positions);
    drawn = key;
    cells = [];
    while (body.rows.length > down) body.rows[body.rows.length - 1].remove();
    for (let y = 0; y < down; ++y) {
      const row = body.rows[y] ?? body.insertRow();
      while (row.cells.length > across) row.cells[row.cells.length - 1].remove();
      for (let x = 0; x < across; ++x) {
        const at = first + y * across + x, place = `${positions.get('height')?.[at]}, ${positions.get('width')?.[at]}`;
        const cell = (row.cells[x] ?? row.insertCell()).firstElementChild as HTMLElement | null ?? row.cells[x].appendChild(h('button', { type: 'button', class: 'cell', 'aria-pressed': 'false' }));
        cell.dataset.token = String(at);
        cell.setAttribute('aria-label', `Patch in row ${y}, column ${x}: height and width ${place}`);
        write(cell, place);
        cells.push(cell);
      }
    }
    rove(body, 'button');
    mark(positions);
  };
  body.addEventListener('click', (event) => {
    const cell = (event.target as Element).closest<HTMLElement>('button');
    if (cell && !view.locks(token.key)) view.set(token, Number(cell.dataset.token));
  });
  const table = h('table', { class: 'patches' }, h('caption', {}, 'The image: height and width of every token'), body), isSeen = watchSight(table);
  let waiting = 0;
  const fillAtRest = () => {
    waiting = view.isMoving(120) && !isSeen() ? setTimeout(fillAtRest, 120) as unknown as number : 0;
    if (waiting) table.dataset.waiting = 'yes';
    else delete table.dataset.waiting;
    if (!waiting) fill();
  };
  figure.addEventListener('drawn', () => {
    positions = new Map(figure.lines().map((line) => [line.name, line.y]));
    if (!waiting) fillAtRest();
  });
  follow(said, () => mark(positions));
  return h('div', {}, h('div', { class: 'scroll' }, table), said);
}

export const page: Page = {
  id: 'images', title: 'Images and video: a position with several axes',
  goal: 'See how the patches of a picture get rows, columns and time, and which pair rotates with which.',
  render(root) {
    let last = 104;
    const ids: PeFigure = figureOf({
      label: 'Time, height and width of every token of a prompt',
      cursor: { param: token, axis: 'x', range: () => [0, last] },
      request: () => ({ kind: 'ids', schemes: [threeAxes], spec: prompt() }),
      command: () => `posenc plot ids rope --dims 128 --base 10000 --sections 16,24,24 --spec '${prompt()}'`,
    });
    ids.addEventListener('drawn', () => { last = ids.lines()[0].y.length - 1; });
    const about = h('p', { class: 'note', role: 'status' });
    const chosen = () => ways[view.get(way)];
    const features = () => chosen().features.filter((_, index) => isWide || index % 2 === 0);  // one above another on a phone
    const grid = figureOf({
      label: 'Cosine of pairs by row and column of an image',
      cursor: { param: column, axis: 'x', range: () => [0, 15] },
      request: () => ({ kind: 'grid', schemes: [chosen().named().json], features: features() }),
      command: () => `posenc plot grid ${chosen().named().words} --features ${features().join(',')}`,
    });
    const tell = () => write(about, chosen().about);
    view.onChange(tell);
    tell();
    root.append(
      text('A sentence has one axis. A picture has two, a video three. Number its patches one after another, and the patch below is a whole row away, while the end of each row is next to the start of the following one. So vision models give each token a time, a height and a width, and let some pairs rotate with each.'),
      explore([token, words, rows, columns, frames],
        section('A prompt with an image and a video', ids, picture(ids),
          text('Four patches, two by two, make one token here, as in Qwen2.5-VL. Text after an image continues one past the image\'s largest position, so a picture uses up only as many positions as its longer side has tokens.'))),
      explore([way, controlWhile(direction, () => view.get(way) === 'mixed'), column],
        section('Which pair rotates with which axis', about, grid)));
  },
};
