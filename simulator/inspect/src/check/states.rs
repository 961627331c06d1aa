//! The states of all checks of a run.

use super::kind::{CheckState, Chosen, Setup};
use super::report::Report;
use super::rows::for_all_checks;
use super::{arith, barrier, hazard, init, lanes, mem, race, waits};
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::Effects;

macro_rules! states {
    ($count:literal checks; $($(#[$doc:meta])* $place:literal: $name:ident, $field:ident: $state:ty,
        $text:literal, $title:literal, also for [$($other:ident),*];)*) => {
        /// The states of all checks.
        pub struct States {
            $(pub $field: $state,)*
        }

        /// The states of a workgroup that is not running.
        pub struct Groups {
            $($field: <$state as CheckState>::WorkgroupState,)*
        }

        impl States {
            /// Creates the states for a launch.
            pub fn new(setup: &Setup<'_>) -> States {
                States { $($field: CheckState::new(setup),)* }
            }

            /// As [`CheckState::start`].
            pub fn start(&mut self, workgroup: [u32; 3], waves: usize) {
                $(CheckState::start(&mut self.$field, workgroup, waves);)*
            }

            /// As [`CheckState::park`].
            pub fn park(&mut self) -> Groups {
                Groups { $($field: CheckState::park(&mut self.$field),)* }
            }

            /// As [`CheckState::unpark`].
            pub fn unpark(&mut self, groups: Groups) {
                $(CheckState::unpark(&mut self.$field, groups.$field);)*
            }

            /// As [`CheckState::observes`].
            pub fn observes(&self, running: Chosen, index: usize) -> bool {
                $(running.$field && CheckState::observes(&self.$field, index))||*
            }

            /// As [`CheckState::arrive`].
            #[inline(always)]
            pub fn arrive(&mut self, running: Chosen, step: &Step<'_>) {
                $(if running.$field {
                    CheckState::arrive(&mut self.$field, step);
                })*
            }

            /// As [`CheckState::before`].
            #[inline(always)]
            pub fn before(&mut self, running: Chosen, step: &Step<'_>, effects: &Effects, report: &mut Report) {
                $(if running.$field {
                    CheckState::before(&mut self.$field, step, effects, report);
                })*
            }

            /// As [`CheckState::after`].
            #[inline(always)]
            pub fn after(
                &mut self,
                running: Chosen,
                step: &Step<'_>,
                done: &Done<'_>,
                effects: &Effects,
                prepared: &Prepared,
                report: &mut Report,
            ) {
                $(if running.$field {
                    CheckState::after(&mut self.$field, step, done, effects, prepared, report);
                })*
            }

            /// As [`CheckState::after_control`].
            #[inline(always)]
            pub fn after_control(&mut self, running: Chosen, step: &Step<'_>, done: &Done<'_>, report: &mut Report) {
                $(if running.$field {
                    CheckState::after_control(&mut self.$field, step, done, report);
                })*
            }
        }
    };
}

for_all_checks!(states);
