//! The command line.

mod agents;
mod config;
mod edge;
mod local;
mod plugin;
mod record;
mod scopes;
mod session;
#[cfg(test)]
mod tests;

use crate::failure::{Exit, Failure};
pub(crate) use agents::{Agents, Memory, Prompt, Task};
pub(crate) use config::{Component, Config, Grants, Key, Model, Suggest, Token};
pub(crate) use edge::{Connector, Trigger};
pub(crate) use local::{
    Backup, COMPILE_COMMAND, CONFINE_COMMAND, Clock, CompileComponent, Completions, ConfineProgram,
    Dev, Doctor, Init, KEEP_COMMAND, Man, Restore, Serve, Verify,
};
#[cfg(test)]
pub(crate) use plugin::STAMP_HELP;
pub(crate) use plugin::{Kind, Language, New, Plugin, Stamp, Test};
pub(crate) use record::{Audit, Events, Telemetry, Usage, UsageKey};
pub(crate) use scopes::{describe, parse};
pub(crate) use session::{Chat, DeadLetter, Session};

use anyhow::anyhow;
use clap::builder::RangedI64ValueParser;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "agent-host",
    version,
    about = "Runs sandboxed agents that hold durable conversations, and serves them over HTTP.",
    after_help = "Try it:\n  agent-host serve --config examples/demo/agent-host.toml\n  agent-host \
                  chat  --config examples/demo/agent-host.toml      (in another terminal)\n\n\
        Exit codes:\n  0 done   1 failed   2 wrong usage or configuration   3 refused   4 no host is running\n\n\
        Environment:\n  AGENT_HOST_CONFIG       the config file\n  \
        AGENT_HOST__<KEY>       single keys of it: `__` between levels, `_` before a capital \
        letter,\n                          \
        so AGENT_HOST__LIMITS__HOPS_MAX=8 is limits.hopsMax\n  \
        AGENT_HOST_TOKEN        an API key or token for the commands that ask a running host; by \
        default its own token\n  \
        AGENT_HOST_COMPONENTS   the folder with the built-in components\n  \
        RUST_LOG                the filter of the log, before server.log\n  \
        NO_COLOR                as usual\n  \
        An empty variable counts as one that is not set"
)]
pub(crate) struct Cli {
    /// The config file, TOML or JSON by its extension; $AGENT_HOST_CONFIG without
    #[arg(long, short, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The data folder, instead of `server.dataDir`. Commands that ask a running host find its
    /// address and its token there
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// Send the credential to whoever listens at the host's address. By default, the host proves
    /// first that it runs on the data folder
    #[arg(long, global = true)]
    pub(crate) trust_address: bool,
    /// Print results as JSON: one document, or one line for each thing that happens
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print results only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// The command to run
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the host
    #[command(
        after_help = "Stops on SIGTERM or Ctrl-C, after turns in progress have come to a pause. \
                      Nothing is lost, however it ends.\n\n\
        Example:\n  agent-host serve --config examples/demo/agent-host.toml"
    )]
    Serve(Serve),
    /// Run the host while you develop a plugin, on loopback: changed components, grants and agents
    /// are served from the next turn on, without a restart
    #[command(
        after_help = local::AFTER_DEV
    )]
    Dev(Dev),
    /// Make a project for an agent, a tool, a trigger or a connector of your own, with all that it
    /// builds with
    #[command(
        after_help = "Makes the folder NAME here; its README.md has the commands.\n\n\
        Examples:\n  agent-host new tool word-count\n  agent-host new agent poet --lang python\n  \
        agent-host new trigger questions\n  agent-host new connector pager"
    )]
    New(New),
    /// Write a first configuration
    Init(Init),
    /// Test a plugin of your own, and write its manifest into it, without a host
    #[command(subcommand)]
    Plugin(Plugin),
    /// Talk with an agent of a running host
    #[command(after_help = session::CHAT_HELP)]
    Chat(Chat),
    /// Look at components: what they offer, import and are granted
    #[command(subcommand)]
    Component(Component),
    /// Look at the sessions of a running host
    #[command(subcommand)]
    Session(Session),
    /// Look at the notes that agents keep, and forget them
    #[command(subcommand)]
    Memory(Memory),
    /// Look at the prompts that models get
    #[command(subcommand)]
    Prompt(Prompt),
    /// Look at the events of a running host
    #[command(subcommand)]
    Events(Events),
    /// Watch a running host as it works: messages, calls of models and tools, sessions, agents
    #[command(
        after_help = "Nothing of it is stored: it begins when the command does. `events tail` shows \
                      what was stored.\n\nExamples:\n  agent-host telemetry\n  \
                      agent-host telemetry --type 'llm.*' --type error\n  agent-host telemetry \
                      --type message.processed --count 1 --json"
    )]
    Telemetry(Telemetry),
    /// Look at what the boundary decided: what was granted, refused and limited, and what left the
    /// host
    #[command(
        after_help = "Every line comes from a stored event; `verify` checks their \
                      chain.\n\nExamples:\n  \
        agent-host audit --verdict refused\n  agent-host audit --component web --json > \
        web.jsonl\n  agent-host audit --follow"
    )]
    Audit(Audit),
    /// Look at the models of a running host, and whether their providers answer
    #[command(subcommand)]
    Model(Model),
    /// Look at what models and tools were asked and what that cost, by session, agent, user, day or
    /// model
    Usage(Usage),
    /// Look at grants: why an agent may or may not, and what a changed configuration changes
    #[command(subcommand)]
    Grants(Grants),
    /// Check that everything that was stored is still as it was
    #[command(
        after_help = "Asks the running host, or opens the data folder when none is running. Checks \
                      the chain of events, the blobs that events refer to, and the data that is \
                      derived from events. Stored idempotency keys cannot be checked: no event \
                      records them."
    )]
    Verify(Verify),
    /// Fold all events again, also while the host is running, and replace stored data that does not
    /// match them
    #[command(
        after_help = "Asks the running host, or opens the data folder when none is running. Only \
                      commits wait, while data that differs is replaced. The result has the \
                      number of rows by table. Ctrl-C ends the command, but not the rebuild."
    )]
    Rebuild,
    /// Rewrite the database file, which removes remains of purged data and frees disk space; the
    /// host must be stopped
    #[command(
        after_help = "Opens the data folder. Nothing can be stored meanwhile, so stop the host \
                      first. Takes about a second for a few hundred megabytes, and needs as much \
                      free disk space as the database has."
    )]
    Vacuum,
    /// Make a backup, also while the host is running
    #[command(after_help = "Example:\n  agent-host backup /backups/agent-host-$(date +%F).sqlite")]
    Backup(Backup),
    /// Make a data folder from a backup
    #[command(
        after_help = "Example:\n  agent-host restore /backups/agent-host-2026-11-01.sqlite --data \
                      ./data-restored"
    )]
    Restore(Restore),
    /// Work that agents handed to each other: list, show, cancel, sum up
    #[command(subcommand)]
    Task(Task),
    /// List inputs that could not be processed, and queue them again
    #[command(subcommand, name = "dead-letter")]
    DeadLetter(DeadLetter),
    /// Import sessions of the system that this one replaces into a running host; repeating it
    /// imports nothing twice
    Import {
        /// A JSON document: {"format": "agent-host.sessions/1", "sessions": [...]}
        file: PathBuf,
    },
    /// The time of a running host: look at it, and confirm the wall clock after it was set
    #[command(subcommand)]
    Clock(Clock),
    /// Look at the configuration
    #[command(subcommand)]
    Config(Config),
    /// Have a running host read its configuration again, and show the differences
    #[command(
        after_help = "The host also does so on SIGHUP, and when the file changes unless \
                            `server.reload` is `manual`. Granted folders in whose places others \
                            are now are opened anew. If anything \
                            in it is wrong, all of it is refused (exit code 3)."
    )]
    Reload,
    /// API keys of a running host: issue, list, revoke
    #[command(subcommand)]
    Key(Key),
    /// Look at the agents of a running host, and make definitions of your own
    #[command(subcommand)]
    Agents(Agents),
    /// Triggers of a running host: list, show, run, pause, resume, remove, and their history
    #[command(subcommand)]
    Trigger(Trigger),
    /// Connectors of a running host, the keys by which they know its users, pairing codes and
    /// outbound messages
    #[command(subcommand)]
    Connector(Connector),
    /// The bearer token of the API
    #[command(subcommand)]
    Token(Token),
    /// Report the state of a running host: version, uptime, sessions, errors, size
    Status,
    /// Check the machine and the configuration, and print the fix for what is wrong
    #[command(after_help = local::DOCTOR_HELP)]
    Doctor(Doctor),
    /// Print the completions of a shell
    #[command(after_help = local::COMPLETIONS_HELP)]
    Completions(Completions),
    /// Write the manual pages, one a command
    #[command(after_help = "Example:\n  agent-host man --out /usr/local/share/man/man1")]
    Man(Man),
    /// Compile a component from stdin to stdout: what the host starts for each one that it has not
    /// compiled before
    #[command(name = COMPILE_COMMAND, hide = true)]
    CompileComponent(CompileComponent),
    /// Start the program that an order on stdin names, and end all that it started: what the host
    /// starts for each turn of a command-line agent
    #[command(name = KEEP_COMMAND, hide = true)]
    KeepProgram,
    /// Confine this process and become a program: what `keep-program` starts
    #[command(name = CONFINE_COMMAND, hide = true)]
    ConfineProgram(ConfineProgram),
}

/// Returns a value's word on the command line.
pub(crate) fn word_of(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns the parser of a number of rows, which is at most so many.
fn up_to(most: i64) -> RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=most)
}

/// Returns whether a command line asks for JSON, even if the rest of it is invalid.
pub(crate) fn wants_json(arguments: impl IntoIterator<Item = OsString>) -> bool {
    arguments
        .into_iter()
        .skip(1)
        .take_while(|argument| argument != "--")
        .any(|argument| argument == "--json")
}

/// Returns the failure for an invalid command line, made from the parser's text: the error, perhaps
/// a tip, and the usage.
pub(crate) fn failure(wrong: &clap::Error) -> Failure {
    let text = wrong.render().to_string();
    let on_one_line = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = text.split("\n\n").map(on_one_line);
    let message = match wrong.kind() {
        // The text is the help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "the command is not complete".to_owned()
        }
        _ => parts
            .next()
            .map(|part| part.trim_start_matches("error: ").to_owned())
            .unwrap_or_default(),
    };
    let tip = parts.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
    Failure::new(Exit::Usage, anyhow!(message))
        .advise(tip.unwrap_or_else(|| "--help tells what there is".to_owned()))
}
