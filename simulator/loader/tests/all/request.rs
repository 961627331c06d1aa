//! Arguments on the command line.

use wavesim_array::Num;
use wavesim_loader::request::{ArgumentValue, argument};
use wavesim_loader::text_kernel::Options;

#[test]
fn command_line_arguments_parse() {
    let options = Options { global_bytes: 1 << 20, ..Options::default() };
    let one = |text: &str| argument(text, 3, &options).unwrap();
    assert_eq!(one("1000"), ("arg3".to_string(), ArgumentValue::Number(Num::Int(1000))));
    assert_eq!(one("n: -2.5"), ("n".to_string(), ArgumentValue::Number(Num::Float(-2.5))));
    assert_eq!(one("local:64").1, ArgumentValue::Local(64));
    assert_eq!(one("u8=7").1, ArgumentValue::Bytes(vec![7]));
    let (name, given) = one("x:f32[4]=arange(4)");
    assert!(name == "x" && matches!(given, ArgumentValue::Buffer(a) if a.shape == [4]));
    for bad in ["f33[4]", "file:/no/such.npy", "local:x", "f32[2]=1,2,3", ""] {
        assert!(argument(bad, 0, &options).is_err(), "{bad}");
    }
}
