//! Loads XML text into a [`Spec`]. Accepts AMD's published files, and the forms of AMD's schema document
//! where these differ. Collects all errors; each names file, line, element and, where applicable, the
//! instruction.

use super::check::check;
use super::document::parse;
use super::element::{child, elements, low_bits, text_of};
use super::model::*;
use crate::diag::Diagnostic;
use crate::source::{FileId, SourceMap, Span};
use roxmltree::Node;

/// Parses and checks one document; messages refer to the file by `name`.
pub fn load(name: &str, text: &str) -> Result<Spec, (SourceMap, Vec<Diagnostic>)> {
    let mut sources = SourceMap::default();
    let file = sources.add(name, text);
    load_into(&sources, file).map_err(|errors| (sources, errors))
}

/// Like [`load`], for a file that is already in a source map.
pub fn load_into(sources: &SourceMap, file: FileId) -> Result<Spec, Vec<Diagnostic>> {
    let text = &sources.file(file).text;
    let doc = parse(text, file).map_err(|e| vec![e])?;
    let mut loader = Loader::new(file);
    let spec = loader.spec(doc.root_element());
    if loader.errors.is_empty() {
        check(&spec, &mut loader.errors);
    }
    if loader.errors.is_empty() { Ok(spec) } else { Err(loader.errors) }
}

/// Walks one document. Methods return what they could read and report a diagnostic for what they could not.
pub(super) struct Loader {
    /// The file that spans refer to.
    pub file: FileId,
    /// Diagnostics so far, in document order.
    pub errors: Vec<Diagnostic>,
    /// Suffix of messages, such as ` (instruction X)`.
    context: String,
}

impl Loader {
    /// Creates a loader without diagnostics.
    pub fn new(file: FileId) -> Loader {
        Loader { file, errors: Vec::new(), context: String::new() }
    }

    /// Returns the span of an element's start tag, up to the end of its name.
    pub fn span(&self, node: Node<'_, '_>) -> Span {
        let range = node.range();
        // A caret line under the start tag is enough.
        Span::new(self.file, range.start, range.start + 1 + node.tag_name().name().len())
    }

    /// Reports an error at an element; the message ends with the enclosing instruction or encoding.
    pub fn error(&mut self, node: Node<'_, '_>, message: impl std::fmt::Display) {
        let span = self.span(node);
        let context = &self.context;
        self.errors.push(Diagnostic::error(span, format!("{message}{context}")));
    }

    /// Adds advice to the last error.
    pub fn help(&mut self, text: String) {
        if let Some(last) = self.errors.pop() {
            self.errors.push(last.help(text));
        }
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
        let Some(isa) = self.require(root, "ISA") else { return spec };
        if let Some(arch) = self.require(isa, "Architecture") {
            spec.architecture.name = self.require_text(arch, &["ArchitectureName"]);
            spec.architecture.id = child(arch, "ArchitectureId")
                .and_then(|n| self.number(n))
                .and_then(|v| u32::try_from(v).ok());
        }
        spec.encodings = self.list(isa, "Encodings", "Encoding", Self::encoding);
        spec.instructions = self.list(isa, "Instructions", "Instruction", Self::instruction);
        spec.formats = self.list(isa, "DataFormats", "DataFormat", Self::format);
        spec.operand_types = self.list(isa, "OperandTypes", "OperandType", Self::operand_type);
        if let Some(groups) = child(isa, "FunctionalGroups") {
            spec.functional_groups = elements(groups, "FunctionalGroup")
                .map(|g| FunctionalGroup {
                    name: self.require_text(g, &["Name"]),
                    description: description(g),
                })
                .collect();
        }
        spec
    }

    fn list<T>(
        &mut self,
        parent: Node<'_, '_>,
        list: &'static str,
        item: &'static str,
        mut f: impl FnMut(&mut Self, Node<'_, '_>) -> Option<T>,
    ) -> Vec<T> {
        match self.require(parent, list) {
            Some(node) => elements(node, item).filter_map(|n| f(self, n)).collect(),
            None => Vec::new(),
        }
    }

