// Runs before the page's own code has arrived: which page the address names, the module of its first figure, its scripts.
// All of them are then on their way at once, instead of one finding the next.

import { type Begun, load, startWorker } from './loading';

/// Made when the site is built: what each page begins with.
declare const beginnings: { [page: string]: { module?: string; scripts: string[]; cover?: string } };

// Chosen colours, before anything is drawn in others.
try {
  const theme = localStorage.getItem('posenc-theme');
  if (theme && theme !== 'auto') document.documentElement.dataset.theme = theme;
} catch { /* nothing is kept here */ }

const fields = new URLSearchParams(location.hash.slice(1));
const page = fields.get('p') ?? new URLSearchParams(location.search).get('embed') ?? document.documentElement.dataset.page ?? 'start';
// a view of somebody's own has another figure than the page was built with
const isAsBuilt = [...fields.keys()].every((key) => key === 'v' || key === 'p') && (!fields.has('p') || page === document.documentElement.dataset.page);
if (!isAsBuilt) document.documentElement.dataset.view = 'own';
const { module, scripts, cover } = Object.hasOwn(beginnings, page) ? beginnings[page] : { scripts: [], cover: undefined };
const preload = (rel: string, href: string, as: string): void => { document.head.append(Object.assign(document.createElement('link'), { rel, href, as })); };
if (module && window.posencBegun === undefined) {
  const compiled = load(module);
  compiled.catch(() => undefined);  // who asks for it tries again
  const begun: Begun = window.posencBegun = { name: module, compiled };
  try {
    begun.worker = startWorker();
  } catch { /* workshop.ts finds out, too */ }
}
for (const href of scripts) preload('modulepreload', href, 'script');
if (cover && (fields.get('v') ?? '1') === '1' && [...fields.keys()].every((key) => key === 'v' || key === 'p')) preload('preload', cover, 'image');
