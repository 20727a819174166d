import { ask } from '../core';
import { copyText, h, prose } from '../dom';
import { type Page, text } from '../lesson';
import { type TextParam, view } from '../state';
import { controls } from '../controls';

const search: TextParam = { key: 'q', label: 'Search', kind: 'text', start: '', longest: 80 };

const codeLine = (language: string, code: string): HTMLElement =>
  h('div', { class: 'command' }, h('span', {}, language), h('code', {}, code), h('button', { type: 'button', onclick: () => copyText(code) }, 'Copy'));

export const page: Page = {
  id: 'reference', title: 'Reference: every scheme, its formula and fields',
  goal: 'Look up formula, fields, users and the command of every scheme.',
  async render(root) {
    const { json } = await ask({ call: 'schemes' });
    const list = json.schemes ?? json, scalings = json.scalings ?? [];
    const holder = h('div');
    const fields = (one: any) => one.fields?.length ? h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Fields of ${one.name ?? one.scheme}` }, h('table', {},
      h('thead', {}, h('tr', {}, ...['Field', 'Default', 'Meaning'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, ...one.fields.map((field: any) => h('tr', {}, h('th', { scope: 'row' }, h('code', {}, field.name)), h('td', {}, JSON.stringify(field.default ?? null)), h('td', {}, prose(field.help ?? ''))))))) : null;
    const entry = (one: any, scaling: boolean) => {
      const name = one.name ?? one.scheme ?? one.scaling ?? one.type;
      return h('section', { class: 'entry' }, h('h2', {}, name, h('small', {}, scaling ? 'scaling of rope' : one.family)),
        h('p', { class: 'formula' }, one.formula), one.used_by ? h('p', {}, `Used by ${one.used_by}.`) : null, fields(one),
        codeLine('Command line', scaling ? `posenc plot scaling rope` : one.family === 'bias' ? `posenc plot bias ${name}` : `posenc table ${name}`));
    };
    const draw = () => {
      const wanted = view.get(search).toLowerCase();
      const fits = (one: any) => JSON.stringify(one).toLowerCase().includes(wanted);
      const found = [...list.filter(fits).map((one: any) => entry(one, false)), ...scalings.filter(fits).map((one: any) => entry(one, true))];
      holder.replaceChildren(...(found.length ? found : [h('p', {}, 'Nothing found.')]));
    };
    view.onChange(draw);
    root.append(text('What the program prints with `posenc list`: every scheme and every scaling, from the library itself.'), controls(search), holder);
    draw();
  },
};
