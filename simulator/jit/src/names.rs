//! The names of functions and tables that compiled code refers to, for listings.

use crate::arith::builder::LANE_BITS;
use crate::arith::exact::exact_fma_ldexp_f64;
use crate::arith::exact::exact_rsq_f64;
use crate::arith::exact::exact_trig_preop;
use crate::arith::lane_calls;
use crate::frame::{
    arrive_at_barrier, cache_resources, end_wave, find_range, run_and_switch, run_handlers, sync_vgpr_msbs,
    wait_for_barrier,
};
use crate::snapshot::ProgramSnapshot;
use std::collections::HashMap;

macro_rules! named {
    ($($function:ident)*) => { [$(($function as *const () as u64, stringify!($function))),*] };
}

/// Returns the names of addresses: functions, tables, and the operations of a program (`op12`).
pub fn names(program: &ProgramSnapshot) -> HashMap<u64, String> {
    let functions = named![
        arrive_at_barrier cache_resources end_wave exact_fma_ldexp_f64 exact_rsq_f64
        exact_trig_preop find_range run_and_switch run_handlers sync_vgpr_msbs wait_for_barrier
    ];
    let mut names: HashMap<u64, String> = HashMap::new();
    for (address, name) in functions.into_iter().chain(lane_calls::names()) {
        // The linker may have folded identical functions: the first name wins.
        names.entry(address).or_insert_with(|| name.to_string());
    }
    names.insert(LANE_BITS.as_ptr().addr() as u64, "LANE_BITS".to_string());
    names.extend((0..program.ops.len() as u32).map(|at| (program.address_of(at), format!("op{at}"))));
    names
}
