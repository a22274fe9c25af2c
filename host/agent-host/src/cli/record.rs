//! The commands about what is on record: events, the ledger, usage; and what happens now.

use clap::{Args, Subcommand, ValueEnum};

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

/// Filters for what is watched.
#[derive(Debug, Args)]
pub(crate) struct Telemetry {
    /// Only about this agent, a UUID or a path
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Only about this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only of this type, such as `message.received`; `*` stands for any characters
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// With the text of replies; needs `--agent` or `--session`, and is put on record
    #[arg(long)]
    pub(crate) content: bool,
    /// End after so many events
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) count: Option<u64>,
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

/// The usage to show.
#[derive(Debug, Args)]
#[command(
    after_help = "With the scope `read` it is your own usage, with `admin` that of all. Days are in \
                  UTC.\n\nExamples:\n  agent-host usage\n  agent-host usage --by agent --from \
                  2026-11-01 --json"
)]
pub(crate) struct Usage {
    /// The key of the sums
    #[arg(long, value_enum, default_value_t = UsageKey::Day, value_name = "KEY")]
    pub(crate) by: UsageKey,
    /// The first day, in UTC; 29 days before the last one by default
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) from: Option<String>,
    /// The last day, in UTC; today by default
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) to: Option<String>,
    /// Only of this agent, a UUID or a path
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Only of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only of turns that work for this user
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
}

/// The key by which usage is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageKey {
    /// The UTC day on which it was used
    Day,
    /// The session
    Session,
    /// The agent
    Agent,
    /// The user for whom the turns worked
    User,
    /// The provider's name of the model
    Model,
}
