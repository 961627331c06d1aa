//! Drawing of the full-screen debugger.
//!
//! From top to bottom: the position of the wave and the reason for the stop; source and waves, with a map of
//! the lanes if space permits; scalars and the panes with tabs, with the output of the last command below
//! them if space permits; keys.

use super::app::{App, HELP, KEYS, Listing};
use super::panes::{Numbers, Pane};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};
use std::path::Path;
use wavesim_debug::expr::Space;
use wavesim_debug::stop::Stop;
use wavesim_debug::view;
use wavesim_engine::sched::group::Status;
use wavesim_machine::exec::effects::{File, register_name};
use wavesim_machine::state::barrier::CLUSTER_INDEX;
use wavesim_machine::state::gws;
use wavesim_machine::state::wave::M0;

/// Minimum width, in columns, for the map of lanes.
const MIN_WIDTH_FOR_MAP: u16 = 110;
/// Width of the list of waves; the source takes the rest.
const WAVES_WIDTH: u16 = 30;
/// Minimum height, in lines, for a separate output area.
const MIN_HEIGHT_FOR_OUTPUT: u16 = 36;

/// Adds a colour, unless `NO_COLOR` is set (no-color.org).
fn colour(style: Style, colour: Color) -> Style {
    if std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) { style } else { style.fg(colour) }
}

fn changed() -> Style {
    colour(Style::new().add_modifier(Modifier::BOLD), Color::Yellow)
}

/// Draws the screen, keeping the selected lane visible.
pub fn screen(frame: &mut Frame<'_>, app: &mut App<'_>) {
    let area = frame.area();
    let strip = if area.height >= MIN_HEIGHT_FOR_OUTPUT { (area.height / 5).min(12) } else { 0 };
    let [title, upper, lower, output, bottom] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(strip),
        Constraint::Length(2),
    ])
    .areas(area);
    draw_title(frame, app, title);
    let map = if area.width >= MIN_WIDTH_FOR_MAP { 38 } else { 0 };
    let [source, waves, lanes] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(WAVES_WIDTH), Constraint::Length(map)])
            .areas(upper);
    draw_source(frame, app, source);
    draw_waves(frame, app, waves);
    if map > 0 {
        draw_map(frame, app, lanes);
    }
    let [scalars, right] = Layout::horizontal([Constraint::Length(28), Constraint::Fill(1)]).areas(lower);
    draw_scalars(frame, app, scalars);
    let block = Block::bordered().title(tabs(app)).title_bottom(pane_title(app));
    let inside = block.inner(right);
    frame.render_widget(block, right);
    match app.pane {
        Pane::Vgprs => draw_vgprs(frame, app, inside),
        Pane::Memory => draw_memory(frame, app, inside),
        Pane::Lds | Pane::Scratch => draw_local(frame, app, inside),
        Pane::Output => draw_text(frame, &app.output, app.output_at, inside),
        Pane::Keys => draw_text(frame, HELP, app.output_at, inside),
    }
    if strip > 0 {
        let block = Block::bordered().title("Output");
        draw_text(frame, &app.output, 0, block.inner(output));
        frame.render_widget(block, output);
    }
    let last = match &app.input {
        Some(input) => vec![
            Line::from("Enter runs a debugger command, Tab completes, Esc cancels").dim(),
            Line::from(format!(":{input}_")),
        ],
        None => KEYS.map(|keys| Line::from(keys).dim()).to_vec(),
    };
    frame.render_widget(Paragraph::new(last), bottom);
}

/// Draws the position of the wave and the reason for the stop.
fn draw_title(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let place = view::position(&app.debugger.timeline, app.debugger.focus.wave);
    let bad =
        |stop: &Stop| matches!(stop, Stop::Fault(_) | Stop::Finding(_) | Stop::Deadlock | Stop::Limit(_));
    let wrong = app.output.starts_with("error: ") || app.debugger.stops.iter().any(bad);
    let style = if wrong { Color::Red } else { Color::Cyan };
    let reason = Line::from(format!(" {}", app.reason())).style(colour(Style::new().bold(), style));
    let lines = vec![Line::from(format!(" {place}")).style(Style::new().reversed()), reason];
    frame.render_widget(Paragraph::new(lines), area);
}

