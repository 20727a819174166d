import { guides, index } from 'posenc-documents';
import { controls } from '../controls';
import { announce, h, prose } from '../dom';
import { type Page } from '../lesson';
import { type TextParam, linkTo, view } from '../state';
import { titles } from '../titles';

export const query: TextParam = { key: 'q', label: 'Search pages, guides, schemes and examples', kind: 'text', start: '', longest: 80 };

const plain = (html: string): string => {
  const holder = document.createElement('template');
  holder.innerHTML = html.replace(/<[^>]*>/g, ' ');  // cells and items are words of their own
  return holder.content.textContent!.replace(/\s+/g, ' ');
};

type Found = { title: string; where: string; text: string; link: string; rank: number };

const all: Omit<Found, 'rank'>[] = [
  ...titles.filter((one) => !one.isHidden).map((one) => ({ title: one.title, where: 'Page', text: one.goal, link: linkTo(one.id) })),
  ...index.schemes.map((one) => ({ title: one.name, where: 'Scheme', text: one.text, link: `${linkTo('reference')}&q=${one.name}` })),
  ...index.stories.map((one) => ({ title: one.title, where: `Worked example: posenc explain ${one.name}`, text: one.text, link: `${linkTo('guides')}&g=stories` })),
  ...guides.flatMap((guide) => guide.sections.map((one) => ({
    title: one.title || guide.title, where: `Guide: ${guide.title}`, text: plain(one.html), link: `${linkTo('guides')}&g=${guide.id}${one.id ? `&part=${one.id}` : ''}`,
  }))),
];

/// Every word must be there; in a title it counts more than in the text.
export function find(words: string): Found[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return [];
  return all.map((one) => {
    const title = one.title.toLowerCase(), text = one.text.toLowerCase();
    const ranks = wanted.map((word) => (title.includes(word) ? 3 : text.includes(word) ? 1 : 0));
    return { ...one, rank: ranks.includes(0) ? 0 : ranks.reduce<number>((sum, rank) => sum + rank, 0) };
  }).filter((one) => one.rank > 0).sort((a, b) => b.rank - a.rank);
}

/// The words around the first match.
function excerpt(text: string, words: string): string {
  const at = Math.max(0, text.toLowerCase().indexOf(words.toLowerCase().split(/\s+/)[0]));
  const from = at < 60 ? 0 : text.indexOf(' ', at - 60) + 1;
  return `${from ? '… ' : ''}${text.slice(from, from + 170)}${text.length > from + 170 ? ' …' : ''}`;
}

export const page: Page = {
  id: 'search', title: 'Search',
  goal: 'Find a page, a guide, a scheme or a worked example by its words.',
  render(root) {
    const list = h('ol', { class: 'found' }), count = h('p', { class: 'note', role: 'status' });
    const draw = () => {
      const words = view.get(query), found = find(words).slice(0, 40);
      count.textContent = words ? `${found.length === 40 ? 'The first 40' : found.length} found` : '';
      list.replaceChildren(...found.map((one) => h('li', {}, h('a', { href: one.link }, one.title), h('small', {}, prose(one.where)), h('p', {}, excerpt(one.text, words)))));
      if (words) announce(count.textContent!);
    };
    root.append(controls(query), count, list);
    view.onChange(draw);
    draw();
  },
};
