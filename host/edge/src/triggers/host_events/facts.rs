//! The host event of a stored event, for triggers: its kind, its data, and the facts that select
//! its subscribers.

use super::origin::{self, Origin};
use crate::core::Core;
use broker::Error;
use domain::budget::{Amount, Available};
use domain::definition::DefinitionId;
use domain::event::{
    Event, InputDead, OutboundMessageOutcome, OutboundMessageSettled, PauseReason, Recorded,
    RunStarted, SlotCompleted, TriggerPaused, TriggerTrouble, TriggerTroubled,
};
use domain::id::{AgentId, RunId, SessionId, Stream};
use domain::trigger::{
    ALERT_FAILURES, EVENT_DATA_BYTES_MAX, Heard, HostEvent, HostEventKind, TriggerName,
};
use domain::trouble::ServiceTrouble;
use serde_json::{Value, json};

/// The share of a budget that is reported, in hundredths.
const BUDGET_SHARE: u64 = 80;
/// The beginning of who began a session that a trigger's run has for itself.
pub(super) const TRIGGER: &str = "trigger:";

/// An event of the host, with the facts that select its subscribers.
#[derive(Debug)]
pub(super) struct Happened {
    pub(super) event: HostEvent,
    /// The definition of the agent to which it happened.
    agent: Option<DefinitionId>,
    /// The trigger that it is about, or whose trigger run caused it.
    trigger: Option<TriggerName>,
}

impl Happened {
    pub(super) fn heard(&self) -> Heard<'_> {
        Heard {
            kind: self.event.name,
            agent: self.agent.as_ref(),
            trigger: self.trigger.as_ref(),
        }
    }
}

/// The facts of an event that are known before its subscribers are determined.
struct EventFacts {
    kind: HostEventKind,
    /// Its id, unless it is that of the stored event.
    id: Option<String>,
    data: Value,
    agent: Option<DefinitionId>,
    origin: Option<Origin>,
}

/// Returns the host event of a stored event; none if it is not of a wanted kind.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn happened(
    core: &Core,
    recorded: &Recorded,
    wants: impl Fn(HostEventKind) -> bool,
) -> Result<Option<Happened>, Error> {
    let Some(event) = &recorded.event else {
        return Ok(None);
    };
    let Some(kind) = kind_of(event).filter(|kind| wants(*kind)) else {
        return Ok(None);
    };
    let reported = match event {
        Event::SlotCompleted(completed) => {
            Some(session_completed(core, completed, recorded.subject.run).await?)
        }
        Event::InputDead(dead) => Some(input_dead(core, dead).await?),
        Event::OutboundMessageSettled(settled) => {
            outbound_message_lost(core, settled, kind).await?
        }
        Event::ProviderTroubled(it) => {
            let data = json!({ "provider": it.provider, "trouble": it.trouble });
            Some(of_no_agent(kind, data))
        }
        Event::ConnectorTroubled(it) => {
            let data = json!({ "connector": it.connector, "trouble": it.trouble });
            Some(of_no_agent(kind, data))
        }
        Event::TriggerTroubled(troubled) => Some(troubled_trigger(troubled)),
        Event::TriggerPaused(paused) => Some(paused_trigger(paused)),
        Event::RunSettled(settled) => budget(core, settled.run).await?,
        _ => None,
    };
    Ok(reported.map(|reported| {
        debug_assert_eq!(kind, reported.kind, "the kind is told by the event alone");
        Happened {
            event: HostEvent {
                name: reported.kind,
                id: reported.id.unwrap_or_else(|| recorded.id.to_string()),
                time: recorded.time,
                data: bounded(reported.data),
                chain: reported.origin.as_ref().map_or(0, |origin| origin.chain),
            },
            agent: reported.agent,
            trigger: reported.origin.map(|origin| origin.trigger),
        }
    }))
}

