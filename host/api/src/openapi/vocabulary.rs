//! The closed lists of words in the description. Each is a schema of its own, to which the fields
//! and parameters with such a word refer.

use super::fields::{for_each_field, for_each_parameter, schemas, text};
use super::reference;
use domain::connector::UnknownSender;
use domain::delegate::Priority;
use domain::error_code::ErrorCategory;
use domain::path::{FetchStrategy, ModelRole, PathKind};
use domain::queue::{DropPolicy, Mode};
use domain::residency::Residency;
use domain::role::AgentRole;
use domain::task::{TaskKind, TaskStatus};
use domain::telemetry::TelemetryKind;
use domain::turn::TurnEnd;
use domain::user::Scope;
use serde_json::{Value, json};
use store::DeliveryState;

/// A closed list of words.
struct Words {
    /// The name of the schema.
    name: &'static str,
    /// The description of the schema.
    about: &'static str,
    words: Vec<&'static str>,
    /// The fields, as `Schema.field`, and parameters, as `operation?parameter`.
    places: &'static [&'static str],
}

impl Words {
    fn new(name: &'static str, about: &'static str, words: &[&'static str]) -> Self {
        Self {
            name,
            about,
            words: words.to_vec(),
            places: &[],
        }
    }

    fn at(mut self, places: &'static [&'static str]) -> Self {
        self.places = places;
        self
    }
}

/// Adds the lists of words to a description, and refers to them where they apply.
pub(super) fn add(description: &mut Value) {
    let all = all();
    for_each_field(description, |schema, field, described| {
        refer(&all, &format!("{schema}.{field}"), described);
    });
    for_each_parameter(description, |operation, name, described| {
        refer(&all, &format!("{operation}?{name}"), described);
    });
    if let Some(schemas) = schemas(description) {
        for list in all {
            schemas.insert(
                list.name.to_owned(),
                json!({ "type": "string", "enum": list.words, "description": list.about }),
            );
        }
    }
}

