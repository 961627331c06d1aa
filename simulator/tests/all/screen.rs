//! `wavesim tui` on a real terminal of 80x24 characters, driven by its keys.

use crate::terminal::{COLUMNS, Terminal, file, workspace};
use std::time::Duration;

const KERNEL: &str = "\
---
arg_x: f32[64] = arange(64)
out_y: f32[64]
local = 64, 1, 1
global = 2, 1, 1
wave = 32
---
  s_load_b64 s[6:7], s[3:4], 0x0
  s_load_b64 s[8:9], s[3:4], 0x8
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v2, v1, s[6:7]
  s_waitcnt vmcnt(0)
  s_mov_b32 s12, exec_lo
  s_and_b32 exec_lo, exec_lo, 0xfffffff0
  v_add_f32 v2, 0.5, v2
  s_mov_b32 exec_lo, s12
  global_store_b32 v1, v2, s[8:9]
  s_endpgm
";

/// Returns the row and column at which the screen shows a text.
fn find(terminal: &Terminal, text: &str) -> (u16, u16) {
    let rows = terminal.rows();
    let row = rows.iter().position(|r| r.contains(text)).unwrap_or_else(|| panic!("{text}: {rows:#?}"));
    let at = rows[row].find(text).unwrap();
    (row as u16, rows[row][..at].chars().count() as u16)
}

#[test]
fn screen_fits_and_keys_work() {
    let file = file("screen.rdna", KERNEL);
    let t = Terminal::start(&["tui", &file], &[]);
    let start = t.shows("? keys  q");
    // Panes, their titles, and all keys.
    for text in [
        "screen.rdna",
        "Waves of workgroup 1 of 2",
        "Scalars",
        "VGPRs",
        "lane 0",
        "lane 3",
        "exec ffffffff",
        "vcc ",
        "scc 0",
        "=>    8    s_load_b64 s[6:7], s[3:4]",
        "> 0 line 8",
        "  1 line 8",
        "v0",
        "s step  a all waves",
        "Memory",
        "Scratch",
        "at the start",
        "B break",
        "Esc stop",
        "[step 0] workgroup (0,0,0) wave 0: line 8",
    ] {
        assert!(start.contains(text), "{text} is missing:\n{start}");
    }
    assert_eq!(start.lines().count(), 24, "{start}");
    assert!(start.lines().all(|l| l.chars().count() <= COLUMNS as usize), "{start}");

    // A step: the PC changes, and changed registers are highlighted.
    t.press("sss");
    t.shows("[step 3]");
    let (row, column) = find(&t, "0000000c");
    let changed = t.cell(row, column);
    assert!(
        changed.bold() && changed.fgcolor() != vt100::Color::Default,
        "a changed register is highlighted"
    );
    t.press("s");
    t.shows("[step 4]");
    assert!(!t.cell(row, column).bold(), "only what the last step changed");

    // Step back.
    t.press("b");
    t.shows("[step 3]");

    // Set a breakpoint by a command, and continue to it.
    t.press(":break 16\r");
    t.shows("breakpoint 1 at line 16");
    t.press("c");
    t.shows("b  16");
    t.shows("wave 0: line 16: v_add_f32");
    t.press("v");
    t.shows("exec fffffff0");

    // Switch to another wave and back: nothing has changed, so nothing is highlighted.
    t.press("w");
    t.shows("> 1 line 8");
    t.press("w");
    t.shows("> 0 line 16");

    // Inactive lanes are dimmed; values as floats.
    t.press("f");
    t.shows("          2 ");
    let (row, column) = find(&t, "          2 ");
    assert!(t.cell(row, column).dim(), "lane 2 is switched off");
    t.press(&"\x1b[C".repeat(4));
    t.shows("          4 ");
    let (row, column) = find(&t, "          4 ");
    assert!(!t.cell(row, column).dim(), "lane 4 is on");

    // The semantics of the instruction, with the values of the lane.
    t.press("e");
    let explained = t.shows("0.5 + 4.0");
    assert!(explained.contains("S1 = v2 = 4.0"), "{explained}");
    t.press(":lane 2\r");
    t.shows("lane 2 (inactive)");

    // Memory, argument by argument: four dwords a row.
    t.press("fm");
    t.shows(" 00000000 3f800000 40000000 40400000");
    assert!(t.shows("arg_x").contains("arg_x"));
    t.press("m");
    t.shows("out_y");

    // Another wave, all waves, and help.
    t.press("w");
    t.shows("> 1 line 8");
    t.press("a");
    t.shows("> 1 line 9");
    t.press("?");
    let help = t.shows("step: one line of this wave");
    t.press("\x1b[B");
    t.until("scrolled help", |screen| screen.contains("lines: ↑↓") && screen != help);
    t.press(":nonsense\r");
    t.shows("there is no command `nonsense`");

    // To the end, and back to the last stop.
    t.press(":delete\r");
    t.shows("all breakpoints and watchpoints deleted");
    t.press("c");
    t.shows("has ended");
    t.press(":break 18\r");
    t.shows("breakpoint 2");
    t.press("r");
    let title = |screen: &str| screen.lines().next().unwrap_or("").to_string();
    t.until("the last stop", |screen| title(screen).contains("wave 1: line 18: global_store_b32"));
    t.press("q");
    let (status, sent) = t.end();
    assert!(status.success());
    assert!(sent.ends_with("\x1b[?1049l") || sent.contains("\x1b[?1049l"), "the screen is given back");
}

