//! Assembles programs with labels and computed jumps.

use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::program::Program;

/// Assembles lines. `NAME:` defines a label; in `s_cbranch_scc1 @NAME`, `@NAME` is the distance to it, and in
/// `s_movk_i32 s8, #NAME` its address.
pub fn assemble(arch: Arch, wave: u32, lines: &[String]) -> Program {
    let options = Options::new(arch).wave(wave);
    let inst = |line: &str| parse(line, &options, &NoSymbols).unwrap_or_else(|e| panic!("{line}: {e}")).inst;
    let reference = |line: &str| line.find(['@', '#']).map(|at| (at, line[at + 1..].to_string()));
    let mut labels = std::collections::HashMap::new();
    let mut pc = 0_u32;
    for line in lines {
        match (line.strip_suffix(':'), reference(line)) {
            (Some(label), _) => drop(labels.insert(label, pc)),
            // The instructions that refer to labels have one dword.
            (_, Some(_)) => pc += 4,
            (_, None) => pc += inst(line).size as u32,
        }
    }
    assert!(pc < 1 << 15, "addresses are signed 16-bit constants");
    let mut list = Vec::new();
    pc = 0;
    for line in lines.iter().filter(|line| !line.ends_with(':')) {
        let next = match reference(line) {
            None => inst(line),
            Some((at, label)) => {
                let to = *labels.get(label.as_str()).unwrap_or_else(|| panic!("no label {label}"));
                let value = match &line[at..=at] {
                    "@" => (to as i64 - pc as i64 - 4) / 4,
                    _ => to as i64,
                };
                inst(&format!("{}{value}", &line[..at]))
            }
        };
        pc += next.size as u32;
        list.push((next, 0));
    }
    Program::new(arch, list).expect("a program").for_wave_size(wave)
}
