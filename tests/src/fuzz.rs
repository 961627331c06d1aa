//! Fuzz targets. Each function accepts arbitrary bytes, and must not panic, hang, or use unbounded memory.
//! Targets also check round trips between text and words, or text and syntax trees. `fuzz/` runs the targets
//! under libFuzzer; `tests/tests/all/front_end_fuzz.rs` runs them on corrupted files of the repository and
//! limits their memory.

use crate::random::{self, Rng};
use isa_spec::pcode::{parse, print as pcode_print};
use isa_spec::source::SourceMap;
use isa_spec::{diag, report, xml};
use wavesim::arch::Arch;
use wavesim::asm::{self, NoSymbols, Options, print};
use wavesim::assembler::{self, object};
use wavesim::check::{Check, Checker};
use wavesim::codec::{self, words};
use wavesim::exec::program::Program;
use wavesim::files::Files;
use wavesim::inst::Inst;
use wavesim::loader::abi;
use wavesim::loader::code_object::{self, TargetRequest};
use wavesim::loader::launch::{self, TargetSelection};
use wavesim::loader::prepared::{Prepared, Shape};
use wavesim::loader::request;
use wavesim::loader::text_kernel;
use wavesim::memory::Memory;
use wavesim::sched::dispatch::{self, Budget, InitialState, Layout, Registers};
use wavesim::sched::group::RunningGroup;
use wavesim::state::{VGPRS, Wave};
use wavesim::text;

/// A fuzz target.
pub type Body = fn(&[u8]);

/// The fuzz targets, with their names in `fuzz/`.
pub const BODIES: [(&str, Body); 8] = [
    ("decoder", decoder),
    ("whole_run", whole_run),
    ("assembler", assembler),
    ("text_kernel", text_kernel),
    ("code_object", code_object),
    ("launch", launch),
    ("pcode", pcode),
    ("isa_xml", isa_xml),
];

pub fn body(name: &str) -> Body {
    BODIES.iter().find(|b| b.0 == name).unwrap_or_else(|| panic!("no body {name}")).1
}

/// Size of global memory in bytes.
const GLOBAL_BYTES: u64 = 1 << 18;
/// Limit on wave-instructions per run: enough to reach the first loops.
const INSTRUCTIONS: u64 = 500;
/// Limit on scratch bytes per lane. Runs with more would mostly clear memory.
const SCRATCH_BYTES: u32 = 4096;
/// Maximum number of instructions to compare as text.
const COMPARED: usize = 200;

/// Splits fuzz input: the first byte selects the architecture and the wave size, the rest is the actual
/// input.
pub fn machine(data: &[u8]) -> (Arch, Option<u32>, &[u8]) {
    let (first, rest) = data.split_first().unwrap_or((&0, &[]));
    let arch = Arch::RDNA[*first as usize % Arch::RDNA.len()];
    (arch, [None, Some(32), Some(64)][*first as usize / 3 % 3], rest)
}

fn run(prepared: &Prepared) {
    let dispatch = prepared.dispatch(INSTRUCTIONS);
    if dispatch.check().is_ok() && dispatch.shape.scratch_bytes <= SCRATCH_BYTES {
        // Faults are valid results. Formatting them is fuzzed too.
        let _ = dispatch::run(&dispatch, &prepared.memory).map_err(|fault| fault.to_string());
    }
}

/// Limit on wave-instructions of `whole_run`: a base, and an allowance per byte of code.
const WHOLE_RUN: u64 = 2000;
const WHOLE_RUN_PER_BYTE: u64 = 2;
/// LDS bytes per workgroup and scratch bytes per work-item.
const WHOLE_RUN_LDS: u32 = 4096;
const WHOLE_RUN_SCRATCH: u32 = 256;

/// Runs machine code with random register contents, some of which are valid addresses: in the interpreter on
/// one and on two threads, and with all checks. Any code must yield a result or a fault.
pub fn whole_run(data: &[u8]) {
    count_whole_run(data);
}

