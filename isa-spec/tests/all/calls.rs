//! Calls: a body is checked once for each combination of argument types, and copied.

use isa_spec::canonical::parse_all;
use isa_spec::pcode::check::check;
use isa_spec::pcode::ir::{Expr, Semantics};
use isa_spec::pcode::sig::InstrSig;
use isa_spec::pcode::visit::each_expr;
use isa_spec::source::SourceMap;

/// Checks the instructions of a text in order; returns the semantics of the last one, and the number of expressions
/// that each took to check.
fn checked(text: &str) -> (Semantics, Vec<u64>) {
    let mut sources = SourceMap::default();
    let file = sources.add("calls.pcode", text);
    let (parsed, errors) = parse_all(&sources, &[file]);
    assert!(errors.is_empty(), "{errors:?}");
    let (library, errors) = parsed.library();
    assert!(errors.is_empty(), "{errors:?}");
    let (mut last, mut work) = (None, Vec::new());
    for (_, block) in parsed.blocks() {
        let before = library.expressions();
        let sig = InstrSig::permissive("V_TEST");
        last = Some(check(&sources, &library, block, &sig, None).unwrap_or_else(|e| panic!("{e:?}")).0);
        work.push(library.expressions() - before);
    }
    (last.expect("an instruction"), work)
}

fn expressions(semantics: &Semantics) -> u64 {
    let mut count = 0;
    each_expr(&semantics.body, |_: &Expr| count += 1);
    count
}

#[test]
fn a_function_is_checked_once_for_each_type() {
    let mut text = String::from("function f0(x) { return x + x; }\n");
    for level in 1..12 {
        text += &format!("function f{level}(x) {{ return f{0}(x) + f{0}(x); }}\n", level - 1);
    }
    text += "instruction V_A { D0.u32 = f11(S0.u32); } instruction V_B { D0.u32 = f11(S0.u32); }
             instruction V_C { D0.f32 = f11(S0.f32); }";
    let (semantics, work) = checked(&text);
    assert!(expressions(&semantics) > 1 << 12);
    // The 12 functions have up to five expressions each.
    assert!(work[0] < 100, "{work:?}");
    // The second instruction shares them; the third has other types.
    assert!(work[1] < 10, "{work:?}");
    assert!(work[2] > 40 && work[2] < 100, "{work:?}");
}

/// Functions that read operands are checked once for each instruction.
#[test]
fn a_function_that_reads_operands_is_not_shared() {
    let text = "function low() { return S1.u32 & 7U; }
                instruction V_A { D0.u32 = low() + low(); } instruction V_B { D0.u32 = low() + low(); }";
    let (_, work) = checked(text);
    assert_eq!(work[0], work[1]);
    let (_, once) = checked("function low() { return S1.u32 & 7U; } instruction V_A { D0.u32 = low(); }");
    assert!(work[0] < 2 * once[0] + 1, "{work:?}, {once:?}");
}

/// Returns a body without spans.
fn text(semantics: &Semantics) -> String {
    let body = format!("{:?} {:?} {:?}", semantics.locals, semantics.body, semantics.uses);
    let parts = body.split("Span {").enumerate();
    parts
        .map(|(at, part)| if at == 0 { part } else { part.split_once('}').map_or("", |rest| rest.1) })
        .collect()
}

/// Two calls of one function expand to the same as calls of two functions with the same body.
#[test]
fn a_copy_is_what_checking_gives() {
    let cases = [
        ("function NAME(x) { return x < 0 ? -1 : x; }", "D0.i32 = NAME(S0.i32);", "D0.i32 = NAME(S1.i32);"),
        ("function NAME(x) { return x < 0 ? -1 : x; }", "D0.i32 = NAME(S0.i32);", "D0.i32 = NAME(S0.i32);"),
        ("function NAME(x) { return x * x; }", "D0.u32 = NAME(S0.u32 + 1U);", "D0.u32 = NAME(S1.u32 + 2U);"),
        ("function NAME(x) { return S0.u32[x : 0]; }", "D0.u32 = 32'U(NAME(3));", "D0.u32 = 32'U(NAME(4));"),
        ("function NAME(x) { return x * 3.0; }", "D0.f32 = NAME(S0.f32);", "D0.f16 = NAME(S0.f16);"),
        ("function NAME(x) { return S0.f32 * x; }", "D0.f32 = NAME(0.1);", "D0.f32 = NAME(0.3);"),
        (
            "function NAME(x) { n = 0U; for i in 0 : 7 do n += x >> 32'U(i); endfor; return n; }",
            "D0.u32 = NAME(S0.u32 & 1U);",
            "D0.u32 = NAME(S1.u32 & 1U);",
        ),
        (
            "function NAME(x) { declare a : 32'B[4]; a[1] = x; if x > 7U then return a[1].u32; else return 0U; endif }",
            "D0.u32 = NAME(S0.u32 & 1U);",
            "D0.u32 = NAME(S1.u32 & 1U);",
        ),
        (
            "function NAME(x) { twice = lambda(y) (y + y); return twice(twice(x)); }",
            "D0.u32 = NAME(S0.u32);",
            "D0.u32 = NAME(S0.u32);",
        ),
        (
            "record Pair : 32'B { low [15 : 0]; high [31 : 16]; } function NAME(x) { V = Pair(x); return V.low + V.high; }",
            "D0.u32 = NAME(S0.b32);",
            "D0.u32 = NAME((S1.u32 & 7U).b32);",
        ),
        (
            "record Pair : 32'B { low [15 : 0]; high [31 : 16]; } function NAME(A, B) { return A.low + B.high; }",
            "V = Pair((S0.u32 & 7U).b32); W = Pair((S1.u32 & 7U).b32); D0.u32 = NAME(V, V);",
            "D0.u32 = NAME(V, W);",
        ),
    ];
    for (function, first, second) in cases {
        let [one, two] = ["f", "g"].map(|name| {
            let records = function.find("function").unwrap_or(0);
            let (record, function) = function.split_at(records);
            let functions = format!("{} {}", function.replace("NAME", "f"), function.replace("NAME", "g"));
            let calls = format!("{} {}", first.replace("NAME", "f"), second.replace("NAME", name));
            text(&checked(&format!("{record} {functions} instruction V_TEST {{ {calls} }}")).0)
        });
        assert_eq!(one, two, "{function}");
    }
}
