//! Emits tables and lowered operations as Rust tokens. `isa-lower` has made all decisions: a node of the
//! lane-loop representation always becomes the same Rust. In reading order: [`tables()`] of the
//! architectures, [`operations`] and facts about them, [`handlers`] and the tables from operation to handler.

mod body;
mod dispatch;
mod facts;
mod handler;
mod name;
pub mod report;
mod stmt;
mod tables;
mod text;
mod value;

pub use text::text;

use handler::Mode;
use isa_lower::ir::{Block, Fast};

use isa_spec::canonical::{Operation, SemanticsSet};
use isa_spec::data::Loaded;
use isa_spec::pcode::ir::State;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::path::PathBuf;

/// Handlers per module. The number of modules must suffice for codegen units to share the work.
const HANDLERS_PER_MODULE: usize = 48;

/// Emits the tables and opcodes of every architecture.
pub fn tables(loaded: &Loaded) -> TokenStream {
    let tables = tables::tables(&loaded.tables);
    let described = loaded.paths.iter().filter(|path| path.extension().is_none_or(|e| e != "pcode"));
    let tracked = tracked(described);
    quote! { #tracked #tables }
}

/// Emits items that make cargo rebuild when one of these files changes, or the variable that names another
/// directory.
fn tracked<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> TokenStream {
    let files = paths.into_iter().map(|path| {
        let path = path.display().to_string();
        quote! { const _: &[u8] = ::core::include_bytes!(#path); }
    });
    quote! {
        #(#files)*
        const _: ::core::option::Option<&str> = ::core::option_env!("WAVESIM_ISA_DIR");
    }
}

/// The hosts that handlers are compiled for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// x86-64 with AVX2, checked at run time.
    Avx2,
    /// Any host, without intrinsics.
    Any,
}

/// Emits the operations, with the facts about each that the machine needs.
pub fn operations(loaded: &Loaded, set: &SemanticsSet) -> TokenStream {
    let tracked = tracked(&loaded.paths);
    let pseudocode = loaded.pcode_paths().map(|(name, path)| {
        let path = path.display().to_string();
        quote! { (#name, ::core::include_str!(#path)) }
    });
    let (facts, numbers) = facts::table(set);
    let infos = set.operations.iter().zip(numbers).map(|(op, [facts_32, facts_64])| {
        let name = &op.name;
        let (line, _) = loaded.sources.line_col(op.file, op.sem.span.start);
        let file = &loaded.sources.file(op.file).name;
        let shape = format_ident!("{}", format!("{:?}", op.sem.shape));
        let fields = op.sem.uses.fields.iter();
        let reads_size = op.sem.uses.state_reads.contains(&State::InstSize);
        let handlers = isa_lower::lower(op);
        let indexed = handlers.operands.indexed.iter().map(|role| {
            let role = format_ident!("{}", format!("{role:?}"));
            quote! { ::isa_spec::tables::Role::#role }
        });
        let (sources, result) = (handlers.operands.sources(), handlers.result_dwords() as u8);
        let staged = matches!(handlers.fast, Fast::Lanes(_) | Fast::Scalar(_));
        let block = matches!(handlers.fast, Fast::Block(_));
        let address64 = matches!(handlers.fast, Fast::Block(Block::Global { address64: Some(_), .. }));
        let half = handlers.writes_half();
        let isa_lower::ir::Floats { single, others } = handlers.floats;
        let output = match handlers.output() {
            Some(output) => {
                let output = format_ident!("{}", format!("{output:?}"));
                quote! { Some(crate::Out::#output) }
            }
            None => quote! { None },
        };
        quote! {
            OpInfo { name: #name, shape: ::isa_spec::pcode::ir::Shape::#shape, fields: &[#(#fields),*],
                reads_size: #reads_size, indexed: &[#(#indexed),*], staged: #staged, sources: [#(#sources),*], result: #result, output: #output, half: #half, block: #block,
                address64: #address64, single: #single, other_floats: #others,
                facts: [#facts_32, #facts_64], file: #file, line: #line as u32 }
        }
    });
    let archs = set.by_arch.len();
    let by_arch = set.by_arch.iter().map(|list| {
        let codes = list.iter().map(|op| op.map_or(u16::MAX, |op| op as u16));
        quote! { &[#(#codes),*] }
    });
    let variants = set.operations.iter().enumerate().map(|(at, op)| {
        let name = variant(&op.name, at, set);
        let doc = format!("```text\n{}\n```", op.sem.text);
        let value = at as u16;
        quote! { #[doc = #doc] #name = #value }
    });
    let count = set.operations.len();
    quote! {
        #tracked
        /// Name and text of every pseudocode file at the time of compilation.
        pub static PSEUDOCODE: &[(&str, &str)] = &[#(#pseudocode),*];
        /// Facts about an operation, and the location of its pseudocode.
        pub struct OpInfo {
            /// Name of the first instruction with this meaning.
            pub name: &'static str,
            /// How often the body runs.
            pub shape: ::isa_spec::pcode::ir::Shape,
            /// Encoding fields that the body names.
            pub fields: &'static [&'static str],
            /// The body reads the instruction's size, which replaces the immediate.
            pub reads_size: bool,
            /// Operands whose register number, not value, the body reads.
            pub indexed: &'static [::isa_spec::tables::Role],
            /// The operation has a fast handler, for whole operands without modifiers.
            pub staged: bool,
            /// Number of registers that handlers read from each source slot.
            pub sources: [u8; 4],
            /// Number of registers of the result.
            pub result: u8,
            /// The output modifiers that apply to a result of whole registers that lanes write.
            pub output: Option<crate::Out>,
            /// Lanes write a 16-bit result to a half of the register.
            pub half: bool,
            /// The fast handler copies coalesced elements as a block. It requires VGPRs for the lanes' part
            /// of the address and for data, and SGPRs for the uniform part.
            pub block: bool,
            /// The fast handler also copies blocks if the instruction has no scalar base and each lane has a
            /// 64-bit address.
            pub address64: bool,
            /// Results depend on the f32 and bf16 bits of MODE.
            pub single: bool,
            /// Results depend on the bits of MODE for other floats, or on those for overflow, which apply to
            /// bf16 too.
            pub other_floats: bool,
            /// Rows of [`FACTS`] for wave32 and wave64.
            pub facts: [u16; 2],
            /// Pseudocode file of the body.
            pub file: &'static str,
            /// First line of the block, 1-based.
            pub line: u32,
        }
        /// The canonical operations: meanings of instructions, deduplicated over encodings and architectures.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        #[allow(clippy::enum_variant_names)]
        pub enum Operation { #(#variants),* }
        /// Indexed by `Operation`.
        pub static OPERATIONS: &[OpInfo] = &[#(#infos),*];
        #facts
        /// Number of operations.
        pub const OPERATION_COUNT: usize = #count;
        /// Per architecture: instruction index -> operation code; `u16::MAX` for none.
        pub static BY_ARCH: [&[u16]; #archs] = [#(#by_arch),*];
    }
}

/// Lowers an operation for a host.
pub fn lower(op: &Operation, host: Host) -> isa_lower::ir::Handlers {
    match host {
        Host::Avx2 => isa_lower::lower(op),
        Host::Any => isa_lower::lower_compactly(op),
    }
}

/// Emits the handlers of one operation; `number` becomes part of the functions' names.
pub fn emit(number: usize, handlers: &isa_lower::ir::Handlers, host: Host) -> TokenStream {
    handler::handler(number, handlers, host)
}

/// Emits the handlers of all operations, and their tables.
pub fn handlers(loaded: &Loaded, set: &SemanticsSet, host: Host) -> TokenStream {
    let tracked = tracked(&loaded.paths);
    let lowered: Vec<_> = set.operations.iter().map(|op| lower(op, host)).collect();
    let mut modules = TokenStream::new();
    for (number, chunk) in lowered.chunks(HANDLERS_PER_MODULE).enumerate() {
        let name = format_ident!("h{number}");
        let handlers = chunk
            .iter()
            .enumerate()
            .map(|(at, one)| handler::handler(number * HANDLERS_PER_MODULE + at, one, host));
        modules.extend(quote! {
            mod #name {
                use wavesim_rt::{self as rt, Cx, Flow, Keep, Flush, FlushOut, FlushVecs, General, Mode};
                use wavesim_rt::op::{Op, Source};
                use wavesim_rt::LaneVec;
                #(#handlers)*
            }
        });
    }
    let tables_of = match host {
        Host::Avx2 => &[
            ("KEEP", Mode::Keep, false),
            ("FLUSH", Mode::Flush, false),
            ("KEEP_64", Mode::Keep, true),
            ("FLUSH_64", Mode::Flush, true),
        ][..],
        Host::Any => &[("BASE", Mode::Base, false)],
    };
    let dispatch = dispatch::tables(&lowered, tables_of);
    let halves = (host == Host::Avx2).then(|| {
        quote! { use wavesim_rt::{both_halves, both_halves_broadcast, broadcast_first, each_half, general}; }
    });
    quote! {
        #tracked
        use wavesim_rt::op::Op;
        use wavesim_rt::{Cx, Flow, Handler, Numbered};
        #halves
        unsafe fn unknown(_: &mut Cx<'_>, _: &Op) -> Flow { Flow::UNKNOWN }
        #modules
        #dispatch
    }
}

/// Converts `V_ADD3_U32` to `VAdd3U32`; a further operation of the same instruction gets its number as a
/// suffix.
fn variant(name: &str, at: usize, set: &SemanticsSet) -> Ident {
    let mut out = String::new();
    for part in name.split('_') {
        let mut chars = part.chars();
        if let Some(first) = chars.next() {
            out.push(first);
            out.extend(chars.map(|c| c.to_ascii_lowercase()));
        }
    }
    if set.operations[..at].iter().any(|o| o.name == name) {
        out.push_str(&format!("_{at}"));
    }
    Ident::new(&out, Span::call_site())
}
