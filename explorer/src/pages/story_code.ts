// A worked example in other words: ten lines of numpy, and the figure of its command.

import type { Scheme } from '../core';
import { copyText, h } from '../dom';
import { figureOf } from '../figure';

const numbers = (text: string) => text.split(':').map(Number);
// Flags of figures; what is not here is a field of the scheme before it.
const flags: { [flag: string]: (value: string) => object } = {
  zoom: (value) => ({ zoom: { from: numbers(value)[0], to: numbers(value)[1] } }),
  at: (value) => ({ at: Number(value) }), key: (value) => ({ key: Number(value) }), shift: (value) => ({ shift: Number(value) }),
  lines: () => ({ lines: true }), compare: () => ({ compare: true }),
};
const scalingOf = (text: string): object => {
  const [type, ...fields] = text.split(/[:,]/);
  return { type, ...Object.fromEntries(fields.map((one) => one.split('=')).map(([name, value]) => [name, Number(value)])) };
};

/// The question for the library that `posenc plot …` asks.
export function requestOf(command: string): object {
  const [, kind, ...words] = command.split(' '), schemes: Scheme[] = [];
  let request: object = { kind };
  for (let i = 0; i < words.length; ++i) {
    if (!words[i].startsWith('--')) {
      schemes.push({ scheme: words[i] });
      continue;
    }
    const name = words[i].slice(2), isSwitch = words[i + 1] === undefined || words[i + 1].startsWith('--'), value = isSwitch ? '' : words[++i];
    if (flags[name]) request = { ...request, ...flags[name](value) };
    else schemes.at(-1)![name] = name === 'scaling' ? scalingOf(value) : Number(value);
  }
  return { ...request, schemes };
}

export function storyCode({ title, python, figure }: { title: string; python: string; figure?: string }): HTMLElement {
  const copy = (text: string) => h('button', { type: 'button', onclick: () => copyText(text) }, 'Copy');
  const place = h('div', {}), command = `posenc ${figure}`;
  let isDrawn = false;
  return h('details', { class: 'story-code', ontoggle: () => {
    if (isDrawn || !figure) return;
    isDrawn = true;
    place.append(h('h3', {}, 'As a figure'), figureOf({ label: `Figure of: ${title}`, request: () => requestOf(figure), command: () => command }));
  } }, h('summary', {}, figure ? 'The same in numpy, and as a figure' : 'The same in numpy'),
  h('pre', { tabindex: 0 }, h('code', {}, python)), h('div', { class: 'tools' }, copy(python)), place);
}
