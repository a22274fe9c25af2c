//! Sessions as files: export one as JSON lines, import one.

use super::{By, Error, Request, Target, Transcripts};
use crate::boxed::boxed;
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::{export_too_large, not_exportable, turn_conflict};
use crate::shared::error::invalid;
use crate::shared::guards::allowed;
use crate::shared::guards::passed_limit;
use domain::agent::Agent;
use domain::agent::configure::check_name;
use domain::digest::Digest;
use domain::event::{Event, ImportedTurn, SessionOpened, TurnsImported};
use domain::id::{AgentId, SessionId, Stream, TurnId};
use domain::message::Message;
use domain::path::AGENT_NAME_BYTES_MAX;
use domain::role::Right;
use domain::time::Timestamp;
use domain::transcript::dialect::{Dialect, aix, pi};
use domain::transcript::{
    Adoption, EMPTY_STATE, Header, Reading, Transcript, TranscriptTurn, read,
};
use domain::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{AgentGuard, Clash, Commit, CommitError, Expected, Key, Meeting, TurnBundle};

/// The largest file of a session, exported or imported, in bytes.
pub const TRANSCRIPT_BYTES_MAX: usize = 32 << 20;
/// Number of turns in one commit of an import.
const COMMIT_TURNS_MAX: usize = 256;
/// Bytes of messages in one commit of an import, unless one turn alone has more.
const COMMIT_BYTES_MAX: usize = 4 << 20;
/// Bytes of blobs in one commit of an import, unless one turn alone names more.
const COMMIT_BLOB_BYTES_MAX: usize = 4 << 20;

/// A command that imports a session.
#[derive(Debug, Clone)]
pub struct ImportSession {
    /// The agent of the new session.
    pub target: Target,
    /// The file.
    pub file: Vec<u8>,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedSession {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// The dialect of the file.
    pub dialect: Dialect,
    /// True if this host, or another one like it, wrote the file. Its turns then keep their ids.
    pub exact: bool,
    /// Number of turns that were imported.
    pub turns: u64,
    /// Number of turns that were here already.
    pub known: u64,
    /// Number of lines of another program's file that have no counterpart here.
    pub left_out: u64,
    /// The lines of another program's file that could not be read and were skipped: each with its
    /// number and the fault.
    pub passed_over: Vec<String>,
}

impl Transcripts<'_> {
    /// Returns a session as a file. The same session gives the same bytes.
    ///
    /// In pi's dialect it has all of the session's tree that the user sees, in aix's its thread.
    ///
    /// # Errors
    /// The session does not exist; it is too large for a file; a part of it fits in no line.
    #[boxed]
    pub async fn export(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        dialect: Dialect,
    ) -> Result<Vec<u8>, Error> {
        let (row, agent) = self.sessions().visible(user, target, session).await?;
        let tree_of = match dialect {
            Dialect::Pi => Some(self.access().clearance(user).await?),
            Dialect::Aix => None,
        };
        let TurnBundle { turns, blobs } = match row.head {
            Some(head) => self
                .store()
                .turn_bundle(head, tree_of, TRANSCRIPT_BYTES_MAX)
                .await?
                .ok_or_else(too_large)?,
            None => TurnBundle {
                turns: Vec::new(),
                blobs: BTreeMap::new(),
            },
        };
        let header = Header {
            session,
            name: row.name,
            agent_path: agent.path.into(),
            definition: agent.definition.to_string(),
            created: row.created_at,
            head: row.head,
            parent: None,
            labels: Vec::new(),
        };
        let transcript = Transcript {
            header,
            turns,
            blobs,
        };
        let written = aside(move || match dialect {
            Dialect::Pi => pi::write(&transcript),
            Dialect::Aix => aix::write(&transcript),
        })
        .await?;
        let file = written.map_err(|error| not_exportable(&with_cause(&error)))?;
        if file.len() > TRANSCRIPT_BYTES_MAX {
            return Err(too_large());
        }
        Ok(file)
    }

