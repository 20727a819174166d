// <pe-figure>: a figure with its cursor, keyboard, data table, exports and the command that prints the same numbers.

import { type Figure, type Series, Superseded, figure } from './core';
import { covers } from './covers';
import { announce, copyText, h, put, shown, svg, words, write } from './dom';
import { type Drawn, type Placed, drawFigure, fromX, fromY, hatchNegative, isDark, paintHeat, paintScale, toX, toY } from './draw';
import { rowsOf, savers, tableOf } from './figure_files';
import { calmly, follow } from './follow';
import { isLate, spend, withFrame } from './pace';
import { chipsAt, nearest, placeBox, placeMarks, reaches, readingAt, readoutBox } from './readout';
import { type NumberParam, held, view } from './state';

export type FigureConfig = {
  label: string;
  request: () => object;
  /// the numbers of a trained table, of which the request has the shape
  table?: () => Uint8Array | undefined;
  /// in place of the library, for numbers that come with the page; undefined: there is nothing to show
  made?: () => Figure | undefined;
  command: () => string;
  /// what the page writes into the figure, or shows larger than the library does
  annotate?: (figure: Figure) => Figure;
  /// which number of the view the cursor moves, along which axis of the first panel that has it
  cursor?: { param: NumberParam; axis: 'x' | 'y'; range: () => [number, number]; isUnseen?: boolean };
  /// how much is shown: the wheel with Ctrl (or alone, once the figure has the focus), two fingers, and + and − change it
  zoom?: NumberParam;
};

// Between the margins of A4 and Letter, in pixels of CSS.
const paperWidth = 660;
// While something is dragged: as many points and cells as a frame has time for. At rest a figure is exact.
const sketch = { points: 480, cells_across: 96, cells_down: 128, sketch: true }, roughSketch = { ...sketch, points: 160, cells_across: 64, cells_down: 64 };
const frameTime = 8, restTime = 150;

let count = 0;

// Where the machine does not keep up, the figure that is seen best follows alone, and the others follow at rest.
const leader = (): PeFigure | undefined => [...document.querySelectorAll<PeFigure>('pe-figure')].reduce<PeFigure | undefined>((best, one) => (one.seenHeight > (best?.seenHeight ?? 0) ? one : best), undefined);

export class PeFigure extends HTMLElement {
  private number = String(++count);
  /// pixels of it that are on the screen
  seenHeight = 0;
  private config!: FigureConfig;
  private made?: Figure;
  private drawn?: Drawn;
  private surface = h('div', { class: 'surface', tabindex: 0, role: 'group' });
  private note = h('p', { class: 'note' });
  private tell = calmly(this.note);
  private code = h('code');
  private marks = h('div');
  private overlay = h('div', { class: 'overlay', 'aria-hidden': 'true' }, this.marks);
  private tableHolder = h('div', { class: 'table-holder', tabindex: 0, role: 'region' });
  private behind!: HTMLElement;
  private details!: HTMLDetailsElement;
  private inCode!: HTMLDetailsElement;
  private codes = h('div');
  private coded = '';
  private isAsking = false;
  private isResting = false;
  private fingers = new Map<number, [number, number]>();
  private pinch?: { apart: number; value: number };
  private scrub?: { from: number; value: number };
  private pointer?: [number, number];
  private readout?: HTMLElement;
  private wide = 0;
  private asked = '';
  private turn = 0;
  private drawnTurn = 0;
  private cost = 0;
  private isSeen = true;
  private isOnPaper = false;
  private seen?: IntersectionObserver;
  private stop?: () => void;
  private resize?: ResizeObserver;
  ready: Promise<void> = Promise.resolve();

  setup(config: FigureConfig): this {
    this.config = config;
    return this;
  }

