//! The encodings of aarch64, compared with LLVM's assembler. Runs on every host.

mod common;

use common::Rng;
use std::io::Write;
use std::process::{Command, Stdio};
use wavesim_x64::a64_samples;

/// Returns the bytes of assembly text, or `None` if the assembler is not installed.
fn assemble(text: &str) -> Option<Vec<[u8; 4]>> {
    let assembler = ["llvm-mc-19", "llvm-mc"].into_iter().find_map(|name| {
        let mut command = Command::new(name);
        command.args(["-triple=aarch64", "--show-encoding"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().ok()
    });
    let Some(mut assembler) = assembler else {
        eprintln!("skipped: llvm-mc is not installed");
        return None;
    };
    let mut input = assembler.stdin.take().expect("piped");
    let text = text.to_string();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = assembler.wait_with_output().expect("llvm-mc runs");
    writer.join().expect("no panic").expect("llvm-mc reads");
    assert!(output.status.success(), "llvm-mc fails: its errors are above");
    let output = String::from_utf8(output.stdout).expect("text");
    let encodings = output.lines().filter_map(|line| line.split_once("encoding: [")?.1.split_once(']'));
    let byte = |byte: &str| u8::from_str_radix(byte.trim().trim_start_matches("0x"), 16).expect("a byte");
    let word = |bytes: &str| bytes.split(',').map(byte).collect::<Vec<u8>>().try_into().expect("four bytes");
    Some(encodings.map(|(bytes, _)| word(bytes)).collect())
}

/// Every instruction, with random operands.
#[test]
fn encodings_are_those_of_another_assembler() {
    let mut rng = Rng(7);
    let samples: Vec<(u32, String)> = (0..40).flat_map(|_| a64_samples(|| rng.word() as u32)).collect();
    let text: String = samples.iter().map(|(_, text)| format!("{text}\n")).collect();
    let Some(encodings) = assemble(&text) else { return };
    assert_eq!(encodings.len(), samples.len());
    for ((word, text), encoding) in samples.iter().zip(encodings) {
        let expected = u32::from_le_bytes(encoding);
        assert_eq!(*word, expected, "{text}: {word:#010x}, but {expected:#010x}");
    }
}
