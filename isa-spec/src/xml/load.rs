//! XML text -> [`Spec`]. Accepts AMD's genuine files and the forms of AMD's schema document where they differ.
//! Collects errors; each names file, line, element and, where inside one, the instruction.

use super::model::*;
use crate::diag::{Diagnostic, nearest};
use crate::source::{FileId, SourceMap, Span};
use roxmltree::Node;
use std::collections::{BTreeMap, BTreeSet};

/// Parses and checks one document. `name` is the file's name in messages.
pub fn load(name: &str, text: &str) -> Result<Spec, (SourceMap, Vec<Diagnostic>)> {
    let mut sources = SourceMap::default();
    let file = sources.add(name, text);
    load_into(&sources, file).map_err(|errors| (sources, errors))
}

/// The same for a file already in a source map.
pub fn load_into(sources: &SourceMap, file: FileId) -> Result<Spec, Vec<Diagnostic>> {
    let text = &sources.file(file).text;
    let doc = parse(text, file).map_err(|e| vec![e])?;
    let mut loader = Loader { file, errors: Vec::new(), context: String::new() };
    let spec = loader.spec(doc.root_element());
    if loader.errors.is_empty() {
        check(&spec, &mut loader.errors);
    }
    if loader.errors.is_empty() { Ok(spec) } else { Err(loader.errors) }
}

pub(super) fn parse(text: &str, file: FileId) -> Result<roxmltree::Document<'_>, Diagnostic> {
    // Entities could grow without bound; the files use none of their own.
    let options = roxmltree::ParsingOptions { allow_dtd: false, nodes_limit: 4_000_000 };
    roxmltree::Document::parse_with_options(text, options).map_err(|e| {
        let pos = e.pos();
        let line_start: usize = text.split_inclusive('\n').take(pos.row as usize - 1).map(str::len).sum();
        let at = (line_start + pos.col as usize - 1).min(text.len());
        Diagnostic::error(Span::new(file, at, at), format!("not well-formed XML: {e}"))
    })
}

pub(super) struct Loader {
    pub file: FileId,
    pub errors: Vec<Diagnostic>,
    /// ` in instruction X`, for messages.
    pub context: String,
}

impl Loader {
    pub fn span(&self, node: Node<'_, '_>) -> Span {
        let range = node.range();
        // The start tag is enough to point at.
        Span::new(self.file, range.start, range.start + 1 + node.tag_name().name().len())
    }

    fn error(&mut self, node: Node<'_, '_>, message: String) {
        let span = self.span(node);
        let context = &self.context;
        self.errors.push(Diagnostic::error(span, format!("{message}{context}")));
    }

    fn spec(&mut self, root: Node<'_, '_>) -> Spec {
        let mut spec = Spec::default();
        if root.tag_name().name() != "Spec" {
            self.error(root, format!("the root element is `{}`, expected `Spec`", root.tag_name().name()));
            return spec;
        }
        if let Some(document) = child(root, "Document") {
            let get = |tag| child(document, tag).map(text_of).unwrap_or_default();
            spec.document = Document {
                copyright: get("Copyright"),
                sensitivity: get("Sensitivity"),
                license: get("License"),
                release_date: get("ReleaseDate"),
                schema_version: get("SchemaVersion"),
            };
        }
        let Some(isa) = self.need(root, "ISA") else { return spec };
        if let Some(arch) = self.need(isa, "Architecture") {
            spec.architecture.name = self.need_text(arch, &["ArchitectureName"]);
            spec.architecture.id =
                child(arch, "ArchitectureId").and_then(|n| self.number(n)).map(|v| v as u32);
        }
        spec.encodings = self.list(isa, "Encodings", "Encoding", Self::encoding);
        spec.instructions = self.list(isa, "Instructions", "Instruction", Self::instruction);
        spec.formats = self.list(isa, "DataFormats", "DataFormat", Self::format);
        spec.operand_types = self.list(isa, "OperandTypes", "OperandType", Self::operand_type);
        if let Some(groups) = child(isa, "FunctionalGroups") {
            spec.functional_groups = elements(groups, "FunctionalGroup")
                .map(|g| FunctionalGroup {
                    name: self.need_text(g, &["Name"]),
                    description: child(g, "Description").map(text_of).unwrap_or_default(),
                })
                .collect();
        }
        spec
    }

