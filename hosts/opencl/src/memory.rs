//! Memory objects: buffers, and what images have in common with them.

use crate::context::Context;
use crate::ffi::{In, Memory, Out, UserData};
use crate::handle::{self, Destructor, Handle, Identity, Object, object};
use crate::image::{ImageKind, Picture};
use crate::info::{Query, unknown_parameter};
use crate::platform::{ALIGNMENT, gpu};
use crate::queue::lock;
use crate::status::{Outcome, Status, call, create};
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};
use wavesim_runtime::Owned;
use wavesim_runtime::image::Region;
use wavesim_runtime::pitched::{Copy, Pitched};

pub const READ_WRITE: u64 = 1;
pub const WRITE_ONLY: u64 = 2;
pub const READ_ONLY: u64 = 4;
pub const USE_HOST_PTR: u64 = 8;
pub const ALLOC_HOST_PTR: u64 = 16;
pub const COPY_HOST_PTR: u64 = 32;
const HOST_WRITE_ONLY: u64 = 128;
const HOST_READ_ONLY: u64 = 256;
const HOST_NO_ACCESS: u64 = 512;
pub const KERNEL_READ_AND_WRITE: u64 = 4096;
pub const KERNEL_ACCESS: u64 = READ_WRITE | WRITE_ONLY | READ_ONLY;
pub const HOST_ACCESS: u64 = HOST_WRITE_ONLY | HOST_READ_ONLY | HOST_NO_ACCESS;
pub const HOST_MEMORY: u64 = USE_HOST_PTR | ALLOC_HOST_PTR | COPY_HOST_PTR;

/// A buffer, a sub-buffer or an image.
pub struct MemObject {
    identity: Identity,
    context: Arc<Context>,
    flags: u64,
    address: u64,
    size: usize,
    /// The parent of a sub-buffer, and the offset in it.
    parent: Option<(Arc<MemObject>, usize)>,
    /// The program's memory through which the buffer is mapped (`CL_MEM_USE_HOST_PTR`). If null, the buffer
    /// is mapped at its own address.
    host: Memory,
    /// The buffer's allocation; `None` for sub-buffers and shared virtual memory. After `identity`, so that it is
    /// freed when the destructor callbacks have run.
    owned: Option<Owned>,
    properties: Vec<u64>,
    maps: Mutex<Vec<Mapping>>,
    /// What distinguishes an image from a buffer.
    image: Option<Picture>,
}

/// What a memory object is created from.
pub struct Parts {
    pub context: Arc<Context>,
    pub flags: u64,
    pub address: u64,
    pub size: usize,
    pub parent: Option<(Arc<MemObject>, usize)>,
    pub host: Memory,
    pub owned: Option<Owned>,
    pub properties: Vec<u64>,
    pub image: Option<Picture>,
}

/// Creates a memory object.
pub fn register(parts: Parts) -> Arc<MemObject> {
    let Parts { context, flags, address, size, parent, host, owned, properties, image } = parts;
    let flags = if flags & KERNEL_ACCESS == 0 { flags | READ_WRITE } else { flags };
    let maps = Mutex::default();
    let make = |identity| MemObject {
        identity,
        context,
        flags,
        address,
        size,
        parent,
        host,
        owned,
        properties,
        maps,
        image,
    };
    handle::register(make).1
}

/// Returns the buffer of a handle.
pub fn buffer(handle: Handle) -> Outcome<Arc<MemObject>> {
    let object = handle::get::<MemObject>(handle)?;
    match object.image {
        None => Ok(object),
        Some(_) => Err(Status::INVALID_MEM_OBJECT.because("an image in place of a buffer")),
    }
}

/// A mapped range.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    /// The pointer that was returned to the program.
    pub pointer: Memory,
    /// Byte offset in the buffer.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Whether the program may have written to the range.
    pub written: bool,
    /// The texels of a mapped image, in place of offset and size.
    pub region: Option<Region>,
}

object!(MemObject, INVALID_MEM_OBJECT, clRetainMemObject, clReleaseMemObject);

impl MemObject {
    /// Returns the address that kernels use.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns the flags.
    pub fn flags(&self) -> u64 {
        self.flags
    }

