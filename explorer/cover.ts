// Figures without a browser, when the site is built: as SVG, and as the PNG that a preview shows. Drawn by the page's own
// draw.ts, on elements that only remember what they were told.

import { deflateSync } from 'node:zlib';
import type { Figure } from './src/core';

class Remembered {
  attributes: { [name: string]: string } = {};
  children: (Remembered | string)[] = [];
  style: { [name: string]: string } = {};
  dataset: { [name: string]: string } = {};
  pixels?: Uint8ClampedArray;
  width = 0;
  height = 0;
  constructor(readonly tag: string) {}
  setAttribute(name: string, value: string): void {
    this.attributes[name] = String(value);
    if (name.startsWith('data-')) this.dataset[name.slice(5)] = String(value);
  }
  append(...children: (Remembered | string)[]): void { this.children.push(...children); }
  getContext() {
    return { createImageData: (width: number, height: number) => ({ data: new Uint8ClampedArray(4 * width * height) }), putImageData: (image: { data: Uint8ClampedArray }) => { this.pixels = image.data; } };
  }
}
const page: any = globalThis;
page.document = { documentElement: { dataset: { theme: 'light' } }, createElement: (tag: string) => new Remembered(tag), createElementNS: (_: string, tag: string) => new Remembered(tag) };
const { drawFigure } = await import('./src/draw');

type Picture = { root: Remembered; maps: Remembered[]; width: number; height: number };
const picture = (figure: Figure, width: number): Picture => {
  const { root, canvases, scales, height } = drawFigure(figure, width, 'cover') as any;
  return { root, maps: [...canvases, ...scales], width, height };
};
const place = (map: Remembered) => ['left', 'top', 'width', 'height'].map((side) => parseFloat(map.style[side]));

// --- PNG -------------------------------------------------------------------------------------------------------------

