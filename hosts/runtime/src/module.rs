//! Modules: loaded code objects.

use crate::memory::{Allocation, Bounds};
use crate::{Device, Error, Kernel, memory};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use wavesim::exec::program::Program;
use wavesim::loader::code_object::{self, CodeObject};
use wavesim::loader::request::{self, LaunchError};
use wavesim::memory::Memory;

/// A loaded code object. Its variables live while a clone of the module or one of its kernels exists.
#[derive(Clone)]
pub struct Module {
    pub(crate) inner: Arc<Inner>,
}

/// State shared by all clones.
pub(crate) struct Inner {
    pub(crate) device: Device,
    /// The file, which programs can ask for.
    file: Vec<u8>,
    object: CodeObject,
    /// Address of the image.
    image: u64,
    kernels: Mutex<BTreeMap<String, Arc<code_object::Kernel>>>,
    /// Idle decoded programs. Each concurrent launch takes one of its own.
    idle_programs: Mutex<Vec<LoadedProgram>>,
}

/// A decoded program of a module.
pub(crate) struct LoadedProgram {
    pub(crate) program: Program,
    /// The version of [`Callable`] whose functions it contains; `None` without functions of other modules.
    pub(crate) linked: Option<u64>,
    /// Whether it jumps to addresses in registers, and so perhaps to functions of other modules.
    pub(crate) jumps: bool,
}

/// The modules of a device with functions that kernels of other modules can call by their addresses.
#[derive(Default)]
pub(crate) struct Callable(Mutex<(Vec<Weak<Inner>>, u64)>);

impl Callable {
    fn add(&self, module: &Arc<Inner>) {
        let mut inner = lock(&self.0);
        inner.0.push(Arc::downgrade(module));
        inner.1 += 1;
    }

    /// Forgets modules that no longer exist.
    fn remove(&self) {
        let mut inner = lock(&self.0);
        inner.0.retain(|module| module.strong_count() > 0);
        inner.1 += 1;
    }

    /// Returns the modules other than one, and the version of the list.
    fn others(&self, than: &Inner) -> (Vec<Arc<Inner>>, u64) {
        let (modules, version) = {
            let inner = lock(&self.0);
            (inner.0.clone(), inner.1)
        };
        let others = modules.iter().filter_map(Weak::upgrade).filter(|other| !std::ptr::eq(&**other, than));
        (others.collect(), version)
    }
}

impl Module {
    pub(crate) fn load(device: &Device, bytes: &[u8]) -> Result<Module, Error> {
        let target = device.target();
        let file = code_object::open(bytes, &target.target_request())?;
        let object = CodeObject::read(&file)?;
        let module = &object.module;
        if module.arch != target.arch {
            return Err(Error::Arch { object: module.arch.name(), device: target.arch.name() });
        }
        let image = Arc::new(Allocation::new(module.image.size(), "code object")?);
        let address = image.address();
        // The image is initialised before kernels can access it.
        module.image.write_to(address, &memory::memory(&[image.range()], Bounds::Exact)?)?;
        device.register_allocation(image);
        let inner = Arc::new(Inner {
            device: device.clone(),
            file: file.into_owned(),
            object: object.without_contents(),
            image: address,
            kernels: Mutex::default(),
            idle_programs: Mutex::default(),
        });
        if inner.object.has_functions() {
            device.inner.callable.add(&inner);
        }
        Ok(Module { inner })
    }

    /// Returns the device that the module is loaded on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Returns the names of the kernels.
    pub fn kernels(&self) -> Vec<String> {
        self.inner.object.kernels().map(str::to_string).collect()
    }

    /// Whether it has a kernel of this name.
    pub fn has_kernel(&self, name: &str) -> bool {
        self.inner.object.has_kernel(name)
    }

    /// Returns the kernel with a name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let cached = lock(&self.inner.kernels).get(name).cloned();
        let code = match cached {
            Some(code) => code,
            None => {
                let read = Arc::new(self.inner.object.kernel(name)?);
                lock(&self.inner.kernels).insert(name.to_string(), read.clone());
                read
            }
        };
        Ok(Kernel { module: self.clone(), name: name.into(), code })
    }

    /// Returns the module's only kernel.
    pub fn only_kernel(&self) -> Result<Kernel, Error> {
        match &self.kernels()[..] {
            [only] => self.kernel(only),
            names => Err(Error::Kernels(names.to_vec())),
        }
    }

    /// Returns the names of the variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.inner.object.module.variables.iter().map(|v| v.name.as_str())
    }

    /// Returns the format strings of OpenCL's `printf`, as encoded in the code object's metadata.
    pub fn printf_formats(&self) -> &[String] {
        &self.inner.object.module.printf
    }

    /// Returns the code object.
    pub fn object(&self) -> &[u8] {
        &self.inner.file
    }

    /// Returns the address and the size of a variable.
    pub fn variable(&self, name: &str) -> Result<(u64, u64), Error> {
        let found = self.inner.object.module.variables.iter().find(|v| v.name == name);
        let found = found.ok_or_else(|| {
            let names: Vec<String> = self.variables().map(str::to_string).collect();
            Error::NoVariable { name: name.to_string(), has: code_object::some_of(&names, name) }
        })?;
        Ok((self.inner.image + found.address, found.size))
    }
}

impl Inner {
    /// Returns the address of the image.
    pub(crate) fn image(&self) -> u64 {
        self.image
    }

    /// Takes a decoded program for a launch, decoding the code if none is idle. It has the functions of other modules if the
    /// kernel may call them.
    pub(crate) fn program(
        &self,
        kernel: &code_object::Kernel,
        memory: &Memory,
    ) -> Result<LoadedProgram, Error> {
        let (others, version) = match kernel.calls_unknown {
            true => self.device.inner.callable.others(self),
            false => (Vec::new(), 0),
        };
        let wanted = (!others.is_empty()).then_some(version);
        let mut programs = lock(&self.idle_programs);
        programs.retain(|p| p.linked.is_none() || wanted.is_none() || p.linked == wanted);
        let fits = |p: &LoadedProgram| {
            p.program.wave_size == kernel.wave_size()
                && (p.linked == wanted || p.linked.is_none() && !p.jumps)
        };
        if let Some(at) = programs.iter().position(fits) {
            return Ok(programs.swap_remove(at));
        }
        drop(programs);
        let (address, len) = self.object.module.text;
        let code_base = self.image + address;
        let program = request::program(kernel, code_base, len, memory)?;
        let jumps = program.jumps_to_registers();
        if wanted.is_none() || !jumps {
            return Ok(LoadedProgram { program, linked: None, jumps });
        }
        let mut code = Vec::new();
        for other in &others {
            code.push((other.object.callable_code(other.image, memory)?, other.object.lines()));
        }
        let line_at: Vec<_> = code.iter().map(|(_, lines)| |address: u64| lines.line(address)).collect();
        let parts = code.into_iter().zip(&line_at).flat_map(|((parts, lines), line_at)| {
            parts.into_iter().map(move |part| (part, (lines.files(), line_at as _)))
        });
        let program = program.link(code_base, &parts.collect::<Vec<_>>()).map_err(LaunchError::from)?;
        Ok(LoadedProgram { program, linked: wanted, jumps })
    }

    /// Returns a decoded program after a launch.
    pub(crate) fn release_program(&self, program: LoadedProgram) {
        lock(&self.idle_programs).push(program);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The embedding program may have freed the image by its address already.
        let _ = self.device.free(self.image);
        if self.object.has_functions() {
            self.device.inner.callable.remove();
        }
    }
}

/// Locks, ignoring poisoning: each change is a single insertion or removal.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
