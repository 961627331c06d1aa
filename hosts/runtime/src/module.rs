//! Modules: loaded code objects.

use crate::memory::{Allocation, Bounds};
use crate::{Device, Error, Kernel, memory};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wavesim::exec::program::Program;
use wavesim::loader::code_object::{self, Variable};
use wavesim::loader::image::Image;
use wavesim::loader::request;
use wavesim::memory::Memory;

/// A loaded code object. Its variables live as long as a clone of it, or of one of its kernels, does.
#[derive(Clone)]
pub struct Module {
    pub(crate) inner: Arc<Inner>,
}

/// What clones share.
pub(crate) struct Inner {
    pub(crate) device: Device,
    /// The code object, out of which kernels are read when they are asked for.
    object: Vec<u8>,
    image: u64,
    text: (u64, u64),
    variables: Vec<Variable>,
    printf: Vec<String>,
    kernels: Mutex<BTreeMap<String, Arc<code_object::Kernel>>>,
    /// Decoded code that no launch uses: of several launches at once, each takes one.
    programs: Mutex<Vec<Program>>,
}

impl Module {
    pub(crate) fn load(device: &Device, bytes: &[u8]) -> Result<Module, Error> {
        let target = device.target();
        let object = code_object::open(bytes, &target.target_request())?;
        let module = code_object::module(&object)?;
        if module.arch != target.arch {
            return Err(Error::Arch { object: module.arch.name(), device: target.arch.name() });
        }
        let image = Arc::new(Allocation::new(module.image.size(), "code object")?);
        let address = image.address();
        // All of it is written before a kernel can see it.
        module.image.write_to(address, &memory::memory(&[image.range()], Bounds::Exact)?)?;
        device.adopt(image);
        Ok(Module {
            inner: Arc::new(Inner {
                device: device.clone(),
                object: object.into_owned(),
                image: address,
                text: (address + module.text.0, module.text.1),
                variables: module.variables,
                printf: module.printf,
                kernels: Mutex::default(),
                programs: Mutex::default(),
            }),
        })
    }

    /// The device that it is loaded on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Names of its kernels.
    pub fn kernels(&self) -> Result<Vec<String>, Error> {
        Ok(code_object::kernels(&self.inner.object)?)
    }

    /// A kernel by name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let known = lock(&self.inner.kernels).get(name).cloned();
        let code = match known {
            Some(code) => code,
            None => {
                let mut read = code_object::load(&self.inner.object, name)?;
                // The module has them.
                read.image = Image::default();
                read.text.1 = Vec::new();
                let read = Arc::new(read);
                lock(&self.inner.kernels).insert(name.to_string(), read.clone());
                read
            }
        };
        Ok(Kernel { module: self.clone(), name: name.into(), code })
    }

    /// The module's only kernel.
    pub fn only_kernel(&self) -> Result<Kernel, Error> {
        match &self.kernels()?[..] {
            [only] => self.kernel(only),
            names => Err(Error::Kernels(names.to_vec())),
        }
    }

    /// Names of its variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.inner.variables.iter().map(|v| v.name.as_str())
    }

    /// Formats of OpenCL's `printf`, as the code object's metadata has them.
    pub fn printf_formats(&self) -> &[String] {
        &self.inner.printf
    }

    /// The code object.
    pub fn object(&self) -> &[u8] {
        &self.inner.object
    }

    /// Address and size of a variable.
    pub fn variable(&self, name: &str) -> Result<(u64, u64), Error> {
        let found = self.inner.variables.iter().find(|v| v.name == name);
        let found = found.ok_or_else(|| {
            let names: Vec<&str> = self.variables().collect();
            let has = if names.is_empty() { "none".to_string() } else { names.join(", ") };
            Error::NoVariable { name: name.to_string(), has }
        })?;
        Ok((self.inner.image + found.address, found.size))
    }
}

impl Inner {
    /// Address of the image.
    pub(crate) fn image(&self) -> u64 {
        self.image
    }

    /// Decoded code for a launch.
    pub(crate) fn program(&self, kernel: &code_object::Kernel, memory: &Memory) -> Result<Program, Error> {
        let mut programs = lock(&self.programs);
        if let Some(at) = programs.iter().position(|p| p.wave_size == kernel.wave_size()) {
            return Ok(programs.swap_remove(at));
        }
        drop(programs);
        let (address, len) = self.text;
        Ok(request::program(kernel, address, len, memory)?)
    }

    /// Returns it.
    pub(crate) fn give_back(&self, program: Program) {
        lock(&self.programs).push(program);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The program may have freed it by its address.
        let _ = self.device.free(self.image);
    }
}

/// Locks, ignoring poison: each change is one insertion or removal.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
