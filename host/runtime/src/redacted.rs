//! What a call leaves behind, without the secrets that it could use: a server that repeats them in a way that was not seen on the way in
//! must not get them into the log, the thread or the store either.

use crate::log::LogLine;
use crate::outcome::Outcome;
use domain::message::Part;
use domain::redact::Redactor;
use domain::tool::{ClientAction, Progress, ToolError};
use std::borrow::Cow;

type Result = std::result::Result<Progress, ToolError>;

/// The lines of a log.
pub(crate) fn logs(redactor: &Redactor, lines: &mut [LogLine]) {
    for LogLine { level: _, context, message } in lines {
        text(redactor, context);
        text(redactor, message);
    }
}

/// The end of a tool's call.
pub(crate) fn outcome(redactor: &Redactor, mut outcome: Outcome<Result>) -> Outcome<Result> {
    match &mut outcome {
        Outcome::Returned(Ok(progress)) => self::progress(redactor, progress),
        Outcome::Returned(Err(ToolError::InvalidArguments(detail) | ToolError::NotFound(detail) | ToolError::Failed(detail)))
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

fn progress(redactor: &Redactor, progress: &mut Progress) {
    match progress {
        Progress::Done { parts } => parts.iter_mut().for_each(|part| self::part(redactor, part)),
        Progress::Later { after_ms: _, state } => bytes(redactor, state),
        Progress::Ask { action, state } => {
            let ClientAction { widget, props, response_schema, lock_input: _ } = action;
            text(redactor, widget);
            [Some(props), response_schema.as_mut()].into_iter().flatten().for_each(|value| redactor.value(value));
            bytes(redactor, state);
        }
    }
}

fn part(redactor: &Redactor, part: &mut Part) {
    match part {
        Part::Text { text } => self::text(redactor, text),
        Part::Blob { media_type, .. } => text(redactor, media_type),
        Part::Call { call_id, name, arguments } => [call_id, name, arguments].into_iter().for_each(|word| text(redactor, word)),
        Part::Opaque { value, .. } => redactor.value(value),
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
