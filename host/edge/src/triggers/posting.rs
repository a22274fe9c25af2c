//! The messages of a trigger run on their way to sessions, one after the other, through the
//! broker's one way in.
//!
//! Each has a key of its own, so all of them can be handed over again after a crash: one that was
//! accepted before gets the same answer. Their outcomes are one commit.

use super::failing::following;
use super::{Shared, recording};
use crate::core::Core;
use crate::worker::Next;
use broker::{
    Address, Arriving, Error, Isolated, PostOutcome, PostRouted, Routed, RoutedReceipt, Target,
};
use domain::connector::{ReplyRoute, kept_reason};
use domain::definition::DefinitionId;
use domain::error_code::ErrorKind;
use domain::event::{
    Event, PostedMessage, Source, TriggerFired, TriggerMessage, TriggerOrigin, TriggerPosted,
    TriggerTrouble,
};
use domain::id::SessionId;
use domain::message::Part;
use domain::message_labels::MessageLabels;
use domain::path::{AgentPath, ModelRole};
use domain::speaker::Speaker;
use domain::time::Timestamp;
use domain::trigger::{
    ALERT_FAILURES, Deliver, SmartTarget, TriggerKind, TriggerTarget, TriggerTargetName,
};
use domain::user::UserId;
use std::collections::BTreeMap;
use store::{TriggerEventRow, TriggerEventState, TriggerRow};

/// The words for a heartbeat whose operator has none.
const HEARTBEAT_ASKS: &str = "This is a heartbeat. Do what is due on the checklist below, as far as \
                              you are to look after such things. If nothing is, reply with \
                              HEARTBEAT_OK and nothing else.";
/// Milliseconds until messages are handed over again that found a session, or the host, too busy.
const BUSY_MS: u64 = 2_000;
/// Time limit for the handover, in milliseconds after the trigger run: 1 hour. After it, messages
/// without a place are refused, and the trigger continues.
const BUSY_MS_MAX: u64 = 3_600_000;

/// Hands over the messages of a trigger run, and records their outcomes.
///
/// # Errors
/// The store cannot be read, or does not take it. All of them are handed over again.
pub(super) async fn post(
    shared: &Shared,
    row: &TriggerRow,
    trigger_event: &TriggerEventRow,
    fired: &TriggerFired,
) -> Result<Next, Error> {
    let mut posting = Posting {
        core: &shared.core,
        row,
        trigger_event,
        begun: BTreeMap::new(),
    };
    let mut results = Vec::with_capacity(fired.messages.len());
    store::point("edge.post.before");
    for message in &fired.messages {
        let posted = match posting.message(message).await {
            Ok(posted) => posted,
            Err(Error::Refused(refusal)) if refusal.kind() == ErrorKind::Busy => {
                let waited_ms = shared.core.now().since_ms(fired.time);
                if waited_ms < BUSY_MS_MAX {
                    return Ok(Next::Again { ms: BUSY_MS });
                }
                refused(&refusal.message)
            }
            Err(Error::Refused(refusal)) => refused(&refusal.message),
            Err(error) => return Err(error),
        };
        store::point("edge.post.between");
        results.push(posted);
    }
    record(shared, row, trigger_event, results).await
}

fn refused(reason: &str) -> PostedMessage {
    PostedMessage::Refused {
        reason: kept_reason(reason),
    }
}

/// Records the outcomes of a trigger run's messages. If none was accepted, the trigger run counts
/// as failed.
async fn record(
    shared: &Shared,
    row: &TriggerRow,
    trigger_event: &TriggerEventRow,
    results: Vec<PostedMessage>,
) -> Result<Next, Error> {
    let now = shared.core.now();
    let is_refused = |result: &PostedMessage| matches!(result, PostedMessage::Refused { .. });
    let has_failed = !results.is_empty() && results.iter().all(is_refused);
    let mut events = vec![Event::TriggerPosted(TriggerPosted {
        name: row.name.clone(),
        trigger_event: trigger_event.trigger_event,
        results,
        time: now,
    })];
    if has_failed {
        events.extend(failed(row, now));
    }
    let state = TriggerEventState::Fired;
    store::point("edge.posted.before");
    let stored = recording::settle(shared, trigger_event, state, events, now).await;
    store::point("edge.posted.after");
    stored?;
    Ok(Next::GoOn)
}

