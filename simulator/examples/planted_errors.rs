//! Violates the contract of `Memory::map_host` on purpose: a kernel's access of 32 dwords extends beyond the
//! mapped bytes. `cargo xtask memory-errors` uses this program to verify that its tool detects the error. With
//! `compiled` as the second argument, compiled code accesses the memory.

use wavesim::arch::Arch;
use wavesim::asm::{NoSymbols, Options, parse};
use wavesim::exec::context::Context;
use wavesim::exec::interp;
use wavesim::exec::machine_ops::Event;
use wavesim::exec::program::Program;
use wavesim::jit::Jit;
use wavesim::memory::Memory;
use wavesim::state::{Wave, Workgroup};

const BASE: u64 = 0x10_0000;

fn main() {
    let access = std::env::args().nth(1).unwrap_or_default();
    let (text, lent) = match access.as_str() {
        "load" => ("global_load_b32 v1, v0, s[4:5]", 100),
        "store" => ("global_store_b32 v0, v1, s[4:5]", 100),
        _ => ("global_load_b32 v1, v0, s[4:5]", 128),
    };
    let mut bytes = vec![1u8; lent];
    let mut memory = Memory::empty();
    // SAFETY: deliberately violated if `lent` is less than 128: the range then extends beyond `bytes`.
    // Otherwise the range is exactly `bytes`, which outlives `memory`.
    unsafe { memory.map_host(BASE, bytes.as_mut_ptr(), 128, true) }.expect("one range");
    let arch = Arch::Rdna3;
    let inst = |text| parse(text, &Options::new(arch), &NoSymbols).expect("an instruction").inst;
    let program = Program::new(arch, vec![(inst(text), 0), (inst("s_endpgm"), 0)]).expect("a program");
    let program = program.for_wave_size(32);
    let mut wave = Wave::new(32);
    wave.set_sgpr(4, BASE as u32);
    wave.set_sgpr(5, 0);
    (0..32).for_each(|lane| wave.set_vgpr(lane, 0, 4 * lane));
    let mut workgroup = Workgroup::new(1);
    let mut context = Context::new(&memory, &mut [], &mut workgroup);
    let compiled = std::env::args().nth(2).as_deref() == Some("compiled");
    let code = compiled.then(|| Jit::with_threshold(&program, 0).expect("a supported host"));
    let engine = code.as_ref().map(|code| code as &dyn interp::Compiled);
    let (mut executed, others) = (0, &mut interp::SingleWave);
    // Only long turns run code.
    let result = interp::run_waves(&program, &mut wave, &mut context, 1 << 20, &mut executed, engine, others);
    assert_eq!(result, Err(Event::EndPgm));
    assert!(code.is_none_or(|code| code.has_code()), "no code");
    println!("{access}: {:x}", wave.vgpr(0, 1));
}
