// Elements without a framework.

type Child = Node | string | null | undefined | false;
type Attributes = { [name: string]: string | number | boolean | null | undefined | ((event: any) => void) };

const svgSpace = 'http://www.w3.org/2000/svg';

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  for (const child of children) if (child) element.append(child);
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(svgSpace, tag) as SVGElement;
  fill(element, attributes, children);
  return element;
}

/// Writes the attributes that differ from what is there: what is written is styled and laid out anew.
export function put(element: Element, attributes: { [name: string]: string | number }): void {
  for (const [name, value] of Object.entries(attributes)) if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}
/// Makes a text the whole content of an element, in the node that is there.
export function write(element: Element, text: string): void {
  const first = element.firstChild;
  if (first instanceof Text && !first.nextSibling) {
    if (first.data !== text) first.data = text;
  } else if (first || text) {
    element.textContent = text;
  }
}

/// The words of a command. Lines break between words, never after the hyphens of "--width"; a word too long for a phone
/// may break anywhere.
export const words = (text: string): (Node | string)[] =>
  text.split(/( )/).map((word) => (word.includes('-') && word.length <= 18 ? h('span', { class: 'word-of-code' }, word) : word));
export const code = (text: string): HTMLElement => h('code', {}, ...words(text));

/// Text with `code` in backquotes, indices (ω_i, W_Q) and powers (10000^(2i/d)).
export function prose(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  text.split('`').forEach((part, index) => {
    if (index % 2) fragment.append(code(part));
    else for (const piece of part.split(/([ωλθ]_\w|\b[A-Za-z]_[A-Za-z]\b|\^\((?:[^()]|\([^()]*\))*\)|\^[−-]?\d+)/)) {
      if (/^._.$/.test(piece)) fragment.append(h('span', {}, piece[0], h('sub', {}, piece[2])));
      else if (/^\^./.test(piece)) fragment.append(h('sup', {}, piece.replace(/^\^\(?|\)$/g, '').replace('-', '−')));
      else fragment.append(piece);
    }
  });
  return fragment;
}

let announcer: HTMLElement | undefined;
/// Said by a screen reader when it has time.
export function announce(text: string): void {
  announcer ??= document.getElementById('live') ?? undefined;
  if (announcer && announcer.textContent !== text) announcer.textContent = text;
}

export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  h('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    flash('Copied');
  } catch {
    flash('The browser blocked copying');
  }
}

let fading = 0;
/// Said, and shown for a moment.
export function flash(text: string): void {
  announce(text);
  document.querySelector('.toast')?.remove();
  clearTimeout(fading);
  const toast = h('div', { class: 'toast', 'aria-hidden': 'true' }, text);
  document.body.append(toast);
  fading = setTimeout(() => toast.remove(), 1600) as unknown as number;
}

/// A place to drop a file on: it shows that it would take one.
export function takesDrops(zone: HTMLElement, take: (file: File) => void): void {
  const over = (is: boolean) => zone.classList.toggle('over', is);
  zone.addEventListener('dragover', (event) => { event.preventDefault(); over(true); });
  zone.addEventListener('dragleave', (event) => { if (!zone.contains(event.relatedTarget as Node | null)) over(false); });
  zone.addEventListener('drop', (event) => {
    event.preventDefault();
    over(false);
    const file = event.dataTransfer?.files[0];
    if (file) take(file);
  });
}

/// What a .npy file begins with; the numbers follow, row by row.
export function npyHead(shape: number[], descr: string): Uint8Array<ArrayBuffer> {
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(', ')}${shape.length === 1 ? ',' : ''}), }`;
  header += ' '.repeat(63 - ((header.length + 10) % 64)) + '\n';
  return new Uint8Array([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8, ...new TextEncoder().encode(header)]);
}

/// Numbers as a .npy file.
export function npyOf(shape: number[], values: Float32Array | Float64Array): Uint8Array<ArrayBuffer> {
  const head = npyHead(shape, `<f${values.BYTES_PER_ELEMENT}`), bytes = new Uint8Array(head.length + values.byteLength);
  bytes.set(head);
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), head.length);
  return bytes;
}

// made once: a figure has hundreds of numbers, and toLocaleString() makes such a thing for each
const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 6 });
const plain = (value: number): string => (Math.abs(value) < 1000 ? String(value) : grouped.format(value));
/// "1,000,000", "0.0123", "1.2e-7".
export function shown(value: number, digits = 4): string {
  if (Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  if (value === 0) return '0';
  if (Number.isInteger(value) && size < 1e15) return plain(value).replace('-', '−');
  const text = size >= 1e-4 && size < 1e7 ? plain(Number(value.toPrecision(digits))) : value.toPrecision(digits - 1);
  return text.replace('-', '−').replace('e−', 'e-').replace('e+', 'e');
}
