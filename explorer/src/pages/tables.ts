// Tables of positions that were trained, beside sinusoids: a small one of the lab, and those of files that are dropped.

import { question } from 'posenc-guesses/tables';
import { explore } from '../controls';
import { announce, h, shown, takesDrops } from '../dom';
import { type PeFigure, figureOf } from '../figure';
import { type Page, guess, section, text } from '../lesson';
import { type ChoiceParam, type NumberParam, linkTo, shared, view } from '../state';
import { openTensors } from '../tensor_file';
import { modelOf, tensorOf } from './model_run';

type Table = { name: string; rows: number; columns: number; dtype: string; bytes: Uint8Array; trained: number; words: string };

const shownRows: NumberParam = { key: 'rows', label: 'Positions', kind: 'whole', start: 64, least: 8, most: 1024, steps: 'octaves' };
const which: ChoiceParam = { key: 'tab', label: 'Shown', kind: 'choice', start: 'similarity', options: [['similarity', 'similarity of positions'], ['heatmap', 'the table itself']] };

const labTable = async (): Promise<Table> => {
  const { rows, columns, bytes } = await tensorOf('learned', 'position.table');
  return { name: 'the lab\'s model', rows, columns, dtype: 'f64', bytes, trained: modelOf('learned').context, words: '--table model-learned/checkpoint.safetensors:position.table' };
};

// What models call the table; the longest common ending counts.
const usual = ['wpe.weight', 'position_embeddings.weight', 'embed_positions.weight', 'position_embedding.weight', 'pos_embed', 'position.table'];
const dtypes: { [descr: string]: string } = { '<f4': 'f32', '<f8': 'f64', '<f2': 'f16', '<u2': 'bf16' };

// The numbers behind the head of a .npy file, as read() gives them.
function fromNpy(name: string, npy: Uint8Array, words: string): Table {
  if (npy.length < 10 || npy[0] !== 0x93) throw new Error('is neither .safetensors nor .npy');
  const headSize = npy[6] === 1 ? npy[8] + 256 * npy[9] : new DataView(npy.buffer, npy.byteOffset).getUint32(8, true), from = (npy[6] === 1 ? 10 : 12) + headSize;
  const head = new TextDecoder().decode(npy.subarray(10, from)), descr = /'descr': '([^']*)'/.exec(head)?.[1] ?? '', shape = [...(/'shape': \(([^)]*)\)/.exec(head)?.[1] ?? '').matchAll(/\d+/g)].map(Number);
  const used = shape.filter((one) => one !== 1);
  if (!(descr in dtypes)) throw new Error(`has numbers of type ${descr || 'unknown'}; a table is f64, f32, f16 or bf16`);
  if (/'fortran_order': True/.test(head)) throw new Error('is written column by column; save it with numpy.ascontiguousarray');
  if (used.length !== 2) throw new Error(`has the shape [${shape.join(', ')}]; a table is [positions, features]`);
  const size = used[0] * used[1] * { f64: 8, f32: 4, f16: 2, bf16: 2 }[dtypes[descr]]!;
  if (npy.length - from !== size) throw new Error(`has ${shown(npy.length - from)} bytes of numbers, and its shape needs ${shown(size)}`);
  return { name, rows: used[0], columns: used[1], dtype: dtypes[descr], bytes: npy.slice(from), trained: used[0], words };
}

async function opened(file: File): Promise<Table> {
  const found = await openTensors(file);
  const name = usual.flatMap((ending) => found.names.filter((one) => one.endsWith(ending)))[0] ?? (found.names.length === 1 ? found.names[0] : undefined);
  if (name === undefined) throw new Error(`has no table of positions (${usual.slice(0, 3).join(', ')} …)`);
  return fromNpy(name ? `${name} of ${file.name}` : file.name, await found.read(name), `--table ${file.name}${name ? `:${name}` : ''}`);
}

