import { guides } from 'posenc-guides';
import { controls } from '../controls';
import { h, prose, words } from '../dom';
import { type Page } from '../lesson';
import { type ChoiceParam, type TextParam, view } from '../state';

const chosen: ChoiceParam = { key: 'g', label: 'Guide', kind: 'choice', start: 'command-line', options: guides.map((one) => [one.id, one.title.split(': ')[0]]) };
const part: TextParam = { key: 'part', label: 'Section', kind: 'text', start: '', longest: 80 };

export const page: Page = {
  id: 'guides', title: 'Guides',
  goal: 'Everything the program, the library and the Python package do, with real output.',
  render(root) {
    const holder = h('article', { class: 'guide' });
    const chosenGuide = () => guides.find((one) => one.id === view.get(chosen)) ?? guides[0];
    let shownGuide: typeof guides[number] | undefined, turn = 0;
    const refuse = (error: Error) => {
      shownGuide = undefined;
      delete holder.dataset.waiting;
      holder.replaceChildren(h('p', { class: 'note refused' }, `This guide did not arrive: ${error.message}`));
    };
    const draw = async () => {
      const guide = chosenGuide(), mine = ++turn;
      if (guide !== shownGuide) {
        holder.dataset.waiting = 'yes';
        const { sections } = await guide.load();
        if (mine !== turn) return;  // something else was chosen meanwhile
        shownGuide = guide;
        const parts = sections.map((one) => {
          const section = h('section', { id: `part-${one.id || 'top'}`, tabindex: -1 }, one.title ? h('h3', {}, one.title) : '');
          section.insertAdjacentHTML('beforeend', one.html);
          for (const one of section.querySelectorAll(':not(pre) > code')) one.replaceChildren(...words(one.textContent!));
          // sentences beside each other need some width each: on a phone such a table scrolls
          for (const table of section.querySelectorAll('table')) table.classList.toggle('wordy', table.rows[0].cells.length > 2 && [...table.querySelectorAll('td')].some((cell) => cell.textContent!.length > 30));
          return section;
        });
        holder.replaceChildren(h('h2', {}, prose(guide.title)), ...parts);
      }
      delete holder.dataset.waiting;
      const wanted = view.get(part) && document.getElementById(`part-${view.get(part)}`);
      if (wanted) requestAnimationFrame(() => wanted.scrollIntoView());
    };
    root.append(controls(chosen), holder);
    const drawOrRefuse = () => draw().catch(refuse);
    view.onChange(drawOrRefuse);
    return drawOrRefuse();
  },
};
