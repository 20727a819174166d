// <pe-story>: a worked example of the library. A click on a number shows the products it is the sum of.

import { answers } from 'posenc-story-answers';
import { ask } from './core';
import { announce, code, copyText, download, h, prose, shown } from './dom';
import { rove } from './roving';
import { view } from './state';
import { expect } from './workshop';

const restTime = 90;

/// Other choices that a story takes: fields for the library, and the same as words of the command line.
export type StoryChoice = { fields: object; words: string };
export type StoryConfig = { name: string; text?: () => string; more?: () => StoryChoice; steps?: (heading: string, index: number) => boolean };

type Matrix = { kind: 'matrix'; name: string; caption: string; rows: string[]; columns: string[]; values: (number | null)[][] | (number | null)[]; digits: number };

const at = (matrix: Matrix, row: number, column: number): number | null => {
  const line = matrix.values[row];
  return Array.isArray(line) ? line[column] : (matrix.values as (number | null)[])[row * matrix.columns.length + column];
};

export class PeStory extends HTMLElement {
  private config!: StoryConfig;
  story: any;
  ready: Promise<void> = Promise.resolve();
  private waiting = 0;

  setup(config: StoryConfig): this {
    this.config = config;
    return this;
  }
  /// Nobody chooses anything: it is as it was when the site was built.
  private isAsWritten(): boolean {
    return !this.config.text && !this.config.more;
  }
  connectedCallback(): void {
    // the module that opens a cell is there by the time a cell is chosen
    for (const event of ['pointerover', 'focusin']) this.addEventListener(event, () => expect('stories.wasm'), { once: true });
    this.ready = this.update();
  }

  command(cell = ''): string {
    const words = this.config.text?.() ?? '';
    return `posenc explain ${this.config.name}${words ? ` --text "${words}"` : ''}${this.config.more?.().words ?? ''}${cell ? ` --cell "${cell}"` : ''}`;
  }

  /// Tells it again, once nothing moves any more: hundreds of cells are too many for every step of a slider.
  request(): void {
    clearTimeout(this.waiting);
    this.dataset.waiting = 'yes';
    this.waiting = setTimeout(() => {
      if (view.isMoving(restTime)) return this.request();
      this.ready = this.update().finally(() => { delete this.dataset.waiting; });
    }, 30) as unknown as number;
  }

  async update(): Promise<void> {
    const words = this.config.text?.() ?? '';
    if (!this.hasChildNodes()) this.append(h('p', { class: 'note' }, 'Loading the example…'));
    try {
      this.story = this.isAsWritten() ? (await answers[this.config.name]()).story : (await ask({ call: 'story', name: this.config.name, text: words, ...this.config.more?.().fields })).json;
    } catch (error) {
      this.replaceChildren(h('p', { class: 'note refused' }, (error as Error).message));
      return;
    }
    const parts: Node[] = [];
    this.story.steps.forEach((step: any, index: number) => {
      if (this.config.steps && !this.config.steps(step.heading, index)) return;
      parts.push(h('section', { class: 'step' }, h('h3', {}, step.heading), h('p', {}, prose(step.text)),
        h('div', { class: 'blocks' }, ...this.blocks(step.blocks))));
    });
    const button = (label: string, act: () => void) => h('button', { type: 'button', onclick: act }, label);
    parts.push(h('div', { class: 'tools' }, button('CSV', () => this.saveCsv())),
      h('div', { class: 'command', role: 'group', 'aria-label': 'The same on the command line' },
        h('span', {}, 'The same on the command line'), code(this.command()), button('Copy', () => copyText(this.command()))));
    this.replaceChildren(...parts);
    this.dispatchEvent(new Event('told'));
  }

  matrices(): Matrix[] {
    return this.story.steps.flatMap((step: any) => step.blocks.filter((block: any) => block.kind === 'matrix'));
  }

  private saveCsv(): void {
    const lines = ['matrix,row,column,value'];
    for (const matrix of this.matrices()) {
      matrix.rows.forEach((row, i) => matrix.columns.forEach((column, k) => lines.push(`"${matrix.name}","${row}","${column}",${at(matrix, i, k)}`)));
    }
    download(`posenc-${this.config.name}.csv`, new Blob([lines.join('\r\n') + '\r\n'], { type: 'text/csv' }));
  }

