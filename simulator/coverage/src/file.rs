//! The file: counts of programs, which are added to one another.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the form.
pub const SCHEMA: &str = "wavesim-run-coverage-1";

/// The coverage of any number of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// [`SCHEMA`].
    pub schema: String,
    /// Number of launches.
    pub launches: u64,
    /// The programs that have run, in the order of their keys.
    pub programs: Vec<Program>,
}

/// A program, and what has run of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The kernel, or the file that it was read from.
    pub name: String,
    /// Name of the architecture.
    pub arch: String,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// A number, in hexadecimal, that identifies the instructions and their source lines.
    pub identity: String,
    /// Number of launches.
    pub launches: u64,
    /// Number of waves.
    pub waves: u64,
    /// Number of executed instructions by the low byte of MODE: the rounding of f32, that of f16 and f64, and the
    /// treatment of their denormals, two bits each.
    pub modes: BTreeMap<u8, u64>,
    /// The instructions.
    pub instructions: Vec<Instruction>,
}

/// An instruction, and how it has run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// Its address, as in listings.
    pub address: u64,
    /// Its text.
    pub text: String,
    /// Its encodings, in lower case: of a dual instruction, that of both halves.
    pub encoding: String,
    /// Its operands: the kind of each source and result.
    pub operands: Vec<String>,
    /// The source file, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The source line; 0 if it is unknown.
    pub line: u32,
    /// Number of executions.
    pub executed: u64,
    /// Number of active lanes of all executions.
    pub lanes: u64,
    /// The lanes that were active in some execution, as a bit mask in hexadecimal.
    #[serde(with = "hex")]
    pub lane_mask: u64,
    /// For a conditional branch: the executions that have jumped, and those that have not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<[u64; 2]>,
}

/// Numbers of 64 bits as text: many readers of JSON have floats only.
mod hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16)
            .map_err(|_| D::Error::custom(format!("`{text}` is not a hexadecimal number")))
    }
}

/// Why a file cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoverageError {
    /// It is not JSON, or not of the form.
    #[error("not a coverage file: {0}")]
    Form(String),
    /// It is of another version.
    #[error("a coverage file of another version: {found}; this wavesim reads {SCHEMA}")]
    Version {
        /// Its version.
        found: String,
    },
    /// Two files have different instructions under one identity.
    #[error("`{name}` ({identity}) has {first} instructions in one file and {second} in another one")]
    Conflict {
        /// Name of the program.
        name: String,
        /// Its identity.
        identity: String,
        /// Number of instructions.
        first: usize,
        /// Number of instructions in the other file.
        second: usize,
    },
}

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage { schema: SCHEMA.to_string(), launches: 0, programs: Vec::new() }
    }
}

impl Program {
    /// What distinguishes programs: those with the same key are added to one another.
    fn key(&self) -> (&str, &str, u32, &str) {
        (&self.name, &self.arch, self.wave_size, &self.identity)
    }

    /// Adds the counts of another run of the program. Sums saturate, so that their order does not matter.
    fn add(&mut self, other: &Program) {
        self.launches = self.launches.saturating_add(other.launches);
        self.waves = self.waves.saturating_add(other.waves);
        for (mode, count) in &other.modes {
            let sum = self.modes.entry(*mode).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (own, other) in self.instructions.iter_mut().zip(&other.instructions) {
            own.executed = own.executed.saturating_add(other.executed);
            own.lanes = own.lanes.saturating_add(other.lanes);
            own.lane_mask |= other.lane_mask;
            if let Some(other) = other.branch {
                let own = own.branch.get_or_insert([0; 2]);
                *own = [own[0].saturating_add(other[0]), own[1].saturating_add(other[1])];
            }
        }
    }
}

impl Coverage {
    /// Reads a file.
    ///
    /// # Errors
    /// It is of another version, or no coverage file.
    pub fn parse(text: &str) -> Result<Coverage, CoverageError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let form = |e: serde_json::Error| CoverageError::Form(e.to_string());
        let head: Head = serde_json::from_str(text).map_err(form)?;
        if head.schema != SCHEMA {
            return Err(match head.schema.starts_with("wavesim-run-coverage-") {
                true => CoverageError::Version { found: head.schema },
                false => CoverageError::Form(format!("its schema is `{}`", head.schema)),
            });
        }
        let file: Coverage = serde_json::from_str(text).map_err(form)?;
        // The order of a file that was written by hand.
        let mut sorted = Coverage { launches: file.launches, ..Coverage::default() };
        for program in &file.programs {
            sorted.insert(program)?;
        }
        Ok(sorted)
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        // Nothing in it fails to serialise.
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Adds other runs. The result does not depend on the order in which files are added.
    ///
    /// # Errors
    /// A program has different instructions under one identity.
    pub fn merge(&mut self, other: &Coverage) -> Result<(), CoverageError> {
        for program in &other.programs {
            self.insert(program)?;
        }
        self.launches = self.launches.saturating_add(other.launches);
        Ok(())
    }

    fn insert(&mut self, program: &Program) -> Result<(), CoverageError> {
        match self.programs.binary_search_by(|own| own.key().cmp(&program.key())) {
            Ok(at) => {
                let own = &mut self.programs[at];
                let (first, second) = (own.instructions.len(), program.instructions.len());
                if first != second {
                    let (name, identity) = (own.name.clone(), own.identity.clone());
                    return Err(CoverageError::Conflict { name, identity, first, second });
                }
                own.add(program);
            }
            Err(at) => self.programs.insert(at, program.clone()),
        }
        Ok(())
    }
}
