//! Property tests of the pseudocode front end on generated trees and garbage.

use isa_spec::pcode::ast::*;
use isa_spec::pcode::{parse, print};
use isa_spec::source::{FileId, SourceMap, Span};
use isa_spec::{data, diag};
use proptest::prelude::*;
use std::path::Path;

/// Prints a tree without spans and redundant parentheses, for comparison.
fn shape(stmts: &[Stmt]) -> String {
    let mut stmts = stmts.to_vec();
    stmts.iter_mut().for_each(plain_stmt);
    format!("{stmts:?}")
}

fn plain_stmts(list: &mut [Stmt]) {
    list.iter_mut().for_each(plain_stmt);
}

fn plain_stmt(s: &mut Stmt) {
    s.span = Span::default();
    match &mut s.kind {
        StmtKind::Declare { name, len, .. } => {
            name.span = Span::default();
            len.iter_mut().for_each(plain);
        }
        StmtKind::Assign { place, value, .. } => [place, value].into_iter().for_each(plain),
        StmtKind::If { arms, otherwise } => {
            for (cond, body) in arms {
                plain(cond);
                plain_stmts(body);
            }
            otherwise.iter_mut().for_each(|b| plain_stmts(b));
        }
        StmtKind::For { var, from, to, body } => {
            var.span = Span::default();
            [from, to].into_iter().for_each(plain);
            plain_stmts(body);
        }
        StmtKind::While { cond, body } => {
            plain(cond);
            plain_stmts(body);
        }
        StmtKind::Lambda { name, parameters, body } => {
            name.span = Span::default();
            parameters.iter_mut().for_each(|p| p.span = Span::default());
            plain_stmts(body);
        }
        StmtKind::Return(value) => value.iter_mut().for_each(plain),
        StmtKind::Call(e) => plain(e),
        StmtKind::Break | StmtKind::Empty => {}
    }
}

fn plain(e: &mut Expr) {
    while let ExprKind::Paren(inner) = &mut e.kind {
        *e = std::mem::replace(inner, Expr { kind: ExprKind::Concat(Vec::new()), span: Span::default() });
    }
    e.span = Span::default();
    match &mut e.kind {
        ExprKind::Name(_) | ExprKind::Int { .. } | ExprKind::Float { .. } | ExprKind::Str(_) => {}
        ExprKind::Unary(_, a) | ExprKind::View(a, _) | ExprKind::Cast(_, a) | ExprKind::Paren(a) => plain(a),
        ExprKind::Member(a, name) => {
            name.span = Span::default();
            plain(a);
        }
        ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) => [a, b].into_iter().for_each(|e| plain(e)),
        ExprKind::Select(a, b, c) | ExprKind::Slice(a, b, c) | ExprKind::Part(a, b, c) => {
            [a, b, c].into_iter().for_each(|e| plain(e))
        }
        ExprKind::Call(name, args) => {
            name.span = Span::default();
            args.iter_mut().for_each(plain);
        }
        ExprKind::Concat(parts) => parts.iter_mut().for_each(plain),
    }
}

// ---- trees

fn expr_of(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::default() }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "S0",
            "D0",
            "tmp",
            "VCC",
            "laneId",
            "in",
            "eval",
            "MODE.IEEE",
            "f32",
            "function"
        ])
        .prop_map(String::from),
        // Keywords have no underscore.
        "[a-zA-Z][a-z0-9]{0,3}_[A-Z0-9]{0,3}",
    ]
}

fn name() -> impl Strategy<Value = Name> {
    word()
        .prop_filter_map("dotted", |text| (!text.contains('.')).then(|| Name { text, span: Span::default() }))
}

fn cast_type() -> impl Strategy<Value = TypeName> {
    let kinds = prop::sample::select(vec![TypeKind::B, TypeKind::U, TypeKind::I, TypeKind::F, TypeKind::BF]);
    (kinds, 1u16..=2048).prop_map(|(kind, width)| TypeName { kind, width })
}

