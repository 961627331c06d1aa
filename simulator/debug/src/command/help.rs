//! `help`.

use super::{COMMANDS, Command, CommandResult};
use std::fmt::Write as _;

/// Describes all commands, or one.
pub(super) fn help(name: &str, out: &mut String) -> CommandResult {
    let commands = match name {
        "" => COMMANDS,
        name => {
            let command = Command::find(name).ok_or_else(|| format!("there is no command `{name}`"))?;
            std::slice::from_ref(command)
        }
    };
    for command in commands {
        let names: Vec<&str> = command.names().collect();
        let head = format!("{} {}", names.join(", "), command.arguments);
        let _ = writeln!(out, "{}\n    {}", head.trim_end(), command.help);
    }
    if name.is_empty() {
        out.push_str(
            "An empty line repeats a step. Expressions: v3[5] > 10, s[2:3] + 8, out_y[3], exec, \
             $step; `.f32` or `as f32` reinterprets the bits as a type.\n",
        );
    }
    Ok(())
}
