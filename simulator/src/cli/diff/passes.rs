//! `--bisect-passes`: which of the compiler's passes makes the difference (LLVM's `-opt-bisect-limit`).

use super::super::input::KernelArgs;
use super::super::source::{BISECT, compile_with_log};
use anyhow::bail;
use std::path::Path;
use wavesim_clang::options::Language;

/// Returns the options of a kernel for which clang runs only the first passes; all without a limit, which also prints them.
pub fn limited(kernel: &KernelArgs, limit: Option<usize>) -> KernelArgs {
    let mut own = kernel.clone();
    let limit = limit.map_or("-1".to_string(), |limit| limit.to_string());
    own.source.options.extend(["-mllvm".to_string(), format!("-opt-bisect-limit={limit}")]);
    own
}

/// Returns the passes of the compilation of a source file, in their order: `EarlyCSEPass on axpy`.
pub fn of_file(path: &Path, kernel: &KernelArgs) -> anyhow::Result<Vec<String>> {
    let Some(language) = Language::of_file(path) else {
        bail!("{}: --bisect-passes needs a source file (.cl, .hip)", path.display());
    };
    let (_, log) = compile_with_log(path, language, &limited(kernel, None))?;
    let pass = |line: &str| {
        let (_, pass) = line.strip_prefix(BISECT)?.strip_prefix("running pass (")?.split_once(") ")?;
        Some(pass.to_string())
    };
    let passes: Vec<String> = log.lines().filter_map(pass).collect();
    if passes.is_empty() {
        bail!("{}: clang does not list its passes (-opt-bisect-limit)", path.display());
    }
    Ok(passes)
}
