//! Kernels and their arguments.

use crate::ffi::{Memory, Out, Text};
use crate::handle::{self, Handle, Identity, Object, object};
use crate::image::Picture;
use crate::info::{Query, unknown_parameter};
use crate::memory::{self, MemObject};
use crate::platform::{MAX_ITEMS, check_device};
use crate::program::Program;
use crate::queue::lock;
use crate::sampler::Sampler;
use crate::status::{Outcome, Status, call, create};
use std::any::Any;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use wavesim::loader::code_object::Arg;
use wavesim::loader::request::ArgumentValue;
use wavesim_runtime::Kernel as Code;

/// A kernel.
pub struct Kernel {
    identity: Identity,
    program: Arc<Program>,
    code: Code,
    /// The kernel on each device; the first is `code`.
    on_devices: Vec<Code>,
    arguments: Mutex<Vec<Option<Argument>>>,
}

/// Value of an argument.
#[derive(Clone)]
enum Argument {
    Bytes(Vec<u8>),
    Local(u32),
    /// A buffer or an image. The reference is weak because the program has no call to release it.
    Object(Weak<MemObject>),
    /// A sampler.
    Sampler(Weak<Sampler>),
}

object!(Kernel, INVALID_KERNEL, clRetainKernel, clReleaseKernel);

