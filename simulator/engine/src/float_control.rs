//! The host's float control.
//!
//! Handlers rely on the float environment that Rust assumes: rounding to nearest even, denormals kept, no
//! traps. A host program may have changed it: code linked with `-ffast-math` flushes denormals in all its
//! threads.

/// Guard that gives this thread the default float control while it lives.
pub struct DefaultFloatControl {
    /// The previous value, if it was different.
    #[cfg(target_arch = "x86_64")]
    before: Option<u32>,
    /// Not `Send`: the control register belongs to the thread.
    _thread: std::marker::PhantomData<*const ()>,
}

/// Rounding to nearest even, denormals kept, all exceptions masked (Intel SDM, volume 1, 10.2.3).
#[cfg(target_arch = "x86_64")]
const DEFAULT: u32 = 0x1f80;
/// The sticky exception flags, which affect nothing.
#[cfg(target_arch = "x86_64")]
const FLAGS: u32 = 0x3f;

impl DefaultFloatControl {
    /// Sets the default float control if it is not set.
    #[inline]
    #[cfg(target_arch = "x86_64")]
    pub fn set() -> DefaultFloatControl {
        let now = read();
        let before = (now & !FLAGS != DEFAULT).then_some(now);
        if before.is_some() {
            write(DEFAULT);
        }
        DefaultFloatControl { before, _thread: std::marker::PhantomData }
    }

    /// Does nothing on other hosts.
    #[inline]
    #[cfg(not(target_arch = "x86_64"))]
    pub fn set() -> DefaultFloatControl {
        DefaultFloatControl { _thread: std::marker::PhantomData }
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for DefaultFloatControl {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            write(before);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn read() -> u32 {
    let mut control = 0u32;
    // SAFETY: x86-64 has MXCSR, and the instruction stores it to the four bytes of `control`.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut control, options(nostack, preserves_flags)) };
    control
}

#[cfg(target_arch = "x86_64")]
fn write(control: u32) {
    // SAFETY: the new value is either the one that Rust code expects or, when restoring, the caller's own, so
    // no reserved bit is set. No float operation moves across: the guard is created before waves run, and they
    // run in functions that are not inlined.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &control, options(nostack, preserves_flags)) };
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn is_set_and_restored() {
        const FLUSHED: u32 = DEFAULT | 0x8040;
        write(FLUSHED);
        let inside = {
            let _float_control = DefaultFloatControl::set();
            read()
        };
        let after = read();
        write(DEFAULT);
        assert_eq!((inside & !FLAGS, after & !FLAGS), (DEFAULT, FLUSHED));
        let _float_control = DefaultFloatControl::set();
        assert_eq!(read() & !FLAGS, DEFAULT);
    }
}
