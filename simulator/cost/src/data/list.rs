//! The files that are part of the program.

use super::{ArchCost, Constants, CostError, DeviceCost, ModelCost, Quantity};
use std::sync::LazyLock;
use wavesim_asm::error::suggest;
use wavesim_isa::arch::Arch;

/// The files of architectures.
const ARCHS: [(&str, &str); 6] = [
    ("simulator/cost/data/rdna3.toml", include_str!("../../data/rdna3.toml")),
    ("simulator/cost/data/rdna35.toml", include_str!("../../data/rdna35.toml")),
    ("simulator/cost/data/rdna4.toml", include_str!("../../data/rdna4.toml")),
    ("simulator/cost/data/cdna3.toml", include_str!("../../data/cdna3.toml")),
    ("simulator/cost/data/cdna4.toml", include_str!("../../data/cdna4.toml")),
    ("simulator/cost/data/cdna5.toml", include_str!("../../data/cdna5.toml")),
];

/// The files of devices; the first of an architecture is its default.
const DEVICES: [(&str, &str); 7] = [
    ("simulator/cost/data/devices/rx7900xtx.toml", include_str!("../../data/devices/rx7900xtx.toml")),
    ("simulator/cost/data/devices/radeon8060s.toml", include_str!("../../data/devices/radeon8060s.toml")),
    ("simulator/cost/data/devices/rx9070xt.toml", include_str!("../../data/devices/rx9070xt.toml")),
    ("simulator/cost/data/devices/mi300a.toml", include_str!("../../data/devices/mi300a.toml")),
    ("simulator/cost/data/devices/mi300x.toml", include_str!("../../data/devices/mi300x.toml")),
    ("simulator/cost/data/devices/mi355x.toml", include_str!("../../data/devices/mi355x.toml")),
    ("simulator/cost/data/devices/gfx1250.toml", include_str!("../../data/devices/gfx1250.toml")),
];

/// The file of the model.
const MODEL: (&str, &str) = ("simulator/cost/data/model.toml", include_str!("../../data/model.toml"));

/// Files of architectures, of devices, and of the model.
type Files = (Vec<(Arch, ArchCost)>, Vec<DeviceCost>, ModelCost);

/// The parsed files. Tests parse each of them, so that an error is never met by users.
static PARSED: LazyLock<Result<Files, CostError>> = LazyLock::new(|| {
    let arch = |(file, text): &(&str, &str)| {
        let cost = ArchCost::parse(file, text)?;
        Ok((cost.arch(), cost))
    };
    let archs = ARCHS.iter().map(arch).collect::<Result<_, CostError>>()?;
    let devices = DEVICES.iter().map(|(file, text)| DeviceCost::parse(file, text));
    Ok((archs, devices.collect::<Result<_, _>>()?, ModelCost::parse(MODEL.0, MODEL.1)?))
});

fn parsed() -> Result<&'static Files, CostError> {
    PARSED.as_ref().map_err(CostError::clone)
}

/// Returns the costs of an architecture.
///
/// # Errors
/// [`CostError::NoCosts`] if it has none.
pub fn arch(arch: Arch) -> Result<&'static ArchCost, CostError> {
    let found = parsed()?.0.iter().find(|(a, _)| *a == arch);
    found.map(|(_, cost)| cost).ok_or(CostError::NoCosts(arch.name()))
}

/// Returns the choices of the model.
///
/// # Errors
/// None: tests parse the file.
pub fn model() -> Result<&'static ModelCost, CostError> {
    Ok(&parsed()?.2)
}

/// Returns the devices.
pub fn devices() -> impl Iterator<Item = &'static DeviceCost> {
    parsed().ok().into_iter().flat_map(|(_, devices, _)| devices)
}

/// Returns the names of the devices.
pub fn device_names() -> Vec<&'static str> {
    devices().map(|d| d.device.as_str()).collect()
}

/// Returns a device by its name, or the first one with this processor.
///
/// # Errors
/// [`CostError::UnknownDevice`] lists the known ones.
pub fn device(name: &str) -> Result<&'static DeviceCost, CostError> {
    let devices = &parsed()?.1;
    let own = devices.iter().find(|d| d.device.eq_ignore_ascii_case(name));
    own.or_else(|| devices.iter().find(|d| d.processor() == name)).ok_or_else(|| {
        let names = device_names();
        let hint = suggest(name, names.iter().copied());
        let hint = hint.map_or(String::new(), |near| format!(" ({near})"));
        CostError::UnknownDevice { name: name.to_string(), hint, known: names.join(", ") }
    })
}

/// Returns the default device of an architecture.
///
/// # Errors
/// [`CostError::NoCosts`] if there is none.
pub fn device_of(arch: Arch) -> Result<&'static DeviceCost, CostError> {
    parsed()?.1.iter().find(|d| d.arch() == arch).ok_or(CostError::NoCosts(arch.name()))
}

/// Returns all constants of a file, with dotted keys.
pub fn constants<'a>(file: impl Into<File<'a>>) -> Vec<(String, &'a Quantity)> {
    let mut list = Vec::new();
    match file.into() {
        File::Arch(cost) => cost.each(&mut |key, quantity| list.push((key, quantity))),
        File::Device(cost) => cost.each(&mut |key, quantity| list.push((key, quantity))),
        File::Model(cost) => cost.each(&mut |key, quantity| list.push((key, quantity))),
    }
    list
}

/// A file of costs.
pub enum File<'a> {
    /// Of an architecture.
    Arch(&'a ArchCost),
    /// Of a device.
    Device(&'a DeviceCost),
    /// Of the model.
    Model(&'a ModelCost),
}

impl<'a> From<&'a ArchCost> for File<'a> {
    fn from(cost: &'a ArchCost) -> File<'a> {
        File::Arch(cost)
    }
}

impl<'a> From<&'a DeviceCost> for File<'a> {
    fn from(cost: &'a DeviceCost) -> File<'a> {
        File::Device(cost)
    }
}

impl<'a> From<&'a ModelCost> for File<'a> {
    fn from(cost: &'a ModelCost) -> File<'a> {
        File::Model(cost)
    }
}
