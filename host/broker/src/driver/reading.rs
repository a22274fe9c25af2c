//! Reading a session into notes: its unread part is handed to its memory agent.
//!
//! The due time and the progress of reading are stored. The words, the session that gets them, and
//! the new progress are one commit. So a crash in between changes nothing, and no turn is handed
//! over twice. Nothing waits for the memory agent.

use super::context::SessionContext;
use super::phase::Phase;
use super::state::Driver;
use crate::core::fresh;
use crate::journal::Context;
use crate::shared::DriverError;
use crate::shared::outbound_messages::add;
use domain::account::Accounts;
use domain::agent::Agent;
use domain::authority::Permissions;
use domain::budget::Budget;
use domain::compaction::{Mark, fitting_messages, material};
use domain::definition::{Definition, MemorySettings};
use domain::delegate::Priority;
use domain::event::{
    AgentCreated, Event, InputAccepted, MemoryDue, MemoryRead, RunStarted, SessionOpened, Source,
};
use domain::hints;
use domain::id::{AgentId, InputId, SessionId, Stream, TurnId};
use domain::limits::WAITING_INPUTS_MAX;
use domain::memory::{READING_BYTES_MAX, READING_MESSAGES_MAX, TriggerEvent, reading, unread};
use domain::message::{Draft, Role};
use domain::path::{AgentConfig, AgentPath, PathKind};
use domain::persona::Persona;
use domain::session::CHAT;
use domain::time::Timestamp;
use std::sync::Arc;
use store::{
    AgentGuard, AgentRow, Clash, Commit, CommitError, Guard, QueueGuard, ReadingRow, SessionGuard,
    SessionRow, SessionStatus,
};

/// The most turns of a thread that was left for another one; a longer one is read from its
/// beginning.
const LEFT_TURNS_MAX: usize = 4_096;

/// Time after which a reading is tried again that the memory agent did not take, in milliseconds.
const RETRY_MS: u64 = 60_000;

/// The session of a memory agent that gets the words, and the events that create it.
struct Reader {
    agent: AgentId,
    session: SessionId,
    guards: Vec<Guard>,
    events: Vec<(Stream, Event)>,
}

/// A part of a thread that was not read.
struct UnreadChunk {
    said: String,
    /// The turn that its last message is of.
    through: TurnId,
    through_message: u64,
    /// True if more unread content follows it.
    is_cut: bool,
}

/// A session that is due to be read, with the agents involved.
#[derive(Clone, Copy)]
struct ToRead<'a> {
    session: &'a SessionRow,
    agent: &'a Agent,
    definition: &'a Definition,
    memory: &'a Arc<Definition>,
    now: Timestamp,
}

impl Driver {
    /// Hands the unread part to the memory agent if that is due and no run is open. Returns whether
    /// it did, or found that nothing has to be read after all.
    pub(super) async fn read_if_due(&mut self) -> Result<bool, DriverError> {
        let Some(session) = self.phase.idle() else {
            return Ok(false);
        };
        let now = self.context.core.now();
        // The row was just read, so a message to an agent without memory costs no read of this.
        if session.memory_due.is_none_or(|due| due > now) {
            return Ok(false);
        }
        let session = session.clone();
        let handed = Box::pin(self.context.reading(&session, TriggerEvent::Due, now)).await?;
        match handed {
            Some(handed) => self.hand_to_reader(&session, handed).await?,
            // It would stay due for ever.
            None => self.set_due(&session, None).await?,
        }
        self.phase = Phase::Unknown;
        Ok(true)
    }

    /// Hands the unread part of a session to the memory agent, if its thread has to be read before
    /// it is compacted.
    pub(super) async fn read_before_compaction(
        &mut self,
        session: &SessionRow,
    ) -> Result<(), DriverError> {
        let now = self.context.core.now();
        let handed = Box::pin(self.context.reading(session, TriggerEvent::Compaction, now)).await?;
        match handed {
            Some(handed) => self.hand_to_reader(session, handed).await,
            None => Ok(()),
        }
    }

