//! The command line.

mod lifetime;

use crate::failure::{Exit, Failure};
pub(crate) use lifetime::Lifetime;

use anyhow::anyhow;
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The command that compiles a component.
pub(crate) const COMPILE_COMMAND: &str = "compile-component";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "agent-host",
    version,
    about = "Runs sandboxed agents that hold durable conversations, and serves them over HTTP.",
    after_help = "Try it:\n  agent-host serve --config examples/demo/agent-host.toml\n  agent-host chat  --config examples/demo/agent-host.toml      (in another terminal)\n\n\
        Exit codes:\n  0 done   1 failed   2 the command or the configuration makes no sense   3 refused   4 no host is running\n\n\
        Environment:\n  AGENT_HOST_CONFIG       the config file\n  \
        AGENT_HOST__<KEY>       single keys of it: `__` between levels, `_` before a capital letter,\n                          \
        so AGENT_HOST__LIMITS__HOPS_MAX=8 is limits.hopsMax\n  \
        AGENT_HOST_TOKEN        an API key or token for the commands that ask a running host; its own token without\n  \
        AGENT_HOST_COMPONENTS   the folder with the built-in components\n  RUST_LOG, NO_COLOR      as everywhere"
)]
pub(crate) struct Cli {
    /// The config file, TOML or JSON by its extension
    #[arg(long, short, global = true, env = "AGENT_HOST_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print results as JSON: one document, or one line for each thing that happens
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print results only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the host
    #[command(
        after_help = "Stops on SIGTERM or Ctrl-C: it first lets turns in progress come to a pause, and nothing is lost whatever happens.\n\n\
        Example:\n  agent-host serve --config examples/demo/agent-host.toml"
    )]
    Serve(Serve),
    /// Talk with an agent of a running host
    #[command(after_help = "Every line that you type is a message; when an agent asks something, the line is the answer. Ctrl-D ends.\n\n\
        Examples:\n  agent-host chat\n  agent-host chat --agent tutor\n  agent-host chat --session 3f0c… # goes on with a session\n  \
        echo 'read notes.txt' | agent-host chat --quiet")]
    Chat(Chat),
    /// Look at components: what they offer, import and are granted
    #[command(subcommand)]
    Component(Component),
    /// Look at the sessions of a running host
    #[command(subcommand)]
    Session(Session),
    /// Look at the events of a running host
    #[command(subcommand)]
    Events(Events),
    /// Look at what the boundary decided: what was granted, refused and limited, and what left the host
    #[command(after_help = "Every line comes from an event of the same chain as all others; `verify` checks it.\n\nExamples:\n  \
        agent-host audit --verdict refused\n  agent-host audit --component web --json > web.jsonl\n  agent-host audit --follow")]
    Audit(Audit),
    /// Look at grants: why an agent may or may not, and what a changed configuration changes
    #[command(subcommand)]
    Grants(Grants),
    /// Check that everything that was stored is still as it was
    #[command(after_help = "Asks the running host, or opens the data folder when none is running. Checks the chain of events, the blobs \
                           that they name, and what is folded from them; not the keys of repeated requests, of which nothing else tells.")]
    Verify(Verify),
    /// Fold everything again that follows from the events, also while the host is running, and replace what is not as they say
    #[command(after_help = "Asks the running host, or opens the data folder when none is running. Nothing waits but commits, while what \
                           differs is replaced; the result tells how many rows of which table that were. Ctrl-C stops waiting for it, not it.")]
    Rebuild,
    /// Write the database's file anew, while no host is running: what purges left in unused parts of it is gone then, and space given back
    #[command(
        after_help = "Opens the data folder; nothing could be stored meanwhile, so stop the host first. Takes about a second for some \
                           hundred megabytes, and as much space again as the database has."
    )]
    Vacuum,
    /// Make a backup, also while the host is running
    #[command(after_help = "Example:\n  agent-host backup /backups/agent-host-$(date +%F).sqlite")]
    Backup(Backup),
    /// Make a data folder from a backup
    #[command(after_help = "Example:\n  agent-host restore /backups/agent-host-2026-11-01.sqlite --data ./data-restored")]
    Restore(Restore),
    /// Look at inputs that could not be dealt with, and give them another chance
    #[command(subcommand, name = "dead-letter")]
    DeadLetter(DeadLetter),
    /// Import sessions of the system that this one replaces into a running host, each once
    Import {
        /// A JSON document: {"format": "agent-host.sessions/1", "sessions": [...]}
        file: PathBuf,
    },
    /// Look at the configuration
    #[command(subcommand)]
    Config(Config),
    /// API keys of a running host: issue, list, revoke
    #[command(subcommand)]
    Key(Key),
    /// Look at the agents of a running host by their paths
    #[command(subcommand)]
    Agents(Agents),
    /// What services call the users of a running host: bind, unbind, list
    #[command(subcommand)]
    Connector(Connector),
    /// The bearer token of the API
    #[command(subcommand)]
    Token(Token),
    /// Compile a component from stdin to stdout: what the host starts for each one that it has not compiled before
    #[command(name = COMPILE_COMMAND, hide = true)]
    CompileComponent(CompileComponent),
}

