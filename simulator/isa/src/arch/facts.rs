//! The facts of an architecture that the ISA description does not state. Each architecture is one value of
//! [`Facts`], in a file of its own; the rest of the simulator asks for a fact, never for an architecture. A
//! test of the workspace (`names_in_rust`) keeps it so.

use super::machine::Machine;
use crate::descriptor::Field;
use isa_spec::pcode::builtins::Control;

/// The facts of one architecture.
#[derive(Debug)]
pub struct Facts {
    /// The name on the command line.
    pub name: &'static str,
    /// AMD's name, for people.
    pub title: &'static str,
    /// The processors (LLVM AMDGPUUsage, *Processors*); the first is the default.
    pub processors: &'static [ProcessorRow],
    /// Register files and syntax of machines other than AMD's; `None` for AMD's, whose registers and syntax
    /// the simulator defines.
    pub machine: Option<&'static Machine>,
    /// The field GFX of the pseudocode: the major number of the processors' names, for bodies whose meaning
    /// depends on it; 0 for machines other than AMD's.
    pub gfx: u32,
    /// The supported wave sizes, default first.
    pub wave_sizes: &'static [u32],
    /// The most workgroups of a cluster; 1 without clusters (CDNA5 manual, *Workgroup Clusters*).
    pub cluster_workgroups: u32,
    /// The most LDS of a workgroup in bytes.
    pub lds_bytes: u32,
    /// The workgroups with all of their LDS that one multiprocessor holds: 2 where two compute units form a
    /// workgroup processor.
    pub lds_per_processor: u32,
    /// The LDS address with which compilers mask the lanes of stores and copies, since accesses beyond LDS have
    /// no effect. Offsets of instructions are added to it.
    pub lds_mask: Option<u32>,
    /// The vector registers.
    pub vgprs: VgprFile,
    /// The numbers of the scalar operand codes beyond SGPRs.
    pub scalar_codes: ScalarCodes,
    /// Sources and results of 16 bits are halves of registers (true16), and results keep the other half.
    pub true16: bool,
    /// Inline constants of packed 16-bit sources apply to both halves where the result is not packed (RDNA 3
    /// and 4 manuals, *Inline Constants with Packed Math*; CDNA's do not specify the rule).
    pub replicates_packed_constants: bool,
    /// The scalar offset of a buffer access is a register, M0 or null, but no constant.
    pub buffer_offset_is_register: bool,
    /// What instructions can read and encode.
    pub instructions: InstructionRules,
    /// Movements of DPP beyond those that all architectures have.
    pub dpp: DppSet,
    /// S_SET_GPR_IDX_ON and S_SETVSKIP: modes in MODE that change vector instructions.
    pub instruction_modes: bool,
    /// MODE and the rules of float results.
    pub float: FloatRules,
    /// The layout of STATUS.
    pub status: StatusLayout,
    /// The initial state of waves.
    pub start: StartLayout,
    /// The counters of outstanding memory operations.
    pub counters: CounterSet,
    /// What instructions with a result of 16 bits write.
    pub half_writes: HalfWrites,
    /// The encoding of the coherence of an access.
    pub coherence: Coherence,
    /// Rows of linear images begin at multiples of this number of bytes (AMD's address library); `None` without image
    /// instructions.
    pub image_row_bytes: Option<u32>,
    /// The table of tiled layouts of images ([`isa_spec::arith::tiling`]), that of the default processor.
    pub image_tiling: Option<u32>,
    /// Stores of a workgroup reach other workgroups only after one of its waves has written back the L2 cache
    /// (`buffer_wbl2 sc1`), since a device has several. The write-back covers the stores of all waves of the
    /// workgroup that happened before it, complete or not: their cache keeps the order of their operations
    /// (LLVM AMDGPUUsage, *Memory Model GFX942*).
    pub release_writes_back: bool,
    /// The message after which a wave has no VGPRs (`MSG_DEALLOC_VGPRS`; RDNA3 manual, *S_SENDMSG*).
    pub dealloc_message: Option<u32>,
    /// The register banks of dual instructions.
    pub dual_issue: DualRules,
    /// What software must separate because hardware does not wait.
    pub hazards: HazardRules,
    /// Code objects record the processor's settings of XNACK and of SRAM ECC (LLVM AMDGPUUsage, *Target ID*).
    pub target_features: bool,
    /// Fields and granules of kernel descriptors.
    pub descriptor: DescriptorRules,
    /// Conformance records of another architecture that also apply to this one.
    pub records: Option<SharedRecords>,
}

