//! Files of messages: fetched from the service one after the other, and handed over as files of the
//! session.

use super::Shared;
use super::calls::CallFailure;
use super::sender::Sender;
use super::served::Served;
use broker::{Error, NewSession, Target, UploadFile};
use domain::connector::{Attachment, ConnectorFailure, kept_reason};
use domain::error_code::{ErrorCode, ErrorKind};
use domain::file::File;
use domain::id::{AgentId, SessionId};
use domain::refusal::Refusal;
use domain::session::CHAT;
use store::InboundMessageRow;

/// The place where files are handed over.
pub(super) struct Place<'a> {
    pub(super) sender: &'a Sender,
    pub(super) agent: AgentId,
    pub(super) session: SessionId,
}

impl Shared {
    /// Hands over the files of inbound messages. Returns a line with the outcome for each.
    ///
    /// A file that a session has already is one file, so that this may be done again.
    pub(super) async fn hand_over_files(
        &self,
        served: &Served,
        place: &Place<'_>,
        batch: &[InboundMessageRow],
    ) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        for message in batch.iter().map(|inbound_message| &inbound_message.message) {
            for attachment in &message.attachments {
                let line = self.hand_over(served, place, attachment).await?;
                lines.push(message.line_of_file(line));
            }
        }
        Ok(lines)
    }

    async fn hand_over(
        &self,
        served: &Served,
        place: &Place<'_>,
        attachment: &Attachment,
    ) -> Result<String, Error> {
        let content = match self.fetch(served, &attachment.handle).await {
            Ok(content) => content,
            Err(CallFailure::Failed(ConnectorFailure::Rejected(reason))) => {
                return Ok(missing(attachment, &reason));
            }
            Err(failure) if place.sender.without_late_files => {
                let reason = ConnectorFailure::from(failure).to_string();
                return Ok(missing(attachment, &reason));
            }
            // Nothing is lost by another try.
            Err(failure) => {
                self.note_intake_failure(served, failure.clone()).await;
                let reported = kept_reason(&ConnectorFailure::from(failure).to_string());
                return Err(Refusal::new(ErrorCode::Busy, reported).into());
            }
        };
        let command = UploadFile {
            target: Target::Agent(place.agent),
            session: place.session,
            name: attachment.name.clone(),
            media_type: attachment.media_type.clone(),
            content,
            user: place.sender.user.clone(),
        };
        let handed_over = self.core.broker.files().upload(command).await;
        store::point("edge.file.after");
        match handed_over {
            Ok((row, _)) => Ok(line(&row.file)),
            Err(Error::Refused(refusal)) if refusal.kind() != ErrorKind::Busy => {
                Ok(missing(attachment, &refusal.message))
            }
            Err(error) => Err(error),
        }
    }

    /// Begins the chat in which a sender's first files are.
    pub(super) async fn begin_session(
        &self,
        sender: &Sender,
        agent: AgentId,
        key: &str,
    ) -> Result<SessionId, Error> {
        let command = NewSession {
            session_type: Some(CHAT.to_owned()),
            idempotency_key: Some(session_key(key)),
            ..NewSession::of(Target::Agent(agent), sender.user.clone())
        };
        let view = self.core.broker.sessions().open(command).await?;
        Ok(view.row.id)
    }
}

/// Returns the key under which a chat is begun for the message with this key.
fn session_key(key: &str) -> String {
    domain::digest::Digest::of(format!("session for {key}").as_bytes()).hex()
}

/// Returns the line of a file that the session has.
fn line(file: &File) -> String {
    format!(
        "[file `{}`, {}, {} bytes, {}]",
        quoted(&file.name),
        file.media_type,
        file.bytes,
        file.digest.reference()
    )
}

/// Returns the line of a file that the session does not get.
fn missing(attachment: &Attachment, reason: &str) -> String {
    let reason: String = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("[file `{}` is missing: {reason}]", quoted(&attachment.name))
}

/// Returns a name that ends where its quotes do.
fn quoted(name: &str) -> String {
    name.replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::digest::Digest;

    #[test]
    fn each_file_has_a_line() {
        let file = File {
            digest: Digest([7; 32]),
            name: "a.txt".to_owned(),
            media_type: "text/plain".to_owned(),
            bytes: 3,
        };
        let reference = Digest([7; 32]).reference();
        assert_eq!(
            line(&file),
            format!("[file `a.txt`, text/plain, 3 bytes, {reference}]")
        );
        let attachment = Attachment {
            name: "b`].txt".to_owned(),
            media_type: "text/plain".to_owned(),
            handle: "1".to_owned(),
            size: None,
        };
        assert_eq!(
            missing(&attachment, "it is\nno more"),
            "[file `b'].txt` is missing: it is no more]"
        );
    }
}