/// Returns the names of the panes, the current one reversed.
fn tabs(app: &App<'_>) -> Line<'static> {
    let mut spans = Vec::new();
    for pane in Pane::ALL {
        let style = if pane == app.pane { Style::new().reversed() } else { Style::new() };
        spans.push(Span::styled(format!(" {} ", pane.name()), style));
    }
    Line::from(spans)
}

/// Returns the title of the current pane.
fn pane_title(app: &App<'_>) -> String {
    let timeline = &app.debugger.timeline;
    let numbers = app.numbers.name();
    match app.pane {
        Pane::Vgprs => format!(" {numbers} "),
        Pane::Memory => {
            let name = timeline.memory().describe(app.memory_at).unwrap_or_else(|| "unmapped".to_string());
            format!(" {name}, {numbers} ")
        }
        Pane::Lds => format!(" {} bytes, {numbers} ", timeline.prepared.shape.lds_bytes),
        Pane::Scratch => {
            let bytes = timeline.prepared.shape.scratch_bytes;
            format!(" lane {}: {bytes} bytes, {numbers} ", app.debugger.focus.lane)
        }
        Pane::Output => match app.output.lines().count() {
            0 => String::new(),
            1 => " 1 line ".to_string(),
            n => format!(" {n} lines: ↑↓ "),
        },
        Pane::Keys => format!(" {} lines: ↑↓ ", HELP.lines().count()),
    }
}

/// Draws text starting at a line. Long lines are wrapped.
fn draw_text(frame: &mut Frame<'_>, text: &str, from: u16, area: Rect) {
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).scroll((from, 0)), area);
}

