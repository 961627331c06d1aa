// Encodes a program in the fragment of the URL, which the browser does not send to servers.

/** The contents of a link. */
export interface Shared {
  text: string;
  /** The language: `opencl` or `hip`; empty for kernels as text and assembly. */
  language: string;
  compiler: string;
  options: string;
  arch: string;
  wave: string;
  /** Changed pseudocode, by instruction. */
  changes: Record<string, string>;
  grid: string;
  block: string;
  args: string;
  kernel: string;
}

/** Maximal number of characters: the engine's limit for a program, plus the rest of the contents. */
const MAX_TEXT = 2 << 20;

export class BadLink extends Error {}

async function through(
  data: Uint8Array<ArrayBuffer>,
  stream: CompressionStream | DecompressionStream,
  most: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([data]).stream().pipeThrough(stream).getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    // A short link can decompress to a text of any length.
    if (size > most) {
      void reader.cancel();
      throw new BadLink(`the program of this link is larger than ${most >> 20} MB`);
    }
    parts.push(value);
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Encodes a program as a fragment. */
export async function encode(shared: Shared): Promise<string> {
  const data = new TextEncoder().encode(JSON.stringify({ v: 1, ...shared }));
  const packed = await through(data, new CompressionStream("deflate-raw"), Infinity);
  let text = "";
  for (let i = 0; i < packed.length; i += 8192) text += String.fromCharCode(...packed.subarray(i, i + 8192));
  return `#p=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/** The folder of short links, next to the page. */
const folder = (): string => `${location.origin}${location.pathname.replace(/[^/]*$/, "")}links`;

/** Stores a program on the server. Returns the short fragment, or null if the server keeps no links. */
export async function shorten(fragment: string): Promise<string | null> {
  const packed = fragment.slice("#p=".length);
  const response = await fetch(folder(), { method: "POST", body: packed });
  return response.ok ? `#h=${await response.text()}` : null;
}

/** Returns the long fragment of a short one (`#h=HASH`); other fragments unchanged. */
async function lengthen(fragment: string): Promise<string> {
  const hash = /^#h=([0-9a-f]{20})$/.exec(fragment)?.[1];
  if (hash === undefined) {
    if (fragment.startsWith("#h=")) throw new BadLink("this link is damaged");
    return fragment;
  }
  const response = await fetch(`${folder()}/${hash}`);
  if (!response.ok) throw new BadLink("this host does not have its program");
  const packed = await response.text();
  // Only secure pages can compute hashes: https, or the local host.
  if (globalThis.crypto.subtle) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(packed)));
    const found = [...digest.subarray(0, 10)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (found !== hash) throw new BadLink("its program has been changed");
  }
  return `#p=${packed}`;
}

const string = (value: unknown): string => (typeof value === "string" ? value : "");

/** Decodes the program of a fragment; null if it has none. */
export async function decode(short: string): Promise<Shared | null> {
  const fragment = await lengthen(short);
  const packed = /^#p=([\w-]*)$/.exec(fragment)?.[1];
  if (packed === undefined) {
    if (fragment.startsWith("#p=")) throw new BadLink("this link is damaged");
    return null;
  }
  if (packed.length > MAX_TEXT) throw new BadLink(`the program of this link is larger than ${MAX_TEXT >> 20} MB`);
  let value: Record<string, unknown>;
  try {
    const text = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const data = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const json = await through(data, new DecompressionStream("deflate-raw"), MAX_TEXT);
    value = JSON.parse(new TextDecoder().decode(json));
  } catch (e) {
    if (e instanceof BadLink) throw e;
    throw new BadLink("this link is damaged");
  }
  if (typeof value !== "object" || value === null || value.v !== 1)
    throw new BadLink("this link is of another version of the playground");
  const changes: Record<string, string> = {};
  if (typeof value.changes === "object" && value.changes !== null) {
    for (const [name, body] of Object.entries(value.changes))
      if (/^[\w.@]+$/.test(name) && typeof body === "string") changes[name] = body;
  }
  return {
    text: string(value.text),
    language: string(value.language),
    compiler: string(value.compiler),
    options: string(value.options),
    arch: string(value.arch),
    wave: string(value.wave),
    changes,
    grid: string(value.grid),
    block: string(value.block),
    args: string(value.args),
    kernel: string(value.kernel),
  };
}
