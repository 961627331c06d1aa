//! AMD's machine-readable ISA description: from XML text to the typed [`model::Spec`] to an
//! [`ArchTable`](crate::tables::ArchTable).

mod amend;
mod check;
mod condition;
mod document;
mod element;
mod errata;
pub mod load;
pub mod model;
mod normalize;
mod overlay;
mod to_tables;

pub use errata::apply_errata;
pub use load::{load, load_into};
pub use normalize::normalize;
pub use overlay::apply_overlay;
pub use to_tables::to_tables;
