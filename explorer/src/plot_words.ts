// What the words of `posenc plot` ask of the library.

import type { Scheme } from './core';

const numbers = (text: string) => text.split(':').map(Number);
// Flags of figures; what is not here is a field of the scheme before it.
const flags: { [flag: string]: (value: string) => object } = {
  zoom: (value) => ({ zoom: { from: numbers(value)[0], to: numbers(value)[1] } }),
  features: (value) => ({ features: value.split(',').map(Number) }),
  at: (value) => ({ at: Number(value) }), key: (value) => ({ key: Number(value) }), shift: (value) => ({ shift: Number(value) }),
  lines: () => ({ lines: true }), bound: () => ({ bound: true }), compare: () => ({ compare: true }), trained: (value) => ({ trained: Number(value) }), factor: (value) => ({ factor: Number(value) }),
  spec: (value) => ({ spec: value }),
};
// Fields of schemes that are lists.
const lists = ['directions', 'sections'];
const scalingOf = (text: string): object => {
  const [type, ...fields] = text.split(/[:,]/);
  return { type, ...Object.fromEntries(fields.map((one) => one.split('=')).map(([name, value]) => [name, Number(value)])) };
};

/// The question for the library that `posenc plot …` asks.
export function requestOf(command: string): object {
  const [, kind, ...words] = command.match(/'[^']*'|\S+/g)!.map((word) => word.replace(/^'|'$/g, '')), schemes: Scheme[] = [];
  let request: object = { kind };
  for (let i = 0; i < words.length; ++i) {
    if (!words[i].startsWith('--')) {
      schemes.push({ scheme: words[i] });
      continue;
    }
    const name = words[i].slice(2), isSwitch = words[i + 1] === undefined || words[i + 1].startsWith('--'), value = isSwitch ? '' : words[++i];
    if (flags[name]) request = { ...request, ...flags[name](value) };
    else schemes.at(-1)![name] = name === 'scaling' ? scalingOf(value) : lists.includes(name) ? value.split(',').map(Number) : Number(value);
  }
  return { ...request, schemes };
}