  connectedCallback(): void {
    const { label, cursor, zoom } = this.config;
    this.surface.setAttribute('aria-label', [label, cursor && `Arrow keys move ${cursor.param.label}`, zoom && 'Plus and minus zoom'].filter(Boolean).join('. '));
    this.tableHolder.setAttribute('aria-label', `Data table: ${label}`);
    this.details = h('details', { class: 'data', ontoggle: () => this.fillTable() }, h('summary', {}, 'Data table'), this.tableHolder);
    this.inCode = h('details', { class: 'in-code', ontoggle: () => this.showCode() }, h('summary', {}, 'The same in code'), this.codes);
    const button = (text: string, act: () => void) => h('button', { type: 'button', onclick: act }, text);
    const behind = this.behind = h('div', { class: 'behind' },
      h('div', { class: 'tools' },
        ...Object.entries(savers).map(([kind, save]) => button(kind, () => { if (this.made && this.drawn) save(this.made, this.drawn); })),
        button('Copy link', () => copyText(view.link()))),
      h('div', { class: 'command', 'aria-label': 'The same on the command line', role: 'group' },
        h('span', {}, 'The same on the command line'), this.code, button('Copy', () => copyText(this.config.command()))),
      this.inCode, this.details);
    behind.hidden = true;
    const more = h('button', { type: 'button', class: 'more', 'aria-expanded': 'false', 'aria-label': 'More: files, link, command, data', title: 'Files, link, command, data', onclick: () => {
      behind.hidden = !behind.hidden;
      more.setAttribute('aria-expanded', String(!behind.hidden));
      this.showCommand();
    } }, '⋯');
    // until it is computed: the same figure, drawn when the site was built
    if (this.config.command() === `posenc plot ${covers[view.page]}` && !document.getElementById('core.wasm')) this.surface.append(h('img', { class: 'cover', src: `${view.page}.svg`, alt: '' }));
    this.replaceChildren(this.surface, h('div', { class: 'figure-foot' }, this.note, more), behind);
    // a finger scrolls the page over a map until the map is tapped
    this.surface.classList.toggle('vertical', cursor?.axis === 'y');
    this.surface.addEventListener('keydown', (event) => this.onKey(event));
    this.surface.addEventListener('pointerdown', (event) => this.onPointer(event));
    this.surface.addEventListener('pointermove', (event) => { if (event.buttons) this.onPointer(event); this.read(event); });
    this.surface.addEventListener('pointerleave', () => this.read());
    this.surface.addEventListener('pointerup', (event) => this.onPinch(event));
    this.surface.addEventListener('pointercancel', (event) => this.onPinch(event));
    this.surface.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    const ends = [view.onChange(() => this.request()), follow(behind, () => this.showCommand(), true)];
    this.stop = () => ends.forEach((end) => end());
    let across = 0;
    this.resize = new ResizeObserver((changes) => {
      const now = changes.at(-1)!.contentRect.width;
      if (now === across) return;  // it became higher, as a drawing does that has more rows
      across = now;
      this.wide = 0;
      if (!this.isOnPaper) this.draw();
    });
    this.resize.observe(this);
    this.seen = new IntersectionObserver((changes) => {
      this.isSeen = changes.at(-1)!.isIntersecting;
      this.seenHeight = changes.at(-1)!.intersectionRect.height;
    }, { threshold: [0, 0.25, 0.5, 0.75, 1] });
    this.seen.observe(this);
    addEventListener('posenc-theme', this.repaint);
    addEventListener('beforeprint', this.toPaper);
    addEventListener('afterprint', this.fromPaper);
    this.ready = this.update();
  }

  disconnectedCallback(): void {
    this.stop?.();
    this.resize?.disconnect();
    this.seen?.disconnect();
    removeEventListener('posenc-theme', this.repaint);
    removeEventListener('beforeprint', this.toPaper);
    removeEventListener('afterprint', this.fromPaper);
  }

  /// At most one computation per frame, with the newest values. What is not on the screen waits until nothing moves.
  request(): void {
    if (this.isAsking || this.isResting) return;
    this.dataset.waiting = 'yes';
    if (!this.isSeen && this.made && view.isMoving(restTime)) {
      this.isResting = true;
      void view.rest(restTime).then(() => {
        this.isResting = false;
        this.ready = this.update();
      });
      return;
    }
    this.isAsking = true;
    withFrame(this.turnCame);
  }
  private turnCame = (): void => {
    this.isAsking = false;
    this.ready = this.update();
  };

