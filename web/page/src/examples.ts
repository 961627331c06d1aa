// The gallery of examples. Examples of the repository are included unchanged.

import broken from "../../../examples/broken/uninitialised.rdna?raw";
import collatz from "../../../examples/collatz.rdna?raw";
import scale from "../../../examples/scale.s?raw";
import first from "../examples/first.rdna?raw";
import mandelbrot from "../examples/mandelbrot.rdna?raw";
import mfma from "../examples/mfma.rdna?raw";
import reduction from "../examples/reduction.rdna?raw";
import wmma from "../examples/wmma.rdna?raw";

export interface Example {
  id: string;
  title: string;
  about: string;
  text: string;
  grid?: string;
  block?: string;
  args?: string;
  changes?: Record<string, string>;
}

export const EXAMPLES: Example[] = [
  { id: "first", title: "First kernel", about: "Every work-item adds two numbers.", text: first },
  {
    id: "divergence",
    title: "Divergence",
    about: "The Collatz iteration: lanes diverge at a branch, and leave the loop at different times.",
    text: collatz,
  },
  {
    id: "race",
    title: "Reduction with a race",
    about: "A sum in LDS. A barrier is missing: Check finds it.",
    text: reduction,
  },
  { id: "wmma", title: "Matrix product", about: "16 × 16 matrices of f16 by one WMMA instruction.", text: wmma },
  {
    id: "mfma",
    title: "Matrix product on CDNA",
    about: "16 × 16 matrices of f16 by one MFMA instruction, which hardware does not wait for.",
    text: mfma,
  },
  { id: "mandelbrot", title: "Mandelbrot set", about: "The output is shown as a picture.", text: mandelbrot },
  {
    id: "uninitialised",
    title: "Uninitialised register",
    about: "An error that hardware does not report.",
    text: broken,
  },
  {
    id: "changed",
    title: "A changed instruction",
    about: "The first kernel, but v_add_f32 multiplies: the tab ISA has its pseudocode.",
    text: first,
    changes: { v_add_f32: "instruction V_ADD_F32 {\n  D0.f32 = S0.f32 * S1.f32;\n}\n" },
  },
  {
    id: "assembly",
    title: "LLVM assembly",
    about: "A kernel in the form that compilers emit, with its launch parameters.",
    text: scale,
    grid: "2",
    block: "32",
    args: "x: f32[50]=arange(50)\nout_y: f32[50]\n2.5\ni32=50",
  },
];
