// A figure as a file: PNG, SVG, CSV, NPY.

import type { Figure } from './core';
import { download, h, npyOf, shown, svg } from './dom';
import type { Drawn } from './draw';

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

/// The first of them as a table of the page.
export function tableOf(made: Figure): HTMLElement[] {
  const most = 400, [head, ...body] = rowsOf(made, most + 1);
  const table = h('table', {}, h('thead', {}, h('tr', {}, ...head.map((cell) => h('th', { scope: 'col' }, String(cell))))),
    h('tbody', {}, ...body.map((row) => h('tr', {}, ...row.map((cell) => h('td', {}, typeof cell === 'number' ? shown(cell, 8) : cell))))));
  return body.length >= most - 1 ? [table, h('p', { class: 'note' }, `The first ${most} numbers; CSV has all.`)] : [table];
}

type Picture = Pick<Drawn, 'root' | 'canvases' | 'scales' | 'width' | 'height'>;

function standalone(drawn: Picture): string {
  const copy = drawn.root.cloneNode(true) as SVGElement;
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const originals = drawn.root.querySelectorAll('*');
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
  const images = [...drawn.canvases, ...drawn.scales].map((canvas) => svg('image', {
    href: canvas.toDataURL(), x: parseFloat(canvas.style.left), y: parseFloat(canvas.style.top),
    width: parseFloat(canvas.style.width), height: parseFloat(canvas.style.height), preserveAspectRatio: 'none',
    'image-rendering': 'pixelated',
  }));
  copy.prepend(back, ...images);
  return new XMLSerializer().serializeToString(copy);
}

const named = (made: { kind: string }, extension: string): string => `posenc-${made.kind}.${extension}`;

export const pictureSavers: { [kind: string]: (made: { kind: string }, drawn: Picture) => void } = {
  PNG(made, drawn) {
    const picture = new Image();
    picture.onload = () => {
      const canvas = h('canvas', { width: drawn.width * 2, height: drawn.height * 2 });
      canvas.getContext('2d')!.drawImage(picture, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => blob && download(named(made, 'png'), blob));
    };
    picture.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(standalone(drawn));
  },
  SVG: (made, drawn) => download(named(made, 'svg'), new Blob([standalone(drawn)], { type: 'image/svg+xml' })),
};
export const savers: { [kind: string]: (made: Figure, drawn: Drawn) => void } = {
  ...pictureSavers,
  CSV: (made) => download(named(made, 'csv'), new Blob([rowsOf(made).map((row) => row.map(csvCell).join(',')).join('\r\n') + '\r\n'], { type: 'text/csv' })),
  /// A map as [rows, columns]; lines as [points, 2], one below the other.
  NPY(made) {
    const heat = made.rows.flatMap((row) => row.panels).find((panel) => panel.heat)?.heat;
    const numbers = heat ? heat.values : Float64Array.from(rowsOf(made).slice(1).flatMap((row) => row.slice(2) as number[]));
    const shape = heat ? [heat.rows.length, heat.columns.length] : [numbers.length / 2, 2];
    download(named(made, 'npy'), new Blob([npyOf(shape, numbers)], { type: 'application/octet-stream' }));
  },
};