fn view_type() -> impl Strategy<Value = TypeName> {
    let all = ["f16", "f32", "f64", "bf16", "fp8", "bf8", "u1", "u32", "i24", "b128", "u8", "i64"];
    prop::sample::select(all.to_vec()).prop_map(|t| parse::type_suffix(t).expect("a type"))
}

fn literal() -> impl Strategy<Value = ExprKind> {
    let int_type = prop_oneof![
        Just(LiteralType::None),
        (prop::sample::select(vec![TypeKind::B, TypeKind::U, TypeKind::I]), 1u16..=128)
            .prop_map(|(kind, width)| LiteralType::Typed(TypeName { kind, width })),
    ];
    let float_type = prop_oneof![
        Just(LiteralType::None),
        prop::sample::select(vec![16u16, 32, 64])
            .prop_map(|width| LiteralType::Typed(TypeName { kind: TypeKind::F, width })),
    ];
    prop_oneof![
        (prop_oneof![0u128..5000, any::<u64>().prop_map(u128::from), any::<u128>()], int_type)
            .prop_map(|(value, ty)| ExprKind::Int { value, ty }),
        ("(0|[1-9][0-9]{0,5})(\\.[0-9]{1,4})(e-?[0-9]{1,2})?", float_type)
            .prop_map(|(text, ty)| ExprKind::Float { text, ty }),
        // An integral number is a float only by its suffix.
        ("[1-9][0-9]{0,3}", prop::sample::select(vec![16u16, 32, 64])).prop_map(|(text, width)| {
            ExprKind::Float { text, ty: LiteralType::Typed(TypeName { kind: TypeKind::F, width }) }
        }),
    ]
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf =
        prop_oneof![word().prop_map(ExprKind::Name), literal(), "[a-z 0-9$.]{0,8}".prop_map(ExprKind::Str),]
            .prop_map(expr_of);
    leaf.prop_recursive(5, 40, 4, |inner| {
        let one = || inner.clone().prop_map(Box::new);
        let unary =
            prop::sample::select(vec![UnaryOp::Neg, UnaryOp::Plus, UnaryOp::Not, UnaryOp::LogicalNot]);
        use BinaryOp::*;
        let binary = prop::sample::select(vec![
            Add, Sub, Mul, Div, Rem, Pow, And, Or, Xor, Shl, Shr, Sar, Eq, Ne, Lt, Le, Gt, Ge, Lg,
            LogicalAnd, LogicalOr,
        ]);
        prop_oneof![
            (unary, one()).prop_map(|(op, a)| ExprKind::Unary(op, a)),
            (binary, one(), one()).prop_map(|(op, a, b)| ExprKind::Binary(op, a, b)),
            (one(), one(), one()).prop_map(|(a, b, c)| ExprKind::Select(a, b, c)),
            (one(), view_type()).prop_map(|(a, ty)| ExprKind::View(a, ty)),
            (one(), one()).prop_map(|(a, b)| ExprKind::Index(a, b)),
            (one(), one(), one()).prop_map(|(a, b, c)| ExprKind::Slice(a, b, c)),
            (one(), one(), one()).prop_map(|(a, b, c)| ExprKind::Part(a, b, c)),
            (cast_type(), one()).prop_map(|(ty, a)| ExprKind::Cast(ty, a)),
            (name(), prop::collection::vec(inner.clone(), 0..4))
                .prop_map(|(f, args)| ExprKind::Call(f, args)),
            prop::collection::vec(inner.clone(), 1..4).prop_map(ExprKind::Concat),
            one().prop_map(ExprKind::Paren),
            (one(), one(), "[a-z]{3}_[a-z]").prop_map(|(a, b, text)| {
                let base = expr_of(ExprKind::Index(a, b));
                ExprKind::Member(Box::new(base), Name { text, span: Span::default() })
            }),
        ]
        .prop_map(expr_of)
    })
}

