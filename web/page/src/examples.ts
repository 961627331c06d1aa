// The gallery of examples. Examples of the repository are included unchanged.

import axpy from "../../../examples/axpy.cl?raw";
import broken from "../../../examples/broken/uninitialised.rdna?raw";
import collatz from "../../../examples/collatz.rdna?raw";
import scale from "../../../examples/scale.s?raw";
import first from "../examples/first.rdna?raw";
import mandelbrot from "../examples/mandelbrot.rdna?raw";
import mfma from "../examples/mfma.rdna?raw";
import reduction from "../examples/reduction.rdna?raw";
import sum from "../examples/sum.hip?raw";
import wmma from "../examples/wmma.rdna?raw";
import gfx1250 from "../examples/gfx1250.rdna?raw";

export const GROUPS = [
  "Kernels",
  "Matrix instructions",
  "Errors that Check finds",
  "Source code and assembly",
] as const;

export interface Example {
  id: string;
  group: (typeof GROUPS)[number];
  /** The language, if it is source code. */
  language?: string;
  title: string;
  about: string;
  text: string;
  grid?: string;
  block?: string;
  args?: string;
  changes?: Record<string, string>;
}

export const EXAMPLES: Example[] = [
  { id: "first", group: "Kernels", title: "First kernel", about: "Every work-item adds two numbers.", text: first },
  {
    id: "divergence",
    group: "Kernels",
    title: "Divergence",
    about: "The Collatz iteration: lanes diverge at a branch, and leave the loop at different times.",
    text: collatz,
  },
  {
    id: "race",
    group: "Errors that Check finds",
    title: "Reduction with a race",
    about: "A sum in LDS. A barrier is missing: Check finds it.",
    text: reduction,
  },
  {
    id: "wmma",
    group: "Matrix instructions",
    title: "Matrix product",
    about: "16 × 16 matrices of f16 by one WMMA instruction.",
    text: wmma,
  },
  {
    id: "mfma",
    group: "Matrix instructions",
    title: "Matrix product on CDNA",
    about: "16 × 16 matrices of f16 by one MFMA instruction, which hardware does not wait for.",
    text: mfma,
  },
  {
    id: "gfx1250",
    group: "Kernels",
    title: "CDNA 5",
    about: "Additions of two f32 numbers at once, which RDNA does not have.",
    text: gfx1250,
  },
  {
    id: "mandelbrot",
    group: "Kernels",
    title: "Mandelbrot set",
    about: "The output is shown as a picture.",
    text: mandelbrot,
  },
  {
    id: "uninitialised",
    group: "Errors that Check finds",
    title: "Uninitialised register",
    about: "An error that hardware does not report.",
    text: broken,
  },
  {
    id: "changed",
    group: "Kernels",
    title: "A changed instruction",
    about: "The first kernel, but v_add_f32 multiplies: the tab ISA has its pseudocode.",
    text: first,
    changes: { v_add_f32: "instruction V_ADD_F32 {\n  D0.f32 = S0.f32 * S1.f32;\n}\n" },
  },
  {
    id: "assembly",
    group: "Source code and assembly",
    title: "LLVM assembly",
    about: "A kernel in the form that compilers emit, with its launch parameters.",
    text: scale,
    grid: "2",
    block: "32",
    args: "x: f32[50]=arange(50)\nout_y: f32[50]\n2.5\ni32=50",
  },
  {
    id: "opencl",
    group: "Source code and assembly",
    title: "OpenCL C",
    about: "y += a * x, compiled by the clang of “wavesim serve”: lines and instructions are linked.",
    text: axpy,
    language: "opencl",
    grid: "2",
    block: "32",
    args: "x: f32[50]=arange(50)\nout_y: f32[50]=arange(50)\n2.5\ni32=50",
  },
  {
    id: "hip",
    group: "Source code and assembly",
    title: "HIP",
    about: "A sum in shared memory, compiled by the clang of “wavesim serve” with ROCm's headers.",
    text: sum,
    language: "hip",
    grid: "2",
    block: "64",
    args: "x: f32[128]=arange(128)\nout_sums: f32[2]",
  },
];