    fn list<T>(
        &mut self,
        parent: Node<'_, '_>,
        list: &str,
        item: &str,
        mut f: impl FnMut(&mut Self, Node<'_, '_>) -> Option<T>,
    ) -> Vec<T> {
        match self.need(parent, list) {
            Some(node) => elements(node, item).filter_map(|n| f(self, n)).collect(),
            None => Vec::new(),
        }
    }

    pub fn encoding(&mut self, node: Node<'_, '_>) -> Option<Encoding> {
        let name = self.need_text(node, &["EncodingName"]);
        let outer = std::mem::replace(&mut self.context, format!(" (encoding {name})"));
        let order = node.attribute("Order").map_or(Some(0), |v| v.trim().parse().ok()).unwrap_or_else(|| {
            self.error(
                node,
                format!("attribute Order=\"{}\" is not a number", node.attribute("Order").unwrap_or("")),
            );
            0
        });
        let bits = self.need_number(node, "BitCount") as u16;
        if bits == 0 || bits > 128 {
            self.error(node, format!("BitCount {bits} is not between 1 and 128"));
        }
        let mask = match self.need(node, "EncodingIdentifierMask") {
            Some(n) => self.wide_number(n, 2),
            None => 0,
        };
        let identifiers = match self.need(node, "EncodingIdentifiers") {
            Some(list) => elements(list, "EncodingIdentifier").map(|n| self.wide_number(n, 2)).collect(),
            None => Vec::new(),
        };
        let conditions = match child(node, "EncodingConditions") {
            Some(list) => elements(list, "EncodingCondition").map(|n| self.condition(n)).collect(),
            None => Vec::new(),
        };
        let fields = self.bitmap(node);
        self.context = outer;
        Some(Encoding {
            name,
            order,
            bits,
            mask,
            identifiers,
            conditions,
            description: child(node, "Description").map(text_of).unwrap_or_default(),
            fields,
            span: self.span(node),
        })
    }

    fn condition(&mut self, node: Node<'_, '_>) -> Condition {
        let name = self.need_text(node, &["ConditionName"]);
        // AMD's files spell it `CondtionExpression`.
        let tree = child(node, "ConditionExpression").or_else(|| child(node, "CondtionExpression"));
        let expr = tree.and_then(|t| t.children().find(Node::is_element)).and_then(|e| self.cond_expr(e, 0));
        Condition { name, expr }
    }

