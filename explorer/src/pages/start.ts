import { h } from '../dom';
import { type Page, section, text } from '../lesson';
import { figureOf } from '../figure';
import { linkTo, shared, view } from '../state';
import { mine } from './model_param';
import { titles } from '../titles';
import { hero } from './hero';

export const page: Page = {
  id: 'start', title: 'How a Transformer knows word order',
  goal: 'Every positional encoding, computed in front of you.',
  render(root) {
    const model = section('What is in my model?', text('Drop the `config.json` of a model, or a `.gguf` file, and see how it encodes position, layer by layer.'));
    model.id = 'my-model';
    let opened: Promise<void> | undefined;
    const toFile = () => document.getElementById('config-file')!.focus();
    const openBox = () => opened ??= import('./model_box').then(({ modelBox }) => {
      const hadFocus = closed.contains(document.activeElement);
      closed.replaceWith(modelBox((_, example) => view.set(mine, example ?? '')));
      // keyboard users continue here, not at the top of the page
      if (hadFocus) toFile();
    });
    const openAndGo = () => openBox().then(toFile);
    // until it is loaded
    const closed = h('p', {}, h('button', { type: 'button', onclick: openAndGo }, 'Choose a file'));
    model.append(closed);
    root.append(
      h('p', { class: 'lead' }, 'A Transformer compares every word with every word, and forgets where they are. Try it:'),
      hero(true),
      h('p', { class: 'presets' }, h('a', { class: 'button primary', href: linkTo('invent') }, 'Invent the answer yourself, in eight steps'), h('a', { class: 'button', href: `${linkTo('order')}&text=dog+bites+man&tour=1` }, 'Take the tour (3 minutes)'), h('a', { class: 'button', href: '#my-model', onclick: (event: Event) => {
        event.preventDefault();
        model.scrollIntoView();
        openAndGo();
      } }, 'What is in my model?')),
      h('p', { class: 'hint' }, 'Each number on these pages is computed now, in your browser, by the same C++ library that the ', h('code', {}, 'posenc'), ' program uses. Nothing is sent anywhere.'),
      section('A code for every position', text('So each position is given a code of its own, a list of numbers that is added to the word. In the oldest scheme every column is a wave of the position, from fast to slow; a row is the code of one position. Drag across it to read the values.'),
        figureOf({
        label: 'A sinusoidal table: positions down, features across',
        cursor: { param: shared.m, axis: 'y', range: () => [0, 95] },
        request: () => ({ kind: 'heatmap', schemes: [{ scheme: 'sinusoidal', width: 128 }], zoom: { from: 0, to: 96 } }),
        command: () => 'posenc plot heatmap sinusoidal --width 128 --zoom 0:96',
      })),
      section('All pages',
        text('The first page is the short way; the others go through it slowly and then beyond it. Each has a goal, a figure to change, a guess, and the command that prints the same numbers.'),
        h('ol', { class: 'map' }, ...titles.filter((one) => one.id !== 'start' && !one.isHidden).map((one) =>
          h('li', {}, h('a', { href: linkTo(one.id) }, h('strong', {}, one.title), h('span', {}, one.goal)))))));
    root.append(model);
    if (view.get(mine)) openBox().then(() => model.scrollIntoView());
    // loaded when it comes near
    const near = new IntersectionObserver((seen, observer) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      observer.disconnect();
      openBox();
    }, { rootMargin: '300px' });
    near.observe(model);
    view.atEnd(() => near.disconnect());
  },
};
