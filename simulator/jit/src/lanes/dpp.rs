//! DPP: the first source of an instruction comes from other lanes. Before the run, its lanes are permuted
//! into hidden registers, which the run reads like any others. (Handlers stage sources there, too.)

use crate::arith::builder::{Bug, R};
use crate::arith::lane_calls::LANES;
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES};
use crate::state::emitter::Emitter;
use crate::state::run::LaneSource;
use isa_lower::ir::HostWidth;
use wavesim_machine::exec::op::{DecodedSource, Dpp, Op};
use wavesim_machine::state::wave::{STAGE, STAGE_VECS};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Int2, V, Width};

/// The number of hidden registers.
const HIDDEN_REGISTERS: usize = 4 * STAGE_VECS;

/// The effect of DPP on an instruction.
pub struct DppResult {
    /// The words of the permuted first source.
    pub words: Vec<LaneSource>,
    /// The register with the mask of executing lanes, unless all execute.
    pub active: Option<u16>,
}

/// The source lane of each lane's first source.
struct LaneMoves {
    /// `None`: no lane; the source is zero.
    from: Vec<Option<u8>>,
    /// Inactive lanes are no valid sources.
    only_active: bool,
    /// Lanes that the instruction is enabled for.
    enabled: Vec<bool>,
    /// BOUND_CTRL: lanes without a source execute, too.
    bound_ctrl: bool,
}

impl LaneMoves {
    fn new(dpp: &Dpp, lanes: usize) -> LaneMoves {
        let bit = |of: &[u32; 2], lane: usize| of[lane / 32] >> (lane % 32) & 1 == 1;
        let from = |lane: usize| match &dpp.across {
            Some(from) => from[lane] & 63,
            None => dpp.from[lane % 32] & 31 | lane as u8 & 32,
        };
        LaneMoves {
            from: (0..lanes).map(|lane| (!bit(&dpp.outside, lane)).then(|| from(lane))).collect(),
            only_active: dpp.across.is_some() || !dpp.fetch,
            enabled: (0..lanes).map(|lane| !bit(&dpp.disabled, lane)).collect(),
            bound_ctrl: dpp.bound,
        }
    }

    /// Returns whether lanes may be disabled.
    fn disables_lanes(&self) -> bool {
        let missing = self.only_active || self.from.contains(&None);
        !self.bound_ctrl && missing || self.enabled.contains(&false)
    }
}

/// Expands booleans of lanes to masks of eight lanes each.
fn expand_masks(lanes: &[bool]) -> Vec<[u32; LANES]> {
    let mask = |eight: &[bool]| std::array::from_fn(|k| if eight[k] { u32::MAX } else { 0 });
    lanes.chunks_exact(LANES).map(mask).collect()
}

/// Returns the displacement of a packet's lanes of a register.
fn packet_displacement(register: usize, packet: usize) -> i32 {
    (register * LANE_VEC_BYTES + packet / 4 * HALF_BYTES + packet % 4 * 4 * LANES) as i32
}

