// Worker that downloads and compiles the WebAssembly module, so that the page remains usable. Its message is the module's
// address.

import { Decompress } from "fzstd";

/** Decompresses and compiles the module while it is downloaded. */
async function compile(url: string): Promise<WebAssembly.Module> {
  const response = await fetch(url);
  if (!response.ok || !response.body) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  let decompress: Decompress;
  const unpacked = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      start: (controller) => void (decompress = new Decompress((chunk) => controller.enqueue(chunk))),
      transform: (chunk) => decompress.push(chunk),
      flush: () => decompress.push(new Uint8Array(), true),
    }),
  );
  return WebAssembly.compileStreaming(new Response(unpacked, { headers: { "content-type": "application/wasm" } }));
}

self.onmessage = ({ data }: MessageEvent<string>) =>
  compile(data).then(
    (module) => self.postMessage({ module }),
    (e) => self.postMessage({ error: e instanceof Error ? e.message : String(e) }),
  );
