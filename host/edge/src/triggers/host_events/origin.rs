//! The trigger run that caused an event of the host, if any.

use super::facts::TRIGGER;
use crate::core::Core;
use broker::Error;
use domain::event::{Event, InputAccepted, OutboundMessageCause, Source};
use domain::id::{InputId, RunId, SessionId, Stream, TriggerEventId};
use domain::trigger::{TriggerEvent, TriggerName};

/// Events of a run that are read at a time: a single one may have megabytes.
const PAGE: usize = 32;

/// The trigger run that caused something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The trigger.
    pub(super) trigger: TriggerName,
    /// Number of events of the host that led to it, one after the other. None if no such event
    /// fired its trigger.
    pub(super) chain: u32,
}

/// Returns the trigger run that caused an input, also through agents that hand work over.
pub(super) async fn of_input(core: &Core, input: InputId) -> Result<Option<Origin>, Error> {
    let Some((accepted, _)) = core.store().input(input).await? else {
        return Ok(None);
    };
    match root_of(&accepted.source) {
        Some(root) => of_claimed(core, root).await,
        None => of_message(core, &accepted).await,
    }
}

/// Returns the trigger run that caused a run, also through agents that hand work over. Of several,
/// it is the one with the longest chain of events.
pub(super) async fn of_run(core: &Core, run: RunId) -> Result<Option<Origin>, Error> {
    let first = core.store().first_of(Stream::Run(run)).await?;
    let Some(Event::RunStarted(started)) = first.and_then(|first| first.event) else {
        return Ok(None);
    };
    let root = started.accounts().first();
    of_claimed(core, root.map_or(run, |root| RunId(root.0))).await
}

/// Returns the trigger run that began a session.
pub(super) async fn of_session(core: &Core, session: SessionId) -> Result<Option<Origin>, Error> {
    let row = core.store().session(session).await?;
    let trigger = row.and_then(|row| row.started_by.strip_prefix(TRIGGER)?.parse().ok());
    let Some(trigger) = trigger else {
        return Ok(None);
    };
    let chain = match core.store().trigger_event_of_session(session).await? {
        Some(trigger_event) => chain_of(core, trigger_event).await?,
        None => 0,
    };
    Ok(Some(Origin { trigger, chain }))
}

/// Returns the trigger run that caused a message to people outside.
pub(super) async fn of_outbound_message(
    core: &Core,
    cause: &OutboundMessageCause,
) -> Result<Option<Origin>, Error> {
    match cause {
        OutboundMessageCause::Turn { run, .. } | OutboundMessageCause::Question { run, .. } => {
            of_run(core, *run).await
        }
        OutboundMessageCause::Input { input, .. } => of_input(core, *input).await,
        OutboundMessageCause::Host { .. } | OutboundMessageCause::Test { .. } => Ok(None),
    }
}

/// Returns the run that a message began and that caused the work with an input of this kind.
fn root_of(source: &Source) -> Option<RunId> {
    source.accounts()?.first().map(|account| RunId(account.0))
}

/// Returns the trigger run of the messages that a run began with or took in later: of several the
/// one to which most events led.
async fn of_claimed(core: &Core, run: RunId) -> Result<Option<Origin>, Error> {
    let mut deepest: Option<Origin> = None;
    let mut version = 0;
    loop {
        let page = core.store().stream(Stream::Run(run), version, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(deepest);
        };
        version = last.version;
        for recorded in page {
            for input in recorded.event.iter().flat_map(Event::claimed) {
                deepest = deeper(deepest, of_claimed_input(core, input).await?);
            }
        }
    }
}

async fn of_claimed_input(core: &Core, input: InputId) -> Result<Option<Origin>, Error> {
    match core.store().input(input).await? {
        Some((accepted, _)) => of_message(core, &accepted).await,
        None => Ok(None),
    }
}

fn deeper(one: Option<Origin>, other: Option<Origin>) -> Option<Origin> {
    [one, other].into_iter().flatten().reduce(|deepest, it| {
        if it.chain > deepest.chain {
            it
        } else {
            deepest
        }
    })
}

async fn of_message(core: &Core, accepted: &InputAccepted) -> Result<Option<Origin>, Error> {
    match &accepted.source {
        Source::Trigger {
            trigger,
            trigger_event,
            ..
        } => Ok(Some(Origin {
            trigger: trigger.clone(),
            chain: chain_of(core, *trigger_event).await?,
        })),
        Source::Opening => of_session(core, accepted.session).await,
        Source::Api
        | Source::Connector { .. }
        | Source::Dispatch { .. }
        | Source::LateReply { .. }
        | Source::Reminder { .. } => Ok(None),
    }
}

/// Returns the number of events, one after the other, that led to the results of a trigger event.
async fn chain_of(core: &Core, trigger_event: TriggerEventId) -> Result<u32, Error> {
    let row = core.store().trigger_event(trigger_event).await?;
    Ok(row.map_or(0, |row| match *row.what {
        TriggerEvent::Event(event) => event.chain.saturating_add(1),
        TriggerEvent::Due { .. }
        | TriggerEvent::Heartbeat { .. }
        | TriggerEvent::Webhook(_)
        | TriggerEvent::Files(_) => 0,
    }))
}
