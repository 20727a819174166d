import { question } from 'posenc-guesses/check';
import { CoreError, ask } from '../core';
import { copyText, h, npyOf } from '../dom';
import { type Page, guess, section, text } from '../lesson';

// Queries rotated with each pair side by side: right for GPT-J, the usual mistake with a Llama of Hugging Face.
async function example(): Promise<[Uint8Array, Uint8Array]> {
  const rows = 24, columns = 64, pairs = columns / 2;
  const { bytes } = await ask({ call: 'table', scheme: { scheme: 'rope', dims: columns, base: 500000 }, first: 0, count: rows });
  const table = new Float32Array(bytes.buffer), before = new Float32Array(rows * columns), after = new Float32Array(rows * columns);
  let seed = 12345;
  for (let i = 0; i < before.length; ++i) {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    before[i] = (seed / 2 ** 31 - 1) * 2;
  }
  for (let p = 0; p < rows; ++p) {
    for (let i = 0; i < pairs; ++i) {
      const cos = table[p * columns + i], sin = table[p * columns + pairs + i], at = p * columns + 2 * i;
      after[at] = before[at] * cos - before[at + 1] * sin;
      after[at + 1] = before[at + 1] * cos + before[at] * sin;
    }
  }
  return [npyOf([rows, columns], before), npyOf([rows, columns], after)];
}

export const page: Page = {
  id: 'check', title: 'Check mine: identify a convention from two tensors',
  goal: 'Drop a tensor from before and after your implementation and see which convention, or which bug, explains it.',
  render(root) {
    const result = h('div', { class: 'result', role: 'status' });
    const files: (Uint8Array | undefined)[] = [undefined, undefined], names = ['before.npy', 'after.npy'];
    const show = async () => {
      if (!files[0] || !files[1]) return;
      const both = new Uint8Array(files[0].length + files[1].length);
      both.set(files[0]);
      both.set(files[1], files[0].length);
      try {
        const { json } = await ask({ call: 'diagnose', first_bytes: files[0].length }, both);
        const command = `posenc diagnose --before ${names[0]} --after ${names[1]}`;
        const rows = json.best ? Object.entries(json.best).filter(([, value]) => value !== null && value !== false && !(Array.isArray(value) && !value.length)) : [];
        result.replaceChildren(
          h('h3', {}, `Verdict: ${json.verdict}`),
          ...(json.remarks.length ? [h('ul', {}, ...json.remarks.map((remark: string) => h('li', {}, remark)))] : []),
          h('dl', { class: 'facts' }, ...rows.flatMap(([name, value]) => [h('dt', {}, name.replaceAll('_', ' ')), h('dd', {}, typeof value === 'object' ? JSON.stringify(value) : String(value))])),
          h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), h('code', {}, command),
            h('button', { type: 'button', onclick: () => copyText(command) }, 'Copy')));
      } catch (error) {
        result.replaceChildren(h('p', { class: 'note refused' }, error instanceof CoreError ? error.message : String(error)));
      }
    };
    // Rows of numbers, as a debugger or print(x) shows them.
    const parsed = (words: string): Uint8Array | undefined => {
      const rows = words.split('\n').map((line) => [...line.matchAll(/[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/g)].map(([number]) => Number(number))).filter((row) => row.length);
      if (!rows.length || rows.some((row) => row.length !== rows[0].length)) return undefined;
      return npyOf([rows.length, rows[0].length], Float32Array.from(rows.flat()));
    };
    const zone = (index: number, label: string) => {
      const input = h('input', { type: 'file', accept: '.npy', id: `npy-${index}` });
      const take = async (file?: File) => {
        if (!file) return;
        files[index] = new Uint8Array(await file.arrayBuffer());
        names[index] = file.name;
        await show();
      };
      input.addEventListener('change', () => take(input.files?.[0]));
      const paste = h('textarea', { id: `paste-${index}`, rows: 3, spellcheck: 'false', placeholder: '0.12, −1.3, …: a line for each token' });
      const said = h('p', { class: 'note', role: 'status' });
      paste.addEventListener('change', async () => {
        files[index] = parsed(paste.value.replaceAll('−', '-'));
        said.textContent = files[index] || !paste.value.trim() ? '' : 'Every line must have as many numbers as the first.';
        await show();
      });
      const box = h('div', { class: 'drop' }, h('label', { for: input.id }, label), input,
        h('details', {}, h('summary', {}, 'Or paste numbers'), h('label', { for: paste.id, class: 'hint' }, `${names[index].replace('.npy', '')}: a line for each token`), paste, said));
      box.addEventListener('dragover', (event) => event.preventDefault());
      box.addEventListener('drop', (event) => { event.preventDefault(); take(event.dataTransfer?.files[0]); });
      return box;
    };
    root.append(
      text('Save queries or keys before and after the rotation (or tokens before and after sinusoids were added) as `.npy`: [sequence, features], float32. One head and 16 tokens are enough. The files are read in this page and sent nowhere.'),
      guess(question, section('Two tensors', h('div', { class: 'drops' }, zone(0, 'Before (.npy)'), zone(1, 'After (.npy)')),
        h('p', { class: 'presets' }, h('button', { type: 'button', id: 'try-example', onclick: async () => {
          [files[0], files[1]] = await example();
          names[0] = 'before.npy';
          names[1] = 'after.npy';
          await show();
        } }, 'Try an example: interleaved pairs, base 500,000')),
        result),
      section('The usual mistakes', h('ul', {},
        ...['Pairs (i, i + d/2) for weights that expect (2i, 2i + 1), or the other way round.', 'Sine and cosine swapped.', 'Exponent i/d instead of 2i/d.',
          'Positions that start at 1, or a cache that counts from 0 again.', 'A base or scaling that differs from the model\'s.', 'Rotated twice, or along the axis of heads.', 'Positions or frequencies rounded to bf16.'].map((line) => h('li', {}, line))))));
  },
};
