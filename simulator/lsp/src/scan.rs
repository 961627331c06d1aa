//! The tokens of a kernel, for everything that an editor does with text that may have errors.
//!
//! Only the layout is known here: which word is a label, a mnemonic, a register. Whether a mnemonic exists, and what
//! an operand means, is known to the assembler.

use wavesim_asm::scan::{DIGIT, START, WORD, class, end_of_class};
use wavesim_machine::exec::effects::File;
use wavesim_machine::state::wave::{ACC, EXEC_HI, EXEC_LO, M0, TTMP, VCC_HI, VCC_LO};

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A text kernel, with a header between two `---` lines.
    Text,
    /// LLVM's assembly.
    Assembly,
}

/// Consecutive registers that an operand names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Registers {
    /// SGPRs (by operand code) or VGPRs.
    pub file: File,
    /// The first register.
    pub first: u16,
    /// The number of registers.
    pub count: u16,
}

impl Registers {
    /// Returns whether a register is one of them.
    pub fn contains(&self, register: (File, u16)) -> bool {
        self.file == register.0 && (self.first..self.first + self.count).contains(&register.1)
    }
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A comment; a block comment has one token in each line.
    Comment,
    /// A directive of the assembler, `print`, or a `---` line.
    Directive,
    /// The definition of a label, a symbol or a macro.
    Definition,
    /// The name of an instruction, or of a macro.
    Mnemonic,
    /// A register operand; `None` if its number is an expression.
    Register(Option<Registers>),
    /// A number.
    Number,
    /// Quoted text.
    String,
    /// A key of the header or the name of an argument.
    Key,
    /// The definition of a constant in the header.
    Constant,
    /// Any other word: a reference to a label or a constant, a modifier.
    Name,
}

/// A token with its byte range and its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
    /// The line, from 1 as in messages.
    pub line: u32,
}

impl Token {
    /// Returns whether a byte offset is in the token or at its end.
    pub fn touches(&self, offset: usize) -> bool {
        self.start <= offset && offset <= self.end
    }
}

/// Returns the tokens of a text in source order.
pub fn scan(text: &str, form: Form) -> Vec<Token> {
    let mut scan = Scan { text, form, tokens: Vec::new(), in_comment: false, fences: 0, metadata: false };
    let mut base = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let bare = line.trim_end_matches(['\n', '\r']);
        scan.line(base, base + bare.len(), index as u32 + 1);
        base += line.len();
    }
    scan.tokens
}

struct Scan<'a> {
    text: &'a str,
    form: Form,
    tokens: Vec<Token>,
    in_comment: bool,
    /// The number of `---` lines so far.
    fences: u32,
    /// Inside `.amdgpu_metadata`, which is YAML.
    metadata: bool,
}

/// Directives whose first operand is the name that they define.
const DEFINING: [&str; 4] = [".macro", ".set", ".equ", ".equiv"];

