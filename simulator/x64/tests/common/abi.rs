//! The calling convention of compiled functions.

#![allow(unused_macros, dead_code, unused_imports, reason = "not every test uses everything")]

/// Declares a function that compiled functions call, or the type of one.
macro_rules! called {
    (type $name:ident = fn($($args:tt)*) -> $result:ty;) => {
        #[cfg(target_arch = "x86_64")]
        pub type $name = extern "sysv64" fn($($args)*) -> $result;
        #[cfg(not(target_arch = "x86_64"))]
        pub type $name = extern "C" fn($($args)*) -> $result;
    };
    ($(#[$meta:meta])* fn $name:ident($($args:tt)*) -> $result:ty $body:block) => {
        #[cfg(target_arch = "x86_64")]
        $(#[$meta])*
        extern "sysv64" fn $name($($args)*) -> $result $body
        #[cfg(not(target_arch = "x86_64"))]
        $(#[$meta])*
        extern "C" fn $name($($args)*) -> $result $body
    };
}
pub(crate) use called;

called! { type Entry = fn(u64, u64) -> u64; }

/// Changes all caller-saved registers.
#[cfg(target_arch = "x86_64")]
pub fn clobber() {
    // SAFETY: the host has AVX2, since only code compiled for it calls this; all clobbers are declared.
    unsafe {
        std::arch::asm!(
            "vpcmpeqd ymm0, ymm0, ymm0", "vmovaps ymm1, ymm0", "vmovaps ymm2, ymm0", "vmovaps ymm3, ymm0",
            "vmovaps ymm4, ymm0", "vmovaps ymm5, ymm0", "vmovaps ymm6, ymm0", "vmovaps ymm7, ymm0",
            "vmovaps ymm8, ymm0", "vmovaps ymm9, ymm0", "vmovaps ymm10, ymm0", "vmovaps ymm11, ymm0",
            "vmovaps ymm12, ymm0", "vmovaps ymm13, ymm0", "vmovaps ymm14, ymm0", "vmovaps ymm15, ymm0",
            "mov rax, -3", "mov rcx, rax", "mov rdx, rax", "mov rsi, rax", "mov rdi, rax", "mov r8, rax",
            "mov r9, rax", "mov r10, rax", "mov r11, rax", "vzeroupper",
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _, out("ymm5") _,
            out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _, out("rax") _, out("rcx") _,
            out("rdx") _, out("rsi") _, out("rdi") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
}

/// Changes all caller-saved registers.
#[cfg(target_arch = "aarch64")]
pub fn clobber() {
    // SAFETY: all clobbers are declared.
    unsafe {
        std::arch::asm!(
            "movi v0.16b, #0x5a", "mov v1.16b, v0.16b", "mov v2.16b, v0.16b", "mov v3.16b, v0.16b",
            "mov v4.16b, v0.16b", "mov v5.16b, v0.16b", "mov v6.16b, v0.16b", "mov v7.16b, v0.16b",
            "mov v8.16b, v0.16b", "mov v9.16b, v0.16b", "mov v10.16b, v0.16b", "mov v11.16b, v0.16b",
            "mov v12.16b, v0.16b", "mov v13.16b, v0.16b", "mov v14.16b, v0.16b", "mov v15.16b, v0.16b",
            "mov v16.16b, v0.16b", "mov v17.16b, v0.16b", "mov v18.16b, v0.16b", "mov v19.16b, v0.16b",
            "mov v20.16b, v0.16b", "mov v21.16b, v0.16b", "mov v22.16b, v0.16b", "mov v23.16b, v0.16b",
            "mov v24.16b, v0.16b", "mov v25.16b, v0.16b", "mov v26.16b, v0.16b", "mov v27.16b, v0.16b",
            "mov v28.16b, v0.16b", "mov v29.16b, v0.16b", "mov v30.16b, v0.16b", "mov v31.16b, v0.16b",
            "mov x0, #-3", "mov x1, x0", "mov x2, x0", "mov x3, x0", "mov x4, x0", "mov x5, x0", "mov x6, x0",
            "mov x7, x0", "mov x8, x0", "mov x9, x0", "mov x10, x0", "mov x11, x0", "mov x12, x0", "mov x13, x0",
            "mov x14, x0", "mov x15, x0", "mov x16, x0", "mov x17, x0",
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v8") _, out("v9") _, out("v10") _, out("v11") _, out("v12") _, out("v13") _, out("v14") _,
            out("v15") _, out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v20") _, out("v21") _,
            out("v22") _, out("v23") _, out("v24") _, out("v25") _, out("v26") _, out("v27") _, out("v28") _,
            out("v29") _, out("v30") _, out("v31") _, out("x0") _, out("x1") _, out("x2") _, out("x3") _,
            out("x4") _, out("x5") _, out("x6") _, out("x7") _, out("x8") _, out("x9") _, out("x10") _,
            out("x11") _, out("x12") _, out("x13") _, out("x14") _, out("x15") _, out("x16") _, out("x17") _,
        );
    }
}
