//! Code objects as assembly, and what their kernels take.

use crate::program::{MAX_OBJECT, arch, decode};
use serde_json::{Value, json};
use wavesim_asm::{Options, print};
use wavesim_isa::codec::decode as decode_words;
use wavesim_loader::code_object::{self, Wish};

/// Lines of a listing.
const MAX_LINES: usize = 100_000;

/// The kernels of a code object with their arguments, and its instructions as text.
pub fn object(object: &str, wanted: Option<&str>) -> Result<Value, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let bytes = decode(object, MAX_OBJECT)?;
    let wish = Wish { processor: None, arch: wanted.map(arch).transpose()? };
    if !code_object::is_object(&bytes) {
        let what = code_object::foreign(&bytes).map_or(String::new(), |what| format!(": this is {what}"));
        return Err(format!("not a code object{what}"));
    }
    let bytes = &code_object::open(&bytes, &wish).map_err(|e| text(&e))?;
    let names = code_object::kernels(bytes).map_err(|e| text(&e))?;
    let mut kernels = Vec::new();
    let mut listing = String::new();
    let mut lines = 0;
    let mut target = None;
    for name in &names {
        let kernel = code_object::load(bytes, name).map_err(|e| text(&e))?;
        let args: Vec<Value> = kernel
            .explicit()
            .map(|a| json!({"name": a.name, "kind": a.kind, "size": a.size, "offset": a.offset}))
            .collect();
        kernels.push(json!({
            "name": name, "wave": kernel.wave_size(), "block": kernel.block, "args": args,
            "lds": kernel.group_segment, "scratch": kernel.private_segment, "vgprs": kernel.registers().vgprs,
        }));
        if target.is_some() {
            continue;
        }
        // All kernels of an object share its code.
        let options = Options::new(kernel.arch).wave(kernel.wave_size());
        target = Some(kernel.arch);
        let words: Vec<u32> =
            kernel.text.1.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        let mut at = 0;
        while at < words.len() && lines < MAX_LINES {
            let offset = 4 * at as u64;
            for (label, _) in kernel.labels.iter().filter(|l| l.1 == offset) {
                listing += &format!("{label}:\n");
            }
            let (line, next) = match decode_words(kernel.arch, &words[at..]) {
                Ok(inst) => {
                    let next = at + inst.size as usize / 4;
                    (print::exact(&words[at..next], &inst, &options, None), next)
                }
                Err(_) => (format!(".long 0x{:08x}", words[at]), at + 1),
            };
            listing += &format!("  {line:<52} // {offset:06x}\n");
            (at, lines) = (next, lines + 1);
        }
        if at < words.len() {
            listing += &format!("// {} more bytes are not shown\n", 4 * (words.len() - at));
        }
    }
    let target = target.ok_or("this code object has no kernel")?;
    Ok(json!({ "arch": target.name(), "kernels": kernels, "listing": listing }))
}
