//! The builder of arithmetic: a function under construction, and what is known about its values. It knows
//! neither the program nor the wave's registers.

use crate::arith::facts::Facts;
use crate::arith::val::Val;
use crate::frame::frame_offset;
use crate::lowering::Why;
use isa_lower::ir::HostWidth;
use std::collections::HashSet;
use wavesim_x64::Function;
use wavesim_x64::inst::{Cc, Inst, Int2, Label, Mem, Size, Src, V, Width};

/// Selection has chosen code for something that emission cannot emit. The unit is left to the interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} was selected but cannot be emitted")]
pub struct Bug(pub &'static str);

impl From<Why> for Bug {
    fn from(why: Why) -> Bug {
        Bug(why.0)
    }
}

pub type R<T> = Result<T, Bug>;

/// Builds arithmetic.
pub struct Builder {
    pub f: Function,
    pub frame: V,
    pub vectors: V,
    pub sgprs: V,
    pub wave64: bool,
    pub flush: bool,
    pub facts: Facts,
    /// Integers whose high word is zero.
    pub zero_extended_ints: HashSet<V>,
    /// The current packet, while a loop over packets is emitted.
    pub packet: Option<PacketPosition>,
    /// The lanes whose result is used, while one operand of a select is emitted.
    pub demanded: Option<V>,
    /// The current run executes with MXCSR.DAZ set.
    pub run_daz: bool,
    /// MXCSR.DAZ is set at this program point.
    pub daz: bool,
}

/// The position of the packet that is being emitted.
#[derive(Clone, Copy)]
pub struct PacketPosition {
    /// The number of its first lane.
    pub n: V,
    /// The address of its lanes in the first register.
    pub base: V,
    /// The distance of the table of lane bits from the registers.
    pub bits_distance: Option<V>,
}

/// The bit of each lane of a wave32.
pub static LANE_BITS: [u32; 32] = {
    let mut bits = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

impl Builder {
    /// Emits the lane numbers.
    pub fn lane_id(&mut self) -> R<Val> {
        let PacketPosition { n, .. } = self.packet.ok_or(Bug("a lane's number"))?;
        let (first, each) =
            (self.broadcast(HostWidth::W32, n), self.f.vconst(std::array::from_fn(|k| k as u32)));
        Ok(Val::Lanes(self.iadd(HostWidth::W32, first, each)))
    }

    /// Expands the lanes' bits to a mask.
    pub fn expand_mask(&mut self, bits: V) -> R<V> {
        let PacketPosition { n, base, bits_distance } = self.packet.ok_or(Bug("a lane's bit"))?;
        let (all, own) = if self.wave64 {
            let bits = self.f.int2(Int2::Shr, Width::W64, bits, n);
            (self.f.splat(false, bits), self.f.vconst(std::array::from_fn(|k| 1 << k)))
        } else {
            // The table is as long as a register, so that its address advances as a register's address does.
            let vectors = self.vectors;
            let bits_distance = bits_distance.unwrap_or_else(|| {
                self.f.hoist(|f| {
                    let table = f.iconst(LANE_BITS.as_ptr().addr() as u64);
                    f.int2(Int2::Sub, Width::W64, table, vectors)
                })
            });
            self.packet = Some(PacketPosition { n, base, bits_distance: Some(bits_distance) });
            let address = self.f.int2(Int2::Add, Width::W64, base, bits_distance);
            (self.broadcast(HostWidth::W32, bits), self.f.vload(address, 0, true))
        };
        let own_bits = self.band(HostWidth::W32, all, own);
        Ok(self.icmp(Cc::Eq, HostWidth::W32, own_bits, own))
    }

    /// Writes the arguments of a function that is called with the frame to the frame's buffer.
    pub fn pass_arguments(&mut self, args: impl IntoIterator<Item = Src>) {
        for (n, arg) in (0..).zip(args) {
            self.f.store(Size::B8, self.frame, frame_offset::LANE_BUFFER + 8 * n, arg);
        }
    }

    /// Calls a function with the frame, on a cold path.
    pub fn call_cold(&mut self, function: u64) {
        // Rust code expects the default MXCSR.
        if self.daz {
            self.write_mxcsr(false);
        }
        self.f.push(Inst::ColdCall { function, arg: self.frame });
        if self.daz {
            self.write_mxcsr(true);
        }
    }

    /// Returns the host width of a wave's mask.
    pub fn mask_width(&self) -> HostWidth {
        if self.wave64 { HostWidth::W64 } else { HostWidth::W32 }
    }

    /// Sets or clears MXCSR.DAZ from here on. Writing MXCSR is slow, so that code keeps the current setting
    /// as long as it can.
    pub fn set_daz(&mut self, zeros: bool) {
        if self.daz != zeros {
            self.write_mxcsr(zeros);
            self.daz = zeros;
        }
    }

    /// Writes MXCSR without recording the new setting.
    pub fn write_mxcsr(&mut self, zeros: bool) {
        let disp = if zeros { frame_offset::MXCSR_DAZ } else { frame_offset::MXCSR_DEFAULT };
        self.f.push(Inst::LoadMxcsr { from: Mem { base: self.frame, disp } });
    }

    /// Branches to a label if an integer is 0.
    pub fn branch_if_zero(&mut self, v: V, to: Label) {
        self.f.branch(Cc::Eq, Width::W32, v, 0, to);
    }
}
