import gpu from '../../../docs/lab/gpu/summary.json';
import desk from '../data/desk.json';
import { control } from '../controls';
import { announce, h, shown, takesDrops } from '../dom';
import { figureOf } from '../figure';
import { type Group, type Summary, type Verdict, answers, groupsOf, intervalName, lengthFigure, openSummary, readSummary } from '../lab_summary';
import { type Page, section, text } from '../lesson';
import { type ChoiceParam, type FlagParam, type NumberParam, type TextParam, view } from '../state';
import { storyOf } from '../story';

const run: ChoiceParam = {
  key: 'run', label: 'Run', kind: 'choice', start: 'gpu',
  options: [['gpu', '10.7 M parameters, one GPU'], ['desk', '0.1 M parameters, two cores']],
};
const task: TextParam = { key: 'task', label: 'Task', kind: 'text', start: 'text-32', longest: 60 };
const relative: FlagParam = { key: 'rel', label: 'Relative to the trained size', kind: 'flag', start: true };
const hiddenSchemes: TextParam = { key: 'off', label: 'Schemes that are not shown', kind: 'text', start: '', longest: 200 };

const size: NumberParam = { key: 'size', label: 'Size', kind: 'whole', start: 32, least: 1, most: 1_000_000, steps: 'octaves' };

const marks: { [answer: string]: [string, string] } = { reproduced: ['holds', '✓'], refuted: ['fails', '✗'], undecided: ['does-not-apply', '?'], 'not testable here': ['does-not-apply', '–'] };
const estimate = (one: Verdict): string => !one.values.length ? '' : shown(one.mean!, 4) +
  (one.interval_95.length === 2 ? ` [${one.interval_95.map((value) => shown(value, 4)).join(', ')}]` : '') + (one.unit && one.unit !== 'ratio' ? ` ${one.unit}` : '');