impl Drop for Kernel {
    fn drop(&mut self) {
        self.program.kernels.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Arguments of a launch.
pub struct Arguments {
    /// The explicit arguments, in the layout of the kernarg segment.
    pub bytes: Vec<u8>,
    /// LDS size of local-memory arguments in bytes.
    pub local: u32,
    /// Objects that the launch keeps alive.
    pub objects: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Kernel {
    /// Returns the kernel of the runtime.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Returns the kernel of the runtime on a device.
    pub fn code_on(&self, device: usize) -> &Code {
        self.on_devices.get(device).unwrap_or(&self.code)
    }

    /// Returns the program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn argument(&self, index: c_uint) -> Outcome<&Arg> {
        let found = self.code.arguments().nth(index as usize);
        found.ok_or_else(|| {
            let (name, count) = (self.code.name(), self.code.arguments().count());
            Status::INVALID_ARG_INDEX
                .because(format!("kernel `{name}` has {count} arguments, not {}", index + 1))
        })
    }

    fn set(&self, index: c_uint, argument: Argument) {
        if let Some(slot) = lock(&self.arguments).get_mut(index as usize) {
            *slot = Some(argument);
        }
    }

    /// Returns an error message about an argument.
    fn argument_message(&self, index: usize, arg: &Arg, what: &str) -> String {
        let name = arg.name.as_ref().map_or_else(String::new, |name| format!(" (`{name}`)"));
        format!("argument {index}{name} of kernel `{}` {what}", self.code.name())
    }

    /// Returns the current arguments.
    pub fn arguments(&self) -> Outcome<Arguments> {
        let set = lock(&self.arguments).clone();
        let mut list = Vec::new();
        let mut objects: Vec<Arc<dyn Any + Send + Sync>> = Vec::new();
        for (index, (arg, value)) in self.code.arguments().zip(set).enumerate() {
            let invalid = |what| Status::INVALID_KERNEL_ARGS.because(self.argument_message(index, arg, what));
            let given = match value.ok_or_else(|| invalid("is not set"))? {
                Argument::Bytes(bytes) => ArgumentValue::Bytes(bytes),
                Argument::Local(size) => ArgumentValue::Local(size),
                Argument::Object(object) => {
                    let released = || invalid("is a memory object that was released");
                    let object = object.upgrade().ok_or_else(released)?;
                    let address = object.picture().map_or(Ok(object.address()), Picture::object)?;
                    objects.push(object);
                    ArgumentValue::Bytes(address.to_le_bytes().to_vec())
                }
                Argument::Sampler(sampler) => {
                    let sampler =
                        sampler.upgrade().ok_or_else(|| invalid("is a sampler that was released"))?;
                    let address = sampler.object();
                    objects.push(sampler);
                    ArgumentValue::Bytes(address.to_le_bytes().to_vec())
                }
            };
            list.push((arg.name.clone().unwrap_or_else(|| index.to_string()), given));
        }
        let (bytes, local) = self.code.lay_out(&list)?;
        Ok(Arguments { bytes, local, objects })
    }

    /// Returns the LDS size of the local-memory arguments that are set.
    fn local_bytes(&self) -> u64 {
        let size = |argument: &Option<Argument>| match argument {
            Some(Argument::Local(size)) => *size as u64,
            _ => 0,
        };
        lock(&self.arguments).iter().map(size).sum()
    }
}

fn new(program: &Arc<Program>, name: &str) -> Outcome<Handle> {
    let on_each = program.modules()?.into_iter().map(|module| Ok(module.kernel(name)?));
    let on_devices = on_each.collect::<Outcome<Vec<Code>>>()?;
    let code = on_devices[0].clone();
    let arguments = Mutex::new(vec![None; code.arguments().count()]);
    program.kernels.fetch_add(1, Ordering::SeqCst);
    let program = program.clone();
    Ok(handle::register(|identity| Kernel { identity, program, code, on_devices, arguments }).0)
}

/// `clCreateKernel`.
pub unsafe extern "C" fn clCreateKernel(program: Handle, name: Text, status: Out<c_int>) -> Handle {
    create("clCreateKernel", &status, || new(&handle::get(program)?, &name.get()?))
}

/// `clCreateKernelsInProgram`.
pub unsafe extern "C" fn clCreateKernelsInProgram(
    program: Handle,
    count: c_uint,
    kernels: Out<Handle>,
    found: Out<c_uint>,
) -> c_int {
    call("clCreateKernelsInProgram", || {
        let program = handle::get::<Program>(program)?;
        let names = program.module()?.kernels();
        if !kernels.is_null() {
            if (count as usize) < names.len() {
                return Err(Status::INVALID_VALUE.into());
            }
            for (at, name) in names.iter().enumerate() {
                let kernel = new(&program, name)?;
                // SAFETY: the array has `count` elements, which are enough, as checked above.
                unsafe { kernels.put_at(at, kernel) };
            }
        }
        found.put_optional(names.len() as c_uint);
        Ok(())
    })
}

/// `clCloneKernel`.
pub unsafe extern "C" fn clCloneKernel(kernel: Handle, status: Out<c_int>) -> Handle {
    create("clCloneKernel", &status, || {
        let source = handle::get::<Kernel>(kernel)?;
        let clone = new(&source.program, source.code.name())?;
        let arguments = lock(&source.arguments).clone();
        *lock(&handle::get::<Kernel>(clone)?.arguments) = arguments;
        Ok(clone)
    })
}

/// Checks that an image can be the value of an argument.
fn fits(arg: &Arg, object: &MemObject) -> Result<(), String> {
    let image = object.picture().ok_or("is an image, not a buffer")?;
    let name = arg.type_name.as_deref().unwrap_or_default();
    if !name.is_empty() && name != image.type_name() {
        return Err(format!("is of type {name}, not {}", image.type_name()));
    }
    let refused = match arg.access.as_deref() {
        Some("read_only") => object.flags() & memory::WRITE_ONLY != 0,
        Some("write_only") => object.flags() & memory::READ_ONLY != 0,
        Some("read_write") => object.flags() & (memory::READ_ONLY | memory::WRITE_ONLY) != 0,
        _ => false,
    };
    if refused { Err("is accessed in a way that the image's flags forbid".to_string()) } else { Ok(()) }
}

/// `clSetKernelArg`.
pub unsafe extern "C" fn clSetKernelArg(kernel: Handle, index: c_uint, size: usize, value: Memory) -> c_int {
    call("clSetKernelArg", || {
        let kernel = handle::get::<Kernel>(kernel)?;
        let arg = kernel.argument(index)?;
        let wrong_size = |needs: usize| {
            let what = format!("has {needs} bytes, but {size} were given");
            Err(Status::INVALID_ARG_SIZE.because(kernel.argument_message(index as usize, arg, &what)))
        };
        let argument = match arg.kind.as_str() {
            "dynamic_shared_pointer" => {
                if !value.is_null() {
                    let what = "is local memory, which has no value";
                    return Err(Status::INVALID_ARG_VALUE.because(kernel.argument_message(
                        index as usize,
                        arg,
                        what,
                    )));
                }
                match u32::try_from(size) {
                    Ok(size) if size > 0 => Argument::Local(size),
                    _ => return wrong_size(1),
                }
            }
            "global_buffer" => {
                if size != size_of::<Handle>() {
                    return wrong_size(size_of::<Handle>());
                }
                // SAFETY: the value has the size of a handle, as checked above, or is null.
                match unsafe { Handle::at(value) } {
                    Handle::NULL => Argument::Bytes(vec![0; 8]),
                    buffer => {
                        let buffer = memory::buffer(buffer)?;
                        Argument::Object(Arc::downgrade(&buffer))
                    }
                }
            }
            "image" => {
                if size != size_of::<Handle>() {
                    return wrong_size(size_of::<Handle>());
                }
                // SAFETY: the value has the size of a handle, as checked above, or is null.
                let object = handle::get::<MemObject>(unsafe { Handle::at(value) })?;
                if let Err(what) = fits(arg, &object) {
                    let what = kernel.argument_message(index as usize, arg, &what);
                    return Err(Status::INVALID_ARG_VALUE.because(what));
                }
                Argument::Object(Arc::downgrade(&object))
            }
            "sampler" => {
                if size != size_of::<Handle>() {
                    return wrong_size(size_of::<Handle>());
                }
                // SAFETY: the value has the size of a handle, as checked above, or is null.
                Argument::Sampler(Arc::downgrade(&handle::get::<Sampler>(unsafe { Handle::at(value) })?))
            }
            "by_value" => {
                if size != arg.size as usize {
                    return wrong_size(arg.size as usize);
                }
                if value.is_null() {
                    return Err(Status::INVALID_ARG_VALUE.into());
                }
                // SAFETY: the caller of the API passes a value of this size.
                Argument::Bytes(unsafe { value.read(size) })
            }
            other => {
                let what = format!("has an unsupported kind ({other})");
                return Err(Status::INVALID_ARG_VALUE.because(kernel.argument_message(
                    index as usize,
                    arg,
                    &what,
                )));
            }
        };
        kernel.set(index, argument);
        Ok(())
    })
}

/// `clSetKernelArgSVMPointer`.
pub unsafe extern "C" fn clSetKernelArgSVMPointer(kernel: Handle, index: c_uint, value: Memory) -> c_int {
    call("clSetKernelArgSVMPointer", || {
        let kernel = handle::get::<Kernel>(kernel)?;
        let arg = kernel.argument(index)?;
        if arg.kind != "global_buffer" {
            let what = "is not a pointer to global memory";
            return Err(Status::INVALID_ARG_VALUE.because(kernel.argument_message(
                index as usize,
                arg,
                what,
            )));
        }
        kernel.set(index, Argument::Bytes(value.address().to_le_bytes().to_vec()));
        Ok(())
    })
}

/// `clSetKernelExecInfo`. Only checks its arguments, since kernels can access all shared virtual memory.
pub unsafe extern "C" fn clSetKernelExecInfo(
    kernel: Handle,
    name: c_uint,
    _size: usize,
    value: Memory,
) -> c_int {
    call("clSetKernelExecInfo", || {
        handle::get::<Kernel>(kernel)?;
        // CL_KERNEL_EXEC_INFO_SVM_PTRS, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM
        match name {
            0x11b6 if !value.is_null() => Ok(()),
            0x11b7 => Err(Status::INVALID_OPERATION.because("shared memory must be allocated by clSVMAlloc")),
            _ => unknown_parameter(),
        }
    })
}

/// `clGetKernelInfo`.
pub unsafe extern "C" fn clGetKernelInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetKernelInfo", || {
        let kernel = handle::get::<Kernel>(handle)?;
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x1190 => query.text(kernel.code.name()),
            0x1191 => query.u32(kernel.code.arguments().count() as u32),
            0x1192 => query.u32(handle::references(handle)),
            0x1193 => query.handle(kernel.program.context().handle()),
            0x1194 => query.handle(kernel.program.handle()),
            0x1195 => query.text(&match kernel.code.required_block() {
                Some([x, y, z]) => format!("reqd_work_group_size({x},{y},{z})"),
                None => String::new(),
            }),
            _ => unknown_parameter(),
        }
    })
}

