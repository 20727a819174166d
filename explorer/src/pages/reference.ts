import { formulas } from 'posenc-formulas/reference';
import { schemePages } from 'posenc-scheme-pages';
import { list as known } from 'posenc-scheme-list';
import { code as codeOf, copyText, h, prose } from '../dom';
import { type Page, math, text } from '../lesson';
import { type TextParam, view } from '../state';
import { controls } from '../controls';

const search: TextParam = { key: 'q', label: 'Search', kind: 'text', start: '', longest: 80 };

const codeLine = (language: string, code: string): HTMLElement =>
  h('div', { class: 'command' }, h('span', {}, language), codeOf(code), h('button', { type: 'button', 'aria-label': `Copy: ${language}`, onclick: () => copyText(code) }, 'Copy'));

// One line in each language: make the form once, apply it.
function codeLines(name: string, family: string, type: string): HTMLElement[] {
  const make = `posenc.prepare(posenc.${type}())`;
  const python: { [family: string]: string } = {
    addition: `posenc.add(x, ${make})`, rotation: `posenc.rotate((q, k), ${make}, first=0)`, bias: `posenc.attention(q, k, v, ${make}, causal=True)` };
  const cpp: { [family: string]: string } = {
    addition: `add(x, {.first = 0}, prepare(${type}{}));`, rotation: `rotate({q, k}, {.first = 0}, prepare(${type}{}));`,
    bias: `attention(out, q, k, v, {.position = prepare(${type}{}), .causal = true});` };
  return [codeLine('Command line', `posenc list ${name}`),
    ...(python[family] ? [codeLine('Python (NumPy, PyTorch)', python[family]), codeLine('C++', cpp[family])] : [])];
}

export const page: Page = {
  id: 'reference', title: 'Reference: every scheme, its formula and fields',
  goal: 'Look up idea, formula, papers, fields, pitfalls and code of every scheme.',
  render(root) {
    const { schemes: list, scalings } = known;
    const holder = h('div');
    const fields = (one: any) => one.fields?.length ? h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Fields of ${one.name ?? one.scheme}` }, h('table', { class: 'stacked fields' },
      h('thead', {}, h('tr', {}, ...['Field', 'Default', 'Meaning'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, ...one.fields.map((field: any) => h('tr', {}, h('th', { scope: 'row' }, h('code', {}, field.name)), h('td', {}, JSON.stringify(field.default ?? null)), h('td', {}, prose(field.help ?? ''))))))) : null;
    const entry = (one: any, scaling: boolean) => {
      const name = one.name ?? one.scheme ?? one.scaling ?? one.type, about = scaling ? undefined : schemePages[name];
      const formula = formulas[scaling ? `scaling ${name}` : name];
      return h('section', { class: 'entry' }, h('h2', {}, name, h('small', {}, scaling ? 'scaling of rope' : one.family)),
        about ? h('p', {}, prose(about.idea)) : null,
        formula ? math(formula) : null, h('p', { class: 'note' }, h('code', {}, one.formula)), one.used_by ? h('p', {}, `Used by ${one.used_by}.`) : null,
        about?.papers.length ? h('ul', { class: 'papers' }, ...about.papers.map((paper) => h('li', {}, `${paper.authors}, ${paper.year}: `, h('a', { href: paper.url, rel: 'noreferrer' }, paper.title)))) : null,
        fields(one),
        about?.pitfalls.length ? h('details', {}, h('summary', {}, 'Pitfalls'), h('ul', {}, ...about.pitfalls.map((line) => h('li', {}, prose(line))))) : null,
        ...(scaling ? [codeLine('Command line', 'posenc list --scalings')] : codeLines(name, one.family, about?.type ?? name)));
    };
    const draw = () => {
      const wanted = view.get(search).toLowerCase();
      const fits = (one: any) => (JSON.stringify(one) + JSON.stringify(schemePages[one.name] ?? '')).toLowerCase().includes(wanted);
      const found = [...list.filter(fits).map((one: any) => entry(one, false)), ...scalings.filter(fits).map((one: any) => entry(one, true))];
      holder.replaceChildren(...(found.length ? found : [h('p', {}, 'Nothing found.')]));
    };
    view.onChange(draw);
    root.append(text('What the program prints with `posenc list`: every scheme and every scaling, from the library itself.'), controls(search), holder);
    draw();
  },
};
