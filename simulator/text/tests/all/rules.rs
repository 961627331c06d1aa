//! The format's restrictions on operands.

use wavesim_text::rules::check_spelling;

#[test]
fn spelling_is_checked_on_every_operand() {
    for text in
        ["v_add_f32 v0, --v1, v2", "v_add_f32 v0, |-v1|, v2", "v_add_f32 v0, ||v1||, v2", "v_x v0, v1, - -v2"]
    {
        assert!(check_spelling(text, 0).is_err(), "{text}");
    }
    for text in ["v_add_f32 v0, -v1, |v2|", "v_mul_f32 v0, -|v1|, v2", "v_add_f32 v0, -1.0, v1", "s_nop"] {
        assert_eq!(check_spelling(text, 0), Ok(()), "{text}");
    }
    assert_eq!(check_spelling("v_add_f32 v0,  --v1, v2", 100).unwrap_err().at, 115..119);
}
