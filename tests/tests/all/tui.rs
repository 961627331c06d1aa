//! The full-screen debugger on a terminal of 80x24 characters, driven by keys.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wavesim::debug::command::{Debugger, ctrl_c};
use wavesim::debug::timeline::Timeline;
use wavesim::loader::text_kernel::{self, Options};
use wavesim::tui::app::App;
use wavesim::tui::draw::screen;

const KERNEL: &str = "---\nout_y: i32[32]\nlocal = 64, 1, 1\nglobal = 1, 1, 1\nwave = 32\n---\n  v_lshlrev_b32 v1, 2, v0\n  s_mov_b32 s9, 0x1234\n  s_endpgm\n";

/// Keys control the run, and everything fits on a standard terminal.
#[test]
fn standard_terminal_size() {
    let options = Options { global_bytes: 1 << 20, ..Options::default() };
    let prepared = text_kernel::prepare("k.rdna", KERNEL, &options, 0).unwrap();
    let dispatch = prepared.dispatch(1000);
    let timeline = Timeline::new(&prepared, &dispatch).unwrap();
    let mut app = App::new(Debugger::new(timeline, ctrl_c));
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let mut show = |app: &mut App<'_>| {
        terminal.draw(|frame| screen(frame, app)).unwrap();
        terminal.backend().to_string()
    };
    let start = show(&mut app);
    for part in ["k.rdna", "=>", "wave 0", "v0", "lane 3", "exec ffffffff", "s step"] {
        assert!(start.contains(part), "{part} is missing:\n{start}");
    }
    for key in "ss".chars() {
        app.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
    }
    let stepped = show(&mut app);
    assert!(stepped.contains("[step 2]") && stepped.contains("00001234"), "{stepped}");
    assert!(stepped.contains("0000000c"), "v1 of lane 3:\n{stepped}");
    for key in ":p v1[5]\n".chars() {
        let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
        app.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    assert!(show(&mut app).contains("running…"), "the screen says that a command runs");
    app.run_pending();
    let printed = show(&mut app);
    assert!(printed.contains("v1[5] = 20"), "{printed}");
    app.key(KeyEvent::new(KeyCode::Char('b'), KeyModifiers::NONE));
    assert!(show(&mut app).contains("[step 1]"));
}

/// Another architecture shows its own register names, and no registers that it lacks.
#[test]
fn registers_of_another_machine() {
    let path = wavesim_tests::root().join("examples/riscv_gpu/collatz.as");
    let prepared = wavesim_tests::programs::prepare(&path, wavesim::arch::Arch::RiscvGpu).unwrap();
    let dispatch = prepared.dispatch(1000);
    let mut app = App::new(Debugger::new(Timeline::new(&prepared, &dispatch).unwrap(), ctrl_c));
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    for _ in 0..4 {
        app.key(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::NONE));
    }
    terminal.draw(|frame| screen(frame, &mut app)).unwrap();
    let shown = terminal.backend().to_string();
    for part in ["x5 ", "s1  fffffffe", "exec fffffffe", "beq  s1, s0, done"] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    assert!(!shown.contains("vcc") && !shown.contains("m0"), "{shown}");
}
