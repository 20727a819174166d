// What is in my model? A config.json or .gguf, read in the page.

import { CoreError, ask } from '../core';
import real from '../data/models.json';
import { copyText, h, shown } from '../dom';

// As these models ship them, reduced to what position needs; models.json names the repository that each was read in.
export const examples: { [name: string]: object } = {
  ...Object.fromEntries(real.map((one) => [one.name, one.config])),
  'Qwen 2.5 7B with YaRN': { model_type: 'qwen2', hidden_size: 3584, num_attention_heads: 28, num_hidden_layers: 28, max_position_embeddings: 32768, rope_theta: 1000000.0,
    rope_scaling: { type: 'yarn', factor: 4.0, original_max_position_embeddings: 32768 } },
  'Mistral 7B v0.3': { model_type: 'mistral', hidden_size: 4096, num_attention_heads: 32, num_hidden_layers: 32, head_dim: 128, max_position_embeddings: 32768, rope_theta: 1000000.0 },
  'GPT-2': { model_type: 'gpt2', n_embd: 768, n_head: 12, n_layer: 12, n_positions: 1024 },
};

// The head of a GGUF file, with its vocabulary, is a few megabytes; the weights behind it are not needed.
const headBytes = 64 << 20;

/// What the library reads from the config of an example.
export const readExample = async (name: string): Promise<any> => (await ask({ call: 'model' }, new TextEncoder().encode(JSON.stringify(examples[name])))).json;

/// `onRead` gets what was read, and the name of the model where it is one of the examples.
export function modelBox(onRead: (json: any, example?: string) => void = () => {}): HTMLElement {
  const result = h('div', { class: 'result', role: 'status' });
  const input = h('input', { type: 'file', accept: '.json,.gguf,application/json', id: 'config-file' });
  const show = async (name: string, bytes: Uint8Array, path = name) => {
    try {
      const { json } = await ask({ call: 'model' }, bytes);
      onRead(json, name in examples ? name : undefined);
      const rows = json.layers.map((group: any) => {
        const pairs: number[] = group.frequencies ?? [];
        const slow = json.trained_length ? pairs.filter((w) => w > 0 && (2 * Math.PI) / w > json.trained_length).length : 0;
        const scheme = group.scheme ? JSON.stringify(group.scheme, null, 1).replaceAll('\n', ' ') : String(group.formula);
        return h('tr', {}, h('td', {}, Array.isArray(group.layers) ? String(group.layers.length || 'all') : String(group.layers ?? 'all')), h('td', {}, h('code', {}, scheme)),
          h('td', {}, pairs.length ? `${pairs.length} pairs, ${slow} with a wavelength beyond the trained length` : '–'));
      });
      const list = (title: string, items: string[]) => items?.length ? h('div', {}, h('h4', {}, title), h('ul', {}, ...items.map((item) => h('li', {}, item)))) : null;
      const command = `posenc inspect ${path}`;
      result.replaceChildren(
        h('h3', {}, `${name}: ${json.model_type}`),
        h('p', {}, `Trained length ${shown(json.trained_length ?? NaN)}, usable length ${shown(json.usable_length ?? NaN)}.`),
        h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Layers' }, h('table', {}, h('thead', {}, h('tr', {}, ...['Layers', 'Scheme', 'Pairs'].map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, ...rows))),
        ...[list('Warnings', json.warnings), list('Assumed', json.assumed), list('Notes', json.notes)].filter((x): x is HTMLDivElement => x !== null),
        h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), h('code', {}, command),
          h('button', { type: 'button', onclick: () => copyText(command) }, 'Copy')));
    } catch (error) {
      result.replaceChildren(h('p', { class: 'note refused' }, error instanceof CoreError ? `${name}: ${error.message}` : String(error)));
    }
  };
  const read = async (file?: File) => { if (file) await show(file.name, new Uint8Array(await file.slice(0, headBytes).arrayBuffer())); };
  input.addEventListener('change', () => read(input.files?.[0]));
  const showExample = (name: string) => show(name, new TextEncoder().encode(JSON.stringify(examples[name])), 'config.json');
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
  zone.addEventListener('dragover', (event) => event.preventDefault());
  zone.addEventListener('drop', (event) => {
    event.preventDefault();
    read(event.dataTransfer?.files[0]);
  });
  return h('div', {}, zone, result);
}
