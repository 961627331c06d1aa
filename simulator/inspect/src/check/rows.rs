//! The rows of checks. A check is a row here and a module with its state, a `CheckState`.

/// Calls a macro with the rows, in the order in which the checks see an instruction. A row: the place in reports,
/// the name, the state, the name on the command line, what the check finds, and other checks that need its
/// state.
macro_rules! for_all_checks {
    ($then:ident) => {
        $then! {
            8 checks;
            /// Results used before the wait for their counter.
            3: Waits, waits: waits::Scoreboard, "waits", "missing waits", also for [Race];
            /// Conflicting accesses of two waves that happens-before does not order.
            // It also finds accesses that are outstanding at a barrier or at the store of a flag.
            2: Race, race: race::Shadow, "race", "races", also for [Waits];
            /// Uses of undefined registers.
            // It also finds uses of loaded values that were never stored.
            1: Init, init: init::Shadow, "init", "uninitialised values", also for [Mem];
            /// Accesses that are out of bounds or misaligned, and loads of undefined bytes of LDS and scratch.
            0: Mem, mem: mem::Shadow, "mem", "accesses out of bounds", also for [];
            /// Barrier divergence: waves that arrive at different barriers, with lanes missing, or not at all.
            4: Barrier, barrier: barrier::Shadow, "barrier", "barrier divergence", also for [];
            /// Uses that the architecture forbids.
            5: Hazard, hazard: hazard::Shadow, "hazard", "hazards", also for [];
            /// Races between the lanes of a wave.
            // A race check notes lanes that store different values.
            6: Lanes, lanes: lanes::Shadow, "lanes", "races between lanes", also for [Race];
            /// Arithmetic whose result is rarely intended.
            7: Arith, arith: arith::Shadow, "arith", "arithmetic errors", also for [];
        }
    };
}
pub(super) use for_all_checks;