/// A processor: LLVM's name, and EF_AMDGPU_MACH in the ELF flags of its code objects (LLVM AMDGPUUsage,
/// *Header*).
#[derive(Debug, Clone, Copy)]
pub struct ProcessorRow(pub &'static str, pub u32);

/// The vector register file of a wave.
#[derive(Debug, Clone, Copy)]
pub struct VgprFile {
    /// The number of VGPRs that a wave can reach is rounded up to this, in waves of 32 and of 64.
    pub granule: [u32; 2],
    /// A second file of accumulation VGPRs (CDNA manuals, *VGPRs and AccVGPRs*).
    pub accumulation: bool,
    /// MODE holds two more bits of the VGPR numbers, for each position of an operand (CDNA5 manual, *Waves
    /// with up to 1024 VGPRs*).
    pub msbs: bool,
}

/// Exemptions from the rule that the sources of a dual instruction are in different register banks (manuals,
/// *Dual Issue VALU*; LLVM, `checkVOPDRegBankConstraints`).
#[derive(Debug, Clone, Copy)]
pub struct DualRules {
    /// Two moves may read from the same bank.
    pub moves_share_banks: bool,
    /// Both halves may read the same register.
    pub same_register: bool,
}

/// The operand codes of special scalar registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarCodes {
    /// SGPRs up to 105, null, M0 = 125.
    Rdna,
    /// SGPRs up to 101, FLAT_SCRATCH and XNACK_MASK, M0 = 124, no null register.
    Cdna,
}

impl ScalarCodes {
    /// The number of the last SGPR.
    pub fn last_sgpr(self) -> u16 {
        match self {
            ScalarCodes::Rdna => 105,
            ScalarCodes::Cdna => 101,
        }
    }

    /// Returns whether there is a null register.
    pub fn has_null(self) -> bool {
        self == ScalarCodes::Rdna
    }
}

/// What instructions can read and encode.
#[derive(Debug, Clone, Copy)]
pub struct InstructionRules {
    /// The scalar values that a vector instruction can read (the limit of the constant bus).
    pub scalar_values: usize,
    /// Vector operands of 64 bits and more start at an even register (CDNA 3 manual, *VGPR Alignment*).
    pub even_vgprs: bool,
    /// Vector instructions can read LDS as a source. The descriptions of CDNA list the code, but CDNA 2 and
    /// later do not have it.
    pub lds_direct: bool,
    /// LDS instructions other than those of barriers also access the global data share.
    pub global_data_share: bool,
    /// The matrices A and B of WMMA are divided among the lanes of a wave. Elsewhere each half of a wave of 64
    /// has a copy of them (RDNA 3 manual, *WMMA*).
    pub divides_matrix_sources: bool,
    /// The immediate of S_SENDMSG has an operation and a stream beside the message (CDNA manuals,
    /// *S_SENDMSG*).
    pub message_operations: bool,
}

/// Movements of DPP that only some architectures have.
#[derive(Debug, Clone, Copy)]
pub struct DppSet {
    /// Shifts, rotations and broadcasts across rows: `wave_shl`, `row_bcast` (CDNA manuals, *DPP*).
    pub across_rows: bool,
    /// `row_xmask` (RDNA manuals, *DPP*).
    pub xmask: bool,
    /// Values of 64 bits have no movement but `row_newbcast` (CDNA 3 manual, *DPP*).
    pub only_broadcasts_doubles: bool,
}

/// MODE and the output modifiers.
#[derive(Debug, Clone, Copy)]
pub struct FloatRules {
    /// MODE as compilers set it: round to nearest even, denormals kept; DX10_CLAMP and IEEE where these bits
    /// exist.
    pub default_mode: u32,
    /// The bits of MODE that S_SETREG writes.
    pub mode_bits: u32,
    /// MODE has the bits DX10_CLAMP and IEEE. Without them, clamping a NaN gives 0.
    pub mode_has_ieee: bool,
    /// OMOD applies whatever MODE says, and flushes denormal results (RDNA 4 manual, *Output Modifiers*).
    /// Elsewhere it applies only where denormal results are flushed and MODE.IEEE is 0.
    pub omod_always: bool,
}

/// What STATUS holds.
#[derive(Debug, Clone, Copy)]
pub struct StatusLayout {
    /// Bit 0 is SCC. Elsewhere SCC is in STATE_PRIV.
    pub scc: bool,
    /// Bit 29 is set in waves of 64.
    pub wave64: bool,
}

/// Where a wave finds its ids.
#[derive(Debug, Clone, Copy)]
pub struct StartLayout {
    /// Workgroup ids are in trap registers instead of SGPRs (LLVM AMDGPUUsage, *Architected workgroup IDs*).
    pub ids_in_ttmps: bool,
}

impl VgprFile {
    /// The most VGPRs of a wave, without accumulation VGPRs.
    pub fn most(&self) -> u32 {
        if self.msbs { 1024 } else { 256 }
    }

    /// The granule for waves of this size.
    pub fn granule_of(&self, wave_size: u32) -> u32 {
        self.granule[usize::from(wave_size == 64)]
    }
}

