// Two rows to fill in, one number at a time, then a question about them. For a wrong number the page names the mistake that
// leads to it.

import { ask } from '../core';
import { h, prose } from '../dom';

const marks: { [mark: string]: string } = {
  right: '✓', 'too-few-digits': '✓ Give more digits.', 'known-mistake': '✗', wrong: '✗ It matches no common mistake. Try again.', 'not-a-number': '✗ That is not a number.' };

export async function walkthrough(): Promise<HTMLElement> {
  const { json: [one] } = await ask({ call: 'walkthroughs' });
  const result = h('p', { class: 'verdict', role: 'status' });
  const showAnswer = h('button', { type: 'button', onclick: () => result.replaceChildren(prose(one.question.answer)) }, 'Show answer');
  const choices = h('div', { class: 'choices', role: 'group', 'aria-label': 'Possible answers' }, ...one.question.choices.map((choice: any) => h('button', { type: 'button', onclick: () => {
    result.className = `verdict ${choice.right ? 'right' : 'wrong'}`;
    result.replaceChildren(h('strong', {}, choice.right ? '✓ Right. ' : '✗ Not quite. '), prose(choice.because));
  } }, prose(choice.text))));
  const after = h('div', { class: 'after' }, h('p', { class: 'prompt' }, prose(one.question.prompt)), one.question.choices.length ? choices : showAnswer, result);
  after.hidden = true;
  let left = one.steps.flatMap((step: any) => step.blanks).length;
  const steps = one.steps.map((step: any, number: number) => {
    const done = h('p', { class: 'note', role: 'status' });
    let open = step.blanks.length;
    const blanks = step.blanks.map((label: string, index: number) => {
      const box = h('input', { type: 'text', inputmode: 'decimal', autocomplete: 'off', id: `blank-${number}-${index}` }), said = h('span', { class: 'hint', role: 'status' });
      let isRight = false;
      box.addEventListener('change', async () => {
        if (!box.value.trim()) return;
        const { json } = await ask({ call: 'grade-blank', walkthrough: 0, step: number, blank: index, typed: box.value });
        said.replaceChildren(marks[json.mark], ' ', prose(json.because.join(' ')));
        said.className = json.mark === 'right' ? 'good' : 'hint';
        if (json.mark !== 'right' || isRight) return;
        isRight = true;
        if (--open === 0) done.textContent = step.result;
        if (--left === 0) after.hidden = false;
      });
      return h('div', { class: 'control' }, h('label', { for: box.id }, label), box, said);
    });
    return h('div', {}, h('h3', {}, step.heading), h('div', { class: 'controls' }, ...blanks), done);
  });
  return h('div', { class: 'walkthrough' }, h('p', {}, prose(one.setup)), ...steps, after);
}