/// Generates statements with at most `depth` levels of blocks; `looped` allows `break`.
fn stmts(depth: u32, looped: bool) -> BoxedStrategy<Vec<Stmt>> {
    let assign = prop::option::of(prop::sample::select(vec![
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Rem,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Xor,
        BinaryOp::Shl,
        BinaryOp::Shr,
        BinaryOp::Sar,
        BinaryOp::Pow,
    ]));
    // Operators in a place would absorb the `=`; the checker rejects such places too.
    let place = (word(), prop::option::of(view_type())).prop_map(|(text, ty)| {
        let base = expr_of(ExprKind::Name(text));
        match ty {
            Some(ty) => expr_of(ExprKind::View(Box::new(base), ty)),
            None => base,
        }
    });
    let mut kinds: Vec<BoxedStrategy<StmtKind>> = vec![
        (place, assign, expr()).prop_map(|(place, op, value)| StmtKind::Assign { place, op, value }).boxed(),
        (name(), cast_type(), prop::option::of(expr()))
            .prop_map(|(name, ty, len)| StmtKind::Declare { name, ty, len })
            .boxed(),
        (name(), prop::collection::vec(expr(), 0..3))
            .prop_map(|(f, args)| StmtKind::Call(expr_of(ExprKind::Call(f, args))))
            .boxed(),
        prop::option::of(expr()).prop_map(StmtKind::Return).boxed(),
    ];
    if looped {
        kinds.push(Just(StmtKind::Break).boxed());
    }
    if depth > 0 {
        let body = || stmts(depth - 1, looped);
        let inside = || stmts(depth - 1, true);
        kinds.push(
            (prop::collection::vec((expr(), body()), 1..3), prop::option::of(body()))
                .prop_map(|(arms, otherwise)| StmtKind::If { arms, otherwise })
                .boxed(),
        );
        kinds.push(
            (name(), expr(), expr(), inside())
                .prop_map(|(var, from, to, body)| StmtKind::For { var, from, to, body })
                .boxed(),
        );
        kinds.push((expr(), inside()).prop_map(|(cond, body)| StmtKind::While { cond, body }).boxed());
        kinds.push(
            (name(), prop::collection::hash_set("[a-z]_[a-z]{0,2}", 0..3), stmts(depth - 1, false))
                .prop_map(|(name, parameters, body)| {
                    let mut parameters: Vec<Name> =
                        parameters.into_iter().map(|text| Name { text, span: Span::default() }).collect();
                    parameters.sort_by(|a, b| a.text.cmp(&b.text));
                    StmtKind::Lambda { name, parameters, body }
                })
                .boxed(),
        );
    }
    let one = prop::strategy::Union::new(kinds).prop_map(|kind| Stmt { kind, span: Span::default() });
    prop::collection::vec(one, 0..4).boxed()
}

fn parse_body(text: &str) -> (Vec<Stmt>, String) {
    let mut sources = SourceMap::default();
    let file = sources.add("generated", text);
    let (body, errors) = parse::parse_body(&sources, file);
    (body, diag::render_all(&sources, &errors))
}

fn parse_file(text: &str) -> (File, String) {
    let mut sources = SourceMap::default();
    let file = sources.add("generated", text);
    let (tree, errors) = parse::parse_file(&sources, file);
    (tree, diag::render_all(&sources, &errors))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn printed_trees_parse_to_themselves(body in stmts(3, false)) {
        let text = print::body(&body);
        let (again, errors) = parse_body(&text);
        prop_assert!(errors.is_empty(), "{text}\n{errors}");
        prop_assert_eq!(shape(&body), shape(&again), "{}", text);
        // Printing is idempotent.
        prop_assert_eq!(&print::body(&again), &text);
    }

    #[test]
    fn printed_expressions_need_no_context(e in expr()) {
        let text = format!("x = {};", print::expr(&e));
        let (again, errors) = parse_body(&text);
        prop_assert!(errors.is_empty(), "{text}\n{errors}");
        let wanted = StmtKind::Assign { place: expr_of(ExprKind::Name("x".into())), op: None, value: e };
        prop_assert_eq!(shape(&[Stmt { kind: wanted, span: Span::default() }]), shape(&again), "{}", text);
    }
}

