//! Reports as one HTML file without references: a common style, the data as JSON, and a script that draws it.
//!
//! The crate knows data as JSON only, so that every report can use it: profiles, campaigns, checks and statistics of
//! runs.

#![warn(missing_docs)]

use serde_json::Value;

const STYLE: &str = include_str!("style.css");
const BASE: &str = include_str!("base.js");
const RUN_BODY: &str = include_str!("run.html");
const RUN_STYLE: &str = include_str!("run.css");
const RUN_SCRIPT: &str = include_str!("run.js");

/// A page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Page<'a> {
    /// The title, as text.
    pub title: &'a str,
    /// Rules in addition to the common style.
    pub style: &'a str,
    /// The contents of the body, as HTML.
    pub body: &'a str,
    /// A script, which finds the data as `D` and the helpers of `base.js`.
    pub script: Option<(&'a str, &'a Value)>,
}

impl Page<'_> {
    /// Returns the file.
    pub fn html(&self) -> String {
        let title = escape(self.title);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}{}</style>\n\
             </head>\n<body>\n{}",
            self.style, self.body
        );
        if let Some((script, data)) = self.script {
            // The data must not end the element that contains it.
            let data = data.to_string().replace("</", "<\\/").replace("<!--", "<\\u0021--");
            out += "<script type=\"application/json\" id=\"data\">";
            out += &data;
            out += "</script>\n<script>\n";
            out += BASE;
            out += script;
            out += "</script>\n";
        }
        out + "</body>\n</html>\n"
    }
}

/// Returns the report of runs of kernels: findings in the source, pictures of races, maps of allocations, lanes and
/// waves over time, statistics. `data` has the schema `wavesim-report-1`: `inputs`, each with `name`, `summary`,
/// `findings` (the machine output of `wavesim check`), `report` (text), `sources` (`name`, `text`), `activity` (the object that
/// `wavesim_trace::activity` makes) and `stats`; all but the name may be missing.
pub fn run_page(title: &str, data: &Value) -> String {
    let body = format!("<h1>{}</h1>\n{RUN_BODY}", escape(title));
    Page { title, style: RUN_STYLE, body: &body, script: Some((RUN_SCRIPT, data)) }.html()
}

/// Escapes text for XML 1.0 and HTML. Characters that XML does not permit are replaced.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_does_not_end_its_element() {
        let data = json!({"inputs": [{"name": "</script><script>alert(1)</script>"}]});
        let page = run_page("a <b>", &data);
        assert!(page.contains("<title>a &lt;b&gt;</title>") && page.contains("<h1>a &lt;b&gt;</h1>"));
        assert_eq!(page.matches("</script>").count(), 2);
        let start = page.find("id=\"data\">").unwrap() + 10;
        let end = page[start..].find("</script>").unwrap();
        assert_eq!(serde_json::from_str::<Value>(&page[start..start + end]).unwrap(), data);
    }
}
