import { controls } from '../controls';
import { CoreError, ask } from '../core';
import { copyText, h, shown } from '../dom';
import { figureOf } from '../figure';
import { type Page, guess, section, text } from '../lesson';
import { type NumberParam, shared, view } from '../state';
import { sized } from './schemes_of_view';

const trained: NumberParam = { key: 'trained', label: 'Trained length', kind: 'whole', start: 8192, least: 128, most: 1_048_576, steps: 'octaves' };
const factor: NumberParam = { key: 'x', label: 'Times longer', kind: 'real', start: 8, least: 1, most: 64, steps: 'octaves' };
const dims: NumberParam = { ...shared.width, key: 'dims', label: 'Rotary dimensions', start: 128 };

// As these models ship them, reduced to what position needs.
const examples: { [name: string]: object } = {
  'Llama 3.1 8B': { model_type: 'llama', hidden_size: 4096, num_attention_heads: 32, num_hidden_layers: 32, max_position_embeddings: 131072, rope_theta: 500000.0,
    rope_scaling: { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_max_position_embeddings: 8192, rope_type: 'llama3' } },
  'Qwen 2.5 7B with YaRN': { model_type: 'qwen2', hidden_size: 3584, num_attention_heads: 28, num_hidden_layers: 28, max_position_embeddings: 32768, rope_theta: 1000000.0,
    rope_scaling: { type: 'yarn', factor: 4.0, original_max_position_embeddings: 32768 } },
  'Mistral 7B v0.3': { model_type: 'mistral', hidden_size: 4096, num_attention_heads: 32, num_hidden_layers: 32, head_dim: 128, max_position_embeddings: 32768, rope_theta: 1000000.0 },
  'GPT-2': { model_type: 'gpt2', n_embd: 768, n_head: 12, n_layer: 12, n_positions: 1024 },
};

function modelBox(): HTMLElement {
  const result = h('div', { class: 'result', role: 'status' });
  const input = h('input', { type: 'file', accept: '.json,application/json', id: 'config-file' });
  const show = async (name: string, bytes: Uint8Array) => {
    try {
      const { json } = await ask({ call: 'model' }, bytes);
      const rows = json.layers.map((group: any) => {
        const pairs: number[] = group.frequencies ?? [];
        const slow = json.trained_length ? pairs.filter((w) => w > 0 && (2 * Math.PI) / w > json.trained_length).length : 0;
        const scheme = group.scheme ? JSON.stringify(group.scheme, null, 1).replaceAll('\n', ' ') : group.formula;
        return h('tr', {}, h('td', {}, Array.isArray(group.layers) ? String(group.layers.length || 'all') : String(group.layers ?? 'all')), h('td', {}, h('code', {}, typeof scheme === 'string' ? scheme : String(scheme))),
          h('td', {}, pairs.length ? `${pairs.length} pairs, ${slow} with a wavelength beyond the trained length` : '–'));
      });
      const list = (title: string, items: string[]) => items?.length ? h('div', {}, h('h4', {}, title), h('ul', {}, ...items.map((item) => h('li', {}, item)))) : null;
      result.replaceChildren(
        h('h3', {}, `${name}: ${json.model_type}`),
        h('p', {}, `Trained length ${shown(json.trained_length ?? NaN)}, usable length ${shown(json.usable_length ?? NaN)}.`),
        h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'layers' }, h('table', {}, h('thead', {}, h('tr', {}, ...['Layers', 'Scheme', 'Pairs'].map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, ...rows))),
        ...[list('Warnings', json.warnings), list('Assumed', json.assumed), list('Notes', json.notes)].filter((x): x is HTMLDivElement => x !== null),
        h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), h('code', {}, 'posenc inspect config.json'),
          h('button', { type: 'button', onclick: () => copyText('posenc inspect config.json') }, 'Copy')));
    } catch (error) {
      result.replaceChildren(h('p', { class: 'note refused' }, error instanceof CoreError ? `${name}: ${error.message}` : String(error)));
    }
  };
  const read = async (file?: File) => { if (file) await show(file.name, new Uint8Array(await file.arrayBuffer())); };
  input.addEventListener('change', () => read(input.files?.[0]));
  const zone = h('div', { class: 'drop' }, h('label', { for: 'config-file' }, 'Drop your config.json here, or choose it'), input,
    h('p', { class: 'hint' }, 'The file is read in this page and sent nowhere.'),
    h('p', { class: 'presets' }, 'Or take ', ...Object.keys(examples).map((name) => h('button', { type: 'button', onclick: () => show(name, new TextEncoder().encode(JSON.stringify(examples[name]))) }, name))));
  zone.addEventListener('dragover', (event) => event.preventDefault());
  zone.addEventListener('drop', (event) => { event.preventDefault(); read(event.dataTransfer?.files[0]); });
  return h('div', {}, zone, result);
}

export const page: Page = {
  id: 'context', title: 'Longer context: how each method rescales frequencies',
  goal: 'Compare linear, NTK, YaRN and Llama-3 scaling pair by pair; read your own config.json.',
  render(root) {
    const scheme = () => sized('rope', view.get(dims), view.get(shared.base));
    root.append(
      text('Beyond the trained length, slow pairs reach angles that the model has never seen. Each method slows the pairs differently: linear slows all of them, NTK the slow ones most, YaRN and Llama 3 leave the fast ones alone.'),
      guess({
        question: 'Base 10,000, 128 rotary dimensions, trained on 4,096 tokens. Which pairs have never completed a cycle in training?',
        choices: [
          { text: 'The slow ones: those with a wavelength above 4,096', right: true, because: 'In training they saw only part of the circle. Their new angles are the problem of a longer context.' },
          { text: 'The fast ones', because: 'Fast pairs complete a cycle every few positions, so they have seen every angle many times.' },
          { text: 'None', because: 'The slowest wavelength is 2π · 10000^(126/128) ≈ 54,000 positions.' },
        ],
      },
      controls(dims, shared.base, trained, factor),
      section('What each method does to each pair', figureOf({
        label: 'Factor on the frequency of each pair, for each scaling',
        request: () => ({ kind: 'scaling', schemes: [scheme().json], trained: view.get(trained), factor: view.get(factor) }),
        command: () => `posenc plot scaling ${scheme().words} --trained ${view.get(trained)} --factor ${view.get(factor)}`,
      })),
      section('What is in my model?', modelBox())));
  },
};
