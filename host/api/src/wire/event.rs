//! Events in public form: one JSON object for each, the same on every stream and in every list
//! except for `spawned`.

use super::agent_event;
use super::connector_event;
use super::label_event;
use super::message::draft;
use super::queue::waits_for;
use super::run_event;
use super::spawned::Spawned;
use super::trigger_event;
use super::turn::turn_end;
use domain::event::{
    self, FileUploaded, InputAccepted, ItemRecorded, Recorded, Source, TurnCommitted,
};
use domain::operation::Kept;
use serde::Serialize;
use serde_json::{Value, json};

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct Event {
    /// Its place among all events: without gaps, in the order of commits. The `id` of event
    /// streams.
    pub(crate) position: u64,
    /// Its id.
    pub(crate) id: String,
    /// Its CloudEvents type, such as `run.stepped.v1`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The time of the event, ISO 8601.
    pub(crate) time: String,
    /// The agent that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
    /// The actor that caused it: `user:<id>`, `agent:<path>`, `host`.
    pub(crate) actor: String,
    /// The id shared by everything that follows from one input: the id of that input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
    /// The place of its session below the followed one. It is set on a stream with `spawned=true`,
    /// for events of sessions that the followed one began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spawned: Option<Spawned>,
    /// The data of the event; `null` when it was erased. Fields may be added, and never change
    /// their meaning within a type.
    #[schema(value_type = Option<Object>, required)]
    pub(crate) data: Value,
}

/// A stored event as clients see it.
pub(crate) fn event(recorded: &Recorded) -> Event {
    Event {
        position: recorded.position,
        id: recorded.id.to_string(),
        kind: recorded.kind.clone(),
        time: recorded.time.to_string(),
        agent_id: recorded.subject.agent.map(|id| id.to_string()),
        session_id: recorded.subject.session.map(|id| id.to_string()),
        run_id: recorded.subject.run.map(|id| id.to_string()),
        actor: recorded.actor.clone(),
        correlation_id: recorded.correlation.map(|id| id.to_string()),
        spawned: None,
        data: recorded.event.as_ref().map_or(Value::Null, data),
    }
}