/// Returns the events of a trigger run without any accepted message. The trigger run itself had
/// reset the failures before it, so the events include their number.
fn failed(row: &TriggerRow, now: Timestamp) -> Vec<Event> {
    let mut failures = row.failures;
    let consequences = failures.after_failure(now);
    let mut events = following(&row.name, &failures, &consequences, now);
    if failures.in_a_row != ALERT_FAILURES {
        let trouble = TriggerTrouble::Failing {
            failures: failures.in_a_row,
        };
        events.insert(0, recording::troubled(&row.name, trouble, now));
    }
    events
}

/// Returns the user for whom a trigger works.
pub(super) fn user(row: &TriggerRow) -> Option<&UserId> {
    row.spec.user.as_ref().or(row.user.as_ref())
}

/// Returns the address of a target.
pub(super) fn address(target: &TriggerTarget) -> Address {
    match target {
        TriggerTarget::Agent { agent } => Address::Agent(agent_named(agent)),
        TriggerTarget::Session { session } => Address::Session(*session),
        TriggerTarget::Turn { turn } => Address::Thread(*turn),
        TriggerTarget::Path { path } => Address::Agent(Target::Path(path.as_str().to_owned())),
        TriggerTarget::Persona { persona } => Address::Persona(persona.clone()),
        TriggerTarget::Smart { smart } => {
            let SmartTarget {
                about,
                agent,
                persona,
            } = smart.clone();
            Address::Smart {
                about,
                agent: agent.as_deref().map(agent_named),
                persona,
            }
        }
    }
}

/// Returns the agent that a target names; none if it is determined when the trigger is fired.
pub(super) fn agent_of(target: &TriggerTarget) -> Option<Target> {
    match address(target) {
        Address::Agent(agent) => Some(agent),
        Address::Smart { agent, .. } => agent,
        Address::Thread(_) | Address::Session(_) | Address::Persona(_) | Address::Found(_) => None,
    }
}

/// Returns the path that a target names; none if it names something else.
pub(super) fn path_of(target: &TriggerTarget) -> Option<AgentPath> {
    match target {
        TriggerTarget::Path { path } => Some(path.clone()),
        TriggerTarget::Agent { agent } => agent.parse().ok(),
        TriggerTarget::Session { .. }
        | TriggerTarget::Turn { .. }
        | TriggerTarget::Persona { .. }
        | TriggerTarget::Smart { .. } => None,
    }
}

/// Returns the agent that a text names: by its path, its id, or the id of a definition.
fn agent_named(text: &str) -> Target {
    if text.starts_with('/') {
        return Target::Path(text.to_owned());
    }
    match text.parse() {
        Ok(id) => Target::Agent(id),
        Err(_) => Target::Definition(DefinitionId(text.to_owned())),
    }
}

/// The messages of one trigger run that are handed over.
struct Posting<'a> {
    core: &'a Core,
    row: &'a TriggerRow,
    trigger_event: &'a TriggerEventRow,
    /// The sessions that were begun for this trigger run alone, by target. Further messages for the
    /// same target join them.
    begun: BTreeMap<Option<TriggerTargetName>, SessionId>,
}