impl Scan<'_> {
    fn push(&mut self, kind: TokenKind, start: usize, end: usize, line: u32) {
        self.tokens.push(Token { kind, start, end, line });
    }

    fn line(&mut self, start: usize, end: usize, line: u32) {
        let code = self.text[start..end].trim();
        if self.metadata || code == ".amdgpu_metadata" {
            self.metadata = code != ".end_amdgpu_metadata";
            if code.starts_with(".amdgpu_metadata") || code.starts_with(".end_amdgpu_metadata") {
                let first = start + self.text[start..end].find('.').unwrap_or(0);
                self.push(TokenKind::Directive, first, first + code.len(), line);
            }
            return;
        }
        if self.form == Form::Text && code == "---" {
            self.fences += 1;
            let first = start + self.text[start..end].find('-').unwrap_or(0);
            self.push(TokenKind::Directive, first, first + 3, line);
            return;
        }
        self.statements(start, end, line, self.form == Form::Text && self.fences == 1);
    }

    fn statements(&mut self, start: usize, end: usize, line: u32, header: bool) {
        let bytes = self.text.as_bytes();
        let (mut at, mut first) = (start, true);
        // The next word is the name that a directive defines.
        let mut defines = false;
        while at < end {
            let rest = &self.text[at..end];
            if self.in_comment {
                let len = rest.find("*/").map_or(rest.len(), |len| len + 2);
                self.in_comment = !rest[..len].ends_with("*/");
                self.push(TokenKind::Comment, at, at + len, line);
                at += len;
                continue;
            }
            let byte = bytes[at];
            let is_comment = match (self.form, byte) {
                (_, b';') => true,
                (Form::Text, b'#') => true,
                (_, b'/') => rest.starts_with("//"),
                _ => false,
            };
            if is_comment {
                self.push(TokenKind::Comment, at, end, line);
                return;
            }
            if self.form == Form::Assembly && rest.starts_with("/*") {
                let len = rest[2..].find("*/").map_or(rest.len(), |len| len + 4);
                self.in_comment = rest[2..].find("*/").is_none();
                self.push(TokenKind::Comment, at, at + len, line);
                at += len;
                continue;
            }
            if byte == b'"' {
                let len = string_len(rest);
                self.push(TokenKind::String, at, at + len, line);
                at += len;
                continue;
            }
            if rest.starts_with("::") {
                // The second half of a dual instruction.
                (at, first) = (at + 2, true);
                continue;
            }
            if class(byte) & DIGIT != 0 {
                let len = end_of_class(bytes, at, WORD).min(end) - at;
                self.push(TokenKind::Number, at, at + len, line);
                (at, first) = (at + len, false);
                continue;
            }
            if class(byte) & START == 0 {
                if !byte.is_ascii_whitespace() {
                    first &= byte == b'@';
                }
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
            let stop = end_of_class(bytes, at, WORD).min(end);
            let word = &self.text[at..stop];
            let after = self.text[stop..end].trim_start();
            let mut next = stop;
            if first {
                let kind = match (word, after.as_bytes().first()) {
                    ("const", _) if header => {
                        defines = true;
                        Some(TokenKind::Key)
                    }
                    _ if header => Some(TokenKind::Key),
                    (_, Some(b':')) if !after.starts_with("::") => {
                        next = end - after.len() + 1;
                        Some(TokenKind::Definition)
                    }
                    (_, Some(b'=')) if !after.starts_with("==") && self.form == Form::Assembly => {
                        Some(TokenKind::Definition)
                    }
                    ("print", _) if self.form == Form::Text => Some(TokenKind::Directive),
                    _ if word.starts_with('.') => {
                        defines = DEFINING.contains(&word);
                        Some(TokenKind::Directive)
                    }
                    _ => Some(TokenKind::Mnemonic),
                };
                if let Some(kind) = kind {
                    self.push(kind, at, stop, line);
                    // Another statement can follow a label.
                    first = kind == TokenKind::Definition && next > stop;
                    at = next;
                    continue;
                }
            }
            let kind = match std::mem::take(&mut defines) {
                true if header => TokenKind::Constant,
                true => TokenKind::Definition,
                false => match header {
                    true => TokenKind::Name,
                    false => {
                        let (kind, len) = operand(&self.text[at..end], word);
                        next = at + len;
                        kind
                    }
                },
            };
            self.push(kind, at, next, line);
            at = next;
        }
    }
}

/// Returns the length of quoted text, which may lack its closing quote.
fn string_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// Registers with a name of their own: the first one and their number.
fn named(word: &str) -> Option<(u16, u16)> {
    Some(match word {
        "vcc" => (VCC_LO as u16, 2),
        "vcc_lo" => (VCC_LO as u16, 1),
        "vcc_hi" => (VCC_HI as u16, 1),
        "exec" => (EXEC_LO as u16, 2),
        "exec_lo" => (EXEC_LO as u16, 1),
        "exec_hi" => (EXEC_HI as u16, 1),
        "m0" => (M0 as u16, 1),
        _ => return None,
    })
}

/// The register files by their prefix, with the number of their first register.
const PREFIXES: [(&str, File, u16); 4] = [
    ("ttmp", File::Sgpr, TTMP.start as u16),
    ("v", File::Vgpr, 0),
    ("s", File::Sgpr, 0),
    ("a", File::Vgpr, ACC as u16),
];

/// Returns the kind and the length of an operand that begins with `word`.
fn operand(rest: &str, word: &str) -> (TokenKind, usize) {
    let lower = word.to_ascii_lowercase();
    if let Some((first, count)) = named(&lower) {
        return (TokenKind::Register(Some(Registers { file: File::Sgpr, first, count })), word.len());
    }
    // `v3.l` is a half of v3.
    let stem = lower.strip_suffix(".l").or(lower.strip_suffix(".h")).unwrap_or(&lower);
    for (prefix, file, base) in PREFIXES {
        let Some(number) = stem.strip_prefix(prefix) else { continue };
        if number.is_empty() {
            let Some(inside) = rest[word.len()..].strip_prefix('[') else { continue };
            let Some(len) = inside.find(']') else { continue };
            let registers = range(&inside[..len]).map(|(first, last)| Registers {
                file,
                first: base + first,
                count: last - first + 1,
            });
            return (TokenKind::Register(registers), word.len() + len + 2);
        }
        if let Some(number) = parse_number(number) {
            return (
                TokenKind::Register(Some(Registers { file, first: base + number, count: 1 })),
                word.len(),
            );
        }
    }
    match lower.as_str() {
        "scc" | "null" | "off" => (TokenKind::Register(None), word.len()),
        _ if lower.starts_with("src_") => (TokenKind::Register(None), word.len()),
        _ => (TokenKind::Name, word.len()),
    }
}

