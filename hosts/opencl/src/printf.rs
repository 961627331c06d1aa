//! OpenCL's `printf`: the buffer of a launch, to which kernels append messages ([`wavesim_services::messages`]).

use crate::status::Outcome;
use wavesim_runtime::{Kernel, message};
use wavesim_services::messages;

pub use wavesim_services::messages::BYTES;

/// The `printf` buffer of a launch.
pub struct PrintBuffer {
    kernel: Kernel,
    address: u64,
}

impl PrintBuffer {
    /// Allocates an empty buffer.
    pub fn new(kernel: &Kernel) -> Outcome<PrintBuffer> {
        let device = kernel.device();
        let address = device.alloc(BYTES, "printf buffer")?;
        let buffer = PrintBuffer { kernel: kernel.clone(), address };
        device.write(address, &messages::header())?;
        Ok(buffer)
    }

    /// Returns the address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Prints the messages in the buffer.
    pub fn print(&self) -> Outcome {
        let formats = self.kernel.module().printf_formats();
        let read = |address, out: &mut [u8]| self.kernel.device().read(address, out);
        if let Some(text) = messages::print(formats, self.address, read, &mut crate::platform::print)? {
            message::report(&text);
        }
        Ok(())
    }
}

impl Drop for PrintBuffer {
    fn drop(&mut self) {
        // Freeing fails only for memory that is not allocated.
        let _ = self.kernel.device().free(self.address);
    }
}