/// Printing every file of `pseudocode/` preserves its blocks.
#[test]
fn pseudocode_prints_to_itself() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pseudocode");
    let files = data::files_below(&root, "pcode");
    assert!(!files.is_empty());
    for path in files {
        let text = std::fs::read_to_string(&path).expect("readable file");
        let (tree, errors) = parse_file(&text);
        assert!(errors.is_empty(), "{}: {errors}", path.display());
        let printed = print::file(&tree);
        let (again, errors) = parse_file(&printed);
        assert!(errors.is_empty(), "{}: {errors}\n{printed}", path.display());
        assert_eq!(tree.header, again.header, "{}", path.display());
        assert_eq!(items(&tree.items), items(&again.items), "{}", path.display());
        assert_eq!(print::file(&again), printed, "{}", path.display());
    }
}

/// Names, architectures and bodies, templates expanded; parentheses kept.
fn items(list: &[Item]) -> Vec<String> {
    let names = |list: &[Name]| list.iter().map(|n| n.text.clone()).collect::<Vec<_>>().join(",");
    let mut out = Vec::new();
    for item in list {
        match item {
            Item::Instruction(b) => {
                out.push(format!("{} for {}\n{}", names(&b.names), names(&b.archs), print::body(&b.body)))
            }
            Item::Function(f) => {
                let head = format!("{}({}) for {}", f.name.text, names(&f.parameters), names(&f.archs));
                out.push(format!("{head}\n{}", print::body(&f.body)))
            }
            Item::Record(r) => {
                let fields = r.fields.iter().map(|f| format!("{} {} {}", names(&f.names), f.high, f.low));
                let fields: Vec<String> = fields.collect();
                out.push(format!("{} {} for {} {fields:?}", r.name.text, r.width, names(&r.archs)))
            }
            Item::Template(t) => {
                out.push(format!(
                    "{} in {:?}",
                    names(&t.parameters),
                    t.rows.iter().map(|r| names(r)).collect::<Vec<_>>()
                ));
                out.extend(items(&t.items));
            }
        }
    }
    out
}

// ---- garbage

const SOUP: &[&str] = &[
    "instruction",
    "template",
    "function",
    "for",
    "in",
    "do",
    "endfor",
    "if",
    "then",
    "elsif",
    "else",
    "endif",
    "while",
    "endwhile",
    "declare",
    "return",
    "break",
    "lambda",
    "eval",
    "S0",
    "D0",
    "tmp",
    "$T",
    "${T}",
    "V_$T",
    "T",
    "$T'1U",
    "32'$T",
    "32'U",
    "16'0xff",
    "1.5",
    "1.0F",
    "42",
    "0x",
    "8'",
    "\"S0\"",
    "\"",
    "\n",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "+:",
    "?",
    ".",
    "+",
    "-",
    "*",
    "**",
    "<<",
    ">>>",
    "<>",
    "=",
    "==",
    "+=",
    "!",
    "~",
    ".f32",
    ".f23",
    "// x\n",
    "é",
    "×",
    "‘",
    "\r\n",
    "\t",
    "@",
    "#",
    "and",
    "not",
    "elif",
    "endfi",
    "++",
];

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(SOUP.to_vec()), 0..80).prop_map(|words| words.join(" "))
}

/// Checks that parsing terminates in time, with errors that can be rendered.
fn survives(text: &str) {
    let mut sources = SourceMap::default();
    let file = sources.add("garbage", text);
    let (_, errors) = parse::parse_file(&sources, file);
    for error in &errors {
        for span in std::iter::once(error.span).chain(error.also.iter().map(|a| a.0)) {
            assert!(span.start <= span.end && span.end as usize <= text.len(), "{error:?}");
        }
    }
    diag::render_all(&sources, &errors);
    let (_, errors) = parse::parse_body(&sources, file);
    diag::render_all(&sources, &errors);
}

