//! Words that no caller of the API said: those that a trigger or a connector brings in.
//!
//! They are processed like all other messages, with the same routing, guards and idempotency. Only
//! their source, their origin and the mark *untrusted* are set by the caller, and stay with all
//! later data. A user's chats stay separate: words that begin a session of their own never end up
//! in one.

use super::arriving::{Arriving, Isolated};
use super::beginning::Beginning;
use super::messages::{check_content, check_labels};
use super::once::Once;
use super::route::{FoundDestination, Routing};
use super::{Address, Error, Messages, PostRouted, Routed};
use crate::boxed::boxed;
use domain::connector::ReplyRoute;
use domain::event::InputAccepted;
use domain::user::UserId;
use store::OutboundMessageRow;

impl Messages<'_> {
    /// Returns what was said on both sides of a user's chat at a service after a position: the
    /// outbound messages, and the inputs with their positions, at most `limit` of each.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn of_chat(
        &self,
        user: &UserId,
        chat: &ReplyRoute,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<OutboundMessageRow>, Vec<(u64, InputAccepted)>), Error> {
        let sent = self.store().outbound_messages_of_chat(chat, after, limit);
        let said = self.store().inputs_of_chat(user, chat, after, limit);
        Ok((sent.await?, said.await?))
    }

    /// Routes words that a trigger or a connector brings, and accepts them. When this returns, they
    /// are durable and will be processed. Words under a key that was used within seven days get the
    /// same answer as then.
    ///
    /// # Errors
    /// Those of [`Self::post_routed`].
    #[boxed]
    pub async fn post_inbound(
        &self,
        command: PostRouted,
        arriving: Arriving,
    ) -> Result<Routed, Error> {
        let directive = if arriving.may_direct() {
            self.checked(&command)?
        } else {
            check_labels(&command.labels, None)?;
            check_content(&command.content)?;
            None
        };
        let key = command.idempotency_key.as_deref();
        let request = key.map(|key| arriving.request(key));
        let routing = Routing {
            directive,
            request: request.as_ref(),
            leaving: None,
            arriving: Some(&arriving),
        };
        let act = self.route(command, routing);
        match self.requests().once(request.as_ref(), act).await? {
            Once::Now(routed) => Ok(routed),
            Once::Before(answered) => self.routed_before(answered).await,
        }
    }

    /// Turns a destination into a session of its own with the same agent: at the turn that was
    /// addressed, if it was one.
    pub(super) async fn apart(
        &self,
        to: &Address,
        found: FoundDestination,
        isolated: &Isolated,
    ) -> Result<FoundDestination, Error> {
        let beginning = match found {
            FoundDestination::ToBegin(beginning) => Beginning {
                absent: None,
                name: isolated.name.clone().or(beginning.name),
                ..*beginning
            },
            FoundDestination::There(route) => {
                let row = self.sessions().row(route.session).await?;
                let head = match to {
                    Address::Thread(turn) => Some((*turn, route.session)),
                    Address::Session(_)
                    | Address::Agent(_)
                    | Address::Persona(_)
                    | Address::Smart { .. }
                    | Address::Found(_) => None,
                };
                Beginning {
                    agent: route.agent,
                    made: None,
                    head,
                    persona: row.persona,
                    name: isolated.name.clone(),
                    why: "it begins a session of its own".to_owned(),
                    absent: None,
                }
            }
            several @ FoundDestination::Several(_) => return Ok(several),
        };
        Ok(FoundDestination::ToBegin(Box::new(beginning)))
    }
}
