// Models of the lab, on a text of the reader's: where each scheme ends to work.

import { controls, explore, take } from '../controls';
import { Superseded } from '../core';
import { announce, h, shown } from '../dom';
import { figureOf } from '../figure';
import { type Page, section, text } from '../lesson';
import { spend, withFrame } from '../pace';
import { type ChoiceParam, type FlagParam, type NumberParam, type TextParam, linkTo, shared, view } from '../state';
import { models } from 'posenc-lab-models';
import { type Run, continuation, lossFigure, mapFigure, mean, modelOf, runModel, titles } from './model_run';

// From the last tenth of the book, which the models have not seen.
const passage = 'It was a clear steel-blue day. The firmaments of air and sea were\nhardly separable in that all-pervading azure; only, the pensive air was\ntransparently pure and soft, with a woman\'s look, and the robust and\nman-like sea heaved with long, strong, lingering swells, as Samson\'s\nchest in his sleep.\n\nHither, and thither, on high, glided the snow-white wings of small,\nunspeckled birds; these were the gentle thoughts of the feminine air;\nbut to and fro in the deeps, far down in the bottomless blue, rushed\nmighty l';
const longest = 512;

const scheme: ChoiceParam = { key: 'ms', label: 'Position by', kind: 'choice', start: 'rope', options: models.map((one) => [one.scheme, titles[one.scheme]]) };
const length: NumberParam = { key: 'chars', label: 'Characters read', kind: 'whole', start: 256, least: 16, most: longest, steps: 'octaves' };
const layer: NumberParam = { key: 'layer', label: 'Layer', kind: 'whole', start: 2, least: 1, most: models[0].layers, choices: Array.from({ length: models[0].layers }, (_, i) => i + 1) };
const head: NumberParam = { key: 'head', label: 'Head', kind: 'whole', start: 1, least: 1, most: models[0].heads, choices: Array.from({ length: models[0].heads }, (_, i) => i + 1) };
const compare: FlagParam = { key: 'all', label: 'All schemes, measured', kind: 'flag', start: true };
const words: TextParam = { key: 'txt', label: 'Text', kind: 'text', start: passage, longest: 600 };

const textOf = (): string => view.get(words).slice(0, view.get(length));
const perplexity = (loss: number): string => Math.exp(loss).toPrecision(3);

// Each character as dark as it surprised the model.
function tintedText(): { root: HTMLElement; draw(run: Run): void } {
  const root = h('p', { class: 'tinted', role: 'img' }), steps = 7, worst = 6;
  let letters: HTMLElement[] = [], seen = '';
  return {
    root,
    draw(run) {
      const whole = view.get(words), { context } = modelOf(run.scheme);
      if (whole !== seen) {
        seen = whole;
        letters = [...whole].map((one) => h('span', {}, one));
        root.replaceChildren(...letters);
      }
      letters.forEach((letter, i) => {
        const loss = i ? run.losses[i - 1] : 0, tint = i < run.length ? `t${Math.min(steps, Math.floor((steps * loss) / worst + 0.5))}${i === context ? ' edge' : ''}` : 'unread';
        if (letter.className !== tint) letter.className = tint;
      });
      root.setAttribute('aria-label', `The text, each character as dark as it surprised the model: ${whole.slice(0, run.length)}`);
    },
  };
}

// What a run shows, in a sentence.
function sentence(run: Run): string {
  const { context } = modelOf(run.scheme), within = mean(run.losses, 0, Math.min(context - 1, run.losses.length));
  const start = `${titles[run.scheme]}: ${shown(within, 3)} nats a character within the first ${Math.min(context, run.length)} (perplexity ${perplexity(within)})`;
  if (run.length <= context) return `${start}. It was trained on ${context} at a time: read more.`;
  const beyond = mean(run.losses, context - 1), more = beyond - within;
  return `${start}, ${shown(beyond, 3)} after them (perplexity ${perplexity(beyond)}). ${more > 0.5 ? 'Past its trained length it is lost.' : more > 0.15 ? 'Past its trained length it gets worse.' : 'It reads on as if nothing had happened.'}`;
}

