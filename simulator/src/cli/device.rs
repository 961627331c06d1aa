//! Devices of the timing model, by name or by file.

use std::borrow::Cow;
use std::path::Path;
use wavesim_cost::data::{self, DeviceCost};

/// Returns the device with a name, or reads it from a file whose name ends in `.toml`.
pub fn open(name: &str) -> anyhow::Result<Cow<'static, DeviceCost>> {
    let path = Path::new(name);
    if path.extension().is_some_and(|e| e == "toml") {
        let text = wavesim_files::read_text(path)?;
        return Ok(Cow::Owned(DeviceCost::parse(name, &text)?));
    }
    Ok(Cow::Borrowed(data::device(name)?))
}
