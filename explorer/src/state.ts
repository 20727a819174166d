// The whole view is in the address: #v=1&p=waves&d=64&m=40. A link is a view; unknown keys are ignored, numbers are
// brought into their range, and the controls have the same limits.

export type NumberParam = {
  key: string; label: string; kind: 'whole' | 'real'; start: number; least: number; most: number;
  /// octaves: a slider moves in factors, PageUp doubles
  steps?: 'even' | 'octaves'; multipleOf?: number; choices?: number[];
};
export type ChoiceParam = { key: string; label: string; kind: 'choice'; start: string; options: [string, string][] };
export type TextParam = { key: string; label: string; kind: 'text'; start: string; longest: number };
export type FlagParam = { key: string; label: string; kind: 'flag'; start: boolean };
export type Param = NumberParam | ChoiceParam | TextParam | FlagParam;

export type Value = number | string | boolean;

export function accepted(param: Param, raw: string): Value {
  switch (param.kind) {
    case 'flag':
      return raw === '1' || raw === 'true';
    case 'text':
      return raw.slice(0, param.longest).replace(/[\ud800-\udbff]$/, '');  // no half of a character
    case 'choice':
      return param.options.some(([value]) => value === raw) ? raw : param.start;
    default: {
      const value = Number(raw);
      if (raw.trim() === '' || !Number.isFinite(value)) return param.start;
      return held(param, value);
    }
  }
}

export function held(param: NumberParam, value: number): number {
  let result = Math.min(param.most, Math.max(param.least, value));
  if (param.kind === 'whole') {
    const step = param.multipleOf ?? 1;
    result = Math.min(param.most, Math.max(param.least, Math.round(result / step) * step));
  }
  return result;
}

// What every page shares: the cursor and the scheme's size. A page uses those it has a use for.
export const shared = {
  m: { key: 'm', label: 'Position m', kind: 'whole', start: 37, least: 0, most: 1_000_000, steps: 'octaves' } as NumberParam,
  n: { key: 'n', label: 'Position n', kind: 'whole', start: 12, least: 0, most: 1_000_000, steps: 'octaves' } as NumberParam,
  width: { key: 'd', label: 'Width d', kind: 'whole', start: 64, least: 4, most: 512, multipleOf: 2, steps: 'octaves' } as NumberParam,
  base: { key: 'base', label: 'Base', kind: 'real', start: 10_000, least: 2, most: 1e8, steps: 'octaves' } as NumberParam,
};

/// ?embed=waves&figure=2: one figure of a page in a frame of somebody's text, without the site around it.
export const embedded = ((): { page: string; figure: number } | undefined => {
  const asked = new URLSearchParams(location.search), page = asked.get('embed');
  return page === null ? undefined : { page, figure: Number(asked.get('figure')) || 1 };
})();

const writeTime = 120;

export class View {
  page = 'start';
  isLater = false;
  private values = new Map<string, string>();
  private listeners = new Map<() => void, boolean>();
  private endings: (() => void)[] = [];
  private writing = 0;
  private isLocked = new Set<string>();
  private changedAt = -Infinity;
  private resting?: Promise<void>;
  /// The address as it was read or written last.
  private known = '';

  constructor() {
    this.read();
    addEventListener('hashchange', () => {
      clearTimeout(this.writing);
      this.writing = 0;
      if (this.hash() === location.hash) {
        this.known = location.hash;  // the same view by another address: it is kept up to date from here on
      } else {
        this.read();
        this.tell();
      }
    });
  }

  private read(): void {
    this.known = location.hash;
    const fields = new URLSearchParams(this.known.slice(1));
    // A view of a later version may mean something else by the same key.
    this.isLater = fields.has('v') && fields.get('v') !== '1';
    if (this.isLater) {
      this.page = '';
      this.values.clear();
      this.isLocked.clear();
      return;
    }
    // waves.html is the page about waves
    this.page = fields.get('p') ?? embedded?.page ?? document.documentElement.dataset.page ?? 'start';
    fields.delete('v');
    fields.delete('p');
    this.values = new Map(fields);
    this.isLocked = new Set((this.values.get('lock') ?? '').split(','));
  }