    /// Returns the program's memory for it; null if there is none.
    pub fn host(&self) -> Memory {
        self.host
    }

    /// Returns the parent of a sub-buffer, or the buffer of an image.
    pub fn parent(&self) -> Option<&Arc<MemObject>> {
        self.parent.as_ref().map(|(parent, _)| parent)
    }

    /// Returns the memory of a range, after checking its bounds.
    pub fn range(&self, offset: usize, size: usize) -> Outcome<Memory> {
        match offset.checked_add(size) {
            Some(end) if end <= self.size => {}
            _ => {
                let message = format!("{size} bytes at {offset} of a buffer of {} bytes", self.size);
                return Err(Status::INVALID_VALUE.because(message));
            }
        }
        // SAFETY: the range is inside the buffer, as checked above. Commands keep the buffer alive while they
        // use it.
        Ok(unsafe { Memory::at(self.address + offset as u64) })
    }

    /// Checks that the buffer's flags permit the host to read or write.
    pub fn permits(&self, reads: bool, writes: bool) -> Outcome {
        let refused = (reads && self.flags & (HOST_WRITE_ONLY | HOST_NO_ACCESS) != 0)
            || (writes && self.flags & (HOST_READ_ONLY | HOST_NO_ACCESS) != 0);
        if refused { Err(Status::INVALID_OPERATION.into()) } else { Ok(()) }
    }

    /// Records a mapped range and returns it.
    pub fn map(&self, offset: usize, size: usize, written: bool) -> Outcome<Mapping> {
        let in_buffer = self.range(offset, size)?;
        let pointer = if self.host.is_null() { in_buffer } else { self.host.offset(offset) };
        let mapping = Mapping { pointer, offset, size, written, region: None };
        lock(&self.maps).push(mapping);
        Ok(mapping)
    }

    /// Records mapped texels of an image and returns them, with the distances of rows and of slices.
    pub fn map_texels(&self, region: Region, written: bool) -> Outcome<(Mapping, Pitched)> {
        let mapped = self.texels(&region, !self.host.is_null())?;
        let mapping = Mapping { pointer: mapped.at, offset: 0, size: 0, written, region: Some(region) };
        lock(&self.maps).push(mapping);
        Ok((mapping, mapped))
    }

    /// Returns what distinguishes an image from a buffer.
    pub fn picture(&self) -> Option<&Picture> {
        self.image.as_ref()
    }

    /// Returns the place of texels of an image: in the image, or in the program's memory for it.
    pub fn texels(&self, region: &Region, in_program: bool) -> Outcome<Pitched> {
        let image = self.image.as_ref().ok_or(Status::INVALID_MEM_OBJECT)?;
        Ok(match in_program {
            true => image.in_program(self.host, region),
            // SAFETY: the region was checked when the command was enqueued. Commands keep the image alive while
            // they use it.
            false => image.arrangement.region(unsafe { Memory::at(self.address) }, region),
        })
    }

    /// Removes the mapped range with the given pointer.
    pub fn unmap(&self, pointer: Memory) -> Outcome<Mapping> {
        let mut maps = lock(&self.maps);
        let at = maps.iter().rposition(|mapping| mapping.pointer == pointer);
        let at = at.ok_or_else(|| Status::INVALID_VALUE.because("no range is mapped at this address"))?;
        Ok(maps.remove(at))
    }

    /// Copies a mapped range from the program's memory to the buffer if `from_program`, otherwise from the
    /// buffer to the program's memory. Does nothing if the buffer is mapped at its own address.
    pub fn synchronise(&self, mapping: &Mapping, from_program: bool) -> Outcome {
        if let Some(region) = &mapping.region {
            if !self.host.is_null() {
                let (own, program) = (self.texels(region, false)?, self.texels(region, true)?);
                let (to, from) = if from_program { (own, program) } else { (program, own) };
                let width = region.size[0] * self.image.as_ref().map_or(0, Picture::texel_bytes);
                let copy = Copy { to, from, width, height: region.size[1], depth: region.size[2] };
                // SAFETY: the mapped texels are inside the image and inside the program's memory for it.
                unsafe { copy.run() };
            }
            return Ok(());
        }
        let in_buffer = self.range(mapping.offset, mapping.size)?;
        match (self.host.is_null(), from_program) {
            (true, _) => {}
            // SAFETY: the mapped range is inside the buffer and inside the program's memory for it.
            (false, true) => unsafe { in_buffer.copy_from(mapping.pointer, mapping.size) },
            // SAFETY: as above.
            (false, false) => unsafe { mapping.pointer.copy_from(in_buffer, mapping.size) },
        }
        Ok(())
    }
}

