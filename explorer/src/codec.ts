// How questions and answers travel: a byte that says what follows, then the value. The module needs neither a parser nor
// a printer of JSON for them. wasm/codec.cpp is the other end.

const enum Tag { none, no, yes, whole, real, text, list, record }

export function encode(value: unknown): Uint8Array<ArrayBuffer> {
  let bytes = new Uint8Array(256), view = new DataView(bytes.buffer), end = 0;
  const room = (count: number): number => {
    if (end + count > bytes.length) {
      const larger = new Uint8Array(Math.max(2 * bytes.length, end + count));
      larger.set(bytes);
      bytes = larger;
      view = new DataView(bytes.buffer);
    }
    end += count;
    return end - count;
  };
  const tag = (which: Tag) => { const at = room(1); bytes[at] = which; };
  const size = (count: number) => { const at = room(4); view.setUint32(at, count, true); };
  const text = (words: string) => {
    const coded = new TextEncoder().encode(words);
    size(coded.length);
    const at = room(coded.length);
    bytes.set(coded, at);
  };
  const write = (one: any): void => {
    if (one === null || one === undefined) tag(Tag.none);
    else if (typeof one === 'boolean') tag(one ? Tag.yes : Tag.no);
    else if (typeof one === 'number') {
      const isWhole = Number.isSafeInteger(one);
      tag(isWhole ? Tag.whole : Tag.real);
      const at = room(8);
      if (isWhole) view.setBigInt64(at, BigInt(one), true);
      else view.setFloat64(at, one, true);
    } else if (typeof one === 'string') {
      tag(Tag.text);
      text(one);
    } else if (Array.isArray(one)) {
      tag(Tag.list);
      size(one.length);
      one.forEach(write);
    } else {
      const members = Object.entries(one).filter(([, member]) => member !== undefined);
      tag(Tag.record);
      size(members.length);
      for (const [name, member] of members) {
        text(name);
        write(member);
      }
    }
  };
  write(value);
  return bytes.slice(0, end);
}

export function decode(bytes: Uint8Array): any {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), letters = new TextDecoder();
  let at = 0;
  const size = (): number => view.getUint32((at += 4) - 4, true);
  const text = (): string => {
    const length = size();
    at += length;
    return letters.decode(bytes.subarray(at - length, at));
  };
  const read = (): any => {
    switch (bytes[at++] as Tag) {
      case Tag.no: return false;
      case Tag.yes: return true;
      case Tag.whole: return Number(view.getBigInt64((at += 8) - 8, true));
      case Tag.real: return view.getFloat64((at += 8) - 8, true);
      case Tag.text: return text();
      case Tag.list: return Array.from({ length: size() }, read);
      case Tag.record: {
        const record: { [name: string]: any } = {};
        for (let left = size(); left > 0; --left) {
          const name = text();
          record[name] = read();
        }
        return record;
      }
      default: return null;
    }
  };
  return read();
}