  hash(): string {
    const fields = new URLSearchParams({ v: '1', p: this.page });
    for (const [key, value] of this.values) fields.set(key, value);
    return '#' + fields.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
  }

  link(): string {
    return location.href.split('#')[0] + this.hash();
  }

  get(param: NumberParam): number;
  get(param: ChoiceParam | TextParam): string;
  get(param: FlagParam): boolean;
  get(param: Param): Value;
  get(param: Param): Value {
    const raw = this.values.get(param.key);
    return raw === undefined ? param.start : accepted(param, raw);
  }

  set(param: Param, value: Value): void {
    const raw = typeof value === 'boolean' ? (value ? '1' : '0') : String(value);
    const taken = accepted(param, raw);
    if (taken === this.get(param)) return;
    if (taken === param.start) this.values.delete(param.key);
    else this.values.set(param.key, typeof taken === 'boolean' ? (taken ? '1' : '0') : String(taken));
    this.changedAt = performance.now();
    this.tell();
    this.write();
  }
  /// Whether somebody changed a value less than so many milliseconds ago: perhaps more follows.
  isMoving(milliseconds: number): boolean {
    return performance.now() - this.changedAt < milliseconds;
  }

  /// Comes once nothing has moved for so long: one timer, however many wait.
  rest(milliseconds: number): Promise<void> {
    return this.resting ??= new Promise((resolve) => {
      const look = () => {
        const left = this.changedAt + milliseconds - performance.now();
        if (left > 0) { setTimeout(look, left); return; }
        this.resting = undefined;
        resolve();
      };
      look();
    });
  }

  /// Whether the address has a value for this key.
  names(key: string): boolean {
    return this.values.has(key);
  }

  /// Whether the address names more than a page: a view that somebody chose.
  isChosen(): boolean {
    return this.values.size > 0;
  }

  /// Switched on by a teacher: &hide=predict,commands,exports,data &lock=d,base.
  hidden(): string {
    return (this.values.get('hide') ?? '').replaceAll(',', ' ');
  }
  hides(what: string): boolean {
    return (this.values.get('hide') ?? '').split(',').includes(what);
  }
  locks(key: string): boolean {
    return this.isLocked.has(key);
  }

  /// A link to another page takes the cursor, the scheme and its size along, and what a teacher hid or locked.
  carriedTo(link: string): string {
    const at = link.indexOf('#'), fields = new URLSearchParams(link.slice(at + 1));
    for (const key of [...Object.values(shared).map((param) => param.key), 's', 'hide', 'lock']) {
      const value = this.values.get(key);
      if (value !== undefined && !fields.has(key)) fields.set(key, value);
    }
    return `${link.slice(0, at)}#${fields.toString().replaceAll('%2C', ',').replaceAll('%3A', ':')}`;
  }

  /// Listeners of a page end with it; those that are `kept` stay.
  onChange(listener: () => void, kept = false): () => void {
    this.listeners.set(listener, kept);
    return () => this.listeners.delete(listener);
  }
  /// Done when the page is left.
  atEnd(act: () => void): void {
    this.endings.push(act);
  }
  leavePage(): void {
    for (const act of this.endings.splice(0)) act();
    for (const [listener, kept] of this.listeners) if (!kept) this.listeners.delete(listener);
  }

  private tell(): void {
    for (const listener of [...this.listeners.keys()]) listener();
  }

  // Dragging changes the view sixty times a second; browsers limit how often an address may change.
  private write(after = writeTime): void {
    this.writing ||= setTimeout(() => {
      this.writing = 0;
      const left = this.changedAt + writeTime - performance.now();
      if (left > 0) return this.write(left);
      // Somebody followed a link that is not read yet: it wins.
      if (location.hash !== this.known) return;
      history.replaceState(null, '', this.hash());
      this.known = location.hash;
    }, after) as unknown as number;
  }
}

export const view = new View();

/// The whole address of a page: a link that begins with # reads as one within the page.
export const linkTo = (page: string): string => `${location.href.split('#')[0]}#v=1&p=${page}`;
export const linkToStory = (name: string): string => `${linkTo('stories')}&story=${name}`;
