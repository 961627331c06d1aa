//! What there is: every command with its arguments and meaning, for `help` and completion.

use super::Done;
use std::fmt::Write as _;

/// A command's names, arguments and meaning. The first name is the long one.
pub struct Help {
    pub names: &'static [&'static str],
    pub arguments: &'static str,
    pub text: &'static str,
}

/// Every command, as `help` lists them.
pub const COMMANDS: &[Help] = &[
    Help {
        names: &["step", "s"],
        arguments: "[N]",
        text: "run N instructions of this wave (default 1); at a barrier let the other waves come first",
    },
    Help { names: &["stepall", "sa"], arguments: "[N]", text: "run one instruction of every wave, N times" },
    Help {
        names: &["next", "n"],
        arguments: "",
        text: "run to the instruction behind this one: over a call, or out of a loop's last branch",
    },
    Help {
        names: &["continue", "c"],
        arguments: "",
        text: "run all waves to the next breakpoint, change of something watched, fault, or the end",
    },
    Help {
        names: &["until", "u"],
        arguments: "PLACE",
        text: "run until this wave comes to a line, label or address",
    },
    Help { names: &["finish", "fin"], arguments: "", text: "run until this wave has ended" },
    Help {
        names: &["back", "bs"],
        arguments: "[N]",
        text: "undo the last N instructions, whichever waves ran them",
    },
    Help {
        names: &["reverse-continue", "rc"],
        arguments: "",
        text: "go back to the last breakpoint or change of something watched, or to the start",
    },
    Help {
        names: &["goto", "go"],
        arguments: "STEP",
        text: "go to a step of the past, or forward again to one already run",
    },
    Help {
        names: &["break", "b"],
        arguments: "PLACE [wave N] [if CONDITION]",
        text: "stop at a line, label or address (0x…); without a place: here",
    },
    Help { names: &["tbreak", "tb"], arguments: "PLACE [wave N] [if CONDITION]", text: "stop there once" },
    Help {
        names: &["watch"],
        arguments: "WHAT",
        text: "stop when it changes: a register (v3: any lane, v3[5]: one), out_y[3], mem ADDRESS BYTES, lds OFFSET BYTES",
    },
    Help { names: &["delete", "d"], arguments: "[N]", text: "delete a breakpoint or watchpoint, or all" },
    Help {
        names: &["info", "i"],
        arguments: "[waves|breakpoints|args|registers|counters]",
        text: "show them (counters: what the hardware would still wait for); without an argument: where this wave stands",
    },
    Help { names: &["wave", "w"], arguments: "N", text: "choose a wave of the workgroup" },
    Help {
        names: &["group", "g"],
        arguments: "X[,Y[,Z]]",
        text: "run to the start of a workgroup, or go back to it",
    },
    Help { names: &["lane", "l"], arguments: "N", text: "choose the lane that expressions read" },
    Help {
        names: &["print", "p"],
        arguments: "WHAT [as TYPE] [lanes A..B]",
        text: "show registers (v3, v[0:3], s[2:3], exec), an argument (out_y, out_y[3]) or an expression",
    },
    Help {
        names: &["x"],
        arguments: "/COUNT TYPE ADDRESS",
        text: "show memory: x/8f32 out_y, x/16u8 lds 0x40, x/4u32 scratch 0",
    },
    Help {
        names: &["set"],
        arguments: "PLACE = VALUE",
        text: "change a register (s2, v3[5], v3 in all active lanes, scc, pc) or an argument's element (a[3])",
    },
    Help {
        names: &["list", "ls"],
        arguments: "[PLACE]",
        text: "show the source, or the instructions, around the PC or a place",
    },
    Help {
        names: &["registers", "r"],
        arguments: "",
        text: "show the wave's state: PC, masks, registers that are not 0",
    },
    Help {
        names: &["why", "bt"],
        arguments: "REGISTER [DEPTH]",
        text: "show which instruction wrote a register last, and what wrote its sources",
    },
    Help {
        names: &["last-write", "lw"],
        arguments: "WHAT",
        text: "go back to just before the last write of a register, out_y[3], mem ADDRESS BYTES or lds OFFSET BYTES",
    },
    Help {
        names: &["explain", "e"],
        arguments: "[lanes A..B|all]",
        text: "show the pseudocode of the instruction at the PC, with the values that it gets in this lane or in others",
    },
    Help { names: &["help", "h"], arguments: "[COMMAND]", text: "show the commands, or one" },
    Help { names: &["quit", "q"], arguments: "", text: "leave" },
];

/// All commands, or one.
pub(super) fn help(name: &str, out: &mut String) -> Done {
    let list: Vec<&Help> = match name {
        "" => COMMANDS.iter().collect(),
        name => vec![
            COMMANDS
                .iter()
                .find(|c| c.names.contains(&name))
                .ok_or_else(|| format!("there is no command `{name}`"))?,
        ],
    };
    for c in list {
        let head = format!("{} {}", c.names.join(", "), c.arguments);
        let _ = writeln!(out, "{}\n    {}", head.trim_end(), c.text);
    }
    if name.is_empty() {
        out.push_str("An empty line repeats the last step. Expressions: v3[5] > 10, s[2:3] + 8, out_y[3], exec, $step; `.f32` or `as f32` reads bits as a type.\n");
    }
    Ok(())
}
