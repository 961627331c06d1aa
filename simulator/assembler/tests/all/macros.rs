//! Definitions, calls and bodies of macros.

use wavesim_asm::scan::Scanner;
use wavesim_assembler::macros::Macro;

fn expansion(head: &str, call: &str, body: &str) -> String {
    let called = Macro::define(&mut Scanner::new(head), Vec::new()).unwrap();
    let arguments = called.arguments(&mut Scanner::new(call), 7, None).unwrap();
    called.substitute_arguments(body, &arguments)
}

// The expected results are those of llvm-mc 19.
#[test]
fn altmacro_syntax() {
    let expansion = |call: &str, body: &str| {
        let called = Macro::define(&mut Scanner::new("m a, b"), Vec::new()).unwrap();
        let mut evaluate = |s: &mut Scanner| wavesim_asm::expr::parse(s, true)?.eval(&wavesim_asm::NoSymbols);
        let arguments = called.arguments(&mut Scanner::new(call), 7, Some(&mut evaluate)).unwrap();
        called.substitute_arguments(body, &arguments)
    };
    assert_eq!(expansion("%1+2, <5>", ".long a, \\b, ab, a.b \"a\""), ".long 3, 5, ab, a.b \"3\"");
    assert_eq!(expansion("<.long 7, 8>, %(3*4)", "a; b\\@"), ".long 7, 8; 127");
    assert_eq!(expansion("<!<!>!!>, 1<2", "a b"), "<>! 1<2");
}

#[test]
fn arguments_are_substituted() {
    assert_eq!(expansion("m a, b=2", "v[1:2], 3", "x \\a, \\b"), "x v[1:2], 3");
    assert_eq!(expansion("m a b=2", "1", "x \\a, \\b"), "x 1, 2");
    assert_eq!(expansion("m a b=2", ", 1", "x \\a, \\b"), "x , 1");
    assert_eq!(expansion("m a b=2", "b=5 a=v3", "x \\a, \\b"), "x v3, 5");
    assert_eq!(expansion("m a b", "1 + 2 3", "x \\a, \\b"), "x 1 + 2, 3");
    assert_eq!(expansion("m a b", "1 -2", "x \\a, \\b"), "x 1 -2, ");
    assert_eq!(expansion("m a", "\"v1, v2\"", "x \\a"), "x v1, v2");
    assert_eq!(expansion("m a:vararg", "v1, \"x\" , v3 ", "x \\a"), "x v1, \"x\" , v3");
    assert_eq!(expansion("m a", "(1, 2)", "x \\a"), "x (1, 2)");
    assert_eq!(expansion("m a", "v", "\\a\\()1 .L\\@ \\b \\\\a"), "v1 .L7 \\b \\\\a");
    assert_eq!(expansion("m", "", "a"), "a");
}

#[test]
fn invalid_calls_report_spans() {
    let called = Macro::define(&mut Scanner::new("m a:req, b"), Vec::new()).unwrap();
    let wrong = |call: &str| called.arguments(&mut Scanner::new(call), 0, None).unwrap_err();
    assert!(wrong("1, 2, 3").message.contains("2 parameters"));
    assert_eq!(wrong("1, 2, 3").span.start, 6);
    assert!(wrong("").message.contains("needs its parameter `a`"));
    assert!(wrong("(1").message.contains("bracket"));
    assert!(wrong("b=1 2").message.contains("positional"));
    assert!(Macro::define(&mut Scanner::new("m a, a"), Vec::new()).is_err());
}
