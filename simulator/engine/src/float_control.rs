//! The host's float control.
//!
//! Handlers rely on the float environment that Rust assumes: rounding to nearest even, denormals kept, no
//! traps. So does compiled code, which restores this environment, and no other, where it ends. A host program may have
//! changed it: code linked with `-ffast-math` flushes denormals in all its threads, on x86-64 and on aarch64.

/// Guard that gives this thread the default float control while it lives.
pub struct DefaultFloatControl {
    /// The previous value, if it was different.
    before: Option<register::Value>,
    /// Not `Send`: the control register belongs to the thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl DefaultFloatControl {
    /// Sets the default float control if it is not set.
    #[inline]
    pub fn set() -> DefaultFloatControl {
        let now = register::read();
        let before = (now & !register::FLAGS != register::DEFAULT).then_some(now);
        if before.is_some() {
            register::write(register::DEFAULT);
        }
        DefaultFloatControl { before, _thread: std::marker::PhantomData }
    }
}

impl Drop for DefaultFloatControl {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            register::write(before);
        }
    }
}

/// MXCSR.
#[cfg(target_arch = "x86_64")]
mod register {
    pub type Value = u32;

    /// Rounding to nearest even, denormals kept, all exceptions masked (Intel SDM, volume 1, 10.2.3).
    pub const DEFAULT: Value = 0x1f80;
    /// The sticky exception flags, which affect nothing.
    pub const FLAGS: Value = 0x3f;
    /// What programs set that flush denormals: FTZ and DAZ.
    #[cfg(test)]
    pub const FLUSHING: Value = 0x8040;

    pub fn read() -> Value {
        let mut control = 0;
        // SAFETY: x86-64 has MXCSR, and the instruction stores it to the four bytes of `control`.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut control, options(nostack, preserves_flags)) };
        control
    }

    pub fn write(control: Value) {
        // SAFETY: the new value is either the one that Rust code expects or, when restoring, the caller's own, so
        // no reserved bit is set. No float operation moves across: the guard is created before waves run, and they
        // run in functions that are not inlined.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &control, options(nostack, preserves_flags)) };
    }
}

/// FPCR.
#[cfg(target_arch = "aarch64")]
mod register {
    pub type Value = u64;

    /// Rounding to nearest even, denormals kept, NaNs propagated, no traps, and none of the alternative behaviours
    /// (Arm Architecture Reference Manual, C5.2, FPCR).
    pub const DEFAULT: Value = 0;
    /// None: FPSR has the exception flags.
    pub const FLAGS: Value = 0;
    /// What programs set that flush denormals: FZ.
    #[cfg(test)]
    pub const FLUSHING: Value = 1 << 24;

    pub fn read() -> Value {
        let control;
        // SAFETY: programs may read FPCR; this changes nothing.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack, preserves_flags))
        };
        control
    }

    pub fn write(control: Value) {
        // SAFETY: as for MXCSR: the value that Rust code expects, or the caller's own.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags)) };
    }
}

/// Hosts whose float control is not known to be changed by programs, such as WebAssembly, which has none.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    pub type Value = u32;

    pub const DEFAULT: Value = 0;
    pub const FLAGS: Value = 0;

    pub fn read() -> Value {
        DEFAULT
    }

    pub fn write(_control: Value) {}
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::register::{DEFAULT, FLAGS, FLUSHING, read, write};
    use super::*;
    use std::hint::black_box;

    #[test]
    fn is_set_and_restored() {
        const FLUSHED: register::Value = DEFAULT | FLUSHING;
        // A sum of denormals, which is a zero where they are flushed.
        let sum = || black_box(f32::from_bits(3)) + black_box(f32::from_bits(4));
        write(FLUSHED);
        let flushed = sum().to_bits();
        let (inside, kept) = {
            let _float_control = DefaultFloatControl::set();
            (read(), sum().to_bits())
        };
        let after = read();
        write(DEFAULT);
        assert_eq!((inside & !FLAGS, after & !FLAGS), (DEFAULT, FLUSHED));
        assert_eq!((flushed, kept), (0, 7));
        let _float_control = DefaultFloatControl::set();
        assert_eq!(read() & !FLAGS, DEFAULT);
    }
}
