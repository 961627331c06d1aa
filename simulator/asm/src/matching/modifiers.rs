//! Matching of modifiers: those that determine operand sizes are applied before the operands; then all are
//! applied, and required ones are checked.

use super::Matcher;
use crate::dialect::Trait;
use crate::error::{AsmError, suggest};
use crate::form::Form;
use crate::modifier::{self, Mod};
use crate::operand::{Modifier, ModifierValue};
use isa_spec::mnemonic::ImageSuffixes;

impl<'a, 't> Matcher<'a, 't> {
    /// Reports required modifiers that are missing, and combinations that are invalid.
    pub(super) fn required(&self) -> Result<(), AsmError> {
        let (form, line) = (self.form, self.line);
        let given = |own: &Mod| line.modifiers.iter().any(|m| own.accepts(m.name));
        for own in &form.mods {
            let missing = match own {
                Mod::DppCtrl { .. } => "its lane movement (DPP), as in quad_perm:[0,1,2,3] or row_shl:1",
                Mod::Dpp8 { .. } => "its lane movement (DPP), as in dpp8:[7,6,5,4,3,2,1,0]",
                Mod::Dim { .. } => "its dimension, as in dim:SQ_RSRC_IMG_2D",
                Mod::Flag { name: "gds", .. } if form.traits.has(Trait::GlobalDataShare) => "`gds`",
                Mod::Flag { name: "lds", .. } if form.traits.has(Trait::StoresFromLds) => "`lds`",
                _ => continue,
            };
            if !given(own) {
                return Err(self.error(line.span, || format!("`{}` needs {missing}", line.mnemonic)));
            }
        }
        for m in &line.modifiers {
            if let (Some(Mod::Th { scope, kind, .. }), ModifierValue::Word(word)) =
                (form.mods.iter().find(|own| own.accepts(m.name)), &m.value)
                && !modifier::hint_is_valid(word, self.inst.fields[*scope as usize], *kind)
            {
                let message = format!("`th:{word}` is not valid with this `scope:`");
                let rule = "bypassing hints need scope:SCOPE_SYS, last use and write-back another scope";
                return Err(AsmError::new(m.span, message).help(rule));
            }
        }
        if form.traits.has(Trait::FixedHalves) {
            let fixed = ["OP_SEL", "OP_SEL_HI", "OP_SEL_HI_2"];
            let table = self.options.arch.table();
            let fields = self.inst.encoding(table).fields;
            let changed = |at: &usize| {
                fixed.contains(&fields[*at].name) && self.inst.fields[*at] != form.initial_fields[*at]
            };
            if (0..fields.len()).any(|at| changed(&at)) {
                let own = |m: &&Modifier| matches!(m.name, "op_sel" | "op_sel_hi");
                let span = line.modifiers.iter().find(own).map_or(line.span, |m| m.span);
                return Err(AsmError::new(
                    span,
                    "this instruction reads whole registers: it selects no halves",
                ));
            }
        }
        let name = self.inst.instruction(self.options.arch.table()).name;
        if ImageSuffixes::of(name).has(ImageSuffixes::ONE_CHANNEL) && self.get("DMASK").count_ones() != 1 {
            return Err(AsmError::new(line.span, "`dmask:` chooses one channel here: one bit of four"));
        }
        Ok(())
    }

    /// Applies the modifiers that determine the sizes of operands.
    pub(super) fn preset(&mut self) -> Result<(), AsmError> {
        const SIZES: [&str; 11] = [
            "dmask",
            "dim",
            "a16",
            "d16",
            "tfe",
            "idxen",
            "offen",
            "cbsz",
            "blgp",
            "matrix_a_fmt",
            "matrix_b_fmt",
        ];
        let sizes = |m: &&Modifier| SIZES.contains(&m.name);
        for m in self.line.modifiers.iter().filter(sizes) {
            if let Some(own) = self.form.mods.iter().find(|own| own.accepts(m.name)) {
                own.apply(m, &mut self.inst, self.options, 0)?;
            }
        }
        Ok(())
    }

    pub(super) fn modifiers(&mut self) -> Result<(), AsmError> {
        self.modifiers_of(self.form)
    }

    /// As [`Matcher::modifiers`], with the modifiers of `form`, the second half of a dual instruction.
    pub(super) fn modifiers_of(&mut self, form: &'static Form) -> Result<(), AsmError> {
        let line = self.line;
        let sources = form.sources;
        for (at, m) in line.modifiers.iter().enumerate() {
            if self.consumed_modifier == Some(at) {
                continue;
            }
            let Some(own) = form.mods.iter().find(|own| own.accepts(m.name)) else {
                return Err(self.unknown_modifier(m));
            };
            if let Some(before) = line.modifiers[..at].iter().find(|before| own.accepts(before.name)) {
                let message = match before.name == m.name {
                    true => format!("`{}` is given twice", m.name),
                    false => format!("`{}` cannot be combined with `{}`", m.name, before.name),
                };
                return Err(AsmError::new(m.span, message));
            }
            own.apply(m, &mut self.inst, self.options, sources)?;
            self.progress += 1;
        }
        if let Some(Mod::TwoFormats { data, .. }) =
            self.form.mods.iter().find(|m| matches!(m, Mod::TwoFormats { .. }))
            && !line.modifiers.iter().any(|m| m.name == "format")
        {
            self.inst.fields[*data as usize] = modifier::DEFAULT_FORMAT;
        }
        if let Some(Mod::Format { field }) = self.form.mods.iter().find(|m| matches!(m, Mod::Format { .. }))
            && !line.modifiers.iter().any(|m| m.name == "format")
        {
            self.inst.fields[*field as usize] = modifier::DEFAULT_FORMAT;
        }
        Ok(())
    }

    pub(super) fn unknown_modifier(&self, m: &Modifier) -> AsmError {
        if !self.messages {
            return AsmError::new(m.span, "");
        }
        let error = AsmError::new(m.span, format!("`{}` takes no `{}`", self.line.mnemonic, m.name));
        let known: Vec<&str> = self.form.mods.iter().map(Mod::name).collect();
        match suggest(m.name, known.iter().copied()) {
            Some(help) => error.help(help),
            None if known.is_empty() => error.help("it has no modifiers"),
            None => error.help(format!("it has {}", known.join(", "))),
        }
    }

    pub(super) fn return_mismatch(&self, returns: bool) -> AsmError {
        let returns_by = |m: &&Mod| match m {
            Mod::Flag { field, .. } | Mod::Th { field, .. } => Some(*field) == self.form.returns,
            _ => false,
        };
        let hint = match self.form.mods.iter().find(returns_by) {
            Some(Mod::Th { .. }) => "th:TH_ATOMIC_RETURN",
            Some(flag) => flag.name(),
            None => "glc",
        };
        let what = if returns {
            format!(
                "with `{hint}` the atomic returns the old value, so the first operand must be a register for it"
            )
        } else {
            format!("an atomic that returns the old value needs `{hint}`")
        };
        AsmError::new(self.line.span, what)
    }
}