/// Returns the kind of the host's event that a stored one may be.
fn kind_of(event: &Event) -> Option<HostEventKind> {
    match event {
        Event::SlotCompleted(_) => Some(HostEventKind::SessionCompleted),
        Event::InputDead(_) => Some(HostEventKind::InputDead),
        Event::OutboundMessageSettled(settled) => match settled.outcome {
            OutboundMessageOutcome::Dead { .. } | OutboundMessageOutcome::Undelivered { .. } => {
                Some(HostEventKind::OutboundMessageDead)
            }
            OutboundMessageOutcome::Unknown { .. } => Some(HostEventKind::OutboundMessageUnknown),
            OutboundMessageOutcome::Delivered { .. }
            | OutboundMessageOutcome::Chunk { .. }
            | OutboundMessageOutcome::Failed { .. } => None,
        },
        Event::ProviderTroubled(troubled) => Some(match troubled.trouble {
            ServiceTrouble::Recovered => HostEventKind::ProviderUp,
            ServiceTrouble::Unauthorised { .. } | ServiceTrouble::Failing { .. } => {
                HostEventKind::ProviderDown
            }
        }),
        Event::ConnectorTroubled(troubled) => Some(match troubled.trouble {
            ServiceTrouble::Recovered => HostEventKind::ConnectorUp,
            ServiceTrouble::Unauthorised { .. } | ServiceTrouble::Failing { .. } => {
                HostEventKind::ConnectorDown
            }
        }),
        Event::TriggerTroubled(troubled) => {
            let is_failing = match &troubled.trouble {
                TriggerTrouble::Failing { failures } => *failures >= ALERT_FAILURES,
                TriggerTrouble::BreakerOpened { .. } => true,
                TriggerTrouble::Recovered | TriggerTrouble::Stuck { .. } => false,
            };
            is_failing.then_some(HostEventKind::TriggerFailing)
        }
        Event::TriggerPaused(paused) => {
            let is_failing = match paused.reason {
                PauseReason::Failures { .. } | PauseReason::Schedule { .. } => true,
                PauseReason::User { .. } | PauseReason::Done => false,
            };
            is_failing.then_some(HostEventKind::TriggerFailing)
        }
        Event::RunSettled(_) => Some(HostEventKind::Budget80),
        _ => None,
    }
}

/// Reports a session that was completed, by a turn of it or from outside.
async fn session_completed(
    core: &Core,
    completed: &SlotCompleted,
    run: Option<RunId>,
) -> Result<EventFacts, Error> {
    let session = completed.session_id;
    let row = core.store().session(session).await?;
    let of_run = match run {
        Some(run) => origin::of_run(core, run).await?,
        None => None,
    };
    let origin = match of_run {
        Some(origin) => Some(origin),
        None => origin::of_session(core, session).await?,
    };
    Ok(EventFacts {
        kind: HostEventKind::SessionCompleted,
        id: None,
        data: json!({
            "session_id": session,
            "agent_id": completed.agent,
            "session_type": row.as_ref().map(|row| row.session_type.clone()),
            "user_id": row.map(|row| row.user_id),
            "summary": completed.summary,
        }),
        agent: definition_of(core, completed.agent).await?,
        origin,
    })
}

async fn input_dead(core: &Core, dead: &InputDead) -> Result<EventFacts, Error> {
    let agent = agent_of(core, dead.session).await?;
    Ok(EventFacts {
        kind: HostEventKind::InputDead,
        id: None,
        data: json!({
            "input_id": dead.input,
            "session_id": dead.session,
            "agent_id": agent,
            "reason": dead.reason,
        }),
        agent: match agent {
            Some(agent) => definition_of(core, agent).await?,
            None => None,
        },
        origin: origin::of_input(core, dead.input).await?,
    })
}

/// Returns the facts about trouble with a service, or its end. No trigger run causes it.
fn of_no_agent(kind: HostEventKind, data: Value) -> EventFacts {
    EventFacts {
        kind,
        id: None,
        data,
        agent: None,
        origin: None,
    }
}

/// Returns the facts about a message that was given up, or for which it is unknown whether it was
/// sent.
async fn outbound_message_lost(
    core: &Core,
    settled: &OutboundMessageSettled,
    kind: HostEventKind,
) -> Result<Option<EventFacts>, Error> {
    let (OutboundMessageOutcome::Dead { reason }
    | OutboundMessageOutcome::Undelivered { reason, .. }
    | OutboundMessageOutcome::Unknown { reason }) = &settled.outcome
    else {
        return Ok(None);
    };
    let outbound_message = core
        .store()
        .outbound_message(settled.outbound_message)
        .await?;
    let origin = match &outbound_message {
        Some(outbound_message) => {
            origin::of_outbound_message(core, &outbound_message.cause).await?
        }
        None => None,
    };
    Ok(Some(EventFacts {
        kind,
        id: None,
        data: json!({
            "connector": settled.connector,
            "outbound_message_id": settled.outbound_message,
            "chat": outbound_message.map(|outbound_message| outbound_message.chat),
            "reason": reason,
        }),
        agent: None,
        origin,
    }))
}

fn troubled_trigger(troubled: &TriggerTroubled) -> EventFacts {
    EventFacts {
        kind: HostEventKind::TriggerFailing,
        id: None,
        data: json!({ "trigger": troubled.name, "trouble": troubled.trouble }),
        agent: None,
        origin: Some(itself(&troubled.name)),
    }
}

