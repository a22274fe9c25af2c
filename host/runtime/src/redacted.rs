//! The results of a call, without the secrets of the host. A server may repeat them in a way that
//! was not recognised on the way in. They must not get into the log, the thread, a bucket or the
//! ledger either.

use crate::log::LogLine;
use crate::outcome::{Outcome, Written};
use domain::bucket::WrittenValue;
use domain::operation::Progress;
use domain::redact::Redactor;
use domain::tool::{ClientAction, ToolError};
use std::borrow::Cow;

type Result = std::result::Result<Progress, ToolError>;

/// The lines of a log.
pub(crate) fn logs(redactor: &Redactor, lines: &mut [LogLine]) {
    for line in lines {
        text(redactor, &mut line.context);
        text(redactor, &mut line.message);
    }
}

/// The end of a tool's call.
pub(crate) fn outcome(redactor: &Redactor, mut outcome: Outcome<Result>) -> Outcome<Result> {
    match &mut outcome {
        Outcome::Returned(Ok(progress)) => self::progress(redactor, progress),
        Outcome::Returned(Err(
            ToolError::InvalidArguments(detail)
            | ToolError::NotFound(detail)
            | ToolError::Failed(detail),
        ))
        | Outcome::Refused { detail }
        | Outcome::Faulted { detail } => text(redactor, detail),
        Outcome::Trapped { message, backtrace } => {
            text(redactor, message);
            text(redactor, backtrace);
        }
        Outcome::Returned(Err(ToolError::Denied | ToolError::RetryLater(_)))
        | Outcome::OutOfMemory
        | Outcome::OutOfCpu
        | Outcome::TimedOut
        | Outcome::Busy
        | Outcome::TooOften { .. } => {}
    }
    outcome
}

/// Redacts the call's writes to buckets. A value is as long as before, and so within its quota.
pub(crate) fn written(redactor: &Redactor, mut written: Written) -> Written {
    for entry in written.buckets.iter_mut().flat_map(|(_, entries)| entries) {
        text(redactor, &mut entry.key);
        match &mut entry.value {
            WrittenValue::Text(value) => text(redactor, value),
            WrittenValue::Hex(value) => bytes(redactor, value),
            WrittenValue::Deleted => {}
        }
    }
    written
}

fn progress(redactor: &Redactor, progress: &mut Progress) {
    match progress {
        Progress::Done { parts } => parts.iter_mut().for_each(|part| redactor.part(part)),
        Progress::Later { after_ms: _, state } => bytes(redactor, state),
        Progress::Ask { action, state } => {
            let ClientAction {
                widget,
                props,
                response_schema,
                lock_input: _,
            } = action;
            text(redactor, widget);
            redactor.value(props);
            response_schema
                .iter_mut()
                .for_each(|schema| redactor.value(schema));
            bytes(redactor, state);
        }
    }
}

fn text(redactor: &Redactor, text: &mut String) {
    if let Cow::Owned(redacted) = redactor.text(text) {
        *text = redacted;
    }
}

fn bytes(redactor: &Redactor, bytes: &mut Vec<u8>) {
    if let Some(redacted) = redactor.bytes(bytes) {
        *bytes = redacted;
    }
}