    /// Commits the handover, and wakes the memory agent. If that agent accepts nothing just now,
    /// the handover is postponed: the session's own users do not wait for it.
    async fn hand_to_reader(
        &mut self,
        session: &SessionRow,
        handed: (Commit, SessionId),
    ) -> Result<(), DriverError> {
        let (commit, reader) = handed;
        store::point("broker.memory.before");
        match self.commit(commit).await {
            Ok(_) => {
                self.context.wake(vec![reader]);
                store::point("broker.memory.after");
                Ok(())
            }
            Err(failure) if is_of_reader(&failure, session.id) => {
                tracing::warn!(session.id = %session.id, error = &failure as &dyn std::error::Error,
                    "a session is not read just now: its memory agent takes nothing; trying again later");
                let later = self.context.core.now().plus_ms(RETRY_MS);
                self.set_due(session, Some(later)).await
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Records when a session is due to be read.
    async fn set_due(
        &mut self,
        session: &SessionRow,
        due: Option<Timestamp>,
    ) -> Result<(), DriverError> {
        let now = self.context.core.now();
        let event = Event::MemoryDue(MemoryDue {
            session: session.id,
            due,
            time: now,
        });
        let context = Context::new(hints::ORIGIN, now).about(session.agent, Some(session.id), None);
        let mut commit = Commit::new();
        add(&mut commit, Stream::Session(session.id), &context, event);
        self.commit(commit).await?;
        Ok(())
    }
}

/// Returns whether a reading is refused for the state of the memory agent and its session, and not
/// because the session that is read has moved on.
fn is_of_reader(failure: &CommitError, session: SessionId) -> bool {
    let CommitError::Conflict(conflict) = failure else {
        return false;
    };
    match &conflict.clash {
        Clash::Guard(Guard::Session(SessionGuard::Open(of))) => *of != session,
        Clash::Guard(Guard::Agent(_) | Guard::Queue(_)) => true,
        Clash::Guard(_) | Clash::Stream(_) | Clash::Row => false,
    }
}

impl SessionContext {
    /// Returns the event that makes a session due to be read once it is idle, if the definition of
    /// the ending run has its chats read.
    pub(super) fn due_after(&self, started: &RunStarted, time: Timestamp) -> Option<Event> {
        if started.session_type != CHAT || started.compacts.is_some() {
            return None;
        }
        let definition = self.served.catalogue.definition(&started.definition)?;
        let memory = definition.memory.as_ref()?;
        Some(Event::MemoryDue(MemoryDue {
            session: started.session,
            due: Some(time.plus_ms(u64::from(memory.idle_s) * 1_000)),
            time,
        }))
    }

    /// Returns the commit that hands over the unread part of a session, and the session that it
    /// wakes. None when nothing has to be read.
    async fn reading(
        &self,
        session: &SessionRow,
        because: TriggerEvent,
        now: Timestamp,
    ) -> Result<Option<(Commit, SessionId)>, DriverError> {
        let Some(head) = session.head.filter(|_| session.session_type == CHAT) else {
            return Ok(None);
        };
        let Some(agent) = self.store().agent(session.agent).await? else {
            return Ok(None);
        };
        // The threads of memory agents are not conversations with a user.
        if matches!(agent.kind, PathKind::Memory | PathKind::Search) {
            return Ok(None);
        }
        let Ok(led) = self.leads(&agent, session) else {
            return Ok(None);
        };
        let Some((settings, memory)) = self.memory_of(led.definition) else {
            return Ok(None);
        };
        if because == TriggerEvent::Compaction && !settings.before_compaction {
            return Ok(None);
        }
        let before = self.store().reading_of(session.id).await?;
        let read = match &before {
            Some(before) => self.still_read(head, before).await?,
            None => None,
        };
        let Some(chunk) = self.chunk_since(session, head, read).await? else {
            return Ok(None);
        };
        let to_read = ToRead {
            session,
            agent: &agent.agent,
            definition: led.definition,
            memory,
            now,
        };
        let Some(reader) = self.reader(to_read, before.as_ref()).await? else {
            return Ok(None);
        };
        let permissions = led.persona.map(Persona::permissions).unwrap_or_default();
        let draft = Draft {
            untrusted: self.thread_is_untrusted(Some(head)).await?,
            ..Draft::text(
                Role::User,
                hints::ORIGIN,
                reading(session.user_id.as_str(), &chunk.said),
            )
        };
        let handed = Handed {
            draft,
            permissions: permissions.both(&agent.agent.permissions),
            because,
            chunk,
        };
        Ok(Some(to_read.commit(reader, &handed)))
    }

    /// Returns how the chats of a definition are read, and by which definition's agent.
    fn memory_of<'a>(
        &'a self,
        definition: &'a Definition,
    ) -> Option<(&'a MemorySettings, &'a Arc<Definition>)> {
        let settings = definition.memory.as_ref()?;
        let memory = self.served.catalogue.definition(&settings.agent)?;
        Some((settings, memory))
    }

    /// Returns the last message of the turns that were read and are still in the thread; none if no
    /// such turn is left.
    async fn still_read(
        &self,
        head: TurnId,
        before: &ReadingRow,
    ) -> Result<Option<u64>, DriverError> {
        let there = self.store().turn_at(head, before.through_message).await?;
        if there.is_some_and(|there| there.id == before.through) {
            return Ok(Some(before.through_message));
        }
        // The session shows another thread now.
        let parting = self
            .store()
            .parting(Some(before.through), Some(head), LEFT_TURNS_MAX)
            .await?;
        let Some(common) = parting.and_then(|parting| parting.common) else {
            return Ok(None);
        };
        let common = self.store().turn(common).await?;
        Ok(common.map(|common| common.last_message))
    }

    /// Returns the oldest chunk of a thread after a message, with at least one message of a person;
    /// none if there is no such chunk.
    async fn chunk_since(
        &self,
        session: &SessionRow,
        head: TurnId,
        read: Option<u64>,
    ) -> Result<Option<UnreadChunk>, DriverError> {
        let Some(unread) = unread(read, session.head_message) else {
            return Ok(None);
        };
        let mut first = unread.first;
        while first <= unread.last {
            let last = first.saturating_add(READING_MESSAGES_MAX - 1);
            let last = last.min(unread.last);
            let mut messages = self.store().messages(Some(head), first, last).await?;
            messages.retain(|message| Mark::of(message).is_none());
            let fitting = fitting_messages(&messages, READING_BYTES_MAX);
            let is_cut = fitting < messages.len();
            messages.truncate(fitting);
            let through_message = messages
                .last()
                .filter(|_| is_cut)
                .map_or(last, |message| message.id);
            if messages.iter().any(|message| message.role == Role::User) {
                let through = self.store().turn_at(head, through_message).await?;
                return Ok(through.map(|through| UnreadChunk {
                    said: material(None, &messages, READING_BYTES_MAX),
                    through: through.id,
                    through_message,
                    is_cut: through_message < unread.last,
                }));
            }
            first = through_message.saturating_add(1);
        }
        Ok(None)
    }

    /// Returns the session in which a session is read: the same as before, or one that is opened
    /// for it. None when the memory agent cannot be made.
    async fn reader(
        &self,
        to_read: ToRead<'_>,
        before: Option<&ReadingRow>,
    ) -> Result<Option<Reader>, DriverError> {
        let ToRead { agent, .. } = to_read;
        let Ok(path) = agent.path.memory() else {
            tracing::warn!(
                path = %agent.path,
                "a session is not read: no path below its agent's fits"
            );
            return Ok(None);
        };
        let there: Option<AgentRow> = self.store().agent_at(path.as_str()).await?;
        let there = there.map(|row| row.agent.id);
        if let (Some(before), Some(there)) = (before, there)
            && let Some(row) = self.store().session(before.reader).await?
            && row.agent == there
            && row.status == SessionStatus::Open
        {
            return Ok(Some(Reader {
                agent: there,
                session: row.id,
                guards: vec![
                    Guard::Agent(AgentGuard::Active(there)),
                    Guard::Session(SessionGuard::Open(row.id)),
                    Guard::Queue(QueueGuard::WaitingAtMost {
                        session: row.id,
                        max: WAITING_INPUTS_MAX as u64 - 1,
                    }),
                ],
                events: Vec::new(),
            }));
        }
        let session = fresh::session();
        let (made, guard) = match there {
            Some(there) => (None, Guard::Agent(AgentGuard::Active(there))),
            None => {
                let agent_type = self.served.catalogue.agent_type(to_read.memory);
                let made = to_read.made(path.clone(), agent_type);
                (Some(made), Guard::Agent(AgentGuard::PathFree(path.into())))
            }
        };
        let reader = there
            .or(made.as_ref().map(|made| made.agent))
            .unwrap_or_else(fresh::agent);
        let mut events = Vec::new();
        events.extend(made.map(|made| (Stream::Agent(reader), Event::AgentCreated(made))));
        events.push((
            Stream::Session(session),
            Event::SessionOpened(to_read.opened(reader, session)),
        ));
        Ok(Some(Reader {
            agent: reader,
            session,
            guards: vec![guard],
            events,
        }))
    }
}

/// The work that a memory agent is handed.
struct Handed {
    draft: Draft,
    permissions: Permissions,
    because: TriggerEvent,
    chunk: UnreadChunk,
}

impl ToRead<'_> {
    /// Returns the event that makes the memory agent.
    fn made(&self, path: AgentPath, agent_type: String) -> AgentCreated {
        AgentCreated {
            agent: fresh::agent(),
            definition: self.memory.agent_id.clone(),
            path,
            kind: PathKind::Memory,
            config: AgentConfig::default(),
            parent: Some(self.agent.id),
            agent_type,
            owner_user_id: self.agent.owner_user_id.clone(),
            name: self.memory.display_name.clone(),
            denies: self.agent.denies.and_of(self.definition),
            permissions: self.agent.permissions.clone(),
            created_at: self.now,
        }
    }

    fn opened(&self, agent: AgentId, session: SessionId) -> SessionOpened {
        SessionOpened {
            started_by: format!("agent:{}", self.agent.path),
            ..SessionOpened::chat(
                agent,
                session,
                fresh::conversation(),
                self.session.user_id.clone(),
                self.now,
            )
        }
    }

    fn accepted(&self, reader: SessionId, input: InputId, handed: &Handed) -> InputAccepted {
        InputAccepted {
            user_id: self.session.user_id.clone(),
            message: Some(handed.draft.clone()),
            ..InputAccepted::of(
                reader,
                input,
                Source::Dispatch {
                    reply_to: None,
                    from: self.agent.path.to_string(),
                    deadline: None,
                    depth: 0,
                    hops: 0,
                    // Work that its user waits for goes first.
                    priority: Priority::Low,
                    spawn_depth: 0,
                    budget: Budget::default(),
                    denies: self.agent.denies.and_of(self.definition),
                    permissions: handed.permissions.clone(),
                    accounts: Accounts::default(),
                },
                self.now,
            )
        }
    }

    /// Returns the commit that hands the words over, and the session that gets them.
    fn commit(&self, reader: Reader, handed: &Handed) -> (Commit, SessionId) {
        let session = self.session;
        let chunk = &handed.chunk;
        let input = fresh::input();
        let context = Context::new(hints::ORIGIN, self.now);
        let of_reader = context
            .clone()
            .about(reader.agent, Some(reader.session), None);
        let of_session = context.about(session.agent, Some(session.id), None);
        let mut commit = Commit::new();
        commit.guards = reader.guards;
        commit.guards.extend([
            Guard::Session(SessionGuard::Open(session.id)),
            Guard::Session(SessionGuard::Head {
                session: session.id,
                head: session.head,
                revision: session.revision,
            }),
        ]);
        for (stream, event) in reader.events {
            add(&mut commit, stream, &of_reader, event);
        }
        let accepted = self.accepted(reader.session, input, handed);
        let stream = Stream::Session(reader.session);
        add(
            &mut commit,
            stream,
            &of_reader.following(Some(input)),
            Event::InputAccepted(accepted),
        );
        let read = MemoryRead {
            session: session.id,
            agent: reader.agent,
            reader: reader.session,
            through: chunk.through,
            through_message: chunk.through_message,
            input,
            because: handed.because,
            time: self.now,
        };
        add(
            &mut commit,
            Stream::Session(session.id),
            &of_session,
            Event::MemoryRead(read),
        );
        if chunk.is_cut {
            let due = Event::MemoryDue(MemoryDue {
                session: session.id,
                due: Some(self.now),
                time: self.now,
            });
            add(&mut commit, Stream::Session(session.id), &of_session, due);
        }
        (commit, reader.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Conflict;

    #[test]
    fn what_the_memory_agent_refuses_is_told_from_what_became_of_the_session() {
        let read = fresh::session();
        let reader = fresh::session();
        let head = SessionGuard::Head {
            session: read,
            head: None,
            revision: 1,
        };
        let full = QueueGuard::WaitingAtMost {
            session: reader,
            max: 1,
        };
        for (guard, expected) in [
            (Guard::from(full), true),
            (Guard::from(SessionGuard::Open(reader)), true),
            (Guard::from(AgentGuard::Active(fresh::agent())), true),
            (
                Guard::from(AgentGuard::PathFree("/a/memory".to_owned())),
                true,
            ),
            (Guard::from(SessionGuard::Open(read)), false),
            (Guard::from(head), false),
        ] {
            let reported = format!("{guard:?}");
            let failure = CommitError::Conflict(Conflict {
                clash: Clash::Guard(guard),
                detail: String::new(),
            });
            assert_eq!(is_of_reader(&failure, read), expected, "{reported}");
        }
    }
}
