//! Assembling of instructions.

use super::{Block, REGISTER_COUNTS, Reader};
use crate::program::{Definition, Listed, PendingKind, SectionAddresses, Values};
use wavesim_asm::error::{AsmError, Span};
use wavesim_asm::expr::Expr;
use wavesim_asm::operand::{self, Line, RegBase, Value};
use wavesim_asm::scan::Scanner;
use wavesim_asm::{Fixup, matching};
use wavesim_isa::codec::encode;

impl Reader<'_> {
    /// Assembles the instruction whose mnemonic is at `span`; `s` is positioned after the mnemonic.
    pub(super) fn instruction<'t>(
        &mut self,
        line: &'t str,
        (name, span): (&'t str, Span),
        s: &mut Scanner<'t>,
    ) -> Result<(), AsmError> {
        let start = span.start;
        if matches!(self.block, Block::Kernel(_)) {
            let message = "only .amdhsa_ directives belong in an .amdhsa_kernel block";
            return Err(AsmError::new(Span::new(start, line.trim_end().len()), message));
        }
        let before = self.used;
        let parsed = {
            let symbols = Values::new(&self.program.symbols, SectionAddresses::Unknown);
            let mut read = Line::new(name, span);
            read.read_rest(s, &symbols)?;
            let parsed = matching::assemble(&read, &self.options)?;
            count_registers(&read, &mut self.used);
            parsed
        };
        for (name, used) in REGISTER_COUNTS.iter().zip(self.used).filter(|_| before != self.used) {
            if let Some(Definition::Expr(e)) = self.program.symbols.get_mut(*name) {
                *e = Expr::Int(used);
            }
        }
        let span = || Span::new(start, line.trim_end().len());
        let words =
            encode(self.options.arch, &parsed.inst).map_err(|e| AsmError::new(span(), e.to_string()))?;
        let offset = self.offset();
        self.reserve(4 * words.len(), Span::default()).map_err(|e| e.or_at(span()))?;
        let bytes = &mut self.program.sections[self.current].bytes;
        words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        let listed = self.program.listing.len();
        self.program.listing.push(Listed {
            line: self.input.sources.main_line(self.location) as usize,
            section: self.current,
            offset,
            inst: parsed.inst,
            words,
            options: self.options,
            label: None,
        });
        if !parsed.fixups.is_empty() {
            let bind = |f: Fixup| Fixup { expr: self.bind_position(f.expr), ..f };
            let fixups = parsed.fixups.into_iter().map(bind).collect();
            self.add_pending(offset, PendingKind::Inst { listed, inst: parsed.inst, fixups });
        }
        Ok(())
    }
}

/// Raises `used` to the number of registers that a line needs.
fn count_registers(line: &Line, used: &mut [i64; 2]) {
    let mut count = |reg: operand::Reg| {
        let (at, first) = match reg.base {
            RegBase::Vgpr(n) => (0, n),
            RegBase::Sgpr(n) => (1, n),
            _ => return,
        };
        used[at] = used[at].max(first as i64 + reg.count as i64);
    };
    for operand in line.operands.iter().chain(line.second.iter().flat_map(|l| &l.operands)) {
        match &operand.value {
            Value::Reg(reg) => count(*reg),
            Value::List(regs) => regs.iter().copied().for_each(&mut count),
            _ => {}
        }
    }
}
