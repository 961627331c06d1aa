//! Functions, variables and types of code objects.

use object::{Object, ObjectSection};
use wavesim_loader::debug_info::{DebugInfo, Location, Missing, Piece, Space, State, TypeKind};

fn read(name: &str, change: impl Fn(&mut Vec<u8>)) -> DebugInfo {
    let path = format!("{}/../../tests/filetests/debug/objects/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    let file = object::File::parse(&*bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    DebugInfo::read(&file, text.address()..text.address() + text.size())
}

/// Registers have their numbers as values; memory is zero.
struct Machine;

impl State for Machine {
    fn register(&self, number: u16) -> Option<u32> {
        Some(number as u32)
    }

    fn memory(&self, _: Space, _: u64, out: &mut [u8]) -> Result<(), String> {
        out.fill(0);
        Ok(())
    }

    fn loaded(&self, address: u64) -> u64 {
        address + 0x10_0000
    }
}

fn location(debug: &DebugInfo, address: u64, name: &str) -> Result<Location, Missing> {
    let variables =
        debug.functions(address).iter().flat_map(|f| debug.variables(f, address)).collect::<Vec<_>>();
    let found = variables.iter().find(|v| v.name == name).unwrap_or_else(|| panic!("{name}"));
    debug.locate(found, address, &Machine)
}

#[test]
fn functions_contain_addresses() {
    let debug = read("work.gfx1100-O1.co", |_| {});
    let names = |address| debug.functions(address).into_iter().map(|f| f.name).collect::<Vec<_>>();
    let scale = debug.function_addresses("scale").unwrap();
    let work = debug.function_addresses("work").unwrap();
    assert_eq!(names(scale.start), ["scale"]);
    assert_eq!(names(scale.end), [""; 0]);
    let inlined = work.clone().find(|address| names(*address).len() == 2).unwrap();
    assert_eq!(names(inlined), ["half_of", "work"]);
    assert_eq!(debug.inlined_calls(inlined), ["work.cl:49"]);
    assert!(debug.has_variable("node") && !debug.has_variable("nodes"));
    assert_eq!(debug.globals().iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["scale_by"]);
}

#[test]
fn optimised_variables_are_in_registers() {
    let debug = read("work.gfx1100-O1.co", |_| {});
    let start = debug.function_addresses("scale").unwrap().start;
    let register = |number| Ok(Location(vec![(Piece::Register { number }, None)]));
    // Arguments are passed in v0 to v2 (DWARF number 1536 is v0).
    assert_eq!(location(&debug, start, "a"), register(1536));
    assert_eq!(location(&debug, start, "node"), register(1538));
    assert_eq!(location(&debug, start, "r"), Err(Missing::OptimisedOut));
}

#[test]
fn unoptimised_variables_are_in_the_frame() {
    let debug = read("work.gfx1100-O0.co", |_| {});
    let at = |function: &str, name: &str| {
        let start = debug.function_addresses(function).unwrap().start;
        location(&debug, start, name).map(|location| location.0[0].0)
    };
    // The frame's address is in s33, which has DWARF number 65.
    assert_eq!(at("scale", "n"), Ok(Piece::Memory { space: Space::Private, address: 65 + 4 }));
    assert_eq!(at("work", "tile"), Ok(Piece::Memory { space: Space::Local, address: 0 }));
    let global = &debug.globals()[0];
    let place = debug.locate(global, 0, &Machine).map(|location| location.0[0].0);
    assert!(matches!(place, Ok(Piece::Memory { space: Space::Generic, address: 0x10_0000.. })), "{place:?}");
}

#[test]
fn types_have_names_and_members() {
    let debug = read("work.gfx1100-O0.co", |_| {});
    let start = debug.function_addresses("scale").unwrap().start;
    let function = &debug.functions(start)[0];
    let variables = debug.variables(function, start);
    let node = variables.iter().find(|v| v.name == "node").unwrap();
    let pointer = debug.type_of(node.kind.unwrap()).unwrap();
    assert_eq!((pointer.name.as_str(), pointer.size), ("Node *", 4));
    let TypeKind::Pointer { space: Space::Private, target: Some(target) } = pointer.kind else {
        panic!("{pointer:?}")
    };
    let target = debug.type_of(target).unwrap();
    let TypeKind::Struct(members) = &target.kind else { panic!("{target:?}") };
    let listed: Vec<_> = members.iter().map(|m| (&*m.name, m.offset, &*m.kind.name)).collect();
    assert_eq!(
        listed,
        [
            ("x", 0, "float"),
            ("n", 4, "int"),
            ("v", 8, "float[2]"),
            ("low", 16, "uchar"),
            ("high", 18, "short"),
            ("heat", 20, "Heat"),
            ("", 24, "union"),
            ("next", 28, "Node *"),
        ]
    );
}

/// Whatever the bytes of the debug information are, reading them ends without a panic.
#[test]
fn damage_is_not_an_error() {
    for seed in 0..64u64 {
        let debug = read("work.gfx1100-O1.co", |bytes| {
            let (start, size) = {
                let file = object::File::parse(&**bytes).unwrap();
                let sections = [".debug_info", ".debug_abbrev", ".debug_loclists", ".debug_rnglists"];
                let section = file.section_by_name(sections[seed as usize % 4]).unwrap();
                section.file_range().unwrap()
            };
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            for _ in 0..1 + seed % 8 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                bytes[(start + (state >> 33) % size) as usize] = (state >> 20) as u8;
            }
        });
        for address in (0x1600..0x2000).step_by(16) {
            for function in debug.functions(address) {
                for variable in debug.variables(&function, address) {
                    let _ = debug.locate(&variable, address, &Machine);
                    let _ = variable.kind.and_then(|kind| debug.type_of(kind));
                }
            }
        }
    }
}