  private async update(): Promise<void> {
    if (!this.isConnected) return;
    const mine = ++this.turn;
    if (!view.isMoving(restTime) || !this.behind.hidden || !this.code.firstChild) this.showCommand();
    try {
      if (!await this.compute(mine)) return;
      this.tell(this.made?.note ?? '');
      this.dispatchEvent(new Event('drawn'));
    } catch (error) {
      if (error instanceof Superseded) this.cost = Math.max(this.cost, restTime);  // it took too long: the next is coarse
      if (error instanceof Superseded || mine !== this.turn) return;
      this.tell((error as Error).message, true);
    }
    if (mine === this.turn && !this.isAsking && !this.isResting) delete this.dataset.waiting;
  }

  private showCommand(): void {
    const command = this.config.command();
    // behind its button it is a text that changes with every step of a slider; words are elements once somebody looks
    if (this.behind.hidden && !this.isOnPaper) {
      write(this.code, command);
      return;
    }
    this.code.replaceChildren(...words(command));
    // a long one scrolls, and keys must reach what scrolls
    const isLong = command.length > 400;
    this.code.classList.toggle('long', isLong);
    if (isLong) this.code.tabIndex = 0;
    else this.code.removeAttribute('tabindex');
  }

  // numpy, torch and C++, once somebody asks for them.
  private async showCode(): Promise<void> {
    const asked = JSON.stringify(this.config.request());
    if (!this.inCode.open || asked === this.coded) return;
    this.coded = asked;
    const { codeOf } = await import('./figure_code'), list = this.config.made ? [] : codeOf(JSON.parse(asked));
    this.codes.replaceChildren(...list.flatMap(({ language, text }) => [
      h('div', { class: 'code-head' }, h('strong', {}, language), h('button', { type: 'button', onclick: () => copyText(text) }, 'Copy')), h('pre', { tabindex: 0 }, h('code', {}, text))]));
    if (!list.length) this.codes.replaceChildren(h('p', { class: 'note' }, 'These numbers are no figure of the library: the command above makes them.'));
  }

  // Coarse while something moves, exact at rest. What is not on the screen, and what takes longer than a frame, waits.
  private async compute(mine: number): Promise<boolean> {
    const request = this.config.request(), key = JSON.stringify(request);
    if (key === this.asked) {
      this.drawnTurn = mine;  // what an older question brings is not drawn over it
      this.drawCursor();
      return true;
    }
    if (this.config.made) {
      this.take(this.config.made(), mine);
    } else {
      const follows = this.isSeen && (!isLate() || leader() === this);
      if (view.isMoving(restTime) && this.made && (this.cost > frameTime || !follows)) {
        if (follows) this.take(await figure({ ...request, ...(isLate() ? roughSketch : sketch) }, { owner: this }, this.config.table?.()), mine);
        await view.rest(restTime);
        if (mine !== this.turn) return false;
      }
      const exact = await figure(request, { owner: this, isPatient: true }, this.config.table?.()), began = performance.now();
      this.take(exact, mine);
      this.cost = exact.took + performance.now() - began;
    }
    if (mine !== this.turn) return true;
    this.asked = key;
    if (this.details.open) this.fillTable();
    this.showCode();
    return true;
  }

  // An answer that a newer question follows is drawn all the same, unless a newer one is drawn already.
  private take(made: Figure | undefined, turn: number): void {
    if (turn < this.drawnTurn || !this.isConnected) return;
    this.drawnTurn = turn;
    this.asked = '';
    this.made = made && (this.config.annotate?.(made) ?? made);
    if (made) spend(() => this.draw());
    else this.surface.replaceChildren();
  }

  private draw(most = Infinity): void {
    this.wide ||= Math.floor(this.surface.clientWidth);  // asking for it again makes the browser lay out the page again
    const width = Math.min(most, this.wide);
    if (!this.made || width < 50) return;
    const before = this.drawn, isThere = before?.root.isConnected;
    const { root, canvases, scales, height } = this.drawn = drawFigure(this.made, width, this.number, isThere ? before : undefined);
    if (isThere && before!.canvases.length === canvases.length && before!.scales.length === scales.length) {
      for (const one of this.surface.querySelectorAll('.hatch')) one.remove();
    } else {
      this.surface.replaceChildren(...canvases, ...scales, root, this.overlay);
    }
    if (before?.height !== height || !this.surface.style.height) this.surface.style.height = `${height}px`;
    this.surface.classList.toggle('tall', height > 700);  // smaller on paper, so that it fits below a text
    this.drawCursor();
  }

