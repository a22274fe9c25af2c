//! Answers of external agents to their messages.

use super::{Open, Run};
use crate::events::event::{Event, RunSettled};
use crate::events::run::settle::{Ended, settlement};
use crate::thread::message::Part;
use crate::values::error_code::ErrorCode;
use crate::values::id::OperationId;
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;
use crate::work::operation::Performer;

/// Takes an answer to an outbound message: the named one, or the one that has waited longest. The
/// answer may arrive before the outbound message is known to be accepted. Returns the event, and
/// the blobs to be stored with it.
///
/// # Errors
/// No such outbound message waits for an answer.
pub fn answer(
    run: &Run,
    named: Option<OperationId>,
    text: String,
    time: Timestamp,
) -> Result<(Event, OperationId, Vec<Vec<u8>>), Refusal> {
    let open = waiting(run, named).ok_or_else(|| nothing_waits(named))?;
    let operation = open.operation.id;
    let ended = Ended::Gave {
        parts: vec![Part::text(text)],
        untrusted: true,
    };
    let (settlement, blobs) = settlement(&open.operation, ended, time).spilled();
    let settled = RunSettled {
        run: run.started.run,
        settled: vec![settlement],
    };
    Ok((Event::RunSettled(settled), operation, blobs))
}

/// Returns the outbound message that an answer is for.
fn waiting(run: &Run, named: Option<OperationId>) -> Option<&Open> {
    run.open
        .values()
        .filter(|open| matches!(open.operation.performer, Performer::External { .. }))
        .filter(|open| named.is_none_or(|named| open.operation.id == named))
        .min_by_key(|open| (open.operation.step, open.operation.place))
}

/// The refusal of an answer without a waiting message.
#[must_use]
pub fn nothing_waits(named: Option<OperationId>) -> Refusal {
    let message = match named {
        Some(named) => format!(
            "the message {named} waits for no answer in this session: it was answered before, its \
             time is over, or it belongs to another session"
        ),
        None => "no message of this session waits for an answer".to_owned(),
    };
    Refusal::new(ErrorCode::NothingToAnswer, message)
}
