// Requests and responses of the engine (`simulator/playground` in the repository).

export interface Program {
  name: string;
  text: string;
  object?: string;
  arch?: string;
  wave?: number;
  semantics: string;
  kernel?: string;
  grid?: number[];
  block?: number[];
  args: string[];
}

export interface View {
  wave?: number;
  lane?: number;
  grid?: number;
}

export type Request =
  | { op: "architectures" }
  | { op: "names"; arch: string }
  | { op: "describe"; arch: string; name: string }
  | { op: "diagnose"; program: Program }
  | { op: "diagnose-semantics"; text: string }
  | { op: "run"; program: Program; max_instructions: number; statistics: boolean }
  | { op: "check"; program: Program; max_instructions: number }
  | { op: "start"; program: Program; max_instructions: number }
  | { op: "command"; line?: string; view: View }
  | { op: "last-write"; wave: number; lane: number; register: string }
  | { op: "memory"; name: string; from: number; len: number }
  | { op: "end" }
  | { op: "disassemble"; object: string; arch?: string };

export interface Architecture {
  /** The name in requests and links. */
  name: string;
  /** The name for people. */
  title: string;
  /** Supported wave sizes, default first. */
  waves: number[];
}

export interface Message {
  from: number;
  to: number;
  severity: "error" | "warning";
  message: string;
  help: string | null;
}

export interface Diagnosis {
  kind: "text" | "assembly" | "object";
  diagnostics: Message[];
  labels: { name: string; line: number | null }[];
  kernels?: string[];
  arch?: string;
  wave?: number;
}

export interface Description {
  name: string;
  group: string;
  aliases: string[];
  syntax: string;
  forms: { operands: string[]; fields: string; encodings: string[] }[];
  pseudocode: string | null;
  place: string | null;
  unsupported: string | null;
}

export interface Output {
  name: string;
  dtype: string;
  shape: number[];
  type: string;
  bytes: number;
  data: string;
  address?: number;
}

/** A byte range of an array. */
export interface Memory extends Omit<Output, "bytes"> {
  from: number;
  total: number;
}

export interface Launch {
  arch: string;
  wave: number;
  grid: number[];
  block: number[];
  lds: number;
}

export interface Fault {
  kind: string;
  message: string;
  line: number;
  instruction: string;
  workgroup: number[];
  wave: number;
  lane: number | null;
  rendered: string;
}

export interface RunResult {
  launch: Launch;
  outputs: Output[];
  fault: Fault | null;
  instructions: number | null;
  waves: number | null;
  printed: string;
  statistics: { table: string; lines: [number, number][] } | null;
}

export interface Place {
  line: number;
  wave: number;
  lane: number | null;
  workgroup: number[];
  text: string;
}

export interface Finding extends Place {
  check: string;
  kind: string;
  message: string;
  other: (Place & { role: string }) | null;
  hint: string | null;
  count: number;
  rendered: string;
}

export interface CheckResult {
  launch: Launch;
  findings: Finding[];
  fault: Fault | null;
  instructions: number;
  waves: number;
}

export interface State {
  launch: Launch;
  time: number;
  finished: boolean;
  stuck: boolean;
  fault: Fault | null;
  workgroup: number[];
  index: number;
  total: number;
  wave: number;
  lane: number;
  waves: {
    status: string;
    ended: boolean;
    exec: string;
    pc: number;
    line: number | null;
    text: string | null;
    grid: number[] | null;
  }[];
  scalars: { pc: number; scc: number; mode: number; m0: number; vcc: string; exec: string };
  sgprs: { name: string; value: number; points: string | null }[];
  vgprs: { name: string; number: number; values: number[] }[];
  reads: string[] | null;
  writes: string[] | null;
  explain: string;
  instruction: string | null;
  listing: string | null;
  breakpoints: (number | null)[];
  /** The scratch size of a lane, in bytes. */
  scratch: number;
  buffers: string[];
  text?: string;
  failed?: string;
  paused?: boolean;
}

export interface Disassembly {
  arch: string;
  listing: string;
  /** The number of kernels that are not listed. */
  more: number;
  kernels: {
    name: string;
    wave: number;
    block: number[] | null;
    lds: number;
    scratch: number;
    vgprs: number;
    args: { name: string | null; kind: string; size: number; offset: number }[];
  }[];
}

interface Answers {
  architectures: Architecture[];
  names: {
    instructions: [name: string, group: string, semantics: boolean][];
    modifiers: string[];
    suffixes: string[];
    counters: string[];
  };
  describe: Description;
  diagnose: Diagnosis;
  "diagnose-semantics": { diagnostics: Message[]; names: string[] };
  run: RunResult;
  check: CheckResult;
  start: State;
  command: State;
  "last-write": { time: number; line: number | null; text: string | null } | { unknown: true } | null;
  memory: Memory;
  end: null;
  disassemble: Disassembly;
}

export type Answer<R extends Request> = Answers[R["op"]];
