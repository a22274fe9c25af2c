//! The commands about sessions, the options of `chat`, and inputs that could not be processed.

use super::up_to;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Commands about sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    /// List the sessions that you may see, the last used first; those of agents that work for other
    /// agents are left out
    List {
        /// Only of this agent: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: Option<String>,
        /// Also those of agents that work for others, and of agents that are hidden (`uiVisible =
        /// false`)
        #[arg(long)]
        all: bool,
        /// Maximum number of sessions, 200 at most
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = up_to(200))]
        limit: u16,
    },
    /// Show a session and its messages
    Show {
        /// Its id
        id: String,
        /// The first message to show
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// The last message to show
        #[arg(long, value_name = "N")]
        to: Option<u64>,
    },
    /// Count the messages, turns, calls, tokens, cost and times of a session
    Stats {
        /// Its id
        id: String,
    },
    /// Show the tree of turns that a session is a branch of, and which sessions are where in it
    Tree {
        /// Its id
        id: String,
    },
    /// Compare the threads of two sessions: the point at which they part, and the messages in each
    /// alone
    Diff {
        /// The one's id
        a: String,
        /// The other's id, or the id of a turn
        b: String,
    },
    /// Write a session to stdout as JSON lines, for another host or another program
    #[command(
        after_help = "Examples:\n  agent-host session export 3f0c… > session.jsonl\n  \
        agent-host session export 3f0c… --dialect aix | less"
    )]
    Export {
        /// Its id
        id: String,
        /// `pi` has the whole tree, `aix` the session's thread
        #[arg(long, value_name = "DIALECT", value_parser = ["pi", "aix"], default_value = "pi")]
        dialect: String,
    },
    /// Import a session from a file of JSON lines, of pi's dialect or aix's, as a chat with an
    /// agent
    #[command(
        after_help = "Example:\n  agent-host session import session.jsonl --agent \
                      assistant"
    )]
    Import {
        /// The file
        file: PathBuf,
        /// The agent to import it for: a UUID, a path, or a definition, which stands for your agent
        /// of it
        #[arg(long, short, value_name = "AGENT")]
        agent: String,
    },
    /// Search the messages of all sessions
    Search {
        /// The words to look for; messages with more of them come first
        #[arg(required = true)]
        words: Vec<String>,
        /// Only in sessions of this agent: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: Option<String>,
        /// Maximum number of messages, 100 at most
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N")]
        limit: u32,
    },
    /// Compact a chat's thread now: a separate turn summarises it, and from then on models see the
    /// summary and what follows it
    Compact {
        /// The session's id
        id: String,
    },
    /// List what waits in a session, in the order in which it was accepted
    Inputs {
        /// The session's id
        id: String,
    },
    /// List the sessions in quarantine, for which nothing is done: the host cannot continue them,
    /// or `serve --skip` named them
    Quarantined,
    /// Release a session from quarantine: the host continues it at once, and puts it back if it
    /// still cannot
    #[command(after_help = "Example:\n  agent-host session release 3f0c…")]
    Release {
        /// The session's id
        id: String,
    },
    /// Purge a deleted session or an archived agent: its contents cannot be recovered
    #[command(after_help = "Earlier backups still have the contents, and so \
                      does everybody to whom they were sent.\n\n\
        Examples:\n  agent-host session purge 3f0c… --agent /local/agent/assistant --yes\n  \
        agent-host session purge --agent 7a61… --yes   # an archived agent, with all its sessions")]
    Purge {
        /// The session's id; without, the agent itself is purged
        id: Option<String>,
        /// Its agent: a UUID, or a path while the agent is active
        #[arg(long, short, value_name = "AGENT")]
        agent: String,
        /// Confirm the purge
        #[arg(long)]
        yes: bool,
    },
    /// Stop the turn in progress, or withdraw waiting inputs
    #[command(
        after_help = "Examples:\n  agent-host session cancel 3f0c…                # stops the \
                      turn\n  \
        agent-host session cancel 3f0c… --input 01a2…  # withdraws one waiting input\n  \
        agent-host session cancel 3f0c… --waiting      # withdraws all of them, then stops the \
        turn"
    )]
    Cancel {
        /// The session's id
        id: String,
        /// Withdraw this input, and leave the turn alone
        #[arg(long, value_name = "ID", conflicts_with = "waiting")]
        input: Option<String>,
        /// Withdraw all waiting inputs first
        #[arg(long)]
        waiting: bool,
    },
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

/// The help below the options.
pub(super) const CHAT_HELP: &str = "\
Every line that you type is a message; when an agent asks something, the line is the answer. \
A line that begins with one of these words is a command instead, also while a question waits:
  /agent NAME [MESSAGE]   goes on with another agent
  /back                   comes back from it, with a summary
  /agents  /sessions      lists the agents; your sessions with all of them
  /session ID             goes on in one of these sessions
  /new                    opens a new session with this agent
With a space before it, it is a message or an answer.

Ctrl-C stops the turn in progress, and leaves when it is pressed again or when none is. Ctrl-D \
leaves.

With a key of your own:
  AGENT_HOST_TOKEN=ahk_… agent-host chat

Exit codes:
  0 done   1 a turn failed (at a terminal: the last one)   others as of every command

Examples:
  agent-host chat
  agent-host chat --agent tutor
  agent-host chat --session 3f0c…     # continues a session
  echo 'read notes.txt' | agent-host chat --quiet";

/// The agent and session to talk with.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// An `agentId` of the configuration, or an agent's UUID or path; by default `assistant`, or
    /// else the first of the configuration
    #[arg(long, short, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Continue this session instead of opening one
    #[arg(long, short, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The type of session to open: `chat`, or one that the agent leads; the agent's first by
    /// default
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "session")]
    pub(crate) session_type: Option<String>,
    /// The model of the session, an alias of the configuration
    #[arg(long, value_name = "MODEL", conflicts_with = "session")]
    pub(crate) model: Option<String>,
}
