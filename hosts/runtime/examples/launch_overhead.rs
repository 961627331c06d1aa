//! Measures the overhead of a launch with kernels of 1 and 256 work-items that end immediately. Reports the
//! fastest of twenty blocks of launches, since other load on the host only slows the others down.
//!
//!     cargo run --release -p wavesim-runtime --example launch_overhead

use wavesim::loader::assembly::AssemblyOptions;
use wavesim_runtime::{Device, Launch, Settings};

const BLOCKS: usize = 20;
const LAUNCHES: u32 = 1000;

/// Returns the CPU time of this thread in seconds.
#[cfg(unix)]
fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the time in seconds.
#[cfg(not(unix))]
fn now() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64()
}

const EMPTY: &str = "\
.text
.globl empty
.p2align 8
.type empty, @function
empty:
  s_endpgm
.section .rodata, \"a\", @progbits
.p2align 6
.amdhsa_kernel empty
  .amdhsa_kernarg_size 16
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_wavefront_size32 1
.end_amdhsa_kernel
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let object = AssemblyOptions::default().assemble("empty.s", EMPTY).map_err(|e| e[0].to_string())?.object;
    let device = Device::open("gfx1100", &Settings::default())?;
    // Allocations such as a typical program has.
    for _ in 0..32 {
        device.alloc(1 << 16, "buffer")?;
    }
    let kernel = device.load(&object)?.kernel("empty")?;
    for block in [1, 256] {
        let launch = Launch::new([1; 3], [block, 1, 1]);
        let mut least = f64::INFINITY;
        for _ in 0..BLOCKS {
            let started = now();
            for _ in 0..LAUNCHES {
                kernel.launch(&launch, &[0; 16])?;
            }
            least = least.min(now() - started);
        }
        println!("host layer, {block:3} items {:5.2} us of the CPU", least * 1e6 / LAUNCHES as f64);
    }
    Ok(())
}
