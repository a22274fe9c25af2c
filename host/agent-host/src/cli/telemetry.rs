//! The command line of `telemetry`.

use clap::Args;

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
