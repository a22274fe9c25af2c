//! Options of `usage`.

use clap::{Args, ValueEnum};

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

impl UsageKey {
    /// Its name in a query.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Session => "session",
            Self::Agent => "agent",
            Self::User => "user",
            Self::Model => "model",
        }
    }
}
