import { formulas } from 'posenc-formulas/order';
import { h } from '../dom';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { type TextParam, view } from '../state';
import { controls } from '../controls';
import { storyOf } from '../story';

const words: TextParam = { key: 'text', label: 'Your sentence (2 to 12 words)', kind: 'text', start: 'dog bites man', longest: 120 };

function cards(): HTMLElement {
  const box = h('div', { class: 'cards-row', role: 'group', 'aria-label': 'Words. Alt+Left and Alt+Right move the focused word.' });
  const move = (from: number, to: number) => {
    const list = view.get(words).trim().split(/\s+/);
    if (to < 0 || to >= list.length) return;
    list.splice(to, 0, ...list.splice(from, 1));
    view.set(words, list.join(' '));
    (box.children[to] as HTMLElement | undefined)?.focus();
  };
  let dragged = -1;
  const refresh = () => {
    const list = view.get(words).trim().split(/\s+/);
    box.replaceChildren(...list.map((word, index) => {
      const card = h('button', { type: 'button', class: 'word', draggable: 'true' },
        h('span', {}, word), ' ', h('small', {}, String(index)));
      card.addEventListener('keydown', (event) => {
        if (!event.altKey || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
        event.preventDefault();
        move(index, index + (event.key === 'ArrowRight' ? 1 : -1));
      });
      card.addEventListener('click', () => move(index, (index + 1) % list.length));
      card.addEventListener('dragstart', () => { dragged = index; });
      card.addEventListener('dragover', (event) => event.preventDefault());
      card.addEventListener('drop', () => move(dragged, index));
      return card;
    }));
  };
  view.onChange(refresh);
  refresh();
  return box;
}

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
        story.update();
      }
    });
    root.append(
      text('Attention compares every word with every word. Nothing in that comparison depends on where a word occurs. Shuffle the words and watch the numbers: rows move, but no number changes until position is added.'),
      maths(math(formulas.attention), math(formulas.equivariance)),
      controls(words),
      h('p', { class: 'presets' }, 'Or take ', ...presets.map((one) => h('button', { type: 'button', onclick: () => view.set(words, one) }, one))),
      h('p', { class: 'hint' }, 'Drag a word, press it to move it one place, or use Alt with the arrow keys.'),
      cards(),
      guess({
        question: 'Swap the first and the last word. Without position, what happens to the output of each word?',
        choices: [
          { text: 'It stays the same, and its row moves along', right: true, because: 'Attention is permutation-equivariant: Att(Π·X) = Π·Att(X). The rows are permuted, the numbers in them are the same.' },
          { text: 'It changes a little', because: 'The score of two words does not depend on where they occur, so no number can change.' },
          { text: 'All outputs become equal', because: 'Different words still have different rows. Only their order is lost.' },
        ],
      }, section('The example, computed', story),
      section('The proof, line by line', text('Each line of the proof is an identity. Its residual is computed here; zero, apart from rounding, means that it holds.'), storyOf({ name: 'permutation-proof' }))));
  },
};
