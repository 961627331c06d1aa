//! What differs between operating systems: links, folders that only the user can access, and groups of processes.

use std::io;
use std::path::Path;
use std::process::{Child, Command};

/// Makes a file available under another path.
#[cfg(unix)]
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

/// Makes a file available under another path: links need rights that users of Windows may lack.
#[cfg(not(unix))]
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(from, to).map(drop)
}

/// Creates a folder that only the current user can access.
#[cfg(unix)]
pub fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates a folder; elsewhere, the folder for temporary files is the user's own.
#[cfg(not(unix))]
pub fn create_private(folder: &Path) -> io::Result<()> {
    std::fs::create_dir(folder)
}

/// Makes a process and those that it starts a group that [`kill`] ends.
#[cfg(unix)]
pub fn own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Groups do not exist here.
#[cfg(not(unix))]
pub fn own_group(_: &mut Command) {}

/// Ends a process and its group.
#[cfg(unix)]
pub fn kill(child: &mut Child) -> io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process_group};
    Ok(kill_process_group(Pid::from_child(child), Signal::KILL)?)
}

/// Ends a process.
#[cfg(not(unix))]
pub fn kill(child: &mut Child) -> io::Result<()> {
    child.kill()
}
