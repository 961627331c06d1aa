//! `--dump-jit`: the units that the compiled engine has compiled, as text.

use super::engine::Code;
use anyhow::Context as _;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use wavesim_jit::UnitText;
use wavesim_machine::exec::program::Program;

/// The units that are compiled during a run.
pub struct Dump {
    units: Arc<Mutex<Vec<UnitText>>>,
    /// The instruction of each operation.
    instructions: Vec<String>,
}

impl Dump {
    /// Collects the units of a program from now on.
    pub fn of(code: &Code, program: &Program) -> Dump {
        let units = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&units);
        code.look_at_units(move |unit| {
            list.lock().unwrap_or_else(PoisonError::into_inner).push(unit.clone());
        });
        let text =
            |pc: u32| program.pcs.binary_search(&pc.into()).map_or(String::new(), |at| program.text(at));
        let instructions = program.lowered().ops().iter().map(|op| text(op.pc)).collect();
        Dump { units, instructions }
    }

    /// Writes each unit to a file of its own, and returns how many there are.
    pub fn write(&self, dir: &Path) -> anyhow::Result<usize> {
        let units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |n: usize, unit: &UnitText| {
            format!("unit{n}-op{}", unit.blocks.first().map_or(0, |block| block.start))
        };
        let names: Vec<String> = (1..).zip(&*units).map(|(n, unit)| name(n, unit)).collect();
        let files = names.iter().zip(&*units).map(|(name, unit)| {
            let write = |out: &mut dyn Write| self.write_unit(unit, out);
            (name.as_str(), write)
        });
        wavesim_files::write_all(dir, "txt", files)
            .with_context(|| format!("writing to {}", dir.display()))?;
        Ok(units.len())
    }

    fn write_unit(&self, unit: &UnitText, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "== unit: {}", unit.mode)?;
        let mut operations = unit.operations.iter();
        for block in &unit.blocks {
            writeln!(out, "block of op{} to op{}:", block.start, block.end.saturating_sub(1))?;
            for at in block.clone() {
                let text = self.instructions.get(at as usize).map_or("", String::as_str);
                let how = operations.next().map_or(String::new(), |selection| selection.to_string());
                writeln!(out, "    op{at}  {text}  ; {how}")?;
            }
        }
        writeln!(out, "paths: {}", unit.paths)?;
        let listing = &unit.listing;
        for (title, text) in
            [("function", &listing.ir), ("locations", &listing.allocated), ("host code", &listing.host)]
        {
            write_part(title, text, out)?;
        }
        Ok(())
    }
}

/// Writes a part of a listing.
pub fn write_part(title: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let missing = "(this wavesim was built without the feature `disassembly`)\n";
    write!(out, "\n== {title}\n{}", if text.is_empty() { missing } else { text })
}
