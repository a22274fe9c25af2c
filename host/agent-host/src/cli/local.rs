//! The commands about this machine and this program: its clock, `init`, `doctor`, completions.

use clap::{Args, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// The help below the options of `doctor`.
pub(super) const DOCTOR_HELP: &str = "\
Looks at the configuration, the data folder and its file system, disk space, the port, the token, \
the components, the keys of model providers and the clock. Each line is `ok`, `warn` or `fail`, with \
the fix. It changes nothing, and works whether or not a host is running. Components are compiled anew \
for it, which takes some seconds.

Exit codes:
  0 nothing has failed   1 something has, or warns with --strict

Examples:
  agent-host doctor
  agent-host doctor --ask-models     # also sends each model a request of a few tokens";

/// The help below the options of `completions`.
pub(super) const COMPLETIONS_HELP: &str = "\
Examples:
  agent-host completions bash > ~/.local/share/bash-completion/completions/agent-host
  agent-host completions zsh > ~/.zfunc/_agent-host
  agent-host completions fish > ~/.config/fish/completions/agent-host.fish";

/// Options of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder to write them to, made if it is not there
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Connect to the model providers too: a request of a few tokens to each model, which is paid
    #[arg(long)]
    pub(crate) ask_models: bool,
    /// Count warnings as failures
    #[arg(long)]
    pub(crate) strict: bool,
}

/// The configuration to write.
#[derive(Debug, Args)]
#[command(
    after_help = "Writes config.toml and script.toml, and overwrites nothing. The host then answers \
                  from the script; comments say how to name a real model.\n\nExamples:\n  agent-host \
                  init                        # for yourself\n  agent-host init --dir \
                  ./my-host        # with its data in it\n  sudo agent-host init --dir \
                  /etc/agent-host   # for the system's service"
)]
pub(crate) struct Init {
    /// The folder, made if it is not there; by default the one in which this program looks for its
    /// configuration
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

/// Commands about the clock.
#[derive(Debug, Subcommand)]
pub(crate) enum Clock {
    /// Show the host's time, and how far the wall clock is from it
    Show,
    /// Confirm that the wall clock is right. After a jump ahead, the host follows it at once
    /// instead of after an hour. If it is behind the host's time, credentials expire by it from
    /// then on
    Confirm,
}
