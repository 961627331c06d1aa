//! What differs between operating systems: links, folders that only the user can access, and groups of processes.

use std::io;
use std::path::Path;
#[cfg(unix)]
use std::process::Stdio;
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

/// Ends a process and its group if this process ends before it, even by a signal that it cannot handle.
#[cfg(unix)]
pub struct Watch(Child);

#[cfg(unix)]
impl Watch {
    /// Starts a shell in the group of a process. Its input ends when this process does. A signal at the death of the
    /// parent would reach clang's driver only, and not the compiler and the linker. `None` if there is no shell.
    pub fn start(child: &Child) -> Option<Watch> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "read -r _; kill -9 0"]);
        std::os::unix::process::CommandExt::process_group(&mut shell, child.id().try_into().ok()?);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.spawn().ok().map(Watch)
    }
}

#[cfg(unix)]
impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended with the group.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Groups do not exist here.
#[cfg(not(unix))]
pub struct Watch;

#[cfg(not(unix))]
impl Watch {
    /// Does nothing.
    pub fn start(_: &Child) -> Option<Watch> {
        None
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_group_ends_with_the_process_that_started_it() {
        let start = || {
            let mut command = Command::new("sh");
            command.args(["-c", "sleep 60 & echo started; wait"]).stdout(Stdio::piped());
            own_group(&mut command);
            command.spawn().unwrap()
        };
        let mut child = start();
        let mut watch = Watch::start(&child).unwrap();
        // As if this process had ended: the pipe is closed.
        drop(watch.0.stdin.take());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        // The child's own child holds the pipe open as long as it lives.
        std::io::copy(&mut child.stdout.take().unwrap(), &mut io::sink()).unwrap();
        // Without that, the process goes on.
        let mut child = start();
        drop(Watch::start(&child));
        assert_eq!(child.try_wait().unwrap(), None);
        kill(&mut child).unwrap();
        child.wait().unwrap();
    }
}