function verdictTable(list: Verdict[], answer: string): HTMLElement {
  const isUntested = answer === answers[3];
  const head = isUntested ? ['Claim', 'Published', 'Why not'] : ['Claim', 'Published', 'Here', 'Threshold'];
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Claims: ${answer}` }, h('table', { class: 'stacked claims' },
    h('thead', {}, h('tr', {}, ...head.map((words) => h('th', { scope: 'col' }, words)))),
    h('tbody', {}, ...list.map((one) => h('tr', { id: `claim-${one.id}` },
      h('th', { scope: 'row' }, h('span', { class: `mark ${marks[answer][0]}`, 'aria-hidden': 'true' }, marks[answer][1]), ' ', one.claim),
      h('td', { 'data-label': head[1] }, one.published, ' ', h('small', {}, one.source)),
      ...(isUntested ? [h('td', { 'data-label': head[2] }, one.reason)]
        : [h('td', { 'data-label': head[2] }, h('strong', {}, estimate(one)), ' ', h('small', {}, one.interval_95.length === 2 ? `[${intervalName(one.values.length)}] ` : '', one.reason || one.measure)), h('td', { 'data-label': head[3] }, one.threshold)]))))));
}

// What the brackets are depends on how many seeds were trained.
function claimWords({ verdicts }: Summary): string {
  const fewest = Math.min(...verdicts.filter((one) => one.interval_95.length === 2).map((one) => one.values.length)), name = Number.isFinite(fewest) ? intervalName(fewest) : intervalName(5);
  return `A claim is reproduced if its measure is on its side of the threshold for the whole ${name}, refuted if it is on the other side, and undecided if the threshold lies within it. ` +
    (name.startsWith('range') ? `That is less than a confidence interval: ${fewest} seeds decide only if the nearest is farther from the threshold than they are from each other. ` : 'The interval is Student’s, over seeds. ') + 'Claims that were not reproduced stay in the list.';
}

function resultTable(group: Group): HTMLElement {
  const sizes = [...new Set(group.results.flatMap((one) => one.by_size.map((at) => at.size)))].sort((a, b) => a - b);
  const cell = (value: number): string => (group.isExact ? `${(100 * value).toFixed(0)}%` : value.toFixed(2));
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Results by size' }, h('table', { class: 'lab-results' },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Scheme'), h('th', { scope: 'col' }, 'Seeds'), ...sizes.map((size) => h('th', { scope: 'col' }, shown(size))))),
    h('tbody', {}, ...group.results.map((one) => h('tr', {}, h('th', { scope: 'row' }, one.extension === 'none' ? one.scheme : one.extension), h('td', {}, String(one.seeds)),
      ...sizes.map((size) => {
        const at = one.by_size.find((entry) => entry.size === size);
        return h('td', at ? { title: `${cell(at.least)} to ${cell(at.most)}` } : {}, at ? cell(at.mean) : '');
      }))))));
}

// Whether a scheme is shown.
function schemeBox(name: string, index: number, off: Set<string>): HTMLElement {
  const box = h('input', { type: 'checkbox', id: `lab-scheme-${index}` });
  box.checked = !off.has(name);
  box.disabled = view.locks(hiddenSchemes.key);
  box.addEventListener('change', () => {
    const next = new Set(off);
    if (box.checked) next.delete(name);
    else next.add(name);
    view.set(hiddenSchemes, [...next].join(','));
    document.getElementById(`lab-scheme-${index}`)?.focus();
  });
  return h('div', { class: 'control check' }, box, h('label', { for: box.id }, name));
}

export const page: Page = {
  id: 'lab', title: 'The lab: who extrapolates?',
  goal: 'Published claims about positional encodings, tested by training small models.',
  render(root) {
    const stored = (): Summary => readSummary(JSON.stringify(view.get(run) === 'gpu' ? gpu : desk)), own = 'the run that comes with this page';
    let chosen = view.get(run), summary = stored(), source = own;
    const about = h('p', { class: 'note' }), refused = h('p', { class: 'note', role: 'alert' });
    const aboutClaims = h('p'), verdicts = h('div'), table = h('div'), schemes = h('div', { class: 'controls', role: 'group', 'aria-label': 'Schemes' });
    const choice = h('select', { id: 'lab-task' }), ratio = h('input', { id: 'lab-relative', type: 'checkbox' });

    const group = (): Group => {
      const groups = groupsOf(summary);
      return groups.find((one) => one.key === view.get(task)) ?? groups[0];
    };
    const hidden = (): Set<string> => new Set(view.get(hiddenSchemes).split(',').filter(Boolean));
    const name = (one: Group['results'][0]) => (one.extension === 'none' ? one.scheme : one.extension);
    const kept = (): Group | undefined => {
      const whole = group(), off = hidden(), results = whole?.results.filter((one) => !off.has(name(one))) ?? [];
      return results.length ? { ...whole, results } : undefined;
    };
    const sizes = (): number[] => (kept()?.results ?? []).flatMap((one) => one.by_size.map((at) => at.size));
    const drawing = figureOf({
      label: 'Results by size, a line for each scheme',
      cursor: { param: size, axis: 'x', range: () => [Math.min(...sizes(), 1e6), Math.max(...sizes(), 1)] },
      request: () => ({ source, models: summary.models, task: view.get(task), off: view.get(hiddenSchemes), relative: view.get(relative) }),
      made: () => { const one = kept(); return one && { ...lengthFigure(one, view.get(relative) && one.key !== 'extensions'), title: `${one.title}. The numbers are in the table below` }; },
      command: () => (!summary.preset ? 'posenc lab train' : summary.preset === 'gpu' ? 'python -m posenc.lab --out run --text lab-text.xz' : `posenc lab run ${summary.preset}`),
    });
    const draw = () => {
      if (!root.isConnected) return;
      const whole = group(), off = hidden();
      if (!whole) {
        table.replaceChildren(h('p', { class: 'note' }, 'This run has no results yet.'));
        return;
      }
      choice.value = whole.key;
      ratio.checked = view.get(relative);
      ratio.disabled = whole.isExact || view.locks(relative.key);
      choice.disabled = view.locks(task.key);
      schemes.replaceChildren(...whole.results.map((one, index) => schemeBox(name(one), index, off)));
      table.replaceChildren(resultTable(whole));
    };
    const fill = () => {
      about.textContent = `Shown: ${source}. ${summary.models} of ${summary.models_planned} models, trained on ${summary.text}.`;
      aboutClaims.textContent = claimWords(summary);
      choice.replaceChildren(...groupsOf(summary).map((one) => h('option', { value: one.key }, one.title)));
      verdicts.replaceChildren(...answers.flatMap((answer) => {
        const list = summary.verdicts.filter((one) => one.verdict === answer);
        return list.length ? [h('h3', {}, `${answer[0].toUpperCase()}${answer.slice(1)} (${list.length})`), verdictTable(list, answer)] : [];
      }));
      draw();
      drawing.request();
    };
    const follow = () => {
      if (view.get(run) === chosen) return draw();
      chosen = view.get(run);
      [summary, source] = [stored(), own];
      fill();
    };
    const take = async (file?: File) => {
      if (!file) return;
      try {
        summary = await openSummary(file);
        source = file.name;
        refused.className = 'note';
        refused.textContent = '';
        fill();
        announce(`${file.name}: ${summary.models} models`);
      } catch (error) {
        refused.className = 'note refused';
        refused.textContent = `${file.name}: ${(error as Error).message}`;
      }
    };
    const input = h('input', { type: 'file', accept: '.json', id: 'lab-file' });
    input.addEventListener('change', () => take(input.files?.[0]));
    const box = h('div', { class: 'drop' }, h('label', { for: input.id }, 'Your own summary.json'), input, refused);
    takesDrops(box, take);
    choice.addEventListener('change', () => { view.set(hiddenSchemes, ''); view.set(task, choice.value); });
    ratio.addEventListener('change', () => view.set(relative, ratio.checked));

    root.append(
      text('`posenc lab` trains small Transformers that differ in their positional encoding alone, evaluates them past the length of training, and judges published claims by thresholds that are fixed beforehand. The models are small: read the order of the lines, not their values.'),
      h('div', { class: 'controls', role: 'group', 'aria-label': 'Which run' }, control(run)), about,
      section('Results by length', h('div', { class: 'controls', role: 'group', 'aria-label': 'Controls' },
        h('div', { class: 'control twice' }, h('label', { for: choice.id }, 'Task'), choice),
        h('div', { class: 'control check' }, ratio, h('label', { for: ratio.id }, relative.label))), schemes, drawing,
        h('p', { class: 'note' }, 'Lines: means over seeds. Shaded: the range over seeds. A line that stays level extrapolates.'), table),
      section('Published claims, and what came out', aboutClaims, verdicts),
      section('Show your own run', text('A run writes `summary.json` to its folder. The file is read in this page and sent nowhere.'), box),
      section('The same as a story', storyOf({ name: 'who-extrapolates' })));
    view.onChange(follow);
    fill();
  },
};
