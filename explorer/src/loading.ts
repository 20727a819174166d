// Files of the site, and the thread beside the page: what first.ts begins with and what workshop.ts goes on with.

async function fetched(name: string): Promise<Response> {
  const response = await fetch(name).catch(() => { throw new Error(`${name} could not be loaded: the site does not answer`); });
  if (!response.ok) throw new Error(`${name} could not be loaded: ${response.status}`);
  return response;
}
// In the single file, files are in the page itself.
const inside = (name: string): Uint8Array<ArrayBuffer> | undefined => {
  const text = document.getElementById(name)?.textContent;
  return text ? Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0)) : undefined;
};
/// A file of the site.
export const fileBytes = async (name: string): Promise<Uint8Array<ArrayBuffer>> => inside(name) ?? new Uint8Array(await (await fetched(name)).arrayBuffer());

/// A module, compiled while it arrives, where the host names its type.
export async function load(name: string): Promise<WebAssembly.Module> {
  const bytes = inside(name);
  if (bytes) return WebAssembly.compile(bytes);
  const response = await fetched(name);
  if (response.headers.get('content-type')?.startsWith('application/wasm')) return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

export function startWorker(): Worker {
  const inside = document.getElementById('worker.js')?.textContent;
  return new Worker(inside ? URL.createObjectURL(new Blob([inside], { type: 'text/javascript' })) : 'worker.js');
}

/// What first.ts has begun, for workshop.ts to take over; false where that was ready before.
export type Begun = { name: string; compiled: Promise<WebAssembly.Module>; worker?: Worker };
declare global { interface Window { posencBegun?: Begun | false } }