    /// Imports a session: its turns, and a chat that points to its head.
    ///
    /// Turns that this host wrote, or a host like it, keep their ids. Existing turns are not
    /// changed. Everything in the others is untrusted.
    ///
    /// # Errors
    /// The file cannot be read; one of its turns exists here with other content; the user has no
    /// right to it.
    #[boxed]
    pub async fn import<'a>(
        &'a self,
        by: By<'a>,
        command: ImportSession,
    ) -> Result<ImportedSession, Error> {
        let ImportSession { target, file } = command;
        let request = Request::of(
            by,
            &json!({ "import_session": target.named(), "file": Digest::of(&file).hex() }),
        )?;
        let act = self.try_importing(by.user, &target, file, request.as_ref());
        Ok(self.requests().once(request.as_ref(), act).await?.either())
    }

    /// Checks that a user may import a session, before all of its file is there.
    ///
    /// # Errors
    /// The agent does not exist, it is archived, or the user has no right to it.
    #[boxed]
    pub async fn may_import(&self, user: &UserId, target: &Target) -> Result<(), Error> {
        self.sessions().may_begin(user, target).await
    }

    async fn try_importing(
        &self,
        user: &UserId,
        target: &Target,
        file: Vec<u8>,
        request: Option<&Request>,
    ) -> Result<ImportedSession, Error> {
        let (found, _) = self
            .agents()
            .find_for(user, target, Right::Interact)
            .await?;
        let agent = found.agent;
        let (dialect, reading) = read_file(file, &agent).await?;
        let Transcript {
            header,
            turns,
            blobs,
        } = reading.transcript;
        check_blobs(&turns, &blobs)?;
        let turns = Arc::new(turns);
        let known = match self.store().meet(turns.clone()).await? {
            Meeting::Known(known) => known,
            Meeting::Clash(turn) => return Err(turn_conflict(turn).into()),
        };
        let new: Vec<&TranscriptTurn> = turns
            .iter()
            .zip(&known)
            .filter(|(_, known)| !**known)
            .map(|(turn, _)| turn)
            .collect();
        // A session keeps its id if that is free.
        let session = match self.store().session(header.session).await? {
            None => header.session,
            Some(_) => fresh::session(),
        };
        let imported = ImportedSession {
            agent: agent.id,
            session,
            dialect,
            exact: reading.exact,
            turns: new.len() as u64,
            known: (turns.len() - new.len()) as u64,
            left_out: reading.left_out.len() as u64,
            passed_over: reading
                .passed_over
                .iter()
                .map(ToString::to_string)
                .collect(),
        };
        let carrying = Carrying {
            agent: agent.id,
            session,
            user,
            header: &header,
            blobs: &blobs,
            now: self.core.now(),
        };
        let key = request.map(|request| request.answered(&imported));
        // If the file has no head, the first new turn represents those of the file.
        let first = header.head.or_else(|| new.first().map(|turn| turn.node.id));
        for commit in self.commits(&carrying, &new, key.as_ref()) {
            if let Err(error) = self.store().commit(commit).await {
                return Err(self.not_imported(user, target, first, error).await);
            }
        }
        Ok(imported)
    }

    /// Returns the error for a commit of an import that did not land.
    async fn not_imported(
        &self,
        user: &UserId,
        target: &Target,
        turn: Option<TurnId>,
        error: CommitError,
    ) -> Error {
        match error {
            // A turn was imported by another request meanwhile.
            CommitError::Conflict(conflict) if conflict.clash == Clash::Row => {
                turn_conflict(turn.unwrap_or(NO_TURN)).into()
            }
            CommitError::Conflict(conflict) => match passed_limit(&conflict.clash) {
                Some(refusal) => refusal.into(),
                None => self.sessions().not_begun(user, target).await,
            },
            error => error.into(),
        }
    }

    /// Returns the commits of an import. The session is created with the last turns, so it never
    /// exists without them.
    fn commits(
        &self,
        carrying: &Carrying<'_>,
        turns: &[&TranscriptTurn],
        key: Option<&Key>,
    ) -> Vec<Commit> {
        let mut chunks = chunks(turns, carrying.blobs);
        let last = chunks.pop().unwrap_or_default();
        let mut stored: BTreeSet<Digest> = BTreeSet::new();
        let mut commits = Vec::new();
        for chunk in chunks {
            let events = carrying.turns_imported(&chunk).into_iter().collect();
            let mut commit = carrying.commit(events);
            commit.guards.extend(self.access().may_store(carrying.user));
            commit.blobs = carrying.new_blobs(&chunk, &mut stored);
            commits.push(commit);
        }
        let mut events: Vec<Event> = carrying.turns_imported(&last).into_iter().collect();
        events.push(carrying.opened());
        let mut commit = carrying.commit(events);
        commit
            .guards
            .extend(self.access().may_open(carrying.user, carrying.now));
        commit.blobs = carrying.new_blobs(&last, &mut stored);
        commit.key = key.cloned();
        commits.push(commit);
        commits
    }
}

