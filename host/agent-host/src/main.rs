//! `agent-host`: reads the configuration, wires the layers together, and talks with a host that is running.
//!
//! Never in here: rules, routes, SQL, wasmtime.

mod cli;
mod client;
mod command;
mod config;
mod failure;
mod guests;
mod serve;
mod terminal;
mod token;

use clap::Parser;
use cli::{Cli, Command};
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use terminal::Terminal;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::CompileComponent(limits) = &cli.command {
        return command::compile(limits);
    }
    let terminal = Terminal::new(cli.json, cli.quiet);
    log(matches!(cli.command, Command::Serve(_)));
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(failure::Failure::from)
        .and_then(|runtime| runtime.block_on(command::run(cli, terminal)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal.failure(&failure);
            failure.exit_code()
        }
    }
}

/// The log goes to stderr: everything of note while serving, warnings otherwise; `RUST_LOG` says otherwise.
fn log(serving: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(if serving { "info" } else { "warn" }));
    let colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(colours).init();
}
