//! The results of a call, without the secrets of the host. A server may repeat them in a way that
//! was not recognised on the way in. They must not get into the log, the thread, a bucket or the
//! ledger either.

use crate::log::LogLine;
use crate::outcome::{Outcome, Written};
use domain::bucket::WrittenValue;
use domain::connector::{Batch, ConnectorFailure, Incoming, Moved, Said};
use domain::operation::Progress;
use domain::redact::Redactor;
use domain::tool::{ClientAction, ToolError};
use std::borrow::Cow;

/// Something that a guest returned, which may have a secret in it.
pub(crate) trait Redact {
    /// Takes the secrets out.
    fn redact(&mut self, redactor: &Redactor);
}

/// The lines of a log.
pub(crate) fn logs(redactor: &Redactor, lines: &mut [LogLine]) {
    for line in lines {
        line.context.redact(redactor);
        line.message.redact(redactor);
    }
}

/// The end of a call.
pub(crate) fn outcome<T: Redact, E: Redact>(
    redactor: &Redactor,
    mut outcome: Outcome<Result<T, E>>,
) -> Outcome<Result<T, E>> {
    match &mut outcome {
        Outcome::Returned(Ok(returned)) => returned.redact(redactor),
        Outcome::Returned(Err(error)) => error.redact(redactor),
        Outcome::Refused { detail } | Outcome::Faulted { detail, .. } => detail.redact(redactor),
        Outcome::Trapped { message, backtrace } => {
            message.redact(redactor);
            backtrace.redact(redactor);
        }
        Outcome::OutOfMemory
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
        entry.key.redact(redactor);
        match &mut entry.value {
            WrittenValue::Text(value) => value.redact(redactor),
            WrittenValue::Hex(value) => value.redact(redactor),
            WrittenValue::Deleted => {}
        }
    }
    written
}

impl Redact for String {
    fn redact(&mut self, redactor: &Redactor) {
        if let Cow::Owned(redacted) = redactor.text(self) {
            *self = redacted;
        }
    }
}

impl Redact for Vec<u8> {
    fn redact(&mut self, redactor: &Redactor) {
        if let Some(redacted) = redactor.bytes(self) {
            *self = redacted;
        }
    }
}

impl<T: Redact> Redact for Option<T> {
    fn redact(&mut self, redactor: &Redactor) {
        if let Some(inner) = self {
            inner.redact(redactor);
        }
    }
}

impl Redact for Progress {
    fn redact(&mut self, redactor: &Redactor) {
        match self {
            Self::Done { parts } => parts.iter_mut().for_each(|part| redactor.part(part)),
            Self::Later { after_ms: _, state } => state.redact(redactor),
            Self::Ask { action, state } => {
                let ClientAction {
                    widget,
                    props,
                    response_schema,
                    lock_input: _,
                } = action;
                widget.redact(redactor);
                redactor.value(props);
                response_schema
                    .iter_mut()
                    .for_each(|schema| redactor.value(schema));
                state.redact(redactor);
            }
        }
    }
}

impl Redact for ToolError {
    fn redact(&mut self, redactor: &Redactor) {
        match self {
            Self::InvalidArguments(detail) | Self::NotFound(detail) | Self::Failed(detail) => {
                detail.redact(redactor);
            }
            Self::Denied | Self::RetryLater(_) => {}
        }
    }
}

impl Redact for Batch {
    fn redact(&mut self, redactor: &Redactor) {
        let Self {
            messages,
            cursor,
            next_ms: _,
            answer,
            acknowledgements,
            overheard,
            replies,
            moved,
            undelivered,
        } = self;
        messages
            .iter_mut()
            .for_each(|message| message.redact(redactor));
        cursor.redact(redactor);
        answer.redact(redactor);
        for request in acknowledgements {
            // The id as that of its message, so that they stay together.
            request.message.redact(redactor);
            request.handle.redact(redactor);
        }
        overheard.iter_mut().for_each(|id| id.redact(redactor));
        for reply in replies {
            reply.message.redact(redactor);
            reply.to.redact(redactor);
        }
        moved.iter_mut().for_each(|moved| moved.redact(redactor));
        for report in undelivered {
            report.id.redact(redactor);
            report.reason.redact(redactor);
        }
    }
}

impl Redact for Incoming {
    fn redact(&mut self, redactor: &Redactor) {
        let Self {
            id,
            sender,
            sender_name,
            group,
            chat,
            said,
            quotations,
            attachments,
            sent_at: _,
        } = self;
        for text in [id, sender, chat] {
            text.redact(redactor);
        }
        sender_name.redact(redactor);
        group.redact(redactor);
        match said {
            Said::Text { text } | Said::Aside { text } => text.redact(redactor),
            Said::Button { value } => value.redact(redactor),
        }
        for quotation in quotations {
            quotation.author.redact(redactor);
            quotation.text.redact(redactor);
        }
        for file in attachments {
            file.name.redact(redactor);
            file.media_type.redact(redactor);
            file.handle.redact(redactor);
        }
    }
}

impl Redact for Moved {
    fn redact(&mut self, redactor: &Redactor) {
        let Self {
            from,
            to,
            is_group: _,
        } = self;
        from.redact(redactor);
        to.redact(redactor);
    }
}

impl Redact for ConnectorFailure {
    fn redact(&mut self, redactor: &Redactor) {
        match self {
            Self::Rejected(reason)
            | Self::Unauthorised(reason)
            | Self::RetryLater { reason, .. }
            | Self::Unknown(reason) => reason.redact(redactor),
            Self::Moved { chat, moved } => {
                chat.redact(redactor);
                moved.redact(redactor);
            }
        }
    }
}
