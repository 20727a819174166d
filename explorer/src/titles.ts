// The pages in the order of learning, as links show them; map.ts has their code.

export type Title = { id: string; title: string; short: string; goal: string; isHidden?: boolean;
  /// the module that its first figure asks
  first?: 'core' | 'figures' | 'lab' | 'stories' | 'practice' };

export const titles: Title[] = [
  { id: 'start', short: 'Start', title: 'Start', goal: '', first: 'core' },
  { id: 'invent', short: 'Invent it', title: 'You could have invented it', goal: 'Eight ideas, from counting to RoPE, each asked for by the one before.', first: 'core' },
  { id: 'order', short: 'Order', title: 'Without position, attention cannot tell order', goal: 'Shuffle a sentence and watch the scores.', first: 'core' },
  { id: 'waves', short: 'Waves', title: 'Waves and fingerprints', goal: 'Zoom from 16 to a million positions.', first: 'core' },
  { id: 'phasors', short: 'Phasors', title: 'A shift is a rotation', goal: 'Pairs as clock hands, and the matrix between them.', first: 'core' },
  { id: 'distance', short: 'Distance', title: 'The dot product depends only on distance', goal: 'Flat lines, and what breaks them.', first: 'figures' },
  { id: 'frank', short: 'Frank and Alex', title: 'One calculation from start to end', goal: 'Open every cell into its products.', first: 'stories' },
  { id: 'rope', short: 'RoPE', title: 'RoPE: rotate the query and the key', goal: 'Drag both hands; their score depends only on m − n.', first: 'core' },
  { id: 'images', short: 'Images and video', title: 'Images and video: a position with several axes', goal: 'Rows, columns and time: axial, mixed, M-RoPE.', first: 'figures' },
  { id: 'tables', short: 'Trained tables', title: 'Trained tables beside sinusoids', goal: 'What a model learns if nobody tells it; drop GPT-2 or BERT.', first: 'figures' },
  { id: 'schemes', short: 'All schemes', title: 'All schemes side by side', goal: 'Every property, measured in the page.' },
  { id: 'decay', short: 'Decay', title: 'Does similarity fall with distance?', goal: 'RoPE, ALiBi and others against distance.', first: 'figures' },
  { id: 'context', short: 'Longer context', title: 'How each method rescales frequencies', goal: 'Linear, NTK, YaRN, Llama 3; read your own config.json.', first: 'figures' },
  { id: 'model', short: 'A real model', title: 'A real model, and where it breaks', goal: 'Type a text; watch loss and attention past the trained length.', first: 'lab' },
  { id: 'exact', short: 'Exactness', title: 'What float32 and bf16 do to the angle', goal: 'Errors from position 1 to 100 million.', first: 'figures' },
  { id: 'lab', short: 'Lab', title: 'The lab: who extrapolates?', goal: 'Published claims, tested by training small models.' },
  { id: 'check', short: 'Check mine', title: 'Identify a convention from two tensors', goal: 'Drop .npy files from before and after.' },
  { id: 'stories', short: 'Worked examples', title: 'Worked examples', goal: 'From a shuffled sentence to a longer context, every number computed.' },
  { id: 'practice', short: 'Practice', title: 'Exercises, questions and flash cards', goal: 'Endless exercises; cards when they are due.', first: 'practice' },
  { id: 'reference', short: 'Reference', title: 'Every scheme, its formula and fields', goal: 'Search, copy, compare.' },
  { id: 'guides', short: 'Guides', title: 'Guides', goal: 'The program, the library and Python, with real output.' },
  { id: 'search', short: 'Search', title: 'Search', goal: '', isHidden: true },
];
