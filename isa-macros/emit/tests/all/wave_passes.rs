//! Tests of the passes over bodies that run once per wave: vectors, products and lane moves.

use crate::SET;
use crate::passes::handlers;
use isa_lower::ir::*;
use isa_lower::{lower, visit};

/// Returns the vector statements of a body that runs once per wave.
fn vectors(body: &str) -> Vec<Vector> {
    let handlers = handlers("V_SWAP_B32", body);
    let Body::Once(once) = &handlers.general else { panic!("{handlers}") };
    let mut found = Vec::new();
    visit::each_stmt(&once.body, &mut |s| {
        if let Stmt::Vector(vector) = s {
            found.push((**vector).clone());
        }
    });
    found
}

/// The declarations of the loops below: two arrays, and `k`, which no loop changes.
const DECLARED: &str =
    "declare a : 32'U[64]; declare b : 32'U[64]; k = M0; a[63] = k; b[63] = k; last = VGPR[0U][VDST];";

/// Returns the vector statements of a loop, in a body that uses both arrays afterwards.
fn vectors_of(head: &str, statements: &str) -> Vec<Vector> {
    let used = "VGPR[0U][VDST] = a[0] + b[0] + last;";
    vectors(&format!("{DECLARED} for n in {head} do {statements} endfor; {used}"))
}

#[test]
fn loops_over_consecutive_elements_are_vectors() {
    let of = |statements: &str| vectors_of("0 : 15", statements);
    let sum = of("a[k * 16U + 32'U(n)] = a[k * 16U + 32'U(n)] + b[32'U(n)] * k;");
    assert!(matches!(&sum[..], [Vector { count: 16, lanes: false, from: 0, .. }]), "{sum:?}");
    for statements in [
        // Locals of an iteration.
        "x = b[n]; y = x + 1U; a[n] = y;",
        "VGPR[n][VDST] = b[n];",
        "if b[n] > 5U then a[n] = 1U; endif;",
        "if b[n] > 5U then if b[n] < 7U then a[n] = 1U; endif; endif;",
        // Indices that increase by 1.
        "a[n + 3] = b[n];",
        "a[32'U(n) + k] = b[k + 32'U(n)];",
        "a[n] = b[n + 20 - 3];",
        // Registers of other lanes, and the same element in all iterations.
        "a[n] = VGPR[n + 1][VDST];",
        "a[n] = VGPR[n * 2][VDST];",
        "a[n] = VGPR[3][VDST] + b[2];",
        "a[n] = operandLane(S0, n, 0);",
        "a[n] = operandLane(S0, n * 2, 0);",
        // Two registers of the same lane.
        "x = VGPR[n][VDST]; VGPR[n][VDST] = VGPR[n][k]; VGPR[n][k] = x;",
    ] {
        assert_eq!(of(statements).len(), 1, "{statements}");
    }
    for statements in [
        // Elements that are not consecutive.
        "a[n * 2] = b[n];",
        "a[n + n] = b[n];",
        "a[32'U(n) + k - 32'U(n)] = b[n];",
        "a[k - 32'U(n)] = b[n];",
        "a[k + 3U] = b[n];",
        "a[n] = b[n * 2];",
        "VGPR[n * 2][VDST] = b[n];",
        // A register that varies.
        "VGPR[n][n] = b[n];",
        "VGPR[3][n] = b[n];",
        "a[n] = VGPR[n][n];",
        "a[n] = VGPR[n * 2][n];",
        "a[n] = operandLane(S0, n, n);",
        "a[n] = operandLane(S0, n * 2, n);",
        // Written by another iteration.
        "a[n + 1] = a[n];",
        "a[n] = a[63];",
        "VGPR[n][VDST] = VGPR[n + 1][VDST];",
        "VGPR[n][VDST] = VGPR[n * 2][VDST];",
        "VGPR[n][VDST] = VGPR[3][VDST];",
        "VGPR[n][VDST] = operandLane(S0, n + 1, 0);",
        "VGPR[n][VDST] = b[n]; VGPR[n + 16][VDST] = b[n];",
        // Written twice, or earlier in this iteration.
        "a[n] = b[n]; a[n + 16] = b[n];",
        "a[n] = b[n]; b[n] = a[n];",
        "VGPR[n][VDST] = b[n]; a[n] = VGPR[n][VDST];",
        "x = b[n]; if x > 5U then x = 1U; endif; a[n] = x;",
        // Both branches write.
        "if b[n] > 5U then a[n] = 1U; else a[n] = 2U; endif;",
        "if b[n] > 5U then a[n] = 1U; elsif b[n] > 3U then a[n] = 2U; endif;",
        // Memory, and a message.
        "a[n] = LDS[64'U(n)].u32;",
        "a[n] = sendmsg_rtn(32'U(n)).u32;",
        // A reduction over all iterations, and locals that are read after the loop.
        "k = k + b[n]; a[n] = k;",
        "k = b[n]; a[n] = k; endfor; for n in 0 : 3 do a[n] = k;",
        "last = b[n]; a[n] = last;",
    ] {
        assert_eq!(of(statements), [], "{statements}");
    }
}

