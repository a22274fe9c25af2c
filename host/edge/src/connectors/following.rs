//! Links of a message to earlier ones: new ids of people and groups, chats in which an agent takes
//! part, and messages that are replied to.

use super::Shared;
use super::served::Served;
use broker::{Error, KeyBefore};
use domain::connector::{Incoming, Moved, Replied, Said, keys_of_moved};
use domain::error_code::ErrorKind;
use domain::time::Timestamp;
use store::SaidBefore;

/// Milliseconds for which an agent takes part in a chat in which it received a message and has sent
/// none yet.
const HEARD_MS: u64 = 3_600_000;

impl Shared {
    /// Binds the new id of a person or a group to the user of the old one. A repetition changes
    /// nothing.
    ///
    /// # Errors
    /// It cannot be stored now.
    pub(super) async fn follow(&self, served: &Served, moved: &Moved) -> Result<(), Error> {
        let [before, now] = match keys_of_moved(&served.name, moved) {
            Ok(keys) => keys,
            Err(fault) => {
                tracing::warn!(
                    connector.name = %served.name,
                    error = &fault as &dyn std::error::Error,
                    "a component tells of another id that is none"
                );
                return Ok(());
            }
        };
        let key_before = match moved.is_group {
            true => KeyBefore::Stays,
            // The service may give it to another person soon.
            false => KeyBefore::Ends,
        };
        let broker = &self.core.broker;
        let followed = broker
            .connectors()
            .follow_key(&before, &now, key_before)
            .await;
        match followed {
            Ok(None) => Ok(()),
            Ok(Some(user)) => {
                tracing::warn!(
                    connector.name = %served.name,
                    %before,
                    %now,
                    %user,
                    "the service knows a user by another id now; it is bound to them"
                );
                Ok(())
            }
            Err(Error::Refused(refusal)) if refusal.kind() != ErrorKind::Busy => {
                tracing::warn!(
                    connector.name = %served.name,
                    %before,
                    %now,
                    error = &refusal as &dyn std::error::Error,
                    "the service knows a user by another id now, which is not bound to them"
                );
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the words of the message that another one replies to.
    pub(super) async fn quote(
        &self,
        served: &Served,
        message: &mut Incoming,
        to: &str,
    ) -> Result<(), Error> {
        let chat = served.chat(&message.chat);
        let replied = match self.core.store().said_before(&chat, to).await? {
            Some(SaidBefore::Sent(sent)) if sent.untrusted => Replied::Marked(sent.text),
            Some(SaidBefore::Sent(sent)) => Replied::Own(sent.text),
            Some(SaidBefore::Arrived(before)) => Replied::Others {
                author: before.sender_name,
                words: match before.said {
                    Said::Text { text } | Said::Aside { text } if !text.is_empty() => Some(text),
                    Said::Text { .. } | Said::Aside { .. } | Said::Button { .. } => None,
                },
            },
            None => Replied::Unknown,
        };
        message.quote(replied);
        Ok(())
    }

    /// Returns whether an overheard message counts as one to the agent: in a chat in which an agent
    /// takes part, or, if it refers to another message, where that was sent. It then counts as sent
    /// there.
    pub(super) async fn is_heard(
        &self,
        served: &Served,
        message: &mut Incoming,
        about: Option<&str>,
    ) -> Result<bool, Error> {
        let chat = served.chat(&message.chat);
        if let Some(about) = about {
            let sent = self.core.store().sent_below(&chat, about).await?;
            let is_sent = sent.is_some();
            message.chat = sent.unwrap_or(chat.chat);
            return Ok(is_sent);
        }
        // An agent takes part where it has sent a message, or has received one and is about to
        // answer.
        let since = Timestamp(self.core.now().0.saturating_sub(HEARD_MS));
        Ok(self.core.store().takes_part(&chat, since).await?)
    }
}
