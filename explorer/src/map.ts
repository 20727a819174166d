// The pages in the order of learning. Each is loaded when it is first opened.

import type { Page } from './lesson';

export type Lesson = { id: string; title: string; short: string; goal: string; load: () => Promise<{ page: Page }>; isHidden?: boolean };

export const lessons: Lesson[] = [
  { id: 'start', short: 'Start', title: 'Start', goal: '', load: () => import('./pages/start') },
  { id: 'order', short: 'Order', title: 'Without position, attention cannot tell order', goal: 'Shuffle a sentence and watch the scores.', load: () => import('./pages/order') },
  { id: 'waves', short: 'Waves', title: 'Waves and fingerprints', goal: 'Zoom from 16 to a million positions.', load: () => import('./pages/waves') },
  { id: 'phasors', short: 'Phasors', title: 'A shift is a rotation', goal: 'Pairs as clock hands, and the matrix between them.', load: () => import('./pages/phasors') },
  { id: 'distance', short: 'Distance', title: 'The dot product depends only on distance', goal: 'Flat lines, and what breaks them.', load: () => import('./pages/distance') },
  { id: 'frank', short: 'Frank and Alex', title: 'One calculation from start to end', goal: 'Open every cell into its products.', load: () => import('./pages/frank') },
  { id: 'schemes', short: 'All schemes', title: 'All schemes side by side', goal: 'Every property, measured in the page.', load: () => import('./pages/compare') },
  { id: 'decay', short: 'Decay', title: 'Does similarity fall with distance?', goal: 'RoPE, ALiBi and others against distance.', load: () => import('./pages/decay') },
  { id: 'context', short: 'Longer context', title: 'How each method rescales frequencies', goal: 'Linear, NTK, YaRN, Llama 3; read your own config.json.', load: () => import('./pages/context') },
  { id: 'exact', short: 'Exactness', title: 'What float32 and bf16 do to the angle', goal: 'Errors from position 1 to 100 million.', load: () => import('./pages/exact') },
  { id: 'check', short: 'Is mine right?', title: 'Identify a convention from two tensors', goal: 'Drop .npy files from before and after.', load: () => import('./pages/check') },
  { id: 'lab', short: 'Lab', title: 'The lab: who extrapolates?', goal: 'Published claims, tested by training small models.', load: () => import('./pages/lab') },
  { id: 'practice', short: 'Practice', title: 'Exercises, questions and flash cards', goal: 'Endless exercises; cards when they are due.', load: () => import('./pages/practice') },
  { id: 'reference', short: 'Reference', title: 'Every scheme, its formula and fields', goal: 'Search, copy, compare.', load: () => import('./pages/reference') },
  { id: 'guides', short: 'Guides', title: 'Guides', goal: 'The program, the library and Python, with real output.', load: () => import('./pages/guides') },
  { id: 'search', short: 'Search', title: 'Search', goal: '', load: () => import('./pages/search'), isHidden: true },
];
