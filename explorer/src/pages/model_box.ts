// What is in my model? A config.json or .gguf, read in the page.

import { CoreError, ask } from '../core';
import { copyText, h, shown } from '../dom';

// As these models ship them, reduced to what position needs.
const examples: { [name: string]: object } = {
  'Llama 3.1 8B': { model_type: 'llama', hidden_size: 4096, num_attention_heads: 32, num_hidden_layers: 32, max_position_embeddings: 131072, rope_theta: 500000.0,
    rope_scaling: { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_max_position_embeddings: 8192, rope_type: 'llama3' } },
  'Qwen 2.5 7B with YaRN': { model_type: 'qwen2', hidden_size: 3584, num_attention_heads: 28, num_hidden_layers: 28, max_position_embeddings: 32768, rope_theta: 1000000.0,
    rope_scaling: { type: 'yarn', factor: 4.0, original_max_position_embeddings: 32768 } },
  'Mistral 7B v0.3': { model_type: 'mistral', hidden_size: 4096, num_attention_heads: 32, num_hidden_layers: 32, head_dim: 128, max_position_embeddings: 32768, rope_theta: 1000000.0 },
  'GPT-2': { model_type: 'gpt2', n_embd: 768, n_head: 12, n_layer: 12, n_positions: 1024 },
};

// The head of a GGUF file, with its vocabulary, is a few megabytes; the weights behind it are not needed.
const headBytes = 64 << 20;

export function modelBox(): HTMLElement {
  const result = h('div', { class: 'result', role: 'status' });
  const input = h('input', { type: 'file', accept: '.json,.gguf,application/json', id: 'config-file' });
  const show = async (name: string, bytes: Uint8Array, path = name) => {
    try {
      const { json } = await ask({ call: 'model' }, bytes);
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
  const zone = h('div', { class: 'drop' }, h('label', { for: 'config-file' }, 'Drop a config.json or .gguf file here, or choose one'), input,
    h('p', { class: 'hint' }, 'The file is read in this page and sent nowhere.'),
    h('p', { class: 'presets' }, 'Examples: ', ...Object.entries(examples).map(([name, config]) =>
      h('button', { type: 'button', onclick: () => show(name, new TextEncoder().encode(JSON.stringify(config)), 'config.json') }, name))));
  zone.addEventListener('dragover', (event) => event.preventDefault());
  zone.addEventListener('drop', (event) => {
    event.preventDefault();
    read(event.dataTransfer?.files[0]);
  });
  return h('div', {}, zone, result);
}
