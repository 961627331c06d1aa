//! The table of commands, and completion.

use std::collections::BTreeSet;
use wavesim_debug::command::{COMMANDS, Command, Debugger};
use wavesim_debug::timeline::Timeline;
use wavesim_loader::prepared::Prepared;
use wavesim_loader::text_kernel::{self, Options};

const KERNEL: &str = "---\nout_y: i32[32]\nlocal = 32, 1, 1\nglobal = 1, 1, 1\nwave = 32\n---\n  v_mov_b32 v1, 7\nloop:\n  s_endpgm\n";

fn prepared() -> Prepared {
    let options = Options { global_bytes: 1 << 20, ..Options::default() };
    text_kernel::prepare("k.rdna", KERNEL, &options, 0).unwrap()
}

#[test]
fn names_are_unique() {
    let names: Vec<&str> = COMMANDS.iter().flat_map(Command::names).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn completion_follows_the_table() {
    let prepared = prepared();
    let dispatch = prepared.dispatch(1000);
    let debugger = Debugger::new(Timeline::new(&prepared, &dispatch).unwrap(), || false);
    let complete = |line: &str| debugger.complete(line, line.len());
    let list = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    assert_eq!(complete("st"), (0, list(&["step", "stepall", "stepi"])));
    assert_eq!(complete("  rev"), (2, list(&["reverse-continue"])));
    assert_eq!(complete("b lo"), (2, list(&["loop"])), "an alias, and a label");
    assert_eq!(complete("until out"), (6, list(&[])), "places are labels, not arguments");
    assert_eq!(complete("break loop if out"), (14, list(&["out_y"])), "the condition of a breakpoint");
    assert_eq!(complete("p out_y[0] + v"), (13, list(&["vcc"])));
    assert_eq!(complete("info w"), (5, list(&["waves"])));
    assert_eq!(complete("help tb"), (5, list(&["tbreak"])));
    assert_eq!(complete("step l"), (5, list(&[])));
    assert_eq!(complete("nonsense l"), (9, list(&[])));
    assert_eq!(
        debugger.complete("step", 2),
        (0, list(&["step", "stepall", "stepi"])),
        "the cursor within the word"
    );
}

#[test]
fn empty_lines_repeat_steps() {
    let prepared = prepared();
    let dispatch = prepared.dispatch(1000);
    let mut debugger = Debugger::new(Timeline::new(&prepared, &dispatch).unwrap(), || false);
    let mut execute = |line: &str| debugger.execute(line).0.unwrap();
    assert!(execute("step").starts_with("[step 1]"));
    assert!(execute("").contains("the run has ended after 2 steps"));
    assert!(execute("bs").contains("[step 1]"));
    assert_eq!(execute("print v1[5]"), "v1[5] = 7\n");
    assert_eq!(execute(""), "", "print does not repeat");
}
