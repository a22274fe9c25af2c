//! The files of a session: hand one over, list them, give one back.

use super::{Error, Files, Target, UploadFile};
use crate::boxed::boxed;
use crate::journal::uploaded;
use crate::refusals::{busy, file_not_found, session_closed};
use crate::shared::guards::{in_session, room_for};
use crate::view::thread_part;
use domain::digest::Digest;
use domain::error_code::ErrorCode;
use domain::file::{FILE_BYTES_MAX, File, check_media_type, check_name, full};
use domain::id::SessionId;
use domain::message::Part;
use domain::refusal::Refusal;
use domain::user::UserId;
use store::{
    AgentGuard, Clash, Commit, CommitError, Conflict, FileRow, Guard, SessionGuard, SessionRow,
    SessionStatus,
};

impl Files<'_> {
    /// Checks that a file of this name may be handed over, before its bytes are there.
    ///
    /// # Errors
    /// There is no such session, it has ended, the user may not, or the name is none for a file.
    #[boxed]
    pub async fn may_upload(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        name: &str,
    ) -> Result<(), Error> {
        self.place_for_file(user, target, session, name)
            .await
            .map(drop)
    }

    async fn place_for_file(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        name: &str,
    ) -> Result<SessionRow, Error> {
        let row = self.sessions().for_command(user, target, session).await?;
        check_name(name).map_err(|fault| Refusal::new(ErrorCode::InvalidFileName, fault))?;
        if row.status != SessionStatus::Open {
            return Err(session_closed().into());
        }
        Ok(row)
    }

    /// Stores a file in a session. When this returns, it is durable.
    ///
    /// The flag is false if the session already had the file: the same content under the same name
    /// is one file.
    ///
    /// # Errors
    /// The session does not exist or has ended, the user has no right to it, the file is too large
    /// or has no valid name or media type, or the session has no room for it.
    #[boxed]
    pub async fn upload(&self, command: UploadFile) -> Result<(FileRow, bool), Error> {
        let session = command.session;
        let content = command.content;
        let row = self
            .place_for_file(&command.user, &command.target, session, &command.name)
            .await?;
        check_media_type(&command.media_type)
            .map_err(|fault| Refusal::new(ErrorCode::InvalidMediaType, fault))?;
        if content.len() > FILE_BYTES_MAX {
            let message = format!(
                "a file has at most {FILE_BYTES_MAX} bytes, this one has {}",
                content.len()
            );
            return Err(Refusal::new(ErrorCode::FileTooLarge, message).into());
        }
        let row_of_file = FileRow {
            file: File {
                digest: Digest::of(&content),
                name: command.name,
                media_type: command.media_type,
                bytes: content.len() as u64,
            },
            user_id: command.user,
            time: self.core.now(),
        };
        let commit = uploading(&row, &row_of_file)
            .blob(content)
            .guards(self.access().may_store(&row_of_file.user_id));
        match self.store().commit(commit).await {
            Ok(_) => Ok((row_of_file, true)),
            Err(CommitError::Conflict(conflict)) => {
                let user = &row_of_file.user_id;
                self.there_already(user, &command.target, session, conflict)
                    .await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the file if the session already has it, or the reason why the session takes none.
    async fn there_already(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        conflict: Conflict,
    ) -> Result<(FileRow, bool), Error> {
        match &conflict.clash {
            Clash::Guard(Guard::Session(SessionGuard::FileAbsent { digest, name, .. })) => {
                let known = self.store().files(session).await?;
                let found = known
                    .into_iter()
                    .find(|known| known.file.digest == *digest && known.file.name == *name);
                found
                    .map(|found| (found, false))
                    .ok_or_else(|| file_not_found(*digest).into())
            }
            Clash::Guard(Guard::Session(SessionGuard::FilesAtMost { .. })) => Err(full().into()),
            Clash::Guard(Guard::Session(SessionGuard::Open(_))) => Err(session_closed().into()),
            // The user's role was taken away in between.
            Clash::Guard(Guard::Agent(AgentGuard::Role { .. })) => {
                self.sessions().for_command(user, target, session).await?;
                Err(busy("roles are changing at this moment; try again shortly").into())
            }
            _ => Err(CommitError::Conflict(conflict).into()),
        }
    }

    /// Returns the files of a session, in the order of their uploads.
    ///
    /// # Errors
    /// There is no such session.
    #[boxed]
    pub async fn list(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<Vec<FileRow>, Error> {
        let (row, _) = self.sessions().visible(user, target, session).await?;
        Ok(self.store().files(row.id).await?)
    }

    /// Returns a file of a session with its bytes: an uploaded one, or a blob that a message shows.
    ///
    /// Content may have several names: the file has the given name, or the first one. A blob that
    /// only a message shows is named by its digest.
    ///
    /// # Errors
    /// There is no such session, or no such file in it.
    #[boxed]
    pub async fn get(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        digest: Digest,
        name: Option<&str>,
    ) -> Result<(File, Vec<u8>), Error> {
        let (row, _) = self.sessions().visible(user, target, session).await?;
        let files = self.store().files(row.id).await?;
        let is_it =
            |file: &File| file.digest == digest && name.is_none_or(|name| file.name == name);
        let handed_over = files.into_iter().map(|row| row.file).find(is_it);
        let file = match (handed_over, row.head) {
            (Some(file), _) => Some(file),
            (None, Some(head)) if name.is_none() => {
                let part = thread_part(self.store(), head, digest).await?;
                part.and_then(shown_file)
            }
            (None, _) => None,
        };
        let file = file.ok_or_else(|| file_not_found(digest))?;
        // Erased content is gone, though its row remains.
        let content = self.store().blob(digest).await?;
        let content = content.ok_or_else(|| file_not_found(digest))?;
        Ok((file, content))
    }
}

/// Returns the file that a message shows; none for a part that is no blob.
fn shown_file(part: Part) -> Option<File> {
    match part {
        Part::Blob {
            digest,
            media_type,
            size,
        } => Some(File {
            digest,
            name: digest.short(),
            media_type,
            bytes: size,
        }),
        Part::Text { .. } | Part::Call { .. } | Part::Opaque { .. } => None,
    }
}

/// Returns the commit that adds a file to a session, without its content.
fn uploading(session: &SessionRow, row: &FileRow) -> Commit {
    let file = &row.file;
    let uploaded = uploaded(session.id, file, &row.user_id, row.time);
    in_session(session, &row.user_id, row.time, [uploaded])
        .guard(SessionGuard::Open(session.id))
        .guard(SessionGuard::FileAbsent {
            session: session.id,
            digest: file.digest,
            name: file.name.clone(),
        })
        .guard(room_for(session.id, 1, file.bytes))
}
