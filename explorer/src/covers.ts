// The figure that stands for a page where none of its scripts run: in a preview, on paper of a crawler, without JavaScript.

/// The words after `posenc plot` that draw the first figure of each page, as it is when the page is opened.
export const covers: { [page: string]: string } = {
  start: 'heatmap sinusoidal --width 128 --zoom 0:96',
  invent: 'waves steps --width 2 --step 1 --features 0 --zoom 0:16',
  waves: 'waves sinusoidal --width 64 --base 10000 --zoom 0:128',
  phasors: 'phasors sinusoidal --width 16 --base 10000 --at 37 --shift 3',
  distance: 'dots sinusoidal --width 64 --base 10000 --zoom 0:24',
  tables: 'similarity sinusoidal --width 64 --zoom 0:64',
  decay: 'decay rope --dims 64 --base 10000 alibi --heads 8 --zoom 0:257',
  context: 'scaling rope --dims 128 --base 10000 --trained 8192 --factor 8',
  exact: 'error rope --dims 128 --base 10000 --zoom 1:1000000',
  images: `ids rope --dims 128 --base 10000 --sections 16,24,24 --spec 'text:6 image:8x12 text:5 video:4x8x12@1 text:6'`,
  // pages whose first figure is another: one that is about the same
  order: 'dots learned --width 64 --zoom 0:24', frank: 'heatmap sinusoidal --width 6 --zoom 0:4', rope: 'phasors rope --dims 16 --at 37 --key 12',
  schemes: 'decay sinusoidal --width 64 rope --dims 64 alibi --heads 8 --zoom 0:64', model: 'decay rope --dims 16 alibi --heads 4 --zoom 0:512', lab: 'bias alibi --heads 8 --lines --zoom 0:64',
  check: 'phasors rope --dims 8 --at 5 --key 2', stories: 'similarity sinusoidal --width 64 --zoom 0:32', practice: 'fingerprint sinusoidal --width 16 --at 37', reference: 'heatmap rope --dims 64 --zoom 0:64', guides: 'waves sinusoidal --width 16 --zoom 0:64',
};

/// The pages whose first figure this is, word for word; it is shown until that figure is computed.
export const ownCovers = ['start', 'invent', 'waves', 'phasors', 'distance', 'tables', 'decay', 'context', 'exact', 'images'];