/// A file with every kind of construct, to be corrupted.
const WHOLE: &str = "// Header.\ninstruction V_A, V_B for rdna3, rdna3.5 {\n  declare t : 32'B[4];\n  F = lambda(a) (if a > 0 then\n    \
    return a else return -a endif);\n  for i in 0 : 31 do\n    if S0.u32[i] && !SCC then\n      t[i & 3] = { S0[15 : 0].u16, 16'0x7fff };\n      \
    break;\n    elsif SCC then\n      D0.f32 = 2.0F ** -1 * fma(S0.f32, 1.5, S1.f32);\n    else\n      tmp = F(3) ? 1'1U : 0ULL;\n    endif\n  \
    endfor;\n}\n\ntemplate (T, OP, X) in (f32, +, \"S0.u32 + 1U\"), (f64, -, -1) {\n  template (W) in (32), (64) {\n    \
    function g_$T$W(x) {\n      return x.$T $OP ($X) + $W'1U;\n    }\n    instruction V_N_$T$W {\n      D0.$T = g_$T$W(S0.u$W[$W - 1 : 0]);\n    \
    }\n  }\n}\n";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn token_soup(text in soup()) {
        survives(&text);
        survives(&format!("instruction V_X {{ {text} }}"));
        survives(&format!("template (T) in (f32), (\"{}\") {{ {text} }}", text.replace('"', "")));
    }

    #[test]
    fn damaged_text(cuts in prop::collection::vec((0usize..WHOLE.len(), 0usize..12, any::<char>(), any::<bool>()), 1..6)) {
        let mut text: Vec<char> = WHOLE.chars().collect();
        for (at, len, c, insert) in cuts {
            let at = at.min(text.len());
            let end = (at + len).min(text.len());
            text.splice(at..end, insert.then_some(c));
        }
        survives(&text.into_iter().collect::<String>());
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survives(&text);
    }
}

#[test]
fn the_undamaged_text_is_right() {
    let (_, errors) = parse_file(WHOLE);
    assert_eq!(errors, "");
}

/// Texts that would overflow the stack or take superlinear time without limits.
#[test]
fn hostile_sizes() {
    let n = 60_000;
    let start = std::time::Instant::now();
    for unit in [
        "(",
        "-",
        "{",
        "[",
        "a[",
        "f(",
        "if x then ",
        "for i in 0 : 1 do ",
        "x = lambda(a) (",
        "a ? ",
        "a ** ",
        "a + ",
        "a.b",
        "a[0]",
        ".f32",
        "x = 1;",
        "x = ;",
        "}",
        ")",
        "endif ",
        "else ",
        "instruction A {",
        "template (T) in (a) {",
        "template (",
        "template ",
        "$",
        "${",
        "${T}",
        "\"",
        "@",
        "é",
        "1'",
        "elsif a then ",
        "a b ",
        "// \n",
        "function f(a) {",
        "instruction ",
        "if a then b else ",
        "break ",
        "not ",
        "\"a\";",
        "declare ",
        "0x1",
    ] {
        survives(&unit.repeat(n / unit.len()));
        survives(&format!("instruction A {{ x = {}; }}", unit.repeat(n / unit.len())));
    }
    // A generous bound: superlinear time would take minutes.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// The expansion of nested templates, whose rows multiply, is limited.
#[test]
fn templates_cannot_explode() {
    let rows = vec!["(a)"; 40].join(", ");
    let mut text = "instruction V_$T { D0.u32 = S0.u32; }".to_string();
    for _ in 0..7 {
        text = format!("template (T) in {rows} {{ {text} }}");
    }
    let (_, errors) = parse_file(&text);
    assert!(errors.contains("expand to too much text"), "{errors}");
    let long = "x".repeat(100_000);
    let (_, errors) =
        parse_file(&format!("template (T) in (\"{long}\") {{ {} }}", "\"$T$T$T\" ".repeat(10_000)));
    assert!(!errors.is_empty());
}

/// Parsing a range of bytes reports positions in the whole file.
#[test]
fn a_range_of_a_file() {
    let mut sources = SourceMap::default();
    let text = "prose D0.u32 = S0.u32 prose";
    let file = sources.add("manual.md", text);
    let (body, errors) = parse::parse_body_in(&sources, file, 6..21);
    assert!(errors.is_empty());
    assert_eq!(sources.text(body[0].span), "D0.u32 = S0.u32");
    let (_, errors) = parse::parse_body_in(&sources, file, 20..200);
    assert_eq!(errors.len(), 1);
    assert_eq!(FileId(0), file);
}
