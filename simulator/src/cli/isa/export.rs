//! `wavesim isa export`: instructions and typed bodies for other tools.

use anyhow::{Context as _, bail};
use isa_export::Export;
use isa_spec::canonical::Operation;
use isa_spec::diag::nearest;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use wavesim_isa::arch::Arch;
use wavesim_machine::isa;

/// A form of the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// One JSON document (`docs/isa-export.md`)
    Json,
    /// A C header with a function for each operation (`docs/exports.md`)
    C,
    /// Functions for SMT solvers, in SMT-LIB 2.6 (`docs/exports.md`)
    Smtlib,
}

pub fn run(
    archs: &[Arch],
    names: &[String],
    format: Form,
    output: Option<&Path>,
    out: &mut dyn Write,
) -> anyhow::Result<u8> {
    let names: Vec<String> = names.iter().map(|name| name.to_uppercase()).collect();
    let exists = |name: &&String| {
        archs.iter().any(|arch| arch.table().instructions.iter().any(|inst| inst.name == name.as_str()))
    };
    if let Some(name) = names.iter().find(|name| !exists(name)) {
        let all = archs.iter().flat_map(|arch| arch.table().instructions.iter().map(|inst| inst.name));
        let help = nearest(name, all).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        bail!("no instruction is called `{name}`{help}");
    }
    match output {
        None => write(archs, &names, format, out)?,
        Some(path) => {
            wavesim_files::write(path, |file| write(archs, &names, format, &mut BufWriter::new(file)))
                .with_context(|| path.display().to_string())?;
        }
    }
    Ok(crate::cli::OK)
}

fn is_exported(names: &[String], name: &str) -> bool {
    names.is_empty() || names.iter().any(|one| one == name)
}

fn write(archs: &[Arch], names: &[String], format: Form, out: &mut dyn Write) -> std::io::Result<()> {
    let tables: Vec<_> = archs.iter().map(|arch| arch.table()).collect();
    // The operations that these architectures have, each under a number of its own.
    let mut numbers: BTreeMap<u16, usize> = BTreeMap::new();
    let mut operations: Vec<&Operation> = Vec::new();
    for arch in archs {
        let instructions = &arch.table().instructions;
        let exported = (0..instructions.len()).filter(|at| is_exported(names, instructions[*at].name));
        for number in exported.filter_map(|at| isa::number(*arch, at)) {
            if let Some(operation) = isa::operation(number).filter(|_| !numbers.contains_key(&number)) {
                numbers.insert(number, operations.len());
                operations.push(operation);
            }
        }
    }
    let place = |operation: &Operation| {
        let sources = &isa::loaded().sources;
        let (line, _) = sources.line_col(operation.file, operation.sem.span.start);
        (sources.file(operation.file).name.clone(), line)
    };
    let export = Export {
        tables: &tables,
        operations: &operations,
        operation: &|table, at| numbers.get(&isa::number(archs[table], at)?).copied(),
        place: &place,
        reason: &isa::unsupported_reason,
        is_exported: &|name| is_exported(names, name),
    };
    match format {
        Form::Json => export.write_json(out),
        Form::C => export.write_c(out),
        Form::Smtlib => export.write_smtlib(out),
    }
}
