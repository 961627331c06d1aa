//! The text of a program, for the host and all targets.

use super::expr::LDS;
use super::generate::OWN_BYTES;
use super::tree::{Kernel, Program, Scalar, Step, Ty, render};
use crate::random::Rng;
use std::fmt::Write as _;

const PRELUDE: &str = include_str!("prelude.cl");

/// Bytes of the input, which is also the first kernel's `prev`.
pub const INPUT_BYTES: usize = 4096;
/// Bytes of the elements for global atomics.
pub const ATOMIC_BYTES: usize = 1024;

/// Bytes of the output of a kernel: the slots and own bytes of each work-item. It is also the next kernel's
/// input. Reduced programs have fewer slots.
pub fn output_bytes(program: &Program, kernel: usize) -> usize {
    let own = program.items() * (slots(program) * 8 + OWN_BYTES);
    let least = if kernel + 1 < program.kernels.len() { INPUT_BYTES as u32 } else { 0 };
    own.max(least) as usize
}

/// The number of slots of 8 bytes that each work-item has in the output.
fn slots(program: &Program) -> u32 {
    let mut slots = 1;
    program.clone().blocks(&mut |block| {
        for statement in block {
            let slot = statement.text.strip_prefix("OUT(").and_then(|t| t.split_once(')')?.0.parse().ok());
            slots = slot.map_or(slots, |slot: u32| slots.max(slot + 1));
        }
    });
    slots
}

/// The contents of the input buffer: dwords, and bytes and halves of small numbers.
pub fn input(program: &Program) -> Vec<u8> {
    let mut rng = Rng(program.seed ^ 0x0069_6e70_7574);
    let mut bytes: Vec<u8> = (0..INPUT_BYTES / 4).flat_map(|_| rng.dword().to_le_bytes()).collect();
    bytes[1024..1280].fill_with(|| rng.bits() as u8);
    bytes
}

/// The bits of the scalar arguments `a_i8` to `a_f64`. NaNs are quiet.
pub fn arguments(program: &Program) -> Vec<(Scalar, u64)> {
    let mut rng = Rng(program.seed ^ 0x6172_6773);
    let value = |scalar: Scalar| {
        let bits = match rng.below(3) {
            0 => rng.below(70),
            _ => rng.dword() as u64 | (rng.dword() as u64) << 32,
        };
        let bits = bits & (u64::MAX >> (64 - scalar.bits()));
        let (exponent, quiet) = match scalar {
            Scalar::F16 => (0x7c00, 0x200),
            Scalar::F32 => (0x7f80_0000, 0x40_0000),
            Scalar::F64 => (0x7ff0_0000_0000_0000, 0x8_0000_0000_0000),
            _ => return (scalar, bits),
        };
        (scalar, if bits & exponent == exponent && bits & (quiet * 2 - 1) != 0 { bits | quiet } else { bits })
    };
    Scalar::ALL.into_iter().map(value).collect()
}

/// Returns the source text.
pub fn source(program: &Program) -> String {
    let mut out = String::from(PRELUDE);
    tables(program, &mut out);
    out += "#define GLB __global\n#define LDS __local\n";
    let list = |f: &dyn Fn(&str) -> String| Scalar::ALL.map(|s| f(s.name())).join(", ");
    let _ = writeln!(out, "#define SCALARS {}", list(&|n| format!("{n} a_{n}")));
    let _ = writeln!(out, "#define SCALAR_NAMES {}", list(&|n| format!("a_{n}")));
    let values = arguments(program).into_iter().map(|(s, bits)| match s.is_float() {
        true => format!("AS({}, ({})0x{bits:x}ul)", s.name(), s.unsigned().name()),
        false => format!("({})0x{bits:x}ul", s.name()),
    });
    let _ = writeln!(out, "#define SCALAR_VALUES {}", values.collect::<Vec<_>>().join(", "));
    let _ = writeln!(
        out,
        "#define PARAMETERS PRIV struct STATE *s, PRIV struct ARRAYS *p, LDS struct SHARED *l, GLB const u8 *in, \
         GLB const u8 *prev, GLB u8 *out, GLB u32 *ga, u32 lid, u32 grp, u32 gid, u32 g0, u32 g1, SCALARS\n\
         #define ARGUMENTS s, p, l, in, prev, out, ga, lid, grp, gid, g0, g1, SCALAR_NAMES\n\
         #define ITEMS {}u\n#define own (out + {} + gid * {OWN_BYTES})",
        program.block[0] * program.block[1],
        program.items() * slots(program) * 8,
    );
    functions(program, &mut out);
    for (index, kernel) in program.kernels.iter().enumerate() {
        self::kernel(program, index, kernel, &mut out);
    }
    out += "#ifdef HOST\nvoid program(GLB u8 **b) {\n";
    for k in 0..program.kernels.len() {
        let prev = if k == 0 { 0 } else { 2 * k - 1 };
        let _ = writeln!(
            out,
            "    kernel{k}(b[0], b[{prev}], b[{}], (GLB u32 *)b[{}], SCALAR_VALUES);",
            2 * k + 1,
            2 * k + 2
        );
    }
    out += "}\n#endif\n";
    out
}

