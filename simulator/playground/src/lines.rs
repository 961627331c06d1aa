//! The lines of one source file, to which the page links instructions.

use wavesim_loader::debug_info::DebugInfo;
use wavesim_loader::line_table::LineTable;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::location::{SourceFile, SourceLine};

/// Returns the line of a file that an instruction belongs to. Code that has been inlined from another file belongs to
/// its call.
pub fn of(lines: &LineTable, debug: &DebugInfo, address: u64, file: &str) -> Option<u32> {
    let own = lines.line(address).filter(|line| line.line != 0);
    let own = own.filter(|line| lines.files().get(line.file as usize).is_some_and(|f| is(&f.name, file)));
    own.map(|line| line.line).or_else(|| call(debug, address, file))
}

/// Returns the line of the innermost inlined call that is in a file.
fn call(debug: &DebugInfo, address: u64, file: &str) -> Option<u32> {
    let calls = debug.functions(address).into_iter().filter_map(|function| function.call);
    calls.into_iter().find(|call| is(&call.file, file)).map(|call| call.line)
}

fn is(path: &str, file: &str) -> bool {
    path.strip_suffix(file).is_some_and(|folder| folder.is_empty() || folder.ends_with(['/', '\\']))
}

/// Restricts the lines of a program to those of one source file.
pub fn keep(prepared: &mut Prepared, file: &str) {
    let program = &prepared.program;
    let line = |(at, &pc): (usize, &u64)| {
        let own = program.source_line(at);
        let own = own
            .filter(|line| program.source_files().get(line.file as usize).is_some_and(|f| is(&f.name, file)));
        own.map(|line| line.line).or_else(|| call(&prepared.debug, program.address(pc), file)).unwrap_or(0)
    };
    let lines: Vec<u32> = program.pcs.iter().enumerate().map(line).collect();
    let pcs = program.pcs.clone();
    let files = vec![SourceFile { name: file.into(), path: file.to_string() }];
    let line_at = |pc: u64| {
        let line = *lines.get(pcs.binary_search(&pc).ok()?)?;
        (line != 0).then_some(SourceLine { file: 0, line, column: 0 })
    };
    prepared.program.set_debug_lines(files, line_at);
}
