// A worked example in other words: ten lines of numpy, and the figure of its command.

import { copyText, h } from '../dom';
import { figureOf } from '../figure';
import { requestOf } from '../plot_words';

export function storyCode({ title, python, figure }: { title: string; python: string; figure?: string }): HTMLElement {
  const copy = (text: string) => h('button', { type: 'button', onclick: () => copyText(text) }, 'Copy');
  const place = h('div', {}), command = `posenc ${figure}`;
  let isDrawn = false;
  return h('details', { class: 'story-code', ontoggle: () => {
    if (isDrawn || !figure) return;
    isDrawn = true;
    place.append(h('h3', {}, 'As a figure'), figureOf({ label: `Figure of: ${title}`, request: () => requestOf(figure), command: () => command }));
  } }, h('summary', {}, figure ? 'The same in numpy, and as a figure' : 'The same in numpy'),
  h('pre', { tabindex: 0 }, h('code', {}, python)), h('div', { class: 'tools' }, copy(python)), place);
}