    fn cond_expr(&mut self, node: Node<'_, '_>, depth: u32) -> Option<CondExpr> {
        if depth > 64 {
            self.error(node, "condition nested deeper than 64".to_string());
            return None;
        }
        let ty = child(node, "ty").and_then(|ty| child(ty, "t")).map(|t| TypeMark {
            base: t.attribute("base").unwrap_or("").to_string(),
            size: t.attribute("size").and_then(|s| s.parse().ok()),
        });
        match node.tag_name().name() {
            "op" => {
                let op = node.attribute("type").unwrap_or("").to_string();
                let args = node
                    .children()
                    .filter(|n| n.is_element() && n.tag_name().name() != "ty")
                    .filter_map(|n| self.cond_expr(n, depth + 1))
                    .collect();
                Some(CondExpr::Op { op, args, ty })
            }
            "id" => Some(CondExpr::Id { name: node.attribute("val").unwrap_or("").to_string(), ty }),
            "lit" => {
                let value = node.attribute("val").unwrap_or("");
                let parsed = value.trim().parse::<u64>().ok().or_else(|| {
                    value.trim().strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok())
                });
                if parsed.is_none() {
                    self.error(node, format!("`{value}` is not a number"));
                }
                Some(CondExpr::Lit { value: parsed.unwrap_or(0), ty })
            }
            other => {
                self.error(node, format!("unexpected element `{other}` in a condition"));
                None
            }
        }
    }

    /// `MicrocodeFormat` (or `DataAttributes`) > `BitMap` > `Field`.
    fn bitmap(&mut self, node: Node<'_, '_>) -> Vec<Field> {
        let outer = child(node, "MicrocodeFormat").or_else(|| child(node, "DataAttributes"));
        let Some(map) = outer.and_then(|n| child(n, "BitMap")) else { return Vec::new() };
        elements(map, "Field").map(|f| self.field(f)).collect()
    }

    fn field(&mut self, node: Node<'_, '_>) -> Field {
        let name = self.need_text(node, &["FieldName"]);
        let mut ranges: Vec<(u32, Range)> = Vec::new();
        if let Some(layout) = self.need(node, "BitLayout") {
            let mut list: Vec<_> = elements(layout, "Range").collect();
            if list.is_empty() {
                list.push(layout);
            }
            for range in list {
                let order = range.attribute("Order").and_then(|v| v.parse().ok()).unwrap_or(0);
                let bit_count = self.need_number(range, "BitCount").min(255) as u8;
                let bit_offset = self.need_number(range, "BitOffset").min(255) as u8;
                if bit_count as u32 + bit_offset as u32 > 256 {
                    self.error(
                        range,
                        format!("field {name}: bits {bit_offset}+{bit_count} are out of range"),
                    );
                }
                let padding = child(range, "Padding")
                    .and_then(|p| child(p, "BitCount").or(Some(p)))
                    .and_then(|n| text_of(n).trim().parse().ok())
                    .unwrap_or(0);
                ranges.push((order, Range { bit_count, bit_offset, padding }));
            }
        }
        ranges.sort_by_key(|r| r.0);
        let values = match child(node, "FieldPredefinedValues") {
            Some(list) => self.values(list),
            None => Vec::new(),
        };
        Field {
            name,
            conditional: flag(node.attribute("IsConditional")),
            description: child(node, "Description").map(text_of).unwrap_or_default(),
            ranges: ranges.into_iter().map(|r| r.1).collect(),
            values,
            signedness: node.attribute("Signedness").map(str::to_string),
            span: self.span(node),
        }
    }

    /// `PredefinedValue`, or `OperandPredefinedValue` as the schema document has it.
    fn values(&mut self, list: Node<'_, '_>) -> Vec<PredefinedValue> {
        list.children()
            .filter(|n| n.is_element() && n.tag_name().name().ends_with("PredefinedValue"))
            .map(|n| PredefinedValue {
                name: self.need_text(n, &["Name"]),
                description: child(n, "Description").map(text_of).unwrap_or_default(),
                value: self.need_number(n, "Value") as u32,
            })
            .collect()
    }

    pub fn instruction(&mut self, node: Node<'_, '_>) -> Option<Instruction> {
        let name = self.need_text(node, &["InstructionName"]);
        let outer = std::mem::replace(&mut self.context, format!(" (instruction {name})"));
        let mut flags = Flags::default();
        if let Some(list) = child(node, "InstructionFlags") {
            let get = |tag| child(list, tag).is_some_and(|n| flag(Some(&text_of(n))));
            flags = Flags {
                branch: get("IsBranch"),
                conditional_branch: get("IsConditionalBranch"),
                indirect_branch: get("IsIndirectBranch"),
                terminator: get("IsProgramTerminator"),
                immediately_executed: get("IsImmediatelyExecuted"),
            };
        }
        let aliases = child(node, "AliasedInstructionNames")
            .map(|list| list.children().filter(Node::is_element).map(text_of).collect())
            .unwrap_or_default();
        let encodings =
            self.list(node, "InstructionEncodings", "InstructionEncoding", Self::instruction_encoding);
        let group = child(node, "FunctionalGroup")
            .or_else(|| child(node, "FunctionalGroups").and_then(|g| child(g, "FunctionalGroup")));
        let (group, subgroups) = match group {
            Some(g) => {
                let subgroups = child(g, "FunctionalSubgroups")
                    .map(|list| elements(list, "Subgroup").map(text_of).collect())
                    .or_else(|| child(g, "Subgroup").map(|s| vec![text_of(s)]))
                    .unwrap_or_default();
                (self.need_text(g, &["Name"]), subgroups)
            }
            None => ("NOT_ASSIGNED".to_string(), Vec::new()),
        };
        self.context = outer;
        Some(Instruction {
            name,
            aliases,
            description: child(node, "Description").map(text_of).unwrap_or_default(),
            flags,
            encodings,
            group,
            subgroups,
            span: self.span(node),
        })
    }

    fn instruction_encoding(&mut self, node: Node<'_, '_>) -> Option<InstructionEncoding> {
        let encoding = self.need_text(node, &["EncodingName"]);
        // The schema document calls it ConditionName.
        let condition = self.need_text(node, &["EncodingCondition", "ConditionName"]);
        let opcode = self.need_number(node, "Opcode") as u32;
        let mut operands: Vec<Operand> = match child(node, "Operands") {
            Some(list) => {
                elements(list, "Operand").enumerate().map(|(at, n)| self.operand(n, at as u32 + 1)).collect()
            }
            None => Vec::new(),
        };
        operands.sort_by_key(|o| o.order);
        Some(InstructionEncoding { encoding, condition, opcode, operands, span: self.span(node) })
    }

    fn operand(&mut self, node: Node<'_, '_>, at: u32) -> Operand {
        let field = child(node, "FieldName").map(text_of).filter(|t| !t.is_empty());
        Operand {
            field,
            format: self.need_text(node, &["DataFormatName"]),
            // The schema document misspells it.
            ty: self.need_text(node, &["OperandType", "OperantType"]),
            size: self.need_number(node, "OperandSize") as u16,
            input: flag(node.attribute("Input")),
            output: flag(node.attribute("Output")),
            implicit: flag(node.attribute("IsImplicit")),
            in_microcode: node.attribute("IsBinaryMicrocodeRequired").is_none_or(|v| flag(Some(v))),
            order: node.attribute("Order").and_then(|v| v.parse().ok()).unwrap_or(at),
            span: self.span(node),
        }
    }

    fn format(&mut self, node: Node<'_, '_>) -> Option<DataFormat> {
        Some(DataFormat {
            name: self.need_text(node, &["DataFormatName"]),
            description: child(node, "Description").map(text_of).unwrap_or_default(),
            data_type: child(node, "DataType").map(text_of).unwrap_or_default(),
            components: child(node, "ComponentCount").and_then(|n| self.number(n)).unwrap_or(1) as u16,
            fields: self.bitmap(node),
        })
    }

    fn operand_type(&mut self, node: Node<'_, '_>) -> Option<OperandType> {
        let values = match child(node, "OperandPredefinedValues") {
            Some(list) => self.values(list),
            None => Vec::new(),
        };
        Some(OperandType {
            name: self.need_text(node, &["OperandTypeName"]),
            partitioned: flag(node.attribute("IsPartitioned")),
            values,
            subtypes: child(node, "Subtypes")
                .map(|list| list.children().filter(Node::is_element).map(text_of).collect())
                .unwrap_or_default(),
            fields: self.bitmap(node),
            description: child(node, "Description").map(text_of).unwrap_or_default(),
        })
    }

    fn need<'a, 'd>(&mut self, node: Node<'a, 'd>, tag: &str) -> Option<Node<'a, 'd>> {
        let found = child(node, tag);
        if found.is_none() {
            self.error(node, format!("element `{}` lacks `{tag}`", node.tag_name().name()));
        }
        found
    }

    /// Text of the first of `tags` that is there.
    fn need_text(&mut self, node: Node<'_, '_>, tags: &[&str]) -> String {
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

    fn need_number(&mut self, node: Node<'_, '_>, tag: &str) -> u64 {
        self.need(node, tag).and_then(|n| self.number(n)).unwrap_or(0)
    }

    fn number(&mut self, node: Node<'_, '_>) -> Option<u64> {
        let text = text_of(node);
        let radix = node.attribute("Radix").and_then(|r| r.parse().ok()).unwrap_or(10);
        let parsed = parse_radix(&text, radix).and_then(|v| u64::try_from(v).ok());
        if parsed.is_none() {
            self.error(
                node,
                format!("`{text}` in `{}` is not a number of radix {radix}", node.tag_name().name()),
            );
        }
        parsed
    }

    fn wide_number(&mut self, node: Node<'_, '_>, default_radix: u32) -> u128 {
        let text = text_of(node);
        let radix = node.attribute("Radix").and_then(|r| r.parse().ok()).unwrap_or(default_radix);
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
    if !(2..=36).contains(&radix) {
        return None;
    }
    let digits = text.trim();
    let digits = if radix == 16 { digits.trim_start_matches("0x") } else { digits };
    u128::from_str_radix(digits, radix).ok()
}

pub(super) fn child<'a, 'd>(node: Node<'a, 'd>, tag: &str) -> Option<Node<'a, 'd>> {
    node.children().find(|n| n.is_element() && n.tag_name().name() == tag)
}

pub(super) fn elements<'a, 'd>(node: Node<'a, 'd>, tag: &str) -> impl Iterator<Item = Node<'a, 'd>> {
    let tag = tag.to_string();
    node.children().filter(move |n| n.is_element() && n.tag_name().name() == tag)
}

pub(super) fn text_of(node: Node<'_, '_>) -> String {
    node.text().unwrap_or("").trim().to_string()
}

/// `TRUE`, `true`, `1`.
fn flag(value: Option<&str>) -> bool {
    value.is_some_and(|v| v.trim().eq_ignore_ascii_case("true") || v.trim() == "1")
}

/// References and uniqueness.
pub(super) fn check(spec: &Spec, errors: &mut Vec<Diagnostic>) {
    let encodings: BTreeMap<&str, &Encoding> = spec.encodings.iter().map(|e| (e.name.as_str(), e)).collect();
    let formats: BTreeSet<&str> = spec.formats.iter().map(|f| f.name.as_str()).collect();
    let types: BTreeSet<&str> = spec.operand_types.iter().map(|t| t.name.as_str()).collect();
    let mut names: BTreeMap<&str, Span> = BTreeMap::new();
    // VOPD's two halves share an opcode field with other instructions: keyed by condition too.
    let mut opcodes: BTreeMap<(&str, &str, u32), (&str, Span)> = BTreeMap::new();
    for inst in &spec.instructions {
        if let Some(first) = names.insert(&inst.name, inst.span) {
            errors.push(
                Diagnostic::error(inst.span, format!("instruction {} is described twice", inst.name))
                    .also(first, "first here"),
            );
        }
        for enc in &inst.encodings {
            let context = format!("(instruction {})", inst.name);
            let Some(encoding) = encodings.get(enc.encoding.as_str()) else {
                errors.push(dangling(
                    enc.span,
                    "encoding",
                    &enc.encoding,
                    encodings.keys().copied(),
                    &context,
                ));
                continue;
            };
            if !encoding.conditions.is_empty() && !encoding.conditions.iter().any(|c| c.name == enc.condition)
            {
                let known = encoding.conditions.iter().map(|c| c.name.as_str());
                errors.push(dangling(enc.span, "condition", &enc.condition, known, &context));
            }
            if let Some((other, span)) =
                opcodes.insert((&enc.encoding, &enc.condition, enc.opcode), (&inst.name, enc.span))
                && other != inst.name
            {
                errors.push(
                    Diagnostic::error(
                        enc.span,
                        format!(
                            "opcode {} of {} is used by {other} and {}",
                            enc.opcode, enc.encoding, inst.name
                        ),
                    )
                    .also(span, format!("{other} here")),
                );
            }
            for operand in &enc.operands {
                if let Some(field) = &operand.field
                    && !encoding.fields.iter().any(|f| f.name == *field)
                {
                    let known = encoding.fields.iter().map(|f| f.name.as_str());
                    errors.push(dangling(operand.span, "field", field, known, &context));
                }
                if !formats.contains(operand.format.as_str()) {
                    errors.push(dangling(
                        operand.span,
                        "data format",
                        &operand.format,
                        formats.iter().copied(),
                        &context,
                    ));
                }
                if !types.contains(operand.ty.as_str()) {
                    errors.push(dangling(
                        operand.span,
                        "operand type",
                        &operand.ty,
                        types.iter().copied(),
                        &context,
                    ));
                }
            }
        }
    }
}

fn dangling<'a>(
    span: Span,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    context: &str,
) -> Diagnostic {
    let error = Diagnostic::error(span, format!("no {what} is called `{name}` {context}"));
    match nearest(name, known) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}
