//! Output of programs that pages show.

use std::path::Path;

/// Returns an error unless a program has printed, in this order, the lines of the indented block of a page that begins with
/// `first`. Addresses of memory differ from run to run and count as equal; a line `…` stands for what the page leaves out.
pub fn shows(page: &Path, first: &str, printed: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(page).map_err(|e| format!("{}: {e}", page.display()))?;
    let blocks = text.split("\n\n").map(|block| block.trim_matches('\n'));
    let mut blocks =
        blocks.filter_map(|block| block.strip_prefix("    ")).filter(|block| block.starts_with(first));
    let block = blocks.next().ok_or_else(|| format!("{}: no block begins with `{first}`", page.display()))?;
    let printed = without_addresses(printed);
    let mut lines = printed.lines();
    for line in
        block.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).filter(|line| *line != "…")
    {
        if !lines.any(|own| own == without_addresses(line)) {
            return Err(format!("{}: `{line}` is not printed, or not here:\n{printed}", page.display()));
        }
    }
    Ok(())
}

/// Replaces hexadecimal numbers of at least eight digits.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
        out += if digits < 8 { "0x" } else { "ADDRESS" };
        out += if digits < 8 { part } else { &part[digits..] };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_show_what_is_printed() {
        let page = std::env::temp_dir().join(format!("wavesim-page-{}.md", std::process::id()));
        let text = "It prints:\n\n    load at 0x7fd4eda8afa0\n      at a.cl:3, pc 0x102c\n    …\n\nMore.\n";
        std::fs::write(&page, text).unwrap();
        let shown = |printed: &str| shows(&page, "load", printed);
        assert_eq!(shown("load at 0x7fffeda8a000\n  at a.cl:3, pc 0x102c\n  more\n"), Ok(()));
        assert!(
            shown("load at 0x7fffeda8a000\n  at a.cl:4, pc 0x102c\n").unwrap_err().contains("`  at a.cl:3")
        );
        assert!(shown("  at a.cl:3, pc 0x102c\nload at 0x7fffeda8a000\n").is_err());
        assert!(shows(&page, "store", "").unwrap_err().contains("no block"));
        std::fs::remove_file(&page).unwrap();
    }
}
