// Replaces the WebAssembly module if the engine is `wavesim serve`.

const missing = (): never => {
  throw new Error("this page was built for `wavesim serve`, but another host serves it");
};

export default "no-module";
export const initSync: (_: unknown) => { memory: WebAssembly.Memory } = missing;
export class Engine {
  request: (request: string) => string = missing;
}