/// A counter of outstanding memory operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// VMCNT: vector loads and atomics that return; on CDNA, stores too.
    Vm,
    /// VSCNT: vector stores and atomics that do not return.
    Vs,
    /// LGKMCNT: LDS, scalar memory and messages.
    Lgkm,
    /// LOADCNT: vector loads and atomics that return.
    Load,
    /// STORECNT: vector stores and atomics that do not return.
    Store,
    /// DSCNT: LDS.
    Ds,
    /// KMCNT: scalar memory and messages.
    Km,
    /// ASYNCCNT: copies between global memory and LDS.
    Async,
    /// TENSORCNT: tensor copies.
    Tensor,
    /// SAMPLECNT: image samples.
    Sample,
    /// BVHCNT: ray intersections.
    Bvh,
}

impl Counter {
    /// All counters.
    pub const ALL: [Counter; 11] = [
        Counter::Vm,
        Counter::Vs,
        Counter::Lgkm,
        Counter::Load,
        Counter::Store,
        Counter::Ds,
        Counter::Km,
        Counter::Async,
        Counter::Tensor,
        Counter::Sample,
        Counter::Bvh,
    ];

    /// The counter's name in assembly.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Vm => "vmcnt",
            Counter::Vs => "vscnt",
            Counter::Lgkm => "lgkmcnt",
            Counter::Load => "loadcnt",
            Counter::Store => "storecnt",
            Counter::Ds => "dscnt",
            Counter::Km => "kmcnt",
            Counter::Async => "asynccnt",
            Counter::Tensor => "tensorcnt",
            Counter::Sample => "samplecnt",
            Counter::Bvh => "bvhcnt",
        }
    }

    /// Returns the counter that a builtin waits for.
    pub fn of(bi: Control) -> Option<Counter> {
        Some(match bi {
            Control::WaitVmcnt => Counter::Vm,
            Control::WaitVscnt => Counter::Vs,
            Control::WaitLgkmcnt => Counter::Lgkm,
            Control::WaitLoadcnt => Counter::Load,
            Control::WaitStorecnt => Counter::Store,
            Control::WaitDscnt => Counter::Ds,
            Control::WaitKmcnt => Counter::Km,
            Control::WaitAsynccnt => Counter::Async,
            Control::WaitTensorcnt => Counter::Tensor,
            Control::WaitSamplecnt => Counter::Sample,
            Control::WaitBvhcnt => Counter::Bvh,
            // Exports, address translation and the vector ALU are not tracked; `WaitIdle` waits for all counters.
            Control::WaitExpcnt
            | Control::WaitXcnt
            | Control::WaitIdle
            | Control::WaitAlu
            | Control::Nop
            | Control::EndPgm
            | Control::Illegal
            | Control::Trap
            | Control::Halt
            | Control::SendMsg
            | Control::SendMsgRtn
            | Control::InvalidateCaches
            | Control::WriteBackCaches
            | Control::Barrier
            | Control::BarrierSignal
            | Control::BarrierSignalIsFirst
            | Control::BarrierWait
            | Control::BarrierLeave
            | Control::BarrierInit
            | Control::BarrierMembers
            | Control::BarrierJoin
            | Control::BarrierState
            | Control::GetReg
            | Control::SetReg
            | Control::UnknownLayout
            | Control::GwsInit
            | Control::GwsBarrier
            | Control::GwsSemaP
            | Control::GwsSemaBr
            | Control::GwsSemaReleaseAll => return None,
        })
    }
}

/// The counter of each kind of memory operation.
#[derive(Debug, Clone, Copy)]
pub struct CounterSet {
    /// All counters, in the order of listings.
    pub all: &'static [Counter],
    /// Vector loads, and atomics that return.
    pub load: Counter,
    /// Vector stores, and atomics that do not return.
    pub store: Counter,
    /// LDS.
    pub lds: Counter,
    /// Scalar memory and messages with a reply.
    pub scalar: Counter,
    /// Copies between global memory and LDS, where they have a counter of their own.
    pub copies: Option<Counter>,
    /// Copies of tensors between global memory and LDS, which use no vector registers, likewise.
    pub tensor: Option<Counter>,
    /// Image samples, and ray intersections, where they have counters of their own (RDNA4 manual, *Memory Dependency
    /// Counters*).
    pub textures: Option<[Counter; 2]>,
    /// XCNT counts accesses whose address is not translated yet: until then, an access may be repeated, and the
    /// registers that it reads must not change (LLVM AMDGPUUsage, *Memory Model GFX125x*).
    pub replays: bool,
    /// Cache maintenance is counted: an invalidation as a load, a write-back as a store.
    pub cache_maintenance: bool,
}