const table = Uint32Array.from({ length: 256 }, (_, n) => { for (let k = 0; k < 8; ++k) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1; return n >>> 0; });
const crc = (bytes: Uint8Array): number => (bytes.reduce((sum, byte) => table[(sum ^ byte) & 255] ^ (sum >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;
function chunk(name: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]), ends = Buffer.alloc(8);
  ends.writeUInt32BE(data.length, 0);
  ends.writeUInt32BE(crc(body), 4);
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
}
/// Pixels as RGBA, of which the picture keeps the colours.
export function png(width: number, height: number, pixels: Uint8ClampedArray): Buffer {
  const lines = Buffer.alloc((3 * width + 1) * height), head = Buffer.alloc(13);
  for (let y = 0, to = 0; y < height; ++y) {
    lines[to++] = 0;
    for (let x = 0; x < width; ++x) for (let part = 0; part < 3; ++part) lines[to++] = pixels[4 * (y * width + x) + part];
  }
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', head), chunk('IDAT', deflateSync(lines)), chunk('IEND', new Uint8Array())]);
}

// --- SVG -------------------------------------------------------------------------------------------------------------

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
const written = (one: Remembered | string): string => typeof one === 'string' ? escaped(one)
  : `<${one.tag}${Object.entries(one.attributes).map(([name, value]) => ` ${name}="${escaped(value)}"`).join('')}>${one.children.map(written).join('')}</${one.tag}>`;

/// A figure as a file; `rules` are those of the style sheet about drawings.
export function svgOf(figure: Figure, rules: string): string {
  const { root, maps } = picture(figure, 900);
  const images = maps.map((map) => {
    const [x, y, width, height] = place(map);
    return `<image x="${x}" y="${y}" width="${width}" height="${height}" preserveAspectRatio="none" image-rendering="pixelated" href="data:image/png;base64,${png(map.width, map.height, map.pixels!).toString('base64')}"/>`;
  });
  return written(root).replace('<svg ', '<svg xmlns="http://www.w3.org/2000/svg" ').replace('>', () => `><style>${rules}</style><rect width="100%" height="100%" fill="var(--card)"/>${images.join('')}`);
}

// --- the picture of a preview: 1200 × 630, shapes alone, since a preview has its title beside it -----------------------------

const size = { width: 1200, height: 630 }, finer = 2;
/// Colours by the name of a variable of the style sheet.
export function cardOf(figure: Figure, colours: { [name: string]: string }): Buffer {
  const drawn = picture(figure, 760), scale = finer * Math.min((size.width - 80) / drawn.width, (size.height - 60) / drawn.height);
  const wide = size.width * finer, high = size.height * finer, left = (wide - scale * drawn.width) / 2, top = (high - scale * drawn.height) / 2;
  const rgb = (name: string): number[] => [1, 3, 5].map((at) => parseInt(colours[name].replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3').slice(at, at + 2), 16));
  const pixels = new Uint8ClampedArray(4 * wide * high), paper = rgb('card');
  for (let i = 0; i < wide * high; ++i) for (let part = 0; part < 3; ++part) pixels[4 * i + part] = paper[part];
  const dot = (x: number, y: number, colour: number[]) => {
    if (x < 0 || y < 0 || x >= wide || y >= high) return;
    const at = 4 * (Math.floor(y) * wide + Math.floor(x));
    pixels[at] = colour[0];
    pixels[at + 1] = colour[1];
    pixels[at + 2] = colour[2];
  };
  const toX = (x: number) => left + scale * x, toY = (y: number) => top + scale * y;
  const fill = (x: number, y: number, width: number, height: number, colour: number[]) => {
    for (let row = Math.round(toY(y)); row < toY(y + height); ++row) for (let column = Math.round(toX(x)); column < toX(x + width); ++column) dot(column, row, colour);
  };
  const line = (x1: number, y1: number, x2: number, y2: number, colour: number[], thick: number) => {
    const [ax, ay, bx, by] = [toX(x1), toY(y1), toX(x2), toY(y2)], steps = Math.max(1, Math.ceil(2 * Math.hypot(bx - ax, by - ay) / thick)), half = thick / 2;
    for (let i = 0; i <= steps; ++i) {
      const x = ax + ((bx - ax) * i) / steps, y = ay + ((by - ay) * i) / steps;
      for (let dy = -Math.ceil(half); dy <= half; ++dy) for (let dx = -Math.ceil(half); dx <= half; ++dx) if (dx * dx + dy * dy <= half * half) dot(x + dx, y + dy, colour);
    }
  };
  for (const map of drawn.maps) {
    const [x, y, width, height] = place(map);
    for (let row = Math.round(toY(y)); row < toY(y + height); ++row) {
      for (let column = Math.round(toX(x)); column < toX(x + width); ++column) {
        const down = Math.floor(((row - toY(y)) / scale / height) * map.height), across = Math.floor(((column - toX(x)) / scale / width) * map.width);
        const from = 4 * (Math.max(0, Math.min(map.height - 1, down)) * map.width + Math.max(0, Math.min(map.width - 1, across))), to = 4 * (row * wide + column);
        for (let part = 0; part < 3; ++part) pixels[to + part] = map.pixels![from + part];
      }
    }
  }
  const draw = (one: Remembered | string, look = 'c0'): void => {
    if (typeof one === 'string' || one.tag === 'text' || one.tag === 'clipPath') return;
    const { class: kind = '', ...at } = one.attributes, own = /line-(\d|grey)/.exec(kind), colour = own ? (own[1] === 'grey' ? 'grey' : `c${own[1]}`) : look, number = (name: string) => Number(at[name]);
    if (one.tag === 'rect' && /plot(?! bare)/.test(kind)) for (const [a, b, c, d] of [[0, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 1], [1, 0, 1, 1]]) line(number('x') + a * number('width'), number('y') + b * number('height'), number('x') + c * number('width'), number('y') + d * number('height'), rgb('line'), 2);
    else if (one.tag === 'rect' && kind === 'band') fill(number('x'), number('y'), number('width'), number('height'), rgb('band'));
    else if (one.tag === 'rect' && kind === '') fill(number('x'), number('y'), number('width'), number('height'), rgb(colour));
    else if (one.tag === 'line') line(number('x1'), number('y1'), number('x2'), number('y2'), rgb(kind === 'rule' ? 'soft' : 'grid'), 2);
    else if (one.tag === 'path' && !/shade/.test(kind) && !/^M\S+ \S+h22$/.test(at.d ?? '')) {
      let x = 0, y = 0;
      for (const [, step, rest] of (at.d ?? '').matchAll(/([MLHVhZ])([^MLHVhZ]*)/g)) {
        const list = rest.trim().split(/[ ,]+/).map(Number), [fromX, fromY] = [x, y];
        if (step === 'M' || step === 'L') [x, y] = list;
        else if (step === 'H') [x] = list;
        else if (step === 'V') [y] = list;
        else if (step === 'h') x += list[0];
        if (step !== 'M') line(fromX, fromY, x, y, rgb(colour), step === 'h' && !list[0] ? 9 : 5);
      }
    }
    for (const child of one.children) draw(child, colour);
  };
  draw(drawn.root);
  const small = new Uint8ClampedArray(4 * size.width * size.height);
  for (let y = 0; y < size.height; ++y) {
    for (let x = 0; x < size.width; ++x) {
      for (let part = 0; part < 3; ++part) {
        let sum = 0;
        for (let j = 0; j < finer; ++j) for (let i = 0; i < finer; ++i) sum += pixels[4 * ((finer * y + j) * wide + finer * x + i) + part];
        small[4 * (y * size.width + x) + part] = sum / finer / finer;
      }
    }
  }
  return png(size.width, size.height, small);
}