/// The bounds must be constants, 8 to 32 iterations apart, or all lanes of the wave.
/// Returns the conversions of each vector statement of a loop.
fn conversions(statements: &str) -> Vec<usize> {
    let count = |vector: &Vector| {
        let mut count = 0;
        let mut values =
            |v| visit::each_in(v, &mut |v| count += matches!(v.kind, ValueKind::Conversion(..)) as usize);
        vector.writes.iter().for_each(|write| values(&write.value));
        count
    };
    vectors_of("0 : 15", statements).iter().map(count).collect()
}

/// A field that selects between conversions has a loop for each.
#[test]
fn loops_with_different_conversions_have_variants() {
    let chosen = "(OPSEL == 0U ? fp8_to_f32(x.fp8) : OPSEL == 1U ? bf8_to_f32(x.bf8) : 1.0F).u32";
    assert_eq!(conversions(&format!("x = b[n]; a[n] = {chosen};")), [1, 1, 0]);
    // What is known of the field decides other conditions.
    let small = "(OPSEL & 2U) == 0U ? fp8_to_f32(x.fp8).u32 : bf8_to_f32(x.bf8).u32";
    assert_eq!(conversions(&format!("x = b[n]; a[n] = OPSEL == 5U ? 3U + ({small}) : 0U;")), [1, 0]);
    for statements in [
        // The same conversion, or a condition that is no field's.
        "x = fp8_to_f32(b[n].fp8); a[n] = (OPSEL == 0U ? -x : x).u32;",
        "x = b[n]; a[n] = (x == 0U ? fp8_to_f32(x.fp8) : bf8_to_f32(x.bf8)).u32;",
        "x = b[n]; a[n] = (k == 0U ? fp8_to_f32(x.fp8) : bf8_to_f32(x.bf8)).u32;",
    ] {
        assert_eq!(conversions(statements).len(), 1, "{statements}");
    }
    // Too many variants.
    let many: Vec<String> =
        (0..9).map(|n| format!("OPSEL == {n}U ? fp8_to_f32(x.fp8).u32 + {n}U : ")).collect();
    assert_eq!(conversions(&format!("x = b[n]; a[n] = {}0U;", many.concat())), [9]);
}

#[test]
fn vectors_have_8_to_32_elements_or_all_lanes() {
    let shape = |head: &str| match &vectors_of(head, "a[n] = b[n];")[..] {
        [] => None,
        [vector] => Some((vector.from, vector.count, vector.lanes)),
        more => panic!("{more:?}"),
    };
    assert_eq!(shape("2 : 9"), Some((2, 8, false)));
    assert_eq!(shape("0 : 31"), Some((0, 32, false)));
    assert_eq!(shape("0 : WAVE_SIZE - 1"), Some((0, 32, true)));
    for head in [
        "2 : 8",
        "0 : 32",
        "9 : 2",
        "1 : WAVE_SIZE - 1",
        "0 : WAVE_SIZE - 2",
        "0 : VGPR_SIZE - 1",
        "0 : WAVE_SIZE + 1",
        "0 : 32'I(M0)",
    ] {
        assert_eq!(shape(head), None, "{head}");
    }
}

#[test]
fn loops_over_all_lanes_are_vectors_of_each_half() {
    let found = vectors(
        "declare r : 32'U[64];
         for lane in 0 : WAVE_SIZE - 1 do
           if EXEC.u64[lane] then
             from = VGPR[lane][SRC0.u32].u32 & 63U;
             r[lane] = from;
           endif
         endfor;
         for lane in 0 : WAVE_SIZE - 1 do
           if EXEC.u64[lane] then
             VGPR[lane][VDST] = r[lane];
           endif
         endfor",
    );
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|v| v.lanes && v.count == 32 && v.writes[0].when.is_some()));
}

