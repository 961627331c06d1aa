//! wavesim: a functional simulator for AMD RDNA 3, 3.5 and 4 GPUs.
//!
//! This is the library behind the `wavesim` command. It executes kernels instruction by instruction and
//! computes the results that hardware computes. It has no timing model. The instructions are compiled from
//! AMD's XML description of the ISA and from pseudocode; `docs/architecture.md` in the repository explains
//! how.
//!
//! # Entry points
//!
//! | task | start from |
//! |---|---|
//! | run a text kernel | [`loader::text_kernel::prepare`], [`sched::dispatch::run`] |
//! | assemble an instruction, a file | [`asm::parse`], [`loader::assembly::AssemblyOptions`] |
//! | disassemble | [`codec::decode`], [`asm::print`] |
//! | launch a kernel of a code object | [`loader::code_object`], [`loader::request::Request`] |
//! | run a launch description (`launch.json`) | [`loader::launch::load`] |
//! | report races, missing waits, wild accesses | [`check::Checker`] |
//! | explore the schedules of a kernel | [`explore::machine::Machine`], [`explore::dpor::Search`] |
//! | see how far results can be trusted | [`fidelity::Fidelity`], [`fidelity::perturb`] |
//! | record and report which code has run | [`coverage::Recorder`], [`coverage::Coverage`] |
//! | trace, count or profile instructions | [`trace`], or an own [`exec::observe::Observer`] |
//! | debug, forward and backward | [`debug::command::Debugger`] |
//! | replace the semantics of an instruction | [`exec::overrides::Overrides`] |
//! | evaluate pseudocode without compiled handlers | [`exec::reference`] |
//! | prove that programs are equal | `prove::Question` |
//! | look up instructions, encodings, operands | [`isa`], [`tables`] |
//! | read and write arrays | [`array`] |
//!
//! Every front end produces a [`loader::prepared::Prepared`]: a program, its memory with the arguments, and the shape of
//! the launch. Running, checking, tracing and debugging start from that.
//!
//! # Run a text kernel
//!
//! `docs/text-format.md` describes the format.
//!
//! ```
//! use wavesim::loader::text_kernel::{self, Options};
//! use wavesim::sched::dispatch;
//!
//! let source = "\
//! ---
//! arg_x: f32[4] = arange(4)
//! out_y: f32[4]
//! local = 4, 1, 1
//! global = 1, 1, 1
//! ---
//!   s_load_b128 s[4:7], s[3:4], 0
//!   v_lshlrev_b32 v0, 2, v0
//!   s_waitcnt lgkmcnt(0)
//!   global_load_b32 v1, v0, s[4:5]
//!   s_waitcnt vmcnt(0)
//!   v_add_f32 v1, 1.0, v1
//!   global_store_b32 v0, v1, s[6:7]
//!   s_endpgm
//! ";
//! let prepared = text_kernel::prepare("kernel.rdna", source, &Options::default(), 0)?;
//! // At most a million instructions per wave.
//! let stats = dispatch::run(&prepared.dispatch(1_000_000), &prepared.memory)?;
//! assert_eq!((stats.waves, stats.instructions), (1, 8));
//! let (name, y) = &prepared.outputs()?[0];
//! assert_eq!(*name, "out_y");
//! assert_eq!(y.values().map(|v| v.as_f64()).collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Assemble and disassemble
//!
//! ```
//! use wavesim::arch::Arch;
//! use wavesim::asm::{self, NoSymbols, print};
//! use wavesim::codec;
//!
//! let options = asm::Options::new(Arch::Rdna4);
//! let parsed = asm::parse("v_pk_fma_f16 v0, v1, v2, v3 neg_lo:[1,0,0]", &options, &NoSymbols)?;
//! let words = codec::encode(Arch::Rdna4, &parsed.inst)?;
//! let inst = codec::decode(Arch::Rdna4, &words)?;
//! assert_eq!(print::instruction(&inst, &options), "v_pk_fma_f16 v0, v1, v2, v3 neg_lo:[1,0,0]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Launch a kernel of a code object
//!
//! The object can come from a compiler. Here the assembler produces it from a file of the repository.
//!
//! ```
//! use wavesim::array::{Array, DType, Num, fill};
//! use wavesim::loader::assembly::AssemblyOptions;
//! use wavesim::loader::code_object;
//! use wavesim::loader::request::{ArgumentValue, Request};
//! use wavesim::memory::Memory;
//! use wavesim::sched::dispatch;
//!
//! let source = include_str!("../../examples/scale.s");
//! let assembled = AssemblyOptions::default().assemble("scale.s", source).map_err(|e| e[0].to_string())?;
//! let kernel = code_object::load(&assembled.object, "scale")?;
//! let x = fill::progression(DType::F32, &[50], Num::Int(0), Num::Int(1))?;
//! let request = Request {
//!     grid: [2, 1, 1],
//!     block: [32, 1, 1],
//!     dynamic_lds: 0,
//!     args: vec![
//!         ("x".to_string(), ArgumentValue::Buffer(x)),
//!         ("y".to_string(), ArgumentValue::Buffer(Array::zeros(DType::F32, &[50])?)),
//!         ("factor".to_string(), ArgumentValue::Number(Num::Float(2.5))),
//!         ("n".to_string(), ArgumentValue::Number(Num::Int(50))),
//!     ],
//!     outputs: vec!["y".to_string()],
//! };
//! let prepared = request.prepare(&kernel, Memory::new(1 << 20)?)?;
//! dispatch::run(&prepared.dispatch(1_000_000), &prepared.memory)?;
//! let y = prepared.buffer("y").ok_or("no y")?.read(&prepared.memory)?;
//! assert_eq!(y.get(49), Some(Num::Float(122.5)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Check a kernel
//!
//! ```
//! use wavesim::check::{Check, Checker, GUARD_BYTES};
//! use wavesim::loader::text_kernel::{self, Options};
//!
//! // An undefined register determines which lanes run.
//! let source = "---\nlocal = 32, 1, 1\nglobal = 1, 1, 1\n---\n  s_mov_b32 exec_lo, s9\n  v_mov_b32 v1, 0\n  s_endpgm\n";
//! let prepared = text_kernel::prepare("kernel.rdna", source, &Options::default(), GUARD_BYTES)?;
//! let mut checker = Checker::new(&prepared, &Check::DEFAULT)?;
//! let (_, result) = checker.run(&prepared.dispatch(1_000_000));
//! let findings = checker.finish(result.err().as_deref());
//! assert_eq!(findings[0].check, Check::Init);
//! assert_eq!(findings[0].site.line, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Step in the debugger
//!
//! `docs/debugging.md` describes the commands.
//!
//! ```
//! use wavesim::debug::command::Debugger;
//! use wavesim::debug::timeline::Timeline;
//! use wavesim::loader::text_kernel::{self, Options};
//!
//! let source = "---\nlocal = 32, 1, 1\nglobal = 1, 1, 1\n---\n  s_mov_b32 s2, 7\n  s_add_u32 s2, s2, s2\n  s_endpgm\n";
//! let prepared = text_kernel::prepare("kernel.rdna", source, &Options::default(), 0)?;
//! let dispatch = prepared.dispatch(1_000_000);
//! let mut debugger = Debugger::new(Timeline::new(&prepared, &dispatch)?, || false);
//! let mut execute = |command: &str| debugger.execute(command).0;
//! execute("step 2")?;
//! assert_eq!(execute("print s2")?, "s2 = 0x0000000e\n");
//! execute("back")?;
//! assert_eq!(execute("print s2")?, "s2 = 0x00000007\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! - `cli` (default): the command, [`cli`]; includes `threads`
//! - `tui` (default): `wavesim tui`, [`tui`]
//! - `bench` (default): `wavesim bench`, [`bench`]
//! - `serve` (default): `wavesim serve`
//! - `lowering` (default): `wavesim isa ir` and `wavesim isa rust`
//! - `threads`: workgroups run on several host threads
//!
//! With `default-features = false` the library starts no threads and depends on no terminal or argument parser. It then
//! builds for `wasm32-unknown-unknown` too (`cargo xtask build-wasm`).
//!
//! # Other languages
//!
//! `docs/embedding.md` describes the C interface (the crate `wavesim-capi`), which C and Python examples use.

#![warn(missing_docs)]

pub use wavesim_array as array;
pub use wavesim_asm as asm;
pub use wavesim_assembler as assembler;
pub use wavesim_conform as conform;
pub use wavesim_coverage as coverage;
pub use wavesim_debug as debug;
pub use wavesim_engine::{caches, delayed, sched};
pub use wavesim_explore as explore;
pub use wavesim_fidelity as fidelity;
pub use wavesim_files as files;
pub use wavesim_inspect::{check, sharing};
pub use wavesim_isa::{arch, codec, descriptor, inst, operand, tables};
#[cfg(feature = "jit")]
pub use wavesim_jit as jit;
pub use wavesim_loader as loader;
pub use wavesim_machine::{fault, isa, memory, state};
#[cfg(feature = "prove")]
pub use wavesim_prove as prove;
pub use wavesim_text as text;
pub use wavesim_trace as trace;

/// Executable code, and the engines that execute it.
pub mod exec {
    pub use wavesim_engine::{interp, observe, reference, step};
    pub use wavesim_machine::exec::*;
}

#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "cli")]
pub mod cli;
pub mod environment;
#[cfg(any(feature = "bench", all(feature = "cli", feature = "jit")))]
mod example;
#[cfg(feature = "tui")]
pub mod tui;
