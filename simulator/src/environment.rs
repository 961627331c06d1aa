//! The environment variables of the hosts, and warnings about names that are none of them.

/// The name and the description of each variable, for documentation and help output.
pub const VARIABLES: [(&str, &str); 24] = [
    ("WAVESIM_TARGET", "the GPU of the default device: gfx1100 (default), gfx1151, gfx1201, …"),
    (
        "WAVESIM_DEVICES",
        "the GPUs that HIP and OpenCL programs see, in order, each with a number of equal ones: gfx942*4, or gfx942*2,gfx1100 (default: one, WAVESIM_TARGET)",
    ),
    (
        "WAVESIM_CHECK",
        "checks to run on every launch: all, or a list of mem, init, race, waits, barrier, hazard, and on demand lanes, arith (all,lanes); 0 for none (default)",
    ),
    (
        "WAVESIM_EXPLORE",
        "N: before every launch, its kernel runs in N random orders of its waves on copies of the memory; a result that depends on the order is reported",
    ),
    (
        "WAVESIM_FIDELITY",
        "1: after every launch, a report on standard error about instructions with inexact results and what depends on them; 0 for none (default)",
    ),
    (
        "WAVESIM_COVERAGE",
        "a file; which instructions, operands, branches and lanes the launches of the process have run, written when it ends. %p stands for the number of the process",
    ),
    ("WAVESIM_TRACE", "a directory; every launch writes a trace to NUMBER-KERNEL.jsonl in it"),
    (
        "WAVESIM_DEBUG",
        "KERNEL or KERNEL:LAUNCH (* for any kernel): the debugger stops before the first instruction of these launches, on the program's terminal",
    ),
    (
        "WAVESIM_TIMING",
        "a device (mi300a, rx7900xtx, …) or a file of costs (.toml), and changed constants (mi300a,chip.clock=1900): events and timers of HIP and OpenCL report predicted times of this device instead of the simulation's; a line on standard error says so",
    ),
    (
        "WAVESIM_TIMING_ONLY",
        "1: launches run only the workgroups that WAVESIM_TIMING needs; their results are wrong, and so are times that depend on them",
    ),
    (
        "WAVESIM_PROFILE",
        "a directory; every launch writes a predicted profile to NUMBER-KERNEL.html and .json in it",
    ),
    ("WAVESIM_DEBUG_COMMANDS", "a file with commands that the debugger executes first"),
    (
        "WAVESIM_DEBUG_LISTEN",
        "a port, or address and port, on which an editor can attach to these launches in place of the terminal",
    ),
    (
        "WAVESIM_THREADS",
        "number of host threads that run the workgroups of a launch, or auto (default): one for each processor if the \
         workgroups cannot observe one another, else one",
    ),
    (
        "WAVESIM_ENGINE",
        "auto (default): the interpreter and, for long-running kernels on x86-64 hosts with AVX2 and on aarch64, machine code that is compiled in the background; jit: machine code from the start; interpreter. Checked and traced launches always use the interpreter",
    ),
    ("WAVESIM_MAX_INSTRUCTIONS", "number of wave-instructions after which a launch faults (default 10^12)"),
    (
        "WAVESIM_ERROR_EXITCODE",
        "exit status of a program in which a check found something or a kernel faulted (1 to 255; default: its own)",
    ),
    ("WAVESIM_REPORT", "a file; findings and faults are appended to it, a line of JSON each"),
    (
        "WAVESIM_ON_FAULT",
        "what a fault of a kernel does: error (default) makes the calls that wait for the kernel, and later ones, return an error; continue reports it only; abort ends the process",
    ),
    (
        "WAVESIM_MEMORY",
        "size of the memory of the device that HIP and OpenCL programs see, in bytes or with K, M, G or T (default 16G); the host allocates the pages that are used. After a comma, or alone: delayed or delayed:SEED for memory operations that take effect at random times before the wait that demands them (24G,delayed:7); checked launches have immediate memory",
    ),
    (
        "WAVESIM_CACHE",
        "the directory of cached compilations of OpenCL and hiprtc, of at most 256 MiB; 0 for none (default: wavesim/compiled in $XDG_CACHE_HOME or ~/.cache)",
    ),
    ("WAVESIM_CLANG", "the compiler for OpenCL and hiprtc (default: clang-19, or another installed version)"),
    ("WAVESIM_DEVICE_LIBS", "the directory of ROCm's device libraries, for OpenCL and hiprtc"),
    (
        "WAVESIM_ROCM_PATH",
        "the directory whose include directory has HIP's headers, for hiprtc (default: /opt/rocm, /usr)",
    ),
];

/// Variables of the command alone, for developers.
const OF_COMMAND: [&str; 1] = ["WAVESIM_COMPILE_AFTER"];

/// Returns the names of the variables of this process.
pub fn names() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

/// Returns a message for each name that resembles a variable and is none.
pub fn misspelt(names: impl Iterator<Item = String>) -> Vec<String> {
    let known = || VARIABLES.iter().map(|(name, _)| *name).chain(OF_COMMAND);
    let unknown = names.filter(|name| name.starts_with("WAVESIM") && known().all(|own| own != name));
    unknown
        .filter_map(|name| {
            let near = isa_spec::diag::nearest_within(&name, known(), 2)?;
            Some(format!("the environment variable {name} has no meaning; did you mean {near}?"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_found() {
        let of = |names: &[&str]| misspelt(names.iter().map(|name| name.to_string()));
        let expected = "the environment variable WAVESIM_CHEK has no meaning; did you mean WAVESIM_CHECK?";
        assert_eq!(of(&["PATH", "WAVESIM_CHEK", "WAVESIM_CHECK"]), [expected]);
        // Variables of tests and builds.
        assert!(of(&["WAVESIM_PAGE", "WAVESIM_SEED", "WAVESIM_PYTHON", "WAVESIM_SHARED"]).is_empty());
    }
}