/// Returns the data of an event. Each kind is handed to the file of its subject, so that none is
/// forgotten.
fn data(event: &event::Event) -> Value {
    use event::Event as E;
    match event {
        E::AgentCreated(_) | E::AgentArchived(_) | E::AgentRenamed(_) => agent_event::data(event),
        E::UserAssigned(_) | E::RoleChanged(_) | E::UserUnassigned(_) => agent_event::data(event),
        E::AgentConfigured(_) | E::PromptOverridden(_) => agent_event::data(event),
        E::SettingsUpdated(_)
        | E::PreferencesUpdated(_)
        | E::PreferencesCarried(_)
        | E::SlotTaken(_)
        | E::ExecutionSuspended(_)
        | E::ExecutionResumed(_)
        | E::ActionRequested(_)
        | E::ResponseReceived(_)
        | E::ActionWithdrawn(_)
        | E::SessionImported(_)
        | E::SlotCompleted(_)
        | E::SlotTerminated(_) => agent_event::data(event),
        E::UiSaved(_)
        | E::NoteRemembered(_)
        | E::NoteForgotten(_)
        | E::MemoryDue(_)
        | E::MemoryRead(_)
        | E::SessionOpened(_)
        | E::InputAccepted(_)
        | E::TurnCommitted(_)
        | E::ItemRecorded(_)
        | E::FileUploaded(_)
        | E::InputDead(_)
        | E::InputRequeued(_)
        | E::TurnsImported(_) => session_data(event),
        E::InputCancelled(_) | E::InputsDropped(_) => label_event::data(event),
        E::SessionRenamed(_) | E::SessionPinned(_) => label_event::data(event),
        E::SessionAttributed(_) | E::SessionCleared(_) => label_event::data(event),
        E::SessionDeleted(_) | E::QueueConfigured(_) => label_event::data(event),
        E::ConnectorKeyBound(_) | E::ConnectorKeyUnbound(_) => label_event::data(event),
        E::DefinitionMade(_) | E::DefinitionRemoved(_) => label_event::definition(event),
        E::PurgeBegun(_) | E::Purged(_) => label_event::purge(event),
        E::RunStarted(_) | E::RunStepped(_) | E::StepFailed(_) => run_event::data(event),
        E::RunRecovered(_) | E::RunCut(_) | E::RunSettled(_) => run_event::data(event),
        E::OperationContinued(_) | E::OperationAnswered(_) => run_event::data(event),
        E::ApprovalAnswered(_) | E::OperationStarted(_) => run_event::data(event),
        E::OperationAttempted(_) | E::RunEnded(_) | E::PluginEmitted(_) => run_event::data(event),
        E::BoundaryDecided(_) | E::KeyValueWritten(_) => host_data(event),
        E::ComponentAdmitted(_) | E::KeyIssued(_) | E::KeyRevoked(_) => host_data(event),
        E::HostRestored(_) | E::OperatorRead(_) => host_data(event),
        E::ConfigReloaded(_) | E::ConfigRefused(_) | E::ProviderTroubled(_) => host_data(event),
        E::TriggerDefined(_) | E::TriggerRemoved(_) => trigger_event::data(event),
        E::TriggerPaused(_) | E::TriggerResumed(_) => trigger_event::data(event),
        E::OccasionAccepted(_) | E::OccasionsSkipped(_) => trigger_event::data(event),
        E::TriggerFired(_) | E::OccasionFailed(_) => trigger_event::data(event),
        E::TriggerPosted(_) | E::TriggerTroubled(_) => trigger_event::data(event),
        E::ConnectorReceived(_) | E::ArrivalsSettled(_) => connector_event::data(event),
        E::PairingOffered(_) | E::PairingSettled(_) => connector_event::data(event),
        E::DeliveryQueued(_) | E::DeliveryStarted(_) => connector_event::data(event),
        E::DeliverySettled(_) | E::DeliveryRequeued(_) => connector_event::data(event),
        E::ConnectorTroubled(_) => connector_event::data(event),
    }
}

/// Returns the data of an event of a session's inputs, turns, items and files; null for other
/// kinds.
fn session_data(event: &event::Event) -> Value {
    use event::Event as E;
    match event {
        E::UiSaved(it) => json!({
            "session_id": it.session, "tool_call_id": it.tool_call_id,
            "widget_partial_state": it.partial_state,
        }),
        E::NoteRemembered(_) | E::NoteForgotten(_) | E::MemoryDue(_) | E::MemoryRead(_) => {
            memory_data(event)
        }
        E::SessionOpened(it) => json!({
            "session_id": it.session, "session_type": it.session_type, "name": it.name,
            "turn_id": it.head, "model": it.model, "started_by": it.started_by,
            "user_id": it.user_id, "conversation_id": it.conversation,
        }),
        E::InputAccepted(it) => accepted(it),
        E::TurnCommitted(it) => committed(it),
        E::ItemRecorded(it) => item(it),
        E::FileUploaded(it) => file_uploaded(it),
        E::InputDead(it) => json!({ "input_id": it.input, "reason": it.reason }),
        E::InputRequeued(it) => json!({
            "input_id": it.input, "requeued_by": it.requeued_by, "repeat": it.repeat,
        }),
        E::TurnsImported(it) => imported(it),
        _ => Value::Null,
    }
}

