// Every worked example of the library, one at a time, each at an address of its own.

import { stories } from 'posenc-stories';
import { h, prose } from '../dom';
import { type Page } from '../lesson';
import { type TextParam, linkTo, linkToStory, view } from '../state';
import { storyOf } from '../story';
import { storyCode } from './story_code';

const chosen: TextParam = { key: 'story', label: 'Example', kind: 'text', start: '', longest: 60 };

function whole(at: number): Node[] {
  const one = stories[at], step = (to: number, words: string, kind: string) => (stories[to] ? h('a', { href: linkToStory(stories[to].name), class: kind }, h('small', {}, words), stories[to].title) : h('span'));
  return [h('p', {}, h('a', { href: linkTo('stories') }, 'All worked examples')), h('h2', { tabindex: -1 }, prose(one.title)), h('p', { class: 'goal' }, prose(one.text)), storyOf({ name: one.name }), storyCode(one),
    h('div', { class: 'steps' }, step(at - 1, 'Previous example', 'previous'), step(at + 1, 'Next example', 'next'))];
}

export const page: Page = {
  id: 'stories', title: 'Worked examples',
  goal: 'Small calculations from start to end. Click any number to see the products it is the sum of.',
  render(root) {
    let drawn: string | undefined;
    const draw = () => {
      const name = view.get(chosen), at = stories.findIndex((one) => one.name === name);
      if (name === drawn) return;
      const isFirst = drawn === undefined;
      drawn = name;
      root.replaceChildren(...(at >= 0 ? whole(at) : [name ? h('p', { class: 'note refused' }, `There is no worked example “${name}”. These are all:`) : '',
        h('ol', { class: 'map' }, ...stories.map((one) => h('li', {}, h('a', { href: linkToStory(one.name) }, h('strong', {}, prose(one.title)), h('span', {}, prose(one.text))))))]));
      if (isFirst || at < 0) return;
      scrollTo(0, 0);
      root.querySelector('h2')?.focus();
    };
    view.onChange(draw);
    draw();
  },
};
