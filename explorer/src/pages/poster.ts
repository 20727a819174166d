// A model as a picture: a dial for each pair of its rotation, filled as far as it turns in training.

import { copyText, h, shown, svg } from '../dom';
import { pictureSavers } from '../figure_files';
import { turnWords } from '../scheme_words';
import { view } from '../state';

const cell = 40, radius = 16, margin = 20;

// Lines of at most so many characters.
function wrapped(text: string, most: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    if (`${lines.at(-1)} ${word}`.length > most) lines.push(word);
    else lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim();
  }
  return lines;
}

// The part of a circle that is `share` of a turn, clockwise from the top.
function sector(x: number, y: number, share: number): SVGElement {
  if (share >= 1) return svg('circle', { class: 'turned', cx: x, cy: y, r: radius });
  const angle = 2 * Math.PI * share, to = [x + radius * Math.sin(angle), y - radius * Math.cos(angle)].map((one) => one.toFixed(2));
  return svg('path', { class: 'cut', d: `M${x} ${y}V${y - radius}A${radius} ${radius} 0 ${share > 0.5 ? 1 : 0} 1 ${to.join(' ')}Z` });
}

/// Nothing for a model that rotates nothing, or whose trained length is not known.
export function poster(name: string, json: any): HTMLElement | undefined {
  // of several rotations, that with the slowest pair
  const rotating = (json.layers as any[]).map((group) => ((group.frequencies ?? []) as number[]).filter((one) => one > 0)).filter((one) => one.length);
  rotating.sort((a, b) => Math.min(...a) - Math.min(...b));
  const frequencies = rotating[0], trained: number | null = json.trained_length;
  if (!frequencies || !trained) return undefined;
  const across = Math.min(frequencies.length, innerWidth < 700 ? 8 : 16), width = 2 * margin + across * cell;
  const lines = wrapped(`${frequencies.length} clocks, from fast to slow, each filled as far as it turns within ${shown(trained)} positions. ${turnWords(frequencies, trained)}`, Math.floor((width - 2 * margin) / 6.7));
  const top = 44 + 18 * lines.length, height = top + Math.ceil(frequencies.length / across) * cell + 30;
  const dials = frequencies.flatMap((frequency, index) => {
    const x = margin + (index % across + 0.5) * cell, y = top + (Math.floor(index / across) + 0.5) * cell;
    return [sector(x, y, (trained * frequency) / (2 * Math.PI)), svg('circle', { class: 'dial', cx: x, cy: y, r: radius })];
  });
  const root = svg('svg', { class: 'poster', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `${name}: ${lines.join(' ')}` },
    svg('text', { class: 'poster-title', x: margin, y: 30 }, name), ...lines.map((line, index) => svg('text', { x: margin, y: 54 + 18 * index }, line)), ...dials,
    svg('text', { class: 'poster-foot', x: width - margin, y: height - 10, 'text-anchor': 'end' }, 'posenc'));
  const drawn = { root, canvases: [], scales: [], width, height };
  return h('figure', { class: 'poster-box' }, root as unknown as HTMLElement, h('div', { class: 'tools' },
    ...Object.entries(pictureSavers).map(([kind, save]) => h('button', { type: 'button', onclick: () => save({ kind: 'poster' }, drawn) }, kind)),
    h('button', { type: 'button', onclick: () => copyText(view.link()) }, 'Copy link')));
}
