// A model's own scaling beside the usual ones. The view has the name of an example, or the scheme itself where it was read
// from a file: a link restores both.

import { take } from '../controls';
import { type Scheme, ask, doubles } from '../core';
import { h, shown, write } from '../dom';
import { follow } from '../follow';
import { type TextParam, shared, view } from '../state';
import { dims, factor, pair, trained } from './context_params';
import { examples, readExample } from './model_examples';

const model: TextParam = { key: 'model', label: 'Model', kind: 'text', start: '', longest: 8000 };

type Own = { scheme: Scheme & { dims: number; base: number; scaling: any }; trained: number };

// Of a model's layers, those that rotate: first those whose frequencies are scaled.
function ropeOf(json: any): Own | undefined {
  const ropes = json.layers.map((group: any) => group.scheme).filter((one: any) => one?.scheme === 'rope');
  const found = ropes.find((one: any) => isScaled(one)) ?? ropes[0];
  if (!found) return undefined;
  const scaling = Object.fromEntries(Object.entries(found.scaling ?? {}).filter(([, value]) => value !== null));
  return { scheme: { scheme: 'rope', dims: found.dims, base: found.base, scaling }, trained: Number(scaling.original_length ?? json.trained_length ?? trained.start) };
}
const isScaled = (scheme: any): boolean => ![undefined, 'none', 'default'].includes(scheme.scaling?.type ?? scheme.scaling?.scaling);

const checked = (json: any): Own | undefined => (json?.scheme?.scheme === 'rope' && typeof json.scheme.dims === 'number' && typeof json.scheme.base === 'number' ? json : undefined);

let own: Own | undefined, known = '';

async function read(): Promise<void> {
  const text = view.get(model);
  if (text === known) return;
  known = text;
  own = undefined;
  try {
    if (text.startsWith('{')) own = checked(JSON.parse(text));
    else if (text in examples) own = ropeOf(await readExample(text));
  } catch { /* a link that somebody cut: no model */ }
}

/// Reads the model of the view now and whenever it changes; `done` is called after a change.
export async function watchModel(done: () => void): Promise<void> {
  view.onChange(async () => {
    if (view.get(model) === known) return;
    await read();
    done();
  });
  await read();
}

/// The model's rope with its scaling, while the controls show its size and base.
export function ownScheme(): Scheme | undefined {
  if (!own || !isScaled(own.scheme) || own.scheme.dims !== view.get(dims) || own.scheme.base !== view.get(shared.base)) return undefined;
  return own.scheme;
}
export const ownWords = (): string | undefined => (ownScheme() ? `'${JSON.stringify(ownScheme())}'` : undefined);

/// Shows a model that was read: its size, base, lengths and scaling.
export function takeModel(json: any, example?: string): void {
  const found = ropeOf(json);
  if (!found) return;
  const times = Number(found.scheme.scaling.factor ?? 1) > 1 ? Number(found.scheme.scaling.factor) : Math.max(1, (json.usable_length ?? found.trained) / found.trained);
  view.set(dims, found.scheme.dims);
  view.set(shared.base, found.scheme.base);
  view.set(trained, found.trained);
  view.set(factor, times > 1 ? times : factor.start);
  view.set(model, example ?? JSON.stringify(found));
}

/// Which model: none, an example that rotates, or a file that was read below.
export function modelControl(): HTMLElement {
  const names = Object.keys(examples).filter((name) => !['GPT-2', 'MPT 7B', 'BERT base'].includes(name));
  const list = h('select', { id: 'own-model' }, h('option', { value: '' }, 'none'), ...names.map((name) => h('option', { value: name }, name)), h('option', { value: 'file' }, 'from a file'));
  const refresh = () => {
    const text = view.get(model);
    take(list, { value: text.startsWith('{') ? 'file' : text in examples ? text : '', disabled: view.locks(model.key) });
    (list.lastElementChild as HTMLOptionElement).hidden = list.value !== 'file';
  };
  list.addEventListener('change', async () => {
    if (list.value === '') view.set(model, '');
    else if (list.value !== 'file') takeModel(await readExample(list.value), list.value);
  });
  view.onChange(refresh);
  refresh();
  return h('div', { class: 'control' }, h('label', { for: list.id }, 'Model'), list);
}

/// Which angles the chosen pair has seen in training, and which it reaches beyond.
export function angleNote(): HTMLElement {
  const words = h('p', { class: 'note', role: 'status' });
  let asked = 0, known = '';
  const refresh = async () => {
    const index = Math.min(view.get(pair), view.get(dims) / 2 - 1), length = view.get(trained), end = Math.round(length * view.get(factor));
    const frequency = async (scheme: Scheme) => doubles((await ask({ call: 'frequencies', scheme, length: end })).bytes)[index];
    const plain: Scheme = { scheme: 'rope', dims: view.get(dims), base: view.get(shared.base) }, now = JSON.stringify([plain, view.get(model), index, length, end]);
    if (now === known) return;
    known = now;
    const mine = ++asked, before = await frequency(plain), scaled = ownScheme() ? await frequency(ownScheme()!) : undefined;
    if (mine !== asked) return;
    const turns = (radians: number) => `${shown(radians / (2 * Math.PI), 5)} turns`;
    write(words, `Pair ${index}: wavelength ${shown((2 * Math.PI) / before)} positions. In training it rotates through ${turns(before * (length - 1))}; unscaled, position ${shown(end - 1)} reaches ${turns(before * (end - 1))}` +
      (scaled === undefined ? '.' : `; with the model's own setting, ${turns(scaled * (end - 1))}.`));
  };
  follow(words, refresh);
  refresh();
  return words;
}
