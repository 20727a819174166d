import { formulas } from 'posenc-formulas/waves';
import { question } from 'posenc-guesses/waves';
import { explore } from '../controls';
import { h, shown } from '../dom';
import { figureOf } from '../figure';
import { ask } from '../core';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type ChoiceParam, type NumberParam, shared, view } from '../state';
import { type Named, chosen as plain, schemeParam } from './schemes_of_view';

const length: NumberParam = { key: 'len', label: 'Positions shown', kind: 'whole', start: 128, least: 16, most: 1_048_576, steps: 'octaves' };
const layout: ChoiceParam = { key: 'lay', label: 'Layout', kind: 'choice', start: 'interleaved', options: [['interleaved', 'interleaved'], ['sin-cos', 'sines first']] };
// As many positions as are shown, among them m.
const zoom = () => {
  const count = view.get(length), from = Math.floor(view.get(shared.m) / count) * count;
  return { from, to: from + count };
};
const zoomWords = () => `--zoom ${zoom().from}:${zoom().to}`;

// Only sinusoids have the two layouts.
function chosen(): Named {
  const { json, words } = plain();
  if (json.scheme !== 'sinusoidal' || view.get(layout) === 'interleaved') return { json, words };
  return { json: { ...json, layout: view.get(layout) }, words: `${words} --layout ${view.get(layout)}` };
}

// What the chosen scheme computes.
function formulaOfScheme(): HTMLElement {
  const wavelength = () => math(formulas.wavelength, 'Wavelength of pair i');
  const each: { [scheme: string]: HTMLElement } = {
    sinusoidal: maths(math(formulas.table), wavelength()), rope: maths(math(formulas.rope, 'Features u and v of pair i'), wavelength()), steps: maths(math(formulas.steps)), shift: maths(math(formulas.shift)),
  };
  const refresh = () => { for (const [scheme, box] of Object.entries(each)) box.hidden = scheme !== view.get(schemeParam); };
  view.onChange(refresh);
  refresh();
  return h('div', {}, ...Object.values(each));
}

// The closest other code; computed when the cursor rests.
function closest(): HTMLElement {
  const usual = 1024, most = 4096, words = h('p', { class: 'note' });
  let waiting = 0;
  const refresh = () => {
    clearTimeout(waiting);
    words.dataset.waiting = 'yes';
    waiting = setTimeout(async () => {
      const at = view.get(shared.m), count = Math.max(at + 1, Math.min(usual, view.get(length)));
      if (count > most) {
        words.textContent = `For a position below ${shown(most)} the closest other code is looked for here.`;
        delete words.dataset.waiting;
        return;
      }
      const { json } = await ask({ call: 'closest', scheme: chosen().json, at, length: count });
      words.textContent = `Of positions 0 to ${shown(count - 1)}, the one whose code is closest to that of position ${shown(at)} is ${shown(json.position)}, at distance ${shown(json.distance)}; each code has norm ${shown(json.norm)}.${json.distance < 0.01 * Math.sqrt(view.get(shared.width)) ? ' Beside features of size 1 they are nearly the same code.' : ''}`;
      delete words.dataset.waiting;
    }, 120) as unknown as number;
  };
  view.onChange(() => { if (words.isConnected) refresh(); });
  refresh();
  return words;
}

export const page: Page = {
  id: 'waves', title: 'Waves: every position gets its own fingerprint',
  goal: 'Read a sinusoidal table: fast features first, slow ones last, and all of them at one position as its code.',
  render(root) {
    const cursor = { param: shared.m, axis: 'x' as const, range: (): [number, number] => [zoom().from, zoom().to - 1] };
    root.append(
      text('Each pair of features is a wave of the position. The first pair completes a cycle every 2π ≈ 6.28 positions, each later one more slowly. Reading all waves at one position gives a code that no other position has.'),
      explore([shared.m, length, shared.base, shared.width, schemeParam, layout],
      section('The waves', h('p', { class: 'hint' }, 'Zoom with Ctrl and the wheel, with two fingers, or with the keys + and −; drag to move m.'), figureOf({
        label: 'Waves of the features against position', cursor, zoom: length,
        request: () => ({ kind: 'waves', schemes: [chosen().json], zoom: zoom() }),
        command: () => `posenc plot waves ${chosen().words} ${zoomWords()}`,
      })),
      guess(question),
      formulaOfScheme(),
      section('The table as a map', text('Each row is the code of one position. Orange is positive, blue is negative. Waves that are too fast for the picture are shown in grey, never as slow ones.'), figureOf({
        label: 'The table as a heat map: positions down, features across',
        cursor: { param: shared.m, axis: 'y', range: cursor.range }, zoom: length,
        request: () => ({ kind: 'heatmap', schemes: [chosen().json], zoom: zoom() }),
        command: () => `posenc plot heatmap ${chosen().words} ${zoomWords()}`,
      })),
      section('One position: its fingerprint', text('The same idea as binary digits. There the last digit changes at every step and the first one rarely; here the first features are the fast ones.'), figureOf({
        label: 'Numbers of position m next to binary digits',
        cursor: { param: shared.m, axis: 'x', range: cursor.range, isUnseen: true },
        request: () => ({ kind: 'fingerprint', schemes: [chosen().json], at: view.get(shared.m) }),
        command: () => `posenc plot fingerprint ${chosen().words} --at ${view.get(shared.m)}`,
      }), text('A code is useful if no other position has nearly the same one. Try the first bad idea: with steps of 0.0001, neighbouring codes are almost equal.'), closest())));
  },
};
