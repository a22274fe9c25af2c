//! The options of `serve` and `dev`, and of the processes that a host starts.

use clap::Args;
use domain::id::SessionId;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

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
