//! The options of `chat`.

use clap::Args;

/// The help below the options.
pub(super) const HELP: &str = "\
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
