//! The queue settings where neither the session nor the message has any.

use domain::queue::{Cap, Debounce, DropPolicy, Mode, QueueOverride, QueueSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Treatment of messages that arrive while their agent is busy. Sessions and single messages may
/// override it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct QueueConfig {
    /// The mode. `steer`: messages join the turn in progress at its next boundary, and wait for its
    /// end where that is impossible. `followup`: they get a turn of their own after it. `collect`:
    /// they get one turn after it, together with other collected messages. `interrupt`: they end
    /// it.
    #[schemars(with = "String")]
    pub(crate) mode: Mode,
    /// Quiet period before inputs that wait for the end of a turn get their own: milliseconds, or
    /// text such as "2s".
    #[schemars(with = "Duration")]
    pub(crate) debounce: Debounce,
    /// Number of inputs that a queue holds, from 1 to 1000. Inputs that join or interrupt a turn do
    /// not count.
    #[schemars(with = "u64", range(min = 1, max = 1_000))]
    pub(crate) cap: Cap,
    /// The policy for inputs beyond the cap. `new` refuses the arriving one, `old` drops the one
    /// that has waited longest, `summarize` drops that one but keeps a line of it.
    #[schemars(with = "String")]
    pub(crate) drop: DropPolicy,
}

/// The forms in which a time may be written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes how a debounce is read")]
enum Duration {
    /// A number of milliseconds.
    Ms(u64),
    /// A number with a unit.
    Text(String),
}

impl Default for QueueConfig {
    fn default() -> Self {
        let settings = QueueSettings::default();
        Self {
            mode: settings.mode,
            debounce: settings.debounce_ms,
            cap: settings.cap,
            drop: settings.drop,
        }
    }
}

impl From<QueueConfig> for QueueOverride {
    fn from(config: QueueConfig) -> Self {
        Self {
            mode: Some(config.mode),
            debounce_ms: Some(config.debounce),
            cap: Some(config.cap),
            drop: Some(config.drop),
        }
    }
}
