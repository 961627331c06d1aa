//! Lowering of DPP controls to source lanes.

use wavesim_isa::arch::Arch;
use wavesim_isa::dpp;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::Binding;
use wavesim_rt::op::Dpp;

/// Returns the source lanes of an instruction; `None` if its encoding has no DPP.
pub fn of(arch: Arch, binding: &Binding, inst: &Inst) -> Option<Dpp> {
    let m = &binding.mods;
    let get = |field| binding.get(inst, field);
    let mut out = Dpp {
        from: [Dpp::NO_SOURCE; 32],
        across: None,
        outside: [0; 2],
        disabled: [0; 2],
        bound: true,
        fetch: false,
    };
    if let Some(first) = m.lane_sel {
        out.fetch = get(m.src0) == dpp::DPP8_FETCH_INACTIVE;
        for (lane, from) in out.from.iter_mut().enumerate() {
            *from = (lane as u8 & !7) | inst.fields[first as usize + lane % 8] as u8 & 7;
        }
        return Some(out);
    }
    m.dpp_ctrl?;
    (out.bound, out.fetch) = (get(m.bound_ctrl) != 0, get(m.fi) != 0);
    let ctrl = get(m.dpp_ctrl);
    let mut across = [Dpp::NO_SOURCE; 64];
    for lane in 0..64 {
        match dpp::source(arch, ctrl, lane) {
            Some(from) => {
                out.from[lane as usize % 32] = from as u8 & 31;
                across[lane as usize] = from as u8;
            }
            None => out.outside[lane as usize / 32] |= 1 << (lane % 32),
        }
    }
    out.across = dpp::crosses_rows(arch, ctrl).then_some(across);
    let (rows, banks) = (get(m.row_mask), get(m.bank_mask));
    for lane in 0..64 {
        if rows >> (lane / 16) & 1 == 0 || banks >> (lane / 4 % 4) & 1 == 0 {
            out.disabled[lane / 32] |= 1 << (lane % 32);
        }
    }
    Some(out)
}