  private drawCursor(): void {
    const { cursor } = this.config;
    this.drawOverlay();
    if (!cursor || cursor.isUnseen || !this.drawn) return;
    const value = view.get(cursor.param), group = this.drawn.root.querySelector('.cursors')!;
    let count = 0;
    // lines that are there are moved
    const line = (look: string, ends: { [name: string]: string | number }) => put(group.children[count++] ?? group.appendChild(svg('line')), { class: look, ...ends });
    for (const place of this.drawn.placed) {
      const axis = cursor.axis === 'x' ? place.panel.x : place.panel.y;
      if (!place.panel.series.length && !place.panel.heat) continue;
      if (value < Math.min(axis.least, axis.most) || value > Math.max(axis.least, axis.most)) continue;
      const at = (cursor.axis === 'x' ? toX(place, value) : toY(place, value)).toFixed(1);
      const ends = cursor.axis === 'x' ? { x1: at, x2: at, y1: place.top, y2: place.top + place.height }
                                       : { x1: place.left, x2: place.left + place.width, y1: at, y2: at };
      if (place.panel.heat) line('cursor halo', ends);
      line('cursor', ends);
    }
    while (group.children.length > count) group.lastElementChild!.remove();
  }

  // The numbers at the cursor, and those under a pointer that is over the figure.
  private drawOverlay(): void {
    const { cursor } = this.config;
    if (!this.drawn) return;
    const chips = cursor && !cursor.isUnseen && cursor.axis === 'x' ? chipsAt(this.drawn.placed, view.get(cursor.param), this.drawn.width) : [];
    const reading = this.pointer && readingAt(this.drawn.placed, ...this.pointer), box = reading && readoutBox(reading);
    placeMarks(this.marks, chips);
    this.readout?.remove();
    this.readout = box || undefined;
    if (!box) return;
    this.overlay.append(box);
    placeBox(box, ...this.pointer!, this.drawn.width, this.drawn.height);
  }
  private read(event?: PointerEvent): void {
    const box = this.surface.getBoundingClientRect();
    this.pointer = event && [event.clientX - box.left, event.clientY - box.top];
    this.drawOverlay();
  }

  private say(): void {
    const { cursor } = this.config;
    if (!cursor || !this.drawn) return;
    const value = view.get(cursor.param), parts = [`${cursor.param.key} = ${shown(value)}`];
    // where the cursor is no place on an axis, there is no value beside it
    for (const one of cursor.isUnseen ? [] : this.valuesAt(value).slice(0, 4)) parts.push(`${one.name || 'value'} ${shown(one.y)}`);
    announce(parts.join(', '));
  }

  /// The lines that are drawn now.
  lines(): Series[] {
    return (this.made?.rows ?? []).flatMap((row) => row.panels).flatMap((panel) => panel.series);
  }
  /// The value at a place on the axis of each line that reaches it.
  valuesAt(value: number): { name: string; y: number }[] {
    return this.lines().filter((series) => reaches(series.x, value))
      .map((series) => ({ name: series.name, y: series.y[nearest(series.x, value)] }));
  }

  private move(value: number): void {
    const { cursor } = this.config;
    if (!cursor || view.locks(cursor.param.key)) return;
    const [least, most] = cursor.range();
    view.set(cursor.param, held(cursor.param, Math.min(most, Math.max(least, value))));
    this.say();
  }

  private zoomTo(value: number): void {
    const { zoom } = this.config;
    if (!zoom || view.locks(zoom.key)) return;
    view.set(zoom, held(zoom, value));
    announce(`${zoom.label}: ${shown(view.get(zoom))}`);
  }

  private onWheel(event: WheelEvent): void {
    const { zoom } = this.config;
    // The page scrolls under a pointer that only passes by.
    if (!zoom || !(event.ctrlKey || this.surface === document.activeElement)) return;
    event.preventDefault();
    const notch = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 3 : event.ctrlKey && Math.abs(event.deltaY) < 50 ? 12 : 120;
    this.zoomTo(view.get(zoom) * 2 ** (event.deltaY / notch / 2));
  }

