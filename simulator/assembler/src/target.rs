//! `.amdgcn_target`: the processor of a file, and the processor's features.

use super::features::{FEATURE_ANY, FEATURE_OFF, FEATURE_ON, FEATURES};
use super::reader::Reader;
use wavesim_asm::error::AsmError;
use wavesim_asm::scan::Scanner;
use wavesim_isa::arch::Arch;

impl Reader<'_> {
    /// Reads the processor named by the rest of the line.
    pub(super) fn target(&mut self, s: &mut Scanner) -> Result<(), AsmError> {
        s.skip_space();
        let start = s.position();
        let text = s.rest().trim().trim_matches('"').to_string();
        s.skip(s.rest().len());
        let span = s.span_since(start);
        let mut target = text.rsplit_once("--").map_or("", |t| t.1).split(':');
        let processor = target.next().unwrap_or("").to_string();
        let features: Vec<&str> = target.collect();
        let Some(arch) = Arch::from_mcpu(&processor) else {
            return Err(AsmError::new(span, format!("`{text}` is not a supported processor")));
        };
        if arch != self.options.arch {
            if !self.file.any_target || !self.program.listing.is_empty() {
                let (file, option) = (arch.name(), self.options.arch.name());
                let error =
                    AsmError::new(span, format!("this file is for {file}, but the option selects {option}"));
                return Err(error.help(format!("--mcpu {processor}")));
            }
            self.options.arch = arch;
            self.program.arch = arch;
        }
        self.program.features = 0;
        for (name, first) in FEATURES.into_iter().filter(|_| arch.facts().target_features) {
            let given = features.iter().find_map(|f| f.strip_prefix(name));
            let setting = match given {
                None => FEATURE_ANY,
                Some("-") => FEATURE_OFF,
                Some("+") => FEATURE_ON,
                Some(_) => return Err(AsmError::new(span, format!("`{name}` is `{name}+` or `{name}-`"))),
            };
            self.program.features |= setting << first;
        }
        let known = |f: &&&str| FEATURES.iter().any(|(name, _)| f.trim_end_matches(['+', '-']) == *name);
        if let Some(other) = features.iter().find(|f| !known(f)) {
            return Err(AsmError::new(span, format!("`{other}` is not a target feature")));
        }
        self.define_processor_symbols(Some(&processor));
        self.program.processor = Some(processor);
        Ok(())
    }
}