/// Long commands stop on Esc.
#[test]
fn endless_kernels_can_be_stopped() {
    let file =
        file("endless.rdna", "---\nlocal = 32, 1, 1\n---\nagain:\n  s_add_u32 s5, s5, 1\n  s_branch again\n");
    let t = Terminal::start(&["tui", &file], &[]);
    t.shows("? keys  q");
    t.press("c");
    t.press("\x1b");
    t.until("a stop", |screen| !screen.contains("[step 0]") && screen.contains("[step "));
    t.press("q");
    assert!(t.end().0.success());
}

#[test]
fn no_color_is_respected() {
    let file = file("plain.rdna", KERNEL);
    let coloured = |sent: &str| sent.contains("\x1b[33m") || sent.contains("\x1b[38;5;");
    for (set, wanted) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false), (&[("NO_COLOR", "")][..], true)]
    {
        let t = Terminal::start(&["tui", &file], set);
        t.shows("? keys  q");
        t.press("sss");
        t.shows("[step 3]");
        t.press("q");
        let (status, sent) = t.end();
        assert!(status.success());
        assert_eq!(coloured(&sent), wanted, "{set:?}");
    }
}

/// The line-oriented debugger on a terminal: prompt, completion, history, help.
#[test]
fn prompt() {
    let t = Terminal::start(&["debug", &workspace("examples/vector_add.rdna"), "-D", "N=32"], &[]);
    t.shows("(wavesim) ");
    t.press("p out_\t");
    t.shows("p out_c");
    t.press("[3]\r");
    t.shows("out_c[3] = 0.0");
    t.press("reg\t\r");
    t.shows("pc 0x0  exec ffffffff");
    // The line before the last one, from the history.
    t.press("\x1b[A\x1b[A\r");
    t.until("the repeated command", |screen| screen.matches("out_c[3] = 0.0").count() == 2);
    t.press("help watch\r");
    t.shows("stop when a value changes");
    t.press("s\r");
    t.shows("[step 1]");
    t.press("\r");
    t.shows("[step 2]");
    t.press("q\r");
    assert!(t.end().0.success());
}

/// Ctrl-C while a command runs stops the command, not the debugger.
#[test]
fn prompt_survives_ctrl_c() {
    let file =
        file("spin.rdna", "---\nlocal = 32, 1, 1\n---\nagain:\n  s_add_u32 s5, s5, 1\n  s_branch again\n");
    let t = Terminal::start(&["debug", &file], &[]);
    t.shows("(wavesim) ");
    t.press("c\r");
    // A Ctrl-C before the command runs goes to the line editor, which ignores it.
    let interrupted = |screen: &str| screen.contains("interrupted");
    let stopped = (0..30).any(|_| {
        t.press("\x03");
        t.within(Duration::from_secs(2), interrupted).0
    });
    assert!(stopped, "{:?}", t.rows());
    t.press("p s5 > 0\r");
    t.shows("s5 > 0 = 1");
    t.press("q\r");
    assert!(t.end().0.success());
}
