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
    ReadImage = 0x11f6,
    WriteImage = 0x11f7,
    CopyImage = 0x11f8,
    CopyImageToBuffer = 0x11f9,
    CopyBufferToImage = 0x11fa,
    MapBuffer = 0x11fb,
    MapImage = 0x11fc,
    UnmapMemObject = 0x11fd,
    Marker = 0x11fe,
    ReadBufferRect = 0x1201,
    WriteBufferRect = 0x1202,
    CopyBufferRect = 0x1203,
    User = 0x1204,
    Barrier = 0x1205,
    MigrateMemObjects = 0x1206,
    FillBuffer = 0x1207,
    FillImage = 0x1208,
    SvmFree = 0x1209,
    SvmMemcpy = 0x120a,
    SvmMemFill = 0x120b,
    SvmMap = 0x120c,
    SvmUnmap = 0x120d,
    SvmMigrateMem = 0x120e,
}
