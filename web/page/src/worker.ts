// Worker that runs the WebAssembly module, so that the page stays responsive. It receives the compiled module, then requests.

import { initSync, Engine } from "../pkg/wavesim_web.js";

let engine: Engine | undefined;

self.onmessage = (event: MessageEvent) => {
  const { module, id, request } = event.data;
  if (module) {
    const { memory } = initSync({ module });
    // For measurements.
    Object.assign(self, { memoryBytes: () => memory.buffer.byteLength });
    engine = new Engine();
    self.postMessage({ ready: true });
    return;
  }
  try {
    const started = performance.now();
    const answer = engine!.request(request);
    self.postMessage({ id, answer, ms: performance.now() - started });
  } catch (e) {
    // A trap leaves the instance in an undefined state: the page replaces this worker.
    self.postMessage({ id, trap: String(e) });
  }
};
