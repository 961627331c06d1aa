//! Division of ranges into workgroups.

use wavesim_opencl::launch::choose_workgroup_size;

#[test]
fn workgroups_divide_the_range() {
    assert_eq!(choose_workgroup_size([1000, 1, 1], 256), [250, 1, 1]);
    assert_eq!(choose_workgroup_size([17, 16, 1], 256), [17, 8, 1]);
    assert_eq!(choose_workgroup_size([257, 4, 2], 256), [1, 4, 2]);
    assert_eq!(choose_workgroup_size([4096, 4096, 1], 256), [256, 1, 1]);
    assert_eq!(choose_workgroup_size([0, 4, 1], 256), [1, 4, 1]);
}
