import { question } from 'posenc-guesses/check';
import { ask } from '../core';
import { copyText, h, npyOf, shown, takesDrops } from '../dom';
import { type Page, guess, section, text } from '../lesson';
import { conventionWords, verdictWords } from '../scheme_words';
import { type Tensors, openTensors } from '../tensor_file';

// Queries rotated with each pair side by side: right for GPT-J, the usual mistake with Hugging Face's Llama.
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

// Rows of numbers, as a debugger or print(x) shows them.
function parsed(words: string): Uint8Array | undefined {
  const rows = words.split('\n').map((line) => [...line.matchAll(/[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/g)].map(([number]) => Number(number))).filter((row) => row.length);
  if (!rows.length || rows.some((row) => row.length !== rows[0].length)) return undefined;
  return npyOf([rows.length, rows[0].length], Float32Array.from(rows.flat()));
}

type Given = { name: string; bytes: Uint8Array };

const diagnosed = async (one: Uint8Array, other: Uint8Array): Promise<any> => {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return (await ask({ call: 'diagnose', first_bytes: one.length }, both)).json;
};

// Which of the two files an error is about: the one that gives it by itself.
async function blamed(message: string, given: Given[]): Promise<string> {
  for (const { name, bytes } of given) {
    const alone = await diagnosed(bytes, bytes).then(() => '', (error) => (error as Error).message);
    if (alone === message) return `${name}: ${message}`;
  }
  return message;
}

function shownResult(json: any, command?: string): HTMLElement[] {
  const rows = json.best ? Object.entries(json.best).filter(([, value]) => value !== null && value !== false && !(Array.isArray(value) && !value.length)) : [];
  const words = (value: unknown): string => (typeof value === 'object' ? Object.entries(value as object).map(([name, one]) => `${name} ${one}`).join(', ') : typeof value === 'number' ? shown(value, 6) : String(value));
  return [
    h('h3', {}, verdictWords[json.verdict] ?? json.verdict),
    ...(json.best && ['sure', 'likely'].includes(json.verdict) ? [h('p', {}, conventionWords(json.best))] : []),
    ...(json.remarks.length ? [h('ul', {}, ...json.remarks.map((remark: string) => h('li', {}, remark)))] : []),
    ...(rows.length ? [h('details', {}, h('summary', {}, 'Everything that was measured'), h('dl', { class: 'facts' }, ...rows.flatMap(([name, value]) => [h('dt', {}, name.replaceAll('_', ' ')), h('dd', {}, words(value))])))] : []),
    ...(command ? [h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), h('code', {}, command), h('button', { type: 'button', onclick: () => copyText(command) }, 'Copy'))] : []),
  ];
}

// Of the tensors in one file, which is likely meant.
const likely = (names: string[], index: number): string => names.find((name) => (index ? /after|rot|out/i : /before|in\b|^q$|^k$/i).test(name)) ?? names[Math.min(index, names.length - 1)];

/// One of the two places: a file, one of its tensors, or numbers that are pasted.
class Place {
  given?: Given;
  readonly box: HTMLElement;
  private said = h('p', { class: 'note', role: 'status' });
  private tensors = h('select', { id: '' });
  private choice = h('div', { class: 'control' });
  other?: Place;

  constructor(private index: number, private name: string, private changed: () => Promise<void>) {
    const input = h('input', { type: 'file', accept: '.npy,.safetensors', id: `npy-${index}` });
    input.addEventListener('change', () => this.take(input.files?.[0]));
    const paste = h('textarea', { id: `paste-${index}`, rows: 3, spellcheck: 'false', placeholder: '0.12, −1.3, …: a line for each token' });
    paste.addEventListener('change', async () => {
      const bytes = parsed(paste.value.replaceAll('−', '-'));
      this.given = bytes && { name: `${this.name.toLowerCase()}.npy`, bytes };
      this.say(bytes || !paste.value.trim() ? '' : 'Every line must have as many numbers as the first.', true);
      await this.changed();
    });
    this.tensors.id = `tensor-${index}`;
    this.choice.append(h('label', { for: this.tensors.id }, 'Tensor'), this.tensors);
    this.choice.hidden = true;
    this.box = h('div', { class: 'drop' }, h('label', { for: input.id }, `${name} (.npy or .safetensors)`), input, this.choice, this.said,
      h('details', {}, h('summary', {}, 'Or paste numbers'), h('label', { for: paste.id, class: 'hint' }, `${name}: a line for each token`), paste));
    takesDrops(this.box, (file) => this.take(file));
  }

