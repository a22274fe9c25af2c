//! A session's queue in public form: its settings, what waits in it, and single inputs.

use broker::{InputView as Input, QueueSaid, WaitingInputs};
use domain::event::{InputAccepted, Source};
use domain::queue::{Manner, WaitKind, excerpt};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::InputState;

/// The settings of a session's queue.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Queue)]
pub(crate) struct QueueView {
    /// The settings for messages that bring none of their own: `mode`, `debounce_ms`, `cap` and
    /// `drop`.
    #[schema(value_type = QueueRules)]
    pub(crate) settings: Value,
    /// The settings that the session itself has; the rest follow the host's configuration.
    #[schema(value_type = QueueRules)]
    pub(crate) session: Value,
}

/// Settings of a queue, as far as they are set.
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "says in the description what settings are")]
pub(crate) struct QueueRules {
    /// The mode.
    mode: Option<String>,
    /// The quiet time before queued inputs get their turn, in milliseconds.
    debounce_ms: Option<u64>,
    /// Number of inputs that the queue holds.
    cap: Option<u32>,
    /// The policy for inputs beyond the cap.
    drop: Option<String>,
}

/// The inputs that wait in a session.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = WaitingInputs)]
pub(crate) struct WaitingInputsView {
    /// The session.
    pub(crate) session_id: String,
    /// The run that is open; none when no turn is in progress.
    pub(crate) run_id: Option<String>,
    /// The settings of its queue.
    pub(crate) queue: QueueView,
    /// Inputs that were dropped from it and that no turn has reported yet.
    pub(crate) dropped: u64,
    /// The inputs that wait, in the order in which they were accepted.
    pub(crate) inputs: Vec<WaitingInputView>,
}

/// An input that waits.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = WaitingInput)]
pub(crate) struct WaitingInputView {
    /// Its id.
    pub(crate) input_id: String,
    /// The condition that it waits for: `steer`, `interrupt`, `followup`, `collect`, or `own_turn`
    /// for work that was handed over.
    pub(crate) waits_for: &'static str,
    /// `low`, `normal`, `high` or `critical`.
    pub(crate) priority: &'static str,
    /// The source of the input: `api`, `trigger`, `connector`, `opening`, `dispatch`, `late_reply`
    /// or `reminder`.
    pub(crate) source: &'static str,
    /// The beginning of its text, on one line.
    pub(crate) excerpt: String,
    /// The time since which it has waited, ISO 8601.
    pub(crate) since: String,
    /// The time at which it is due, ISO 8601; none when it is not for later.
    pub(crate) due: Option<String>,
    /// Labels that its sender put on it; absent without any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
}

/// An input in whatever state.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Input)]
pub(crate) struct InputView {
    /// The input as it was accepted.
    #[serde(flatten)]
    pub(crate) accepted: WaitingInputView,
    /// The session.
    pub(crate) session_id: String,
    /// The state: `waiting`, `claimed` by an open run, `consumed` by one that has ended, `dead` as
    /// a dead letter, `cancelled` or `dropped`.
    pub(crate) state: &'static str,
    /// The run that deals or dealt with it, or that had taken it in before it was put aside. That
    /// stays when the dead letter is dropped.
    pub(crate) run_id: Option<String>,
    /// The turn that it is a part of.
    pub(crate) turn_id: Option<String>,
    /// The reason why it became a dead letter.
    pub(crate) reason: Option<String>,
}

/// Returns the settings of a session's queue.
pub(crate) fn queue(said: &QueueSaid) -> QueueView {
    QueueView {
        settings: json!(said.holds),
        session: json!(said.said),
    }
}

/// Returns the inputs that wait in a session.
pub(crate) fn waiting_inputs(waiting: &WaitingInputs) -> WaitingInputsView {
    WaitingInputsView {
        session_id: waiting.row.id.to_string(),
        run_id: waiting.row.open_run.map(|run| run.to_string()),
        queue: queue(&waiting.queue),
        dropped: waiting.row.overflow.dropped(),
        inputs: waiting.inputs.iter().map(waiting_input).collect(),
    }
}

/// Returns an input in whatever state.
pub(crate) fn input(view: &Input) -> InputView {
    let (state, run, reason) = match &view.state {
        InputState::Waiting => ("waiting", None, None),
        InputState::Claimed { run } => ("claimed", Some(run), None),
        InputState::Consumed { run } => ("consumed", Some(run), None),
        InputState::Dead { reason, run, .. } => ("dead", run.as_ref(), Some(reason.clone())),
        InputState::Cancelled { run, .. } => ("cancelled", run.as_ref(), None),
        InputState::Dropped => ("dropped", None, None),
    };
    InputView {
        accepted: waiting_input(&view.accepted),
        session_id: view.accepted.session.to_string(),
        state,
        run_id: run.map(ToString::to_string),
        turn_id: view.turn.map(|turn| turn.to_string()),
        reason,
    }
}

/// Returns the condition that an input waits for, as a word.
pub(crate) fn waits_for(kind: &WaitKind) -> &'static str {
    match kind {
        WaitKind::OwnTurn => "own_turn",
        WaitKind::Steer => "steer",
        WaitKind::Interrupt => "interrupt",
        WaitKind::Queued(queued) => match queued.manner {
            Manner::Followup | Manner::OneByOne { .. } => "followup",
            Manner::Collect { .. } => "collect",
        },
    }
}

/// Returns the source of an input, as a word.
pub(super) fn source_kind(source: &Source) -> &'static str {
    match source {
        Source::Api => "api",
        Source::Trigger { .. } => "trigger",
        Source::Connector { .. } => "connector",
        Source::Opening => "opening",
        Source::Dispatch { .. } => "dispatch",
        Source::LateReply { .. } => "late_reply",
        Source::Reminder { .. } => "reminder",
    }
}

fn waiting_input(accepted: &InputAccepted) -> WaitingInputView {
    let due = match &accepted.source {
        Source::Reminder { due, .. } => Some(due.to_string()),
        _ => None,
    };
    let text = accepted
        .message
        .as_ref()
        .map(|message| domain::message::text_of(&message.parts))
        .unwrap_or_default();
    WaitingInputView {
        input_id: accepted.input.to_string(),
        waits_for: waits_for(&accepted.waits_for()),
        priority: accepted.priority().as_str(),
        source: source_kind(&accepted.source),
        excerpt: excerpt(&text),
        since: accepted.time.to_string(),
        due,
        labels: accepted.labels.0.clone(),
    }
}
