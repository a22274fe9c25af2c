//! How queues are of which neither the session nor the message says anything.

use domain::queue::{Cap, Debounce, DropPolicy, Mode, QueueOverride, QueueSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to words that arrive while their agent is busy. Sessions and single messages may say something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct QueueConfig {
    /// `steer`: they join the turn in the making at its next boundary, and wait for its end where that cannot be. `followup`: they get a
    /// turn of their own after it. `collect`: they get one turn after it, together with what else was collected. `interrupt`: they end it.
    #[schemars(with = "String")]
    pub(crate) mode: Mode,
    /// How long nothing further must arrive before what waits for the end of a turn gets its own: milliseconds, or text such as "2s".
    #[schemars(with = "Duration")]
    pub(crate) debounce: Debounce,
    /// How many inputs a queue holds, from 1 to 1000; what joins or interrupts a turn does not count.
    #[schemars(with = "u64", range(min = 1, max = 1_000))]
    pub(crate) cap: Cap,
    /// What is dropped beyond that: `new` refuses what arrives, `old` drops what has waited longest, `summarize` keeps a line of it.
    #[schemars(with = "String")]
    pub(crate) drop: DropPolicy,
}

/// How a time may be written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes how a debounce is read")]
enum Duration {
    /// In milliseconds.
    Ms(u64),
    /// With a unit.
    Text(String),
}

impl Default for QueueConfig {
    fn default() -> Self {
        let QueueSettings { mode, debounce_ms, cap, drop } = QueueSettings::default();
        Self { mode, debounce: debounce_ms, cap, drop }
    }
}

impl From<QueueConfig> for QueueOverride {
    fn from(QueueConfig { mode, debounce, cap, drop }: QueueConfig) -> Self {
        Self { mode: Some(mode), debounce_ms: Some(debounce), cap: Some(cap), drop: Some(drop) }
    }
}