    /// Reads an `Encoding` element.
    pub fn encoding(&mut self, node: Node<'_, '_>) -> Option<Encoding> {
        let name = self.require_text(node, &["EncodingName"]);
        let outer = std::mem::replace(&mut self.context, format!(" (encoding {name})"));
        let order = node.attribute("Order").unwrap_or("0").trim().parse().unwrap_or_else(|_| {
            let order = node.attribute("Order").unwrap_or_default();
            self.error(node, format!("attribute Order=\"{order}\" is not a number"));
            0
        });
        // If the bit count is invalid, assume the maximum to avoid follow-up errors.
        let bits = self.at_most(node, "BitCount", 128).unwrap_or(128) as u16;
        let inside = low_bits(bits);
        let mask = match self.require(node, "EncodingIdentifierMask") {
            Some(n) => self.identifier(n, inside),
            None => 0,
        };
        let identifiers = match self.require(node, "EncodingIdentifiers") {
            Some(list) => elements(list, "EncodingIdentifier").map(|n| self.identifier(n, inside)).collect(),
            None => Vec::new(),
        };
        self.require(node, "MicrocodeFormat");
        let fields = self.bitmap(node);
        for (field, at) in fields.iter().zip(bitmap_fields(node)) {
            if field.ranges.iter().any(|r| r.bit_offset as u32 + r.bit_count as u32 > bits as u32) {
                self.error(at, format!("field {} reaches past the encoding's {bits} bits", field.name));
            }
            // Wider fields than 32 bits are split later (`normalize`).
            if field.ranges.iter().map(|r| r.bit_count as u32).sum::<u32>() > 64 {
                self.error(at, format!("field {} is wider than 64 bits", field.name));
            }
        }
        let conditions = match child(node, "EncodingConditions") {
            Some(list) => elements(list, "EncodingCondition").map(|n| self.condition(n, &fields)).collect(),
            None => Vec::new(),
        };
        self.context = outer;
        Some(Encoding {
            name,
            order,
            bits,
            mask,
            ignored: 0,
            identifiers,
            conditions,
            description: description(node),
            fields,
            span: self.span(node),
        })
    }

    /// Reads a mask or identifier, whose default `Radix` is 2.
    fn identifier(&mut self, node: Node<'_, '_>, inside: u128) -> u128 {
        let value = self.wide_number(node, 2);
        if value & !inside != 0 {
            self.error(node, format!("`{}` is wider than the encoding", node.tag_name().name()));
        }
        value
    }

    /// Reads `MicrocodeFormat` (or `DataAttributes`) > `BitMap` > `Field`.
    fn bitmap(&mut self, node: Node<'_, '_>) -> Vec<Field> {
        bitmap_fields(node).map(|f| self.field(f)).collect()
    }

    fn field(&mut self, node: Node<'_, '_>) -> Field {
        let name = self.require_text(node, &["FieldName"]);
        let mut ranges: Vec<(u64, Range)> = Vec::new();
        if let Some(layout) = self.require(node, "BitLayout") {
            let list: Vec<_> = elements(layout, "Range").collect();
            if let Some(count) = layout.attribute("RangeCount")
                && count.trim().parse() != Ok(list.len())
            {
                self.error(
                    layout,
                    format!("field {name}: RangeCount=\"{count}\", but {} ranges", list.len()),
                );
            }
            // In the schema document, `BitLayout` itself has the bit count and offset.
            let list = if list.is_empty() { vec![layout] } else { list };
            for (at, range) in list.into_iter().enumerate() {
                let order = self.attribute_number(range, "Order").unwrap_or(at as u64);
                ranges.push((order, self.range(range)));
            }
        }
        ranges.sort_by_key(|r| r.0);
        let values = match child(node, "FieldPredefinedValues") {
            Some(list) => self.values(list),
            None => Vec::new(),
        };
        Field {
            name,
            conditional: self.flag_attribute(node, "IsConditional").unwrap_or(false),
            description: description(node),
            ranges: ranges.into_iter().map(|r| r.1).collect(),
            values,
            signedness: node.attribute("Signedness").map(str::to_string),
            span: self.span(node),
        }
    }

    fn range(&mut self, node: Node<'_, '_>) -> Range {
        // Data formats have up to 1024 bits; the caller checks fields of encodings against the encoding's
        // size.
        let bit_count = self.at_most(node, "BitCount", 2048);
        if bit_count == Some(0) {
            self.error(node, "an empty bit range");
        }
        let bit_count = bit_count.unwrap_or(1) as u16;
        let bit_offset = self.require_at_most(node, "BitOffset", 2048) as u16;
        // Either `<Padding>1</Padding>`, or an element with children `BitCount` and `Value`.
        let padding = match child(node, "Padding") {
            Some(p) if child(p, "BitCount").is_some() => self.require_at_most(p, "BitCount", 64),
            Some(_) => self.require_at_most(node, "Padding", 64),
            None => 0,
        };
        Range { bit_count, bit_offset, padding: padding as u16 }
    }

    /// Reads `PredefinedValue` elements (`OperandPredefinedValue` in the schema document).
    fn values(&mut self, list: Node<'_, '_>) -> Vec<PredefinedValue> {
        list.children()
            .filter(|n| n.is_element() && n.tag_name().name().ends_with("PredefinedValue"))
            .map(|n| PredefinedValue {
                name: self.require_text(n, &["Name"]),
                description: description(n),
                value: self.require_at_most(n, "Value", u32::MAX as u64) as u32,
            })
            .collect()
    }

