//! A profile as one HTML file without references: the data as JSON, and the script that draws it.

use super::json;
use crate::model::{Stall, TICKS};
use crate::profile::Profile;
use serde_json::{Value, json as value};
use wavesim_html::{Page, escape};
use wavesim_machine::exec::program::Program;

const BODY: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Returns the report. `name` is the kernel's, `sources` the texts of source files by name.
pub fn html(profile: &Profile, program: &Program, name: &str, sources: &[(String, String)]) -> String {
    let clocks = |ticks: u64| ticks as f64 / TICKS as f64;
    let slice = |s: &crate::model::Slice| {
        value!([s.processor, s.simd, s.wave, clocks(s.from), clocks(s.to), s.inst, s.stall.index()])
    };
    let mut data = json(profile, program);
    data["name"] = value!(name);
    data["processor"] = value!(profile.costs.arch.processor.name);
    data["reasons"] = value!(Stall::NAMES);
    data["timeline"] = Value::Array(profile.prediction.timeline.iter().take(4000).map(slice).collect());
    data["sources"] = sources.iter().map(|(name, text)| value!({"name": name, "text": text})).collect();
    let body = BODY.replace("@TITLE@", &escape(name));
    let title = format!("{name} - wavesim profile");
    Page { title: &title, style: STYLE, body: &body, script: Some((SCRIPT, &data)) }.html()
}