  say(text: string, isBad = false): void {
    this.said.className = isBad && text ? 'note refused' : 'note';
    this.said.textContent = text;
  }

  async take(file?: File): Promise<void> {
    if (!file) return;
    this.given = undefined;
    try {
      const found = await openTensors(file);
      await this.hold(found);
      // one file may hold both
      if (found.names.length > 1 && this.other && !this.other.given) await this.other.hold(found);
    } catch (error) {
      this.say(`${file.name}: ${(error as Error).message}.`, true);
    }
    await this.changed();
  }

  private async hold(found: Tensors): Promise<void> {
    const isMany = found.names.length > 1 || found.names[0] !== '';
    const read = async (name: string) => {
      this.given = { name: isMany ? `${found.file.name}, ${name}` : found.file.name, bytes: await found.read(name) };
      this.say(`${this.given.name} is taken.`);
    };
    this.choice.hidden = !isMany;
    this.tensors.replaceChildren(...found.names.map((name) => h('option', { value: name }, name)));
    this.tensors.value = likely(found.names, this.index);
    this.tensors.onchange = async () => {
      this.given = undefined;
      await read(this.tensors.value).catch((error) => this.say(`${found.file.name}: ${(error as Error).message}.`, true));
      await this.changed();
    };
    await read(this.tensors.value);
  }

  set(given: Given): void {
    this.given = given;
    this.choice.hidden = true;
    this.say(`${given.name} is taken.`);
  }
}

export const page: Page = {
  id: 'check', title: 'Check mine: identify a convention from two tensors',
  goal: 'Drop a tensor from before and after your implementation and see which convention, or which bug, explains it.',
  render(root) {
    const result = h('div', { class: 'result', role: 'status' });
    let asked = 0;
    const show = async () => {
      const mine = ++asked, given = places.map((one) => one.given).filter((one) => one !== undefined);
      if (given.length < 2) return result.replaceChildren();
      try {
        const json = await diagnosed(given[0].bytes, given[1].bytes);
        if (mine === asked) result.replaceChildren(...shownResult(json, given.every((one) => one.name.endsWith('.npy')) ? `posenc diagnose --before ${given[0].name} --after ${given[1].name}` : undefined));
      } catch (error) {
        // what a program may allow, a page does not ask
        const message = (await blamed((error as Error).message, given)).replace(' (allow trailing bytes to read it anyway)', '');
        if (mine === asked) result.replaceChildren(h('p', { class: 'note refused' }, message));
      }
    };
    const places = [new Place(0, 'Before', show), new Place(1, 'After', show)];
    places[0].other = places[1];
    places[1].other = places[0];
    root.append(
      text('Save queries or keys before and after the rotation (or tokens before and after sinusoids were added) as `.npy` or `.safetensors`: [sequence, features], float32. One head and 16 tokens are enough. The files are read in this page and sent nowhere.'),
      section('Two tensors', h('div', { class: 'drops' }, ...places.map((one) => one.box)),
        h('p', { class: 'presets' }, h('button', { type: 'button', id: 'try-example', onclick: async () => {
          (await example()).forEach((bytes, i) => places[i].set({ name: ['before.npy', 'after.npy'][i], bytes }));
          await show();
        } }, 'Try an example: interleaved pairs, base 500,000')),
        result),
      guess(question),
      section('The usual mistakes', h('ul', {},
        ...['Pairs (i, i + d/2) for weights that expect (2i, 2i + 1), or the other way round.', 'Sine and cosine swapped.', 'Exponent i/d instead of 2i/d.',
          'Positions that start at 1, or a cache that counts from 0 again.', 'A base or scaling that differs from the model\'s.', 'Rotated twice, or along the axis of heads.', 'Positions or frequencies rounded to bf16.'].map((line) => h('li', {}, line)))));
  },
};
