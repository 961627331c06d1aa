//! Attributes and properties of the device.

use super::*;

unsafe extern "C" {
    safe fn hipDeviceGetAttribute(value: &mut c_int, attribute: c_int, device: c_int) -> c_int;
    safe fn hipGetDevicePropertiesR0600(properties: &mut [u8; 1472], device: c_int) -> c_int;
}

/// `hipDeviceAttribute_t`.
const GLOBAL_L1_CACHE_SUPPORTED: c_int = 14;
const L2_CACHE_SIZE: c_int = 19;
const LOCAL_L1_CACHE_SUPPORTED: c_int = 20;
const MANAGED_MEMORY: c_int = 24;
const MULTIPROCESSOR_COUNT: c_int = 63;
const VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: c_int = 89;
const CAN_USE_STREAM_WAIT_VALUE: c_int = 10013;
const IMAGE_SUPPORT: c_int = 10014;

fn attribute(number: c_int) -> c_int {
    let mut value = -1;
    assert_eq!(hipDeviceGetAttribute(&mut value, number, 0), SUCCESS);
    value
}

#[test]
fn what_the_library_supports_is_reported() {
    let features = [
        GLOBAL_L1_CACHE_SUPPORTED,
        LOCAL_L1_CACHE_SUPPORTED,
        VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        CAN_USE_STREAM_WAIT_VALUE,
        // gfx1100, the default, has images.
        IMAGE_SUPPORT,
    ];
    assert_eq!(features.map(attribute), [1; 5]);
}

#[test]
fn attributes_are_those_of_the_properties() {
    let mut properties = [0; 1472];
    assert_eq!(hipGetDevicePropertiesR0600(&mut properties, 0), SUCCESS);
    let field = |offset: usize| c_int::from_le_bytes(properties[offset..offset + 4].try_into().unwrap());
    // Offsets of the fields in `hipDeviceProp_tR0600`.
    let fields = [
        (GLOBAL_L1_CACHE_SUPPORTED, 632),
        (LOCAL_L1_CACHE_SUPPORTED, 636),
        (L2_CACHE_SIZE, 616),
        (MANAGED_MEMORY, 652),
        (MULTIPROCESSOR_COUNT, 388),
    ];
    for (number, offset) in fields {
        assert_eq!(attribute(number), field(offset), "attribute {number}");
    }
}