export const page: Page = {
  id: 'tables', title: 'Trained tables beside sinusoids',
  goal: 'What a model learns about position if nobody tells it.',
  render(root) {
    let table: Table | undefined, count = 0;
    const count_of = () => Math.min(view.get(shownRows), table?.rows ?? view.get(shownRows));
    const zoom = () => ({ from: 0, to: count_of() });
    const cursor = { param: shared.m, axis: 'y' as const, range: (): [number, number] => [0, count_of() - 1] };
    const learned: PeFigure = figureOf({
      label: 'A trained table of positions', cursor,
      request: () => ({ kind: view.get(which), schemes: [{ scheme: 'learned', rows: table?.rows ?? 512, width: table?.columns ?? 64 }], zoom: zoom(), ...(table ? { table: { rows: table.rows, columns: table.columns, dtype: table.dtype }, count } : {}) }),
      table: () => table?.bytes,
      command: () => `posenc plot ${view.get(which)} learned --rows ${table?.rows ?? 512} --width ${table?.columns ?? 64} ${table?.words ?? ''} --zoom 0:${zoom().to}`,
    });
    const fixed = figureOf({
      label: 'Sinusoids of the same width', cursor,
      request: () => ({ kind: view.get(which), schemes: [{ scheme: 'sinusoidal', width: table?.columns ?? 64 }], zoom: zoom() }),
      command: () => `posenc plot ${view.get(which)} sinusoidal --width ${table?.columns ?? 64} --zoom 0:${zoom().to}`,
    });
    const name = h('h2', {}, 'Trained'), about = h('p', { class: 'note', role: 'status' }), refused = h('p', { class: 'note', role: 'alert' });
    // as high as what comes
    const first = h('div', {}, h('div', { class: 'figure-place' })), place = h('div', { class: 'side-by-side' }, h('div', {}, name, first), h('div', {}, h('h2', {}, 'Sinusoids'), fixed));
    const show = (next: Table) => {
      table = next;
      ++count;
      name.textContent = `Trained: ${next.name}`;
      about.textContent = `${shown(next.rows)} positions of ${shown(next.columns)} numbers.${next.trained < next.rows ? ` The model was trained on ${next.trained} characters at a time: the rows after that are as they were at the start, by chance.` : ''}`;
      if (learned.isConnected) { learned.request(); fixed.request(); } else first.replaceChildren(learned);
    };
    const take = async (file?: File) => {
      if (!file) return;
      try {
        show(await opened(file));
        refused.className = 'note';
        refused.textContent = '';
        announce(about.textContent!);
        if (view.get(shownRows) === shownRows.start) view.set(shownRows, Math.min(512, table!.rows));
      } catch (error) {
        refused.className = 'note refused';
        refused.textContent = `${file.name}: ${(error as Error).message}.`;
      }
    };
    const input = h('input', { type: 'file', accept: '.safetensors,.npy', id: 'table-file' });
    input.addEventListener('change', () => take(input.files?.[0]));
    const box = h('div', { class: 'drop' }, h('label', { for: input.id }, 'model.safetensors of GPT-2, BERT …, or a table as .npy'), input, refused);
    takesDrops(box, take);
    root.append(
      text('The oldest alternative to a formula is a table with a row for each position, trained like everything else. Nobody tells it that position 6 lies between 5 and 7. This one was learned by a small model of the lab from Moby Dick.'),
      explore([which, shownRows], place, about),
      guess(question),
      section('What to see', text('Each cell of a similarity map compares two positions: 1 on the diagonal, where a position meets itself. In sinusoids every diagonal has one value, so that only the distance counts. In a trained table neighbours have become similar by themselves, as far as it was trained; the first row differs most, since every text begins with it. After the trained length (show more positions) there is only noise, which is why such a model cannot read on.')),
      section('A table of yours', text('Drop the `.safetensors` of a model with trained positions, such as GPT-2 (`wpe.weight`) or BERT (`position_embeddings.weight`). Only the table is read from the file, in this page, and sent nowhere. Nothing is downloaded.'), box,
        h('p', {}, 'Its model reads a text on the page ', h('a', { href: `${linkTo('model')}&ms=learned` }, 'A real model'), '.')));
    name.dataset.waiting = 'yes';
    // the weights come after the sinusoids, with which they would share the way
    void fixed.ready.then(labTable).then(show, (error) => { refused.className = 'note refused'; refused.textContent = (error as Error).message; }).finally(() => { delete name.dataset.waiting; });
  },
};