/// Draws the source, or the instructions, around the selected line.
fn draw_source(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let timeline = &app.debugger.timeline;
    let program = &timeline.prepared.program;
    let height = (area.height as usize).saturating_sub(2).max(1);
    let (selected, here) = (app.selected_line(), app.line_of_wave());
    let listing = app.listing();
    let breakpoints = app.debugger.breakpoints.iter().filter_map(|b| program.inst_at(b.pc));
    let stops: Vec<usize> = breakpoints.filter_map(|at| app.line_of(&listing, at)).collect();
    let (first, last) = listing.lines(program.insts.len());
    let top = selected.saturating_sub(height / 2).min((last + 1).saturating_sub(height)).max(first);
    let line = |number: usize, text: &str, label: String| {
        let stop = stops.contains(&number);
        let mark = match () {
            () if number == here => "=>",
            () if number == selected => " >",
            () => "  ",
        };
        let line = Line::from(format!("{mark}{}{label}  {text}", if stop { 'b' } else { ' ' }));
        match () {
            () if number == here => line.style(Style::new().reversed()),
            () if number == selected => line.style(Style::new().bold()),
            () if stop => line.style(colour(Style::new(), Color::Red)),
            () => line,
        }
    };
    let lines: Vec<Line<'_>> = match &listing {
        Listing::Kernel { text, .. } | Listing::File { text, .. } => {
            let shown = (1usize..).zip(text.lines()).skip(top - 1).take(height);
            // (The terminal library treats a tab as a single column.)
            shown.map(|(n, text)| line(n, &text.replace('\t', "    "), format!("{n:>4}"))).collect()
        }
        Listing::Instructions => (top..=last)
            .take(height)
            .map(|at| line(at, &program.text(at), format!("{:>5x}", program.address(program.pcs[at]))))
            .collect(),
    };
    let title = match &listing {
        Listing::Kernel { name, .. } | Listing::File { name, .. } => {
            let path = Path::new(*name);
            path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()
        }
        Listing::Instructions => "Instructions".into(),
    };
    let mut block = Block::bordered().title(title.to_string());
    if app.cursor.is_some() {
        block = block.title_bottom(" Home: back to the wave ");
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_waves(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let timeline = &app.debugger.timeline;
    let focus = app.debugger.focus.wave;
    let room = (area.height as usize).saturating_sub(2).max(1);
    let first = (focus + 1).saturating_sub(room);
    let lines: Vec<Line<'_>> = (first..timeline.waves())
        .take(room)
        .map(|at| {
            let w = timeline.wave(at);
            let mark = if at == focus { '>' } else { ' ' };
            let place = timeline.prepared.program.place(w.pc);
            let line = Line::from(match timeline.status(at) {
                Status::Running => format!("{mark}{at:>2} {place}"),
                Status::Waiting(0) => format!("{mark}{at:>2} {place:<9} at the barrier"),
                Status::Waiting(CLUSTER_INDEX) => {
                    format!("{mark}{at:>2} {place:<9} at the cluster's barrier")
                }
                Status::Waiting(barrier) => match gws::resource_of(barrier) {
                    Some((number, _)) => format!("{mark}{at:>2} {place:<9} at resource {number}"),
                    None => format!("{mark}{at:>2} {place:<9} at barrier {barrier}"),
                },
                Status::Ended => format!("{mark}{at:>2} ended"),
            });
            match timeline.status(at) {
                _ if at == focus => line.add_modifier(Modifier::BOLD),
                Status::Ended => line.dim(),
                _ => line,
            }
        })
        .collect();
    let (at, total) = timeline.position();
    let title = format!("Waves of workgroup {} of {total}", at + 1);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

/// Draws a cell for each lane: EXEC, or a register's value between the smallest and the largest one.
fn draw_map(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let focus = app.debugger.focus;
    let w = app.debugger.timeline.wave(focus.wave);
    let arch = app.debugger.timeline.prepared.program.arch;
    let number = |lane: u32, r: u32| {
        let bits = w.vgpr(lane, r);
        if app.numbers == Numbers::F32 { f32::from_bits(bits) as f64 } else { bits as i32 as f64 }
    };
    let active = |lane: &u32| w.exec() >> lane & 1 == 1;
    let range = app.heat.map(|r| {
        let values = (0..w.size()).filter(active).map(|lane| number(lane, r)).filter(|v| v.is_finite());
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    });
    let mut lines = Vec::new();
    for first in (0..w.size()).step_by(16) {
        let mut spans = vec![Span::raw(format!("{first:>2} "))];
        for lane in first..first + 16 {
            let on = active(&lane);
            let (text, mut style) = match (app.heat, range) {
                _ if !on => ("· ", Style::new().dim()),
                (Some(r), Some((low, high))) => {
                    let share = if high > low { (number(lane, r) - low) / (high - low) } else { 0.0 };
                    let step = (share.clamp(0.0, 1.0) * 3.0).round() as usize;
                    let cool = [Color::Blue, Color::Cyan, Color::Yellow, Color::Red];
                    (["░░", "▒▒", "▓▓", "██"][step], colour(Style::new(), cool[step]))
                }
                _ => ("██", colour(Style::new(), Color::Green)),
            };
            if lane == focus.lane {
                style = style.reversed();
            }
            spans.push(Span::styled(text, style));
        }
        lines.push(Line::from(spans));
    }
    lines.push(Line::raw(""));
    let count = w.exec().count_ones();
    lines.push(match (app.heat, range) {
        (Some(r), Some((low, high))) if low <= high => Line::from(format!(
            "{} from {} to {}",
            register_name(arch, File::Vgpr, r as u16, 1),
            super::panes::format_general(low),
            super::panes::format_general(high)
        )),
        _ => Line::from(format!("{count} of {} lanes active", w.size())),
    });
    let title = match app.heat {
        Some(r) => format!("Lanes: {}", register_name(arch, File::Vgpr, r as u16, 1)),
        None => "Lanes: EXEC (h: a register)".to_string(),
    };
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

fn draw_scalars(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let focus = app.debugger.focus;
    let w = app.debugger.timeline.wave(focus.wave);
    let digits = w.size() as usize / 4;
    let arch = app.debugger.timeline.prepared.program.arch;
    let mut lines = vec![Line::from(format!("exec {:0digits$x}", w.exec()))];
    if arch.machine().is_none() {
        lines.push(Line::from(format!("vcc  {:0digits$x}", w.vcc())));
        lines.push(Line::from(format!("scc {}  m0 {:x}", w.scc, w.sgprs[M0])));
    }
    let before = |r: usize| app.previous.sgprs.get(r).copied().filter(|_| app.previous.wave == focus.wave);
    // Registers that the program names, that are not 0, or that have just changed.
    let codes = view::scalar_codes(arch).into_iter().map(usize::from);
    let shown = codes.filter(|r| {
        w.sgprs[*r] != 0
            || app.debugger.uses(File::Sgpr, *r as u16)
            || before(*r).is_some_and(|b| b != w.sgprs[*r])
    });
    let cells: Vec<Span<'_>> = shown
        .map(|r| {
            let same = before(r) == Some(w.sgprs[r]);
            let style = if same { Style::new() } else { changed() };
            let name = register_name(arch, File::Sgpr, r as u16, 1);
            match app.debugger.timeline.is_sgpr_written(focus.wave, r as u16) {
                true => Span::styled(format!("{name:<4}{:08x} ", w.sgprs[r]), style),
                false => Span::styled(format!("{name:<4}{:>8} ", "-"), Style::new().dim()),
            }
        })
        .collect();
    lines.extend(cells.chunks(2).map(|pair| Line::from(pair.to_vec())));
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("Scalars")), area);
}

fn draw_vgprs(frame: &mut Frame<'_>, app: &mut App<'_>, area: Rect) {
    let focus = app.debugger.focus;
    let width = app.numbers.width().max(7);
    let w = app.debugger.timeline.wave(focus.wave);
    let columns = ((area.width as u32).saturating_sub(5) / (width as u32 + 1)).clamp(1, w.size());
    // Keep the selected lane visible.
    let first =
        app.first_lane.min(focus.lane).max((focus.lane + 1).saturating_sub(columns)).min(w.size() - columns);
    let lanes = first..first + columns;
    let mut head = vec![Span::raw("     ")];
    for lane in lanes.clone() {
        let style = if lane == focus.lane { Style::new().reversed() } else { Style::new() };
        head.push(Span::styled(format!("{:>width$}", format!("lane {lane}")), style));
        head.push(Span::raw(" "));
    }
    let mut lines = vec![Line::from(head)];
    let rows = (area.height as u32).saturating_sub(1);
    let arch = app.debugger.timeline.prepared.program.arch;
    let registers = arch.machine().map_or(256, |m| m.vector.count as u32);
    for r in (app.first_vgpr..registers).take(rows as usize) {
        let mut line = vec![Span::raw(format!("{:<5}", register_name(arch, File::Vgpr, r as u16, 1)))];
        let written = w.is_written(r);
        for lane in lanes.clone() {
            let value = w.vgpr(lane, r);
            let before = app.previous.vgpr(w.size(), lane, r).filter(|_| app.previous.wave == focus.wave);
            let mut style = if before.is_some_and(|b| b != value) { changed() } else { Style::new() };
            // Inactive lanes and unwritten registers are dimmed.
            if w.exec() >> lane & 1 == 0 || !written {
                style = style.add_modifier(Modifier::DIM);
            }
            let text = if written { app.numbers.show(value) } else { "-".to_string() };
            line.push(Span::styled(format!("{text:>width$}"), style));
            line.push(Span::raw(" "));
        }
        lines.push(Line::from(line));
    }
    app.first_lane = first;
    frame.render_widget(Paragraph::new(lines), area);
}

/// Returns the number of dwords per row, a power of two.
fn dwords(area: Rect, label: usize, numbers: Numbers) -> u64 {
    let room = (area.width as usize).saturating_sub(label) / (numbers.width() + 1);
    [16, 8, 4, 2].into_iter().find(|n| *n <= room).unwrap_or(1) as u64
}

fn draw_memory(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let memory = app.debugger.timeline.memory();
    // Space for a 48-bit address.
    let count = dwords(area, 13, app.numbers);
    let cell = |at: u64| memory.load::<4>(at).ok().map(u32::from_le_bytes);
    let lines: Vec<Line<'_>> = (0..area.height as u64)
        .map(|row| {
            let at = app.memory_at.wrapping_add(row * 4 * count);
            row_of(app.numbers, format!("{at:x}:"), (0..count).map(|k| cell(at.wrapping_add(4 * k))))
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// Draws LDS, or the scratch of the selected lane.
fn draw_local(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let (space, name) = if app.pane == Pane::Lds { (Space::Lds, "LDS") } else { (Space::Scratch, "scratch") };
    let timeline = &app.debugger.timeline;
    let cell = |at: u64| {
        let mut bytes = [0; 4];
        space.read(timeline, app.debugger.focus, at, &mut bytes).ok().map(|()| u32::from_le_bytes(bytes))
    };
    if cell(0).is_none() {
        frame.render_widget(Paragraph::new(format!("the kernel has no {name}")), area);
        return;
    }
    let count = dwords(area, 6, app.numbers);
    let lines: Vec<Line<'_>> = (0..area.height as u64)
        .map(|row| app.local_at + row * 4 * count)
        .take_while(|at| cell(*at).is_some())
        .map(|at| row_of(app.numbers, format!("{at:04x}:"), (0..count).map(|k| cell(at + 4 * k))))
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn row_of(numbers: Numbers, label: String, cells: impl Iterator<Item = Option<u32>>) -> Line<'static> {
    let width = numbers.width();
    let cells = cells.map(|cell| {
        let text = cell.map_or_else(|| "-".repeat(8), |bits| numbers.show(bits));
        format!(" {text:>width$}")
    });
    Line::from(std::iter::once(label).chain(cells).collect::<String>())
}
