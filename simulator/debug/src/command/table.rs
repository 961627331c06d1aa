//! The table of commands: names, arguments, help, completion and function of each, in the order of `help`.
//!
//! A new command needs a row here and a method of [`Debugger`]. Parsing, `help`, completion and repetition by
//! an empty line follow from the row.

use super::{CommandResult, Debugger};
use crate::breakpoint::Access;

/// A command of the debugger.
pub struct Command {
    /// The name that `help` lists first.
    pub name: &'static str,
    /// A short name, if the command has one.
    pub alias: Option<&'static str>,
    /// The arguments, as `help` shows them.
    pub arguments: &'static str,
    /// What the command does, as `help` shows it.
    pub help: &'static str,
    /// The completion of the arguments.
    pub completion: Completion,
    /// Whether an empty line repeats the command.
    pub repeats: bool,
    /// Executes the command, given its arguments and the output buffer.
    pub(super) run: fn(&mut Debugger<'_>, &str, &mut String) -> CommandResult,
}

/// The names with which an argument can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// No names.
    Nothing,
    /// A label for the first word, registers and kernel arguments for the following ones.
    Place,
    /// Registers and kernel arguments.
    Value,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The name of a command.
    Command,
}

/// Every command, in the order of `help`.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "step",
        alias: Some("s"),
        arguments: "[N]",
        help: "run N source lines of this wave (default 1), into calls; instructions where the code has no lines. At a barrier, run the other waves up to it first",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, args, out| d.step(args, out),
    },
    Command {
        name: "stepi",
        alias: Some("si"),
        arguments: "[N]",
        help: "run N instructions of this wave (default 1)",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, args, out| d.step_instruction(args, out),
    },
    Command {
        name: "stepall",
        alias: Some("sa"),
        arguments: "[N]",
        help: "run one instruction of every wave, N times",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, args, out| d.step_all(args, out),
    },
    Command {
        name: "next",
        alias: Some("n"),
        arguments: "[N]",
        help: "run N source lines of this wave (default 1), over calls; where the code has no lines, as nexti",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, args, out| d.next(args, out),
    },
    Command {
        name: "nexti",
        alias: Some("ni"),
        arguments: "[N]",
        help: "run N instructions of this wave (default 1): over a call, or out of a loop at its last branch",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, args, out| d.next_instruction(args, out),
    },
    Command {
        name: "continue",
        alias: Some("c"),
        arguments: "",
        help: "run all waves to the next breakpoint, watchpoint, fault, or the end",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, _, out| d.resume(out),
    },
    Command {
        name: "until",
        alias: Some("u"),
        arguments: "PLACE",
        help: "run until this wave reaches a line, label, function, address, instruction (`v_add_f32`) or barrier (`barrier`)",
        completion: Completion::Place,
        repeats: false,
        run: |d, args, out| d.until(args, out),
    },
    Command {
        name: "finish",
        alias: Some("fin"),
        arguments: "",
        help: "run until the selected frame has returned; from the kernel, until the wave has ended",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, _, out| d.finish(out),
    },
    Command {
        name: "back",
        alias: Some("bs"),
        arguments: "[N]",
        help: "undo the last N instructions (default 1), of whichever waves",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, args, out| d.back(args, out),
    },
    Command {
        name: "reverse-continue",
        alias: Some("rc"),
        arguments: "",
        help: "go back to the previous breakpoint or watchpoint hit, or to the start",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, _, out| d.reverse_continue(out),
    },
    Command {
        name: "goto",
        alias: Some("go"),
        arguments: "STEP",
        help: "go back to a step, or forward again to one that has been run",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, args, out| d.go_to(args, out),
    },
    Command {
        name: "break",
        alias: Some("b"),
        arguments: "[PLACE] [wave N] [hits COUNT] [if CONDITION] [log MESSAGE]",
        help: "stop at a line, label, function, address (0x…) or every instruction of a name (v_add_f32); without a place, at the current instruction. hits 5: from the fifth time on (also == 5, % 5); log: write a message instead, with the values of {expressions}",
        completion: Completion::Place,
        repeats: false,
        run: |d, args, out| d.set_break(args, false, out),
    },
    Command {
        name: "tbreak",
        alias: Some("tb"),
        arguments: "[PLACE] [wave N] [if CONDITION]",
        help: "stop at a place once",
        completion: Completion::Place,
        repeats: false,
        run: |d, args, out| d.set_break(args, true, out),
    },
    Command {
        name: "watch",
        alias: None,
        arguments: "WHAT [if CONDITION]",
        help: "stop when a value changes: a register (v3: any lane, v3[5]: one lane), out_y[3], mem ADDRESS BYTES, lds OFFSET BYTES, scratch OFFSET BYTES",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, out| d.watch(args, Access::Change, out),
    },
    Command {
        name: "rwatch",
        alias: None,
        arguments: "WHAT [if CONDITION]",
        help: "stop when a value is read",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, out| d.watch(args, Access::Read, out),
    },
    Command {
        name: "awatch",
        alias: None,
        arguments: "WHAT [if CONDITION]",
        help: "stop when a value is read or changes",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, out| d.watch(args, Access::Any, out),
    },
    Command {
        name: "delete",
        alias: Some("d"),
        arguments: "[N]",
        help: "delete a breakpoint or watchpoint, or all of them",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, args, out| d.delete(args, out),
    },
    Command {
        name: "info",
        alias: Some("i"),
        arguments: "[waves|breakpoints|args|locals|registers|counters|checks|display]",
        help: "list them (args: the arguments of the launch; locals: parameters and variables of the selected frame; counters: memory operations that would be outstanding on hardware; checks: what --check has found); without an argument, show why the run stopped, and where",
        completion: Completion::Word(&[
            "waves",
            "breakpoints",
            "args",
            "locals",
            "registers",
            "counters",
            "checks",
            "display",
        ]),
        repeats: false,
        run: |d, args, out| d.info(args, out),
    },
    Command {
        name: "wave",
        alias: Some("w"),
        arguments: "N",
        help: "select a wave of the workgroup",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, args, out| d.select_wave(args, out),
    },
    Command {
        name: "group",
        alias: Some("g"),
        arguments: "X[,Y[,Z]]",
        help: "run forward, or go back, to the start of a workgroup",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, args, out| d.select_group(args, out),
    },
    Command {
        name: "lane",
        alias: Some("l"),
        arguments: "N",
        help: "select the lane that expressions read",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, args, out| d.select_lane(args, out),
    },
    Command {
        name: "print",
        alias: Some("p"),
        arguments: "[/x] WHAT [as TYPE] [lanes A..B]",
        help: "show registers (v3, v[0:3], s[2:3], exec), a variable of the source (acc, tile[3], p.x, *q), an argument (out_y, out_y[3]), a slice (out_y[3..7], v3[0..7], lds[0x40..0x4c]), the fields of a descriptor (t# s[0:7], s# s[8:11], v# s[0:3], bvh# s[0:3]), a texel of an image (texel(s[0:7], x, y)) or an expression. TYPE is f32, i32 …, f16x2 or bf16x2, hex or bin; /x, /t, /d, /u, /f: in hexadecimal, binary, as i32, u32, f32",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, out| d.print(args, out),
    },
    Command {
        name: "x",
        alias: None,
        arguments: "/COUNT TYPE ADDRESS",
        help: "show memory: x/8f32 out_y, x/16u8 lds 0x40, x/4u32 scratch 0",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, out| d.examine(args, out),
    },
    Command {
        name: "set",
        alias: None,
        arguments: "PLACE = VALUE",
        help: "change a register (s2, v3[5], scc, pc; v3 in all active lanes, with the value of each), an element of an argument (a[3]), lds[OFFSET], scratch[OFFSET] or mem[ADDRESS]; a type suffix (.f32) sets the format",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, _| d.set(args),
    },
    Command {
        name: "list",
        alias: Some("ls"),
        arguments: "[PLACE]",
        help: "show the source, or the instructions, around the PC or a place",
        completion: Completion::Place,
        repeats: false,
        run: |d, args, out| d.list(args, out),
    },
    Command {
        name: "registers",
        alias: Some("r"),
        arguments: "",
        help: "show the state of the wave: PC, masks, registers that are not 0",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, _, out| d.registers(out),
    },
    Command {
        name: "backtrace",
        alias: Some("bt"),
        arguments: "",
        help: "show the frames of the wave: its functions with their parameters, and those inlined, innermost first",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, _, out| d.backtrace(out),
    },
    Command {
        name: "up",
        alias: None,
        arguments: "[N]",
        help: "select the frame around the selected one: its variables, and its registers at the call",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, args, out| d.up(args, out),
    },
    Command {
        name: "down",
        alias: None,
        arguments: "[N]",
        help: "select the frame inside the selected one",
        completion: Completion::Nothing,
        repeats: true,
        run: |d, args, out| d.down(args, out),
    },
    Command {
        name: "frame",
        alias: Some("f"),
        arguments: "[N]",
        help: "select a frame by its number, or show the selected one",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, args, out| d.frame(args, out),
    },
    Command {
        name: "ptype",
        alias: None,
        arguments: "WHAT",
        help: "show the type of a variable, or of a part of one",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, out| d.show_type(args, out),
    },
    Command {
        name: "display",
        alias: None,
        arguments: "[[/x] WHAT]",
        help: "show a value now and after each stop; without WHAT, show all of them",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, out| d.add_display(args, out),
    },
    Command {
        name: "undisplay",
        alias: None,
        arguments: "[N]",
        help: "no longer show the value with this number, or any",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, args, _| d.undisplay(args),
    },
    Command {
        name: "restart",
        alias: None,
        arguments: "",
        help: "start the run again, without the values that were set; breakpoints stay",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, _, out| d.restart(out),
    },
    Command {
        name: "save",
        alias: None,
        arguments: "FILE",
        help: "save the session: breakpoints, displayed values, the run so far and the values that were set",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, args, out| d.save(args, out),
    },
    Command {
        name: "resume",
        alias: None,
        arguments: "FILE",
        help: "return to a saved session of the same launch",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, args, out| d.resume_saved(args, out),
    },
    Command {
        name: "why",
        alias: None,
        arguments: "[WHAT] [DEPTH]",
        help: "show the origin of the value of a register, a variable, out_y[3] or lds OFFSET BYTES: the instruction that wrote it last, those that wrote its sources, and so on through loads and stores; without WHAT, the origin of the error that a check has just reported",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, out| d.why(args, out),
    },
    Command {
        name: "last-write",
        alias: Some("lw"),
        arguments: "WHAT",
        help: "go back to just before the last write of a register, out_y[3], mem ADDRESS BYTES, lds OFFSET BYTES or scratch OFFSET BYTES",
        completion: Completion::Value,
        repeats: false,
        run: |d, args, out| d.last_write(args, out),
    },
    Command {
        name: "explain",
        alias: Some("e"),
        arguments: "[lanes A..B|all]",
        help: "show the pseudocode of the instruction at the PC, with the values of its operands in this lane or in others",
        completion: Completion::Word(&["lanes", "all"]),
        repeats: false,
        run: |d, args, out| d.explain(args, out),
    },
    Command {
        name: "help",
        alias: Some("h"),
        arguments: "[COMMAND]",
        help: "show all commands, or one",
        completion: Completion::Command,
        repeats: false,
        run: |_, args, out| super::help::help(args, out),
    },
    Command {
        name: "quit",
        alias: Some("q"),
        arguments: "",
        help: "leave the debugger",
        completion: Completion::Nothing,
        repeats: false,
        run: |d, _, _| d.quit(),
    },
];

impl Command {
    /// Returns the command with a name or alias.
    pub fn find(name: &str) -> Option<&'static Command> {
        COMMANDS.iter().find(|command| command.names().any(|n| n == name))
    }

    /// Returns the name, then the alias.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.alias)
    }
}
