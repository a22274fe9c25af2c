//! Checks of an agent's decision that need no lookup.

use super::Run;
use super::decide::find_call;
use super::intake::Intake;
use crate::thread::message::Part;
use crate::values::digest::Digest;
use crate::values::id::OperationId;
use crate::values::limits;
use crate::work::operation::Settlement;
use crate::work::step::{Call, Decision, Effect, StepResult, Wait, Work};
use std::sync::Arc;

/// A decision that cannot be performed. It is a bug in the agent, reported in the guest's own
/// terms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unacceptable(pub String);

/// Checks those parts of a decision that need no lookup.
///
/// # Errors
/// A fault that the agent has to correct.
pub fn check(run: &Run, intake: &Intake, result: &StepResult) -> Result<(), Unacceptable> {
    if result.effects.len() > limits::EFFECTS_MAX {
        return Err(Unacceptable(format!(
            "effects: {} of them; at most {} are allowed",
            result.effects.len(),
            limits::EFFECTS_MAX
        )));
    }
    check_parts(run, intake, result)?;
    for effect in &result.effects {
        if let Effect::RecordItem {
            asked: Some(key), ..
        } = effect
            && !run.asked.contains_key(key)
        {
            return Err(Unacceptable(format!(
                "effects: record-item: no client operation of this turn was started under `{key}`"
            )));
        }
    }
    match &result.decision {
        Decision::Wait(wait) => {
            check_starts(run, intake, wait)?;
            check_wait(run, intake, wait)
        }
        _ => Ok(()),
    }
}

/// Checks the keys and the calls of the operations to start.
fn check_starts(run: &Run, intake: &Intake, wait: &Wait) -> Result<(), Unacceptable> {
    let mut keys = run.keys.clone();
    for request in &wait.start {
        if request.key.is_empty() || request.key.len() > limits::KEY_BYTES_MAX {
            return Err(Unacceptable(format!(
                "start: the key `{}` is not 1 to {} bytes long",
                request.key,
                limits::KEY_BYTES_MAX
            )));
        }
        if !keys.insert(request.key.clone()) {
            return Err(Unacceptable(format!(
                "start: the key `{}` was used in this turn before; choose another",
                request.key
            )));
        }
        check_call(run, intake, &request.work)?;
    }
    Ok(())
}

/// Checks that something can wake the turn, and that the limit of open operations is kept.
fn check_wait(run: &Run, intake: &Intake, wait: &Wait) -> Result<(), Unacceptable> {
    let settled = |id: &OperationId| {
        intake
            .settled
            .iter()
            .any(|settlement| settlement.operation == *id)
    };
    let open_after = run
        .open
        .values()
        .filter(|open| !settled(&open.operation.id))
        .count();
    for key in &wait.cancel {
        if !run.keys.contains(key) {
            return Err(Unacceptable(format!(
                "cancel: no operation was ever started under `{key}`"
            )));
        }
    }
    let cancelled = wait
        .cancel
        .iter()
        .filter(|key| {
            run.by_key(key)
                .is_some_and(|open| !settled(&open.operation.id))
        })
        .count();
    if open_after + wait.start.len() == 0 && cancelled == 0 && !wait.hear {
        return Err(Unacceptable(
            "wait: nothing is open and `hear` is not set, so nothing could ever wake this turn"
                .to_owned(),
        ));
    }
    let open_max = usize::try_from(run.started.limits.open_operations_max).unwrap_or(usize::MAX);
    if open_after + wait.start.len() > open_max {
        return Err(Unacceptable(format!(
            "start: more than {open_max} operations would be open"
        )));
    }
    Ok(())
}

/// Checks that an agent's messages contain only text, or blobs that its conversation has shown it.
/// Writing down a digest gives no access to the blob.
fn check_parts(run: &Run, intake: &Intake, result: &StepResult) -> Result<(), Unacceptable> {
    let starts = match &result.decision {
        Decision::Wait(wait) => wait.start.as_slice(),
        _ => &[],
    };
    let started = starts.iter().flat_map(|request| match &request.work {
        Work::Agent(dispatch) => dispatch.content.as_slice(),
        Work::Model(model) => model.also.as_slice(),
        _ => &[],
    });
    let effects = result.effects.iter().flat_map(|effect| match effect {
        Effect::Say { parts } => parts.as_slice(),
        _ => &[],
    });
    let reply = match &result.decision {
        Decision::Reply { parts } => parts.as_slice(),
        _ => &[],
    };
    let now_shown: Vec<Digest> = intake.settled.iter().flat_map(Settlement::blobs).collect();
    let heard = || {
        run.messages
            .iter()
            .map(Arc::as_ref)
            .chain(&intake.heard)
            .flat_map(|message| &message.parts)
    };
    for part in started.chain(effects).chain(reply) {
        match part {
            Part::Text { .. } => {}
            Part::Blob { digest, .. }
                if run.shown.contains(digest)
                    || now_shown.contains(digest)
                    || heard().any(|there| there == part) => {}
            Part::Blob { digest, .. } => {
                return Err(Unacceptable(format!(
                    "parts: the blob {} is not one that this turn was shown",
                    digest.reference()
                )));
            }
            Part::Call { .. } | Part::Opaque { .. } => {
                return Err(Unacceptable(
                    "parts: calls and opaque parts are written by models only".to_owned(),
                ));
            }
        }
    }
    Ok(())
}

fn check_call(run: &Run, intake: &Intake, work: &Work) -> Result<(), Unacceptable> {
    let Work::Tool {
        call: Call::OfModel { message, index },
    } = work
    else {
        return Ok(());
    };
    if find_call(run, intake, *message, *index).is_some() {
        return Ok(());
    }
    Err(Unacceptable(format!(
        "start: message {message} of this turn has no call {index}"
    )))
}
