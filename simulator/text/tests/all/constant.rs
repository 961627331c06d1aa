//! Named constants, and arithmetic over them.

use wavesim_array::Num;
use wavesim_text::constant::{Constants, Cursor, TextError};
use wavesim_text::lex::tokens;

fn eval(text: &str) -> Result<Num, TextError> {
    let mut constants = Constants::default();
    constants.define("N=16").unwrap();
    let tokens = tokens(text, 0);
    let mut cursor = Cursor::new(&tokens, text.len());
    let value = cursor.constant(&constants)?;
    cursor.finish().map(|()| value)
}

#[test]
fn expressions_are_evaluated() {
    assert_eq!(eval("N * (N + 1) / 2"), Ok(Num::Int(136)));
    assert_eq!(eval("-N"), Ok(Num::Int(-16)));
    assert_eq!(eval("-0xFF"), Ok(Num::Int(-255)));
    assert_eq!(eval("1.5 * 2"), Ok(Num::Float(3.0)));
    assert_eq!(eval("7 / 2"), Ok(Num::Int(3)));
    assert!(eval("1 / 0").is_err());
    assert!(eval("M").unwrap_err().help.is_some_and(|h| h.contains("-D M=")));
    assert!(eval(&"(".repeat(1000)).unwrap_err().message.contains("parentheses"));
    assert!(eval(&"-".repeat(1000)).is_err());
}

#[test]
fn command_line_constants_take_precedence() {
    let mut constants = Constants::default();
    constants.define("N=-3").unwrap();
    constants.set_default("N", Num::Int(1));
    constants.set_default("M", Num::Int(2));
    assert_eq!((constants.get("N"), constants.get("M")), (Some(Num::Int(-3)), Some(Num::Int(2))));
    for bad in ["N", "=1", "1N=2", "N=x", "N="] {
        assert!(constants.define(bad).is_err(), "{bad}");
    }
}
