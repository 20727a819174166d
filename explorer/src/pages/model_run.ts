// A model of the lab on a text: its weights, loaded when they are asked for, and what it does with the text.

import { type Axis, type Figure, type Panel, type Turn, ask, doubles, fileBytes } from '../core';
import { type LabModel, models } from 'posenc-lab-models';

export const titles: { [scheme: string]: string } = { rope: 'RoPE', alibi: 'ALiBi', sinusoidal: 'Sinusoids', learned: 'A learned table', none: 'No position' };
const styles = ['alibi', 'rope', 'sinusoidal', 'none', 'learned'];
const styleOf = (scheme: string): number => styles.indexOf(scheme);
export const modelOf = (scheme: string): LabModel => models.find((one) => one.scheme === scheme)!;

const loaded = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
/// The weights of a model. A failed download is tried again when it is asked for again.
export function weightsOf(scheme: string): Promise<Uint8Array<ArrayBuffer>> {
  let bytes = loaded.get(scheme);
  if (!bytes) {
    loaded.set(scheme, bytes = fileBytes(`model-${scheme}.safetensors`));
    bytes.catch(() => loaded.delete(scheme));
  }
  return bytes;
}

export type Run = { scheme: string; length: number; replaced: number; each: number; losses: Float64Array; map: Float64Array; next: { byte: number; chance: number }[] };

export async function runModel(scheme: string, text: string, layer: number, head: number, cells: number, turn: Turn): Promise<Run> {
  const { json, bytes } = await ask({ call: 'model-run', text, layer, head, cells }, await weightsOf(scheme), turn);
  const numbers = doubles(bytes), losses = numbers.subarray(0, json.length - 1);
  return { scheme, length: json.length, replaced: json.replaced, each: json.each, next: json.next, losses, map: numbers.subarray(json.length - 1) };
}

export async function continuation(scheme: string, text: string, count: number, seed: number): Promise<string> {
  return (await ask({ call: 'model-write', text, count, seed }, await weightsOf(scheme))).json.written;
}

/// A matrix of a model, row by row.
export async function tensorOf(scheme: string, name: string): Promise<{ rows: number; columns: number; bytes: Uint8Array }> {
  const { json, bytes } = await ask({ call: 'model-tensor', name }, await weightsOf(scheme));
  return { rows: json.rows, columns: json.columns, bytes };
}

export const mean = (list: Float64Array, from = 0, to = list.length): number => {
  let sum = 0;
  for (let i = from; i < to; ++i) sum += list[i];
  return to > from ? sum / (to - from) : NaN;
};

// --- figures ---------------------------------------------------------------------------------------------------

const axis = (label: string, least: number, most: number, more: Partial<Axis> = {}): Axis => ({ label, least, most, log: false, reversed: false, shown: true, ticks: [], ...more });
const panelOf = (title: string, x: Axis, y: Axis, more: Partial<Panel>): Panel => ({ title, x, y, heat: null, series: [], envelopes: [], bands: [], rules: [], words: [], frames: [], equal: false, width: 1, ...more });
const figureWith = (kind: string, title: string, panel: Panel, note: string, height: number): Figure => ({ kind, title, subtitle: '', note, width: 900, height, rows: [{ panels: [panel], height: 1 }] });

// The mean of the last so many characters: single ones are too uneven to be seen as a line.
export const smoothed = 16;
function running(losses: Float64Array): { x: Float64Array; y: Float64Array } {
  const first = Math.min(smoothed, losses.length);
  const x = Float64Array.from({ length: losses.length - first + 1 }, (_, i) => i + first);
  return { x, y: x.map((end) => mean(losses, end - first, end)) };
}

/// The loss at each position: of the text, and of the part of the book that nobody trained on.
export function lossFigure(scheme: string, length: number, others: string[], run?: Run): Figure {
  const { context } = modelOf(scheme), own = run ? running(run.losses) : { x: new Float64Array(), y: new Float64Array() };
  const measured = others.map((scheme) => {
    const { nll_by_position: list, size } = modelOf(scheme).longest, step = size / list.length;
    return { name: `${titles[scheme]}, measured`, x: Float64Array.from(list, (_, i) => (i + 0.5) * step), y: Float64Array.from(list), style: styleOf(scheme), drawing: 'line' as const };
  });
  const end = Math.max(length - 1, context * 1.25), all = [...own.y, ...measured.flatMap((one) => [...one.y])].filter(Number.isFinite);
  const panel = panelOf('', axis('position', 0, end), axis('loss, nats a character', 0, Math.max(4, ...all) * 1.04), {
    series: [...measured, ...(run ? [{ name: `${titles[scheme]}, this text`, ...own, style: styleOf(scheme), drawing: 'dots' as const }] : [])],
    bands: [{ from: context, to: end, text: `beyond ${context}, where training ended` }],
    rules: [{ vertical: true, at: context, text: '' }],
  });
  return figureWith('model-loss', 'Loss at each position', panel, `This text: the mean of the last ${smoothed} characters. Measured: means over ${modelOf(scheme).longest.tokens.toLocaleString('en')} characters of the book that were not trained on. Guessing among all characters alike would be ${Math.log(modelOf(scheme).vocabulary - 1).toFixed(2)}.`, 430);
}

/// Where one head looks.
export function mapFigure(run: Run, layer: number, head: number): Figure {
  const { context } = modelOf(run.scheme), count = Math.round(Math.sqrt(run.map.length));
  const centres = Float64Array.from({ length: count }, (_, i) => (i + 0.5) * run.each - 0.5), most = Math.min(0.5, Math.max(...run.map.filter((value) => value < 1), 1e-9));
  const rules = run.length > context ? [{ vertical: true, at: context - 0.5, text: '' }, { vertical: false, at: context - 0.5, text: '' }] : [];
  const panel = panelOf('', axis('key: looked at', -0.5, run.length - 0.5), axis('query: looks', -0.5, run.length - 0.5, { reversed: true }), {
    heat: { columns: centres, rows: centres, values: run.map, least: 0, most, label: 'attention' }, rules, equal: true,
  });
  return figureWith('model-attention', `Attention of layer ${layer + 1}, head ${head + 1}`, panel, `Row: the character that looks. Column: the one that it looks at. More than half of its attention is as dark as half.${run.length > context ? ` Lines: position ${context}, where training ended.` : ''}${run.each > 1 ? ` Each cell is the mean of ${run.each} × ${run.each} weights.` : ''}`, 560);
}
