//! The outbox to people outside: what the commits of a run say to them is queued in those very
//! commits.
//!
//! A reply goes into the chat that the turn's messages came from, or for which a trigger made them.
//! A turn of a reminder or of a late reply goes on with what was asked for in the chat from which
//! its session was last written to. Questions of an agent that works for another one reach the chat
//! of that one.

use super::context::SessionContext;
use super::end::add;
use super::error::DriverError;
use super::fold::load_caller;
use super::hearers::Hearers;
use super::state::Driver;
use crate::boxed::boxed;
use crate::journal::Context;
use domain::connector::{CHAT_DELIVERIES_MAX, DELIVERIES_MAX, Destination, Recipient, ReplyRoute};
use domain::event::{
    DeliveryOutcome, DeliveryQueued, DeliverySettled, Event, InputAccepted, Source,
};
use domain::id::{ConnectorId, InputId, SessionId, Stream};
use domain::operation::ReplyTo;
use domain::run::Run;
use domain::run::outward::{Outward, outward};
use std::collections::BTreeSet;
use store::Commit;

/// Callers, one above the other, among which the chat of a question is looked for.
const CALLERS_MAX: usize = 8;
/// The reason why a message is given up of which too many wait.
const FULL: &str = "too many messages wait to be sent into this chat, or through its connector";

impl Driver {
    /// Queues what a commit of the open run says to people outside, in the same commit.
    #[boxed]
    pub(super) async fn add_deliveries(&mut self, commit: &mut Commit) -> Result<(), DriverError> {
        let Some(driving) = self.phase.driving() else {
            return Ok(());
        };
        let run = &driving.run;
        let mut said = Said::by(run, commit);
        if said.told.is_empty() {
            return Ok(());
        }
        let known = driving.hearers.clone();
        let known = self.context.heard(known, &run.claimed).await?;
        let all = [run.claimed.as_slice(), &said.joined].concat();
        let hearers = self.context.heard(known.clone(), &all).await?;
        let destination = hearers.destination.unwrap_or(Destination::Nobody);
        if matches!(destination, Destination::Caller(_)) {
            // The caller gets the rest.
            said.told
                .retain(|told| matches!(told, Outward::Question { .. }));
        }
        if !said.told.is_empty()
            && let Some(recipient) = self.context.recipient(destination).await?
        {
            self.context
                .queue_told(commit, run, &recipient, &said.told)
                .await?;
        }
        if let Some(driving) = self.phase.driving_mut() {
            driving.hearers = known;
        }
        Ok(())
    }
}

/// The words of a commit to people outside.
struct Said {
    told: Vec<Outward>,
    /// The inputs that join the run with the commit.
    joined: Vec<InputId>,
}

impl Said {
    fn by(run: &Run, commit: &Commit) -> Self {
        let stream = Stream::Run(run.started.run);
        let own = commit
            .appends
            .iter()
            .filter(|append| append.stream == stream);
        let mut said = Self {
            told: Vec::new(),
            joined: Vec::new(),
        };
        for new in own.flat_map(|append| &append.events) {
            said.told.extend(outward(run, &new.event));
            if let Event::RunStepped(stepped) = &new.event {
                let joins = |input: &&InputId| !run.claimed.contains(input);
                said.joined.extend(stepped.claimed.iter().filter(joins));
            }
        }
        said
    }
}

impl SessionContext {
    /// Returns the hearers with the inputs of the run that were not looked at yet. An input that
    /// was erased came from nobody.
    pub(super) async fn heard(
        &self,
        mut hearers: Hearers,
        claimed: &[InputId],
    ) -> Result<Hearers, DriverError> {
        for input in claimed.get(hearers.inputs..).unwrap_or_default() {
            let found = self.store().input(*input).await?;
            hearers.look_at(found.as_ref().map(|(input, _)| input));
        }
        Ok(hearers)
    }

    /// Returns the chat that hears what comes of a run; none if no chat does.
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
            let hearers = self.heard(Hearers::default(), &run.claimed).await?;
            match hearers.destination {
                Some(Destination::Caller(next)) => caller = next,
                Some(Destination::Session) => return self.recipient_of(run.started.session).await,
                Some(Destination::Chat(recipient)) => return Ok(Some(recipient)),
                Some(Destination::Nobody) | None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Queues what a run says to a chat. Where too many messages wait already, it is given up at
    /// once, and an operator sees that.
    async fn queue_told(
        &self,
        commit: &mut Commit,
        run: &Run,
        recipient: &Recipient,
        told: &[Outward],
    ) -> Result<(), DriverError> {
        let time = self.core.now();
        let context = Context::of_run(&run.started, time);
        let stream = outbox(&recipient.route);
        let waiting = self.store().waiting_deliveries(&recipient.route).await?;
        let is_full = waiting.in_chat >= CHAT_DELIVERIES_MAX as u64
            || waiting.of_connector >= DELIVERIES_MAX as u64;
        for told in told {
            let Some(queued) = told.queued(recipient, &run.started, time) else {
                continue;
            };
            let is_old = matches!(told, Outward::Words { is_new: false, .. });
            if is_old && self.store().delivery(queued.delivery).await?.is_some() {
                continue;
            }
            let given_up = DeliverySettled {
                connector: queued.connector.clone(),
                delivery: queued.delivery,
                outcome: DeliveryOutcome::Dead {
                    reason: FULL.to_owned(),
                },
                edits: None,
                time,
            };
            add(commit, stream, &context, Event::DeliveryQueued(queued));
            if is_full {
                add(commit, stream, &context, Event::DeliverySettled(given_up));
            }
        }
        Ok(())
    }
}

/// Tells the chats that inputs came from that no turn will begin with those: each chat once.
pub(crate) fn tell_of_dead(commit: &mut Commit, dead: &[InputAccepted], context: &Context) {
    let mut told = BTreeSet::new();
    for input in dead {
        let Destination::Chat(recipient) = Source::destination([&input.source]) else {
            continue;
        };
        if !told.insert(recipient.route.clone()) {
            continue;
        }
        let time = context.time;
        let queued = DeliveryQueued::of_dead(&recipient, input.session, input.input, time);
        if let Some(queued) = queued {
            let stream = outbox(&recipient.route);
            add(commit, stream, context, Event::DeliveryQueued(queued));
        }
    }
}

/// Returns the stream with what is to be sent into a chat.
fn outbox(route: &ReplyRoute) -> Stream {
    Stream::Connector(ConnectorId::of_name(route.connector.as_str()))
}