  // Q and Q', S1 and S2: what is compared stays in one line where there is room for both.
  private blocks(list: any[]): HTMLElement[] {
    const stem = (block: any): string => (block.kind === 'matrix' ? block.name.replace(/[\d'+]/g, '') : '');
    const groups: any[][] = [];
    for (const block of list) {
      if (stem(block) && groups.length && stem(groups.at(-1)![0]) === stem(block)) groups.at(-1)!.push(block);
      else groups.push([block]);
    }
    return groups.map((group) => (group.length === 1 ? this.block(group[0]) : h('div', { class: 'together' }, ...group.map((block) => this.block(block)))));
  }

  private block(block: any): HTMLElement {
    if (block.kind === 'matrix') return this.matrix(block);
    if (block.kind === 'formula') return h('p', { class: 'formula' }, prose(block.text));
    if (block.kind === 'note' && block.misprints?.length) {
      return h('details', { class: 'misprints' }, h('summary', {}, `Misprints in texts about this (${block.misprints.length})`), h('p', { class: 'note' }, prose(block.text)));
    }
    if (block.kind === 'note') return h('p', { class: 'note' }, prose(block.text));
    if (block.kind === 'errata') {
      return h('details', { class: 'misprints' }, h('summary', {}, `Misprints in texts about this (${block.misprints.length})`), h('dl', { class: 'facts errata' }, ...block.misprints.flatMap((one: any) => [
        h('dt', {}, one.matrix ? `${one.matrix}[${one.row}, ${one.column}]` : one.row),
        h('dd', {}, `${one.value.toFixed(Math.max(2, (one.printed.split('.')[1] ?? '').length))}, printed ${one.printed}`)])));
    }
    return h('dl', { class: 'facts' }, ...block.facts.flatMap((fact: any) => [h('dt', {}, prose(fact.name)), h('dd', {}, fact.shown)]));
  }

  private matrix(matrix: Matrix): HTMLElement {
    const numbers = matrix.rows.flatMap((_, i) => matrix.columns.map((_, k) => at(matrix, i, k))).filter((v): v is number => v !== null);
    const largest = Math.max(...numbers.map(Math.abs), 1e-12);
    const opened = h('div', { class: 'opened', role: 'status' });
    const body = matrix.rows.map((row, i) => h('tr', {}, h('th', { scope: 'row' }, row), ...matrix.columns.map((column, k) => {
      const value = at(matrix, i, k);
      if (value === null) return h('td', { class: 'none' }, '·');
      const button = h('button', { type: 'button', class: 'cell', 'aria-label': `${matrix.name} ${row} ${column}: ${value.toFixed(matrix.digits).replace('-', '−')}` },
        value.toFixed(matrix.digits).replace('-', '−'));
      button.classList.add(value < 0 ? 'below' : 'above');
      button.style.setProperty('--share', `${(86 * Math.abs(value) / largest).toFixed(1)}%`);
      button.addEventListener('click', () => this.open(opened, `${matrix.name} ${row} ${column}`));
      return h('td', {}, button);
    })));
    const cells = h('tbody', {}, ...body);
    rove(cells, 'button');
    return h('figure', { class: 'matrix', 'data-matrix': matrix.name }, h('figcaption', {}, prose(matrix.caption)),
      h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, h('td', {}), ...matrix.columns.map((column) => h('th', { scope: 'col' }, column)))), cells)), opened);
  }

  private async open(place: HTMLElement, cell: string): Promise<void> {
    try {
      const { json } = await ask({ call: 'cell', name: this.config.name, text: this.config.text?.() ?? '', ...this.config.more?.().fields, cell });
      const terms = json.terms.map((factors: any[]) => factors.map((one) => shown(one.value, 5)).join(' × ')).join(' + ');
      const inside = json.function ? `${json.function}(${terms})` : terms;
      const sum = json.divisor ? `(${inside}) / ${shown(json.divisor.value, 5)}` : inside;
      place.replaceChildren(h('strong', {}, `${json.matrix}[${json.row}, ${json.column}]`), ` = ${sum || 'given'} = `, h('strong', {}, shown(json.value, 6)),
        json.misprint ? ` (the source printed ${json.misprint.printed})` : '', code(this.command(cell)));
      announce(`${cell} is ${shown(json.value, 6)}`);
    } catch (error) {
      place.textContent = (error as Error).message;
    }
  }
}
customElements.define('pe-story', PeStory);
export const storyOf = (config: StoryConfig): PeStory => (document.createElement('pe-story') as PeStory).setup(config);
