// <pe-figure>: a figure with its cursor, keyboard, data table, exports and the command that prints the same numbers.

import { figure, type Figure } from './core';
import { announce, copyText, download, h, npyOf, shown, svg, words } from './dom';
import { drawFigure, fromX, hatchNegative, isDark, paintHeat, toX, toY, type Drawn, type Placed } from './draw';
import { type NumberParam, held, view } from './state';

export type FigureConfig = {
  label: string;
  request: () => object;
  /// in place of the library, for numbers that come with the page; undefined: there is nothing to show
  made?: () => Figure | undefined;
  command: () => string;
  /// which number of the view the cursor moves, along which axis of the first panel that has it
  cursor?: { param: NumberParam; axis: 'x' | 'y'; range: () => [number, number]; isUnseen?: boolean };
  /// how much is shown: the wheel with Ctrl (or alone, once the figure has the focus), two fingers, and + and − change it
  zoom?: NumberParam;
};

// Between the margins of A4 and Letter, in pixels of CSS.
const paperWidth = 660;
const csvCell = (value: number | string): string => (typeof value === 'number' ? String(value) : `"${value.replaceAll('"', '""')}"`);

/// Every number of a figure: [panel, series, x, y] for lines, [panel, row, column, value] for maps.
export function rowsOf(made: Figure, most = Infinity): (number | string)[][] {
  const rows: (number | string)[][] = [['panel', 'series', 'x', 'y']];
  const panels = made.rows.flatMap((row) => row.panels);
  panels.forEach((panel, index) => {
    const name = panel.title || `panel ${index + 1}`;
    for (const series of panel.series) {
      for (let i = 0; i < series.x.length && rows.length < most; ++i) rows.push([name, series.name, series.x[i], series.y[i]]);
    }
    for (const one of panel.envelopes) {
      for (let i = 0; i < one.x.length && rows.length < most; ++i) {
        rows.push([name, `${one.name} lowest`, one.x[i], one.low[i]], [name, `${one.name} highest`, one.x[i], one.high[i]]);
      }
    }
    const { heat } = panel;
    if (heat) {
      heat.rows.forEach((at, row) => heat.columns.forEach((column, k) => {
        if (rows.length < most) rows.push([name, `${panel.y.label} ${at}`, column, heat.values[row * heat.columns.length + k]]);
      }));
    }
  });
  return rows;
}

export class PeFigure extends HTMLElement {
  private config!: FigureConfig;
  private made?: Figure;
  private drawn?: Drawn;
  private surface = h('div', { class: 'surface', tabindex: 0, role: 'group' });
  private note = h('p', { class: 'note' });
  private code = h('code');
  private tableHolder = h('div', { class: 'table-holder', tabindex: 0, role: 'region', 'aria-label': 'data table' });
  private details!: HTMLDetailsElement;
  private frame = 0;
  private fingers = new Map<number, [number, number]>();
  private pinch?: { apart: number; value: number };
  private scrub?: { from: number; value: number };
  private asked = '';
  private isOnPaper = false;
  private stop?: () => void;
  private resize?: ResizeObserver;
  ready: Promise<void> = Promise.resolve();
  /// For the tests: time of the last draw.
  scriptTime = 0;

  setup(config: FigureConfig): this {
    this.config = config;
    return this;
  }

  connectedCallback(): void {
    const { label, cursor, zoom } = this.config;
    this.surface.setAttribute('aria-label', [label, cursor && `Arrow keys move ${cursor.param.label}`, zoom && 'Plus and minus zoom'].filter(Boolean).join('. '));
    this.details = h('details', { class: 'data', ontoggle: () => this.fillTable() }, h('summary', {}, 'Data table'), this.tableHolder);
    const button = (text: string, act: () => void) => h('button', { type: 'button', onclick: act }, text);
    this.replaceChildren(
      this.surface, this.note,
      h('div', { class: 'tools' },
        button('PNG', () => this.savePng()), button('SVG', () => this.saveSvg()), button('CSV', () => this.saveCsv()), button('NPY', () => this.saveNpy()),
        button('Copy link', () => copyText(view.link()))),
      h('div', { class: 'command', 'aria-label': 'The same on the command line', role: 'group' },
        h('span', {}, 'The same on the command line'), this.code, button('Copy', () => copyText(this.config.command()))),
      this.details);
    // a finger scrolls the page over a map until the map is tapped
    this.surface.classList.toggle('vertical', cursor?.axis === 'y');
    this.surface.addEventListener('keydown', (event) => this.onKey(event));
    this.surface.addEventListener('pointerdown', (event) => this.onPointer(event));
    this.surface.addEventListener('pointermove', (event) => event.buttons && this.onPointer(event));
    this.surface.addEventListener('pointerup', (event) => this.onPinch(event));
    this.surface.addEventListener('pointercancel', (event) => this.onPinch(event));
    this.surface.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    this.stop = view.onChange(() => this.request());
    this.resize = new ResizeObserver(() => { if (!this.isOnPaper) this.draw(); });
    this.resize.observe(this);
    addEventListener('posenc-theme', this.repaint);
    addEventListener('beforeprint', this.toPaper);
    addEventListener('afterprint', this.fromPaper);
    this.ready = this.update();
  }