/// Like [`whole_run`]; returns the number of wave-instructions executed with random registers.
pub fn count_whole_run(data: &[u8]) -> u64 {
    let (arch, wave, bytes) = machine(data);
    let wave_size = wave.unwrap_or(32);
    let Ok(mut memory) = Memory::new(GLOBAL_BYTES) else { return 0 };
    let Ok(buffer) = memory.alloc(GLOBAL_BYTES / 2, 256, "buffer") else { return 0 };
    let seed = data.iter().fold(0u64, |seed, byte| seed.rotate_left(5) ^ *byte as u64);
    let rng = &mut Rng(seed);
    let pointers: Vec<u32> =
        (0..16).flat_map(|n| [(buffer + 4096 * n) as u32, (buffer >> 32) as u32]).collect();
    let numbers: Vec<u32> = (0..64).map(|_| rng.dword()).collect();
    let shape = Shape {
        grid: [2, 1, 1],
        cluster: [1; 3],
        named_barriers: 16,
        block: [wave_size + 1 + rng.below(32) as u32, 1, 1],
        wave_size,
        lds_bytes: WHOLE_RUN_LDS,
        scratch_bytes: WHOLE_RUN_SCRATCH,
        registers: Registers::ALL,
        init: InitialState {
            layout: Layout::Hsa {
                first_system_sgpr: 96,
                group_ids: [true; 3],
                architected: arch == Arch::Rdna4,
                item_id_dims: 2,
            },
            mode: rng.pick(&[0xf0, 0xf0, 0xc0, 0x3f5]),
            sgprs: vec![(0, pointers), (32, numbers)],
        },
        entry_pc: 0,
        code_base: buffer,
    };
    let limit = WHOLE_RUN + WHOLE_RUN_PER_BYTE * bytes.len() as u64;
    let Ok(program) = Program::from_bytes(arch, bytes) else { return 0 };
    let program = program.for_wave_size(wave_size);
    let prepared = Prepared::without_names(program, memory, shape);
    for threads in [1, 2] {
        let mut dispatch = prepared.dispatch(limit);
        dispatch.threads = threads;
        let _ = dispatch::run(&dispatch, &prepared.memory).map_err(|fault| fault.to_string());
    }
    let dispatch = prepared.dispatch(limit);
    let mut group = RunningGroup::new(&dispatch, &prepared.memory);
    let registers = random::wave(rng, wave_size);
    let fill = |wave: &mut Wave| {
        for half in 0..wave.halves() {
            (0..VGPRS).for_each(|reg| wave.set_lane_vec(half, reg, *registers.lane_vec(half, reg)));
        }
    };
    group.start(0);
    group.slots.iter_mut().for_each(|slot| fill(&mut slot.wave));
    let _ = group.run(&Budget::new(limit), u64::MAX, None).map_err(|fault| fault.to_string());
    let Ok(mut checker) = Checker::new(&prepared, &Check::DEFAULT) else { return 0 };
    let (_, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut checker);
    let fault = result.err();
    checker.finish(fault.as_deref()).iter().for_each(|finding| assert!(!finding.to_string().is_empty()));
    group.executed
}

/// Checks that instructions survive the round trips through encoding and through text.
pub fn decoder(data: &[u8]) {
    let (arch, wave, bytes) = machine(data);
    let words = words(bytes);
    let options = Options::new(arch).wave(wave.unwrap_or(32));
    let mut at = 0;
    while at < words.len().min(COMPARED) {
        match codec::decode(arch, &words[at..]) {
            Ok(inst) => {
                let size = inst.size as usize / 4;
                assert!((1..=words.len() - at).contains(&size), "{inst:?}");
                check_round_trips(&inst, &options);
                at += size;
            }
            Err(e) => {
                assert!(!e.to_string().is_empty());
                at += 1;
            }
        }
    }
}

/// Checks that an instruction decodes from its own encoding, and that its text assembles to an equivalent
/// instruction if the assembler accepts it.
fn check_round_trips(inst: &Inst, options: &Options) {
    let text = print::instruction(inst, options);
    let Ok(words) = codec::encode(options.arch, inst) else { return };
    assert_eq!(codec::decode(options.arch, &words).as_ref(), Ok(inst), "{text}");
    // The assembler rejects operands that have no textual form (reserved codes).
    if let Ok(parsed) = asm::parse(&text, options, &NoSymbols) {
        let again = codec::encode(options.arch, &parsed.inst).unwrap_or_else(|e| panic!("{text}: {e}"));
        let back = codec::decode(options.arch, &again).unwrap_or_else(|e| panic!("{text}: {e}"));
        // A different text must assemble to the same words: a lane pattern has a shorter form if unused bits
        // are zero.
        let other = print::instruction(&back, options);
        if other != text {
            let parsed =
                asm::parse(&other, options, &NoSymbols).unwrap_or_else(|e| panic!("{text}: {other}: {e}"));
            assert_eq!(codec::encode(options.arch, &parsed.inst), Ok(again), "{text}: {other}");
        }
    }
}

