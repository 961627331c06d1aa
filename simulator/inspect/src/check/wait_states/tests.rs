//! What compilers insert, and what the rules ask for: code that clang made is clean, and misses something without any one of its S_NOP.

use super::*;
use std::path::{Path, PathBuf};
use wavesim_loader::code_object;
use wavesim_machine::exec::effects;

/// Code objects for CDNA in a folder of folders.
fn objects(folder: &Path) -> Vec<PathBuf> {
    let files = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path());
    let mut out: Vec<PathBuf> = files(folder).filter(|p| p.is_dir()).flat_map(|dir| files(&dir)).collect();
    out.retain(|path| path.to_string_lossy().ends_with(".gfx942.co"));
    out.sort();
    out
}

#[test]
fn compilers_insert_what_the_rules_ask_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = objects(&root.join("../shared/kernels"));
    if shared.is_empty() {
        eprintln!("skipped in part: ../shared/kernels is missing");
    }
    let (mut count, mut idle) = (0, Vec::new());
    for path in objects(&root.join("tests/filetests/code_objects")).into_iter().chain(shared) {
        let bytes = std::fs::read(&path).expect("a file");
        let kernels = code_object::kernels(&bytes).expect("kernels");
        let kernel = code_object::load(&bytes, &kernels[0]).expect("a kernel");
        let program = Program::from_bytes(kernel.arch, &kernel.text.1).expect("a program").for_wave_size(64);
        let effects = effects::table(&program, 64);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let found = missing(&program, &effects);
        assert!(found.is_empty(), "{name}: {found:?}");
        let graph = Graph::new(&program, &effects);
        // Behind the last end of the program there is padding.
        let end = program.insts.iter().rposition(|i| i.instruction(program.arch.table()).flags().terminator);
        for at in (1..end.unwrap_or(1)).filter(|&at| effects[at].calls.contains(&Control::Nop)) {
            // LLVM also waits for masks that are carries or choose a source, which the manuals say are forwarded.
            let chooses = effects[at + 1].reads.iter().any(|used| graph.nodes[at + 1].is_mask(used));
            // And between loads, so that they can be repeated after a page fault.
            let replayed = [at - 1, at + 1].iter().all(|&at| effects[at].class.is_memory());
            // Padding of a header that the hardware skips.
            let padding = effects[at + 1].calls.contains(&Control::Nop)
                || effects[at - 1].calls.contains(&Control::Nop);
            // In the source of the kernel, or after a packed instruction whose op_sel_hi LLVM takes for a selection of the result's half.
            let written = effects[at - 1].calls.contains(&Control::SetReg)
                || program.insts[at - 1].field(program.arch.table(), "OP_SEL_HI").is_some();
            let near = at.saturating_sub(MOST as usize)..at;
            count += 1;
            if !chooses && !replayed && !padding && !written && graph.missing(near, Some(at)).is_empty() {
                let around: Vec<String> = (at.saturating_sub(2)..at + 3).map(|at| program.text(at)).collect();
                idle.push(format!("{name}: {}", around.join("; ")));
            }
        }
    }
    assert!(count > 0 && idle.is_empty(), "of {count}, needless to the rules:\n{}", idle.join("\n"));
}
