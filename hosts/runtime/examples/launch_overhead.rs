//! Measures what a launch costs beyond its instructions: kernels of one and of 256 work-items that end immediately.
//!
//!     cargo run --release -p wavesim-runtime --example launch_overhead

use std::time::Instant;
use wavesim::loader::assembly::Reading;
use wavesim_runtime::{Device, Launch, Settings};

const LAUNCHES: u32 = 20_000;

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
    let object = Reading::default().assemble("empty.s", EMPTY).map_err(|e| e[0].to_string())?.object;
    let device = Device::open("gfx1100", &Settings::default())?;
    // Memory as a program has it.
    for _ in 0..32 {
        device.alloc(1 << 16, "buffer")?;
    }
    let kernel = device.load(&object)?.kernel("empty")?;
    for block in [1, 256] {
        let launch = Launch::new([1; 3], [block, 1, 1]);
        kernel.launch(&launch, &[0; 16])?;
        let started = Instant::now();
        for _ in 0..LAUNCHES {
            kernel.launch(&launch, &[0; 16])?;
        }
        let each = started.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64;
        println!("{block} work-items: {each:.2} us a launch");
    }
    Ok(())
}