/// Assembles text to a code object and loads its kernels.
pub fn assembler(data: &[u8]) {
    let (arch, wave, bytes) = machine(data);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let options = Options::new(arch).wave(wave.unwrap_or(32));
    let (mut program, errors) = assembler::read(text, &options);
    if !errors.is_empty() {
        return;
    }
    if let Ok(object) = object::write(&mut program, &options) {
        self::code_object(&object);
    }
}

/// Prepares a text kernel and runs its first instructions.
pub fn text_kernel(data: &[u8]) {
    let (arch, wave, bytes) = machine(data);
    if let Ok(source) = std::str::from_utf8(bytes) {
        text_kernel_for(source, arch, wave);
    }
}

pub fn text_kernel_for(source: &str, arch: Arch, wave: Option<u32>) {
    let options =
        text::Options { arch: Some(arch), wave, global_bytes: GLOBAL_BYTES, ..text::Options::default() };
    match text_kernel::prepare("fuzz.rdna", source, &options, 0) {
        Ok(prepared) => run(&prepared),
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}

/// Passes a line to both instruction parsers. Errors must point into the line.
pub fn line(data: &[u8]) {
    let (arch, wave, bytes) = machine(data);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (_, errors) = assembler::read(text, &Options::new(arch).wave(wave.unwrap_or(32)));
    for error in errors {
        assert!((1..=error.text.chars().count() + 1).contains(&error.column), "{error}");
        assert!(error.to_string().contains('^'));
    }
    let options = text::Options { arch: Some(arch), wave, ..text::Options::default() };
    let mut sources = SourceMap::default();
    let file = sources.add("fuzz.rdna", text);
    for fault in text::parse(&sources, file, &options).err().into_iter().flatten() {
        assert!(fault.span.start <= fault.span.end && fault.span.end as usize <= text.len(), "{fault:?}");
        assert!(!diag::render(&sources, &fault).is_empty());
    }
}

/// Loads, relocates and starts the kernels of a code object or a bundle.
pub fn code_object(data: &[u8]) {
    let Ok(object) = code_object::open(data, &TargetRequest::default()) else { return };
    let Ok(names) = code_object::kernels(&object) else { return };
    for name in names.iter().take(4) {
        let Ok(kernel) = code_object::load(&object, name) else { continue };
        let Ok(memory) = Memory::new(GLOBAL_BYTES) else { continue };
        let shape = abi::Shape::new([2, 1, 1], [33, 1, 1], 64);
        if let Ok(prepared) = request::with_kernarg(&kernel, &[0; 1024], &shape, memory) {
            run(&prepared);
        }
    }
}

/// Parses a launch description, whose files do not exist.
pub fn launch(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for target in [TargetSelection::default(), TargetSelection::target("gfx1201")] {
        if let Ok((launch, _)) = launch::parse(text, &target) {
            let nowhere = std::path::Path::new("/nonexistent");
            let _ = launch::request(&launch, nowhere, &Files::any(), GLOBAL_BYTES);
        }
    }
}

/// Checks that pseudocode survives the round trip through the syntax tree, and type-checks it.
pub fn pcode(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut sources = SourceMap::default();
    let file = sources.add("fuzz.pcode", text);
    let (tree, errors) = parse::parse_file(&sources, file);
    if errors.is_empty() {
        let printed = pcode_print::file(&tree);
        let again = sources.add("printed.pcode", printed.clone());
        let (tree, errors) = parse::parse_file(&sources, again);
        assert!(errors.is_empty(), "{printed}\n{}", diag::render_all(&sources, &errors));
        assert_eq!(pcode_print::file(&tree), printed);
    }
    let report = report::check_files(&sources, &[file], &[], &[Arch::Rdna3.table()]);
    let _ = diag::render_all(&sources, &report.diagnostics);
}

/// Loads an ISA description.
pub fn isa_xml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err((sources, errors)) = xml::load("fuzz.xml", text) {
        assert!(!diag::render_all(&sources, &errors).is_empty());
    }
}