/// How to run the host.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Listen here instead of `server.listen`; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Keep data here instead of `server.dataDir`
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// On a data folder that was restored from a backup: go on with what was under way in it, also where that was sent already
    #[arg(long, conflicts_with = "settle_unknown")]
    pub(crate) resume_effects: bool,
    /// On a data folder that was restored from a backup: let calls that were under way count as of unknown outcome, and put inputs that waited
    /// aside as dead letters
    #[arg(long)]
    pub(crate) settle_unknown: bool,
}

/// With whom to talk.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// An `agentId` of the configuration, or an agent's UUID or path; `assistant`, or the first one, without
    #[arg(long, short, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Go on with this session instead of beginning one
    #[arg(long, short, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The type of session to begin: `chat`, or one that the agent leads; the agent's first without
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "session")]
    pub(crate) session_type: Option<String>,
    /// The model of the session, an alias of the configuration
    #[arg(long, value_name = "MODEL", conflicts_with = "session")]
    pub(crate) model: Option<String>,
}

/// What to do with components.
#[derive(Debug, Subcommand)]
pub(crate) enum Component {
    /// List the components of the configuration
    List,
    /// Look at one component
    #[command(
        after_help = "Examples:\n  agent-host component inspect files\n  agent-host component inspect ./my-tool.wasm   # needs no configuration"
    )]
    Inspect {
        /// Its name in the configuration, or a file
        component: String,
    },
    /// Run calls of a tool component again where they can do no harm, and print the least grant that would have satisfied them
    #[command(
        after_help = "A call finds an empty folder, empty buckets and no way out; requests are refused and put on record, so of a call that \
        gives up then the first one is seen. With --network, GET and HEAD are really sent.\n\nExamples:\n  \
        agent-host component suggest web                     # the calls that the running host has on record\n  \
        agent-host component suggest web --calls calls.jsonl"
    )]
    Suggest(Suggest),
    /// Compare what components ask for with what they are granted: what will be refused, what is granted for nothing, and which line of
    /// the configuration would change it
    Check {
        /// Only this one, by its name in the configuration
        component: Option<String>,
    },
}