/// Matrix instructions become products: dense and sparse, of floats and of integers with 64-bit accumulators.
#[test]
fn matrix_instructions_are_products() {
    let products = |name: &str| -> Vec<(ElementType, bool)> {
        let mut found = Vec::new();
        for op in SET.operations.iter().filter(|op| op.name == name) {
            let Body::Once(once) = lower(op).general else { panic!("{name}") };
            let before = found.len();
            visit::each_stmt(&once.body, &mut |s| {
                if let Stmt::Product(product) = s {
                    found.push((product.element, product.sparse_rows.is_some()));
                }
            });
            assert!(found.len() > before, "{name}: {op:?}");
        }
        found
    };
    let (floats, nearest, integers) = (ElementType::F32, ElementType::F32Nearest, ElementType::Integer);
    assert_eq!(products("V_WMMA_F32_16X16X16_F16"), [(floats, false); 2]);
    assert_eq!(products("V_WMMA_I32_16X16X16_IU8"), [(integers, false); 2]);
    assert_eq!(products("V_WMMA_I32_16X16X16_IU4"), [(integers, false); 2]);
    assert_eq!(products("V_SWMMAC_F32_16X16X32_F16"), [(floats, true)]);
    assert_eq!(products("V_SWMMAC_BF16_16X16X32_BF16"), [(floats, true)]);
    assert_eq!(products("V_SWMMAC_I32_16X16X64_IU4"), [(integers, true)]);
    assert_eq!(products("V_MFMA_I32_32X32X16_I8"), [(integers, false)]);
    assert_eq!(products("V_MFMA_F32_16X16X16_F16"), [(nearest, false)]);
    assert_eq!(products("V_MFMA_SCALE_F32_32X32X64_F8F6F4"), [(nearest, false)]);
    assert_eq!(products("V_SMFMAC_F32_32X32X16_F16"), [(nearest, true)]);
}