fn tables(program: &Program, out: &mut String) {
    let mut rng = Rng(program.seed ^ 0x7461_626c_6573);
    for (name, count) in [("u8", 16), ("i16", 16), ("u32", 16)] {
        let values: Vec<String> = (0..count).map(|_| format!("({name})0x{:x}u", rng.dword())).collect();
        let _ = writeln!(out, "__constant {name} table_{name}[] = {{{}}};", values.join(", "));
    }
    for name in ["f32", "f64"] {
        let values: Vec<String> = (0..8)
            .map(|_| format!("{}.{}e{}", rng.below(9), rng.below(1000), rng.below(20) as i64 - 10))
            .collect();
        let _ = writeln!(out, "__constant {name} table_{name}[] = {{{}}};", values.join(", "));
    }
}

fn functions(program: &Program, out: &mut String) {
    for f in &program.functions {
        let parameters: String =
            f.parameters.iter().enumerate().map(|(i, ty)| format!(", {ty} x{i}")).collect();
        let attribute = if f.noinline { "NOINLINE " } else { "" };
        let _ = writeln!(
            out,
            "static {attribute}{} {}(GLB const u8 *in, u32 n{parameters}) {{\n{}    return {};\n}}",
            f.result,
            f.name,
            render(&f.body, 4),
            f.value.render()
        );
    }
}

/// The text of a kernel's phases, and its body.
struct Body {
    index: usize,
    phases: String,
    device: String,
    host: String,
    count: usize,
}

fn kernel(program: &Program, index: usize, kernel: &Kernel, out: &mut String) {
    let mut body =
        Body { index, phases: String::new(), device: String::new(), host: String::new(), count: 0 };
    body.steps(&kernel.steps, 4);
    let items = program.items();
    let all = format!("{}{}", body.phases, body.device);
    let mentions = |name: &str| all.contains(name);
    // Only what the kernel mentions, so that reduced programs are short.
    let mut fields = String::new();
    let mut state = |ty: Ty, name: String| {
        if mentions(&format!("s->{name}")) {
            let _ = write!(fields, " {ty} {name};");
        }
    };
    for s in Scalar::ALL {
        (0..2).for_each(|i| state(s.into(), format!("{}_{i}", s.name())));
    }
    program.vectors.iter().enumerate().for_each(|(i, ty)| state(*ty, format!("v{i}")));
    let arrays = [
        ("p->w", "u32 w[16];"),
        ("p->f", "f32 f[8];"),
        ("p->v", "u32x4 v[4];"),
        ("p->t", "struct { u8 a; u16 b[2]; u64 c; f32 d; } t[4];"),
        ("p->u", "union { u32 w[8]; u16 h[16]; u8 b[32]; u64 q[4]; } u;"),
    ];
    let arrays: String = arrays.iter().filter(|(n, _)| mentions(n)).map(|(_, t)| format!(" {t}")).collect();
    let lds = LDS.iter().filter(|(n, _)| mentions(&format!("l->{n}")));
    let shared: String = lds.map(|(n, ty)| format!(" {ty} {n}[256];")).collect();
    let slot = match kernel.strided {
        true => format!("((j) * {items} + gid) * 8"),
        false => format!("(gid * {} + (j)) * 8", slots(program)),
    };
    let prefix = format!("kernel{index}");
    let [x, y] = program.block;
    let _ = write!(
        out,
        "#undef STATE\n#undef ARRAYS\n#undef SHARED\n#undef PRIV\n#undef OUT\n\
         #define STATE {prefix}_state\n#define ARRAYS {prefix}_arrays\n#define SHARED {prefix}_shared\n\
         #define PRIV {}\n#define OUT(j) (*(GLB u64 *)(out + {slot}))\n\
         struct STATE {{{fields} u32 end; }};\nstruct ARRAYS {{{arrays} u32 end; }};\nstruct SHARED {{{shared} u32 end; }};\n\
         {}#ifdef HOST\n\
         static void {prefix}(GLB const u8 *in, GLB const u8 *prev, GLB u8 *out, GLB u32 *ga, SCALARS) {{\n\
         \x20 for (u32 grp = 0; grp < {}; grp++) {{\n\
         \x20   struct STATE states[ITEMS] = {{0}}; struct ARRAYS arrays[ITEMS] = {{0}}; struct SHARED shared = {{0}};\n\
         \x20   LDS struct SHARED *l = (LDS struct SHARED *)(u64)&shared;\n    u32 g0 = 0, g1 = 0;\n{}  }}\n}}\n\
         #else\n\
         __kernel {}__attribute__((reqd_work_group_size({x}, {y}, 1)))\n\
         void {prefix}(GLB const u8 *in, GLB const u8 *prev, GLB u8 *out, GLB u32 *ga, SCALARS) {{\n\
         \x20   u32 lid = __builtin_amdgcn_workitem_id_x() + {x} * __builtin_amdgcn_workitem_id_y();\n\
         \x20   u32 grp = __builtin_amdgcn_workgroup_id_x() + {} * __builtin_amdgcn_workgroup_id_y();\n\
         \x20   u32 gid = grp * ITEMS + lid, g0 = 0, g1 = 0;\n\
         \x20   __local struct SHARED shared;\n    LDS struct SHARED *l = &shared;\n\
         \x20   struct STATE state = {{0}}; PRIV struct STATE *s = &state;\n\
         \x20   struct ARRAYS arrays = {{0}}; PRIV struct ARRAYS *p = &arrays;\n\
         \x20   for (u32 i = lid; i < sizeof(shared) / 4; i += ITEMS) ((LDS u32 *)l)[i] = 0;\n    BARRIER();\n{}}}\n#endif\n",
        if kernel.generic { "" } else { "__private" },
        body.phases,
        program.groups[0] * program.groups[1],
        body.host,
        kernel.attributes,
        program.groups[0],
        body.device,
    );
}