/// Which calls of which component.
#[derive(Debug, Args)]
pub(crate) struct Suggest {
    /// Its name in the configuration
    pub(crate) component: String,
    /// Calls, one JSON object a line: {"tool":"web_fetch","arguments":{"url":"https://example.com"}}; without, those that the running host
    /// has on record
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Let GET and HEAD requests out, to any public host
    #[arg(long)]
    pub(crate) network: bool,
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    /// List sessions, of all agents or of one
    List {
        /// Only of this agent: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: Option<String>,
        /// Also those of agents that are hidden (`uiVisible = false`)
        #[arg(long)]
        all: bool,
    },
    /// Show a session and its messages
    Show {
        /// Its id
        id: String,
        /// From this message on
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// Up to this message
        #[arg(long, value_name = "N")]
        to: Option<u64>,
    },
    /// Show the tree of turns that a session is a branch of, and which sessions are where in it
    Tree {
        /// Its id
        id: String,
    },
    /// Compare the threads of two sessions: where they part, and what was said in each alone
    Diff {
        /// The one's id
        a: String,
        /// The other's id, or the id of a turn
        b: String,
    },
    /// Write a session to stdout as JSON lines, for another host or another program
    #[command(after_help = "Examples:\n  agent-host session export 3f0c… > session.jsonl\n  \
        agent-host session export 3f0c… --dialect aix | less")]
    Export {
        /// Its id
        id: String,
        /// `pi` has the whole tree, `aix` the session's thread
        #[arg(long, value_name = "DIALECT", value_parser = ["pi", "aix"], default_value = "pi")]
        dialect: String,
    },
    /// Import a session from a file of JSON lines, of pi's dialect or aix's, as a chat with an agent
    #[command(after_help = "Example:\n  agent-host session import session.jsonl --agent /local/agent/assistant")]
    Import {
        /// The file
        file: PathBuf,
        /// With which agent: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: String,
    },
    /// Look for words in what was said in all sessions
    Search {
        /// What to look for: any of these words, the more of them the better
        #[arg(required = true)]
        words: Vec<String>,
        /// Only in sessions of this agent: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: Option<String>,
        /// At most so many messages, 100 of them
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N")]
        limit: u32,
    },
    /// Have a chat's thread compacted now: a turn of its own summarises what was said, and models see the thread from there on
    Compact {
        /// The session's id
        id: String,
    },
    /// List what waits in a session, in the order in which it was accepted
    Inputs {
        /// The session's id
        id: String,
    },
    /// Purge a session that was deleted, or an agent that was archived: nobody can have back what was said in it
    #[command(
        after_help = "Needs the host's own token. Backups that were made before have it still, and so does whoever it was sent to.\n\n\
        Examples:\n  agent-host session purge 3f0c… --agent /local/agent/assistant --yes\n  \
        agent-host session purge --agent 7a61… --yes   # an archived agent, with all its sessions"
    )]
    Purge {
        /// The session's id; without, the agent itself is purged
        id: Option<String>,
        /// Its agent: a UUID, or a path while the agent is active
        #[arg(long, short, value_name = "AGENT")]
        agent: String,
        /// Say that it is meant
        #[arg(long)]
        yes: bool,
    },
    /// Stop the turn in the making, or take back what waits
    #[command(after_help = "Examples:\n  agent-host session cancel 3f0c…                # stops the turn\n  \
        agent-host session cancel 3f0c… --input 01a2…  # takes back one input that waits\n  \
        agent-host session cancel 3f0c… --waiting      # takes back all that waits, then stops the turn")]
    Cancel {
        /// The session's id
        id: String,
        /// Take back this input, and leave the turn alone
        #[arg(long, value_name = "ID", conflicts_with = "waiting")]
        input: Option<String>,
        /// Take back everything that waits first
        #[arg(long)]
        waiting: bool,
    },
}

/// What to do with events.
#[derive(Debug, Subcommand)]
pub(crate) enum Events {
    /// Print events; without `--after` the last ones
    #[command(after_help = "Examples:\n  agent-host events tail --follow\n  agent-host events tail --after 0 --json > events.jsonl")]
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
        /// How many of the last ones
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N", conflicts_with = "after")]
        last: u64,
    },
}

/// Which lines of the ledger.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only what comes after this position
    #[arg(long, default_value_t = 0, value_name = "POSITION")]
    pub(crate) after: u64,
    /// Go on as decisions are recorded
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only of this agent, a UUID, or of all agents of an `agentId`
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
    /// Only `granted`, `refused` or `limited`, or what became of a request, such as `done`
    #[arg(long, value_name = "WORD")]
    pub(crate) verdict: Option<String>,
}

/// What to do with grants.
#[derive(Debug, Subcommand)]
pub(crate) enum Grants {
    /// Show each list that has a say in whether an agent may call a tool, which rule decides, and what the call would be bound to
    #[command(after_help = "Example:\n  agent-host grants explain reading-list reading_list_delete")]
    Explain {
        /// An `agentId` of the configuration
        agent: String,
        /// A tool
        tool: String,
    },
    /// Show in what the configuration's agents, lists, code and grants differ from the running host's, or from another configuration's
    #[command(after_help = "Examples:\n  agent-host grants diff                        # what a restart would change\n  \
        agent-host grants diff --against old.toml")]
    Diff {
        /// A config file to compare with, instead of the running host
        #[arg(long, value_name = "FILE")]
        against: Option<PathBuf>,
    },
}

/// Where to put a backup.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// A file that is not there yet
    pub(crate) file: PathBuf,
}

/// How to check what was stored.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Before that, do what `rebuild` does
    #[arg(long)]
    pub(crate) rebuild: bool,
}

/// What to restore where.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup
    pub(crate) file: PathBuf,
    /// A folder that is empty or not there yet
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: PathBuf,
}

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetter {
    /// List them, the newest first
    List,
    /// Show one: why it was put aside, where it came from, what it says
    Show {
        /// Its input id
        id: String,
    },
    /// Let one wait again
    Requeue {
        /// Its input id
        id: String,
    },
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print its JSON Schema
    Schema,
    /// Check it: keys, folders, files, models, and that every component loads
    Check,
}