export const page: Page = {
  id: 'model', title: 'A real model, and where it breaks',
  goal: 'Type a text, change scheme and length, and watch loss and attention past the trained length.',
  render(root) {
    const said = h('p', { class: 'reading', role: 'status' }, 'The model is loading …'), tinted = tintedText();
    let run: Run | undefined, asked = '', turn = 0, drawn = 0;
    const owner = {};
    const command = () => `posenc lab train --scheme ${view.get(scheme)} --text moby-dick.txt --size 64 --width 64 --heads 4 --layers 3 --batch 16 --steps 2500`;
    const others = () => (view.get(compare) ? models.map((one) => one.scheme) : [view.get(scheme)]);
    const loss = figureOf({ label: 'Loss at each position of the text', request: () => ({ drawn, others: others(), length: view.get(length) }), made: () => lossFigure(view.get(scheme), view.get(length), others(), run?.scheme === view.get(scheme) ? run : undefined), command,
      cursor: { param: shared.m, axis: 'x', range: () => [1, Math.max(2, view.get(length) - 1)] } });
    const map = figureOf({ label: 'Attention: who looks where', request: () => ({ drawn }), made: () => run && mapFigure(run, view.get(layer) - 1, view.get(head) - 1), command,
      cursor: { param: shared.m, axis: 'y', range: () => [0, view.get(length) - 1] } });
    const refresh = async () => {
      const key = JSON.stringify([view.get(scheme), textOf(), view.get(layer), view.get(head)]), isMoving = view.isMoving(150);
      const coarse = isMoving ? 96 : longest;
      if (`${key} ${coarse}` === asked) return;
      asked = `${key} ${coarse}`;
      const mine = ++turn;
      said.dataset.waiting = 'yes';
      try {
        if (textOf().length < 2) throw new Error('Type at least two characters.');
        const done = await runModel(view.get(scheme), textOf(), view.get(layer) - 1, view.get(head) - 1, coarse, { owner });
        if (mine !== turn || !root.isConnected) return;
        run = done;
        ++drawn;
        loss.request();
        map.request();
        spend(() => tinted.draw(done));
        said.className = 'reading';
        said.textContent = sentence(run) + (run.replaced ? ` ${run.replaced} of the characters do not occur in the book; the model reads blanks in their place.` : '');
        if (isMoving) setTimeout(() => { if (mine === turn) refresh(); }, 200);
        else delete said.dataset.waiting;
      } catch (error) {
        if (error instanceof Superseded || mine !== turn) return;
        asked = '';
        delete said.dataset.waiting;
        said.className = 'reading refused';
        said.textContent = (error as Error).message;
      }
    };
    const box = h('textarea', { id: 'model-text', rows: 4, maxlength: words.longest, spellcheck: 'false' });
    box.value = view.get(words);
    box.addEventListener('input', () => view.set(words, box.value));
    view.onChange(() => { if (document.activeElement !== box) take(box, { value: view.get(words) }); withFrame(refresh); });
    box.disabled = view.locks(words.key);

    root.append(
      explore([scheme, length, compare],
        section('The loss', said, loss, h('h3', {}, 'The text'), tinted.root,
          h('p', { class: 'note' }, 'The darker a character, the less the model expected it. The bar is where its training ended.'),
          h('label', { for: box.id }, 'Your own text'), box, writer()),
        section('Where it looks', controls(layer, head), map)),
      section('What this is',
        text(`Five models with ${shown(models[0].parameters)} parameters or a little more: ${models[0].layers} layers, ${models[0].heads} heads, width ${models[0].width}. \`posenc lab\` trained each on Moby Dick, a character at a time, in windows of ${models[0].context} characters, from the same start and in the same order. Only the encoding of position differs.`,
          'They run in this page: attention is the library\'s, compiled to WebAssembly, and nothing is sent anywhere. A weight has one byte, so that a model has less than 250 KB, which is loaded when you choose it.',
          'What to see: within the trained length those with a position are close to each other, and ahead of the one without. Past it, sinusoids and a learned table meet codes that they have never seen, RoPE meets distances that it has never seen, and ALiBi meets neither, since what is far hardly counts. One text is one text: the measured lines are means over many.'),
        h('p', {}, 'More: ', h('a', { href: linkTo('lab') }, 'the lab'), ' tests published claims about this; ', h('a', { href: linkTo('tables') }, 'trained tables'), ' shows what the learned one learned.')));
    refresh();
  },
};

// The model goes on from where the text ends, a few characters at a time.
function writer(): HTMLElement {
  const count = 64, each = 8, written = h('p', { class: 'written', role: 'status' });
  let turn = 0;
  const start = h('button', { type: 'button', onclick: async () => {
    const mine = ++turn, from = textOf(), by = view.get(scheme);
    let more = '';
    try {
      while (more.length < count && mine === turn && written.isConnected) {
        more += await continuation(by, from + more, each, 1 + more.length);
        if (mine === turn) written.replaceChildren(h('span', { class: 'soft' }, `… ${from.slice(-24)}`), h('strong', {}, more));
      }
      announce(more);
    } catch (error) {
      written.textContent = (error as Error).message;
    }
  } }, 'Let it write on');
  view.onChange(() => { ++turn; });
  return h('div', {}, h('div', { class: 'tools' }, start), written);
}
