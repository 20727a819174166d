// How far attention over permuted tokens is from its permuted output: for any scheme, with and without a causal mask.

import { controls } from '../controls';
import { ask } from '../core';
import { copyText, h, prose, shown, words as inWords } from '../dom';
import { type ChoiceParam, type FlagParam, view } from '../state';

const scheme: ChoiceParam = {
  key: 'with', label: 'Position', kind: 'choice', start: 'none',
  options: [['none', 'none'], ['sinusoidal', 'Sinusoidal'], ['learned', 'Learned'], ['rope', 'RoPE'], ['alibi', 'ALiBi'], ['t5', 'T5']],
};
const causal: FlagParam = { key: 'causal', label: 'Causal mask', kind: 'flag', start: false };

export function orderMeter(): HTMLElement {
  const number = h('output', { class: 'meter-number' }), words = h('p', {}), code = h('code');
  const bar = h('span', { class: 'bar with' }, h('span', { class: 'filled' })), box = h('div', { class: 'meter', role: 'status' }, h('p', {}, '‖Att(ΠX) − Π·Att(X)‖∞ = ', number), bar, words);
  let asked = 0, last = '';
  const refresh = async () => {
    const name = view.get(scheme), now = `${name} ${view.get(causal)}`;
    if (now === last) return;
    last = now;
    const mine = ++asked;
    box.dataset.waiting = 'yes';
    const { json } = await ask({ call: 'prove', scheme: { scheme: name }, length: 64 });
    if (mine !== asked) return;
    const found = json.findings.find((one: any) => one.property === (view.get(causal) ? 'sees-order-causal' : 'sees-order'));
    number.textContent = shown(found.measured, 3);
    // from the rounding of a double to 1, by factors
    bar.style.setProperty('--share', `${Math.max(0, Math.min(100, 100 * (1 + Math.log2(Math.max(found.measured, 2 ** -60)) / 60)))}%`);
    words.replaceChildren(h('strong', {}, found.outcome === 'holds' ? 'Order matters. ' : 'Order is lost. '), prose(found.meaning));
    code.replaceChildren(...inWords(`posenc prove ${name} --length 64`));
    delete box.dataset.waiting;
  };
  view.onChange(() => { if (box.isConnected) refresh(); });
  refresh();
  return h('div', {}, controls(scheme, causal), box,
    h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), code, h('button', { type: 'button', onclick: () => copyText(code.textContent!) }, 'Copy')));
}
