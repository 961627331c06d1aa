//! Lists of records that are considered wrong: text for readers, with the records' names in fenced blocks.

/// Returns the record names in the blocks of a text that are fenced by ```` ```disputed ````.
pub fn disputed(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines()
        .filter(move |line| {
            let fence = line.starts_with("```");
            if fence {
                inside = line.trim() == "```disputed";
            }
            inside && !fence
        })
        .flat_map(str::split_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disputed_names_are_in_fenced_blocks() {
        let text = "words\n```disputed\na-1 a-2\na-3\n```\nother\n```text\nb-1\n```\n```disputed\nc-1\n```\n";
        assert_eq!(disputed(text).collect::<Vec<_>>(), ["a-1", "a-2", "a-3", "c-1"]);
    }
}