/// Checks that at most one of the flags in `of` is set.
fn at_most_one(flags: u64, of: u64) -> Outcome {
    if (flags & of).count_ones() > 1 { Err(Status::INVALID_VALUE.into()) } else { Ok(()) }
}

/// Checks the flags of a memory object.
pub fn check_flags(flags: u64) -> Outcome {
    at_most_one(flags, KERNEL_ACCESS)?;
    at_most_one(flags, HOST_ACCESS)?;
    at_most_one(flags, USE_HOST_PTR | ALLOC_HOST_PTR)?;
    at_most_one(flags, USE_HOST_PTR | COPY_HOST_PTR)?;
    match flags & !(KERNEL_ACCESS | HOST_ACCESS | HOST_MEMORY | KERNEL_READ_AND_WRITE) {
        0 => Ok(()),
        _ => Err(Status::INVALID_VALUE.into()),
    }
}

/// Creates a buffer.
///
/// # Safety
/// Unless it is null, `host` is memory of this size, which the flags may require to be valid as long as the buffer.
unsafe fn new(
    context: Handle,
    flags: u64,
    size: usize,
    host: Memory,
    properties: Vec<u64>,
) -> Outcome<Handle> {
    let context = handle::get::<Context>(context)?;
    check_flags(flags)?;
    if size == 0 || size as u64 > gpu()?.max_allocation() {
        return Err(Status::INVALID_BUFFER_SIZE.because(format!("{size} bytes")));
    }
    if host.is_null() == (flags & (USE_HOST_PTR | COPY_HOST_PTR) != 0) {
        return Err(Status::INVALID_HOST_PTR.into());
    }
    let uses = flags & USE_HOST_PTR != 0;
    // Shared virtual memory is used in place.
    let shared = match crate::svm::allocation(host.address()) {
        Some(range) if uses => {
            if host.address() - range.address + size as u64 > range.len {
                return Err(Status::INVALID_HOST_PTR.into());
            }
            true
        }
        _ => false,
    };
    let owned = if shared { None } else { Some(Owned::new(&gpu()?.device, size as u64, "clCreateBuffer")?) };
    let buffer = register(Parts {
        context,
        flags,
        address: owned.as_ref().map_or(host.address(), Owned::address),
        size,
        parent: None,
        host: if uses { host } else { Memory::null() },
        owned,
        properties,
        image: None,
    });
    if !host.is_null() && !shared {
        let whole = buffer.range(0, size)?;
        // SAFETY: the caller guarantees memory of the buffer's size.
        unsafe { whole.copy_from(host, size) };
    }
    Ok(buffer.handle())
}

/// `clCreateBuffer`.
pub unsafe extern "C" fn clCreateBuffer(
    context: Handle,
    flags: u64,
    size: usize,
    host: Memory,
    status: Out<c_int>,
) -> Handle {
    // SAFETY: the caller of the API passes memory of the buffer's size, as the flags require.
    create("clCreateBuffer", &status, || unsafe { new(context, flags, size, host, Vec::new()) })
}

/// Reads the properties of a memory object. None are defined.
pub fn properties(list: In<u64>) -> Outcome<Vec<u64>> {
    match list.is_null() {
        true => Ok(Vec::new()),
        false if list.get()? == 0 => Ok(vec![0]),
        false => Err(Status::INVALID_PROPERTY.into()),
    }
}

