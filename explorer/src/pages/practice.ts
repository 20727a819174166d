import { exercise } from 'posenc-first-exercise';
import { controls } from '../controls';
import { ask, fileBytes } from '../core';
import { announce, code, copyText, download, h, prose } from '../dom';
import { type Page, localStorageGet, localStorageSet, section, text } from '../lesson';
import { proofOrder } from './proof_order';
import { walkthrough } from './walkthrough';
import { type ChoiceParam, type NumberParam, view } from '../state';

const seed: NumberParam = { key: 'seed', label: 'Exercise', kind: 'whole', start: 1, least: 1, most: 1_000_000_000 };
const sheet: ChoiceParam = { key: 'print', label: 'On paper', kind: 'choice', start: '1', options: [['1', 'one card a page'], ['8', 'eight cards a page'], ['2', 'eight a sheet, double-sided']] };
// In bytes: years of cards.
const longestProgress = 4_000_000;
const stored = 'posenc-practice';
const today = () => Math.floor((Date.now() - new Date().getTimezoneOffset() * 60_000) / 86_400_000);

function exercises(): HTMLElement {
  const box = h('div', { class: 'exercise' });
  const show = async () => {
    const json = view.get(seed) === exercise.seed ? exercise : (await ask({ call: 'exercise', seed: view.get(seed) })).json;
    const hadFocus = box.contains(document.activeElement);
    const input = h('input', { type: 'text', inputmode: 'decimal', id: 'answer', autocomplete: 'off' });
    const verdict = h('p', { class: 'verdict', role: 'status' });
    const form = h('form', {}, h('label', { for: 'answer' }, json.whole ? 'Your answer (a whole number)' : `Your answer (${json.decimals} decimal${json.decimals === 1 ? '' : 's'})`), input, h('button', { type: 'submit' }, 'Check'),
      h('button', { type: 'button', onclick: () => { verdict.className = 'verdict'; verdict.replaceChildren(prose(json.hint)); } }, 'Hint'),
      h('button', { type: 'button', onclick: () => { verdict.className = 'verdict'; verdict.replaceChildren(h('strong', {}, json.answer), '. ', prose(json.working)); } }, 'Show answer'),
      h('button', { type: 'button', id: 'next-exercise', onclick: () => view.set(seed, view.get(seed) + 1) }, 'Next'));
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const graded = (await ask({ call: 'grade', seed: view.get(seed), typed: input.value })).json;
      const words: { [mark: string]: string } = {
        right: '✓ Right.', 'too-few-digits': '✓ Right as far as it goes; give more digits.', 'known-mistake': '✗ Not quite.',
        wrong: '✗ Not quite, and it matches no common mistake. Try again.', 'not-a-number': '✗ That is not a number.' };
      verdict.className = `verdict ${graded.mark === 'right' ? 'right' : 'wrong'}`;
      verdict.replaceChildren(h('strong', {}, words[graded.mark]), ' ', prose(graded.because.join(' ')), graded.mark === 'right' ? prose(' ' + json.working) : '');
    });
    box.replaceChildren(h('h3', {}, `Exercise ${json.seed}`), h('p', { class: 'prompt' }, prose(json.prompt)), form, verdict,
      json.command ? h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), code(json.command), h('button', { type: 'button', onclick: () => copyText(json.command) }, 'Copy')) : '');
    if (hadFocus) box.querySelector<HTMLElement>('#next-exercise')!.focus();
  };
  let last = view.get(seed);
  view.onChange(() => { if (view.get(seed) !== last) { last = view.get(seed); show(); } });
  show();
  return box;
}

