//! The instructions in C: one header, which needs a C11 compiler with integers of 128 bits (gcc, clang) and the C
//! library's mathematical functions. `docs/exports.md` describes it.

mod body;
mod expr;
mod names;

pub use names::ROLES;

use crate::{Export, function_name};
use isa_spec::arith::buffer_format::{self, Number};
use isa_spec::arith::trig_preop;
use isa_spec::canonical::Operation;
use isa_spec::pcode::builtins::{Builtin, all};
use isa_spec::pcode::ir::{Role, Semantics};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

impl Export<'_> {
    /// Writes a C header: a function for each operation, which is called as the first instruction that it belongs
    /// to, and macros for the names of the others.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_c(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "/* Instructions of AMD GPUs as functions. Written by `wavesim isa export --format c`. */"
        )?;
        writeln!(out, "#ifndef ISA_EXPORT_H\n#define ISA_EXPORT_H\n")?;
        writeln!(out, "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n")?;
        out.write_all(include_bytes!("integer.h"))?;
        out.write_all(enumerations().as_bytes())?;
        out.write_all(include_bytes!("machine.h"))?;
        out.write_all(b"\n")?;
        out.write_all(include_bytes!("float.h"))?;
        out.write_all(tables().as_bytes())?;
        out.write_all(include_bytes!("formats.h"))?;
        for (operation, users) in self.operations.iter().zip(self.users()) {
            let Some((name, others)) = users.split_first() else { continue };
            self.c_function(operation, name, others, out)?;
        }
        writeln!(out, "\n#ifdef ISA_TABLES\n")?;
        out.write_all(TABLE_TYPE.as_bytes())?;
        for (number, table) in self.tables.iter().enumerate() {
            writeln!(out, "\nstatic const isa_instruction {}_instructions[] = {{", table.name)?;
            for (at, instruction) in table.instructions.iter().enumerate() {
                let operation = (self.operation)(number, at).filter(|_| (self.is_exported)(instruction.name));
                let operation = operation.filter(|at| is_written(&self.operations[*at].sem));
                if let Some(operation) = operation {
                    let sem = &self.operations[operation].sem;
                    writeln!(
                        out,
                        "    {{\"{}\", {}, {}, {}, {}, {}}},",
                        instruction.name,
                        function_name(table.name, instruction.name),
                        names::shape(sem.shape),
                        roles(&sem.uses.reads),
                        roles(&sem.uses.writes),
                        roles(&sem.uses.indexed),
                    )?;
                }
            }
            writeln!(out, "    {{NULL, NULL, ISA_SHAPE_SCALAR, 0, 0, 0}},\n}};")?;
        }
        writeln!(out, "\n#endif\n#endif")
    }

    fn c_function(
        &self,
        operation: &Operation,
        name: &str,
        others: &[String],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (file, line) = (self.place)(operation);
        writeln!(out, "\n// {file}:{line}")?;
        if !is_written(&operation.sem) {
            return writeln!(out, "// {name} is not exported: it reads formats of the texture unit.");
        }
        for line in operation.sem.text.lines() {
            // A backslash would join the next line to the comment.
            writeln!(out, "{}", format!("//   {}", line.trim_end_matches('\\')).trim_end())?;
        }
        writeln!(out, "static inline void {name}(isa_machine *m)\n{{")?;
        let text = body::body(&operation.sem);
        out.write_all(text.as_bytes())?;
        if !text.contains("m->") && !text.contains("(m, ") {
            writeln!(out, "    (void)m;")?;
        }
        writeln!(out, "}}")?;
        let unique: BTreeSet<&String> = others.iter().filter(|other| *other != name).collect();
        for other in unique {
            writeln!(out, "#define {other} {name}")?;
        }
        Ok(())
    }
}

/// Returns whether a body is written: the header has neither the formats of images nor their arithmetic, which does not
/// depend on MODE.
fn is_written(sem: &Semantics) -> bool {
    !sem.ignores_mode
}

const TABLE_TYPE: &str = "\
enum { ISA_SHAPE_SCALAR, ISA_SHAPE_LANE, ISA_SHAPE_WAVE };

/* An instruction: how often its body runs, and the operands that it reads, writes, or uses the number of (a bit
   for each ISA_…). The last one of a table has no name. */
typedef struct {
    const char *name;
    void (*run)(isa_machine *m);
    int shape;
    uint32_t reads, writes, indexed;
} isa_instruction;
";

fn roles(list: &BTreeSet<Role>) -> String {
    let bits: Vec<String> = names::ROLES
        .iter()
        .filter(|one| list.contains(one))
        .map(|one| format!("1u << {}", names::role(*one)))
        .collect();
    if bits.is_empty() { "0".into() } else { bits.join(" | ") }
}

fn enumeration(about: &str, names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.map(|name| format!("    {name}")).collect();
    format!("\n/* {about} */\nenum {{\n{}\n}};\n", names.join(",\n"))
}

fn enumerations() -> String {
    let roles = names::ROLES.iter().map(|one| names::role(*one));
    let roles = roles.chain([names::VCC_OUT.to_string(), "ISA_ROLES".to_string()]);
    let fields = names::fields().map(names::field).chain(["ISA_FIELDS".to_string()]);
    let controls = all().filter_map(|def| match def.builtin {
        Builtin::Control(one) => Some(names::control(one)),
        Builtin::Pure(_) => None,
    });
    [
        enumeration("Operands.", roles),
        enumeration("Fields of encodings.", fields),
        enumeration("Address spaces.", names::SPACES.iter().map(|one| names::space(*one))),
        enumeration("Builtins with an effect.", controls),
    ]
    .concat()
        + "\n"
}

/// The tables of buffer formats and of the digits of 2/pi.
fn tables() -> String {
    let number = |number: Number| format!("ISA_{}", format!("{number:?}").to_uppercase());
    let mut text = String::from(
        "\nenum { ISA_UNORM, ISA_SNORM, ISA_USCALED, ISA_SSCALED, ISA_UINT, ISA_SINT, ISA_FLOAT };\n\n\
         typedef struct {\n    unsigned count;\n    unsigned char widths[4];\n    int number;\n} isa_buffer_format;\n\n\
         static const isa_buffer_format isa_buffer_formats[] = {\n    {0, {0, 0, 0, 0}, ISA_UINT},\n",
    );
    // Those after these are formats of images only.
    for format in (1..64).map_while(buffer_format::by_number) {
        let mut widths = [0; 4];
        widths[..format.widths.len()].copy_from_slice(format.widths);
        let [x, y, z, w] = widths;
        let (count, number) = (format.widths.len(), number(format.number));
        let _ = writeln!(text, "    {{{count}, {{{x}, {y}, {z}, {w}}}, {number}}}, /* {} */", format.name);
    }
    text.push_str("};\n\nstatic const isa_u64 isa_two_over_pi[] = {\n");
    // Past the digits that hardware has, there are zeros.
    let unused = 64 * trig_preop::TWO_OVER_PI.len() as u32 - trig_preop::DIGITS;
    for (at, word) in trig_preop::TWO_OVER_PI.iter().enumerate() {
        let last = at + 1 == trig_preop::TWO_OVER_PI.len();
        let word = if last { word >> unused << unused } else { *word };
        let _ = writeln!(text, "    UINT64_C({word:#018x}),");
    }
    text.push_str("};\n\n");
    text
}
