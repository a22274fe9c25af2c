//! A session's queue in public form: its settings, what waits in it, and single inputs.

use super::Time;
use broker::{InputView as Input, QueueSaid, WaitingInputs};
use domain::delegate::Priority;
use domain::event::{InputAccepted, Source};
use domain::id::{InputId, RunId, SessionId, TurnId};
use domain::queue::{Grouping, QueueOverride, QueueSettings, WaitKind, excerpt};
use serde::Serialize;
use std::collections::BTreeMap;
use store::InputState;

/// The settings of a session's queue.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Queue)]
pub(crate) struct QueueView {
    /// The settings for messages that bring none of their own: `mode`, `debounce_ms`, `cap` and
    /// `drop`.
    pub(crate) settings: QueueSettings,
    /// The settings that the session itself has; the rest follow the host's configuration.
    pub(crate) session: QueueOverride,
}

/// The inputs that wait in a session.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = WaitingInputs)]
pub(crate) struct WaitingInputsView {
    /// The session.
    pub(crate) session_id: SessionId,
    /// The run that is open; none when no turn is in progress.
    pub(crate) run_id: Option<RunId>,
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
    pub(crate) input_id: InputId,
    /// The condition that it waits for.
    pub(crate) waits_for: WaitsFor,
    /// Its urgency.
    pub(crate) priority: Priority,
    /// The source of the input.
    pub(crate) source: InputSource,
    /// The beginning of its text, on one line.
    pub(crate) excerpt: String,
    /// The time since which it has waited, ISO 8601.
    pub(crate) since: Time,
    /// The time at which it is due, ISO 8601; none when it is not for later.
    pub(crate) due: Option<Time>,
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
    pub(crate) session_id: SessionId,
    /// Its state.
    pub(crate) state: InputStateView,
    /// The run that deals or dealt with it, or that had taken it in before it was put aside. That
    /// stays when the dead letter is dropped.
    pub(crate) run_id: Option<RunId>,
    /// The turn that it is a part of.
    pub(crate) turn_id: Option<TurnId>,
    /// The reason why it became a dead letter.
    pub(crate) reason: Option<String>,
}

/// The condition that an input waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitsFor {
    /// A turn of its own: it is work that was handed over.
    OwnTurn,
    /// The next boundary of the open run.
    Steer,
    /// The end of the open run, which it brings about.
    Interrupt,
    /// The end of the open run.
    Followup,
    /// The end of the open run, with what else was collected.
    Collect,
}

/// The source of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputSource {
    /// A client of the API.
    Api,
    /// A trigger.
    Trigger,
    /// A connector.
    Connector,
    /// The opening of its session.
    Opening,
    /// Work that an agent handed over.
    Dispatch,
    /// A reply that came after its deadline.
    LateReply,
    /// A reminder of the agent's own.
    Reminder,
}

/// The state of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = InputState)]
pub(crate) enum InputStateView {
    /// It waits.
    Waiting,
    /// An open run has it.
    Claimed,
    /// A run that has ended had it.
    Consumed,
    /// It is a dead letter.
    Dead,
    /// It was withdrawn.
    Cancelled,
    /// It was dropped from a full queue.
    Dropped,
}

impl InputSource {
    /// Returns the kind of a source.
    pub(crate) fn of(source: &Source) -> Self {
        match source {
            Source::Api => Self::Api,
            Source::Trigger { .. } => Self::Trigger,
            Source::Connector { .. } => Self::Connector,
            Source::Opening => Self::Opening,
            Source::Dispatch { .. } => Self::Dispatch,
            Source::LateReply { .. } => Self::LateReply,
            Source::Reminder { .. } => Self::Reminder,
        }
    }
}

/// Returns the settings of a session's queue.
pub(crate) fn queue(said: &QueueSaid) -> QueueView {
    QueueView {
        settings: said.holds,
        session: said.said,
    }
}

/// Returns the inputs that wait in a session.
pub(crate) fn waiting_inputs(waiting: &WaitingInputs) -> WaitingInputsView {
    WaitingInputsView {
        session_id: waiting.row.id,
        run_id: waiting.row.open_run,
        queue: queue(&waiting.queue),
        dropped: waiting.row.overflow.dropped(),
        inputs: waiting.inputs.iter().map(waiting_input).collect(),
    }
}

/// Returns an input in whatever state.
pub(crate) fn input(view: &Input) -> InputView {
    let (state, run, reason) = match &view.state {
        InputState::Waiting => (InputStateView::Waiting, None, None),
        InputState::Claimed { run } => (InputStateView::Claimed, Some(run), None),
        InputState::Consumed { run } => (InputStateView::Consumed, Some(run), None),
        InputState::Dead { reason, run, .. } => {
            (InputStateView::Dead, run.as_ref(), Some(reason.clone()))
        }
        InputState::Cancelled { run, .. } => (InputStateView::Cancelled, run.as_ref(), None),
        InputState::Dropped => (InputStateView::Dropped, None, None),
    };
    InputView {
        accepted: waiting_input(&view.accepted),
        session_id: view.accepted.session,
        state,
        run_id: run.copied(),
        turn_id: view.turn,
        reason,
    }
}

/// Returns the condition that an input waits for.
pub(crate) fn waits_for(kind: &WaitKind) -> WaitsFor {
    match kind {
        WaitKind::OwnTurn => WaitsFor::OwnTurn,
        WaitKind::Steer => WaitsFor::Steer,
        WaitKind::Interrupt => WaitsFor::Interrupt,
        WaitKind::Queued(queued) => match queued.grouping {
            Grouping::Followup | Grouping::OneByOne { .. } => WaitsFor::Followup,
            Grouping::Collect { .. } => WaitsFor::Collect,
        },
    }
}

fn waiting_input(accepted: &InputAccepted) -> WaitingInputView {
    let due = match &accepted.source {
        Source::Reminder { due, .. } => Some(*due),
        Source::Api
        | Source::Trigger { .. }
        | Source::Connector { .. }
        | Source::Opening
        | Source::Dispatch { .. }
        | Source::LateReply { .. } => None,
    };
    let text = accepted
        .message
        .as_ref()
        .map(|message| domain::message::text_of(&message.parts))
        .unwrap_or_default();
    WaitingInputView {
        input_id: accepted.input,
        waits_for: waits_for(&accepted.waits_for()),
        priority: accepted.priority(),
        source: InputSource::of(&accepted.source),
        excerpt: excerpt(&text),
        since: Time(accepted.time),
        due: due.map(Time),
        labels: accepted.labels.0.clone(),
    }
}