/// An import: its agent, session, user, header and blobs.
#[derive(Clone, Copy)]
struct Carrying<'a> {
    agent: AgentId,
    session: SessionId,
    user: &'a UserId,
    header: &'a Header,
    blobs: &'a BTreeMap<Digest, Vec<u8>>,
    now: Timestamp,
}

impl Carrying<'_> {
    /// Returns the event of a chunk of the turns; none for an empty chunk.
    fn turns_imported(&self, chunk: &[&TranscriptTurn]) -> Option<Event> {
        let turns: Vec<ImportedTurn> = chunk.iter().map(|turn| imported_turn(turn)).collect();
        (!turns.is_empty()).then(|| {
            Event::TurnsImported(TurnsImported {
                session: self.session,
                agent: self.agent,
                turns,
                erased: None,
                time: self.now,
            })
        })
    }

    /// Returns the event that opens the session.
    fn opened(&self) -> Event {
        Event::SessionOpened(SessionOpened {
            name: self.header.name.as_deref().and_then(shown_name),
            head: self.header.head,
            ..SessionOpened::chat(
                self.agent,
                self.session,
                fresh::conversation(),
                self.user.clone(),
                self.header.created.min(self.now),
            )
        })
    }

    /// Returns the blobs that a chunk names and no earlier one did.
    fn new_blobs(&self, chunk: &[&TranscriptTurn], stored: &mut BTreeSet<Digest>) -> Vec<Vec<u8>> {
        let named: BTreeSet<Digest> = chunk
            .iter()
            .flat_map(|turn| turn.blobs())
            .filter(|digest| !stored.contains(digest))
            .collect();
        let blobs = named
            .iter()
            .filter_map(|digest| self.blobs.get(digest).cloned())
            .collect();
        stored.extend(named);
        blobs
    }

    fn commit(&self, events: Vec<Event>) -> Commit {
        let context = Context::by(self.user, self.now).about(self.agent, Some(self.session), None);
        Commit::new()
            .guard(AgentGuard::Active(self.agent))
            .guard(allowed(self.agent, self.user))
            .append(
                Stream::Session(self.session),
                Expected::Any,
                context.events(events),
            )
    }
}

/// Reads the file of a session that an agent is to have.
async fn read_file(file: Vec<u8>, agent: &Agent) -> Result<(Dialect, Reading), Error> {
    let adoption = Adoption {
        agent_path: agent.path.to_string(),
        definition: agent.definition.to_string(),
        salt: fresh::salt(),
    };
    let reading = aside(move || read(&file, &adoption)).await?;
    reading.map_err(|fault| {
        invalid(
            format!("this is no session that can be read: {fault}"),
            "body",
        )
    })
}

