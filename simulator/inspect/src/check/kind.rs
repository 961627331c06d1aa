//! The kinds of checks, and what the state of each does.

use super::report::Report;
use super::rows::for_all_checks;
use wavesim_engine::observe::{Done, Step};
use wavesim_isa::arch::Arch;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::Effects;

macro_rules! kinds {
    ($count:literal checks; $($(#[$doc:meta])* $place:literal: $name:ident, $field:ident: $state:ty,
        $text:literal, $title:literal, also for [$($other:ident),*];)*) => {
        /// A kind of check.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Check {
            $($(#[$doc])* $name = $place,)*
        }

        impl Check {
            /// All checks, in the order of reports.
            pub const ALL: [Check; $count] = {
                let mut all = [Check::Mem; $count];
                $(all[$place] = Check::$name;)*
                all
            };

            /// Returns the name used on the command line and in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Check::$name => $text,)*
                }
            }

            /// Returns what the check finds, in a few words.
            pub fn title(self) -> &'static str {
                match self {
                    $(Check::$name => $title,)*
                }
            }
        }

        /// A set of checks.
        #[derive(Debug, Clone, Copy)]
        pub struct Chosen {
            $(pub $field: bool,)*
        }

        impl Chosen {
            /// Returns the set of these checks.
            pub fn of(checks: &[Check]) -> Chosen {
                Chosen { $($field: checks.contains(&Check::$name),)* }
            }

            /// Returns the checks whose state is needed for those of this set.
            pub fn running(self) -> Chosen {
                let has = |check: Check| match check {
                    $(Check::$name => self.$field,)*
                };
                Chosen { $($field: self.$field $(|| has(Check::$other))*,)* }
            }
        }
    };
}

for_all_checks!(kinds);

impl Check {
    /// The checks of a run for which none are chosen: those whose findings are errors in any kernel.
    pub const DEFAULT: [Check; 6] =
        [Check::Mem, Check::Init, Check::Race, Check::Waits, Check::Barrier, Check::Hazard];

    /// Returns the check with the given name; the inverse of [`Check::name`].
    pub fn from_name(name: &str) -> Option<Check> {
        Check::ALL.into_iter().find(|c| c.name() == name)
    }

    /// Returns the checks that apply to an architecture. All checks but `mem` implement rules of AMD's
    /// architectures only.
    pub fn of(arch: Arch) -> &'static [Check] {
        if arch.machine().is_none() { &Check::ALL } else { &[Check::Mem] }
    }

    /// Returns those of [`Check::DEFAULT`] that apply to an architecture.
    pub fn default_of(arch: Arch) -> &'static [Check] {
        if arch.machine().is_none() { &Check::DEFAULT } else { &[Check::Mem] }
    }
}

/// What the state of a check is created from.
pub struct Setup<'a> {
    /// The launch.
    pub prepared: &'a Prepared,
    /// The effects of the program's instructions.
    pub effects: &'a [Effects],
    /// The checks whose findings are reported.
    pub chosen: Chosen,
}

/// The state of a check: it follows the waves of the workgroup that runs. Each hook has a default that does
/// nothing. What checks tell each other, and the fast paths of instructions that need no check, are in
/// [`Checker`](super::Checker).
pub trait CheckState: Sized {
    /// The state of a workgroup that has started but is not running now.
    type WorkgroupState: Default;

    /// Creates the state for a launch.
    fn new(setup: &Setup<'_>) -> Self;

    /// Starts a workgroup of `waves` waves.
    fn start(&mut self, workgroup: [u32; 3], waves: usize);

    /// Swaps the state with that of another workgroup.
    fn swap(&mut self, group: &mut Self::WorkgroupState);

    /// Takes the state of the running workgroup.
    fn park(&mut self) -> Self::WorkgroupState {
        let mut group = Self::WorkgroupState::default();
        self.swap(&mut group);
        group
    }

    /// Continues with the state of a workgroup.
    fn unpark(&mut self, mut group: Self::WorkgroupState) {
        self.swap(&mut group);
    }

    /// Returns whether [`CheckState::before`] must see an instruction, which is then never skipped.
    fn observes(&self, _index: usize) -> bool {
        false
    }

    /// Sees each instruction before it runs, or the first of those that are skipped.
    #[inline(always)]
    fn arrive(&mut self, _step: &Step<'_>) {}

    /// Sees an instruction that is not skipped before it runs.
    #[inline(always)]
    fn before(&mut self, _step: &Step<'_>, _effects: &Effects, _report: &mut Report) {}

    /// Sees an instruction that is not skipped after it has run. (Checks that know each other's state do this in
    /// [`Checker`](super::Checker).)
    #[inline(always)]
    fn after(
        &mut self,
        _step: &Step<'_>,
        _done: &Done<'_>,
        _effects: &Effects,
        _prepared: &Prepared,
        _report: &mut Report,
    ) {
    }

    /// Sees an instruction with control builtins, other than waits, or with an event after it has run.
    #[inline(always)]
    fn after_control(&mut self, _step: &Step<'_>, _done: &Done<'_>, _report: &mut Report) {}
}
