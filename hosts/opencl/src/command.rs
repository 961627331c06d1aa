//! The types of commands, which their events report.

/// `cl_command_type` (`cl.h` of the OpenCL 3.0 headers, `CL_COMMAND_…`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum CommandType {
    NdRangeKernel = 0x11f0,
    Task = 0x11f1,
    ReadBuffer = 0x11f3,
    WriteBuffer = 0x11f4,
    CopyBuffer = 0x11f5,
    MapBuffer = 0x11fb,
    UnmapMemObject = 0x11fd,
    Marker = 0x11fe,
    ReadBufferRect = 0x1201,
    WriteBufferRect = 0x1202,
    CopyBufferRect = 0x1203,
    User = 0x1204,
    Barrier = 0x1205,
    MigrateMemObjects = 0x1206,
    FillBuffer = 0x1207,
    SvmFree = 0x1209,
    SvmMemcpy = 0x120a,
    SvmMemFill = 0x120b,
    SvmMap = 0x120c,
    SvmUnmap = 0x120d,
    SvmMigrateMem = 0x120e,
}