/// A turn id for errors that have no turn to name.
const NO_TURN: TurnId = TurnId(Digest([0; 32]));

/// Divides turns into chunks, one for each commit.
fn chunks<'a>(
    turns: &[&'a TranscriptTurn],
    blobs: &BTreeMap<Digest, Vec<u8>>,
) -> Vec<Vec<&'a TranscriptTurn>> {
    let mut chunks: Vec<Vec<&TranscriptTurn>> = Vec::new();
    let mut bytes: usize = 0;
    let mut blob_bytes: usize = 0;
    for turn in turns {
        let size = turn
            .messages
            .iter()
            .flatten()
            .map(|message| serde_json::to_vec(message).map_or(0, |text| text.len()))
            .sum::<usize>();
        let with: usize = turn
            .blobs()
            .filter_map(|digest| blobs.get(&digest))
            .map(Vec::len)
            .sum();
        let is_full = |chunk: &Vec<&TranscriptTurn>| chunk.len() >= COMMIT_TURNS_MAX;
        let over = bytes.saturating_add(size) > COMMIT_BYTES_MAX
            || blob_bytes.saturating_add(with) > COMMIT_BLOB_BYTES_MAX;
        if over || chunks.last().is_none_or(is_full) {
            chunks.push(Vec::new());
            bytes = 0;
            blob_bytes = 0;
        }
        bytes = bytes.saturating_add(size);
        blob_bytes = blob_bytes.saturating_add(with);
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(turn);
        }
    }
    chunks
}

/// Returns a turn that does not exist here yet and whose author this host cannot verify: anyone can
/// write a consistent file.
fn imported_turn(turn: &TranscriptTurn) -> ImportedTurn {
    let messages = turn.messages.iter().cloned();
    ImportedTurn {
        turn: turn.node.clone(),
        committed: turn.committed,
        messages: messages
            .map(|message| message.map(Message::from_elsewhere))
            .collect(),
    }
}

/// Checks that the file brings the content that its turns name.
///
/// Knowing a digest does not entitle a user to the content.
fn check_blobs(turns: &[TranscriptTurn], blobs: &BTreeMap<Digest, Vec<u8>>) -> Result<(), Error> {
    let empty = Digest::of(EMPTY_STATE);
    match turns
        .iter()
        .flat_map(TranscriptTurn::blobs)
        .find(|digest| *digest != empty && !blobs.contains_key(digest))
    {
        None => Ok(()),
        Some(digest) => Err(invalid(
            format!(
                "the file names the blob {digest} and has not its bytes; export it where these are"
            ),
            "body",
        )),
    }
}

/// Returns the part of a name that a session may have here; none if nothing is left of it.
fn shown_name(name: &str) -> Option<String> {
    if check_name(name).is_ok() {
        return Some(name.to_owned());
    }
    let plain: String = name
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    let end = plain.floor_char_boundary(AGENT_NAME_BYTES_MAX);
    let cut = plain.get(..end).unwrap_or_default().trim().to_owned();
    check_name(&cut).is_ok().then_some(cut)
}

/// Runs work that takes a while on a thread for blocking work.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Error::unavailable)
}

fn too_large() -> Error {
    export_too_large(TRANSCRIPT_BYTES_MAX).into()
}

/// Returns the text of an error with its cause.
fn with_cause(error: &dyn std::error::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_elsewhere_is_cut_to_what_may_be_shown_here() {
        assert_eq!(shown_name("Greek").as_deref(), Some("Greek"));
        assert_eq!(shown_name("two\nlines").as_deref(), Some("two lines"));
        assert_eq!(
            shown_name(&"x".repeat(AGENT_NAME_BYTES_MAX + 1)),
            Some("x".repeat(AGENT_NAME_BYTES_MAX))
        );
        assert_eq!(shown_name("\n"), None);
    }
}
