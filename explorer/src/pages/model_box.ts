// What is in my model? A config.json or .gguf, read in the page.

import { ask } from '../core';
import { copyText, h, shown, takesDrops } from '../dom';
import { schemeWords, turnWords } from '../scheme_words';
import { view } from '../state';
import { bytesOf, examples } from './model_examples';
import { mine } from './model_param';
import { poster } from './poster';

// The head of a GGUF file, with its vocabulary, is a few megabytes; the weights behind it are not needed.
const headBytes = 64 << 20;
const isGguf = (bytes: Uint8Array): boolean => bytes[0] === 0x47 && bytes[1] === 0x47 && bytes[2] === 0x55 && bytes[3] === 0x46;
// What Windows puts before a text says nothing.
const withoutMark = (bytes: Uint8Array): Uint8Array => (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes);

// One line for each group of layers that are alike, in words; the fields behind a button.
function layerList(json: any): HTMLElement {
  const many = json.layers.length > 1;
  return h('ul', { class: 'layers' }, ...json.layers.map((group: any) => {
    const which = Array.isArray(group.layers) ? group.layers.length : group.layers, scheme = group.scheme;
    const more = [group.window && `a window of ${shown(group.window)} tokens`, group.chunk && `chunks of ${shown(group.chunk)} tokens`, group.causal === false && 'no causal mask', group.unscaled && 'scores that are not divided by √features'].filter(Boolean);
    return h('li', {}, many ? h('strong', {}, `${group.layer_type ? `${group.layer_type}, ` : ''}layers ${which}: `) : '', scheme ? schemeWords(scheme) : String(group.formula ?? 'no position'), '. ', turnWords(group.frequencies ?? [], json.trained_length), more.length ? ` With ${more.join(', ')}.` : '',
      scheme ? h('details', {}, h('summary', {}, 'Every field'), h('pre', { tabindex: 0 }, h('code', {}, JSON.stringify(scheme, null, 1)))) : '');
  }));
}

const lengths = ({ trained_length: trained, usable_length: usable }: any): string => !trained ? 'The file does not say how long its texts may be.'
  : usable && usable !== trained ? `Trained on ${shown(trained)} positions, and extended to ${shown(usable)}.` : `Trained on ${shown(trained)} positions.`;

/// `onRead` gets what was read, and the name of the model where it is one of the examples.
export function modelBox(onRead: (json: any, example?: string) => void = () => {}): HTMLElement {
  const result = h('div', { class: 'result', role: 'status' });
  const input = h('input', { type: 'file', accept: '.json,.gguf,application/json', id: 'config-file' });
  const show = async (name: string, bytes: Uint8Array, path = name) => {
    try {
      const { json } = await ask({ call: 'model' }, bytes);
      onRead(json, name in examples ? name : undefined);
      const list = (title: string, items: string[]) => items?.length ? h('div', {}, h('h4', {}, title), h('ul', {}, ...items.map((item) => h('li', {}, item)))) : null;
      const command = `posenc inspect ${path}`;
      result.replaceChildren(
        h('h3', {}, `${name}: ${json.model_type}`),
        h('p', {}, lengths(json)), layerList(json),
        ...[poster(name, json) ?? null, list('Warnings', json.warnings), list('Assumed', json.assumed), list('Notes', json.notes)].filter((x): x is HTMLElement => x !== null),
        h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), h('code', {}, command),
          h('button', { type: 'button', onclick: () => copyText(command) }, 'Copy')));
    } catch (error) {
      result.replaceChildren(h('p', { class: 'note refused' }, `${name}: ${(error as Error).message}`));
    }
  };
  const read = async (file?: File) => {
    if (!file) return;
    const bytes = new Uint8Array(await file.slice(0, headBytes).arrayBuffer());
    if (!isGguf(bytes) && file.size > headBytes) return result.replaceChildren(h('p', { class: 'note refused' }, `${file.name} is too large for a config.json, and no .gguf file.`));
    await show(file.name, withoutMark(bytes));
  };
  input.addEventListener('change', () => read(input.files?.[0]));
  const showExample = (name: string) => show(name, bytesOf(name), 'config.json');
  // By name, from the configs that come with this page: nothing is fetched.
  const name = h('input', { type: 'text', id: 'model-name', list: 'model-names', autocomplete: 'off', maxlength: 80 });
  const named = h('form', { class: 'model-name', onsubmit: (event: Event) => {
    event.preventDefault();
    const plain = (words: string) => words.toLowerCase().replace(/[^a-z0-9]/g, ''), wanted = plain(name.value);
    if (!wanted) return;
    const found = Object.keys(examples).find((one) => plain(one).includes(wanted));
    if (found) showExample(found);
    else result.replaceChildren(h('p', { class: 'note refused' }, `${name.value}: not among the ${Object.keys(examples).length} models that come with this page. Drop its config.json above.`));
  } }, h('label', { for: name.id }, 'Or type the name of a model'), h('div', { class: 'tools' }, name, h('button', { type: 'submit' }, 'Show')),
    h('datalist', { id: 'model-names' }, ...Object.keys(examples).map((one) => h('option', { value: one }))));
  const zone = h('div', { class: 'drop' }, h('label', { for: 'config-file' }, 'Drop a config.json or .gguf file here, or choose one'), input,
    h('p', { class: 'hint' }, 'The file is read in this page and sent nowhere.'),
    named, h('p', { class: 'presets' }, 'Examples: ', ...['Llama 3.1 8B', 'Qwen 2.5 7B with YaRN', 'Phi-3.5 mini', 'DeepSeek-V3', 'Gemma 3 4B', 'GPT-2'].map((name) => h('button', { type: 'button', onclick: () => showExample(name) }, name))));
  takesDrops(zone, read);
  if (Object.hasOwn(examples, view.get(mine))) showExample(view.get(mine));
  return h('div', {}, zone, result);
}
