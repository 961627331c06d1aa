//! The tables of costs, in TOML: one file per architecture ([`ArchCost`]), one per device ([`DeviceCost`]), and one of the
//! model's own choices ([`ModelCost`]), in `data`. Every constant is a [`Quantity`] with its unit, its source and the kind
//! of the source. The model has no constants of its own.

mod arch;
mod device;
mod error;
mod list;
mod model;

pub use arch::{ArchCost, ClassRow, Issue, Lds, Processor, Select, UnitKind, VectorMemory};
pub use device::{Cache, Chip, DeviceCost, DeviceMemory, LaunchCost, Path, Range, Scope, Tlb};
pub use error::CostError;
pub use list::{arch, constants, device, device_names, device_of, devices, model};
pub use model::{Bound, ModelCost, Sample, Sets};

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// How well a constant is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Stated by AMD: a manual or a data sheet.
    Manual,
    /// A constant of a compiler's scheduler or of another simulator.
    Model,
    /// Computed by AMD's calculator of matrix instructions.
    Calculator,
    /// Measured on a GPU.
    Measured,
    /// None of these.
    Guess,
}

impl Kind {
    /// Returns the name in files and listings.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Manual => "manual",
            Kind::Model => "model",
            Kind::Calculator => "calculator",
            Kind::Measured => "measured",
            Kind::Guess => "guess",
        }
    }
}

/// A constant of the model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    value: Spanned<f64>,
    /// The unit, for people.
    pub unit: String,
    /// A key of the file's table of sources.
    pub source: Spanned<String>,
    /// The kind of the source.
    pub kind: Kind,
}

impl Quantity {
    /// Returns the value in [`Quantity::unit`].
    pub fn value(&self) -> f64 {
        *self.value.get_ref()
    }

    /// Returns the value as a count, rounded.
    pub fn count(&self) -> u64 {
        self.value().round() as u64
    }

    /// Replaces the value, for a question of what would be if.
    pub fn set(&mut self, value: f64) {
        let span = self.value.span();
        self.value = Spanned::new(span, value);
    }
}

/// Visits every constant of a file with its dotted key.
pub(crate) trait Constants {
    /// Calls `f` for each constant.
    fn each<'a>(&'a self, f: &mut dyn FnMut(String, &'a Quantity));
}

/// Checks what the types cannot express: values are finite and not negative, and sources are listed.
fn check(
    file: &str,
    text: &str,
    constants: &dyn Constants,
    sources: &BTreeMap<String, String>,
) -> Result<(), CostError> {
    let mut result = Ok(());
    constants.each(&mut |key, quantity| {
        if result.is_err() {
            return;
        }
        let value = quantity.value();
        if !value.is_finite() || value < 0.0 {
            let message = format!("{value} is not a finite number from 0 on");
            result = Err(CostError::at(file, text, quantity.value.span(), &key, message));
        } else if !sources.contains_key(quantity.source.get_ref()) {
            let name = quantity.source.get_ref();
            let known: Vec<&str> = sources.keys().map(String::as_str).collect();
            let message = format!("there is no source `{name}`; [sources] has {}", known.join(", "));
            result = Err(CostError::at(file, text, quantity.source.span(), &key, message));
        }
    });
    result
}

/// Defines the visit of the constants of a table: the fields with their keys.
macro_rules! table {
    ($type:ty, $($rows:tt)*) => {
        $crate::data::table!($type as by_key_mut, $($rows)*);
    };
    ($type:ty as $by_key:ident, $($field:ident = $key:literal),* $(,)?) => {
        impl $crate::data::Constants for $type {
            fn each<'a>(&'a self, f: &mut dyn FnMut(String, &'a $crate::data::Quantity)) {
                $(f($key.to_string(), &self.$field);)*
            }
        }
        impl $type {
            /// Returns a constant of the table by its key.
            pub fn $by_key(&mut self, key: &str) -> Option<&mut $crate::data::Quantity> {
                match key {
                    $($key => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use table;