/// Returns the data of an event of an agent's memory; null for other kinds.
fn memory_data(event: &event::Event) -> Value {
    use event::Event as E;
    match event {
        E::NoteRemembered(it) => {
            let mut data = json!({
                "session_id": it.session, "note": it.note, "untrusted": it.untrusted,
            });
            let from = it.provenance.as_ref();
            let more = [
                ("note_id", it.id.map(|id| json!(id))),
                ("about", it.about.as_ref().map(|about| json!(about))),
                ("user_id", from.map(|from| json!(from.user_id))),
                ("written_by", from.map(|from| json!(from.written_by))),
                (
                    "turn_id",
                    from.and_then(|from| from.turn).map(|turn| json!(turn)),
                ),
            ];
            if let Some(fields) = data.as_object_mut() {
                fields.extend(
                    more.into_iter()
                        .filter_map(|(name, value)| Some((name.to_owned(), value?))),
                );
            }
            data
        }
        E::NoteForgotten(it) => json!({
            "session_id": it.session, "note_id": it.note, "user_id": it.user_id,
        }),
        E::MemoryDue(it) => json!({
            "session_id": it.session, "due": it.due.map(|time| time.to_string()),
        }),
        E::MemoryRead(it) => json!({
            "session_id": it.session, "agent_id": it.agent, "reader_session_id": it.reader,
            "through_turn_id": it.through, "input_id": it.input, "because": it.because,
        }),
        _ => Value::Null,
    }
}

fn imported(it: &event::TurnsImported) -> Value {
    let turn_ids: Vec<_> = it.turns.iter().map(|it| it.turn.id).collect();
    let messages = it.turns.iter().flat_map(|it| &it.messages);
    let count = messages
        .filter(|message| it.erased.is_none() || message.is_some())
        .count();
    json!({ "session_id": it.session, "turn_ids": turn_ids, "messages": count })
}

/// Returns the data of decisions of the boundary, of kept values and of events of the host as a
/// whole; null for other kinds.
fn host_data(event: &event::Event) -> Value {
    use event::Event as E;
    match event {
        E::BoundaryDecided(it) => json!({
            "operation_id": it.operation, "segment": it.segment, "definition": it.definition,
            "user_id": it.user_id, "tool": it.tool,
            "component": it.component, "code": it.code.map(|code| code.reference()),
            "grant": it.grant.map(|grant| grant.reference()),
            "decisions": it.decisions, "left_out": it.left_out, "egress": it.egress,
        }),
        // What is kept may be shared with others than those who can see this run.
        E::KeyValueWritten(it) => json!({
            "operation_id": it.operation, "segment": it.segment, "component": it.place.component,
            "bucket": it.place.bucket,
            "scope": it.place.scope, "keys": it.entries.len(),
        }),
        E::ComponentAdmitted(it) => {
            let digests = [
                ("code", Some(it.code)),
                ("grant", Some(it.grant)),
                ("described", Some(it.described)),
                ("replaces", it.replaces),
            ];
            let digests = digests
                .into_iter()
                .filter_map(|(name, digest)| Some((name.to_owned(), json!(digest?.reference()))));
            std::iter::once(("component".to_owned(), json!(it.component)))
                .chain(digests)
                .collect()
        }
        // Not the hash: nobody has a use for it.
        E::KeyIssued(it) => json!({
            "key_id": it.key_id, "user_id": it.user_id, "name": it.name, "scopes": it.scopes,
            "issued_by": it.issued_by,
            "issued_with": it.issued_with, "issued_at": it.issued_at.to_string(),
            "expires_at": it.expires_at.to_string(),
        }),
        E::KeyRevoked(it) => json!({
            "key_id": it.key_id, "revoked_by": it.revoked_by,
            "revoked_at": it.revoked_at.to_string(), "reason": it.reason,
        }),
        E::HostRestored(it) => json!({
            "made_at": it.made_at.to_string(), "choice": it.choice, "turns": it.turns,
            "operations": it.operations, "inputs": it.inputs,
        }),
        E::OperatorRead(it) => {
            json!({ "user_id": it.user_id, "request": it.request, "turn_id": it.turn })
        }
        E::ConfigReloaded(it) => json!({
            "configuration": it.configuration.reference(), "replaces": it.replaces.reference(),
            "because": it.because, "user_id": it.user_id, "differences": it.differences,
            "left_out": it.left_out, "needs_restart": it.needs_restart,
        }),
        E::ProviderTroubled(it) => json!({ "provider": it.provider, "trouble": it.trouble }),
        E::ConfigRefused(it) => json!({
            "configuration": it.configuration.reference(), "because": it.because,
            "user_id": it.user_id, "reason": it.reason,
        }),
        _ => Value::Null,
    }
}

