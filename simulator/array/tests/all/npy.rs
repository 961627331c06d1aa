//! Headers of `.npy` files.

use wavesim_array::npy::{Header, write};
use wavesim_array::{Array, DType};

/// Reads a header of version 2.0 with a text.
fn header(text: &str) -> Option<Header> {
    let len = (text.len() as u32).to_le_bytes();
    Header::read(&[b"\x93NUMPY\x02\x00", &len[..], text.as_bytes()].concat()[..])
}

#[test]
fn numpy_headers_parse() {
    let read = |text: &str| header(text).unwrap_or_else(|| panic!("{text}"));
    let two = read("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }            \n");
    assert_eq!((two.dtype(None), two.fortran_order, &two.shape[..]), (Some(DType::F32), false, &[2, 3][..]));
    assert_eq!(read("{'descr': '|i1', 'fortran_order': True, 'shape': (7,)}").shape, [7]);
    assert!(read("{'shape': (), \"descr\": \"<f8\", 'fortran_order': True,}").fortran_order);
    assert_eq!(read("{'descr': '<u2', 'fortran_order': False, 'shape': (5L, 6L)}").shape, [5, 6]);
    let records =
        read("{'descr': [('a, }', '<f4'), ('b', '<i8', (2,))], 'fortran_order': False, 'shape': (1,), }");
    assert_eq!((records.dtype(None), &records.descr[..11]), (None, "[('a, }', '"));
}

#[test]
fn element_types() {
    let dtype = |name: &str, wanted| {
        Header { descr: format!("'{name}'"), fortran_order: false, shape: Vec::new() }.dtype(wanted)
    };
    for d in DType::ALL.into_iter().filter(|d| *d != DType::BF16) {
        let mut file = Vec::new();
        write(&mut file, &Array { dtype: d, shape: vec![0], bytes: Vec::new() }).unwrap();
        assert_eq!(Header::read(&file[..]).unwrap().dtype(None), Some(d));
    }
    assert_eq!((dtype("<u1", None), dtype("<i1", None)), (Some(DType::U8), Some(DType::I8)));
    for name in ["<u2", "|V2"] {
        assert_eq!(dtype(name, Some(DType::BF16)), Some(DType::BF16));
    }
    for name in [">f4", ">u2", "<c8", "|V2", "|b1", "|S1", "<U4", "<M8[ns]", "|O", "", "f4"] {
        assert_eq!(dtype(name, None), None, "{name}");
    }
}

#[test]
fn malformed_headers_are_rejected() {
    for text in [
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} more",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (3,)}",
        "{'é",
    ] {
        assert_eq!(header(text), None, "{text}");
    }
    assert_eq!(header(&"(".repeat(40000)), None);
    assert_eq!(header(&format!("{{'shape': ({})}}", "1,".repeat(1000))), None);
}