/// What to do with API keys.
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Issue one. It is printed this once, and the host keeps its hash alone
    #[command(after_help = "Examples:\n  agent-host key create --user alice --scopes read,write --expires 90d --name laptop\n  \
        KEY=$(agent-host key create --scopes read --quiet)")]
    Create {
        /// Whose it is to be; whoever asks, without
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// What it may be used for: any of read, write, keys and admin
        #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
        scopes: Vec<String>,
        /// How long it counts: a number with s, m, h or d
        #[arg(long, value_name = "TIME", default_value = "90d")]
        expires: Lifetime,
        /// What it is called
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
    /// Revoke one, for good and at once
    Revoke {
        /// Its id: what stands between the underscores
        id: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// What to do with agents.
#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// Print the living hierarchy as a tree: path, label, how present each is and how much it has to do
    #[command(after_help = "Examples:\n  agent-host agents tree\n  agent-host agents tree /alice/agent/reader\n  \
        agent-host agents tree /alice --kind sub --json")]
    Tree {
        /// The agent at this path and those below it; or a place where agents live, such as /alice
        path: Option<String>,
        /// Only agents at most so far below it
        #[arg(long, value_name = "N")]
        depth: Option<usize>,
        /// Only agents of this kind
        #[arg(long, value_name = "KIND")]
        kind: Option<String>,
    },
}

/// What to do with what services call the users.
#[derive(Debug, Subcommand)]
pub(crate) enum Connector {
    /// Bind a key to a user: what comes from whom the service calls so is theirs
    #[command(after_help = "Example:\n  agent-host connector bind alice telegram:123456")]
    Bind {
        /// The user
        user: String,
        /// What the service calls them
        key: String,
    },
    /// Unbind a key: it stands for nobody any more
    Unbind {
        /// The user
        user: String,
        /// What the service calls them
        key: String,
    },
    /// List a user's keys
    List {
        /// The user
        user: String,
    },
}

/// What to do with the token.
#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Print it
    #[command(after_help = "Example:\n  curl -H \"authorization: Bearer $(agent-host token show)\" http://127.0.0.1:7777/api/agents")]
    Show,
}

/// What compiling may take.
#[derive(Debug, Args)]
pub(crate) struct CompileComponent {
    /// The process that must be its parent: with another one, or none any more, nothing is compiled
    #[arg(long, value_name = "PID")]
    pub(crate) parent: Option<u32>,
    /// Bytes of addresses
    #[arg(long, default_value_t = runtime::CompileLimits::default().memory_bytes_max, value_name = "BYTES")]
    pub(crate) memory_bytes_max: u64,
    /// Seconds of computing, on all threads together
    #[arg(long, default_value_t = runtime::CompileLimits::default().cpu_s_max, value_name = "SECONDS")]
    pub(crate) cpu_s_max: u64,
}

/// Whether a command line asks for JSON, be the rest of it as it may.
pub(crate) fn wants_json(arguments: impl IntoIterator<Item = OsString>) -> bool {
    arguments.into_iter().skip(1).take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// Why a command line makes no sense, out of the parser's text: what is wrong, perhaps a tip, and how it is meant to be.
pub(crate) fn failure(wrong: &clap::Error) -> Failure {
    let text = wrong.render().to_string();
    let on_one_line = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = text.split("\n\n").map(on_one_line);
    let message = match wrong.kind() {
        // The text is the help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "the command is not complete".to_owned(),
        _ => parts.next().map(|part| part.trim_start_matches("error: ").to_owned()).unwrap_or_default(),
    };
    let tip = parts.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
    Failure::new(Exit::Usage, anyhow!(message)).advise(tip.unwrap_or_else(|| "--help tells what there is".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_help_tells_how_a_key_is_written_in_the_environment() {
        let help = Cli::command().render_long_help().to_string();
        let variable = "AGENT_HOST__LIMITS__HOPS_MAX";
        assert!(help.contains(&format!("{variable}=8 is limits.hopsMax")), "{help}");
        let [overlaid] = crate::config::overlaid([(variable.to_owned(), "3".to_owned())]).try_into().unwrap();
        assert_eq!(overlaid.key, ["limits", "hopsMax"]);
    }

    #[test]
    fn the_command_line_fits_together() {
        Cli::command().debug_assert();
    }
}
