//! The choices of the model itself: `data/model.toml`.

use super::arch::visit;
use super::{Constants, CostError, Quantity, check, table};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// The file of the model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelCost {
    schema: Spanned<String>,
    /// The texts of the sources by the names in [`Quantity::source`].
    pub sources: BTreeMap<String, String>,
    /// How much of a launch is simulated.
    pub sample: Sample,
    /// From where on reports name a limit.
    pub bound: Bound,
    /// How lines are distributed to the sets of caches.
    pub sets: Sets,
}

/// How much of a launch is simulated.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sample {
    /// Wave-instructions to record for a report.
    pub report_instructions: Quantity,
    /// Waves to record for a report.
    pub report_waves: Quantity,
    /// Slices of the timeline to keep in a report.
    pub report_slices: Quantity,
    /// Wave-instructions to record for a time alone.
    pub time_instructions: Quantity,
    /// Waves to record for a time alone.
    pub time_waves: Quantity,
    /// Wave-instructions to record for a report in the playground.
    pub page_instructions: Quantity,
    /// Waves to record for a report in the playground.
    pub page_waves: Quantity,
    /// The least number of instructions of a wave.
    pub least_instructions: Quantity,
    /// Workgroups of a processor, in multiples of what it holds at a time.
    pub rounds: Quantity,
    /// Launches of a kernel after which its samples are halved.
    pub halve_after: Quantity,
    /// How often they are halved at most.
    pub halvings: Quantity,
    /// Launches of a kernel with one grid that the model runs all.
    pub series_all: Quantity,
    /// Of those that follow, it runs one of so many.
    pub series_every: Quantity,
    /// Parts of a long wave that are recorded.
    pub windows: Quantity,
    /// The least number of instructions of a wave in such a part.
    pub least_part: Quantity,
    /// Accesses that are placed in the channels of memory for the processors that are not simulated.
    pub neighbours: Quantity,
    /// By what the distance of two parts grows until the length of a workgroup is known.
    pub growth: Quantity,
}
table!(
    Sample,
    report_instructions = "report-instructions",
    report_waves = "report-waves",
    report_slices = "report-slices",
    time_instructions = "time-instructions",
    time_waves = "time-waves",
    page_instructions = "page-instructions",
    page_waves = "page-waves",
    least_instructions = "least-instructions",
    rounds = "rounds",
    halve_after = "halve-after",
    halvings = "halvings",
    series_all = "series-all",
    series_every = "series-every",
    windows = "windows",
    least_part = "least-part",
    neighbours = "neighbours",
    growth = "growth",
);

/// From where on reports name a limit: shares.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bound {
    /// Of the time for which a unit or a cache is busy.
    pub saturated: Quantity,
    /// Of the time that is the launch itself.
    pub launch: Quantity,
    /// Of the wave slots, below which the resident waves are few.
    pub few_waves: Quantity,
}
table!(Bound, saturated = "saturated", launch = "launch", few_waves = "few-waves");

/// By how many bits the number of a line is shifted, for the terms of the exclusive or that selects its set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sets {
    /// The first term besides the number itself.
    pub fold_1: Quantity,
    /// The second.
    pub fold_2: Quantity,
    /// The third.
    pub fold_3: Quantity,
}
table!(Sets, fold_1 = "fold-1", fold_2 = "fold-2", fold_3 = "fold-3");

impl Sets {
    /// Returns the shifts.
    pub fn shifts(&self) -> [u32; 3] {
        [&self.fold_1, &self.fold_2, &self.fold_3].map(|fold| fold.count().min(63) as u32)
    }
}

impl Constants for ModelCost {
    fn each<'a>(&'a self, f: &mut dyn FnMut(String, &'a Quantity)) {
        visit("sample", &self.sample, f);
        visit("bound", &self.bound, f);
        visit("sets", &self.sets, f);
    }
}

impl ModelCost {
    /// Parses the file.
    ///
    /// # Errors
    /// [`CostError::Malformed`], with line and key.
    pub fn parse(file: &str, text: &str) -> Result<ModelCost, CostError> {
        let cost: ModelCost = toml::from_str(text).map_err(|e| CostError::parse(file, text, &e))?;
        if cost.schema.get_ref() != "wavesim-model-1" {
            let message = "the schema is `wavesim-model-1`".to_string();
            return Err(CostError::at(file, text, cost.schema.span(), "schema", message));
        }
        check(file, text, &cost, &cost.sources)?;
        Ok(cost)
    }
}