fn parse_number(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|b| b.is_ascii_digit()) && text.len() <= 4;
    text.parse().ok().filter(|n| digits && *n < 2048)
}

/// Parses `4` or `4:7`.
fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once(':').unwrap_or((text, text));
    let range = (parse_number(first.trim())?, parse_number(last.trim())?);
    (range.0 <= range.1).then_some(range)
}

/// Returns the spelling of a register operand after its registers have been moved by `delta`, if it has numbers.
pub fn moved(spelling: &str, delta: i32) -> Option<String> {
    let shift = |number: u16| u16::try_from(number as i32 + delta).ok();
    match spelling.split_once('[') {
        Some((prefix, inside)) => {
            let inside = inside.strip_suffix(']')?;
            let (first, last) = range(inside)?;
            let (first, last) = (shift(first)?, shift(last)?);
            Some(match inside.contains(':') {
                true => format!("{prefix}[{first}:{last}]"),
                false => format!("{prefix}[{first}]"),
            })
        }
        None => {
            let digits = spelling.find(|c: char| c.is_ascii_digit())?;
            let end = spelling[digits..].find(|c: char| !c.is_ascii_digit());
            let end = end.map_or(spelling.len(), |len| digits + len);
            let number = shift(spelling[digits..end].parse().ok()?)?;
            Some(format!("{}{number}{}", &spelling[..digits], &spelling[end..]))
        }
    }
}

/// Parses a register operand as a whole.
pub fn registers(text: &str) -> Option<Registers> {
    let word = &text[..end_of_class(text.as_bytes(), 0, WORD)];
    match operand(text, word) {
        (TokenKind::Register(registers), len) if len == text.len() => registers,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str, form: Form) -> Vec<(TokenKind, &str)> {
        scan(text, form).into_iter().map(|t| (t.kind, &text[t.start..t.end])).collect()
    }

    fn vgprs(first: u16, count: u16) -> TokenKind {
        TokenKind::Register(Some(Registers { file: File::Vgpr, first, count }))
    }

    #[test]
    fn text_kernels() {
        let text = "---\nconst N = 4 ; n\narg_x: f32[N]\n---\nl: v_add_f32 v1, |v2|, v[4:5] # c\n print \"a;b\" v1\n";
        let found = kinds(text, Form::Text);
        assert_eq!(
            found,
            [
                (TokenKind::Directive, "---"),
                (TokenKind::Key, "const"),
                (TokenKind::Constant, "N"),
                (TokenKind::Number, "4"),
                (TokenKind::Comment, "; n"),
                (TokenKind::Key, "arg_x"),
                (TokenKind::Name, "f32"),
                (TokenKind::Name, "N"),
                (TokenKind::Directive, "---"),
                (TokenKind::Definition, "l"),
                (TokenKind::Mnemonic, "v_add_f32"),
                (vgprs(1, 1), "v1"),
                (vgprs(2, 1), "v2"),
                (vgprs(4, 2), "v[4:5]"),
                (TokenKind::Comment, "# c"),
                (TokenKind::Directive, "print"),
                (TokenKind::String, "\"a;b\""),
                (vgprs(1, 1), "v1"),
            ]
        );
    }

    #[test]
    fn assembly() {
        let text = ".macro twice x\nN = 3\n/* a\n b */ v_dual_mov_b32 v1, 0 :: v_dual_mov_b32 v2, v[N]\n";
        let found = kinds(text, Form::Assembly);
        assert_eq!(
            found,
            [
                (TokenKind::Directive, ".macro"),
                (TokenKind::Definition, "twice"),
                (TokenKind::Name, "x"),
                (TokenKind::Definition, "N"),
                (TokenKind::Number, "3"),
                (TokenKind::Comment, "/* a"),
                (TokenKind::Comment, " b */"),
                (TokenKind::Mnemonic, "v_dual_mov_b32"),
                (vgprs(1, 1), "v1"),
                (TokenKind::Number, "0"),
                (TokenKind::Mnemonic, "v_dual_mov_b32"),
                (vgprs(2, 1), "v2"),
                (TokenKind::Register(None), "v[N]"),
            ]
        );
    }

    #[test]
    fn registers_move() {
        for (from, delta, to) in
            [("v3", 4, "v7"), ("s[4:7]", -4, "s[0:3]"), ("v[9]", 1, "v[10]"), ("v12.h", -2, "v10.h")]
        {
            assert_eq!(moved(from, delta).as_deref(), Some(to));
        }
        assert_eq!(moved("s0", -1), None);
        assert_eq!(moved("vcc", 1), None);
        assert_eq!(registers("s[2:3]"), Some(Registers { file: File::Sgpr, first: 2, count: 2 }));
        assert_eq!(registers("s[2:3"), None);
        assert_eq!(registers("v1 "), None);
    }
}