  // Two fingers: what was between them stays between them.
  private onPinch(event: PointerEvent): boolean {
    const { zoom } = this.config;
    if (!zoom || event.pointerType !== 'touch') return false;
    if (event.type === 'pointerup' || event.type === 'pointercancel') {
      this.fingers.delete(event.pointerId);
      this.pinch = undefined;
      return false;
    }
    if (event.type === 'pointerdown' || this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, [event.clientX, event.clientY]);
    if (this.fingers.size !== 2) return false;
    const [[ax, ay], [bx, by]] = [...this.fingers.values()], apart = Math.max(20, Math.hypot(ax - bx, ay - by));
    this.pinch ??= { apart, value: view.get(zoom) };
    this.zoomTo(this.pinch.value * this.pinch.apart / apart);
    return true;
  }

  private onKey(event: KeyboardEvent): void {
    const { cursor, zoom } = this.config;
    if (zoom && ['+', '=', '-'].includes(event.key) && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.zoomTo(view.get(zoom) * (event.key === '-' ? 2 : 0.5));
      return;
    }
    if (!cursor) return;
    const now = view.get(cursor.param), step = event.shiftKey ? 10 : 1, [least, most] = cursor.range();
    const to: { [key: string]: number } = {
      ArrowRight: now + step, ArrowLeft: now - step, ArrowDown: now + (cursor.axis === 'y' ? step : -step),
      ArrowUp: now - (cursor.axis === 'y' ? step : -step),
      PageUp: Math.max(1, now) * 2, PageDown: Math.floor(now / 2), Home: least, End: most,
    };
    if (!(event.key in to)) return;
    event.preventDefault();
    this.move(to[event.key]);
  }

  private onPointer(event: PointerEvent): void {
    if (this.onPinch(event)) return;
    const { cursor } = this.config;
    if (!cursor || !this.drawn) return;
    if (cursor.isUnseen) return this.onScrub(event);
    const box = this.surface.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    const place = this.drawn.placed.find((one) =>
      px >= one.left - 8 && px <= one.left + one.width + 8 && py >= one.top - 8 && py <= one.top + one.height + 8);
    if (!place) return;
    if (event.type === 'pointerdown') this.surface.setPointerCapture(event.pointerId);
    if (cursor.axis === 'x') this.move(Math.round(fromX(place, px)));
    else this.move(Math.round(fromY(place, py)));
  }

  // Where the number is no place on an axis, dragging across counts it up and down.
  private onScrub(event: PointerEvent): void {
    const pixelsPerStep = 6;
    if (event.type === 'pointerdown') {
      this.scrub = { from: event.clientX, value: view.get(this.config.cursor!.param) };
      this.surface.setPointerCapture(event.pointerId);
    } else if (this.scrub) {
      this.move(this.scrub.value + Math.round((event.clientX - this.scrub.from) / pixelsPerStep));
    }
  }

  // Lines and text have colours of the style sheet; maps are painted.
  private repaint = (): void => this.paint(isDark());
  private paint(dark: boolean): void {
    for (const [canvas, place] of this.maps()) paintHeat(canvas, place, dark);
    for (const canvas of this.drawn?.scales ?? []) paintScale(canvas, dark);
  }
  private maps(): [HTMLCanvasElement, Placed][] {
    const places = this.drawn?.placed.filter((one) => one.panel.heat) ?? [];
    return places.map((place, index) => [this.drawn!.canvases[index], place]);
  }

  // Paper is light, and on it the sign must not depend on colour alone.
  private toPaper = (): void => {
    this.isOnPaper = true;
    this.showCommand();
    this.draw(paperWidth);
    this.paint(false);
    for (const [canvas, place] of this.maps()) canvas.after(hatchNegative(canvas, place));
  };
  private fromPaper = (): void => {
    this.isOnPaper = false;
    this.draw();
  };

  private fillTable(): void {
    if (!this.details.open || !this.made) return;
    this.tableHolder.replaceChildren(...tableOf(this.made));
  }

  /// For tests: what the library is asked.
  question(): object {
    return this.config.request();
  }
  /// For tests: the numbers that are drawn now.
  numbers(): (number | string)[][] {
    return this.made ? rowsOf(this.made) : [];
  }
}
customElements.define('pe-figure', PeFigure);

export const figureOf = (config: FigureConfig): PeFigure => (document.createElement('pe-figure') as PeFigure).setup(config);
