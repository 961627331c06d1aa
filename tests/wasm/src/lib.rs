//! The library as a WebAssembly module without imports. `cargo xtask build-wasm` builds it and calls its
//! function.
#![cfg(target_family = "wasm")]

use wavesim::loader::text_kernel::{self, Options};
use wavesim::sched::dispatch;

/// Returns the sum of the outputs of `examples/saxpy.rdna`, or NaN if it fails.
// SAFETY: no other linked symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn saxpy_sum() -> f64 {
    sum(include_str!("../../../examples/saxpy.rdna")).unwrap_or(f64::NAN)
}

/// Returns the sum of the elements of all outputs of a text kernel.
fn sum(source: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let prepared = text_kernel::prepare("kernel.rdna", source, &Options::default(), 0)?;
    dispatch::run(&prepared.dispatch(1_000_000), &prepared.memory)?;
    let outputs = prepared.outputs()?;
    Ok(outputs.iter().flat_map(|(_, array)| array.values()).map(|v| v.as_f64()).sum())
}