async function cardsAndQuestions(): Promise<HTMLElement> {
  const box = h('div', { class: 'flash' });
  const [cards, questions] = await Promise.all([ask({ call: 'cards' }), ask({ call: 'questions' })]);
  const items = new Map<string, any>([...cards.json, ...questions.json].map((item: any) => [item.id, item]));
  const review = async (extra: object) => {
    const { json } = await ask({ call: 'review', progress: localStorageGet(stored) ?? '', day: today(), ...extra });
    localStorageSet(stored, json.progress);
    return json.order as string[];
  };
  let order = await review({}), began = 0;
  const place = h('div', { class: 'flash-card', tabindex: 0, role: 'group', 'aria-label': 'Card. Space shows the answer, 1 to 4 say how well you knew it.' });
  const grade = async (value: number) => {
    const id = order[0];
    order = (await review({ id, grade: value, at: Math.floor(Date.now() / 1000), milliseconds: Math.round(performance.now() - began) })).filter((one) => one !== id);
    show();
    place.focus();
  };
  let isOpen = false;
  const show = () => {
    began = performance.now();
    isOpen = false;
    const item = items.get(order[0]);
    if (!item) {
      place.replaceChildren(h('p', {}, 'Nothing is due. Come back tomorrow.'));
      return;
    }
    const back = h('div', { class: 'back' });
    back.hidden = true;
    const right = item.choices?.find((choice: any) => choice.right);
    back.append(h('p', {}, prose(item.back ?? item.answer ?? right?.text ?? '')), right ? h('p', {}, prose(right.because)) : '');
    const grades = h('div', { class: 'choices', role: 'group', 'aria-label': 'How well did you know it?' },
      ...['again', 'hard', 'good', 'easy'].map((word, index) => h('button', { type: 'button', onclick: () => grade(index + 1) }, h('kbd', {}, String(index + 1)), ` ${word}`)));
    grades.hidden = true;
    const open = () => { isOpen = true; back.hidden = grades.hidden = false; const hadFocus = reveal === document.activeElement; reveal.hidden = true; if (hadFocus) place.focus(); announce(back.textContent ?? ''); };
    const reveal = h('button', { type: 'button', class: 'reveal', onclick: open }, h('kbd', {}, 'space'), ' Show the answer');
    place.replaceChildren(h('p', { class: 'topic' }, item.topic), h('p', { class: 'front' }, prose(item.front ?? item.prompt)),
      item.choices?.length ? h('ol', {}, ...item.choices.map((choice: any) => h('li', {}, prose(choice.text)))) : '', reveal, back, grades);
    place.onkeydown = (event) => {
      if (event.target !== place && event.key === ' ') return;
      if (event.key === ' ' && !isOpen) { event.preventDefault(); open(); }
      if (isOpen && '1234'.includes(event.key)) grade(Number(event.key));
    };
  };
  show();
  const loaded = h('p', { class: 'note', role: 'status' });
  const file = h('input', { type: 'file', accept: '.json', id: 'progress-file', class: 'visually-hidden' });
  file.addEventListener('change', async () => {
    const given = file.files?.[0];
    if (!given) return;
    try {
      if (given.size > longestProgress) throw new Error('is larger than 4 MB, so that it is no progress of this page');
      const text = await given.text();
      if (!text.trim()) throw new Error('is empty');
      order = (await ask({ call: 'review', progress: text, day: today() })).json.order;
      localStorageSet(stored, text);
      show();
      loaded.className = 'note';
      loaded.textContent = '';
    } catch (error) {
      loaded.className = 'note refused';
      loaded.textContent = `${given.name}: ${(error as Error).message}`;
    }
    file.value = '';  // so that the same file can be chosen again
  });
  box.append(place, h('div', { class: 'tools' },
    h('button', { type: 'button', onclick: () => download('posenc-practice.json', new Blob([localStorageGet(stored) ?? ''], { type: 'application/json' })) }, 'Save progress'),
    file, h('label', { for: 'progress-file', class: 'button' }, 'Load progress'),
    h('button', { type: 'button', onclick: () => print() }, 'Print the cards'),
    h('button', { type: 'button', id: 'anki', onclick: async () => download('posenc.apkg', new Blob([await fileBytes('posenc.apkg')], { type: 'application/octet-stream' })) }, 'Anki deck')), loaded,
    controls(sheet),
    h('p', { class: 'hint' }, 'Progress stays in this browser. The deck is what this prints: ', h('code', {}, 'posenc cards -o posenc.apkg')));
  const paper = h('div', { class: 'print-cards', 'aria-hidden': 'true' });
  const front = (card: any) => [h('p', { class: 'topic' }, card.topic), h('p', { class: 'front' }, prose(card.front))], back = (card: any) => h('p', {}, prose(card.back));
  const onPaper = (...parts: Node[]) => h('article', { class: 'print-card' }, ...parts);
  // Fronts, then backs: each row of backs runs the other way, as the sheet is turned over along its long edge.
  const sheets = () => Array.from({ length: Math.ceil(cards.json.length / 8) }, (_, i) => cards.json.slice(8 * i, 8 * i + 8)).flatMap((eight: any[]) => [
    h('div', { class: 'sheet' }, ...eight.map((card) => onPaper(...front(card)))),
    h('div', { class: 'sheet' }, ...Array.from({ length: 2 * Math.ceil(eight.length / 2) }, (_, i) => eight[i ^ 1]).map((card) => (card ? onPaper(back(card)) : onPaper())))]);
  let arranged = '';
  const arrange = () => {
    const how = view.get(sheet);
    if (how === arranged) return;
    arranged = how;
    paper.classList.toggle('eight', how !== '1');
    paper.classList.toggle('double', how === '2');
    paper.replaceChildren(...(how === '2' ? sheets() : cards.json.map((card: any) => onPaper(...front(card), h('hr'), back(card)))));
  };
  view.onChange(arrange);
  arrange();
  box.append(paper);
  return box;
}

export const page: Page = {
  id: 'practice', title: 'Practice: exercises, questions and flash cards',
  goal: 'Compute values by hand and see which mistake explains a wrong one; review cards when they are due.',
  async render(root) {
    root.append(text('Each exercise is generated from its number, so the same number always gives the same exercise, here and on the command line.'),
      section('Fill in the number', exercises()));
    root.append(section('Fill in two rows of the table', await walkthrough()));
    root.append(section('Put the proof in order', text('Attention without position is permutation-equivariant: `Att(Π·X) = Π·Att(X)`. In which order do these lines prove it?'), await proofOrder(view.get(seed))));
    root.append(section('Cards and questions that are due', await cardsAndQuestions()));
  },
};
