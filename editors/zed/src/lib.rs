//! The extension for Zed. It starts `wavesim lsp`.

use zed_extension_api::{register_extension, Command, Extension, LanguageServerId, Result, Worktree};

struct Wavesim;

impl Extension for Wavesim {
    fn new() -> Wavesim {
        Wavesim
    }

    fn language_server_command(&mut self, _: &LanguageServerId, worktree: &Worktree) -> Result<Command> {
        let command = worktree.which("wavesim").ok_or("`wavesim` is not in PATH")?;
        Ok(Command { command, args: vec!["lsp".to_string()], env: worktree.shell_env() })
    }
}

register_extension!(Wavesim);
