// The engine that answers requests: a WebAssembly module in a worker, or `wavesim serve`. Both use the same JSON.

import packed from "../pkg/wavesim_web.wasm.zst?url";
import type { Answer, Request } from "./protocol";

/** The address of the compressed WebAssembly module. (Hosts of static files support gzip at best.) */
export const MODULE = new URL(packed, location.href).href;

/** A request was cancelled, by the user or by its time limit. */
export class Stopped extends Error {}

export interface Engine {
  /** Answers a request, which is cancelled after `timeoutMs`. */
  request<R extends Request>(request: R, timeoutMs?: number): Promise<Answer<R>>;
  /** Cancels all pending requests. */
  stop(reason: string): void;
  /** Time of the last request in the engine itself, in milliseconds. */
  lastMs: number;
}

type Pending = { resolve: (value: never) => void; reject: (e: Error) => void; timer: number };

const late = (ms: number): string => `stopped after ${ms / 1000} s`;

let compiled: Promise<WebAssembly.Module> | undefined;

/** Downloads and compiles the module once; the workers share it. */
export function compile(): Promise<WebAssembly.Module> {
  compiled ??= new Promise<WebAssembly.Module>((resolve, reject) => {
    const worker = new Worker(new URL("./unpack.ts", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<{ module?: WebAssembly.Module; error?: string }>) => {
      if (data.module) resolve(data.module);
      else reject(new Error(data.error));
      worker.terminate();
    };
    worker.onerror = (e) => reject(new Error(e.message || "the worker did not start"));
    worker.postMessage(MODULE);
  });
  compiled.catch(() => (compiled = undefined));
  return compiled;
}

export class WasmEngine implements Engine {
  lastMs = 0;
  private worker!: Promise<Worker>;
  private current: Worker | undefined;
  /** Identifies the current worker: messages of a replaced worker are ignored. */
  private generation = 0;
  private pending = new Map<number, Pending>();
  private next = 1;

  constructor() {
    this.restart();
  }

  private restart(): void {
    this.current?.terminate();
    this.current = undefined;
    this.worker = this.start(++this.generation);
    // Requests report the error.
    this.worker.catch(() => {});
  }

  private async start(generation: number): Promise<Worker> {
    const module = await compile();
    if (generation !== this.generation) throw new Stopped("replaced");
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.current = worker;
    await new Promise<void>((resolve, reject) => {
      worker.onerror = (e) => reject(new Error(e.message || "the worker did not start"));
      worker.onmessage = () => resolve();
      worker.postMessage({ module });
    });
    worker.onmessage = (e) => generation === this.generation && this.message(e.data);
    worker.onerror = (e) => generation === this.generation && this.stop(`the engine failed: ${e.message}`);
    return worker;
  }

  private message(data: { id: number; answer?: string; trap?: string; ms?: number }): void {
    const pending = this.pending.get(data.id);
    if (!pending) return;
    this.pending.delete(data.id);
    clearTimeout(pending.timer);
    if (data.trap !== undefined) {
      pending.reject(new Error(`the engine failed (${data.trap}) and has been restarted`));
      this.stop("the engine failed");
      return;
    }
    this.lastMs = data.ms ?? 0;
    settle(data.answer ?? "", pending);
  }

  request<R extends Request>(request: R, timeoutMs = 0): Promise<Answer<R>> {
    return new Promise((resolve, reject) => {
      // From here on, the request can be cancelled, even if its worker has not started.
      const id = this.next++;
      const timer = timeoutMs ? window.setTimeout(() => this.stop(late(timeoutMs)), timeoutMs) : 0;
      this.pending.set(id, { resolve: resolve as (value: never) => void, reject, timer });
      const text = JSON.stringify(request);
      this.worker.then(
        (worker) => this.pending.has(id) && worker.postMessage({ id, request: text }),
        (e: Error) => {
          if (!this.pending.delete(id)) return;
          clearTimeout(timer);
          reject(e);
          // The next request may succeed if the network is available again.
          this.restart();
        },
      );
    });
  }

  stop(reason: string): void {
    const pending = [...this.pending.values()];
    this.pending.clear();
    this.restart();
    for (const p of pending) {
      clearTimeout(p.timer);
      p.reject(new Stopped(reason));
    }
  }
}

/** `wavesim serve` on the same host. */
export class HttpEngine implements Engine {
  lastMs = 0;
  private session = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("-");
  private last = 0;
  /** Reasons for the cancellation of unanswered requests, by request number. */
  private reasons = new Map<number, string>();

  constructor() {
    // A run ends with its page.
    addEventListener("pagehide", () => navigator.sendBeacon(this.address("stop", this.last)));
  }

  private address(what: string, number: number): string {
    return `${what}?session=${this.session}&request=${number}`;
  }

  async request<R extends Request>(request: R, timeoutMs = 0): Promise<Answer<R>> {
    const number = ++this.last;
    this.reasons.set(number, "");
    const stop = () => {
      this.reasons.set(number, late(timeoutMs));
      void this.send("stop", number).catch(() => {});
    };
    const timer = timeoutMs ? window.setTimeout(stop, timeoutMs) : 0;
    const started = performance.now();
    try {
      // The server enforces the limit too, in case the page is closed.
      const limit = timeoutMs ? `&limit=${timeoutMs + 1000}` : "";
      const response = await this.send("api", number, limit, JSON.stringify(request));
      const text = await response.text();
      const reason = this.reasons.get(number);
      if (reason) throw new Stopped(reason);
      if (!response.ok) throw new Error(text);
      this.lastMs = performance.now() - started;
      return await new Promise((resolve, reject) =>
        settle(text, { resolve: resolve as (value: never) => void, reject, timer }),
      );
    } finally {
      clearTimeout(timer);
      this.reasons.delete(number);
    }
  }

  private send(what: string, number: number, more = "", body = ""): Promise<Response> {
    return fetch(this.address(what, number) + more, { method: "POST", body });
  }

  stop(reason: string): void {
    for (const [number, old] of this.reasons) if (!old) this.reasons.set(number, reason);
    void this.send("stop", this.last).catch(() => {});
  }
}

function settle(text: string, pending: Pending): void {
  const answer = JSON.parse(text) as { ok?: never; error?: string };
  if (answer.error !== undefined) pending.reject(new Error(answer.error));
  else pending.resolve(answer.ok as never);
}