/// Lowers loops over arrays; returns the printed products, and whether the handlers depend on the float mode.
fn products(loops: &str) -> (Vec<String>, bool) {
    let declared = "declare a : 32'F[64]; declare b : 32'F[128]; declare d : 32'F[256];
        declare x : 32'I[64]; declare y : 32'I[128]; declare sum : 64'I[256]; declare at : 32'U[64];
        base = M0; declare wide : 128'I[256]; a[63] = 1.0F; b[63] = 1.0F; d[63] = 1.0F;
        x[63] = 1; y[63] = 1; sum[63] = 1LL; wide[63] = 1; at[63] = 1U;";
    let used = "VGPR[0U][VDST] = a[0] + b[0]; VGPR[1U][VDST] = d[0];
        VGPR[2U][VDST] = at[0] + base + (sum[0] + 64'I(x[0]) + 64'I(y[0]) + 64'I(wide[0])).u32;";
    let handlers = handlers("V_SWAP_B32", &format!("{declared}\n{loops}\n{used}"));
    let found = handlers
        .to_string()
        .lines()
        .filter_map(|l| Some(l.split_once("product of ")?.1.to_owned()))
        .collect();
    (found, handlers.floats_f32)
}

/// Returns the product of three loops around a statement, if they are one.
fn product([k, i, j]: [&str; 3], statement: &str) -> Option<String> {
    let loops = format!("for k in {k} do for i in {i} do for j in {j} do {statement} endfor endfor endfor;");
    products(&loops).0.pop()
}

/// The bounds of the loops: K, rows, columns.
const BOUNDS: [&str; 3] = ["0 : 3", "0 : 7", "0 : 15"];

#[test]
fn loops_over_multiplications_and_additions_are_products() {
    for (statement, expected) in [
        (
            "d[i * 16 + j] = fma(a[i * 4 + k], b[k * 16 + j], d[i * 16 + j]);",
            "8 x 4 and 4 x 16: t2[((0 * 0x10) + 0) + 0 k + 16 row..] += t0[((0 * 4) + 0) + 1 k + 4 row..] * t1[((0 * 0x10) + 0) + 16 k + 0 row..]",
        ),
        (
            "d[i * 16 + j] = fma_nearest(a[i * 4 + k], b[k * 16 + j], d[i * 16 + j]);",
            "8 x 4 and 4 x 16, nearest: t2[((0 * 0x10) + 0) + 0 k + 16 row..] += t0[((0 * 4) + 0) + 1 k + 4 row..] * t1[((0 * 0x10) + 0) + 16 k + 0 row..]",
        ),
        // Other layouts and starts.
        (
            "d[16 * i + j + 32] = fma(a[base + 32'U(i + k * 8)], b[16 * k + j], d[16 * i + j + 32]);",
            "8 x 4 and 4 x 16: t2[(((0x10 * 0) + 0) + 0x20) + 0 k + 16 row..] += t0[(t7 + (0 + (0 * 8))) + 8 k + 1 row..] * t1[((0x10 * 0) + 0) + 16 k + 0 row..]",
        ),
        // Rows of B by number.
        (
            "d[i * 16 + j] = fma(a[i * 4 + k], b[at[i * 4 + k] * 16U + 32'U(j)], d[i * 16 + j]);",
            "8 x 4 and 4 x 16: t2[((0 * 0x10) + 0) + 0 k + 16 row..] += t0[((0 * 4) + 0) + 1 k + 4 row..] * t1[0 + 0 k + 0 row..] at 16 * t6[((0 * 4) + 0) + 1 k + 4 row..]",
        ),
        (
            "sum[i * 16 + j] = sum[i * 16 + j] + 64'I(x[i * 4 + k]) * 64'I(y[k * 16 + j]);",
            "8 x 4 and 4 x 16, integers: t5[((0 * 0x10) + 0) + 0 k + 16 row..] += t3[((0 * 4) + 0) + 1 k + 4 row..] * t4[((0 * 0x10) + 0) + 16 k + 0 row..]",
        ),
    ] {
        assert_eq!(product(BOUNDS, statement).as_deref(), Some(expected), "{statement}");
    }
}

/// A product starts all loops at zero, reads one element of A, B and D each, and has strides.
#[test]
fn similar_loops_are_not_products() {
    let plain = "d[i * 16 + j] = fma(a[i * 4 + k], b[k * 16 + j], d[i * 16 + j]);";
    for bounds in [
        ["1 : 3", "0 : 7", "0 : 15"],
        ["0 : 3", "1 : 7", "0 : 15"],
        ["0 : 3", "0 : 7", "1 : 15"],
        ["0 : 3", "0 : 7", "0 : WAVE_SIZE - 1"],
        ["0 : 3", "0 : 32'I(M0)", "0 : 15"],
    ] {
        assert_eq!(product(bounds, plain), None, "{bounds:?}");
    }
    for statement in [
        "d[i * 16 + j] = fma(a[i * 4 + k], b[k * 16 + j], d[i * 16 + j + 16]);",
        "if k > 1 then d[i * 16 + j] = fma(a[i * 4 + k], b[k * 16 + j], d[i * 16 + j]); endif",
        "d[i * 16 + j] = fma(a[i * 4 + k], b[k * 16 + j], d[i * 16 + j]); a[j] = 1.0F;",
        // The factor of the row varies with the column, that of the column does not, or both do.
        "d[i * 16 + j] = fma(a[k * 4 + j], b[k * 16 + j], d[i * 16 + j]);",
        "d[i * 16 + j] = fma(a[i * 4 + k], b[k * 16], d[i * 16 + j]);",
        "d[i * 16 + j] = fma(b[k * 16 + j], a[i * 4 + k], d[i * 16 + j]);",
        // B depends on the row, D on K.
        "d[i * 16 + j] = fma(a[i * 4 + k], b[k * 16 + i + j], d[i * 16 + j]);",
        "d[i * 16 + k + j] = fma(a[i * 4 + k], b[k * 16 + j], d[i * 16 + k + j]);",
        "d[i * 16 + j] = fma(a[i * 4 + k], b[at[i * 4 + k] * 16U + 32'U(k + j)], d[i * 16 + j]);",
        // Row numbers that vary with the column.
        "d[i * 16 + j] = fma(a[i * 4 + k], b[at[j] * 16U + 32'U(j)], d[i * 16 + j]);",
        // An array is read and written.
        "d[i * 16 + j] = fma(d[i * 16 + k + 128], b[k * 16 + j], d[i * 16 + j]);",
        "d[i * 16 + j] = fma(a[i * 4 + k], d[k * 16 + j], d[i * 16 + j]);",
        // Indices without a stride.
        "d[i * 16 + j] = fma(a[i * k], b[k * 16 + j], d[i * 16 + j]);",
        "d[i * 16 + j] = fma(a[i * 4 + k + 32'I(at[3])], b[k * 16 + j], d[i * 16 + j]);",
        // Another operation.
        "d[i * 16 + j] = fma_rtz(a[i * 4 + k], b[k * 16 + j], d[i * 16 + j]);",
        "d[i * 16 + j] = d[i * 16 + j] + a[i * 4 + k] * b[k * 16 + j];",
        "sum[i * 16 + j] = sum[i * 16 + j] - 64'I(x[i * 4 + k]) * 64'I(y[k * 16 + j]);",
        "sum[i * 16 + j] = sum[i * 16 + j] + 64'I(x[i * 4 + k]) * 64'I(y[k * 16 + j].u32);",
        "sum[i * 16 + j] = sum[i * 16 + j] + 64'I(x[i * 4 + k].u32) * 64'I(y[k * 16 + j]);",
        "sum[i * 16 + j] = sum[i * 16 + j] + 64'I(x[i * 4 + k].i16) * 64'I(y[k * 16 + j].i16);",
        "wide[i * 16 + j] = wide[i * 16 + j] + 128'I(x[i * 4 + k]) * 128'I(y[k * 16 + j]);",
        "x[i * 4 + j] = x[i * 4 + j] + y[i * 4 + k] * y[k * 16 + j];",
    ] {
        assert_eq!(product(BOUNDS, statement), None, "{statement}");
    }
}

/// Products test the float mode at run time, so that one handler serves all modes, unless other code of the
/// body rounds or flushes f32.
#[test]
fn handlers_of_products_are_compiled_once_for_all_modes() {
    let product = "for k in 0 : 3 do for i in 0 : 7 do for j in 0 : 15 do
        d[i * 16 + j] = fma(a[i * 4 + k], b[k * 16 + j], d[i * 16 + j]); endfor endfor endfor;";
    let (found, modes) = products(product);
    assert_eq!((found.len(), modes), (1, true), "`a[0] + b[0]` is rounded");
    let modes = |statement: &str| {
        let body = format!(
            "declare a : 32'F[64]; declare b : 32'F[128]; declare d : 32'F[256]; declare h : 16'F[64];
             a[63] = 1.0F; b[63] = 1.0F; d[63] = 1.0F; h[63] = 1.0; f = M0.f32;
             {statement}
             VGPR[0U][VDST] = a[0]; VGPR[1U][VDST] = b[0]; VGPR[2U][VDST] = d[0]; VGPR[3U][VDST] = 32'U(h[0].u16);
             VGPR[4U][VDST] = f;"
        );
        handlers("V_SWAP_B32", &body).floats_f32
    };
    for statement in [
        "",
        "f = f16_to_f32(h[1]);",
        "f = fp8_to_f32(f.fp8);",
        "f = bf8_to_f32(f.bf8);",
        "f = 32'F(h[1]);",
        "h[0] = h[1] + h[2];",
        "f = isINF(f) ? 1.0F : f;",
        "for n in 0 : 15 do a[n] = f16_to_f32(h[n]); endfor;",
    ] {
        assert!(!modes(&format!("{product} {statement}")), "{statement}");
    }
    for statement in [
        "f = f * 3.0F;",
        "f = cvtToQuietNAN(f);",
        "h[0] = f32_to_f16(f);",
        "h[0] = 16'F(f);",
        "f = 32'F(f.i16);",
        "f = 2.0F ** f;",
        "f = exp2(f);",
        "f = isDENORM(f) ? 1.0F : f;",
        "for n in 0 : 15 do h[n] = f32_to_f16(a[n]); endfor;",
    ] {
        assert!(modes(&format!("{product} {statement}")), "{statement}");
    }
    assert!(modes("f = f16_to_f32(h[1]);"), "no product");
}

/// Lowers two loops over all lanes: the first computes an array of values, the second writes registers.
/// Returns the statements that hosts with SIMD vectors run, if these differ.
fn with_vectors(body: &str) -> Option<Vec<Stmt>> {
    let Body::Once(once) = handlers("DS_BPERMUTE_B32", body).general else { panic!("{body}") };
    once.with_vectors
}

/// A loop over all lanes.
fn lanes(body: &str) -> String {
    format!("for lane in 0 : WAVE_SIZE - 1 do {body} endfor;")
}

/// A loop over all active lanes.
fn active(body: &str) -> String {
    lanes(&format!("if EXEC.u64[lane] then {body} endif"))
}

/// Returns the lane move that replaces loops, if there is one.
fn lane_move(loops: &[String]) -> Option<MoveLanes> {
    let declared =
        "declare result : 32'B[64]; declare kept : 32'B[64]; declare table : 32'U[64]; table[3] = M0;";
    with_vectors(&format!("{declared}\n{}", loops.join("\n")))?.into_iter().find_map(|stmt| match stmt {
        Stmt::MoveLanes(moves) => Some(*moves),
        _ => None,
    })
}

const FROM: &str = "from = (operandLane(VADDR, lane, 0).u32 >> 2U) & (WAVE_SIZE - 1U);";
const TAKE: &str = "result[lane] = operandLane(DATA0, from, 0);";
const TAKE_ACTIVE: &str = "result[lane] = EXEC.u64[from] ? operandLane(DATA0, from, 0).u32 : 0U;";
const WRITE: &str = "VGPR[lane][VDST] = result[lane];";

/// Returns the printed conditions under which lanes take a value and write it.
fn pulled(loops: &[String]) -> Option<[String; 2]> {
    match lane_move(loops)?.direction {
        MoveDirection::Pull { fetch, bound } => Some([fetch, bound].map(|value| value.to_string())),
        MoveDirection::Push => None,
    }
}

/// Bodies in which each lane takes the value of one other lane are lane moves.
#[test]
fn values_of_other_lanes_are_pulled() {
    let conditions = |loops: &[String], expected: [&str; 2]| {
        assert_eq!(pulled(loops), Some(expected.map(str::to_owned)), "{loops:?}");
    };
    let of = |value: &str, write: &str| [active(&format!("{FROM} {value}")), active(write)];
    let again = format!("{FROM} if EXEC.u64[from] then {WRITE} endif;");
    conditions(&of(TAKE, WRITE), ["1", "1"]);
    conditions(&of(TAKE_ACTIVE, WRITE), ["0", "1"]);
    // A lane whose source is inactive keeps its value.
    conditions(&of(TAKE_ACTIVE, &again), ["0", "0"]);
    // A register by number, and a lane number in several steps.
    conditions(&of("from = from ^ 1U; result[lane] = VGPR[from][M0];", WRITE), ["1", "1"]);
    // Conditions that are the same for all lanes.
    let either = "result[lane] = (OFFSET[0] || EXEC.u64[from]) ? operandLane(DATA0, from, 0).u32 : 0U;";
    conditions(&of(either, WRITE), ["((field.offset >> 0) & 1)", "1"]);
    let again = format!("{FROM} if OFFSET[1] || OFFSET[0] || EXEC.u64[from] then {WRITE} endif;");
    conditions(&of(either, &again), ["((field.offset >> 0) & 1)", "((field.offset >> 1) & 1)"]);
    // The same condition, kept in an array.
    let kept = |bit: &str, condition: &str| {
        let taken = format!("{FROM} taken = OFFSET[0] || EXEC.u64[from]; kept[lane] = {bit};");
        let value = "result[lane] = taken ? operandLane(DATA0, from, 0).u32 : 0U;";
        [active(&format!("{taken} {value}")), active(&format!("if {condition} then {WRITE} endif;"))]
    };
    conditions(&kept("32'U(taken)", "kept[lane].u32 != 0U"), ["((field.offset >> 0) & 1)", "0"]);
    conditions(&kept("taken ? 1U : 0U", "kept[lane].u32 != 0U"), ["((field.offset >> 0) & 1)", "0"]);
    for (bit, condition) in [
        ("32'U(taken)", "kept[lane].u32 != 1U"),
        ("32'U(taken)", "kept[lane].u32 == 0U"),
        ("taken ? 0U : 1U", "kept[lane].u32 != 0U"),
        ("taken ? 1U : 2U", "kept[lane].u32 != 0U"),
        ("32'U(taken)", "kept[lane ^ 1].u32 != 0U"),
    ] {
        assert_eq!(pulled(&kept(bit, condition)), None, "{bit}, {condition}");
    }
    // All 64 lanes.
    let all = |body: &str| format!("for lane in 0 : 63 do if EXEC.u64[lane] then {body} endif endfor;");
    conditions(&[all(&format!("{FROM} {TAKE}")), all(WRITE)], ["1", "1"]);
}

#[test]
fn similar_bodies_are_not_moves_of_lanes() {
    let of = |value: &str, write: &str| [active(&format!("{FROM} {value}")), active(write)];
    for value in [
        // The EXEC bit of the wrong lane, another mask's bit or two bits, a default other than zero.
        "result[lane] = EXEC.u64[lane] ? operandLane(DATA0, from, 0).u32 : 0U;",
        "result[lane] = VCC.u64[from] ? operandLane(DATA0, from, 0).u32 : 0U;",
        "result[lane] = EXEC.u64[from +: 2] ? operandLane(DATA0, from, 0).u32 : 0U;",
        "result[lane] = EXEC.u64[from] ? operandLane(DATA0, from, 0).u32 : 1U;",
        "result[lane] = EXEC.u64[from] ? 0U : operandLane(DATA0, from, 0).u32;",
        // A condition that varies.
        "result[lane] = (from > 3U || EXEC.u64[from]) ? operandLane(DATA0, from, 0).u32 : 0U;",
        // A sum, the operand's second dword, a register that varies.
        "result[lane] = operandLane(DATA0, from, 0).u32 + 1U;",
        "result[lane] = operandLane(DATA0, from, 1);",
        "result[lane] = VGPR[from][from];",
        // Another lane's element, two conditions, two branches.
        "result[lane ^ 1] = operandLane(DATA0, from, 0);",
        "if from > 3U then result[lane] = operandLane(DATA0, from, 0); endif;",
        "if from > 3U then result[lane] = operandLane(DATA0, from, 0); else result[lane] = 0U; endif;",
        // A lane number from an array.
        "result[lane] = operandLane(DATA0, table[lane] & 31U, 0);",
    ] {
        assert_eq!(pulled(&of(value, WRITE)), None, "{value}");
    }
    for write in [
        "VGPR[lane][VDST] = result[lane ^ 1];",
        "VGPR[lane ^ 1][VDST] = result[lane];",
        "VGPR[lane][lane] = result[lane];",
        "VGPR[lane][VDST] = result[lane]; VGPR[lane][VDST + 1U] = result[lane];",
        "if result[lane].u32 != 0U then VGPR[lane][VDST] = result[lane]; endif;",
        "if lane > 3 then VGPR[lane][VDST] = result[lane]; endif;",
        "if OFFSET[0] then VGPR[lane][VDST] = result[lane]; else VGPR[lane][VDST] = 0U; endif;",
    ] {
        assert_eq!(pulled(&of(TAKE_ACTIVE, write)), None, "{write}");
    }
    let compute = format!("{FROM} {TAKE}");
    for loops in [
        // Inactive lanes compute or write.
        [lanes(&compute), active(WRITE)],
        [active(&compute), lanes(WRITE)],
        // Only some lanes.
        [
            format!("for lane in 1 : WAVE_SIZE - 1 do if EXEC.u64[lane] then {compute} endif endfor;"),
            active(WRITE),
        ],
        [active(&compute), format!("for lane in 0 : 31 do if EXEC.u64[lane] then {WRITE} endif endfor;")],
        [lanes(&format!("if EXEC.u64[lane] then {compute} else result[lane] = 1U; endif")), active(WRITE)],
        [
            lanes(&format!(
                "if EXEC.u64[lane] then {compute} elsif VCC.u64[lane] then result[lane] = 1U; endif"
            )),
            active(WRITE),
        ],
    ] {
        assert_eq!(pulled(&loops), None, "{loops:?}");
    }
}

/// The array and the locals must have no other use.
#[test]
fn other_uses_of_values_keep_the_loops() {
    let moves = |declared: &str, before: &str, after: &str| {
        let loops = [active(&format!("{FROM} {TAKE}")), active(WRITE)].join("\n");
        with_vectors(&format!("{declared}\n{before}\n{loops}\n{after}"))
            .is_some_and(|body| visit::any_stmt(&body, &|s| matches!(s, Stmt::MoveLanes(_))))
    };
    let of = |before: &str, after: &str| {
        moves("declare result : 32'B[64]; declare other : 32'B[64];", before, after)
    };
    assert!(of("other[3] = 1U; x = M0;", "VGPR[0U][VDST] = other[0]; VGPR[1U][VDST] = x;"));
    assert!(!moves("declare result : 32'B[63];", "", ""));
    assert!(!moves("declare result : 16'B[64];", "", ""));
    assert!(!of("", "VGPR[0U][VDST] = result[0];"));
    assert!(!of("result[3] = 1U;", ""));
    assert!(!of("from = 1U;", ""));
    assert!(!of("from = 1U;", "VGPR[0U][VDST] = from;"));
    assert!(!of("from = 1U; from = from + 1U;", ""));
}

/// Bodies in which each lane sends its value to one other lane are lane moves, too.
#[test]
fn values_are_pushed_to_other_lanes() {
    const TO: &str = "to = (operandLane(VADDR, lane, 0).u32 >> 2U) & (WAVE_SIZE - 1U);";
    const CLEAR: &str = "result[lane] = 0U;";
    const SEND: &str = "result[to] = operandLane(DATA0, lane, 0);";
    let send = |send: &str| active(&format!("{TO} {send}"));
    let pushed =
        |loops: [String; 3]| lane_move(&loops).is_some_and(|moves| moves.direction == MoveDirection::Push);
    assert!(pushed([lanes(CLEAR), send(SEND), active(WRITE)]));
    for (clear, sent, write) in [
        (active(CLEAR), send(SEND), active(WRITE)),
        (lanes("result[lane] = 1U;"), send(SEND), active(WRITE)),
        (lanes("result[lane ^ 1] = 0U;"), send(SEND), active(WRITE)),
        (lanes("kept[lane] = 0U;"), send(SEND), active(WRITE)),
        (lanes(CLEAR), lanes(&format!("{TO} {SEND}")), active(WRITE)),
        (lanes(CLEAR), send("result[to] = operandLane(DATA0, lane ^ 1, 0);"), active(WRITE)),
        (lanes(CLEAR), send("kept[to] = operandLane(DATA0, lane, 0);"), active(WRITE)),
        (lanes(CLEAR), send("result[to + table[lane]] = operandLane(DATA0, lane, 0);"), active(WRITE)),
        (lanes(CLEAR), send(SEND), active(&format!("if OFFSET[0] then {WRITE} endif;"))),
    ] {
        let loops = [clear, sent, write];
        assert!(!pushed(loops.clone()), "{loops:?}");
    }
}

/// Statements inside others are rewritten, too, in each branch.
#[test]
fn moves_and_tests_of_exec_are_found_in_branches() {
    let moves = [active(&format!("{FROM} {TAKE}")), active(WRITE)].join("\n");
    let tests = active("VGPR[lane][VDST] = 1U;");
    let body = |found: &str| {
        format!(
            "declare result : 32'B[64]; if M0[0] then {found} else {} endif",
            found.replace("VDST", "VDST + 1U").replace("result", "other").replace("from", "origin")
        )
    };
    for (found, is_move) in [(&moves, true), (&tests, false)] {
        let body = format!("declare other : 32'B[64]; {}", body(found));
        let with_vectors = with_vectors(&body).unwrap_or_else(|| panic!("{body}"));
        let mut count = 0;
        visit::each_stmt(&with_vectors, &mut |s| match s {
            Stmt::MoveLanes(_) => count += is_move as u32,
            Stmt::Vector(vector) => count += (!is_move && vector.reads.contains(&VectorRead::Active)) as u32,
            _ => {}
        });
        assert_eq!(count, 2, "{body}");
    }
}

/// Only the lane's own bit of EXEC is a read of the lane mask.
#[test]
fn tests_of_own_exec_bits_read_the_lane_mask() {
    let reads = |condition: &str| {
        let body = with_vectors(&lanes(&format!("if {condition} then VGPR[lane][VDST] = 1U; endif")));
        body.is_some_and(|body| {
            visit::any_stmt(&body, &|s| matches!(s, Stmt::Vector(v) if v.reads.contains(&VectorRead::Active)))
        })
    };
    assert!(reads("EXEC.u64[lane]"));
    assert!(!reads("EXEC.u64[lane ^ 1]"));
    assert!(!reads("VCC.u64[lane]"));
    assert!(!reads("EXEC.u64[lane +: 2]"));
}

/// A conversion for which hosts have vector instructions is hoisted, once for each argument.
#[test]
fn conversions_are_hoisted_out_of_vectors() {
    let found = vectors(
        "declare h : 16'F[64]; declare f : 32'F[64]; h[63] = 1.0; f[63] = 1.0F;
         for n in 0 : 15 do
           f[n] = f16_to_f32(h[n]) * f16_to_f32(h[n]) + f16_to_f32(h[n + 16]);
         endfor;
         for n in 0 : 15 do
           if f16_to_f32(h[n]) > 1.0F then
             f[n] = bf16_to_f32(h[n].bf16);
           endif
         endfor;
         VGPR[0U][VDST] = f[0]; VGPR[1U][VDST] = 32'U(h[0].u16);",
    );
    let converted = |vector: &Vector| {
        vector
            .reads
            .iter()
            .filter(|read| matches!(read, VectorRead::Converted(Conversion::F16ToF32, _)))
            .count()
    };
    assert_eq!(found.iter().map(converted).collect::<Vec<_>>(), [2, 1]);
}
