//! The host's float control.
//!
//! Handlers rely on what Rust relies on: rounding to nearest even, denormals kept, no traps. A program that the simulator is part of may
//! have changed that: what is linked with `-ffast-math` flushes denormals in all its threads.

/// The usual float control of this thread, while it lives.
pub struct Usual {
    /// What was there, if it was something else.
    #[cfg(target_arch = "x86_64")]
    before: Option<u32>,
    /// It belongs to its thread.
    _thread: std::marker::PhantomData<*const ()>,
}

/// Rounding to nearest even, denormals kept, all exceptions masked (Intel SDM, volume 1, 10.2.3).
#[cfg(target_arch = "x86_64")]
const USUAL: u32 = 0x1f80;
/// The flags of exceptions that have happened, which change nothing.
#[cfg(target_arch = "x86_64")]
const FLAGS: u32 = 0x3f;

impl Usual {
    /// Sets it, if it is not set.
    #[inline]
    #[cfg(target_arch = "x86_64")]
    pub fn set() -> Usual {
        let now = read();
        let before = (now & !FLAGS != USUAL).then_some(now);
        if before.is_some() {
            write(USUAL);
        }
        Usual { before, _thread: std::marker::PhantomData }
    }

    /// Other hosts' is left as it is.
    #[inline]
    #[cfg(not(target_arch = "x86_64"))]
    pub fn set() -> Usual {
        Usual { _thread: std::marker::PhantomData }
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for Usual {
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
    // SAFETY: MXCSR is written to four bytes of this function; x86-64 has it.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut control, options(nostack, preserves_flags)) };
    control
}

#[cfg(target_arch = "x86_64")]
fn write(control: u32) {
    // SAFETY: MXCSR is set to what Rust code expects, or on the way back to what the caller had, of which no bit is reserved. Nothing in
    // between is moved across it: `Usual` is set before waves run, by calls that are not inlined.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &control, options(nostack, preserves_flags)) };
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn it_is_set_and_set_back() {
        const FLUSHED: u32 = USUAL | 0x8040;
        write(FLUSHED);
        let inside = {
            let _usual = Usual::set();
            read()
        };
        let after = read();
        write(USUAL);
        assert_eq!((inside & !FLAGS, after & !FLAGS), (USUAL, FLUSHED));
        let _usual = Usual::set();
        assert_eq!(read() & !FLAGS, USUAL);
    }
}
