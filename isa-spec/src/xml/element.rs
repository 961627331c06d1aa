//! Accessors for the contents of elements (children, text, numbers, flags), which report missing and
//! malformed ones.

use super::load::Loader;
use roxmltree::Node;

impl Loader {
    pub(super) fn require<'a, 'd>(&mut self, node: Node<'a, 'd>, tag: &str) -> Option<Node<'a, 'd>> {
        let found = child(node, tag);
        if found.is_none() {
            self.error(node, format!("element `{}` lacks `{tag}`", node.tag_name().name()));
        }
        found
    }

    /// Returns the text of the first child among `tags`; reports a missing or empty one.
    pub(super) fn require_text(&mut self, node: Node<'_, '_>, tags: &[&str]) -> String {
        match tags.iter().find_map(|tag| child(node, tag)) {
            Some(n) if !text_of(n).is_empty() => text_of(n),
            Some(n) => {
                self.error(n, format!("element `{}` is empty", n.tag_name().name()));
                String::new()
            }
            None => {
                self.error(node, format!("element `{}` lacks `{}`", node.tag_name().name(), tags[0]));
                String::new()
            }
        }
    }

    /// Returns the number in child `tag`; reports a number above `limit`.
    pub(super) fn at_most(&mut self, node: Node<'_, '_>, tag: &str, limit: u64) -> Option<u64> {
        let found = self.require(node, tag)?;
        let value = self.number(found)?;
        if value > limit {
            self.error(found, format!("{value} in `{tag}` is above {limit}"));
            return None;
        }
        Some(value)
    }

    /// Like `at_most`, but returns 0 after reporting an error.
    pub(super) fn require_at_most(&mut self, node: Node<'_, '_>, tag: &str, limit: u64) -> u64 {
        self.at_most(node, tag, limit).unwrap_or(0)
    }

    pub(super) fn attribute_number(&mut self, node: Node<'_, '_>, name: &str) -> Option<u64> {
        let text = node.attribute(name)?;
        let value = text.trim().parse().ok();
        if value.is_none() {
            self.error(node, format!("attribute {name}=\"{text}\" is not a number"));
        }
        value
    }

    pub(super) fn flag_attribute(&mut self, node: Node<'_, '_>, name: &str) -> Option<bool> {
        node.attribute(name).map(|text| self.flag(node, text))
    }

    /// Parses a flag: `TRUE` in elements, `true` in attributes, `True` in the schema document.
    pub(super) fn flag(&mut self, node: Node<'_, '_>, text: &str) -> bool {
        let text = text.trim();
        let yes = text.eq_ignore_ascii_case("true");
        if !yes && !text.eq_ignore_ascii_case("false") {
            self.error(node, format!("`{text}` in `{}` is neither TRUE nor FALSE", node.tag_name().name()));
        }
        yes
    }

    fn radix(&mut self, node: Node<'_, '_>, default: u32) -> u32 {
        let Some(text) = node.attribute("Radix") else { return default };
        match text.trim().parse() {
            Ok(radix @ (2 | 8 | 10 | 16)) => radix,
            _ => {
                self.error(node, format!("Radix=\"{text}\" is not 2, 8, 10 or 16"));
                default
            }
        }
    }

    pub(super) fn number(&mut self, node: Node<'_, '_>) -> Option<u64> {
        let text = text_of(node);
        let radix = self.radix(node, 10);
        let parsed = parse_radix(&text, radix).and_then(|v| u64::try_from(v).ok());
        if parsed.is_none() {
            self.error(
                node,
                format!("`{text}` in `{}` is not a number of radix {radix}", node.tag_name().name()),
            );
        }
        parsed
    }

    pub(super) fn wide_number(&mut self, node: Node<'_, '_>, default_radix: u32) -> u128 {
        let text = text_of(node);
        let radix = self.radix(node, default_radix);
        parse_radix(&text, radix).unwrap_or_else(|| {
            self.error(
                node,
                format!("`{text}` in `{}` is not a number of radix {radix}", node.tag_name().name()),
            );
            0
        })
    }
}

fn parse_radix(text: &str, radix: u32) -> Option<u128> {
    // `from_str_radix` accepts a leading `+`; numbers in these files consist of digits, with or without `0x`.
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (text, radix),
    };
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(digits, radix).ok()
}

/// Returns a mask of the low `bits` bits.
pub(super) fn low_bits(bits: u16) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

pub(super) fn child<'a, 'd>(node: Node<'a, 'd>, tag: &str) -> Option<Node<'a, 'd>> {
    node.children().find(|n| n.is_element() && n.tag_name().name() == tag)
}

pub(super) fn elements<'a, 'd>(node: Node<'a, 'd>, tag: &'static str) -> impl Iterator<Item = Node<'a, 'd>> {
    node.children().filter(move |n| n.is_element() && n.tag_name().name() == tag)
}

pub(super) fn text_of(node: Node<'_, '_>) -> String {
    // A comment splits text into several nodes.
    let mut texts = node.children().filter(Node::is_text).filter_map(|n| n.text());
    let first = texts.next().unwrap_or("");
    match texts.next() {
        None => first.trim().to_string(),
        Some(second) => [first, second].into_iter().chain(texts).collect::<String>().trim().to_string(),
    }
}