  disconnectedCallback(): void {
    this.stop?.();
    this.resize?.disconnect();
    removeEventListener('posenc-theme', this.repaint);
    removeEventListener('beforeprint', this.toPaper);
    removeEventListener('afterprint', this.fromPaper);
  }

  /// At most one computation per frame, with the newest values.
  request(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.ready = this.update();
    });
  }

  private async update(): Promise<void> {
    if (!this.isConnected) return;
    const began = performance.now();
    const request = this.config.request(), key = JSON.stringify(request);
    this.code.replaceChildren(...words(this.config.command()));
    // a long one scrolls, and keys must reach what scrolls
    const isLong = this.config.command().length > 400;
    this.code.classList.toggle('long', isLong);
    if (isLong) this.code.tabIndex = 0;
    else this.code.removeAttribute('tabindex');
    try {
      if (key !== this.asked) {
        this.made = this.config.made ? this.config.made() : await figure(request);
        this.asked = key;
        if (this.made) this.draw();
        else this.surface.replaceChildren();
        if (this.details.open) this.fillTable();
      } else {
        this.drawCursor();
      }
    } catch (error) {
      this.note.textContent = (error as Error).message;
      this.note.classList.add('refused');
      return;
    }
    this.note.classList.remove('refused');
    this.note.textContent = this.made?.note ?? '';
    this.scriptTime = performance.now() - began;
  }

  private draw(most = Infinity): void {
    const width = Math.min(most, Math.floor(this.surface.clientWidth));
    if (!this.made || width < 50) return;
    this.drawn = drawFigure(this.made, width);
    const { root, canvases, height } = this.drawn;
    root.setAttribute('aria-label', [this.made.title, this.made.subtitle].filter(Boolean).join('. '));
    this.surface.replaceChildren(...canvases, root);
    this.surface.style.height = `${height}px`;
    this.surface.classList.toggle('tall', height > 700);  // smaller on paper, so that it fits below a text
    this.drawCursor();
  }

  private drawCursor(): void {
    const { cursor } = this.config;
    if (!cursor || cursor.isUnseen || !this.drawn) return;
    this.drawn.root.querySelectorAll('.cursor').forEach((line) => line.remove());
    const value = view.get(cursor.param);
    for (const place of this.drawn.placed) {
      const axis = cursor.axis === 'x' ? place.panel.x : place.panel.y;
      if (!place.panel.series.length && !place.panel.heat) continue;
      if (value < Math.min(axis.least, axis.most) || value > Math.max(axis.least, axis.most)) continue;
      const at = cursor.axis === 'x' ? toX(place, value) : toY(place, value);
      const ends = cursor.axis === 'x' ? { x1: at, x2: at, y1: place.top, y2: place.top + place.height }
                                       : { x1: place.left, x2: place.left + place.width, y1: at, y2: at };
      if (place.panel.heat) this.drawn.root.append(svg('line', { class: 'cursor halo', ...ends }));
      this.drawn.root.append(svg('line', { class: 'cursor', ...ends }));
    }
  }

  private say(): void {
    const { cursor } = this.config;
    if (!cursor || !this.drawn) return;
    const value = view.get(cursor.param), parts = [`${cursor.param.key} = ${shown(value)}`];
    // where the cursor is no place on an axis, there is no value beside it
    for (const one of cursor.isUnseen ? [] : this.valuesAt(value).slice(0, 4)) parts.push(`${one.name || 'value'} ${shown(one.y)}`);
    announce(parts.join(', '));
  }

  /// The value of each line closest to a place on the axis.
  valuesAt(value: number): { name: string; y: number }[] {
    return (this.made?.rows ?? []).flatMap((row) => row.panels).flatMap((panel) => panel.series).filter((series) => series.x.length).map((series) => {
      let best = 0;
      series.x.forEach((x, i) => {
        if (Math.abs(x - value) < Math.abs(series.x[best] - value)) best = i;
      });
      return { name: series.name, y: series.y[best] };
    });
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
    else {
      const { y } = place.panel, at = (py - place.top) / place.height;
      this.move(Math.round(y.reversed ? y.least + at * (y.most - y.least) : y.most - at * (y.most - y.least)));
    }
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
    for (const [canvas, place] of this.maps()) paintHeat(canvas, place.panel.heat!, toY(place, place.panel.heat!.rows[0]) > toY(place, place.panel.heat!.rows.at(-1)!), dark);
  }
  private maps(): [HTMLCanvasElement, Placed][] {
    const places = this.drawn?.placed.filter((one) => one.panel.heat) ?? [];
    return places.map((place, index) => [this.drawn!.canvases[index], place]);
  }

  // Paper is light, and on it the sign must not depend on colour alone.
  private toPaper = (): void => {
    this.isOnPaper = true;
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
    const most = 400, rows = rowsOf(this.made, most + 1);
    const [head, ...body] = rows;
    this.tableHolder.replaceChildren(h('table', {},
      h('thead', {}, h('tr', {}, ...head.map((cell) => h('th', { scope: 'col' }, String(cell))))),
      h('tbody', {}, ...body.map((row) => h('tr', {}, ...row.map((cell) => h('td', {}, typeof cell === 'number' ? shown(cell, 8) : cell)))))),
      body.length >= most - 1 ? h('p', { class: 'note' }, `The first ${most} numbers; CSV has all.`) : null as unknown as Node);
  }

  // --- exports ---------------------------------------------------------------------------------------------

  private standalone(): string {
    const copy = this.drawn!.root.cloneNode(true) as SVGElement;
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    const originals = this.drawn!.root.querySelectorAll('*');
    // A file has no style sheet: what the page shows is written into it.
    copy.querySelectorAll('*').forEach((element, index) => {
      const look = getComputedStyle(originals[index]);
      for (const name of ['fill', 'stroke', 'stroke-width', 'font-size', 'font-family', 'font-weight', 'opacity']) {
        const value = look.getPropertyValue(name);
        if (value) element.setAttribute(name, value);
      }
      element.removeAttribute('class');
    });
    const paper = getComputedStyle(document.body).backgroundColor;
    const back = svg('rect', { width: '100%', height: '100%', fill: paper });
    const images = this.drawn!.canvases.map((canvas) => svg('image', {
      href: canvas.toDataURL(), x: parseFloat(canvas.style.left), y: parseFloat(canvas.style.top),
      width: parseFloat(canvas.style.width), height: parseFloat(canvas.style.height), preserveAspectRatio: 'none',
      'image-rendering': 'pixelated',
    }));
    copy.prepend(back, ...images);
    return new XMLSerializer().serializeToString(copy);
  }

  private name(extension: string): string {
    return `posenc-${this.made!.kind}.${extension}`;
  }
  saveSvg(): void {
    download(this.name('svg'), new Blob([this.standalone()], { type: 'image/svg+xml' }));
  }
  saveCsv(): void {
    download(this.name('csv'), new Blob([rowsOf(this.made!).map((row) => row.map(csvCell).join(',')).join('\r\n') + '\r\n'], { type: 'text/csv' }));
  }
  /// A map as [rows, columns]; lines as [points, 2], one below the other.
  saveNpy(): void {
    const heat = this.made!.rows.flatMap((row) => row.panels).find((panel) => panel.heat)?.heat;
    const numbers = heat ? heat.values : Float64Array.from(rowsOf(this.made!).slice(1).flatMap((row) => row.slice(2) as number[]));
    const shape = heat ? [heat.rows.length, heat.columns.length] : [numbers.length / 2, 2];
    download(this.name('npy'), new Blob([npyOf(shape, numbers)], { type: 'application/octet-stream' }));
  }
  savePng(): void {
    const picture = new Image();
    picture.onload = () => {
      const canvas = h('canvas', { width: this.drawn!.width * 2, height: this.drawn!.height * 2 });
      canvas.getContext('2d')!.drawImage(picture, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => blob && download(this.name('png'), blob));
    };
    picture.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(this.standalone());
  }

  /// For tests: the numbers that are drawn now.
  numbers(): (number | string)[][] {
    return this.made ? rowsOf(this.made) : [];
  }
}
customElements.define('pe-figure', PeFigure);

export const figureOf = (config: FigureConfig): PeFigure => (document.createElement('pe-figure') as PeFigure).setup(config);
