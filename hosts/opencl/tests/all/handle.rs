//! Handles and object lifetimes.

use std::sync::Arc;
use wavesim_opencl::handle::*;
use wavesim_opencl::status::Status;

struct Thing(Identity, Option<Arc<Thing>>);

impl Object for Thing {
    const INVALID: Status = Status::INVALID_EVENT;

    fn identity(&self) -> &Identity {
        &self.0
    }
}

#[test]
fn objects_live_while_they_are_needed() {
    let (first, object) = register(|identity| Thing(identity, None));
    let (second, user) = register(|identity| Thing(identity, Some(object)));
    assert_eq!((user.1.is_some(), references(first)), (true, 1));
    drop(user);
    release::<Thing>(first).unwrap();
    // The second object keeps the first alive, but the program has no reference to release.
    assert!(get::<Thing>(first).is_ok() && release::<Thing>(first).is_err());
    retain::<Thing>(first).unwrap();
    release::<Thing>(first).unwrap();
    release::<Thing>(second).unwrap();
    for handle in [first, second, Handle::NULL] {
        assert_eq!(get::<Thing>(handle).err().map(|f| f.status), Some(Status::INVALID_EVENT));
        assert!(retain::<Thing>(handle).is_err());
    }
    // Released cells are not reused immediately.
    let (third, _) = register(|identity| Thing(identity, None));
    assert!(third != first && third != second);
    release::<Thing>(third).unwrap();
}
