//! The topic of a dialogue and how often it offers to end: as the session was opened, else as the
//! operator says.

use agent_host_sdk::Turn;
use serde_json::Value;
use std::ops::RangeInclusive;

const TOPIC_BYTES_MAX: usize = 500;
/// Exchanges after which the dialogue offers to end, again and again.
const OFFER_EVERY: u64 = 6;
const OFFER_EVERY_RANGE: RangeInclusive<u64> = 1..=100;

/// The configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) topic: Option<String>,
    pub(crate) offer_every: u64,
}

impl Config {
    /// Reads `topic` and `offer_every`.
    ///
    /// # Errors
    /// The field that makes no sense, and what it has to be.
    pub(crate) fn of(turn: Turn<'_>) -> Result<Self, String> {
        let opened: Value = turn.session_config().unwrap_or_default();
        let settings: Value = turn.settings().unwrap_or_default();
        let find = |name: &str| {
            let places = [(&opened, "session_config"), (&settings, "settings")];
            places.into_iter().find_map(|(all, place)| {
                let value = all.get(name).filter(|value| !value.is_null())?;
                Some((value, format!("{place}.{name}")))
            })
        };
        let topic = match find("topic") {
            None => None,
            Some((Value::String(topic), _)) if (1..=TOPIC_BYTES_MAX).contains(&topic.len()) => {
                Some(topic.clone())
            }
            Some((_, place)) => {
                return Err(format!(
                    "{place}: a text of 1 to {TOPIC_BYTES_MAX} bytes is needed"
                ));
            }
        };
        let offer_every = match find("offer_every") {
            None => OFFER_EVERY,
            Some((value, place)) => value
                .as_u64()
                .filter(|count| OFFER_EVERY_RANGE.contains(count))
                .ok_or_else(|| {
                    let (least, most) = OFFER_EVERY_RANGE.into_inner();
                    format!(
                        "{place}: a whole number from {least} to {most} is needed, this is {value}"
                    )
                })?,
        };
        Ok(Self { topic, offer_every })
    }
}