/// `clCreateBufferWithProperties`.
pub unsafe extern "C" fn clCreateBufferWithProperties(
    context: Handle,
    properties: In<u64>,
    flags: u64,
    size: usize,
    host: Memory,
    status: Out<c_int>,
) -> Handle {
    create("clCreateBufferWithProperties", &status, || {
        let list = self::properties(properties)?;
        // SAFETY: the caller of the API passes memory of the buffer's size, as the flags require.
        unsafe { new(context, flags, size, host, list) }
    })
}

/// Returns the flags of an object in the memory of another one.
pub fn inherit(flags: u64, of_parent: u64) -> Outcome<u64> {
    if flags & HOST_MEMORY != 0 {
        return Err(Status::INVALID_VALUE.into());
    }
    let kernel = if flags & KERNEL_ACCESS == 0 { of_parent } else { flags } & KERNEL_ACCESS;
    let host = if flags & HOST_ACCESS == 0 { of_parent } else { flags } & HOST_ACCESS;
    if of_parent & (WRITE_ONLY | READ_ONLY) != 0 && kernel != of_parent & KERNEL_ACCESS {
        return Err(Status::INVALID_VALUE.into());
    }
    Ok(kernel | host | of_parent & HOST_MEMORY)
}

/// `cl_buffer_region`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SubBuffer {
    origin: usize,
    size: usize,
}

/// `clCreateSubBuffer`.
pub unsafe extern "C" fn clCreateSubBuffer(
    parent: Handle,
    flags: u64,
    kind: c_uint,
    region: In<SubBuffer>,
    status: Out<c_int>,
) -> Handle {
    create("clCreateSubBuffer", &status, || {
        const REGION: c_uint = 0x1220;
        let parent = buffer(parent)?;
        check_flags(flags)?;
        if parent.parent.is_some() {
            return Err(Status::INVALID_MEM_OBJECT.because("a sub-buffer cannot have sub-buffers"));
        }
        if kind != REGION || flags & HOST_MEMORY != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let flags = inherit(flags, parent.flags)?;
        let SubBuffer { origin, size } = region.get()?;
        if size == 0 {
            return Err(Status::INVALID_BUFFER_SIZE.into());
        }
        let address = parent.range(origin, size)?.address();
        if !origin.is_multiple_of(ALIGNMENT) {
            return Err(Status::MISALIGNED_SUB_BUFFER_OFFSET.into());
        }
        Ok(register(Parts {
            context: parent.context.clone(),
            flags,
            address,
            size,
            host: if parent.host.is_null() { Memory::null() } else { parent.host.offset(origin) },
            parent: Some((parent, origin)),
            owned: None,
            properties: Vec::new(),
            image: None,
        })
        .handle())
    })
}

/// `clGetMemObjectInfo`.
pub unsafe extern "C" fn clGetMemObjectInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetMemObjectInfo", || {
        let object = handle::get::<MemObject>(handle)?;
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x1100 => query.u32(object.image.as_ref().map_or(ImageKind::BUFFER, |image| image.kind as u32)),
            0x1101 => query.u64(object.flags),
            0x1102 => query.word(object.size),
            0x1103 => query.word(object.host.address() as usize),
            0x1104 => query.u32(lock(&object.maps).len() as u32),
            0x1105 => query.u32(handle::references(handle)),
            0x1106 => query.handle(object.context.handle()),
            0x1107 => query.handle(object.parent.as_ref().map_or(Handle::NULL, |(p, _)| p.handle())),
            0x1108 => query.word(object.parent.as_ref().map_or(0, |(_, offset)| *offset)),
            0x1109 => {
                let whole = object.parent.as_ref().map_or(&object, |(parent, _)| parent);
                query.u32((!whole.host.is_null() && whole.owned.is_none()).into())
            }
            0x110a => {
                let bytes: Vec<u8> = object.properties.iter().flat_map(|p| p.to_le_bytes()).collect();
                query.bytes(&bytes)
            }
            _ => unknown_parameter(),
        }
    })
}

/// `clSetMemObjectDestructorCallback`.
pub unsafe extern "C" fn clSetMemObjectDestructorCallback(
    handle: Handle,
    function: Option<Destructor>,
    data: UserData,
) -> c_int {
    call("clSetMemObjectDestructorCallback", || {
        handle::get::<MemObject>(handle)?.identity.on_destroy(function, data)
    })
}
