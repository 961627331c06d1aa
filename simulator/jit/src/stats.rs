//! Statistics about compilation.

/// Statistics about compilation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CompileStats {
    /// The number of compiled units.
    pub units: u32,
    /// The number of units that the code generator rejected, and that are interpreted.
    pub failed: u32,
    /// The number of operations in the compiled units.
    pub operations: u32,
    /// The time that compilation took. It includes reading the pseudocode of an operation when a process
    /// first compiles it.
    pub seconds: f64,
    /// The size of the code in bytes.
    pub bytes: u64,
    /// How often an entry point was left alone for a while, because many visits had executed few instructions.
    pub rests: u32,
    /// The special paths that code has.
    pub paths: CompiledPaths,
}

/// The special paths of compiled code: how often each was emitted, not how often it ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompiledPaths {
    /// Runs of vector instructions with a fast path for coalesced or uniform accesses.
    pub fast_runs: u32,
    /// Loops with versioned iterations.
    pub versioned_loops: u32,
    /// Lookups of classified offsets that are cached across blocks.
    pub cached_offsets: u32,
    /// Blocks with a sequence version: one for lanes that are arithmetic sequences.
    pub sequence_blocks: u32,
    /// Vector instructions that these versions compute once for all lanes.
    pub sequence_instructions: u32,
    /// Loads and stores in them whose addresses are not classified.
    pub sequence_accesses: u32,
    /// Atomic operations whose lanes are resolved together.
    pub atomics: u32,
}

impl CompiledPaths {
    /// Adds the paths of another unit.
    pub fn add(&mut self, other: CompiledPaths) {
        let CompiledPaths {
            fast_runs,
            versioned_loops,
            cached_offsets,
            sequence_blocks,
            sequence_instructions,
            sequence_accesses,
            atomics,
        } = other;
        self.fast_runs += fast_runs;
        self.versioned_loops += versioned_loops;
        self.cached_offsets += cached_offsets;
        self.sequence_blocks += sequence_blocks;
        self.sequence_instructions += sequence_instructions;
        self.sequence_accesses += sequence_accesses;
        self.atomics += atomics;
    }
}

impl std::fmt::Display for CompiledPaths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CompiledPaths { fast_runs, versioned_loops, cached_offsets, atomics, .. } = self;
        write!(
            f,
            "{fast_runs} fast, {versioned_loops} versioned, {cached_offsets} lookups of cached offsets, {atomics} atomics"
        )?;
        if self.sequence_blocks > 0 {
            let CompiledPaths { sequence_blocks, sequence_instructions, sequence_accesses, .. } = self;
            write!(
                f,
                ", {sequence_blocks} sequence versions ({sequence_instructions} instructions, {sequence_accesses} accesses)"
            )?;
        }
        Ok(())
    }
}
