// Elements of a drawing before they are elements: a new drawing is compared with the last one here, and the browser is told
// only what differs. It styles, lays out and parses nothing else.

import { svg, write } from './dom';

export type Attributes = { [name: string]: string | number };

export class Shape {
  private element!: SVGElement;
  constructor(private readonly tag: string, readonly attributes: Attributes, private readonly children: (Shape | string)[]) {}

  append(child: Shape): void {
    this.children.push(child);
  }

  /// Its element: that of `before`, changed, if they are of one kind.
  show(before?: Shape): SVGElement {
    if (before?.tag !== this.tag) {
      this.element = svg(this.tag, this.attributes, ...this.children.map((one) => (typeof one === 'string' ? one : one.show())));
      return this.element;
    }
    const element = this.element = before.element;
    for (const [name, value] of Object.entries(this.attributes)) if (before.attributes[name] !== value) element.setAttribute(name, String(value));
    for (const name in before.attributes) if (!(name in this.attributes)) element.removeAttribute(name);
    if (typeof this.children[0] === 'string' || typeof before.children[0] === 'string') {
      if (this.children.length === 1 && typeof this.children[0] === 'string') write(element, this.children[0]);
      else element.replaceChildren(...this.children.map((one) => (typeof one === 'string' ? one : one.show())));
      return element;
    }
    this.children.forEach((one, i) => {
      const known = before.children[i] as Shape | undefined, now = (one as Shape).show(known);
      if (!known) element.append(now);
      else if (now !== known.element) known.element.replaceWith(now);
    });
    for (const one of before.children.slice(this.children.length)) (one as Shape).element.remove();
    return element;
  }
}

export const shape = (tag: string, attributes: Attributes = {}, ...children: (Shape | string)[]): Shape => new Shape(tag, attributes, children);
