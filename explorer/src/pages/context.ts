import { formulas } from 'posenc-formulas/context';
import { question } from 'posenc-guesses/context';
import { controls, explore } from '../controls';
import { ask } from '../core';
import { copyText, h, write } from '../dom';
import { type PeFigure, figureOf } from '../figure';
import { follow } from '../follow';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type ChoiceParam, shared, view } from '../state';
import { dims, factor, pair, trained } from './context_params';
import { modelBox } from './model_box';
import { angleNote, modelControl, ownWords, ownScheme, takeModel, watchModel } from './own_model';
import { sized } from './schemes_of_view';

const method: ChoiceParam = { key: 'method', label: 'Method', kind: 'choice', start: 'yarn', options: [['yarn', 'YaRN'], ['llama3', 'Llama 3'], ['linear', 'Linear'], ['dynamic', 'Dynamic NTK']] };

// The block as Hugging Face's config.json has it.
function block(): object {
  const type = view.get(method), times = view.get(factor), length = view.get(trained);
  if (type === 'linear') return { rope_type: type, factor: times };
  if (type === 'llama3') return { rope_type: type, factor: times, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: length };
  return { rope_type: type, factor: times, original_max_position_embeddings: length };
}

// The block, and what the library reads from a config that has it: what is copied is what was checked.
function scalingBlock(): HTMLElement {
  const code = h('code'), read = h('p', { class: 'note', role: 'status' });
  let asked = 0, known = '';
  const refresh = async () => {
    const scaling = block(), now = JSON.stringify([scaling, view.get(dims), view.get(trained), view.get(shared.base)]);
    if (now === known) return;
    known = now;
    const mine = ++asked;
    write(code, `"rope_scaling": ${JSON.stringify(scaling, null, 2)}`);
    const config = { model_type: 'llama', hidden_size: view.get(dims) * 32, num_attention_heads: 32, num_hidden_layers: 32, max_position_embeddings: view.get(trained), rope_theta: view.get(shared.base), rope_scaling: scaling };
    let words;
    try {
      const { json } = await ask({ call: 'model' }, new TextEncoder().encode(JSON.stringify(config)));
      const read = Object.entries(json.layers[0].scheme.scaling).filter(([, value]) => value !== null).map(([name, value]) => `${name} ${value}`);
      words = `Read back from a config of a Llama with ${view.get(dims)} rotary dimensions: ${read.join(', ')}`;
    } catch (error) {
      words = (error as Error).message;
    }
    if (mine === asked) write(read, words);
  };
  follow(read, refresh, true);
  refresh();
  return h('div', {}, controls(method), h('pre', { tabindex: 0 }, code),
    h('div', { class: 'tools' }, h('button', { type: 'button', onclick: () => copyText(code.textContent!) }, 'Copy the block')), read);
}

export const page: Page = {
  id: 'context', title: 'Longer context: how each method rescales frequencies',
  goal: 'Compare linear, NTK, YaRN, Llama-3 and LongRoPE scaling pair by pair; read your own config.json.',
  async render(root) {
    const end = () => Math.round(view.get(trained) * view.get(factor));
    const scheme = () => sized('rope', view.get(dims), view.get(shared.base));
    const figure: PeFigure = figureOf({
      label: 'Factor on the frequency of each pair, for each scaling',
      cursor: { param: pair, axis: 'x', range: () => [0, view.get(dims) / 2 - 1] },
      request: () => ({ kind: 'scaling', schemes: [ownScheme() ?? scheme().json], compare: ownScheme() !== undefined, trained: view.get(trained), factor: view.get(factor) }),
      command: () => `posenc plot scaling ${ownWords() ?? scheme().words}${ownScheme() ? ' --compare' : ''} --trained ${view.get(trained)} --factor ${view.get(factor)}`,
    });
    await watchModel(() => figure.request());
    root.append(
      text('Beyond the trained length, slow pairs reach angles that the model has never seen. Each method slows the pairs differently: linear slows all of them, NTK the slow ones most, YaRN and Llama 3 leave the fast ones alone.'),
      explore([modelControl(), pair, factor, trained, dims, shared.base],
      section('What each method does to each pair', text('Choose a model to draw its own setting next to the usual methods, and how far each of them is from it. LongRoPE has no formula: its factors were searched for one model, so it is drawn for a model that uses it (Phi-3.5 mini).'), figure, angleNote()),
      guess(question),
      maths(math(formulas.linear, 'Linear'), math(formulas.ntk, 'NTK'), math(formulas.yarn, 'YaRN')),
      section('The temperature of the softmax', text('Over more keys the softmax gets flatter. Some models multiply each query by a factor that grows with the logarithm of its position: Llama 4 in steps, Inkling smoothly, SSMax from the first token on. YaRN does the same with one factor for all positions.'), figureOf({
        label: 'Factor on each query against its position',
        cursor: { param: shared.m, axis: 'x', range: () => [0, end() - 1] },
        request: () => ({ kind: 'query-factor', zoom: { from: 0, to: end() } }),
        command: () => `posenc plot query-factor --zoom 0:${end()}`,
      })),
      section('The block for config.json', scalingBlock()),
      section('What is in my model?', modelBox(takeModel))));
  },
};
