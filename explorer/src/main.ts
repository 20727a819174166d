// Opens the page that the address names, and builds the frame around it.

import { type PeFigure } from './figure';
import './figure';
import { announce, copyText, h, put } from './dom';
import { localStorageGet, localStorageSet } from './lesson';
import { loaders } from './map';
import { embedded, linkTo, view } from './state';
import { titles } from './titles';
import { expect } from './workshop';

const main = document.getElementById('main')!, nav = document.getElementById('nav')!;
let open = '', turn = 0;

// The first page of each part of the list.
const parts: { [id: string]: string } = { invent: 'Learn', schemes: 'Compare', check: 'Use' };
const links = titles.filter((one) => !one.isHidden).map((one, index) => {
  if (parts[one.id]) nav.append(h('li', { class: 'part' }, parts[one.id]));
  const link = h('a', { href: linkTo(one.id) }, index ? h('span', { class: 'number' }, String(index)) : '', one.short);
  nav.append(h('li', {}, link));
  return link;
});

// A link that names no page says so.
function refuse(): void {
  open = '';
  ++turn;
  view.leavePage();
  links.forEach((link) => link.removeAttribute('aria-current'));
  const words = view.isLater ? 'This link was made by a later version of the explorer, which this one cannot read.' : `There is no page “${view.page.slice(0, 60)}” here.`;
  document.title = 'Not found · posenc';
  main.replaceChildren(h('h1', { tabindex: -1 }, 'Not found'), h('div', { class: 'page', id: 'page-none', 'data-ready': 'yes' }, h('p', {}, words), h('p', {}, h('a', { href: linkTo('start') }, 'To the start'))));
}

// Back and forward return to where the page was left; another page begins at its top.
history.scrollRestoration = 'manual';
const scrolled = new Map<string, number>();
let wentBack = false;
(window as any).navigation?.addEventListener('navigate', (event: { navigationType: string }) => { if (event.navigationType !== 'replace') wentBack = event.navigationType === 'traverse'; });
addEventListener('scroll', () => { if (open && document.getElementById(`page-${open}`)?.dataset.ready) scrolled.set(open, scrollY); }, { passive: true });

if (embedded) document.documentElement.dataset.embed = 'yes';

async function show(): Promise<void> {
  put(document.documentElement, { 'data-hide': view.hidden() });
  const found = titles.findIndex((one) => one.id === view.page), index = Math.max(0, found), { id } = titles[index];
  if (found < 0 || view.isLater) return refuse();
  if (id === open) return;
  open = id;
  const mine = ++turn;
  links.forEach((link, i) => (i === index ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current')));
  links[index]?.scrollIntoView({ block: 'nearest', inline: 'center' });
  const { first } = titles[index];
  if (first) expect(`${first}.wasm`);  // arrives while the page does
  const { page } = await loaders[id]();
  if (mine !== turn) return;
  view.leavePage();
  document.title = `${page.title} · posenc`;
  const body = h('div', { class: 'page', id: `page-${page.id}` });
  const step = (to: number, words: string) => to >= 0 && to < links.length && index < links.length
    ? h('a', { href: linkTo(titles[to].id), class: to > index ? 'next' : 'previous' }, h('small', {}, words), titles[to].short) : h('span');
  main.replaceChildren(h('h1', { tabindex: -1 }, page.title), page.id === 'start' ? '' : h('p', { class: 'goal' }, page.goal), body,
    h('footer', { class: 'steps' }, step(index - 1, 'Previous page'), step(index + 1, 'Next page')));
  try {
    await page.render(body);
  } catch (error) {
    body.append(h('p', { class: 'note refused' }, String(error)));
  }
  body.dataset.ready = 'yes';
  if (embedded) import('./embed').then(({ showOne }) => showOne(main, embedded!.figure));
  followTour();
  // once more, when the style sheet has given the bar its width
  requestAnimationFrame(() => links[index]?.scrollIntoView({ block: 'nearest', inline: 'center' }));
  if (mine > 1) {
    main.querySelector('h1')?.focus({ preventScroll: true });
    scrollTo(0, 0);
    announce(page.title);
    if (!wentBack || !scrolled.get(id)) return;
    const to = scrolled.get(id)!;
    await Promise.all([...body.querySelectorAll<PeFigure>('pe-figure, pe-story')].map((one) => one.ready));
    if (mine === turn) scrollTo(0, to);
  }
}

function setTheme(theme: string): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  localStorageSet('posenc-theme', theme);
  repaint();
}
// Maps are painted, not styled: they are painted again.
const repaint = () => dispatchEvent(new Event('posenc-theme'));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
const themes = h('select', { 'aria-label': 'Colours' }, ...[['auto', 'Auto'], ['light', 'Light'], ['dark', 'Dark']].map(([value, words]) => h('option', { value }, words)));
themes.value = localStorageGet('posenc-theme') ?? 'auto';
themes.addEventListener('change', () => setTheme(themes.value));
if (themes.value !== 'auto') setTheme(themes.value);
const words = h('input', { type: 'search', 'aria-label': 'Search', placeholder: 'Search', maxlength: 80 });
const search = h('form', { class: 'search', role: 'search', onsubmit: (event: Event) => {
  event.preventDefault();
  location.hash = `#v=1&p=search&q=${encodeURIComponent(words.value)}`;
} }, words);
document.getElementById('actions')!.append(search,
  h('button', { type: 'button', class: 'copy-link', onclick: () => copyText(view.link()) }, 'Copy link'), themes);

// The address is the view, so this link moves the focus alone.
document.getElementById('skip')!.addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
(document.querySelector('a.brand') as HTMLAnchorElement).href = linkTo('start');

document.addEventListener('click', (event) => {
  const link = (event.target as Element).closest<HTMLAnchorElement>('a[href*="#v=1&p="]');
  if (link) link.href = view.carriedTo(link.href);
}, true);

// A file that misses its place is not opened in place of the page.
for (const name of ['dragover', 'drop'] as const) addEventListener(name, (event) => { if (event.dataTransfer?.types.includes('Files')) event.preventDefault(); });

// The tour is loaded where an address has one.
let hasTour = false;
const followTour = () => {
  if (!hasTour && !view.names('tour')) return;
  hasTour = true;
  import('./tour').then(({ showTour }) => showTour());
};
view.onChange(followTour, true);

// Each page has its own keys in the address: they stay behind, except for what all pages share (View.carriedTo).
view.onChange(show, true);
show();
