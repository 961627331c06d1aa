//! `print` statements.

use wavesim_array::DType;
use wavesim_text::print::{PrintRegister, parse};

#[test]
fn all_argument_forms_parse() {
    let print =
        parse("print wave=1, thread=all, s[2:3], v[0], v3:f32, exec , vcc,scc, s[4:5]:u64", 0, 7).unwrap();
    assert_eq!((print.wave, print.thread, print.line), (Some(1), None, 7));
    let registers: Vec<PrintRegister> = print.args.iter().map(|a| a.register).collect();
    use PrintRegister as R;
    assert_eq!(
        registers,
        [R::Sgpr(2, 2), R::Vgpr(0, 1), R::Vgpr(3, 1), R::Exec, R::Vcc, R::Scc, R::Sgpr(4, 2)]
    );
    assert_eq!((print.args[2].dtype, print.args[6].dtype), (Some(DType::F32), Some(DType::U64)));
}

#[test]
fn errors_point_at_the_argument() {
    let wrong = |text: &str| parse(text, 0, 1).unwrap_err();
    assert_eq!(wrong("print v0, s300").at, 10..14);
    assert_eq!(wrong("print lane=3, v0").at, 6..12);
    assert!(wrong("print").message.contains("missing"));
    assert!(wrong("print v0:f31").message.contains("unknown type"));
    assert!(wrong("print v0, wave=1").message.contains("before"));
    assert!(wrong("print v[3:1]").message.contains("cannot be printed"));
}
