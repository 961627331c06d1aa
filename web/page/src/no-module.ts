// In place of the WebAssembly module, where the engine is `wavesim serve`.

const missing = (): never => {
  throw new Error("this page was built for `wavesim serve`, which it does not come from");
};

export default "no-module";
export const initSync: (_: unknown) => { memory: WebAssembly.Memory } = missing;
export class Engine {
  request: (request: string) => string = missing;
}
