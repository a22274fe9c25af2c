//! The queue settings where neither the session nor the message has any, for all messages and for
//! those of single connectors.

use domain::path::ConnectorName;
use domain::queue::{Cap, Debounce, DropPolicy, Mode, QueueOverride, QueueSettings};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Treatment of messages that arrive while their agent is busy. Sessions and single messages may
/// override it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Settings for messages that come through a connector, by its name: a mode such as
    /// `"collect"`, or a table with any of `mode`, `debounce`, `cap` and `drop`. They go before
    /// the ones here, and after those of the session and of the connector itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<ConnectorName, ChannelForms>")]
    pub(crate) by_channel: BTreeMap<ConnectorName, ChannelQueue>,
}

/// Treatment of the messages of one connector. A field that is missing is as for all messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ChannelQueue {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    debounce: Option<Debounce>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cap: Option<Cap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drop: Option<DropPolicy>,
}

/// The same as it is written as a table.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChannelTable {
    /// The mode.
    #[schemars(with = "Option<String>")]
    mode: Option<Mode>,
    /// The quiet period: milliseconds, or text such as "2s".
    #[schemars(with = "Option<Duration>")]
    debounce: Option<Debounce>,
    /// The number of inputs that a queue holds, from 1 to 1000.
    #[schemars(with = "Option<u64>", range(min = 1, max = 1_000))]
    cap: Option<Cap>,
    /// The policy for inputs beyond the cap.
    #[schemars(with = "Option<String>")]
    drop: Option<DropPolicy>,
}

/// The forms in which a connector's settings may be written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes how settings of a connector are read")]
enum ChannelForms {
    /// A mode.
    Mode(String),
    /// Several settings.
    Table(ChannelTable),
}

impl<'de> Deserialize<'de> for ChannelQueue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChannelVisitor)
    }
}

/// Reads a connector's settings in either form.
struct ChannelVisitor;

impl<'de> Visitor<'de> for ChannelVisitor {
    type Value = ChannelQueue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mode such as `collect`, or a table with `mode`, `debounce`, `cap`, `drop`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ChannelQueue, E> {
        let mode = text.parse::<Mode>().map_err(E::custom)?;
        Ok(ChannelQueue {
            mode: Some(mode),
            ..ChannelQueue::default()
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ChannelQueue, A::Error> {
        let ChannelTable {
            mode,
            debounce,
            cap,
            drop,
        } = ChannelTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ChannelQueue {
            mode,
            debounce,
            cap,
            drop,
        })
    }
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
            by_channel: BTreeMap::new(),
        }
    }
}

impl QueueConfig {
    /// Returns the settings for messages of a connector; nothing where none are written.
    pub(crate) fn of_channel(&self, connector: &ConnectorName) -> QueueOverride {
        let settings = self.by_channel.get(connector).copied().unwrap_or_default();
        QueueOverride {
            mode: settings.mode,
            debounce_ms: settings.debounce,
            cap: settings.cap,
            drop: settings.drop,
        }
    }
}

impl From<&QueueConfig> for QueueOverride {
    fn from(config: &QueueConfig) -> Self {
        Self {
            mode: Some(config.mode),
            debounce_ms: Some(config.debounce),
            cap: Some(config.cap),
            drop: Some(config.drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::QueueConfig;
    use domain::queue::{Mode, QueueOverride};
    use serde_json::{Value, json};

    fn read(by_channel: &Value) -> Result<QueueConfig, String> {
        let config = json!({ "byChannel": by_channel });
        serde_json::from_value(config).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_of_a_connector_are_a_mode_or_a_table_and_stay_what_they_are() {
        let written =
            json!({ "telegram": "coalesce", "slack": { "debounce": "2s", "drop": "old" } });
        let config = read(&written).unwrap();
        let of = |name: &str| config.of_channel(&name.parse().unwrap());
        assert_eq!(of("telegram").mode, Some(Mode::Collect));
        assert_eq!(of("slack").mode, None);
        assert_eq!(of("slack").debounce_ms.map(|it| it.ms()), Some(2_000));
        assert_eq!(of("other"), QueueOverride::default());
        let again: QueueConfig = serde_json::from_value(json!(config)).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn an_unknown_mode_or_key_of_a_connector_is_refused_with_those_there_are() {
        for (written, says) in [
            (json!({ "telegram": "colect" }), "collect (or coalesce)"),
            (
                json!({ "telegram": { "debonce": 5 } }),
                "unknown field `debonce`",
            ),
            (json!({ "telegram": 5 }), "a mode such as `collect`"),
            (json!({ "agent": "steer" }), "`agent`"),
        ] {
            let refused = read(&written).unwrap_err();
            assert!(refused.contains(says), "{written}: {refused}");
        }
    }
}
