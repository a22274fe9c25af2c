//! The commands about this machine and this program: `serve` and `dev`, stored data, the clock,
//! `init`, `doctor`, completions.

use clap::{Args, Subcommand};
use clap_complete::Shell;
use domain::id::SessionId;
use std::ffi::OsString;
use std::net::SocketAddr;
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

/// The destination of a backup.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// A file that is not there yet
    pub(crate) file: PathBuf,
}

/// Options for checking the stored data.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Do the same as `rebuild` first
    #[arg(long)]
    pub(crate) rebuild: bool,
}

/// The backup to restore, and its destination.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup
    pub(crate) file: PathBuf,
    /// A folder that is empty or not there yet
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: PathBuf,
}

/// The command that compiles a component.
pub(crate) const COMPILE_COMMAND: &str = "compile-component";
/// The command that keeps a program in a model's place.
pub(crate) const KEEP_COMMAND: &str = "keep-program";
/// The command that confines itself and becomes such a program.
pub(crate) const CONFINE_COMMAND: &str = "confine-program";

/// The end of the help of `dev`.
pub(super) const AFTER_DEV: &str = "Serves as `serve` does. A turn that has begun ends with the code \
    that it began with. What is wrong is printed, and what was served goes on. Changes of the \
    configuration apply as with `serve`; some keys, and the rules of a scripted provider, need a \
    restart, and are named. This is for your own machine: in production, restart `serve`.\n\n\
    Examples:\n  agent-host dev --config agent-host.toml\n  agent-host dev --config \
    agent-host.toml --watch src --build make";

/// Options for running the host.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Listen here instead of `server.listen`; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::config::listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// On a data folder restored from a backup: continue work that was in progress, even if its
    /// effects were sent already
    #[arg(long, conflicts_with = "settle_unknown")]
    pub(crate) resume_effects: bool,
    /// On a data folder restored from a backup: treat calls in progress as of unknown outcome, and
    /// turn waiting inputs into dead letters
    #[arg(long)]
    pub(crate) settle_unknown: bool,
    /// Put this session in quarantine: nothing is done for it until `session release`, or a start
    /// without this option; repeatable
    #[arg(long, value_name = "SESSION")]
    pub(crate) skip: Vec<SessionId>,
}

/// Options for developing plugins on a host.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// The options that `serve` has too.
    #[command(flatten)]
    pub(crate) serve: Serve,
    /// Run this command in a shell before the host starts, and whenever sources change
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// Look for changed sources in this folder; repeatable; by default in the current folder
    #[arg(long, value_name = "DIR", requires = "build")]
    pub(crate) watch: Vec<PathBuf>,
}

/// Limits for compiling a component.
#[derive(Debug, Args)]
pub(crate) struct CompileComponent {
    /// The process that must be its parent; with any other, nothing is compiled
    #[arg(long, value_name = "PID")]
    pub(crate) parent: Option<u32>,
    /// Bytes of address space
    #[arg(long, default_value_t = runtime::CompileLimits::default().memory_bytes_max, value_name = "BYTES")]
    pub(crate) memory_bytes_max: u64,
    /// Seconds of CPU time, on all threads together
    #[arg(long, default_value_t = runtime::CompileLimits::default().cpu_s_max, value_name = "SECONDS")]
    pub(crate) cpu_s_max: u64,
}

/// The confinement of a program, and its command.
#[derive(Debug, Args)]
pub(crate) struct ConfineProgram {
    /// The confinement, as JSON
    pub(crate) confinement: String,
    /// The program's file and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
