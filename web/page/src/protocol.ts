// Requests and responses of the engine (`simulator/playground` in the repository).

export interface Program {
  name: string;
  text: string;
  object?: string;
  /** The source file that the object was compiled from: lines refer to it. */
  source?: string;
  arch?: string;
  wave?: number;
  semantics: string;
  kernel?: string;
  grid?: number[];
  block?: number[];
  args: string[];
}

/** A source text and how to compile it. */
export interface SourceCode {
  language: "opencl" | "hip";
  text: string;
  arch?: string;
  wave?: number;
  compiler?: string;
  options: string;
}

export interface Compilation {
  /** In base64; null if the source has errors. */
  object: string | null;
  /** The name of the source file in line tables. */
  name: string;
  log: string;
  diagnostics: Message[];
  disassembly: Disassembly | null;
}

export interface Compilers {
  /** Whether this engine can compile at all. */
  available: boolean;
  compilers: { name: string; version: string }[];
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
  | { op: "profile"; program: Program; max_instructions: number; device?: string }
  | { op: "start"; program: Program; max_instructions: number }
  | { op: "command"; line?: string; view: View }
  | { op: "last-write"; wave: number; lane: number; register: string }
  | { op: "memory"; name: string; from: number; len: number }
  | { op: "end" }
  | { op: "disassemble"; object: string; arch?: string }
  | { op: "compilers"; arch?: string }
  | { op: "compile"; source: SourceCode };

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
  /** Components of a texel, of images. */
  channels?: number;
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
  /** The address in listings. */
  pc: number;
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
  statistics: Statistics | null;
}

/** The number of executions, and the sum of their active lanes. */
type Counts = [place: number, count: number, lanes: number];

export interface Statistics {
  table: string;
  lines: Counts[];
  /** By address. */
  instructions: Counts[];
  /** `wavesim-stats-1`. */
  json: {
    instructions: number;
    waves: number;
    classes: Record<string, number>;
    opcodes: Record<string, number>;
    lane_utilisation: number | null;
    branches: { conditional: number; taken: number };
    exec: { writes: number; divergent: number };
    memory: { coalescing: number | null } & Record<string, unknown>;
    lds: { instructions: number; bank_conflict_cycles: number };
    barriers: number;
  };
}

export interface ProfileResult {
  launch: Launch;
  fault: Fault | null;
  profile: Profile | null;
  /** Those of the architecture. */
  devices: { name: string; title: string }[];
}

/** `wavesim-profile-1`. */
export interface Profile {
  /** What of the model has been calibrated. */
  label: string;
  device: string;
  microseconds: { predicted: number; low: number; high: number; launch: number };
  clocks: number;
  bound: { by: string; why: string };
  occupancy: { waves_per_simd: number; most: number; workgroups: number; limit: string; resident_waves: number };
  sample: { workgroups: number; of_workgroups: number; error: number };
  units: Record<string, number>;
  levels: { name: string; busy: number }[];
  /** Clocks of waves by reason. */
  stalls: Record<string, number>;
  unclassified: string[];
  instructions: {
    address: string;
    line: number;
    instruction: string;
    class: string;
    executed: number;
    /** Of all waves. */
    clocks: number;
    stalled: number;
    stalls: Record<string, number>;
    lines_per_access: number;
    lds_conflict_clocks: number;
    lost_lanes: number;
    remarks: { rule: string; text: string }[];
  }[];
}

export interface Place {
  line: number;
  /** The address in listings. */
  pc: number;
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
    /** The program counter as an address in listings. */
    address: number;
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
  /** For each line of the listing: its address and the line of the source. */
  rows: [address: number | null, line: number | null][];
  /** The number of kernels that are not listed. */
  more: number;
  kernels: {
    name: string;
    wave: number;
    block: number[] | null;
    lds: number;
    scratch: number;
    vgprs: number;
    /** What the source calls the kernel. */
    source_name: string;
    /** Type and name of each argument, what the field of arguments may have for it, and whether it is a buffer. */
    args: { text: string; suggestion: string; pointer: boolean }[];
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
  profile: ProfileResult;
  check: CheckResult;
  start: State;
  command: State;
  "last-write": { time: number; line: number | null; text: string | null } | { unknown: true } | null;
  memory: Memory;
  end: null;
  disassemble: Disassembly;
  compilers: Compilers;
  compile: Compilation;
}

export type Answer<R extends Request> = Answers[R["op"]];