fn paused_trigger(paused: &TriggerPaused) -> EventFacts {
    EventFacts {
        kind: HostEventKind::TriggerFailing,
        id: None,
        data: json!({ "trigger": paused.name, "paused": paused.reason }),
        agent: None,
        origin: Some(itself(&paused.name)),
    }
}

/// Returns the trigger in trouble as the origin. No chain is counted for it: its breaker pauses it,
/// so the event is rare.
fn itself(trigger: &TriggerName) -> Origin {
    Origin {
        trigger: trigger.clone(),
        chain: 0,
    }
}

/// Returns the facts about a run's budget; none while less than the share of it is spent. The id is
/// that of the budget, so that it is reported once.
async fn budget(core: &Core, run: RunId) -> Result<Option<EventFacts>, Error> {
    let first = core.store().first_of(Stream::Run(run)).await?;
    let Some(Event::RunStarted(started)) = first.and_then(|first| first.event) else {
        return Ok(None);
    };
    let accounts = started.accounts();
    let drawn = core.store().drawn(&accounts, None).await?;
    let nothing = vec![Amount::default(); drawn.others.len()];
    let limit = accounts.available(&nothing, Amount::default());
    let left = accounts.available(&drawn.others, Amount::default());
    if !is_spent(&limit, &left) {
        return Ok(None);
    }
    Ok(Some(EventFacts {
        kind: HostEventKind::Budget80,
        id: Some(format!("budget:{}", accounts.address())),
        data: budget_data(&started, &limit, &left),
        agent: Some(started.definition.clone()),
        origin: origin::of_run(core, run).await?,
    }))
}

/// Returns whether the reported share of a budget is spent or reserved.
fn is_spent(limit: &Available, left: &Available) -> bool {
    let is_over = |limit: u64, left: u64| {
        let used = limit.saturating_sub(left);
        limit > 0 && used.saturating_mul(100) >= limit.saturating_mul(BUDGET_SHARE)
    };
    is_over(limit.tokens, left.tokens)
        || is_over(u64::from(limit.calls), u64::from(left.calls))
        || limit
            .cost_micros
            .zip(left.cost_micros)
            .is_some_and(|(limit, left)| is_over(limit, left))
}

fn budget_data(started: &RunStarted, limit: &Available, left: &Available) -> Value {
    let part = |limit: u64, left: u64| json!({ "limit": limit, "left": left });
    json!({
        "run_id": started.run,
        "session_id": started.session,
        "agent_id": started.agent,
        "user_id": started.user_id,
        "tokens": part(limit.tokens, left.tokens),
        "calls": part(u64::from(limit.calls), u64::from(left.calls)),
        "cost_micros": limit
            .cost_micros
            .zip(left.cost_micros)
            .map(|(limit, left)| part(limit, left)),
    })
}

async fn agent_of(core: &Core, session: SessionId) -> Result<Option<AgentId>, Error> {
    let row = core.store().session(session).await?;
    Ok(row.map(|row| row.agent))
}

async fn definition_of(core: &Core, agent: AgentId) -> Result<Option<DefinitionId>, Error> {
    let row = core.store().agent(agent).await?;
    Ok(row.map(|row| row.agent.definition))
}

/// Returns an event's data, without its longest part if that is too long.
fn bounded(mut data: Value) -> Value {
    if data.to_string().len() <= EVENT_DATA_BYTES_MAX {
        return data;
    }
    if let Some(parts) = data.as_object_mut() {
        let longest = parts
            .iter()
            .max_by_key(|(_, value)| value.to_string().len())
            .map(|(name, _)| name.clone());
        if let Some(longest) = longest {
            parts.insert(longest, Value::Null);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available(tokens: u64, calls: u32) -> Available {
        Available {
            tokens,
            calls,
            cost_micros: None,
        }
    }

    #[test]
    fn a_budget_is_told_of_when_four_fifths_of_any_part_are_spent() {
        let limit = available(1_000, 10);
        for (left, expected) in [
            (available(1_000, 10), false),
            (available(201, 10), false),
            (available(200, 10), true),
            (available(1_000, 2), true),
            (available(0, 0), true),
        ] {
            assert_eq!(is_spent(&limit, &left), expected, "{left:?}");
        }
        assert!(!is_spent(&available(0, 0), &available(0, 0)));
    }

    #[test]
    fn what_an_event_says_is_bounded() {
        let data = json!({ "session_id": "a", "summary": "x".repeat(EVENT_DATA_BYTES_MAX) });
        let bounded = bounded(data);
        assert_eq!(bounded, json!({ "session_id": "a", "summary": null }));
    }
}
