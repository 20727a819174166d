// summary.json of `posenc lab`: what it must hold, and its figures.

import type { Axis, Figure, Panel } from './core';

export type Verdict = {
  id: string; claim: string; source: string; published: string; verdict: string; measure: string; threshold: string;
  mean: number | null; interval_95: number[]; values: number[]; unit: string; reason: string;
};
export type Result = {
  task: string; scheme: string; extension: string; seeds: number; parameters: number; measure: string;
  by_size: { size: number; mean: number; least: number; most: number }[];
};
export type Summary = { preset: string; text: string; models: number; models_planned: number; verdicts: Verdict[]; results: Result[] };

/// In bytes. A file of more is refused unread.
export const longestSummary = 4_000_000;
export const answers = ['reproduced', 'refuted', 'undecided', 'not testable here'];

// Fewer have no interval, but a range.
const fewestSeeds = 5;
/// What the two numbers behind an estimate are: the range of two draws holds the median with a chance of one half only.
export const intervalName = (seeds: number): string => (seeds < fewestSeeds ? `range of ${seeds} seeds` : '95% interval');

/// Reads a file that somebody dropped. Throws: Error that says what is wrong, without the name of the file.
export async function openSummary(file: Blob): Promise<Summary> {
  if (file.size > longestSummary) throw new Error('is larger than 4 MB, so that it is no summary.json of the lab');
  return readSummary(await file.text());
}
/// The same of a text.
export function readSummary(text: string): Summary {
  if (!text.trim()) throw new Error('is empty');
  let json: any;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new Error(`is not JSON: ${(error as Error).message}`);
  }
  if (json?.format !== 'posenc-lab-summary-1') throw new Error('is no summary.json of posenc lab: "format" must be "posenc-lab-summary-1"');
  const isText = (value: unknown) => typeof value === 'string', isNumber = (value: unknown) => typeof value === 'number' && Number.isFinite(value);
  const check = (list: unknown, name: string, texts: string[], numbers: string[]) => {
    if (!Array.isArray(list)) throw new Error(`has no list "${name}"`);
    list.forEach((one: any, index: number) => {
      for (const key of texts) if (!isText(one?.[key])) throw new Error(`"${key}" of ${name}[${index}] must be a text`);
      for (const key of numbers) if (!isNumber(one[key])) throw new Error(`"${key}" of ${name}[${index}] must be a number`);
    });
  };
  check([json], 'file', ['preset', 'text'], ['models', 'models_planned']);
  check(json.verdicts, 'verdicts', ['id', 'claim', 'source', 'published', 'verdict', 'measure', 'threshold', 'unit', 'reason'], []);
  json.verdicts.forEach((one: any, index: number) => {
    if (!answers.includes(one.verdict)) throw new Error(`"verdict" of verdicts[${index}] is "${one.verdict}", expected one of: ${answers.join(', ')}`);
    for (const key of ['interval_95', 'values']) {
      if (!Array.isArray(one[key]) || !one[key].every(isNumber)) throw new Error(`"${key}" of verdicts[${index}] must be a list of numbers`);
    }
    if (one.values.length && !isNumber(one.mean)) throw new Error(`"mean" of verdicts[${index}] must be a number`);
  });
  check(json.results, 'results', ['task', 'scheme', 'extension', 'measure'], ['seeds', 'parameters']);
  json.results.forEach((one: any, index: number) => {
    if (!Array.isArray(one.by_size) || !one.by_size.length) throw new Error(`"by_size" of results[${index}] must be a list`);
    check(one.by_size, `results[${index}].by_size`, [], ['size', 'mean', 'least', 'most']);
  });
  return json;
}