    /// Reads an `Instruction` element.
    pub fn instruction(&mut self, node: Node<'_, '_>) -> Option<Instruction> {
        let name = self.require_text(node, &["InstructionName"]);
        let outer = std::mem::replace(&mut self.context, format!(" (instruction {name})"));
        let mut flags = Flags::default();
        if let Some(list) = child(node, "InstructionFlags") {
            let mut get = |tag| child(list, tag).is_some_and(|n| self.flag(n, &text_of(n)));
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
                (self.require_text(g, &["Name"]), subgroups)
            }
            None => ("NOT_ASSIGNED".to_string(), Vec::new()),
        };
        self.context = outer;
        Some(Instruction {
            name,
            aliases,
            description: description(node),
            flags,
            encodings,
            group,
            subgroups,
            span: self.span(node),
        })
    }

    fn instruction_encoding(&mut self, node: Node<'_, '_>) -> Option<InstructionEncoding> {
        let encoding = self.require_text(node, &["EncodingName"]);
        // The schema document uses `ConditionName`.
        let condition = self.require_text(node, &["EncodingCondition", "ConditionName"]);
        let opcode = self.require_at_most(node, "Opcode", u16::MAX as u64) as u32;
        let mut operands: Vec<Operand> = match child(node, "Operands") {
            Some(list) => {
                elements(list, "Operand").enumerate().map(|(at, n)| self.operand(n, at as u32 + 1)).collect()
            }
            None => Vec::new(),
        };
        operands.sort_by_key(|o| o.order);
        Some(InstructionEncoding { encoding, condition, opcode, operands, span: self.span(node) })
    }

    fn operand(&mut self, node: Node<'_, '_>, index: u32) -> Operand {
        let field = child(node, "FieldName").map(text_of).filter(|t| !t.is_empty());
        Operand {
            field,
            format: self.require_text(node, &["DataFormatName"]),
            // The schema document misspells `OperandType`.
            ty: self.require_text(node, &["OperandType", "OperantType"]),
            size: self.require_at_most(node, "OperandSize", u16::MAX as u64) as u16,
            input: self.flag_attribute(node, "Input").unwrap_or(false),
            output: self.flag_attribute(node, "Output").unwrap_or(false),
            implicit: self.flag_attribute(node, "IsImplicit").unwrap_or(false),
            in_microcode: self.flag_attribute(node, "IsBinaryMicrocodeRequired").unwrap_or(true),
            preserves: self.flag_attribute(node, "Preserves").unwrap_or(false),
            order: self.attribute_number(node, "Order").and_then(|v| u32::try_from(v).ok()).unwrap_or(index),
            span: self.span(node),
        }
    }

    pub(super) fn format(&mut self, node: Node<'_, '_>) -> Option<DataFormat> {
        Some(DataFormat {
            name: self.require_text(node, &["DataFormatName"]),
            description: description(node),
            data_type: self.require_text(node, &["DataType"]),
            bits: child(node, "BitCount").and_then(|n| self.number(n)).and_then(|v| u32::try_from(v).ok()),
            components: match child(node, "ComponentCount") {
                Some(_) => self.require_at_most(node, "ComponentCount", u16::MAX as u64) as u16,
                None => 1,
            },
            fields: self.bitmap(node),
            span: self.span(node),
        })
    }

    pub(super) fn operand_type(&mut self, node: Node<'_, '_>) -> Option<OperandType> {
        let values = match child(node, "OperandPredefinedValues") {
            Some(list) => self.values(list),
            None => Vec::new(),
        };
        let fields = self.bitmap(node);
        for (field, at) in fields.iter().zip(bitmap_fields(node)) {
            if field.ranges.iter().any(|r| r.bit_offset as u32 + r.bit_count as u32 > 32) {
                self.error(at, format!("field {} of an operand reaches past 32 bits", field.name));
            }
        }
        Some(OperandType {
            name: self.require_text(node, &["OperandTypeName"]),
            partitioned: self.flag_attribute(node, "IsPartitioned").unwrap_or(false),
            values,
            subtypes: child(node, "Subtypes")
                .map(|list| list.children().filter(Node::is_element).map(text_of).collect())
                .unwrap_or_default(),
            fields,
            description: description(node),
            span: self.span(node),
        })
    }
}

fn bitmap_fields<'a, 'd>(node: Node<'a, 'd>) -> impl Iterator<Item = Node<'a, 'd>> {
    let outer = child(node, "MicrocodeFormat").or_else(|| child(node, "DataAttributes"));
    outer.and_then(|n| child(n, "BitMap")).into_iter().flat_map(|map| elements(map, "Field"))
}

fn description(node: Node<'_, '_>) -> String {
    child(node, "Description").map(text_of).unwrap_or_default()
}
