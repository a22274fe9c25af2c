//! The command line.

mod agents;
mod chat;
mod component;
mod connector;
mod lifetime;
mod local;
mod memory;
mod program;
mod prompt;
mod scopes;
mod serve;
mod session;
mod task;
mod telemetry;
#[cfg(test)]
mod tests;
mod trigger;
mod usage;

use crate::failure::{Exit, Failure};
pub(crate) use agents::Agents;
pub(crate) use chat::Chat;
pub(crate) use component::{Component, Suggest};
pub(crate) use connector::Connector;
pub(crate) use lifetime::Lifetime;
pub(crate) use local::{Completions, Doctor, Man};
pub(crate) use memory::Memory;
pub(crate) use program::{CONFINE_COMMAND, ConfineProgram, KEEP_COMMAND};
pub(crate) use prompt::Prompt;
pub(crate) use scopes::{describe, parse};
pub(crate) use serve::{Dev, Serve};
pub(crate) use session::Session;
pub(crate) use task::Task;
pub(crate) use telemetry::Telemetry;
pub(crate) use trigger::Trigger;
pub(crate) use usage::{Usage, UsageKey};

use anyhow::anyhow;
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The command that compiles a component.
pub(crate) const COMPILE_COMMAND: &str = "compile-component";

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
        after_help = serve::AFTER_DEV
    )]
    Dev(Dev),
    /// Make a project for an agent, a tool, a trigger or a connector of your own, with all that it
    /// builds with
    #[command(
        after_help = "Makes the folder NAME here; its README.md has the commands.\n\n\
        Examples:\n  agent-host new tool word-count\n  agent-host new agent poet --lang python\n  \
        agent-host new trigger questions\n  agent-host new connector pager"
    )]
    New(crate::new::New),
    /// Write a first configuration
    Init(crate::init::Init),
    /// Test a plugin of your own, and write its manifest into it, without a host
    #[command(subcommand)]
    Plugin(crate::plugin::Plugin),
    /// Talk with an agent of a running host
    #[command(after_help = chat::HELP)]
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
    /// deliveries
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

/// Commands about events.
#[derive(Debug, Subcommand)]
pub(crate) enum Events {
    /// Print events; without `--after` the last ones
    #[command(
        after_help = "Examples:\n  agent-host events tail --follow\n  agent-host events tail \
                      --after 0 --json > events.jsonl"
    )]
    Tail {
        /// Only events after this position
        #[arg(long, value_name = "POSITION")]
        after: Option<u64>,
        /// Go on as events happen
        #[arg(long, short)]
        follow: bool,
        /// Only about this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Only about this agent, a UUID
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Number of last events
        #[arg(
            long,
            short = 'n',
            default_value_t = 20,
            value_name = "N",
            conflicts_with = "after"
        )]
        last: u64,
    },
}

/// Commands about models.
#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// List the models by alias: provider, name there, window, and the state last seen
    List,
    /// Ask every provider for its list of models, which costs nothing, and fail if one does not
    /// answer or does not list a model of the configuration
    #[command(
        after_help = "No model is called: `doctor --ask-models` does that.\n\n\
                            Exit codes:\n  0 all are there   1 one is not"
    )]
    Check,
}

/// Filters for lines of the ledger.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only what comes after this position
    #[arg(long, default_value_t = 0, value_name = "POSITION")]
    pub(crate) after: u64,
    /// Go on as decisions are recorded
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only of this agent, a UUID, or of all agents of an `agentId`; `trigger:NAME` and
    /// `connector:NAME` for those
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Only of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only of this run
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Only of turns that act for this user, and of readings by them
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Only of this component, by its name in the configuration
    #[arg(long, value_name = "NAME")]
    pub(crate) component: Option<String>,
    /// Only of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only about this capability, such as `files.write`
    #[arg(long, value_name = "NAME")]
    pub(crate) capability: Option<String>,
    /// Only `granted`, `refused` or `limited`, or the outcome of a request, such as `done`
    #[arg(long, value_name = "WORD")]
    pub(crate) verdict: Option<String>,
}

