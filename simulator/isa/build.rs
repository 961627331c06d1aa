//! New or deleted ISA files rebuild the crate; edited ones are tracked by the macro.

fn main() {
    println!("cargo::rerun-if-changed=../../data");
    println!("cargo::rerun-if-env-changed=WAVESIM_ISA_DIR");
}
