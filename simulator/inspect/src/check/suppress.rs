//! Suppressions: findings that a file excludes from the report, in blocks similar to Valgrind's.
//!
//! ```text
//! # The exchange is checked elsewhere.
//! {
//!    exchange
//!    race:data race
//!    at:kernel.cl:12
//!    other:*
//! }
//! ```
//!
//! The first line of a block is its name; the second one is the check and the kind of finding. The lines
//! after these are optional: the program point (`at`), the instruction there (`text`), and the same of the
//! other access (`other`, `other-text`). `*` matches any text.

use super::Check;
use super::report::Finding;
use isa_spec::pattern::matches;
use std::fmt::Write as _;
use wavesim_asm::error::suggest;

/// A pattern for findings that must not be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    /// The first line of the block: arbitrary text for readers.
    pub name: String,
    check: Check,
    kind: String,
    conditions: Vec<(Key, String)>,
}

/// The subject of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    At,
    Text,
    Other,
    OtherText,
}

impl Key {
    const ALL: [(&'static str, Key); 4] =
        [("at", Key::At), ("text", Key::Text), ("other", Key::Other), ("other-text", Key::OtherText)];
}

/// A syntax error in a file of suppressions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SuppressionError {
    /// Line number, counted from 1.
    pub line: usize,
    /// A description of the error.
    pub message: String,
}

/// Parses a file of suppressions.
///
/// # Errors
/// The first syntax error.
pub fn parse(text: &str) -> Result<Vec<Suppression>, SuppressionError> {
    let mut lines = (1..).zip(text.lines().map(str::trim));
    let mut lines = lines.by_ref().filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
    let mut out = Vec::new();
    while let Some((line, open)) = lines.next() {
        let wrong = |line, message: String| Err(SuppressionError { line, message });
        if open != "{" {
            return wrong(line, format!("a suppression begins with `{{`, not `{open}`"));
        }
        let mut inside: Vec<(usize, &str)> = Vec::new();
        let end = loop {
            match lines.next() {
                Some((end, "}")) => break end,
                Some(one) => inside.push(one),
                None => return wrong(line, "this suppression has no `}`".to_string()),
            }
        };
        let [(_, name), (at, what), conditions @ ..] = &inside[..] else {
            return wrong(end, "a suppression has a name, and a line `CHECK:KIND`".to_string());
        };
        let (check, kind) = what.split_once(':').unwrap_or((what, "*"));
        let Some(check) = Check::from_name(check.trim()) else {
            let names = Check::ALL.map(Check::name);
            let near = suggest(check.trim(), names).map_or(String::new(), |near| format!("; {near}"));
            return wrong(*at, format!("`{check}` is not a check{near} (checks are {})", names.join(", ")));
        };
        let mut suppression = Suppression {
            name: name.to_string(),
            check,
            kind: kind.trim().to_string(),
            conditions: Vec::new(),
        };
        for (line, condition) in conditions {
            let (key, pattern) = condition.split_once(':').unwrap_or((condition, ""));
            let Some((_, key)) = Key::ALL.iter().find(|k| k.0 == key.trim()) else {
                let names = Key::ALL.map(|k| k.0);
                let near = suggest(key.trim(), names).map_or(String::new(), |near| format!("; {near}"));
                return wrong(
                    *line,
                    format!("`{key}` is not a condition{near} (conditions are {})", names.join(", ")),
                );
            };
            suppression.conditions.push((*key, pattern.trim().to_string()));
        }
        out.push(suppression);
    }
    Ok(out)
}

impl Suppression {
    /// Returns a suppression that matches a finding and its repetitions.
    pub fn for_finding(finding: &Finding) -> Suppression {
        let mut conditions = vec![(Key::At, finding.site.place()), (Key::Text, finding.site.text.clone())];
        if let Some(other) = &finding.other {
            conditions.push((Key::Other, other.site.place()));
            conditions.push((Key::OtherText, other.site.text.clone()));
        }
        let name = "NAME".to_string();
        Suppression { name, check: finding.check, kind: finding.kind.to_string(), conditions }
    }

    /// Returns whether the suppression matches a finding.
    pub fn covers(&self, finding: &Finding) -> bool {
        let other = finding.other.as_ref().map(|o| &o.site);
        let holds = |(key, pattern): &(Key, String)| match key {
            Key::At => matches(pattern, &finding.site.place()),
            Key::Text => matches(pattern, &finding.site.text),
            Key::Other => other.is_some_and(|site| matches(pattern, &site.place())),
            Key::OtherText => other.is_some_and(|site| matches(pattern, &site.text)),
        };
        self.check == finding.check && matches(&self.kind, finding.kind) && self.conditions.iter().all(holds)
    }

    /// Returns the suppression in the file's syntax.
    pub fn text(&self) -> String {
        let mut out = format!("{{\n   {}\n   {}:{}\n", self.name, self.check.name(), self.kind);
        for (key, pattern) in &self.conditions {
            let name = Key::ALL.iter().find(|k| k.1 == *key).map_or("", |k| k.0);
            // Writing to a string does not fail.
            let _ = writeln!(out, "   {name}:{pattern}");
        }
        out + "}"
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Site;
    use super::*;

    fn finding() -> Finding {
        let site = |line, text: &str| Site {
            inlined: Vec::new(),
            pc: 0x40,
            line,
            file: Some("k.cl".into()),
            text: text.to_string(),
            workgroup: [0; 3],
            wave: 0,
            lane: None,
        };
        Finding::new(Check::Race, "data race", "a message".to_string(), site(12, "ds_load_b32 v1, v2"))
            .other("earlier store", site(9, "ds_store_b32 v1, v2"))
    }

    #[test]
    fn printed_suppression_covers_its_finding() {
        let text = Suppression::for_finding(&finding()).text();
        assert_eq!(
            text,
            "{\n   NAME\n   race:data race\n   at:k.cl:12\n   text:ds_load_b32 v1, v2\n   other:k.cl:9\n   other-text:ds_store_b32 v1, v2\n}"
        );
        assert!(parse(&text).unwrap()[0].covers(&finding()));
    }

    #[test]
    fn patterns() {
        for (block, fits) in [
            ("{\na\nrace\n}", true),
            ("{\na\nrace:data*\nat:k.cl:*\ntext:ds_*_b32 v1, *\n}", true),
            ("{\na\nmem:*\n}", false),
            ("{\na\nrace:data\n}", false),
            ("{\na\nrace:*\nother:k.cl:1\n}", false),
            ("# nothing else\n{\na\n\nrace:*\nother:*cl:9\n}", true),
        ] {
            assert_eq!(parse(block).unwrap()[0].covers(&finding()), fits, "{block}");
        }
        assert!(matches("a*b*c", "aXbYbZc") && !matches("a*b*c", "ac") && !matches("*b", "ba"));
    }

    #[test]
    fn errors_have_lines() {
        for (text, error) in [
            ("race", "line 1: a suppression begins with `{`, not `race`"),
            ("\n{\na\n", "line 2: this suppression has no `}`"),
            ("{\na\n}", "line 3: a suppression has a name, and a line `CHECK:KIND`"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), error);
        }
        let wrong = parse("{\na\nrase:x\n}").unwrap_err().to_string();
        assert!(wrong.starts_with("line 3: `rase` is not a check; did you mean `race`?"), "{wrong}");
        let wrong = parse("{\na\nrace:x\nothr:y\n}").unwrap_err().to_string();
        assert!(wrong.starts_with("line 4: `othr` is not a condition; did you mean `other`?"), "{wrong}");
    }
}
