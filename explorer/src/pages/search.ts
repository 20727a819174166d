import { guides } from 'posenc-guides';
import { index } from 'posenc-search-index';
import { stories } from 'posenc-stories';
import { controls } from '../controls';
import { announce, h, prose } from '../dom';
import { type Page } from '../lesson';
import { type TextParam, linkTo, linkToStory, view } from '../state';
import { titles } from '../titles';
import { examples } from './model_examples';
import { mine } from './model_param';

export const query: TextParam = { key: 'q', label: 'Search pages, guides, schemes and examples', kind: 'text', start: '', longest: 80 };

const plain = (html: string): string => {
  const holder = document.createElement('template');
  holder.innerHTML = html.replace(/<[^>]*>/g, ' ');  // cells and items are words of their own
  return holder.content.textContent!.replace(/\s+/g, ' ');
};

type Entry = { title: string; where: string; text: string; link: string };
type Found = Entry & { rank: number };

const models = Object.keys(examples);
const others: Entry[] = [
  ...titles.filter((one) => !one.isHidden).map((one) => ({ title: one.title.startsWith(one.short) ? one.title : `${one.short}: ${one.title}`, where: 'Page', text: `${one.goal} ${index.pages[one.id] ?? ''}`, link: linkTo(one.id) })),
  ...index.schemes.map((one) => ({ title: one.name, where: 'Scheme', text: one.text, link: `${linkTo('reference')}&q=${one.name}` })),
  ...stories.map((one) => ({ title: one.title, where: `Worked example: \`posenc explain ${one.name}\``, text: `${one.text} (${one.name})`, link: linkToStory(one.name) })),
  ...models.map((one) => ({ title: one, where: 'Model', text: 'What its config.json says about position.', link: `${linkTo('start')}&${mine.key}=${encodeURIComponent(one)}` })),
];
const sectionsOf = async (guide: typeof guides[number]): Promise<Entry[]> => (await guide.load()).sections.map((one) => ({
  title: one.title || guide.title, where: `Guide: ${guide.title}`, text: plain(one.html), link: `${linkTo('guides')}&g=${guide.id}${one.id ? `&part=${one.id}` : ''}`,
}));

// Words of letters and digits; what is joined by a hyphen or a point counts as one word and as its parts: "gpt-2", "2.5".
const wordsIn = (text: string): string[] => (text.toLowerCase().match(/[\p{L}\p{N}]+(?:[-._][\p{L}\p{N}]+)*/gu) ?? []).flatMap((word) => (/[-._]/.test(word) ? [word, word.replace(/[-._]/g, ''), ...word.split(/[-._]/)] : [word]));
type Indexed = { entry: Entry; title: string[]; text: string[] };
// A guide that does not arrive is not searched.
const indexOf = async (): Promise<Indexed[]> => [...others, ...(await Promise.allSettled(guides.map(sectionsOf))).flatMap((one) => (one.status === 'fulfilled' ? one.value : []))].map((entry) => ({ entry, title: wordsIn(entry.title), text: wordsIn(entry.text) }));
// A whole word counts more than its beginning; nothing is found in the middle of a word.
const rankIn = (list: string[], word: string): number => (list.includes(word) ? 2 : list.some((one) => one.startsWith(word)) ? 1 : 0);

/// Every word must be there; in a title it counts more than in the text, and a page more than what stands in a guide.
function find(all: Indexed[], words: string): Found[] {
  const wanted = (words.toLowerCase().match(/[\p{L}\p{N}]+(?:[-._][\p{L}\p{N}]+)*/gu) ?? []);
  if (!wanted.length) return [];
  return all.map(({ entry, title, text }) => {
    const ranks = wanted.map((word) => 3 * rankIn(title, word) || rankIn(text, word));
    return { ...entry, rank: ranks.includes(0) ? 0 : ranks.reduce((sum, rank) => sum + rank, 0) + (entry.where.startsWith('Guide') ? 0 : 0.5) };
  }).filter((one) => one.rank > 0).sort((a, b) => b.rank - a.rank);
}

/// The words around the first match.
function excerpt(text: string, words: string): string {
  const at = Math.max(0, text.toLowerCase().indexOf(words.toLowerCase().split(/\s+/)[0]));
  const from = at < 60 ? 0 : text.indexOf(' ', at - 60) + 1;
  const to = text.length > from + 170 ? text.lastIndexOf(' ', from + 170) : text.length;  // no word is cut
  return `${from ? '… ' : ''}${text.slice(from, to)}${to < text.length ? ' …' : ''}`;
}

export const page: Page = {
  id: 'search', title: 'Search',
  goal: 'Find a page, a guide, a scheme or a worked example by its words.',
  async render(root) {
    const all = await indexOf();
    const list = h('ol', { class: 'found' }), count = h('p', { class: 'note', role: 'status' });
    const draw = () => {
      const words = view.get(query), found = find(all, words).slice(0, 40);
      count.textContent = words ? `${found.length === 40 ? 'The first 40' : found.length} found` : '';
      list.replaceChildren(...found.map((one) => h('li', {}, h('a', { href: one.link }, one.title), h('small', {}, prose(one.where)), h('p', {}, excerpt(one.text, words)))));
      if (words) announce(count.textContent!);
    };
    root.append(controls(query), count, list);
    view.onChange(draw);
    draw();
  },
};
