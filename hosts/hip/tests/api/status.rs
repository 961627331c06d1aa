//! The status of calls.

use amdhip64::status::{Status, call, last, unsupported};

#[test]
fn failures_become_statuses() {
    assert_eq!(call("hipX", || Err(Status::INVALID_VALUE.into())), 1);
    assert_eq!(last(), Status::INVALID_VALUE);
    assert_eq!(call("hipX", || Ok(())), 0);
    assert_eq!(last(), Status::INVALID_VALUE);
    assert_eq!(call("hipX", || panic!("as planned")), 999);
    assert_eq!(unsupported("hipY"), 801);
    assert_eq!(Status(719).text(), Some(c"unspecified launch failure"));
    assert_eq!(Status(12345).name(), None);
}
