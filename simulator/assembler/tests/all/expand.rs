//! Repetitions.

use wavesim_assembler::expand::{Input, Next};
use wavesim_assembler::source::SourceLine;

fn all(input: &mut Input) -> Vec<String> {
    let mut out = Vec::new();
    loop {
        match input.read().unwrap() {
            Next::Line(line, _) => out.push(line.text.to_string()),
            Next::End { .. } => {}
            Next::EndOfInput => return out,
        }
    }
}

#[test]
fn repetitions_are_expanded() {
    let mut input = Input::new("k.s", ".rept 2\na\n.irp x,1,2\nb \\x\n.endr\n.endr\nc");
    let Ok(Next::Line(..)) = input.read() else { panic!() };
    let lines = input.read_block(|w| w == ".irp", |w| w == ".endr").unwrap().unwrap();
    assert_eq!(lines.len(), 4);
    input.enter_repetition(lines, 2, 0).unwrap();
    assert_eq!(all(&mut input).len(), 9);
    let mut input = Input::new("k.s", "x");
    let body = vec![SourceLine { text: "b \\x".to_string().into(), file: 0, number: 7 }];
    input.enter_for_each(body, "x", vec!["1".to_string(), "2".to_string()], 0, 0).unwrap();
    assert_eq!(all(&mut input), ["b 1", "b 2", "x"]);
}

#[test]
fn endless_repetitions_are_bounded() {
    let mut input = Input::new("k.s", "");
    input.enter_repetition(Vec::new(), u64::MAX, 0).unwrap();
    let error = loop {
        match input.read() {
            Err(e) => break e,
            Ok(Next::EndOfInput) => panic!("no end"),
            Ok(_) => {}
        }
    };
    assert!(error.message.contains("lines"), "{error}");
}