/// Returns the maximum number of work-items in a workgroup.
pub fn max_items(code: &Code) -> usize {
    // Without metadata, the size that the kernel was compiled for is unknown.
    if code.arguments().next().is_none() && code.required_block().is_none() {
        return (code.max_block_items() as usize).min(MAX_ITEMS);
    }
    code.max_block_items() as usize
}

/// `clGetKernelWorkGroupInfo`.
pub unsafe extern "C" fn clGetKernelWorkGroupInfo(
    handle: Handle,
    of: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetKernelWorkGroupInfo", || {
        let kernel = handle::get::<Kernel>(handle)?;
        if !of.is_null() {
            check_device(of)?;
        }
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x11b0 => query.word(max_items(&kernel.code)),
            0x11b1 => query.words(&kernel.code.required_block().unwrap_or([0; 3]).map(|n| n as usize)),
            0x11b2 => query.u64(kernel.code.lds_bytes() as u64 + kernel.local_bytes()),
            0x11b3 => query.word(kernel.code.wave_size() as usize),
            0x11b4 => query.u64(kernel.code.scratch_bytes() as u64),
            _ => unknown_parameter(),
        }
    })
}

/// `clGetKernelArgInfo`.
pub unsafe extern "C" fn clGetKernelArgInfo(
    handle: Handle,
    index: c_uint,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetKernelArgInfo", || {
        let kernel = handle::get::<Kernel>(handle)?;
        let arg = kernel.argument(index)?;
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        let unavailable = || Status::KERNEL_ARG_INFO_NOT_AVAILABLE;
        match name {
            0x1196 => query.u32(match (arg.kind.as_str(), arg.address_space.as_deref()) {
                (_, Some("constant")) => 0x119d,
                ("global_buffer" | "image", _) => 0x119b,
                ("dynamic_shared_pointer", _) => 0x119c,
                _ => 0x119e,
            }),
            0x1197 => query.u32(match arg.access.as_deref() {
                Some("read_only") => 0x11a0,
                Some("write_only") => 0x11a1,
                Some("read_write") => 0x11a2,
                // CL_KERNEL_ARG_ACCESS_NONE
                _ => 0x11a3,
            }),
            0x1198 => query.text(arg.type_name.as_ref().ok_or_else(unavailable)?),
            0x1199 => {
                let (constant, restricted) = (u64::from(arg.is_const), u64::from(arg.is_restrict) << 1);
                query.u64(constant | restricted | u64::from(arg.is_volatile) << 2)
            }
            0x119a => query.text(arg.name.as_ref().ok_or_else(unavailable)?),
            _ => unknown_parameter(),
        }
    })
}