/// Declares a work-item's variables in the host's loops.
const ITEM: &str =
    "PRIV struct STATE *s = &states[lid]; PRIV struct ARRAYS *p = &arrays[lid]; u32 gid = grp * ITEMS + lid;";

impl Body {
    fn steps(&mut self, steps: &[Step], indent: usize) {
        for step in steps {
            self.step(step, indent);
        }
    }

    fn both(&mut self, line: &str, indent: usize) {
        for out in [&mut self.device, &mut self.host] {
            let _ = writeln!(out, "{:indent$}{line}", "");
        }
    }

    fn step(&mut self, step: &Step, indent: usize) {
        match step {
            Step::Phase { noinline, body } => {
                let name = format!("kernel{}_phase{}", self.index, self.count);
                self.count += 1;
                let attribute = if *noinline { "static NOINLINE" } else { "INLINE" };
                let _ =
                    writeln!(self.phases, "{attribute} void {name}(PARAMETERS) {{\n{}}}", render(body, 4));
                let _ = writeln!(self.device, "{:indent$}{name}(ARGUMENTS);\n{:indent$}BARRIER();", "", "");
                let _ = writeln!(
                    self.host,
                    "{:indent$}for (u32 lid = 0; lid < ITEMS; lid++) {{ {ITEM} {name}(ARGUMENTS); }}",
                    ""
                );
            }
            Step::Loop { depth, count, steps } => {
                let (g, count) = (format!("g{depth}"), count.render());
                self.both(&format!("for ({g} = 0; {g} < ({count}); {g}++) {{"), indent);
                self.steps(steps, indent + 4);
                self.both("}", indent);
            }
            Step::If { condition, steps } => {
                self.both(&format!("if ({}) {{", condition.render()), indent);
                self.steps(steps, indent + 4);
                self.both("}", indent);
            }
            Step::Wave { operation, target, condition, x, y } => self.wave(
                operation,
                [&target.render(), &condition.render(), &x.render(), &y.render()],
                target.ty,
                indent,
            ),
        }
    }

    fn wave(&mut self, operation: &str, [target, condition, x, y]: [&str; 4], ty: Ty, indent: usize) {
        let _ = writeln!(
            self.device,
            "{:indent$}if ({condition}) {{ u32 x_ = {x}, y_ = {y}; {target} = ({ty}){operation}(x_, y_); }}",
            ""
        );
        let _ = writeln!(
            self.host,
            "{0:indent$}for (u32 first = 0; first < ITEMS; first += wave_size) {{\n\
             {0:indent$}  struct wave w = {{0}};\n\
             {0:indent$}  for (u32 i = 0; i < wave_size && first + i < ITEMS; i++) {{\n\
             {0:indent$}    u32 lid = first + i; {ITEM}\n\
             {0:indent$}    if ({condition}) {{ w.active |= 1ul << i; w.x[i] = {x}; w.y[i] = {y}; }}\n\
             {0:indent$}  }}\n\
             {0:indent$}  if (w.active) {operation}(&w);\n\
             {0:indent$}  for (u32 i = 0; i < wave_size && first + i < ITEMS; i++) {{\n\
             {0:indent$}    u32 lid = first + i; {ITEM}\n\
             {0:indent$}    if (w.active >> i & 1) {target} = ({ty})w.r[i];\n\
             {0:indent$}  }}\n{0:indent$}}}",
            ""
        );
    }
}
