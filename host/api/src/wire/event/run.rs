//! The public form of the events of runs and their operations.

use super::{BoundaryDecided, public};
use crate::wire::message::{MessageView, message};
use crate::wire::operation::{
    OperationView, ReplyToView, SettledOperation, operation, settlements,
};
use crate::wire::session::{PendingActionView, pending_action};
use crate::wire::values::{ContentDigest, Time, snake_keys};
use domain::account::Accounts;
use domain::approval::ApprovalAnswered as Approved;
use domain::budget::Amount;
use domain::compaction::Compaction;
use domain::definition::DefinitionId;
use domain::delegate::Priority;
use domain::event;
use domain::id::{InputId, NoteId, OperationId, TurnId};
use domain::operation::{Answer, Attempt, CallUsage, Continuation, Kept, Operation, Pause};
use domain::persona::PersonaId;
use domain::queue::OverflowNotice;
use domain::step::Decision;
use domain::tool::EffectClass;
use domain::turn::TurnEnd;
use domain::user::UserId;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

public! {
    RunStarted(it: event::RunStarted) {
        definition: DefinitionId,
        session_type: String,
        base_turn_id: Option<TurnId> = it.base,
        base_message: u64,
        revision: u64,
        claimed: Vec<InputId>,
        #[schema(value_type = Object)]
        limits: Value = snake_keys(&it.limits),
        #[schema(value_type = Vec<Object>)]
        accounts: Accounts,
        deadline: Option<Time> = it.deadline.map(Time),
        reply_to: Option<ReplyToView> = it.reply_to.as_ref().map(Into::into),
        depth: u32,
        hops: u32,
        spawn_depth: u32,
        priority: Priority,
        user_id: UserId,
        model: Option<String>,
        collected: bool,
        #[schema(value_type = Option<String>)]
        overflow: Option<OverflowNotice>,
        #[schema(value_type = Option<Object>)]
        compacts: Option<Box<Compaction>>,
        configuration: ContentDigest = ContentDigest(it.configuration),
        #[schema(value_type = Option<String>)]
        persona: Option<PersonaId>,
        #[schema(value_type = Object)]
        generation: Value = snake_keys(&it.generation),
        hints: Vec<HintView> = it.hints.iter().map(|hint| HintView {
            note_id: hint.note,
            bytes: hint.bytes,
            untrusted: hint.untrusted,
        }).collect(),
        /// Its first step, if both were stored together.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_step: Option<Box<RunStepped>> = it
            .first_step
            .as_deref()
            .map(|step| Box::new(RunStepped::of(step))),
    }
    RunStepped(it: event::RunStepped) {
        step: u32,
        /// `wait`, `reply`, `complete` or `fail`.
        decision: &'static str = match &it.decision {
            Decision::Wait(_) => "wait",
            Decision::Reply { .. } => "reply",
            Decision::Complete { .. } => "complete",
            Decision::Fail { .. } => "fail",
        },
        messages: Vec<MessageView> = it.heard.iter().chain(&it.said).map(message).collect(),
        started: Vec<OperationView> = it.started.iter().map(operation).collect(),
        settled: Vec<SettledOperation> = settlements(&it.settled, &it.heard)
            .into_iter()
            .chain(settlements(&it.stopped, &it.said))
            .collect(),
        claimed: Vec<InputId>,
        client_actions: Vec<PendingActionView> = it
            .started
            .iter()
            .filter_map(Operation::question_at_start)
            .map(|asked| pending_action(&asked))
            .collect(),
        #[schema(value_type = Object)]
        usage: CallUsage,
        /// The decisions of the boundary about the step, its requests, and calls that have ended.
        ledger: Vec<BoundaryDecided> = it.ledger.iter().map(BoundaryDecided::of).collect(),
        /// The agent's summary, of `complete`.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<Value> = match &it.decision {
            Decision::Complete { summary } => Some(summary.clone()),
            Decision::Wait(_) | Decision::Reply { .. } | Decision::Fail { .. } => None,
        },
        /// The agent's reason, of `fail`.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String> = match &it.decision {
            Decision::Fail { reason } => Some(reason.as_str().to_owned()),
            Decision::Wait(_) | Decision::Reply { .. } | Decision::Complete { .. } => None,
        },
    }
    StepFailed(it: event::StepFailed) {
        step: u32,
        attempt: u32,
        outcome: event::StepFault,
        detail: String,
        #[schema(value_type = Object)]
        usage: CallUsage,
    }
    RunRecovered(it: event::RunRecovered) {
        count: u32,
    }
    RunSettled(it: event::RunSettled) {
        settled: Vec<SettledOperation> = settlements(&it.settled, &[]),
    }
    RunCut(it: event::RunCut) {
        operation_id: OperationId = it.operation,
        stubs: BTreeSet<u64> = it.cut.stubs.clone(),
        left_out_through: u64 = it.cut.left_out_through,
        summary: Option<String> = it.cut.summary.clone(),
        tokens_before: u64 = it.cut.tokens_before,
        tokens_after: u64 = it.cut.tokens_after,
    }
    RunEnded(it: event::RunEnded) {
        end: TurnEnd,
        code: Option<String>,
        reason: Option<String>,
        turn_id: Option<TurnId> = it.turn,
        settled: Vec<SettledOperation> = settlements(&it.stopped, &it.said),
        messages: Vec<MessageView> = it.said.iter().map(message).collect(),
    }
    OperationContinued(it: Continuation) {
        operation_id: OperationId = it.operation,
        segment: u32,
        /// `none`, `until` a time, or `asking` a question.
        pause: &'static str = match &it.pause {
            Pause::None | Pause::Approving | Pause::Declined => "none",
            Pause::Until { .. } => "until",
            Pause::Asking { .. } => "asking",
        },
        #[serde(skip_serializing_if = "Option::is_none")]
        due: Option<Time> = match &it.pause {
            Pause::Until { due } => Some(Time(*due)),
            Pause::None | Pause::Approving | Pause::Declined | Pause::Asking { .. } => None,
        },
        /// The call that a command line makes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        started: Vec<OperationView> = it.call.iter().map(|call| operation(&call.started)).collect(),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        client_actions: Vec<PendingActionView> = it.asked().iter().map(pending_action).collect(),
    }
    OperationAnswered(it: Answer) {
        operation_id: OperationId = it.operation,
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Value> = match &it.kept {
            Kept::Value(value) => Some(value.clone()),
            Kept::Blob(_) => None,
        },
        /// The digest of an answer that is kept by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        blob: Option<ContentDigest> = match &it.kept {
            Kept::Blob(blob) => Some(ContentDigest(*blob)),
            Kept::Value(_) => None,
        },
    }
    ApprovalAnswered(it: Approved) {
        operation_id: OperationId = it.operation,
        /// The hash of what was agreed to, or not.
        call: String = it.call.hex(),
        approved: bool,
        user_id: UserId = it.by.clone(),
    }
    OperationStarted(it: event::OperationStarted) {
        operation_id: OperationId = it.operation,
        segment: u32,
        #[schema(value_type = Option<String>)]
        effect: Option<EffectClass>,
    }
    OperationAttempted(it: event::OperationAttempted) {
        operation_id: OperationId = it.operation,
        attempt: u32,
        ended: Vec<Attempt>,
        reserved: Amount,
    }
    PluginEmitted(it: event::PluginEmitted) {
        name: String,
        data: Value,
    }
}

/// A note that a run's models see beside the user's words.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct HintView {
    note_id: NoteId,
    bytes: u64,
    untrusted: bool,
}
