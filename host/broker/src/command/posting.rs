//! One message to all agents that a user talks with.
//!
//! The kind of an agent's path decides whether it gets the message. The same rule selects the agent
//! for a message without an address.

use super::messages::check_content;
use super::{Address, By, Error, Messages, PostRouted, Request, Routed, RoutedReceipt};
use crate::boxed::boxed;
use crate::refusals::changing;
use domain::digest::Digest;
use domain::id::AgentId;
use domain::message::Part;
use domain::message_labels::MessageLabels;
use domain::queue::QueueOverride;
use domain::refusal::Refusal;
use domain::role::Right;
use domain::user::UserId;
use serde_json::json;

/// Agents that one message goes to, at most: those that the user used last.
const POSTED_MAX: usize = 100;

/// A command that posts a message to all of a user's agents that people talk with.
#[derive(Debug, Clone)]
pub struct PostToAll {
    /// The content of the message.
    pub content: Vec<Part>,
    /// The user who posts it.
    pub user: UserId,
    /// A key under which the message goes to each of them once, for seven days.
    pub idempotency_key: Option<String>,
}

/// The outcome of such a message for one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct PostedTo {
    /// The agent.
    pub agent: AgentId,
    /// Its path.
    pub path: String,
    /// The receipt, or the reason why it was not accepted there.
    pub result: Result<RoutedReceipt, Refusal>,
}

impl Messages<'_> {
    /// Posts a message to each agent that people talk with, in the user's latest chat with it. An
    /// agent with which the user has no chat is left out. The outcomes are ordered by path.
    ///
    /// # Errors
    /// The content is none of a message; the idempotency key is none; nothing can be recorded.
    #[boxed]
    pub async fn post_to_all(&self, command: PostToAll) -> Result<Vec<PostedTo>, Error> {
        check_content(&command.content)?;
        // A key that is none is refused whatever there is.
        let by = By::new(&command.user, command.idempotency_key.as_ref());
        Request::of(by, &json!(null))?;
        let found = self
            .store()
            .agents_by_last_use(&command.user, POSTED_MAX, self.core.now())
            .await?;
        let mut posted = Vec::new();
        for living in found {
            let agent = living.row.agent;
            let is_meant = living.row.kind.is_foreground()
                && living.role.may(Right::Interact)
                && self
                    .access()
                    .may_command(&command.user, agent.path.as_str())
                    .is_ok();
            if !is_meant {
                continue;
            }
            let Some(chat) = self.store().latest_chat(&command.user, agent.id).await? else {
                continue;
            };
            let post = PostRouted {
                to: Address::Session(chat),
                content: command.content.clone(),
                model: None,
                queue: QueueOverride::default(),
                priority: None,
                labels: MessageLabels::default(),
                user: command.user.clone(),
                idempotency_key: command
                    .idempotency_key
                    .as_ref()
                    .map(|key| key_for(key, agent.id)),
            };
            let result = match self.post_routed(post).await {
                Ok(Routed::Accepted(receipt)) => Ok(receipt),
                Ok(Routed::Unclear(_)) => Err(changing("the agent")),
                Err(Error::Refused(refusal)) => Err(refusal),
                Err(error) => return Err(error),
            };
            posted.push(PostedTo {
                agent: agent.id,
                path: agent.path.into(),
                result,
            });
        }
        posted.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(posted)
    }
}

/// Returns the key under which one agent gets a message, of the key of the whole request.
fn key_for(key: &str, agent: AgentId) -> String {
    Digest::of(format!("{agent} {key}").as_bytes()).hex()
}
