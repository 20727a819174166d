import { type TextParam } from '../state';

/// The model whose name a link has: an example of model_examples.ts.
export const mine: TextParam = { key: 'mine', label: 'Model', kind: 'text', start: '', longest: 80 };
