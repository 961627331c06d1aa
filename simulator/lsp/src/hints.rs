//! Inlay hints: live registers, and the values of the last run.

use crate::document::Document;
use crate::ranges;
use crate::scan::TokenKind;
use crate::settings::Settings;
use lsp_types::{InlayHint, InlayHintLabel, InlayHintTooltip, Range};
use std::collections::BTreeSet;

/// Returns the hints of a range.
pub fn hints(document: &Document, range: Range, settings: &Settings) -> Vec<InlayHint> {
    let mut out = Vec::new();
    let lines = range.start.line + 1..=range.end.line + 1;
    let hint = |line: u32, label: String, tooltip: &str| {
        let end = code_end(document, line);
        InlayHint {
            position: document.lines.position(&document.text, end),
            label: InlayHintLabel::String(label),
            kind: None,
            text_edits: None,
            tooltip: Some(InlayHintTooltip::String(tooltip.to_string())),
            padding_left: Some(true),
            padding_right: None,
            data: None,
        }
    };
    if let Some(code) = document.analysis.code.as_ref().filter(|_| settings.live_registers) {
        let live = ranges::live(code);
        // Labels before an instruction, and the first instruction.
        let labels: BTreeSet<u32> =
            document.tokens.iter().filter(|t| t.kind == TokenKind::Definition).map(|t| t.line).collect();
        let mut shown = BTreeSet::new();
        for (index, line) in code.program.lines.iter().enumerate().filter(|(_, line)| **line != 0) {
            let before = index.checked_sub(1).map_or(0, |before| code.program.lines[before]);
            let label = labels.range(before.saturating_add(1).min(*line)..=*line).next_back();
            let place =
                if index == 0 { Some(label.unwrap_or(line)) } else { label.filter(|_| before != *line) };
            let Some(&place) = place.filter(|place| lines.contains(*place)) else { continue };
            if shown.insert(place) {
                let registers = live[index].text(code.program.arch);
                let registers = if registers.is_empty() { "nothing".to_string() } else { registers };
                out.push(hint(
                    place,
                    format!("live: {registers}"),
                    "registers whose values may be read from here on",
                ));
            }
        }
    }
    if let Some(results) = document.results.as_ref().filter(|_| settings.last_values) {
        for (line, text) in results.values.iter().filter(|(line, _)| lines.contains(*line)) {
            out.push(hint(
                *line,
                text.clone(),
                "when the first wave last ran this line; VGPRs: lanes 0 to 3",
            ));
        }
    }
    out
}

/// Returns the offset after the last token of a line that is not a comment.
fn code_end(document: &Document, line: u32) -> usize {
    let tokens = document.tokens_of_line(line);
    let last = tokens.iter().rev().find(|t| t.kind != TokenKind::Comment);
    let bytes = document.lines.bytes(&document.text, line as usize - 1);
    let end = last.map_or(bytes.start, |t| t.end);
    // Punctuation after the last word, such as the colon of a label.
    let rest = &document.text[end..bytes.end];
    end + rest.find([' ', '\t', ';', '/', '#']).unwrap_or(rest.len())
}
