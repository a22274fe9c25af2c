//! The past of an inbound message: it may have been processed before a crash, or before the store
//! refused its settlement.

use super::Shared;
use super::sender::Sender;
use super::served::Served;
use super::settlement::Settlement;
use broker::Error;
use domain::digest::Digest;
use domain::event::{Event, InboundMessageOutcome};
use domain::id::{OperationId, RunId, Stream};
use domain::path::ConnectorName;
use serde::Deserialize;
use store::InboundMessageRow;

/// Maximum bytes of a verbatim key; a longer one is replaced by its digest.
const KEY_BYTES_MAX: usize = 255;

/// The remembered place of an answer.
#[derive(Debug, Deserialize)]
struct AnswerAt {
    run: RunId,
    version: u64,
}

impl Shared {
    /// Returns whether an inbound message has become an input, or a part of one, as its first
    /// message.
    pub(super) async fn is_posted(
        &self,
        served: &Served,
        first: &InboundMessageRow,
    ) -> Result<bool, Error> {
        let key = key_of(&served.name, &first.message.id);
        let landed = self
            .core
            .store()
            .remembered_request(&served.origin(), &key, self.core.now())
            .await?;
        Ok(landed.is_some())
    }

    /// Returns the settlement of an inbound message that has answered a question; none if it has
    /// not.
    pub(super) async fn answered_before(
        &self,
        served: &Served,
        sender: &Sender,
        first: &InboundMessageRow,
    ) -> Result<Option<Settlement>, Error> {
        let store = self.core.store();
        let key = key_of(&served.name, &first.message.id);
        let source = format!("user:{}", sender.user);
        let landed = store
            .remembered_request(&source, &key, self.core.now())
            .await?;
        let Some(landed) = landed else {
            return Ok(None);
        };
        let question = match serde_json::from_slice::<AnswerAt>(&landed.reply) {
            Ok(at) => self.answered_at(&at).await?,
            Err(_) => None,
        };
        let outcome = match question {
            Some(operation) => InboundMessageOutcome::Answered {
                user: sender.user.clone(),
                operation,
            },
            // The answer was erased since.
            None => InboundMessageOutcome::Ignored,
        };
        Ok(Some(Settlement::new(1, outcome)))
    }

    async fn answered_at(&self, at: &AnswerAt) -> Result<Option<OperationId>, Error> {
        let before = at.version.saturating_sub(1);
        let found = self
            .core
            .store()
            .stream(Stream::Run(at.run), before, 1)
            .await?;
        let event = found.into_iter().next().and_then(|recorded| recorded.event);
        Ok(match event {
            Some(Event::OperationAnswered(answer)) => Some(answer.operation),
            Some(Event::ApprovalAnswered(answered)) => Some(answered.operation),
            Some(_) | None => None,
        })
    }
}

/// Returns the key under which a message of a service is processed once.
pub(super) fn key_of(connector: &ConnectorName, message: &str) -> String {
    let key = format!("connector:{connector}:{message}");
    match key.len() {
        0..=KEY_BYTES_MAX => key,
        _ => format!(
            "connector:{connector}:{}",
            Digest::of(message.as_bytes()).hex()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_key_of_its_own_however_long_its_id_is() {
        let telegram: ConnectorName = "telegram".parse().unwrap();
        assert_eq!(key_of(&telegram, "7"), "connector:telegram:7");
        let long = key_of(&telegram, &"7".repeat(256));
        assert!(long.len() <= KEY_BYTES_MAX);
        assert_ne!(long, key_of(&telegram, &"7".repeat(255)));
    }
}
