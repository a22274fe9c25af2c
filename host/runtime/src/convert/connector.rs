//! Between the host and a connector: calls and messages there, batches and ids back.

use crate::bindings::connector::exports::agent_host::plugin::connector;
use crate::call_audit::CallAudit;
use crate::component::Component;
use crate::convert::{Read, Reader, check_count, check_length, same, unacceptable};
use crate::exports::Answered;
use crate::log::LogLine;
use crate::outcome::Outcome;
use domain::connector::{
    ATTACHMENT_BYTES_MAX, Acknowledgement, Attachment, BATCH_MESSAGES_MAX, BATCH_MOVED_MAX,
    BATCH_UNDELIVERED_MAX, Batch, Body, Choice, ConnectorFailure, Incoming, Moved, Outgoing,
    Quotation, QuotationKind, Reply, SERVICE_ID_BYTES_MAX, Said, Undelivered, kept_reason,
};
use domain::grant::Grant;
use domain::operation::CallUsage;
use domain::time::Timestamp;
use serde_json::Value;

/// The reason of a pause for which a component gives none.
const LATER: &str = "it is to be tried again later";

type Answer<T> = Read<Result<T, ConnectorFailure>>;

/// Returns a call of the service as a connector reads it.
pub(crate) fn guest_incoming_call(call: VerifiedCall) -> connector::IncomingCall {
    let VerifiedCall {
        headers,
        query,
        body,
    } = call;
    connector::IncomingCall {
        headers,
        query,
        body,
    }
}

/// Returns a message as a connector sends it.
pub(crate) fn guest_outgoing(message: &Outgoing) -> connector::Outgoing {
    let choice = |choice: &Choice| connector::Choice {
        label: choice.label.clone(),
        value: choice.value.clone(),
    };
    connector::Outgoing {
        chat: message.chat.clone(),
        body: match &message.body {
            Body::Text(text) => connector::Body::Text(text.clone()),
            Body::Question(text, choices) => {
                let choices = choices.iter().map(choice).collect();
                connector::Body::Question((text.clone(), choices))
            }
            Body::Typing => connector::Body::Typing,
            Body::Edit { id, text } => connector::Body::Edit((id.clone(), text.clone())),
            Body::Acknowledgement(handle) => connector::Body::Acknowledgement(handle.clone()),
        },
        idempotency_key: message.idempotency_key.clone(),
    }
}

/// Reads what a poll or a call of the service brought.
pub(crate) fn batch(answered: Answered<connector::Batch>) -> Answer<Batch> {
    answered.map_or_else(failure, |batch| Reader::default().batch(batch).map(Ok))
}

/// Reads the service's id of what was sent; empty where there is none.
pub(crate) fn sent(answered: Answered<String>) -> Answer<String> {
    let id = match answered {
        Ok(id) => id,
        Err(connector::ConnectorError::Moved((chat, moved))) => {
            check_length("chat", chat.len(), SERVICE_ID_BYTES_MAX)?;
            let moved = read_moved(moved)?;
            return Ok(Err(ConnectorFailure::Moved { chat, moved }));
        }
        Err(error) => return failure(error),
    };
    check_length("id", id.len(), SERVICE_ID_BYTES_MAX)?;
    if id.chars().any(char::is_control) {
        return unacceptable("id", "has a control character");
    }
    Ok(Ok(id))
}

/// Reads the bytes of a file.
pub(crate) fn fetched(answered: Answered<Vec<u8>>) -> Answer<Vec<u8>> {
    let file = match answered {
        Ok(file) => file,
        Err(error) => return failure(error),
    };
    let bytes_max = usize::try_from(ATTACHMENT_BYTES_MAX).unwrap_or(usize::MAX);
    check_length("file", file.len(), bytes_max)?;
    Ok(Ok(file))
}

fn failure<T>(error: connector::ConnectorError) -> Answer<T> {
    let failure = match error {
        connector::ConnectorError::Rejected(reason) => {
            ConnectorFailure::Rejected(kept_reason(&reason))
        }
        connector::ConnectorError::Unauthorised(reason) => {
            ConnectorFailure::Unauthorised(kept_reason(&reason))
        }
        connector::ConnectorError::RetryLater(ms) => ConnectorFailure::RetryLater {
            after_ms: u64::from(ms),
            reason: LATER.to_owned(),
        },
        connector::ConnectorError::Unknown(reason) => {
            ConnectorFailure::Unknown(kept_reason(&reason))
        }
        // Only a message that is sent can be sent elsewhere.
        connector::ConnectorError::Moved((chat, _)) => {
            ConnectorFailure::Rejected(kept_reason(&format!("the chat is `{chat}` now")))
        }
    };
    Ok(Err(failure))
}

/// Returns the message that another one replies to.
fn reply(message: &connector::Incoming) -> Option<Reply> {
    Reply::new(&message.id, message.replies_to.as_deref()?)
}

