import { ask } from '../core';
import { h, shown } from '../dom';
import { type Page, section, text } from '../lesson';
import { type ChoiceParam, view } from '../state';
import { controls } from '../controls';
import { heatColours } from '../draw';

const sort: ChoiceParam = { key: 'sort', label: 'Order', kind: 'choice', start: 'list', options: [['list', 'as listed'], ['family', 'by family'], ['met', 'by properties that hold']] };

type Row = { name: string; family: string; formula: string; findings: any[]; map: HTMLElement };

// 24 × 24 similarities of positions: dot products of vectors, or what a bias adds.
async function mapOf(scheme: any, family: string): Promise<HTMLElement> {
  const n = 24, values = new Float64Array(n * n);
  try {
    if (family === 'bias') {
      const { bytes } = await ask({ call: 'scores', scheme, length: n, head: 0 });
      values.set(new Float64Array(bytes.buffer));
    } else if (family === 'addition' || family === 'rotation') {
      const { json, bytes } = await ask({ call: 'table', scheme, first: 0, count: n });
      const table = new Float32Array(bytes.buffer);
      for (let i = 0; i < n; ++i) for (let k = 0; k < n; ++k) {
        let sum = 0;
        for (let c = 0; c < json.columns; ++c) sum += table[i * json.columns + c] * table[k * json.columns + c];
        values[i * n + k] = sum;
      }
    }
  } catch {
    return h('span', { class: 'hint' }, '–');
  }
  const least = Math.min(...values), most = Math.max(...values), colours = heatColours();
  const canvas = h('canvas', { width: n, height: n, class: 'mini', role: 'img', 'aria-label': `Map of ${n} by ${n} positions, from ${shown(least)} to ${shown(most)}` });
  const context = canvas.getContext('2d')!, image = context.createImageData(n, n), pixels = new Uint32Array(image.data.buffer);
  const middle = (least + most) / 2, half = Math.max((most - least) / 2, 1e-12);
  values.forEach((value, i) => { pixels[i] = colours[Math.round(256 + 256 * ((value - middle) / half))]; });
  context.putImageData(image, 0, 0);
  return canvas;
}

export const page: Page = {
  id: 'schemes', title: 'All schemes side by side',
  goal: 'Compare every scheme: where it acts, its map of positions, and each property measured in this page.',
  render(root) {
    const body = h('tbody'), head = h('tr'), rows: Row[] = [];
    const progress = h('p', { class: 'note', role: 'status' }, 'Measuring…');
    const table = h('table', { class: 'schemes' }, h('thead', {}, head), body);
    root.append(
      text('Every ✓ and ✗ is measured now, by the library, on 64 features and 64 positions; hover or focus one to read the number. Trained tables are filled with random numbers.'),
      controls(sort),
      section('Properties', progress, h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Properties of every scheme' }, table),
        h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' }, h('span', {}, 'The same on the command line'), h('code', {}, 'posenc prove --length 64'))));
    const draw = () => {
      const met = (row: Row) => row.findings.filter((one) => one.outcome === 'holds').length;
      const ordered = [...rows];
      if (view.get(sort) === 'family') ordered.sort((a, b) => a.family.localeCompare(b.family));
      if (view.get(sort) === 'met') ordered.sort((a, b) => met(b) - met(a));
      body.replaceChildren(...ordered.map((row) => h('tr', {}, h('th', { scope: 'row' }, row.name, h('small', {}, row.family)), h('td', {}, row.map),
        ...row.findings.map((one) => {
          const mark = one.outcome === 'holds' ? '✓' : one.outcome === 'fails' ? '✗' : '–';
          const words = one.outcome === 'does-not-apply' ? `${one.heading}: does not apply` : `${one.statement}: ${one.outcome} (${shown(one.measured)}, bound ${shown(one.bound)})`;
          return h('td', {}, h('span', { class: `mark ${one.outcome}`, title: words, tabindex: 0, role: 'img', 'aria-label': words }, mark));
        }))));
    };
    view.onChange(draw);
    const measure = async () => {
      const { json } = await ask({ call: 'schemes' });
      for (const scheme of json.schemes ?? json) {
        const name = scheme.name ?? scheme.scheme;
        const defaults: any = { scheme: name };
        for (const field of scheme.fields ?? []) if (field.name === 'width' || field.name === 'dims') defaults[field.name] = 64;
        const proved = (await ask({ call: 'prove', scheme: { scheme: name }, length: 64 })).json;
        if (!head.childElementCount) head.append(h('th', { scope: 'col' }, 'Scheme'), h('th', { scope: 'col' }, 'Map'), ...proved.findings.map((one: any) => h('th', { scope: 'col', title: one.statement }, one.heading)));
        rows.push({ name, family: scheme.family, formula: scheme.formula, findings: proved.findings, map: await mapOf(defaults, scheme.family) });
        progress.textContent = `${rows.length} schemes measured`;
        draw();
        await new Promise((resolve) => setTimeout(resolve));  // the page stays alive between schemes
        if (!root.isConnected) return;
      }
      root.dataset.done = 'yes';
    };
    measure().catch((error) => { progress.textContent = String(error); });
  },
};
