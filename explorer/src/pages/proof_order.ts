// The lines of the proof, to be put in order. They are the steps of the worked example.

import { ask } from '../core';
import { announce, h, prose } from '../dom';

/// The same number gives the same order: a link restores it.
export async function proofOrder(number: number): Promise<HTMLElement> {
  const { json } = await ask({ call: 'story', name: 'permutation-proof' });
  const lines: { text: string; place: number }[] = json.steps.filter((step: any) => /^Line \d/.test(step.heading))
    .map((step: any, place: number) => ({ text: step.heading.replace(/^Line \d+: /, ''), place }));
  // any order but the right one
  let order = [...lines], random = number;
  do {
    for (let last = order.length - 1; last > 0; --last) {
      random = (Math.imul(random, 1103515245) + 12345) >>> 0;
      const other = (random >>> 8) % (last + 1);
      [order[last], order[other]] = [order[other], order[last]];
    }
  } while (order.every((line, index) => line.place === index));
  const list = h('ol', { class: 'ordering' }), verdict = h('p', { class: 'verdict', role: 'status' });
  const move = (from: number, to: number) => {
    if (to < 0 || to >= order.length) return;
    order.splice(to, 0, ...order.splice(from, 1));
    verdict.className = 'verdict';
    verdict.textContent = '';
    draw();
    (list.children[to].querySelector('.line') as HTMLElement).focus();
    announce(`Line ${to + 1}: ${order[to].text}`);
  };
  const draw = () => list.replaceChildren(...order.map((line, index) => {
    const button = h('button', { type: 'button', class: 'line', onclick: () => move(index, index === order.length - 1 ? 0 : index + 1) }, prose(line.text));
    button.addEventListener('keydown', (event) => {
      if (!['ArrowUp', 'ArrowDown'].includes(event.key)) return;
      event.preventDefault();
      move(index, index + (event.key === 'ArrowDown' ? 1 : -1));
    });
    return h('li', {}, button);
  }));
  const check = () => {
    const right = order.filter((line, index) => line.place === index).length, isRight = right === order.length;
    verdict.className = `verdict ${isRight ? 'right' : 'wrong'}`;
    verdict.textContent = isRight ? '✓ Right: each line uses the one before it.' : `✗ Not yet: ${right} of ${order.length} lines are in their place.`;
  };
  draw();
  return h('div', {}, h('p', { class: 'hint' }, 'Press a line to move it down, or use the arrow keys.'), list,
    h('div', { class: 'tools' }, h('button', { type: 'button', id: 'check-order', onclick: check }, 'Check the order')), verdict);
}
