// Configs of models that come with the page.

import { ask } from '../core';
import real from '../data/models.json';

// As these models ship them, reduced to what position needs; models.json names the repository that each was read in.
export const examples: { [name: string]: object } = {
  ...Object.fromEntries(real.map((one) => [one.name, one.config])),
  'Qwen 2.5 7B with YaRN': { model_type: 'qwen2', hidden_size: 3584, num_attention_heads: 28, num_hidden_layers: 28, max_position_embeddings: 32768, rope_theta: 1000000.0,
    rope_scaling: { type: 'yarn', factor: 4.0, original_max_position_embeddings: 32768 } },
  'Mistral 7B v0.3': { model_type: 'mistral', hidden_size: 4096, num_attention_heads: 32, num_hidden_layers: 32, head_dim: 128, max_position_embeddings: 32768, rope_theta: 1000000.0 },
  'GPT-2': { model_type: 'gpt2', n_embd: 768, n_head: 12, n_layer: 12, n_positions: 1024 },
};

export const bytesOf = (name: string): Uint8Array => new TextEncoder().encode(JSON.stringify(examples[name]));
/// What the library reads from the config of an example.
export const readExample = async (name: string): Promise<any> => (await ask({ call: 'model' }, bytesOf(name))).json;
