// The figures of the path: one for each step, with what its failure looks like written into it.

import type { Figure, Panel } from '../core';
import { shown } from '../dom';
import type { FigureConfig } from '../figure';
import { type NumberParam, type Param, shared, view } from '../state';
import { sized } from './schemes_of_view';

const m: NumberParam = { ...shared.m, label: 'Position m', start: 5, most: 511 };
const n: NumberParam = { ...shared.n, label: 'Position n (key)', start: 2, most: 511 };
const length: NumberParam = { key: 'words', label: 'Words in the text', kind: 'whole', start: 16, least: 8, most: 512, steps: 'octaves' };
const shift: NumberParam = { key: 'k', label: 'Shift k', kind: 'whole', start: 3, least: 0, most: 64, steps: 'octaves' };
const both: NumberParam = { key: 'both', label: 'Move both by', kind: 'whole', start: 0, least: 0, most: 64, steps: 'even' };
const heads: NumberParam = { key: 'heads', label: 'Heads', kind: 'whole', start: 4, least: 1, most: 16, steps: 'even' };
const trained: NumberParam = { key: 'trained', label: 'Trained length', kind: 'whole', start: 4096, least: 256, most: 65_536, steps: 'octaves' };

// One line of codes, as high as a figure that is about nothing else, with a name, and the range of a word's own features.
function coded(figure: Figure, range: [number, number], rules: Panel['rules'], words: Panel['words'] = []): Figure {
  const panel = figure.rows[0].panels[0];
  const series = panel.series.map((one) => (one.name ? { ...one, name: 'code of each position' } : one));
  return { ...figure, height: 375, rows: [{ height: 1, panels: [{ ...panel, series, rules, words, y: { ...panel.y, least: range[0], most: range[1], ticks: [] } }] }] };
}
function counted(label: string, stepOf: () => number, annotate: FigureConfig['annotate']): FigureConfig {
  return {
    label, annotate, cursor: { param: m, axis: 'x', range: () => [0, view.get(length) - 1] },
    request: () => ({ kind: 'waves', schemes: [{ scheme: 'steps', width: 2, step: stepOf() }], features: [0], zoom: { from: 0, to: view.get(length) } }),
    command: () => `posenc plot waves steps --width 2 --step ${stepOf()} --features 0 --zoom 0:${view.get(length)}`,
  };
}
const explodes = (figure: Figure): Figure => {
  const last = view.get(length) - 1;
  return coded(figure, [-1.6 - last * 0.03, last * 1.08], [1, -1].map((at) => ({ vertical: false, at, text: '' })), [{ x: last * 0.84, y: 1 + last * 0.04, text: 'features of a word: between these lines' }]);
};
const leaks = (figure: Figure): Figure => coded(figure, [-0.05, 1.1], [{ vertical: false, at: 1, text: `the last of ${shown(view.get(length))} words` }]);

// The counter first: the smooth features beside it are the idea that follows.
const jumps = (figure: Figure): Figure => {
  const at = view.get(m), digits = [...(at ^ (at - 1)).toString(2)].filter((one) => one === '1').length;
  return { ...figure, height: 400, note: at ? `From position ${at - 1} to ${at}, ${digits === 1 ? '1 binary digit changes' : `${digits} binary digits change`}.` : 'Drag to the right.',
    rows: figure.rows.map((row, i) => ({ ...row, panels: [...row.panels].reverse().map((panel, column) => ({ ...panel, width: column ? 1.1 : 1.5, title: column ? ['The idea that follows: smooth features', ''][i] : panel.title })) })) };
};

// Four hands are enough to see it, and the score below them stays in sight.
const sinusoids = sized('sinusoidal', 16, 10_000), pairs = sized('sinusoidal', 8, 100), rope = sized('rope', 8, 100), longer = sized('rope', 128, 10_000);
const unseen = (param: NumberParam) => ({ param, axis: 'x' as const, range: (): [number, number] => [0, param.most], isUnseen: true });
const query = () => view.get(m) + view.get(both), key = () => view.get(n) + view.get(both);

export const figures: { params: Param[]; config: FigureConfig }[] = [
  { params: [m, length], config: counted('The position itself, against position', () => 1, explodes) },
  { params: [m, length], config: counted('The position divided by the length, against position', () => 1 / (view.get(length) - 1), leaks) },
  { params: [m], config: { label: 'Binary digits of position m, and smooth features next to them', annotate: jumps, cursor: unseen(m), request: () => ({ kind: 'fingerprint', schemes: [sinusoids.json], at: view.get(m) }), command: () => `posenc plot fingerprint ${sinusoids.words} --at ${view.get(m)}` } },
  { params: [m, length], config: { label: 'Waves against position', cursor: { param: m, axis: 'x', range: () => [0, view.get(length) - 1] }, request: () => ({ kind: 'waves', schemes: [sinusoids.json], zoom: { from: 0, to: view.get(length) } }), command: () => `posenc plot waves ${sinusoids.words} --zoom 0:${view.get(length)}` } },
  { params: [m, shift], config: { label: 'Pairs as clock hands, and the same hands k positions later', cursor: unseen(m), request: () => ({ kind: 'phasors', schemes: [pairs.json], at: view.get(m), shift: view.get(shift) }), command: () => `posenc plot phasors ${pairs.words} --at ${view.get(m)} --shift ${view.get(shift)}` } },
  { params: [both, m, n], config: { label: 'Query and key as clock hands', cursor: unseen(m), request: () => ({ kind: 'phasors', schemes: [rope.json], at: query(), key: key() }), command: () => `posenc plot phasors ${rope.words} --at ${query()} --key ${key()}` } },
  { params: [heads], config: { label: 'What ALiBi adds to a score, for each head', request: () => ({ kind: 'bias', schemes: [{ scheme: 'alibi', heads: view.get(heads) }], lines: true, zoom: { from: 0, to: 64 } }), command: () => `posenc plot bias alibi --heads ${view.get(heads)} --lines --zoom 0:64` } },
  { params: [trained], config: { label: 'The wavelength of each pair beside the trained length', request: () => ({ kind: 'scaling', schemes: [longer.json], trained: view.get(trained), factor: 8 }), command: () => `posenc plot scaling ${longer.words} --trained ${view.get(trained)} --factor 8` } },
];
