//! The report as one HTML file without references: the sources with counts beside the lines.

use crate::file::{Coverage, Instruction, Program};
use crate::lines::{self, Line, Share, SourceFile};
use crate::report::Totals;
use std::fmt::Write as _;
use wavesim_html::{Page, escape};

const STYLE: &str = "\
td{white-space:pre}th,td.t,table.code td{text-align:left}table.code td{font:12px ui-monospace,monospace;border:0}\
table td.n{text-align:right}table.code{width:100%}\
tr.run td{background:var(--good-bg)}tr.missing td{background:var(--bad-bg)}tr.partly td{background:color-mix(in srgb,var(--good-bg),var(--bad-bg))}\
.bar{display:inline-block;width:100px;height:9px;background:var(--bad-bg)}.bar i{display:block;height:9px;background:var(--accent)}\
.note{color:var(--mute)}";

fn share_cells(share: Share) -> String {
    let percent = share.percent();
    format!(
        "<td><span class=bar><i style=\"width:{percent:.0}%\"></i></span><td class=n>{percent:.1} %<td class=n>{} / {}",
        share.covered, share.total
    )
}

/// Returns the class of a row: run, partly or missing.
fn class(executed: u64, branches: &[[u64; 2]]) -> &'static str {
    let one_way = branches.iter().flatten().any(|count| *count == 0);
    match executed {
        0 => "missing",
        _ if one_way => "partly",
        _ => "run",
    }
}

fn branch_text(branches: &[[u64; 2]]) -> String {
    let one = |[taken, not]: &[u64; 2]| format!("{taken} taken, {not} not");
    branches.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn lanes_text(lanes: [u64; 2]) -> String {
    if lanes[1] == 0 { String::new() } else { format!("{:.0} %", 100.0 * lanes[0] as f64 / lanes[1] as f64) }
}

/// Returns the page. `sources` returns the text of a source file, if there is one.
pub fn page(coverage: &Coverage, sources: &dyn Fn(&str) -> Option<String>) -> String {
    // Writing to a string does not fail.
    let mut out = String::new();
    let totals = Totals::of(coverage);
    let files = lines::by_file(coverage);
    let _ = write!(
        out,
        "<h1>Coverage</h1>\n<p class=note>{} launches of {} programs\n\
         <table><tr><th><th colspan=3>lines<th colspan=3>branches\n",
        coverage.launches,
        coverage.programs.len()
    );
    for (number, (name, file)) in files.iter().enumerate() {
        let (lines, branches) = (share_cells(file.line_share()), share_cells(file.branch_share()));
        let _ =
            writeln!(out, "<tr><td class=t><a href=\"#file{number}\">{}</a>{lines}{branches}", escape(name));
    }
    let (all, branches) = (share_cells(totals.instructions), share_cells(totals.branches));
    let _ = writeln!(out, "<tr><td class=t>all instructions{all}{branches}</table>");
    for (number, (name, file)) in files.iter().enumerate() {
        let _ = writeln!(out, "<h2 id=\"file{number}\">{}</h2>", escape(name));
        match sources(name) {
            Some(text) => source(&mut out, file, &text),
            None => {
                out += "<p class=note>The source file cannot be read: these are the lines with code.\n";
                source(&mut out, file, "");
            }
        }
    }
    for program in coverage.programs.iter().filter(|p| p.instructions.iter().any(|i| i.line == 0)) {
        listing(&mut out, program);
    }
    for (title, counts) in totals.kinds().into_iter().filter(|(_, counts)| !counts.is_empty()) {
        let _ = writeln!(out, "<h2>{title}</h2>\n<table class=code>");
        let mut list: Vec<(&String, &u64)> = counts.iter().collect();
        list.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        for (name, count) in list {
            let class = class(*count, &[]);
            let _ = writeln!(out, "<tr class={class}><td class=n>{count}<td>{}", escape(name));
        }
        out += "</table>\n";
    }
    Page { title: "Coverage", style: STYLE, body: &out, script: None }.html()
}

/// Writes the lines of a file; without its text, those with code.
fn source(out: &mut String, file: &SourceFile, text: &str) {
    *out += "<table class=code><tr><th>line<th>executed<th>lanes<th>branches<th>\n";
    let mut row = |number: u32, line: Option<&Line>, text: &str| {
        let _ = match line {
            None => writeln!(out, "<tr><td class=n>{number}<td><td><td><td>{}", escape(text)),
            Some(line) => writeln!(
                out,
                "<tr class={}><td class=n>{number}<td class=n>{}<td class=n>{}<td>{}<td>{}",
                class(line.executed, &line.branches),
                line.executed,
                lanes_text(line.lanes),
                branch_text(&line.branches),
                escape(text)
            ),
        };
    };
    let mut last = 0;
    for (number, text) in (1..).zip(text.lines()) {
        row(number, file.lines.get(&number), text);
        last = number;
    }
    for (number, line) in file.lines.range(last + 1..) {
        row(*number, Some(line), "");
    }
    *out += "</table>\n";
}

/// Writes the instructions of a program that has some without a source line.
fn listing(out: &mut String, program: &Program) {
    let _ = writeln!(
        out,
        "<h2>{} ({}, waves of {})</h2>\n<table class=code><tr><th>address<th>executed<th>lanes<th>branches<th>",
        escape(&program.name),
        escape(&program.arch),
        program.wave_size
    );
    for inst in &program.instructions {
        let Instruction { address, text, executed, lanes, branch, .. } = inst;
        let branches = branch.as_ref().map_or(&[][..], std::slice::from_ref);
        let _ = writeln!(
            out,
            "<tr class={}><td class=n>{address:x}<td class=n>{executed}<td class=n>{}<td>{}<td>{}",
            class(*executed, branches),
            lanes_text([*lanes, executed.saturating_mul(u64::from(program.wave_size))]),
            branch_text(branches),
            escape(text)
        );
    }
    *out += "</table>\n";
}
