//! Which value of a variable differs first between two builds. `tests/tests/all/diff.rs` has compiled kernels.

use wavesim_debug::expr::Value;
use wavesim_debug::history::{Assignment, first_difference};

fn list(values: &[(&str, i128, u64)]) -> Vec<Assignment> {
    let one = |(variable, value, time): &(&str, i128, u64)| Assignment {
        function: "k".to_string(),
        variable: (*variable).to_string(),
        value: Value::Int(*value),
        text: value.to_string(),
        time: *time,
        pc: 0,
        place: None,
    };
    values.iter().map(one).collect()
}

fn first(a: &[(&str, i128, u64)], b: &[(&str, i128, u64)]) -> Option<(String, String, u64)> {
    let parted = first_difference(&list(a), &list(b), |a, b| a == b)?;
    let [a, b] = parted.values;
    Some((format!("{} {}", a.variable, a.text), b.text, a.time))
}

#[test]
fn dropped_values_are_no_difference() {
    let all = [("i", 0, 1), ("s", 3, 2), ("i", 1, 3), ("s", 8, 4), ("i", 2, 5)];
    assert_eq!(first(&all, &[("s", 8, 1), ("i", 2, 1)]), None);
    assert_eq!(first(&[("s", 8, 1)], &all), None);
    assert_eq!(first(&all, &[]), None);
}

#[test]
fn the_first_other_value_is_found() {
    let all = [("i", 0, 1), ("s", 3, 2), ("i", 1, 3), ("s", 8, 4), ("i", 2, 5)];
    let other = [("s", 3, 1), ("s", 9, 2), ("i", 7, 3)];
    assert_eq!(first(&all, &other), Some(("i 0".to_string(), "7".to_string(), 1)));
    let other = [("i", 0, 1), ("s", 3, 1), ("s", 9, 2), ("i", 1, 3)];
    assert_eq!(first(&all, &other), Some(("s 8".to_string(), "9".to_string(), 4)));
    let parted = first_difference(&list(&all), &list(&other), |a, b| a == b).unwrap();
    assert_eq!(parted.equal.iter().map(|a| (&*a.variable, a.time)).collect::<Vec<_>>(), [("i", 3)]);
}