/// How much of a register an instruction writes that has a 16-bit result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalfWrite {
    /// The half that it names.
    Half,
    /// The whole register, whose other half it preserves: it reads the register, and writes it back.
    Merge,
    /// The whole register.
    Register,
}

/// What instructions with a result of 16 bits write.
#[derive(Debug, Clone, Copy)]
pub struct HalfWrites {
    /// Loads. With ECC, which CDNA always has, they write the whole register (LLVM, `d16PreservesUnusedBits`).
    pub load: HalfWrite,
    /// Vector instructions. From gfx11 on, they merge (LLVM, `FeatureD16Writes32BitVgpr`).
    pub result: HalfWrite,
}

/// The encoding of the coherence of an access (LLVM AMDGPUUsage, *Memory Model*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coherence {
    /// GLC of a load: the device's or a wider scope. Stores always reach it.
    Glc,
    /// The field SCOPE, also of stores.
    Scope,
    /// The bits SC0 and SC1.
    ScBits,
}

/// Dependencies that hardware does not resolve by itself.
#[derive(Debug, Clone, Copy)]
pub struct HazardRules {
    /// The wait states that software must provide (CDNA manuals, *Manually Inserted Wait States*); `None`
    /// where hardware interlocks.
    pub wait_states: Option<WaitStates>,
    /// A matrix instruction whose factor is the result of the preceding one needs another vector instruction
    /// between (RDNA manuals, *WMMA*).
    pub matrix_needs_gap: bool,
    /// Matrix and transcendental instructions run beside later vector instructions, and software keeps dependent ones
    /// apart (LLVM, `FeatureWMMACoexecutionHazards`, `FeatureTransCoexecutionHazard`).
    pub coexecution: bool,
    /// Hazards of vector instructions that compilers work around.
    pub valu: ValuHazards,
}

/// Hazards of vector instructions (LLVM, `GCNHazardRecognizer`).
#[derive(Debug, Clone, Copy)]
pub struct ValuHazards {
    /// The result of a transcendental instruction must not be read too early (LLVM,
    /// `FeatureVALUTransUseHazard`).
    pub trans_use: bool,
    /// Results from before and after a change of EXEC must not be read too early in wave64 (LLVM,
    /// `hasVALUPartialForwardingHazard`).
    pub partial_forwarding: bool,
    /// A mask must not be read right after it is written, if a vector instruction has just read it, in wave64
    /// (LLVM, `hasVALUMaskWriteHazard`).
    pub mask_write: bool,
    /// V_PERMLANE must not directly follow a V_CMPX (LLVM, `FeatureVcmpxPermlaneHazard`).
    pub permutation_after_exec: bool,
}

impl ValuHazards {
    /// An architecture without these hazards.
    pub const NONE: ValuHazards = ValuHazards {
        trans_use: false,
        partial_forwarding: false,
        mask_write: false,
        permutation_after_exec: false,
    };

    /// Returns whether the architecture has any of the hazards.
    pub fn any(&self) -> bool {
        self.trans_use || self.partial_forwarding || self.mask_write || self.permutation_after_exec
    }
}

/// Wait states that differ between the generations of CDNA.
#[derive(Debug, Clone, Copy)]
pub struct WaitStates {
    /// Permutations of lanes (V_PERMLANE16_SWAP and others) after writes of their sources or of EXEC.
    pub lane_permutations: bool,
    /// Products of 16x16 doubles take twice as many passes.
    pub slow_double_products: bool,
    /// Results of matrix instructions with more than 2 passes are forwarded a cycle later.
    pub late_matrix_results: bool,
}

/// Rules of kernel descriptors and register allocation (LLVM AMDGPUUsage, *Kernel Descriptor*).
#[derive(Debug, Clone, Copy)]
pub struct DescriptorRules {
    /// VGPRs in a granule of GRANULATED_WORKITEM_VGPR_COUNT, in waves of 32 and of 64.
    pub vgpr_granule: [u32; 2],
    /// SGPRs in a granule, and SGPRs allocated beyond those that the kernel requests (VCC, XNACK_MASK and
    /// FLAT_SCRATCH); `None` where each wave has all SGPRs.
    pub sgpr_granule: Option<[u32; 2]>,
    /// ACCUM_OFFSET: accumulation VGPRs follow VGPRs in one allocation.
    pub accum_offset: bool,
    /// Kernel arguments can be preloaded into SGPRs.
    pub preloads_kernarg: bool,
    /// Where the number of user SGPRs is.
    pub user_sgpr_count: Field,
    /// The descriptor has the number of named barriers.
    pub named_barriers: bool,
}

/// The conformance records of another architecture that apply here.
#[derive(Debug, Clone, Copy)]
pub struct SharedRecords {
    /// Whose records.
    pub of: super::Arch,
    /// Only records of instructions that both architectures encode in the same way, under the same name.
    pub only_common: bool,
}
