//! The outbox to people outside: the replies and questions in a run's commits are queued in the
//! same commits.
//!
//! A reply goes into the chat of the turn's messages, or the one for which a trigger made them. A
//! turn of a reminder or of a late reply continues a request from the chat that its session was
//! last written to from. Questions of an agent that works for another one reach the chat of that
//! one.

use super::context::SessionContext;
use super::state::Driver;
use super::subscribers::Subscribers;
use crate::boxed::boxed;
use crate::journal::Context;
use crate::shared::DriverError;
use crate::shared::outbound_messages::{add, outbox};
use crate::shared::runs::load_caller;
use domain::connector::{
    CHAT_OUTBOUND_MESSAGES_MAX, Destination, OUTBOUND_MESSAGES_MAX, Recipient,
};
use domain::event::{Event, OutboundMessageOutcome, OutboundMessageSettled};
use domain::id::{InputId, SessionId, Stream};
use domain::operation::ReplyTo;
use domain::run::Run;
use domain::run::outward::{Outward, outward};
use store::Commit;

/// Maximum number of callers, one above the other, among which the chat of a question is searched.
const CALLERS_MAX: usize = 8;
/// The reason why a message is given up of which too many wait.
const FULL: &str = "too many messages wait to be sent into this chat, or through its connector";

impl Driver {
    /// Queues the messages of a run's commit to people outside, in the same commit.
    #[boxed]
    pub(super) async fn add_outbound_messages(
        &mut self,
        commit: &mut Commit,
    ) -> Result<(), DriverError> {
        let Some(driving) = self.phase.driving() else {
            return Ok(());
        };
        let run = &driving.run;
        let mut said = OutboundWords::by(run, commit);
        if said.reported.is_empty() {
            return Ok(());
        }
        let known = driving.subscribers.clone();
        let known = self.context.heard(known, &run.claimed).await?;
        let all = [run.claimed.as_slice(), &said.joined].concat();
        let subscribers = self.context.heard(known.clone(), &all).await?;
        let destination = subscribers.destination.unwrap_or(Destination::Nobody);
        if matches!(destination, Destination::Caller(_)) {
            // The caller gets the rest.
            said.reported
                .retain(|reported| matches!(reported, Outward::Question { .. }));
        }
        if !said.reported.is_empty()
            && let Some(recipient) = self.context.recipient(destination).await?
        {
            self.context
                .queue_reported(commit, run, &recipient, &said.reported)
                .await?;
        }
        if let Some(driving) = self.phase.driving_mut() {
            driving.subscribers = known;
        }
        Ok(())
    }
}

/// The words of a commit to people outside.
struct OutboundWords {
    reported: Vec<Outward>,
    /// The inputs that join the run with the commit.
    joined: Vec<InputId>,
}

impl OutboundWords {
    fn by(run: &Run, commit: &Commit) -> Self {
        let stream = Stream::Run(run.started.run);
        let own = commit
            .appends
            .iter()
            .filter(|append| append.stream == stream);
        let mut said = Self {
            reported: Vec::new(),
            joined: Vec::new(),
        };
        for new in own.flat_map(|append| &append.events) {
            said.reported.extend(outward(run, &new.event));
            let joins = |input: &InputId| !run.claimed.contains(input);
            said.joined.extend(new.event.claimed().filter(joins));
        }
        said
    }
}

impl SessionContext {
    /// Returns the subscribers, after reading the run's new inputs. An erased input has no sender.
    pub(super) async fn heard(
        &self,
        mut subscribers: Subscribers,
        claimed: &[InputId],
    ) -> Result<Subscribers, DriverError> {
        for input in claimed.get(subscribers.inputs..).unwrap_or_default() {
            let found = self.store().input(*input).await?;
            subscribers.inspect(found.as_ref().map(|(input, _)| input));
        }
        Ok(subscribers)
    }

    /// Returns the chat that receives a run's messages; none if no chat does.
    async fn recipient(&self, destination: Destination) -> Result<Option<Recipient>, DriverError> {
        match destination {
            Destination::Nobody => Ok(None),
            Destination::Chat(recipient) => Ok(Some(recipient)),
            Destination::Session => self.recipient_of(self.session).await,
            Destination::Caller(caller) => self.recipient_above(caller).await,
        }
    }

    /// Returns the chat from which a session was last written to.
    async fn recipient_of(&self, session: SessionId) -> Result<Option<Recipient>, DriverError> {
        let route = self.store().reply_route(session).await?;
        Ok(route.map(|route| Recipient {
            route,
            is_awaited: true,
            quiet: None,
        }))
    }

    /// Returns the chat that the first of those answers who handed the work on.
    async fn recipient_above(&self, caller: ReplyTo) -> Result<Option<Recipient>, DriverError> {
        let mut caller = caller;
        for _ in 0..CALLERS_MAX {
            let Some(run) = load_caller(self.store(), caller.run).await? else {
                return Ok(None);
            };
            let subscribers = self.heard(Subscribers::default(), &run.claimed).await?;
            match subscribers.destination {
                Some(Destination::Caller(next)) => caller = next,
                Some(Destination::Session) => return self.recipient_of(run.started.session).await,
                Some(Destination::Chat(recipient)) => return Ok(Some(recipient)),
                Some(Destination::Nobody) | None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Queues a run's message into a chat. If too many messages already wait, it is given up at
    /// once, and an operator sees that.
    async fn queue_reported(
        &self,
        commit: &mut Commit,
        run: &Run,
        recipient: &Recipient,
        reported: &[Outward],
    ) -> Result<(), DriverError> {
        let time = self.core.now();
        let context = Context::of_run(&run.started, time);
        let stream = outbox(&recipient.route);
        let waiting = self
            .store()
            .waiting_outbound_messages(&recipient.route)
            .await?;
        let is_full = waiting.in_chat >= CHAT_OUTBOUND_MESSAGES_MAX as u64
            || waiting.of_connector >= OUTBOUND_MESSAGES_MAX as u64;
        for reported in reported {
            let Some(queued) = reported.queued(recipient, &run.started, time) else {
                continue;
            };
            let is_old = matches!(reported, Outward::Words { is_new: false, .. });
            if is_old
                && self
                    .store()
                    .outbound_message(queued.outbound_message)
                    .await?
                    .is_some()
            {
                continue;
            }
            let given_up = OutboundMessageSettled {
                connector: queued.connector.clone(),
                outbound_message: queued.outbound_message,
                outcome: OutboundMessageOutcome::Dead {
                    reason: FULL.to_owned(),
                },
                edits: None,
                time,
            };
            add(
                commit,
                stream,
                &context,
                Event::OutboundMessageQueued(queued),
            );
            if is_full {
                add(
                    commit,
                    stream,
                    &context,
                    Event::OutboundMessageSettled(given_up),
                );
            }
        }
        Ok(())
    }
}
