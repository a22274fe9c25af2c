//! `agent-host`: reads the configuration, wires the layers together, and talks with a host that is
//! running.
//!
//! Never in here: rules, routes, SQL, wasmtime.
//!
//! ## Where things are
//!
//! - `main.rs`: the process: threads, signals, exit codes
//! - `cli.rs`, `cli/`: the command line and its help texts
//! - `command.rs`, `command/`: the commands, one file each; `command/component/` and
//!   `command/grants/` explain grants, `command/chat/` is the conversation in a terminal
//! - `answer.rs`: the answer of a command, for people and for programs, and the fields that it
//!   shows
//! - `client.rs`: the client of a running host
//! - `config.rs`, `config/`: the configuration, one file a subject. The whole of it is in
//!   `config/document.rs`, reading it in `config/file.rs`, its checks in `config/check.rs`, limits
//!   of the whole host in `config/limits.rs`
//! - `serve.rs`, `serve/`: running the host: the wiring of the layers; `guests.rs`: loading
//!   components
//! - `init.rs`, `init/`: a first configuration
//! - `reload.rs`, `reload/`: reading the configuration again while the host serves
//! - `dev.rs`, `dev/`: the host for authors of plugins, which takes up changes while it serves
//! - `new.rs`, `new/`: projects of plugins, with the files that the program carries for them
//! - `plugin.rs`, `plugin/`: tests of a plugin without a host, and the manifest in it
//! - `token.rs`: the host's own token
//! - `markdown.rs`, `markdown/`: replies as a terminal shows them
//! - `terminal.rs`: everything that is printed; `failure.rs`: failures and exit codes;
//!   `invocation.rs`: commands that are suggested; `log.rs`: the log, without secrets

mod answer;
mod cli;
mod client;
mod command;
mod config;
mod dev;
mod failure;
mod guests;
mod init;
mod invocation;
mod log;
mod markdown;
mod models;
mod new;
mod plugin;
mod reload;
mod serve;
mod terminal;
mod token;

use cli::Command;
use std::process::ExitCode;
use std::time::Duration;
use terminal::Terminal;
use tokio::signal::unix::{SignalKind, signal};

/// The signal to a process that exceeds its limit on file sizes: the same number on Linux and
/// macOS.
const SIGXFSZ: i32 = 25;

/// Time that the exiting process waits for tasks that still run.
const LEAVE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(wrong) if wrong.use_stderr() && cli::wants_json(std::env::args_os()) => {
            let failure = cli::failure(&wrong);
            Terminal::new(true, false).failure(&failure);
            return failure.exit_code();
        }
        // Clap itself would not tell that the help or the version could not be written.
        Err(help) if !help.use_stderr() => {
            let terminal = Terminal::new(false, false);
            terminal::tell(help.print());
            return ended(terminal, terminal::written());
        }
        Err(wrong) => wrong.exit(),
    };
    if let Command::CompileComponent(limits) = &cli.command {
        return command::compile(limits);
    }
    if matches!(cli.command, Command::KeepProgram) {
        return command::keep_program();
    }
    if let Command::ConfineProgram(what) = &cli.command {
        return command::confine_program(what);
    }
    let terminal = Terminal::new(cli.json, cli.quiet);
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads
        .enable_all()
        .on_thread_start(runtime::Runtime::ready_thread);
    let result = threads
        .build()
        .map_err(failure::Failure::from)
        .and_then(|runtime| {
            let ended = runtime.block_on(async {
                outlive_files_that_are_full()?;
                command::run(cli, terminal).await
            });
            // A thread that the system holds on to, in a file that does not answer, must not keep
            // the process from ending.
            runtime.shutdown_timeout(LEAVE);
            ended
        });
    ended(terminal, result.and_then(|()| terminal::written()))
}

fn ended(terminal: Terminal, result: Result<(), failure::Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal.failure(&failure);
            failure.exit_code()
        }
    }
}

/// Turns writes beyond the process's limit on file sizes (`ulimit -f`) into errors. Otherwise they
/// would end the process.
fn outlive_files_that_are_full() -> std::io::Result<()> {
    // Whoever listens to a signal takes its effect away, for good; it need not be heard.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}