/// Commands about grants.
#[derive(Debug, Subcommand)]
pub(crate) enum Grants {
    /// Show each list that decides whether an agent may call a tool, the rule, and the call's
    /// bounds; or what a trigger or a connector may do
    #[command(
        after_help = "Examples:\n  agent-host grants explain reading-list reading_list_delete\n  \
                      agent-host grants explain --connector telegram"
    )]
    Explain {
        /// An `agentId` of the configuration
        #[arg(required_unless_present_any = ["trigger", "connector"], requires = "tool")]
        agent: Option<String>,
        /// A tool
        tool: Option<String>,
        /// A trigger of the configuration instead
        #[arg(long, value_name = "NAME", conflicts_with = "agent")]
        trigger: Option<String>,
        /// A connector of the configuration instead
        #[arg(long, value_name = "NAME", conflicts_with_all = ["agent", "trigger"])]
        connector: Option<String>,
    },
    /// Show in what the configuration's agents, lists, code and grants differ from the running
    /// host's, or from another configuration's
    #[command(
        after_help = "Examples:\n  agent-host grants diff                        # what a restart \
                      would change\n  \
        agent-host grants diff --against old.toml"
    )]
    Diff {
        /// A config file to compare with, instead of the running host
        #[arg(long, value_name = "FILE")]
        against: Option<PathBuf>,
    },
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

/// Commands about dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetter {
    /// List them, the newest first
    List,
    /// Show one: the reason, the origin and the message
    Show {
        /// Its input id
        id: String,
    },
    /// Queue one again
    Requeue {
        /// Its input id
        id: String,
        /// Also if a turn had begun with it: what the turn did may be done again
        #[arg(long)]
        repeat: bool,
    },
    /// Drop one for good, after whatever it asked for was done or is wanted no more
    Drop {
        /// Its input id
        id: String,
        /// The reason, for the record
        #[arg(long)]
        reason: Option<String>,
    },
}

/// Commands about the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print its JSON Schema
    Schema,
    /// Check it: keys, folders, files, models, and that every component loads
    #[command(
        after_help = "While a host runs with this file, its own environment counts, and not that \
                      of the caller: it says which variables and secrets it has. Warnings do not \
                      fail the check; with --strict they do (exit code 2)."
    )]
    Check {
        /// Fail on warnings too
        #[arg(long)]
        strict: bool,
    },
    /// Show what the file would change of the configuration that a running host has in force, and
    /// what would be left behind
    #[command(
        after_help = "Nothing is put in force. With `server.reload = \"manual\"` a saved file waits \
                      for `config apply`; otherwise the host takes it up at once, and there is \
                      nothing to show.\n\nExit codes:\n  0 it could be applied   3 it would be refused"
    )]
    Diff,
    /// Have a running host put the file in force, on record with who asked
    #[command(after_help = "If anything in it is wrong, all of it is refused (exit code 3).")]
    Apply,
}

/// Commands about API keys.
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Issue a key. It is printed only once; the host keeps only its hash
    #[command(
        after_help = "Examples:\n  agent-host key create --user alice --scopes read,write \
                      --expires 90d --name laptop\n  \
        KEY=$(agent-host key create --scopes read --quiet)"
    )]
    Create {
        /// The user that the key is for; the caller by default
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// The scopes that it may be used for: any of read, write, keys and admin
        #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
        scopes: Vec<String>,
        /// The time for which it is valid: a number with s, m, h or d
        #[arg(long, value_name = "TIME", default_value = "90d")]
        expires: Lifetime,
        /// Its name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// List keys, also those that have ended
    List {
        /// This user's
        #[arg(long, value_name = "USER", conflicts_with = "all")]
        user: Option<String>,
        /// All users'
        #[arg(long)]
        all: bool,
    },
    /// Revoke a key at once and permanently
    Revoke {
        /// Its id: the part between the underscores
        id: String,
        /// The reason, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// Commands about the token.
#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Print it
    #[command(
        after_help = "Example:\n  curl -H \"authorization: Bearer $(agent-host token show)\" \
                      http://127.0.0.1:7777/api/agents"
    )]
    Show,
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