/// Returns the data of an uploaded file.
pub(super) fn file_uploaded(it: &FileUploaded) -> Value {
    json!({
        "session_id": it.session, "digest": it.digest.reference(), "name": it.name,
        "media_type": it.media_type, "bytes": it.bytes,
        "user_id": it.user_id,
    })
}

/// Returns an answer; a long one by the digest under which it is kept.
pub(super) fn kept(kept: &Kept) -> Value {
    match kept {
        Kept::Value(value) => value.clone(),
        Kept::Blob(digest) => json!({ "blob": digest.reference() }),
    }
}

/// Returns the data of a recorded item.
fn item(it: &ItemRecorded) -> Value {
    let client_action = it
        .client_action
        .as_ref()
        .map(|action| json!({ "widget": action.widget, "props": action.props }));
    json!({
        "item_id": it.item, "sequence": it.sequence,
        "prompt": it.prompt, "response": it.response, "evaluation": it.evaluation,
        "client_action": client_action,
        "imported": it.imported,
        "asked_at": it.asked_at.map(|time| time.to_string()),
        "answered_at": it.answered_at.map(|time| time.to_string()),
    })
}

fn accepted(it: &InputAccepted) -> Value {
    let mut accepted = json!({
        "input_id": it.input, "source": source(&it.source),
        "message": it.message.as_ref().map(draft), "model": it.model, "user_id": it.user_id,
        "waits_for": waits_for(&it.waits_for()), "priority": it.priority(),
    });
    if let Some(accepted) = accepted.as_object_mut().filter(|_| !it.labels.is_empty()) {
        accepted.insert("labels".to_owned(), json!(it.labels));
    }
    accepted
}

/// Returns the origin of an input.
pub(super) fn source(source: &Source) -> Value {
    match source {
        Source::Api => json!({ "kind": "api" }),
        Source::Trigger {
            trigger,
            occasion,
            quiet: _,
            reply_to,
        } => json!({
            "kind": "trigger", "trigger": trigger, "occasion_id": occasion,
            "reply_route": reply_to.as_ref().map(connector_event::reply_route),
        }),
        Source::Connector { reply_to, messages } => json!({
            "kind": "connector", "reply_route": connector_event::reply_route(reply_to),
            "service_ids": messages,
        }),
        Source::Opening => json!({ "kind": "opening" }),
        Source::Dispatch {
            reply_to,
            from,
            deadline,
            depth,
            hops,
            priority,
            spawn_depth,
            budget,
            denies: _,
            permissions: _,
            accounts,
        } => {
            json!({
                "kind": "dispatch", "from": from, "depth": depth, "spawn_depth": spawn_depth,
                "hops": hops, "priority": priority,
                "deadline": deadline.map(|time| time.to_string()), "budget": budget,
                "accounts": accounts,
                "reply_to": reply_to
                    .map(|to| json!({ "run_id": to.run, "operation_id": to.operation })),
            })
        }
        Source::LateReply {
            from,
            depth,
            hops,
            spawn_depth,
            denies: _,
            permissions: _,
            accounts,
            deadline,
        } => json!({
            "kind": "late_reply", "from": from, "depth": depth, "spawn_depth": spawn_depth,
            "hops": hops,
            "deadline": deadline.map(|time| time.to_string()), "accounts": accounts,
        }),
        Source::Reminder {
            due,
            accounts,
            deadline,
            ..
        } => json!({
            "kind": "reminder", "due": due.to_string(),
            "deadline": deadline.map(|time| time.to_string()), "accounts": accounts,
        }),
    }
}

fn committed(it: &TurnCommitted) -> Value {
    let turn = &it.turn;
    json!({
        "turn_id": turn.id, "parent_turn_id": turn.parent, "depth": turn.depth,
        "first_message": turn.first_message,
        "last_message": turn.last_message, "revision": it.revision, "end": turn_end(turn.end),
        "usage": turn.usage, "models": turn.models,
    })
}
