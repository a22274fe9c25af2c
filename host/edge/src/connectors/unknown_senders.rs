//! Unknown senders: they are refused politely, or get a pairing code, or no answer.

use super::Shared;
use super::gathering::same_sender_len;
use super::queueing::hosts_words;
use super::served::Served;
use super::settlement::Settlement;
use crate::journal::Context;
use broker::Error;
use domain::connector::{
    PAIRING_CODE_CHARS, PAIRING_MS, PAIRINGS_OF_SENDER_MAX, PairingCode, PairingOffer, offer_words,
};
use domain::event::{Event, InboundMessageOutcome, PairingOffered};
use domain::path::{ConnectorKey, ConnectorName};
use domain::time::Timestamp;
use std::collections::HashMap;
use std::sync::PoisonError;
use store::InboundMessageRow;
use uuid::Uuid;

/// Milliseconds within which a sender is refused once.
const REFUSAL_MS: u64 = 3_600_000;
/// Refusals of all senders of a connector within that time.
const REFUSALS_MAX: u32 = 100;
/// Senders that are remembered for having been refused, of all connectors.
const REMEMBERED_MAX: usize = 10_000;

/// The latest notices to unknown senders. Nothing depends on it: after a start they may be sent
/// once more.
#[derive(Debug, Default)]
pub(super) struct RecentNotices {
    senders: HashMap<ConnectorKey, Timestamp>,
    /// For each connector the begin of an hour, and the refusals in it.
    connectors: HashMap<ConnectorName, Hour>,
}

#[derive(Debug, Clone, Copy)]
struct Hour {
    began: Timestamp,
    refusals: u32,
}

impl RecentNotices {
    /// Returns whether a sender is now notified that they are unknown, and remembers it if so.
    fn may_refuse(&mut self, key: &ConnectorKey, now: Timestamp) -> bool {
        let is_recent = |at: &Timestamp| now.since_ms(*at) < REFUSAL_MS;
        if self.senders.get(key).is_some_and(is_recent) {
            return false;
        }
        if self.senders.len() >= REMEMBERED_MAX {
            self.senders.retain(|_, at| is_recent(at));
        }
        let hour = self
            .connectors
            .entry(key.connector().clone())
            .or_insert(Hour {
                began: now,
                refusals: 0,
            });
        if now.since_ms(hour.began) >= REFUSAL_MS {
            *hour = Hour {
                began: now,
                refusals: 0,
            };
        }
        if hour.refusals >= REFUSALS_MAX || self.senders.len() >= REMEMBERED_MAX {
            return false;
        }
        hour.refusals += 1;
        self.senders.insert(key.clone(), now);
        true
    }
}

impl Shared {
    /// Settles inbound messages of a refused sender, who is notified once an hour.
    pub(super) fn refuse(
        &self,
        served: &Served,
        key: &ConnectorKey,
        inbound_messages: &[InboundMessageRow],
        text: &str,
    ) -> Settlement {
        let now = self.core.now();
        let count = same_sender_len(inbound_messages);
        let may_refuse = self
            .reported
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .may_refuse(key, now);
        match inbound_messages.first().filter(|_| may_refuse) {
            Some(first) => Settlement {
                count,
                outcome: InboundMessageOutcome::Unknown,
                also: vec![hosts_words(served, first, text, now)],
            },
            None => Settlement::new(count, InboundMessageOutcome::Ignored),
        }
    }

    /// Settles inbound messages of a sender who may get a pairing code. Their content is not passed
    /// on, even if they are paired later.
    pub(super) async fn offer_pairing(
        &self,
        served: &Served,
        key: &ConnectorKey,
        inbound_messages: &[InboundMessageRow],
    ) -> Result<Settlement, Error> {
        let count = same_sender_len(inbound_messages);
        let nothing = Settlement::new(count, InboundMessageOutcome::Ignored);
        let Some(first) = inbound_messages.first() else {
            return Ok(nothing);
        };
        // A new offer takes the place of those that have expired.
        self.settle_expired().await;
        let now = self.core.now();
        let store = self.core.store();
        let of_sender = match store.pairing_of(key).await? {
            // A new code replaces the previous one, so the number of valid codes never exceeds the
            // maximum.
            Some(last) if now.since_ms(last.offered) < again_ms() => PAIRINGS_OF_SENDER_MAX,
            Some(_) | None => 0,
        };
        let of_connector = store.pairing_count(&served.name, now).await?;
        let of_connector = usize::try_from(of_connector).unwrap_or(usize::MAX);
        let PairingOffer::New { expires } = PairingOffer::new(of_sender, of_connector, now) else {
            return Ok(nothing);
        };
        let code = new_code();
        let offered = PairingOffered {
            key: key.clone(),
            name: first.message.sender_name.clone(),
            chat: first.message.chat.clone(),
            code: code.to_string(),
            expires,
            time: now,
        };
        let offered = Context::new(served.origin(), now).event(Event::PairingOffered(offered));
        Ok(Settlement {
            count,
            outcome: InboundMessageOutcome::Paired,
            also: vec![
                offered,
                hosts_words(served, first, &offer_words(&code), now),
            ],
        })
    }
}

/// Returns the milliseconds after which a sender gets another code.
fn again_ms() -> u64 {
    let codes = u64::try_from(PAIRINGS_OF_SENDER_MAX).unwrap_or(1).max(1);
    PAIRING_MS / codes
}

fn new_code() -> PairingCode {
    let id = Uuid::new_v4();
    let mut random = [0; PAIRING_CODE_CHARS];
    // Bytes that are the same in all such ids are left out.
    let bytes = id.as_bytes().iter().enumerate();
    let free = bytes.filter(|(place, _)| *place != 6 && *place != 8);
    for (sign, (_, byte)) in random.iter_mut().zip(free) {
        *sign = *byte;
    }
    PairingCode::from_random(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> ConnectorKey {
        format!("telegram:{id}").parse().unwrap()
    }

    #[test]
    fn a_sender_is_refused_once_an_hour() {
        let mut reported = RecentNotices::default();
        assert!(reported.may_refuse(&key("1"), Timestamp(0)));
        assert!(!reported.may_refuse(&key("1"), Timestamp(REFUSAL_MS - 1)));
        assert!(reported.may_refuse(&key("2"), Timestamp(1)));
        assert!(reported.may_refuse(&key("1"), Timestamp(REFUSAL_MS)));
    }

    #[test]
    fn many_senders_together_are_refused_so_often_within_an_hour() {
        let mut reported = RecentNotices::default();
        let refused = (0..2 * REFUSALS_MAX)
            .filter(|id| reported.may_refuse(&key(&id.to_string()), Timestamp(0)))
            .count();
        assert_eq!(refused, usize::try_from(REFUSALS_MAX).unwrap());
        assert!(reported.may_refuse(&key("again"), Timestamp(REFUSAL_MS)));
    }

    #[test]
    fn codes_differ() {
        let codes: std::collections::BTreeSet<PairingCode> = (0..100).map(|_| new_code()).collect();
        assert_eq!(codes.len(), 100);
    }
}
