//! New or deleted ISA and pseudocode files trigger a rebuild; the macro tracks edits.

fn main() {
    println!("cargo::rerun-if-changed=../../data");
    println!("cargo::rerun-if-changed=../../pseudocode");
    println!("cargo::rerun-if-env-changed=WAVESIM_ISA_DIR");
}
