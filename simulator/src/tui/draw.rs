//! Drawing of the full-screen debugger.

use super::app::{App, KEYS, Pane};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};
use std::path::Path;
use wavesim_debug::view;
use wavesim_machine::exec::effects::{File, register_name};
use wavesim_machine::state::wave::M0;

/// Adds a colour, unless `NO_COLOR` is set (no-color.org).
fn colour(style: Style, colour: Color) -> Style {
    if std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) { style } else { style.fg(colour) }
}

fn changed() -> Style {
    colour(Style::new().add_modifier(Modifier::BOLD), Color::Yellow)
}

/// Draws the screen.
pub fn screen(frame: &mut Frame<'_>, app: &App<'_>) {
    let [title, upper, lower, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Percentage(50),
        Constraint::Fill(1),
        Constraint::Length(2),
    ])
    .areas(frame.area());
    let [source, waves] = Layout::horizontal([Constraint::Percentage(55), Constraint::Fill(1)]).areas(upper);
    let [scalars, right] = Layout::horizontal([Constraint::Length(28), Constraint::Fill(1)]).areas(lower);
    let place = view::place(&app.debugger.timeline, app.debugger.focus.wave);
    frame.render_widget(Line::from(place).style(Style::new().reversed()), title);
    draw_source(frame, app, source);
    draw_waves(frame, app, waves);
    match app.pane {
        // Text takes the full width.
        Pane::Output => draw_output(frame, app, lower),
        Pane::Vgprs => {
            draw_scalars(frame, app, scalars);
            draw_vgprs(frame, app, right);
        }
        Pane::Memory => {
            draw_scalars(frame, app, scalars);
            draw_memory(frame, app, right);
        }
    }
    let last = match &app.input {
        Some(input) => vec![
            Line::from("Enter runs a debugger command, Esc cancels").dim(),
            Line::from(format!(":{input}_")),
        ],
        None => KEYS.map(|keys| Line::from(keys).dim()).to_vec(),
    };
    frame.render_widget(Paragraph::new(last), bottom);
}

/// The output of the last command. Long lines are wrapped.
fn draw_output(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let total = app.output.lines().count();
    let title = if total + 2 > area.height as usize {
        format!("Output ({total} lines: ↑↓)")
    } else {
        "Output".to_string()
    };
    let text = Paragraph::new(app.output.clone()).wrap(Wrap { trim: false }).scroll((app.output_at, 0));
    frame.render_widget(text.block(Block::bordered().title(title)), area);
}

fn draw_source(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let timeline = &app.debugger.timeline;
    let pc = timeline.wave(app.debugger.focus.wave).pc;
    let around = (area.height as usize).saturating_sub(3) / 2;
    let listing = view::listing(timeline, pc, around, &app.debugger.breakpoints);
    let lines: Vec<Line<'_>> = listing
        .lines()
        .map(|l| {
            let line = Line::from(l.to_string());
            if l.starts_with("=>") { line.style(Style::new().reversed()) } else { line }
        })
        .collect();
    let path = timeline.prepared.source.as_ref().map_or(Path::new("Program"), |s| Path::new(&s.name));
    let title = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title.to_string())), area);
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
            let line =
                Line::from(format!("{mark}{at:>2} {:<9} {}", place, view::status_text(timeline.status(at))));
            if at == focus { line.add_modifier(Modifier::BOLD) } else { line }
        })
        .collect();
    let (at, total) = timeline.position();
    let title = format!("Waves of workgroup {} of {total}", at + 1);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

fn draw_scalars(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let focus = app.debugger.focus;
    let w = app.debugger.timeline.wave(focus.wave);
    let digits = w.size as usize / 4;
    let arch = app.debugger.timeline.prepared.program.arch;
    let mut lines = vec![Line::from(format!("exec {:0digits$x}", w.exec()))];
    if arch.machine().is_none() {
        lines.push(Line::from(format!("vcc  {:0digits$x}", w.vcc())));
        lines.push(Line::from(format!("scc {}  m0 {:x}", w.scc, w.sgprs[M0])));
    }
    let before = |r: usize| app.before.sgprs.get(r).copied().filter(|_| app.before.wave == focus.wave);
    // The registers that are not 0, or have just changed.
    let codes = view::scalar_codes(arch).into_iter().map(usize::from);
    let shown = codes.filter(|r| w.sgprs[*r] != 0 || before(*r).is_some_and(|b| b != w.sgprs[*r]));
    let cells: Vec<Span<'_>> = shown
        .map(|r| {
            let style = if before(r) == Some(w.sgprs[r]) { Style::new() } else { changed() };
            let name = register_name(arch, File::Sgpr, r as u16, 1);
            Span::styled(format!("{name:<4}{:08x} ", w.sgprs[r]), style)
        })
        .collect();
    lines.extend(cells.chunks(2).map(|pair| Line::from(pair.to_vec())));
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("Scalars")), area);
}

fn draw_vgprs(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let focus = app.debugger.focus;
    let w = app.debugger.timeline.wave(focus.wave);
    let columns = ((area.width as u32).saturating_sub(7) / 11).clamp(1, w.size);
    let first = app.first_lane.min(w.size - columns);
    let lanes = first..first + columns;
    let mut head = vec![Span::raw("     ")];
    for lane in lanes.clone() {
        let style = if lane == focus.lane { Style::new().reversed() } else { Style::new() };
        head.push(Span::styled(format!("{:>10}", format!("lane {lane}")), style));
        head.push(Span::raw(" "));
    }
    let mut lines = vec![Line::from(head)];
    let rows = (area.height as u32).saturating_sub(3);
    let arch = app.debugger.timeline.prepared.program.arch;
    let registers = arch.machine().map_or(256, |m| m.vector.count as u32);
    for r in (app.first_vgpr..registers).take(rows as usize) {
        let mut line = vec![Span::raw(format!("{:<5}", register_name(arch, File::Vgpr, r as u16, 1)))];
        for lane in lanes.clone() {
            let value = w.vgpr(lane, r);
            let before = app.before.vgpr(w.size, lane, r).filter(|_| app.before.wave == focus.wave);
            let mut style = if before.is_some_and(|b| b != value) { changed() } else { Style::new() };
            // Inactive lanes are dimmed.
            if w.exec() >> lane & 1 == 0 {
                style = style.add_modifier(Modifier::DIM);
            }
            let text =
                if app.floats { format!("{:.4}", f32::from_bits(value)) } else { format!("{value:08x}") };
            let text: String = text.chars().take(10).collect();
            line.push(Span::styled(format!("{text:>10}"), style));
            line.push(Span::raw(" "));
        }
        lines.push(Line::from(line));
    }
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("VGPRs")), area);
}

fn draw_memory(frame: &mut Frame<'_>, app: &App<'_>, area: Rect) {
    let memory = app.debugger.timeline.memory();
    // An address of 48 bits, and nine columns a dword.
    let dwords = if area.width >= 51 { 4 } else { 2 };
    let mut lines = Vec::new();
    for row in 0..(area.height as u64).saturating_sub(2) {
        let at = app.memory_at.wrapping_add(row * 4 * dwords);
        let mut line = format!("{at:x}:");
        for k in 0..dwords {
            let cell = match memory.load::<4>(at.wrapping_add(4 * k)) {
                Ok(bytes) => format!(" {:08x}", u32::from_le_bytes(bytes)),
                Err(_) => " --------".to_string(),
            };
            line.push_str(&cell);
        }
        lines.push(Line::from(line));
    }
    let title = memory.describe(app.memory_at).unwrap_or_else(|| "Memory".to_string());
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}
