//! Managed variables of modules that the program loads itself. In a module, the variable's name denotes a pointer, and the
//! name with `.managed` the initial value.

use crate::gpu::gpu;
use crate::memory::{allocate_managed, free_managed};
use crate::status::Outcome;
use wavesim_runtime::Module;

/// The suffix of the names of initial values.
const INITIAL: &str = ".managed";

/// The memory of a module's managed variables, freed when dropped.
#[derive(Default)]
pub struct Managed(Vec<Variable>);

struct Variable {
    name: String,
    address: u64,
    len: u64,
}

impl Managed {
    /// Allocates memory for the variables of a module, with their initial values.
    pub fn allocate(module: &Module) -> Outcome<Managed> {
        let mut all = Managed::default();
        for name in module.variables().filter_map(|name| name.strip_suffix(INITIAL)) {
            let (from, len) = module.variable(&format!("{name}{INITIAL}"))?;
            let address = allocate_managed(gpu()?, len.max(1))?;
            all.0.push(Variable { name: name.to_string(), address, len });
            let mut initial = vec![0; len as usize];
            module.device().read(from, &mut initial)?;
            module.device().write(address, &initial)?;
        }
        all.point(module)?;
        Ok(all)
    }

    /// Lets the pointers of a module refer to the memory.
    pub fn point(&self, module: &Module) -> Outcome {
        for variable in &self.0 {
            let (pointer, _) = module.variable(&variable.name)?;
            module.device().write(pointer, &variable.address.to_le_bytes())?;
        }
        Ok(())
    }

    /// Returns the address and the size of a variable's memory.
    pub fn find(&self, name: &str) -> Option<(u64, u64)> {
        let found = self.0.iter().find(|variable| variable.name == name)?;
        Some((found.address, found.len))
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // The program may have freed it.
        self.0.iter().for_each(|variable| _ = free_managed(variable.address));
    }
}