impl Emitter<'_> {
    /// Closes the run if it writes the instruction's first source or has no hidden registers left.
    pub fn prepare_dpp(&mut self, op: &Op, words: usize) -> R<()> {
        let DecodedSource::Vector(first) = op.src[0].decode() else { return Err(Bug("DPP of a scalar")) };
        if first + words > STAGE {
            return Err(Bug("DPP of a constant"));
        }
        let waits = (0..words).any(|k| self.run.written.contains(&((first + k) as u16)));
        if waits || self.run.hidden_registers + words + 1 > HIDDEN_REGISTERS {
            self.close_run()
        } else {
            Ok(())
        }
    }

    /// Emits the permutation of the first source. The run that the instruction will join has not been emitted
    /// yet.
    pub fn apply_dpp(&mut self, op: &Op, dpp: &Dpp, words: usize, exec: V) -> R<DppResult> {
        let DecodedSource::Vector(first) = op.src[0].decode() else { return Err(Bug("DPP of a scalar")) };
        let lanes = if self.wave64 { 64 } else { 32 };
        let moves = LaneMoves::new(dpp, lanes);
        let hidden = STAGE + self.run.hidden_registers;
        let active = moves.disables_lanes().then_some(hidden + words);
        self.run.hidden_registers += words + active.is_some() as usize;
        let none = self.b.f.vconst([0; LANES]);
        for k in 0..words {
            for packet in 0..lanes / LANES {
                let v = self.permute(&moves.from, packet, none, |e, from| {
                    let vectors = e.vectors;
                    e.f.vload(vectors, packet_displacement(first + k, from), false)
                });
                self.b.f.vstore(self.b.vectors, packet_displacement(hidden + k, packet), v);
            }
        }
        let sourced: Vec<bool> = moves.from.iter().map(|from| moves.bound_ctrl || from.is_some()).collect();
        let enabled: Vec<bool> = moves.enabled.iter().zip(sourced).map(|(a, b)| *a && b).collect();
        if let Some(active) = active {
            for (packet, mask) in expand_masks(&enabled).into_iter().enumerate() {
                let v = self.b.f.vconst(mask);
                self.b.f.vstore(self.b.vectors, packet_displacement(active, packet), v);
            }
        }
        if moves.only_active {
            self.clear_inactive_sources(&moves, exec, [hidden, words], active, none);
        }
        Ok(DppResult {
            words: (0..words).map(|k| LaneSource::Register((hidden + k) as u16)).collect(),
            active: active.map(|register| register as u16),
        })
    }

    /// Clears sources that come from inactive lanes; without BOUND_CTRL, lanes with such sources do not
    /// execute.
    fn clear_inactive_sources(
        &mut self,
        moves: &LaneMoves,
        exec: V,
        [hidden, words]: [usize; 2],
        active: Option<usize>,
        none: V,
    ) {
        let join = self.b.f.label();
        self.b.f.branch(Cc::Eq, crate::arith::ops::width(self.mask_width()), exec, -1, join);
        let packets = moves.from.len() / LANES;
        let bits = self.b.f.vconst(std::array::from_fn(|k| 1 << k));
        let sources: Vec<V> = (0..packets)
            .map(|packet| {
                let own = self.b.f.int2(Int2::Shr, Width::W64, exec, (LANES * packet) as i32);
                let own = self.b.f.splat(false, own);
                let own = self.band(HostWidth::W32, own, bits);
                self.icmp(Cc::Eq, HostWidth::W32, own, bits)
            })
            .collect();
        for packet in 0..packets {
            let valid = self.permute(&moves.from, packet, none, |_, from| sources[from]);
            let masked = active.filter(|_| !moves.bound_ctrl);
            for register in (hidden..hidden + words).chain(masked) {
                let v = self.b.f.vload(self.b.vectors, packet_displacement(register, packet), false);
                let v = self.band(HostWidth::W32, v, valid);
                self.b.f.vstore(self.b.vectors, packet_displacement(register, packet), v);
            }
        }
        self.b.f.push(wavesim_x64::inst::Inst::Label(join));
    }

    /// Gathers the eight source lanes of a packet from vectors of eight lanes each.
    fn permute(
        &mut self,
        from: &[Option<u8>],
        packet: usize,
        none: V,
        vector: impl Fn(&mut Self, usize) -> V,
    ) -> V {
        let lanes = &from[LANES * packet..LANES * (packet + 1)];
        let mut out = None;
        for source in 0..from.len() / LANES {
            let here = |from: &Option<u8>| from.filter(|from| *from as usize / LANES == source);
            let own: [Option<u8>; LANES] = std::array::from_fn(|k| here(&lanes[k]));
            if own == [None; LANES] {
                continue;
            }
            let mut v = vector(self, source);
            let order: [u32; LANES] =
                std::array::from_fn(|k| own[k].map_or(k as u32, |from| from as u32 % LANES as u32));
            if order != std::array::from_fn(|k| k as u32) {
                let order = self.b.f.vconst(order);
                v = self.b.f.rvm(Code::VEX_Vpermd_ymm_ymm_ymmm256, order, v, None);
            }
            let before = out.unwrap_or(none);
            out = Some(match own.contains(&None) {
                true => {
                    let mask = self.b.f.vconst(own.map(|from| if from.is_some() { u32::MAX } else { 0 }));
                    self.b.f.blend(false, mask, v, before)
                }
                false => v,
            });
        }
        out.unwrap_or(none)
    }
}