impl Posting<'_> {
    /// Hands a message over.
    async fn message(&mut self, message: &TriggerMessage) -> Result<PostedMessage, Error> {
        let spec = &self.row.spec;
        let picked = message.target.as_ref();
        let Some(target) = spec.picked(picked) else {
            let name = picked.map(TriggerTargetName::as_str).unwrap_or_default();
            return Ok(refused(&format!("it picked `{name}`, which is no target")));
        };
        let Some(user) = user(self.row) else {
            return Ok(refused("the trigger names no user for whom it works"));
        };
        let begun = self.begun.get(&message.target).copied();
        let isolated = (spec.is_isolated() && begun.is_none()).then(|| Isolated {
            name: Some(self.row.name.to_string()),
        });
        let begins = isolated.is_some();
        let to = begun.map_or_else(|| address(target), Address::Session);
        let arriving = Arriving {
            source: Source::Trigger {
                trigger: self.row.name.clone(),
                trigger_event: self.trigger_event.trigger_event,
                quiet: match &spec.on {
                    TriggerKind::Heartbeat(heartbeat) => heartbeat.quiet(),
                    TriggerKind::Schedule(_)
                    | TriggerKind::Webhook(_)
                    | TriggerKind::Files(_)
                    | TriggerKind::Events(_) => None,
                },
                reply_to: self.reply_route(user, target).await?,
            },
            origin: format!("trigger:{}", self.row.name),
            untrusted: is_untrusted(self.row, self.trigger_event),
            speaker: Some(Speaker::Trigger {
                trigger: self.row.name.to_string(),
                asks: self.asks(),
            }),
            unheard: spec.deliver == Deliver::None,
            isolated,
        };
        let command = PostRouted {
            to,
            content: vec![Part::text(&message.text)],
            model: self.model(),
            queue: spec.queue,
            priority: spec.priority,
            labels: MessageLabels::default(),
            user: user.clone(),
            idempotency_key: Some(message.key.clone()),
        };
        // The agent of a path of the trigger's own is made when it first fires there.
        if let Some(path) = path_of(target) {
            self.core
                .broker
                .agents()
                .make_at_own_path(user, &path)
                .await?;
        }
        let routed = self
            .core
            .broker
            .messages()
            .post_inbound(command, arriving)
            .await?;
        let Routed::Accepted(receipt) = routed else {
            return Ok(refused("several threads are close; name a session"));
        };
        if begins {
            self.begun.insert(message.target.clone(), receipt.session);
        }
        Ok(accepted(&receipt))
    }

    /// Returns the operator's instructions for messages that depend on content from outside. By
    /// default a heartbeat's instructions are to follow its checklist.
    fn asks(&self) -> Option<String> {
        let spec = &self.row.spec;
        let usual =
            || matches!(spec.on, TriggerKind::Heartbeat(_)).then(|| HEARTBEAT_ASKS.to_owned());
        is_untrusted(self.row, self.trigger_event)
            .then(|| spec.message.clone().or_else(usual))
            .flatten()
    }

    /// Returns the model of the turns: the one that the trigger names, or for a heartbeat that of
    /// its role; none for the agent's own.
    fn model(&self) -> Option<String> {
        let spec = &self.row.spec;
        let is_heartbeat = matches!(spec.on, TriggerKind::Heartbeat(_));
        let of_role = || self.core.broker.models().of_role(ModelRole::Heartbeat);
        spec.model
            .clone()
            .or_else(|| is_heartbeat.then(of_role).flatten())
    }

    /// Returns where the replies to a message go: into the chat from which its session was written
    /// to last.
    async fn reply_route(
        &self,
        user: &UserId,
        target: &TriggerTarget,
    ) -> Result<Option<ReplyRoute>, Error> {
        if self.row.spec.deliver == Deliver::None {
            return Ok(None);
        }
        // A missing target is reported when the message is handed over.
        let found = self
            .core
            .broker
            .messages()
            .where_to(user, &address(target), "")
            .await;
        match found {
            Ok(Some((session, _))) => Ok(self.core.store().reply_route(session).await?),
            Ok(None) | Err(_) => Ok(None),
        }
    }
}

/// Returns whether the messages of a trigger event are marked: they depend on content from outside,
/// or an agent wrote them.
fn is_untrusted(row: &TriggerRow, trigger_event: &TriggerEventRow) -> bool {
    trigger_event.what.is_from_outside() || matches!(row.origin, TriggerOrigin::Agent { .. })
}

fn accepted(receipt: &RoutedReceipt) -> PostedMessage {
    match &receipt.said {
        PostOutcome::Accepted(input) => PostedMessage::Accepted {
            input: input.input,
            session: receipt.session,
            agent: receipt.agent,
        },
        // No text of a trigger is one.
        PostOutcome::Configured(_) => refused("it is a directive of the queue"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker::AddressLevel;
    use serde_json::json;

    #[test]
    fn a_target_names_an_agent_by_path_id_or_definition() {
        let id = "00000000-0000-4000-8000-0000000000b1";
        let named = |text: &str| agent_named(text);
        assert_eq!(named("/ada/telegram"), Target::Path("/ada/telegram".into()));
        assert_eq!(named(id), Target::Agent(id.parse().unwrap()));
        assert_eq!(
            named("assistant"),
            Target::Definition(DefinitionId("assistant".into()))
        );
    }

    #[test]
    fn every_target_has_an_address() {
        for (target, level) in [
            (json!({ "agent": "assistant" }), AddressLevel::Agent),
            (json!({ "path": "/ada/telegram" }), AddressLevel::Agent),
            (
                json!({ "session": "00000000-0000-4000-8000-0000000000b1" }),
                AddressLevel::Session,
            ),
            (json!({ "turn": "e2".repeat(32) }), AddressLevel::Thread),
            (json!({ "persona": "home" }), AddressLevel::Persona),
            (
                json!({ "smart": { "about": "books" } }),
                AddressLevel::Smart,
            ),
        ] {
            let target: TriggerTarget = serde_json::from_value(target).unwrap();
            assert_eq!(address(&target).level(), level, "{target:?}");
        }
    }
}
