import { formulas } from 'posenc-formulas/order';
import { question } from 'posenc-guesses/order';
import { h } from '../dom';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type TextParam, view } from '../state';
import { explore } from '../controls';
import { storyOf } from '../story';
import { hero } from './hero';
import { orderMeter } from './order_meter';

const words: TextParam = { key: 'text', label: 'Your sentence (2 to 12 words)', kind: 'text', start: 'dog bites man', longest: 120 };

const presets = ['dog bites man', 'the cat sat on the mat', 'Alex likes Emma'];

export const page: Page = {
  id: 'order', title: 'Without position, attention cannot tell order',
  goal: 'See that attention without position gives each word the same output wherever it occurs.',
  render(root) {
    const story = storyOf({ name: 'dog-bites-man', text: () => view.get(words) });
    let last = view.get(words);
    view.onChange(() => {
      if (view.get(words) !== last) {
        last = view.get(words);
        story.request();
      }
    });
    root.append(
      text('Attention compares every word with every word. Nothing in that comparison depends on where a word occurs. Shuffle the words and watch the numbers: rows move, but no number changes until position is added.'),
      explore([words],
      h('p', { class: 'presets' }, 'Or take ', ...presets.map((one) => h('button', { type: 'button', onclick: () => view.set(words, one) }, one))),
      hero(), h('p', { class: 'hint' }, 'Drag a word, press it to move it one place, or use Alt with the arrow keys.'),
      guess(question),
      section('The example, computed', maths(math(formulas.attention), math(formulas.equivariance)), story),
      section('Does order matter?', text('Random tokens are permuted, and attention is computed again. Without position its outputs are permuted alike, and the difference is nothing but rounding. Any positional encoding (or just a causal mask) makes the outputs differ.'), orderMeter()),
      section('The proof, line by line', text('Each line of the proof is an identity. Its residual is computed here; zero, apart from rounding, means that it holds.'), storyOf({ name: 'permutation-proof' }))));
  },
};
