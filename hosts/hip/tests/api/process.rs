//! Functions by name.

use amdhip64::process::symbol;

#[test]
fn symbols_depend_on_the_version() {
    assert_eq!(symbol("hipGetDeviceProperties", 600, false), "hipGetDevicePropertiesR0600");
    assert_eq!(symbol("hipChooseDevice", 602, true), "hipChooseDeviceR0600");
    assert_eq!(symbol("hipGetDeviceProperties", 507, false), "hipGetDeviceProperties");
    assert_eq!(symbol("hipMemcpy", 600, true), "hipMemcpy_spt");
    assert_eq!(symbol("hipMemcpy", 600, false), "hipMemcpy");
    assert_eq!(symbol("hipMalloc", 600, true), "hipMalloc");
}
