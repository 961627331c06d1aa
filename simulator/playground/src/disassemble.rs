//! Disassembly of code objects, and the arguments of their kernels.

use crate::lines;
use crate::program::{MAX_OBJECT, arch, decode};
use serde_json::{Value, json};
use wavesim_asm::Options;
use wavesim_asm::listing::Listing;
use wavesim_isa::codec::words;
use wavesim_loader::code_object::{self, TargetRequest};
use wavesim_loader::kernel_name::demangled;
use wavesim_loader::parameters::Parameter;

/// Maximum number of lines of a listing.
const MAX_LINES: usize = 100_000;
/// Maximum number of kernels described: loading each takes time proportional to the whole code.
const MAX_KERNELS: usize = 200;

/// Returns the kernels of a code object in base64 with their arguments, and its instructions as text.
pub fn object(object: &str, wanted: Option<&str>) -> Result<Value, String> {
    code(&decode(object, MAX_OBJECT)?, wanted, None)
}

/// Returns the kernels of a code object with their arguments, and its instructions as text. `source` is the name of
/// the source file whose lines are given.
pub fn code(bytes: &[u8], wanted: Option<&str>, source: Option<&str>) -> Result<Value, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let target_request = TargetRequest { processor: None, arch: wanted.map(arch).transpose()? };
    if !code_object::is_object(bytes) {
        let what =
            code_object::describe_foreign(bytes).map_or(String::new(), |what| format!(": this is {what}"));
        return Err(format!("not a code object{what}"));
    }
    let bytes = &code_object::open(bytes, &target_request).map_err(|e| text(&e))?;
    let names = code_object::kernels(bytes).map_err(|e| text(&e))?;
    let mut kernels = Vec::new();
    let mut listing = String::new();
    // For each line of the listing: the address, and the line of the source.
    let mut rows: Vec<(Option<u64>, Option<u32>)> = Vec::new();
    let mut target = None;
    for name in names.iter().take(MAX_KERNELS) {
        let kernel = code_object::load(bytes, name).map_err(|e| text(&e))?;
        let argument = |(index, p): (usize, &Parameter)| {
            let suggestion = p.suggestion(index);
            json!({"text": p.to_string(), "suggestion": suggestion, "pointer": p.pointer})
        };
        let args: Vec<Value> = kernel.parameters().iter().enumerate().map(argument).collect();
        kernels.push(json!({
            "name": name, "source_name": demangled(name), "wave": kernel.wave_size(), "block": kernel.block, "args": args,
            "lds": kernel.group_segment(), "scratch": kernel.private_segment(), "vgprs": kernel.registers().vgprs,
        }));
        if target.is_some() {
            continue;
        }
        // All kernels of an object share its code.
        let options = Options::new(kernel.arch).wave(kernel.wave_size());
        target = Some(kernel.arch);
        let words = words(&kernel.text.1);
        let base = kernel.text.0;
        let labels = kernel.labels.iter().map(|(name, offset)| (base + *offset, name.clone()));
        let code = Listing::new(options, base, &words, labels);
        let mut shown = 0;
        for line in code.lines().take(MAX_LINES) {
            if let Some(label) = line.label {
                listing += &format!("{label}:\n");
                rows.push((None, None));
            }
            let number = source.and_then(|file| lines::of(&kernel.lines, &kernel.debug, line.address, file));
            rows.push((Some(line.address), number));
            listing += &format!("  {:<52} // {:06x}\n", line.text, line.address);
            shown += line.words.len();
        }
        if shown < words.len() {
            listing += &format!("// {} more bytes are not shown\n", 4 * (words.len() - shown));
        }
    }
    let target = target.ok_or("this code object has no kernel")?;
    let more = names.len() - kernels.len();
    Ok(json!({ "arch": target.name(), "kernels": kernels, "more": more, "listing": listing, "rows": rows }))
}
