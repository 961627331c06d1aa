//! Reruns when ISA files are added or removed; the macro tracks changes of existing files.

fn main() {
    println!("cargo::rerun-if-changed=../../data");
    println!("cargo::rerun-if-env-changed=WAVESIM_ISA_DIR");
}