// The same colour for a scheme in every figure, as in report.html.
const order = ['alibi', 'rope', 'sinusoidal', 'none', 't5', 'kerple', 'learned', 'fire'];
/// A scheme that has none takes what is free in its figure.
function stylesOf(names: string[]): Map<string, number> {
  const styles = new Map(names.map((name) => [name, order.indexOf(name)])), free = order.map((_, style) => style).filter((style) => ![...styles.values()].includes(style));
  for (const [name, style] of styles) if (style < 0) styles.set(name, free.shift() ?? -1);
  return styles;
}

/// Results that belong into one figure: of one task, trained at one size, or extensions of RoPE.
export type Group = { key: string; title: string; trained: number; isExact: boolean; results: Result[] };
export function groupsOf(summary: Summary): Group[] {
  const groups = new Map<string, Group>();
  for (const result of summary.results) {
    if (result.scheme.endsWith('fine-tuned')) continue;
    const isExtension = result.extension !== 'none';
    const trained = isExtension ? 0 : result.by_size[0].size, key = isExtension ? 'extensions' : `${result.task}-${trained}`;
    const title = isExtension ? 'RoPE with each scaling, not fine-tuned' : `${result.task}, trained size ${trained}`;
    if (!groups.has(key)) groups.set(key, { key, title, trained, isExact: result.measure === 'exact match', results: [] });
    groups.get(key)!.results.push(result);
  }
  return [...groups.values()];
}

const nameIn = (result: Result): string => (result.extension === 'none' ? result.scheme : result.extension);

/// Lines are means over seeds; the shaded area reaches from the least to the greatest of them.
export function lengthFigure(group: Group, relative: boolean): Figure {
  const sizes = [...new Set(group.results.flatMap((one) => one.by_size.map((at) => at.size)))].sort((a, b) => a - b);
  const scaled = (result: Result, value: number): number =>
    group.isExact ? 100 * value : relative ? value / result.by_size[0].mean : value;
  const all = group.results.flatMap((one) => one.by_size.flatMap((at) => [scaled(one, at.least), scaled(one, at.most)]));
  const ticks = (list: number[]) => list.map((at) => ({ at, text: String(at) }));
  const isLog = !group.isExact && Math.min(...all) > 0;
  const least = group.isExact ? 0 : Math.min(...all) * (isLog ? 0.95 : 1), most = group.isExact ? 100 : Math.max(...all) * 1.05;
  const marks = [0.9, 1, 1.2, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100].filter((at) => at >= least && at <= most);
  const x: Axis = { label: 'size of a sequence', least: sizes[0] * 0.97, most: Math.max(...sizes) * 1.03, log: sizes[0] > 0, reversed: false, shown: true, ticks: ticks(sizes) };
  const y: Axis = { label: group.isExact ? 'exact match, %' : relative ? 'perplexity / at trained size' : 'perplexity', least, most, log: isLog, reversed: false, shown: true, ticks: isLog ? ticks(marks) : [] };
  const styles = stylesOf(group.results.map(nameIn)), styleOf = (one: Result) => styles.get(nameIn(one))!;
  const list = (result: Result, read: (at: Result['by_size'][0]) => number) => Float64Array.from(result.by_size, read);
  const panel: Panel = {
    title: group.title, x, y, heat: null, bands: [], words: [], frames: [], equal: false, width: 1,
    rules: group.trained ? [{ vertical: true, at: group.trained, text: 'trained' }] : [],
    series: group.results.map((one) => ({ name: nameIn(one), x: list(one, (at) => at.size), y: list(one, (at) => scaled(one, at.mean)), style: styleOf(one), drawing: 'line' as const })),
    envelopes: group.results.filter((one) => one.seeds > 1).map((one) => ({ name: nameIn(one), x: list(one, (at) => at.size), low: list(one, (at) => scaled(one, at.least)), high: list(one, (at) => scaled(one, at.most)), style: styleOf(one) })),
  };
  return { kind: 'lab', title: group.title, subtitle: 'mean over seeds; shaded: the range of the seeds', note: '', width: 900, height: 520, rows: [{ panels: [panel], height: 1 }] };
}