/// Returns the names of the schemas, and the places that refer to each.
#[cfg(test)]
pub(crate) fn places() -> Vec<(&'static str, &'static [&'static str])> {
    let all = all();
    all.iter().map(|list| (list.name, list.places)).collect()
}

/// Replaces the text in a schema by a reference to the list of its words.
fn refer(all: &[Words], place: &str, described: &mut Value) {
    let Some(list) = all.iter().find(|list| list.places.contains(&place)) else {
        return;
    };
    let Some(schema) = text(described) else {
        return;
    };
    let may_be_null = matches!(schema.remove("type"), Some(Value::Array(_)));
    let words = reference(list.name);
    if may_be_null {
        schema.insert("oneOf".to_owned(), json!([words, { "type": "null" }]));
    } else if let Value::Object(words) = words {
        schema.extend(words);
    }
}

fn all() -> Vec<Words> {
    let mut all = of_agents();
    all.extend(of_sessions());
    all.extend(of_messages());
    all.extend(of_inputs());
    all.extend(of_turns());
    all.extend(of_models());
    all.extend(of_the_host());
    all.extend(of_the_edge());
    all.extend(of_errors_and_telemetry());
    all
}

fn of_agents() -> Vec<Words> {
    vec![
        Words::new(
            "AgentKind",
            "A kind of agent, as its address gives it.",
            &PathKind::ALL.map(PathKind::as_str),
        )
        .at(&["Agent.kind", "PathEntry.kind", "listPaths?kind"]),
        Words::new(
            "AgentRole",
            "The role of a user of an agent.",
            &AgentRole::ALL.map(AgentRole::as_str),
        )
        .at(&[
            "Agent.role",
            "Assignment.role",
            "Handoff.keep",
            "NewAssignment.role",
            "NewRole.role",
            "PathEntry.role",
            "listAgents?role",
        ]),
        Words::new(
            "AgentStatus",
            "The status of an agent.",
            &["active", "archived"],
        )
        .at(&["Agent.status"]),
        Words::new(
            "ModelRole",
            "A role by which agents have their model.",
            &ModelRole::ALL.map(ModelRole::as_str),
        )
        .at(&["Agent.model_role", "PathEntry.model_role"]),
        Words::new(
            "Residency",
            "The activity of an agent.",
            &Residency::ALL.map(Residency::as_str),
        )
        .at(&["PathEntry.residency"]),
        Words::new(
            "ToolExposure",
            "The form in which an agent is shown its tools.",
            &["mixed", "skills", "tools"],
        )
        .at(&["Definition.exposure"]),
        Words::new(
            "FetchStrategy",
            "A way to find the agent that a message without an address is for.",
            &FetchStrategy::ALL.map(FetchStrategy::as_str),
        )
        .at(&["findPath?strategy", "To.strategy"]),
    ]
}

fn of_sessions() -> Vec<Words> {
    vec![
        Words::new(
            "SessionStatus",
            "The status of a session.",
            &["open", "completed", "terminated"],
        )
        .at(&["SessionSummary.status"]),
        Words::new(
            "SessionEnd",
            "The status of a session that has ended.",
            &["completed", "terminated"],
        )
        .at(&["RememberedSession.status"]),
        Words::new(
            "SessionProgress",
            "The status of a session, with the progress of one that is open.",
            &[
                "active",
                "awaiting_client_action",
                "completed",
                "pending",
                "terminated",
            ],
        )
        .at(&["Session.session_status"]),
        Words::new(
            "SessionPhase",
            "The status of a session, with the phase of one that is open. It is `expired` where the \
             time of a session was up, if the field has that word.",
            &[
                "active",
                "awaiting_client_action",
                "completed",
                "expired",
                "terminated",
            ],
        )
        .at(&[
            "ActiveSession.status",
            "ConnectedFrame.status",
            "CreateSessionResponse.status",
            "LegacySession.status",
            "LegacyState.status",
            "LegacySummary.status",
            "StateChangeFrame.status",
        ]),
        Words::new(
            "ControlMode",
            "The driver of a session: the user, or the agent.",
            &["reactive", "proactive"],
        )
        .at(&[
            "ConnectedFrame.control_mode",
            "CreateSessionResponse.control_mode",
            "LegacySession.control_mode",
            "LegacyState.control_mode",
            "LegacySummary.control_mode",
        ]),
        Words::new(
            "QuarantineCause",
            "The cause for which a session is in quarantine.",
            &["skipped", "stuck", "suspected"],
        )
        .at(&["Quarantined.why"]),
    ]
}

fn of_messages() -> Vec<Words> {
    vec![
        Words::new(
            "MessageRole",
            "The role of a message in its thread.",
            &["user", "assistant", "tool", "notice"],
        )
        .at(&[
            "Message.role",
            "Said.role",
            "SnapshotMessage.role",
            "Found.role",
        ]),
        Words::new(
            "Priority",
            "The urgency of a message.",
            &Priority::ALL.map(Priority::as_str),
        )
        .at(&[
            "NewMessage.priority",
            "RoutedMessage.priority",
            "WaitingInput.priority",
        ]),
        Words::new(
            "QueueMode",
            "The treatment of a message while the agent is busy.",
            &Mode::ALL.map(Mode::as_str),
        )
        .at(&["QueueRules.mode"]),
        Words::new(
            "DropPolicy",
            "The policy for inputs beyond the cap of a queue.",
            &DropPolicy::ALL.map(DropPolicy::as_str),
        )
        .at(&["QueueRules.drop"]),
    ]
}

fn of_inputs() -> Vec<Words> {
    vec![
        Words::new(
            "WaitsFor",
            "The condition that an input waits for.",
            &["own_turn", "steer", "interrupt", "followup", "collect"],
        )
        .at(&["Accepted.waits_for", "WaitingInput.waits_for"]),
        Words::new(
            "InputSource",
            "The source of an input.",
            &[
                "api",
                "trigger",
                "connector",
                "opening",
                "dispatch",
                "late_reply",
                "reminder",
            ],
        )
        .at(&["DeadLetterSource.kind", "WaitingInput.source"]),
        Words::new(
            "InputState",
            "The state of an input.",
            &[
                "waiting",
                "claimed",
                "consumed",
                "dead",
                "cancelled",
                "dropped",
            ],
        )
        .at(&["Input.state"]),
        Words::new(
            "MessageOutcome",
            "The outcome of a message: the end of its turn, or what it became without one.",
            &[
                "replied",
                "completed",
                "failed",
                "aborted",
                "dead",
                "cancelled",
                "dropped",
            ],
        )
        .at(&["Accepted.outcome"]),
        Words::new(
            "AddressLevel",
            "The level at which a message was addressed.",
            &["thread", "session", "agent", "persona", "smart", "strategy"],
        )
        .at(&["RoutedTo.level"]),
    ]
}

fn of_turns() -> Vec<Words> {
    vec![
        Words::new(
            "TurnEnd",
            "The end of a turn.",
            &TurnEnd::ALL.map(TurnEnd::as_str),
        )
        .at(&["StreamCompleteFrame.end", "TreeTurn.end"]),
        Words::new(
            "RunStatus",
            "The activity of an open run.",
            &["running", "awaiting_client", "compacting"],
        )
        .at(&["Session.run_status"]),
        Words::new(
            "OperationKind",
            "The kind of an operation.",
            &[
                "model", "tool", "client", "agent", "detached", "external", "recall", "command",
                "memory", "timer", "refused", "reply",
            ],
        )
        .at(&["Operation.kind", "ToolExecutingFrame.kind"]),
        Words::new(
            "OperationOutcome",
            "The outcome of an operation.",
            &[
                "message",
                "parts",
                "value",
                "elapsed",
                "failed",
                "denied",
                "timed_out",
                "cancelled",
                "unknown",
            ],
        )
        .at(&["Operation.outcome", "ToolResultFrame.outcome"]),
        Words::new(
            "DeltaKind",
            "The kind of what is shown while it happens.",
            &[
                "text",
                "so_far",
                "thinking",
                "call_started",
                "note",
                "performing",
            ],
        )
        .at(&["DeltaFrame.kind"]),
    ]
}

fn of_models() -> Vec<Words> {
    vec![
        Words::new(
            "ModelHealthState",
            "The state of a provider or a model.",
            &["up", "refusing", "down"],
        )
        .at(&["ModelHealth.state"]),
        Words::new(
            "ModelHealthSource",
            "The request from which a state is known.",
            &["call", "list"],
        )
        .at(&["ModelHealth.seen_by"]),
        Words::new(
            "ModelProviderKind",
            "The API that a provider speaks.",
            &[
                "openai",
                "openai-compatible",
                "anthropic",
                "scripted",
                "claude-cli",
                "codex-cli",
                "pi-cli",
            ],
        )
        .at(&["ModelProvider.kind"]),
    ]
}

fn of_the_host() -> Vec<Words> {
    vec![
        Words::new(
            "TaskState",
            "The state of a task.",
            &TaskStatus::ALL.map(TaskStatus::as_str),
        )
        .at(&["Task.state"]),
        Words::new(
            "TaskKind",
            "The way in which a task was handed over.",
            &TaskKind::ALL.map(TaskKind::as_str),
        )
        .at(&["Task.kind"]),
        Words::new(
            "Scope",
            "A permission of a credential.",
            &Scope::ALL.map(Scope::as_str),
        )
        .at(&["Key.scopes", "Me.scopes", "NewKey.scopes"]),
        Words::new(
            "KeyState",
            "The state of a key.",
            &["active", "expired", "revoked"],
        )
        .at(&["Key.state"]),
        Words::new(
            "CredentialKind",
            "The kind of a credential.",
            &["host_token", "api_key", "token"],
        )
        .at(&["Me.authenticated_by"]),
        Words::new(
            "AuditLineKind",
            "The kind of a line of the ledger.",
            &["decision", "request", "admission", "reading"],
        )
        .at(&["AuditLine.kind"]),
        Words::new(
            "StoreHealth",
            "The health of the store.",
            &["well", "full", "failing", "stalled"],
        )
        .at(&["StoreState.health"]),
        Words::new(
            "RebuildState",
            "The state of a rebuild.",
            &["never", "running", "done", "failed"],
        )
        .at(&["Rebuild.state"]),
        Words::new(
            "RebuildStage",
            "The stage of a running rebuild.",
            &["folding", "comparing", "replacing"],
        )
        .at(&["Rebuild.stage"]),
    ]
}

fn of_the_edge() -> Vec<Words> {
    vec![
        Words::new(
            "TriggerKind",
            "The kind of a trigger.",
            &["schedule", "heartbeat", "webhook", "files", "events"],
        )
        .at(&["Trigger.kind", "listTriggers?kind"]),
        Words::new(
            "TriggerState",
            "The state of a trigger.",
            &["active", "resting", "paused", "disabled"],
        )
        .at(&["Trigger.state"]),
        Words::new(
            "TriggerOrigin",
            "The origin of a trigger.",
            &["configuration", "api", "agent"],
        )
        .at(&["Trigger.origin"]),
        Words::new(
            "TriggerPauseKind",
            "The reason why a trigger is paused.",
            &["user", "failures", "schedule", "done"],
        )
        .at(&["TriggerPause.kind"]),
        Words::new(
            "TriggerRunState",
            "The state of an occasion of a trigger.",
            &["waiting", "fired", "done", "rejected", "failed", "skipped"],
        )
        .at(&["TriggerRun.state"]),
        Words::new(
            "TriggerMessageOutcome",
            "The outcome of a message of a trigger.",
            &["waiting", "accepted", "refused"],
        )
        .at(&["TriggerMessage.outcome"]),
        Words::new(
            "ConnectorCondition",
            "The state of a connector.",
            &[
                "polling",
                "webhook",
                "direct",
                "disabled",
                "without_component",
                "unauthorised",
                "failing",
            ],
        )
        .at(&["ConnectorState.state"]),
        Words::new(
            "UnknownSenders",
            "The treatment of senders whom nobody knows.",
            &UnknownSender::ALL.map(UnknownSender::as_str),
        )
        .at(&["ConnectorState.unknown_senders"]),
        Words::new(
            "DeliveryState",
            "The state of a message to people outside.",
            &DeliveryState::ALL.map(DeliveryState::as_str),
        )
        .at(&["DeliveryStatus.state", "listDeliveries?state"]),
    ]
}

fn of_errors_and_telemetry() -> Vec<Words> {
    vec![
        Words::new(
            "ErrorCategory",
            "The stage at which something went wrong.",
            &ErrorCategory::ALL.map(ErrorCategory::as_str),
        )
        .at(&[
            "ErrorFrame.category",
            "Problem.category",
            "TelemetryError.category",
            "TurnError.category",
        ]),
        Words::new(
            "TelemetryType",
            "The type of an event of telemetry.",
            &TelemetryKind::ALL.map(TelemetryKind::as_str),
        )
        .at(&["TelemetryEvent.type"]),
    ]
}