fn read_moved(moved: connector::Moved) -> Read<Moved> {
    let connector::Moved { from, to, is_group } = moved;
    let moved = Moved { from, to, is_group };
    moved
        .checked()
        .or_else(|bad| unacceptable("moved", format_args!("cannot be taken: {bad}")))
}

fn read_undelivered(undelivered: connector::Undelivered) -> Read<Undelivered> {
    let connector::Undelivered { id, reason } = undelivered;
    let reason = kept_reason(&reason);
    Undelivered { id, reason }
        .checked()
        .or_else(|bad| unacceptable("undelivered", format_args!("cannot be taken: {bad}")))
}

/// Returns the request of the service to be told of a message.
fn acknowledgement(message: &connector::Incoming) -> Option<Acknowledgement> {
    Acknowledgement::new(&message.id, message.acknowledge.as_deref()?)
}

impl Reader {
    fn batch(&mut self, batch: connector::Batch) -> Read<Batch> {
        let connector::Batch {
            messages,
            moved,
            undelivered,
            cursor,
            next_ms,
            answer,
        } = batch;
        // Before each of them is looked at.
        check_count("messages", messages.len(), BATCH_MESSAGES_MAX)?;
        check_count("moved", moved.len(), BATCH_MOVED_MAX)?;
        check_count("undelivered", undelivered.len(), BATCH_UNDELIVERED_MAX)?;
        let acknowledgements = messages.iter().filter_map(acknowledgement).collect();
        let replies = messages.iter().filter_map(reply).collect();
        let overheard = messages.iter().filter(|message| message.overheard);
        let overheard = overheard.map(|message| message.id.clone()).collect();
        let batch = Batch {
            messages: self.each("messages", messages, Self::incoming)?,
            cursor,
            next_ms,
            answer,
            acknowledgements,
            overheard,
            replies,
            moved: moved.into_iter().map(read_moved).collect::<Read<_>>()?,
            undelivered: undelivered
                .into_iter()
                .map(read_undelivered)
                .collect::<Read<_>>()?,
        };
        match batch.check() {
            Ok(()) => Ok(batch),
            Err(bad) => unacceptable("batch", format_args!("cannot be taken: {bad}")),
        }
    }

    fn incoming(&mut self, field: &str, message: connector::Incoming) -> Read<Incoming> {
        let connector::Incoming {
            id,
            sender,
            sender_name,
            group,
            chat,
            said,
            quotations,
            attachments,
            sent_ms,
            // The batch has them: they are no part of what is stored.
            acknowledge: _,
            overheard: _,
            replies_to: _,
        } = message;
        let attachment = |file: connector::Attachment| Attachment {
            name: file.name,
            media_type: file.media_type,
            handle: file.handle,
            size: file.size,
        };
        let said = match said {
            connector::Said::Text(text) => Said::Text {
                text: self.text(field, text)?,
            },
            connector::Said::Button(value) => Said::Button { value },
            connector::Said::Aside(text) => Said::Aside {
                text: self.text(field, text)?,
            },
        };
        let message = Incoming {
            id,
            sender,
            sender_name,
            group,
            chat,
            said,
            quotations: self.each(field, quotations, Self::quotation)?,
            attachments: attachments.into_iter().map(attachment).collect(),
            sent_at: Timestamp(sent_ms),
        };
        message
            .bounded()
            .or_else(|bad| unacceptable(field, format_args!("cannot be taken: {bad}")))
    }

    fn quotation(&mut self, field: &str, quotation: connector::Quotation) -> Read<Quotation> {
        let connector::Quotation { kind, author, text } = quotation;
        Ok(Quotation {
            kind: same!(kind, connector::QuotationKind => QuotationKind: Forwarded, Quoted),
            author,
            text: self.text(field, text)?,
        })
    }
}

/// A connector that is called, and what its call may use.
#[derive(Debug, Clone, Copy)]
pub struct ConnectorCall<'a> {
    /// Its component.
    pub component: &'a Component,
    /// The grant: requests, secrets as placeholders, variables, and limits. Folders and buckets are
    /// for tools.
    pub grant: &'a Grant,
    /// The operator's configuration: an object that fits the component's schema.
    pub configuration: &'a Value,
    /// Milliseconds that the call may take; the grant's limit applies when it is shorter.
    pub deadline_ms: u32,
    /// The caller's call audit: if the call is cut off, everything until then is in it.
    pub audit: &'a CallAudit,
}

/// A call of the service whose signature was verified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifiedCall {
    /// Its headers without credentials, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its query, decoded, without credentials.
    pub query: Vec<(String, String)>,
    /// Its body as received.
    pub body: Vec<u8>,
}

/// The result of a connector's call, beside what is in its call audit.
#[derive(Debug, Clone)]
pub struct Connected<T> {
    /// Its outcome. An error of the connector's own is `Returned(Err(_))`.
    pub outcome: Outcome<Result<T, ConnectorFailure>>,
    /// Its usage.
    pub usage: CallUsage,
    /// Its log, stdout and stderr included.
    pub logs: Vec<LogLine>,
}

#[cfg(test)]
mod tests;
