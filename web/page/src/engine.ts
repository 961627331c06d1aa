// The engine that answers requests: a WebAssembly module in a worker, or `wavesim serve`. Both take and give the same JSON.

import wasmUrl from "../pkg/wavesim_web_bg.wasm?url";
import type { Answer, Request } from "./protocol";

/** A request was stopped, by the user or because it took too long. */
export class Stopped extends Error {}

export interface Engine {
  /** Answers a request. `timeoutMs`: when to give up and to stop it. */
  request<R extends Request>(request: R, timeoutMs?: number): Promise<Answer<R>>;
  /** Ends what runs. The debugger is lost with it. */
  stop(reason: string): void;
  /** Milliseconds that the last request took in the engine itself. */
  lastMs: number;
}

type Pending = { resolve: (value: never) => void; reject: (e: Error) => void; timer: number };

let compiled: Promise<WebAssembly.Module> | undefined;

/** Downloads and compiles the module once; workers share it. */
export function compile(): Promise<WebAssembly.Module> {
  compiled ??= (async () => {
    const response = await fetch(wasmUrl);
    if (!response.ok) throw new Error(`${wasmUrl}: ${response.status} ${response.statusText}`);
    const type = response.headers.get("content-type") ?? "";
    // Hosts that do not know the type of the file.
    if (!type.startsWith("application/wasm")) return WebAssembly.compile(await response.arrayBuffer());
    return WebAssembly.compileStreaming(response);
  })();
  return compiled;
}

export class WasmEngine implements Engine {
  lastMs = 0;
  private worker: Promise<Worker>;
  private current: Worker | undefined;
  private pending = new Map<number, Pending>();
  private next = 1;

  constructor() {
    this.worker = this.start();
  }

  private async start(): Promise<Worker> {
    const module = await compile();
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.current = worker;
    await new Promise<void>((resolve, reject) => {
      worker.onerror = (e) => reject(new Error(e.message || "the worker did not start"));
      worker.onmessage = () => resolve();
      worker.postMessage({ module });
    });
    worker.onmessage = (e) => this.message(e.data);
    worker.onerror = (e) => this.stop(`the engine failed: ${e.message}`);
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

  async request<R extends Request>(request: R, timeoutMs = 0): Promise<Answer<R>> {
    const worker = await this.worker;
    return new Promise((resolve, reject) => {
      const id = this.next++;
      const late = () => this.stop(`stopped after ${timeoutMs / 1000} s`);
      const timer = timeoutMs ? window.setTimeout(late, timeoutMs) : 0;
      this.pending.set(id, { resolve: resolve as (value: never) => void, reject, timer });
      worker.postMessage({ id, request: JSON.stringify(request) });
    });
  }

  stop(reason: string): void {
    this.current?.terminate();
    const pending = [...this.pending.values()];
    this.pending.clear();
    this.worker = this.start();
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

  async request<R extends Request>(request: R, timeoutMs = 0): Promise<Answer<R>> {
    let reason = "";
    const late = () => {
      reason = `stopped after ${timeoutMs / 1000} s`;
      this.stop(reason);
    };
    const timer = timeoutMs ? window.setTimeout(late, timeoutMs) : 0;
    const started = performance.now();
    try {
      const response = await fetch("api", {
        method: "POST",
        headers: { "content-type": "application/json", "x-session": this.session },
        body: JSON.stringify(request),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(text);
      this.lastMs = performance.now() - started;
      return await new Promise((resolve, reject) =>
        settle(text, { resolve: resolve as (value: never) => void, reject, timer }),
      );
    } catch (e) {
      throw reason ? new Stopped(reason) : e;
    } finally {
      clearTimeout(timer);
    }
  }

  stop(_reason: string): void {
    void fetch("stop", { method: "POST", headers: { "x-session": this.session } });
  }
}

function settle(text: string, pending: Pending): void {
  const answer = JSON.parse(text) as { ok?: never; error?: string };
  if (answer.error !== undefined) pending.reject(new Error(answer.error));
  else pending.resolve(answer.ok as never);
}
