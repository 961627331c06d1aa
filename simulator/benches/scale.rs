//! `cargo bench --bench scale`: time and memory by problem size, for the tables in docs/performance.md. Each
//! row is a separate process, so that its peak memory can be measured.

use std::process::Command;
use std::time::Instant;
use wavesim::loader::prepared::Prepared;
use wavesim::loader::text_kernel::{self, Options};
use wavesim::sched::dispatch;

/// Prepares a kernel. Also returns the time in seconds.
fn load(source: &str, memory_mb: u64) -> (Prepared, f64) {
    let start = Instant::now();
    let options = Options { global_bytes: memory_mb << 20, ..Options::default() };
    let prepared = text_kernel::prepare("kernel.rdna", source, &options, 0).unwrap_or_else(|e| panic!("{e}"));
    (prepared, start.elapsed().as_secs_f64())
}

/// Runs a kernel. Returns the number of instructions and the time in seconds.
fn run(prepared: &Prepared) -> (u64, f64) {
    let start = Instant::now();
    let stats = dispatch::run(&prepared.dispatch(u64::MAX), &prepared.memory).expect("a run");
    (stats.instructions, start.elapsed().as_secs_f64())
}

/// Returns the peak resident size of this process in MiB.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

fn memory() -> String {
    peak_mib().map_or("-".to_string(), |m| format!("{m:.0}"))
}

fn grid(groups: u64) {
    let source = format!(
        "---\nout_y: u32[64]\nlocal = 64, 1, 1\nglobal = {groups}, 1, 1\nwave = 32\nlds = 1024\n---\n\
         s_load_b64 s[8:9], s[3:4], 0\nv_lshlrev_b32 v1, 2, v0\nv_add_nc_u32 v2, s0, v0\nds_store_b32 v1, v2\n\
         s_waitcnt lgkmcnt(0)\nds_load_b32 v2, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_b32 v1, v2, s[8:9]\ns_endpgm\n"
    );
    let (prepared, _) = load(&source, 1);
    let (instructions, seconds) = run(&prepared);
    let each = seconds * 1e9 / groups as f64;
    println!("| {groups} | {instructions} | {:.2} | {each:.0} | {} |", seconds * 1e3, memory());
}

fn program(count: u64) {
    let lines = ["v_add_nc_u32 v1, v1, v0", "v_fma_f32 v2, v1, 0.5, v2", "s_add_u32 s5, s5, 7"];
    let body: String = lines.iter().cycle().take(count as usize).flat_map(|l| [l, "\n"]).collect();
    let source = format!("---\nlocal = 32, 1, 1\nglobal = 1, 1, 1\nwave = 32\n---\n{body}s_endpgm\n");
    let (prepared, load_s) = load(&source, 1);
    let (_, run_s) = run(&prepared);
    let each = load_s * 1e9 / count as f64;
    println!("| {count} | {:.2} | {each:.0} | {:.3} | {} |", load_s * 1e3, run_s * 1e3, memory());
}

/// One lane per page: every page of the buffer is touched once.
fn buffer(mib: u64) {
    let groups = mib * 256 / 32;
    let source = format!(
        "---\nout_y: u32[{}]\nlocal = 32, 1, 1\nglobal = {groups}, 1, 1\nwave = 32\n---\n\
         s_load_b64 s[8:9], s[3:4], 0\nv_lshl_add_u32 v1, s0, 5, v0\nv_lshlrev_b32 v1, 12, v1\n\
         s_waitcnt lgkmcnt(0)\nglobal_store_b32 v1, v0, s[8:9]\ns_endpgm\n",
        mib << 18
    );
    let (prepared, load_s) = load(&source, mib + 1);
    let (_, run_s) = run(&prepared);
    let each = run_s * 1e9 / (mib * 256) as f64;
    println!("| {mib} | {:.2} | {:.2} | {each:.0} | {} |", load_s * 1e3, run_s * 1e3, memory());
}

/// A table: its name, its columns, the sizes of its rows, and the function that measures a row.
type Table = (&'static str, &'static str, [u64; 4], fn(u64));

const TABLES: [Table; 3] = [
    (
        "grid",
        "| workgroups | wave-instructions | run, ms | ns a workgroup | peak memory, MiB |",
        [1, 100, 10_000, 1_000_000],
        grid,
    ),
    (
        "program",
        "| instructions | load, ms | ns each | run, ms | peak memory, MiB |",
        [10, 1000, 10_000, 100_000],
        program,
    ),
    (
        "buffer",
        "| buffer, MiB | load, ms | one store each 4 KiB, ms | ns each | peak memory, MiB |",
        [1, 32, 256, 2047],
        buffer,
    ),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [name, size] = &args[..]
        && let (Some(table), Ok(size)) = (TABLES.iter().find(|t| t.0 == name), size.parse())
    {
        return table.3(size);
    }
    let own = std::env::current_exe().expect("this program");
    for (name, columns, sizes, _) in TABLES {
        println!("{columns}\n|---|---|---|---|---|");
        for size in sizes {
            let row = Command::new(&own).args([name, &size.to_string()]).status();
            assert!(row.is_ok_and(|status| status.success()), "{name} {size}");
        }
        println!();
    }
}
