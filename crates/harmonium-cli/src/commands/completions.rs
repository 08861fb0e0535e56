//! `completions`: prints a shell-completion script.

use super::Cli;
use crate::args::Common;
use crate::error::Result;
use crate::output::put_bytes;
use clap::{Args, CommandFactory};

/// Flags of `completions`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium completions bash > ~/.local/share/bash-completion/completions/harmonium
  harmonium completions zsh  > ~/.zfunc/_harmonium
  harmonium completions fish > ~/.config/fish/completions/harmonium.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "harmonium", &mut script);
        put_bytes(&script)
    }
}
