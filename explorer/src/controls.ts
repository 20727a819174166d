// Sliders, choices and text that change the view, each reachable by keyboard and named.

import { h, shown } from './dom';
import { type NumberParam, type Param, held, view } from './state';

let count = 0;

// A slider has 1000 places; those of octaves are spaced by factors.
const places = 1000;
function toPlace(param: NumberParam, value: number): number {
  if (param.choices) return param.choices.indexOf(value);
  if (param.steps !== 'octaves') return ((value - param.least) / (param.most - param.least)) * places;
  const low = Math.log(param.least + 1), high = Math.log(param.most + 1);
  return ((Math.log(value + 1) - low) / (high - low)) * places;
}
function fromPlace(param: NumberParam, place: number): number {
  if (param.choices) return param.choices[place];
  if (param.steps !== 'octaves') return held(param, param.least + (place / places) * (param.most - param.least));
  const low = Math.log(param.least + 1), high = Math.log(param.most + 1);
  const value = Math.exp(low + (place / places) * (high - low)) - 1;
  return held(param, param.kind === 'real' ? Number(value.toPrecision(3)) : value);
}

/// Sets what differs: a list that is given its own choice again makes Chromium read all forms of the page, for its autofill.
export function take<Box extends HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>(box: Box, values: Partial<Box>): void {
  for (const name in values) if (box[name] !== values[name]) box[name] = values[name]!;
}

function numberControl(param: NumberParam): HTMLElement {
  const id = `control-${++count}`;
  const slider = h('input', { type: 'range', min: 0, max: param.choices ? param.choices.length - 1 : places, step: 1,
    'aria-label': param.label, 'aria-hidden': 'true', tabindex: -1 });
  const box = h('input', { id, type: 'text', inputmode: 'decimal', autocomplete: 'off' });
  let known: number | undefined;
  const refresh = () => {
    const value = view.get(param), isLocked = view.locks(param.key);
    if (value === known && box.disabled === isLocked) return;  // most steps change one control of many
    known = value;
    if (document.activeElement !== slider) slider.value = String(toPlace(param, value));
    if (document.activeElement !== box) box.value = shown(value, 6).replaceAll(',', '');
    slider.disabled = box.disabled = isLocked;
  };
  slider.addEventListener('input', () => view.set(param, fromPlace(param, Number(slider.value))));
  const accept = () => {
    const value = Number(box.value.replaceAll(',', '').replace('−', '-'));
    if (box.value.trim() && Number.isFinite(value)) view.set(param, held(param, value));
    box.value = shown(view.get(param), 6).replaceAll(',', '');
  };
  box.addEventListener('change', accept);
  box.addEventListener('keydown', (event) => {
    const now = view.get(param), step = (event.shiftKey ? 10 : 1) * (param.multipleOf ?? 1) * (param.kind === 'real' ? Math.max(1, 10 ** Math.floor(Math.log10(now) - 1)) : 1);
    const to: { [key: string]: number } = {
      ArrowUp: now + step, ArrowDown: now - step, PageUp: Math.max(1, now) * 2, PageDown: now / 2, Home: param.least, End: param.most };
    if (event.key === 'Enter') accept();
    if (!(event.key in to) || ((event.key === 'Home' || event.key === 'End') && !event.ctrlKey)) return;
    event.preventDefault();
    view.set(param, held(param, to[event.key]));
    box.value = shown(view.get(param), 6).replaceAll(',', '');
  });
  view.onChange(refresh);
  refresh();
  // each lies in a place of a known size: what changes in it is laid out on its own, not with the page
  return h('div', { class: 'control' }, h('label', { for: id }, param.label), h('div', { class: 'place box' }, h('div', {}, box)), h('div', { class: 'place' }, h('div', {}, slider)));
}

export function control(param: Param): HTMLElement {
  if (param.kind !== 'text' && param.kind !== 'choice' && param.kind !== 'flag') return numberControl(param);
  const id = `control-${++count}`;
  if (param.kind === 'flag') {
    const box = h('input', { id, type: 'checkbox' });
    const refresh = () => take(box, { checked: view.get(param), disabled: view.locks(param.key) });
    box.addEventListener('change', () => view.set(param, box.checked));
    view.onChange(refresh);
    refresh();
    return h('div', { class: 'control check' }, box, h('label', { for: id }, param.label));
  }
  if (param.kind === 'choice') {
    const box = h('select', { id }, ...param.options.map(([value, text]) => h('option', { value }, text)));
    const refresh = () => take(box, { value: view.get(param), disabled: view.locks(param.key) });
    box.addEventListener('change', () => view.set(param, box.value));
    view.onChange(refresh);
    refresh();
    return h('div', { class: 'control' }, h('label', { for: id }, param.label), box);
  }
  const box = h('input', { id, type: 'text', maxlength: param.longest, autocomplete: 'off' });
  const refresh = () => {
    if (document.activeElement !== box) take(box, { value: view.get(param) });
    take(box, { disabled: view.locks(param.key) });
  };
  box.addEventListener('change', () => view.set(param, box.value));
  view.onChange(refresh);
  refresh();
  return h('div', { class: 'control wide' }, h('label', { for: id }, param.label), box);
}

/// A control that is there only while `isShown` says so.
export function controlWhile(param: Param, isShown: () => boolean): HTMLElement {
  const made = control(param), refresh = () => { made.hidden = !isShown(); };
  view.onChange(refresh);
  refresh();
  return made;
}

export const controls = (...params: (Param | HTMLElement)[]): HTMLElement =>
  h('div', { class: 'controls', role: 'group', 'aria-label': 'Controls' }, ...params.map((one) => (one instanceof HTMLElement ? one : control(one))));

/// Controls that stay in sight while the figures that they change scroll by.
export function explore(...parts: [(Param | HTMLElement)[], ...(Node | string)[]]): HTMLElement {
  const [params, ...rest] = parts, strip = controls(...params);
  strip.classList.add('strip');
  return h('div', { class: 'explore' }, strip, ...(rest as Node[]));
}
