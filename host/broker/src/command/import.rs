//! Import of sessions from the system that this one replaces.
//!
//! There is one agent for each user and session type, and each session is imported once.

use super::Whom;
use super::agents::making;
use super::once::lands;
use super::opening::CONFIG_BYTES_MAX;
use super::{Error, Imports, Target};
use crate::boxed::boxed;
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::busy;
use crate::resolved_config::Sealed;
use domain::agent::Agent;
use domain::agent::start_session::Beginning;
use domain::definition::Definition;
use domain::error_code::ErrorCode;
use domain::event::{Event, InputAccepted, ItemRecorded, SessionOpened, Source};
use domain::id::{AgentId, SessionId, Stream};
use domain::import::{FORMAT, ImportStatus, OldItem, OldSession};
use domain::refusal::Refusal;
use domain::role::Right;
use domain::session::CHAT;
use domain::time::Timestamp;
use domain::user::UserId;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{AgentGuard, AgentRow, Commit, Expected, Guard};

/// Number of tries of one session while others change its agent at the same time.
const TRIES_MAX: u32 = 8;

/// The counts of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Imported {
    /// Number of sessions that joined a history.
    pub ended: u64,
    /// Number of sessions that stay active, led by their agent from the beginning.
    pub active: u64,
    /// Number of sessions that were here before.
    pub known: u64,
    /// Number of agents that the imported sessions belong to.
    pub agents: u64,
}

impl Imports<'_> {
    /// Checks that sessions can be imported. Nothing changes.
    ///
    /// # Errors
    /// The first session that cannot be imported: no agent leads its type, its configuration
    /// exceeds that of a new session, or its id belongs to another session.
    #[boxed]
    pub async fn check(&self, sessions: &[OldSession]) -> Result<(), Error> {
        let now = self.core.now();
        for session in sessions {
            self.leading(session)?;
            check_config(session, now)?;
            let there = self.store().session(session.session_id).await?;
            if there.is_some_and(|row| {
                row.user_id != session.user_id || row.session_type != session.session_type
            }) {
                let message = format!(
                    "session {}: this host has another session of this id, of another user or type",
                    session.session_id
                );
                return Err(Refusal::new(ErrorCode::Invalid, message)
                    .at("/sessions")
                    .into());
            }
        }
        Ok(())
    }

    /// Imports old sessions, in the order in which they began. A session that is here already is
    /// passed over.
    ///
    /// # Errors
    /// One of them cannot be imported: then none is. If the store fails in between, the import ends
    /// early. The imported sessions stay, and another import continues from there.
    #[boxed]
    pub async fn run(&self, by: &UserId, sessions: &[OldSession]) -> Result<Imported, Error> {
        self.check(sessions).await?;
        let now = self.core.now();
        // Per user and type, only the latest session stays active: an agent leads one at a time.
        let mut latest: BTreeMap<(&UserId, &str), SessionId> = BTreeMap::new();
        for session in sessions
            .iter()
            .filter(|session| matches!(session.import_status(now), ImportStatus::GoesOn { .. }))
        {
            latest.insert(
                (&session.user_id, &session.session_type),
                session.session_id,
            );
        }
        let mut imported = Imported::default();
        let mut agents = BTreeSet::new();
        for session in sessions {
            let is_latest = latest.get(&(&session.user_id, session.session_type.as_str()))
                == Some(&session.session_id);
            match self.import_one(by, session, is_latest, now).await? {
                None => imported.known += 1,
                Some((agent, goes_on)) => {
                    agents.insert(agent);
                    *(if goes_on {
                        &mut imported.active
                    } else {
                        &mut imported.ended
                    }) += 1;
                }
            }
        }
        imported.agents = agents.len() as u64;
        // The time limit of an active session may be the next timer that is due.
        self.core.timers.notify_one();
        Ok(imported)
    }

    /// Imports one session. Returns its agent, and whether it stays active; none if it already
    /// exists.
    async fn import_one(
        &self,
        by: &UserId,
        session: &OldSession,
        is_latest: bool,
        now: Timestamp,
    ) -> Result<Option<(AgentId, bool)>, Error> {
        let definition = self.leading(session)?;
        for _ in 0..TRIES_MAX {
            if self.store().session(session.session_id).await?.is_some() {
                return Ok(None);
            }
            let target = Target::Definition(definition.agent_id.clone());
            let row = match self
                .agents()
                .find_or_make(&session.user_id, &target, Right::Interact)
                .await?
            {
                Whom::There(row, _) => row,
                // Afterwards the agent exists, whoever made it.
                Whom::New(created) => {
                    let making = making(&session.user_id, *created);
                    lands(self.store().commit(making).await)?;
                    continue;
                }
            };
            let going = match session.import_status(now) {
                ImportStatus::GoesOn { left_ms }
                    if is_latest && row.agent.active_session.is_none() =>
                {
                    let of_host = definition
                        .session_policy(&session.session_type)
                        .time_limit_ms(None);
                    Some(Going {
                        limit_ms: left_ms.into_iter().chain(of_host).min(),
                    })
                }
                ImportStatus::GoesOn { .. } | ImportStatus::Overdue(_) | ImportStatus::Ended => {
                    None
                }
            };
            let sessions = self.sessions();
            let joining = sessions
                .joining(&session.user_id, Some(session.conversation_id))
                .await
                .map_err(|error| at_session(error, session.place))?;
            let mut commit = import_commit(by, session, &row, going, now)?;
            commit.guards.extend(joining.map(Guard::from));
            let committed = match going {
                Some(_) => self.core.commit_work(session.session_id, commit).await,
                None => self.store().commit(commit).await,
            };
            if lands(committed)? {
                return Ok(Some((row.agent.id, going.is_some())));
            }
        }
        Err(busy(
            "an agent is changing at this moment; import again, which goes on where this ended",
        )
        .into())
    }

    /// Returns the definition whose agents lead a session's type.
    fn leading(&self, session: &OldSession) -> Result<Arc<Definition>, Refusal> {
        let OldSession {
            session_type,
            place,
            ..
        } = session;
        let no = |message: String| {
            Refusal::new(ErrorCode::Invalid, message).at(format!("/sessions/{place}/session_type"))
        };
        if session_type == CHAT {
            return Err(no(
                "a chat is no structured session, and only those are imported; leave it out"
                    .to_owned(),
            ));
        }
        let nobody = || {
            no(format!(
                "no agent of this host leads `{session_type}` sessions; configure one, and import \
                 again"
            ))
        };
        let served = self.core.served();
        let leading = served.catalogue.leading(session_type);
        leading.cloned().ok_or_else(nobody)
    }
}

/// Returns a refusal of a session's field with the session's place in the document.
fn at_session(error: Error, place: usize) -> Error {
    match error {
        Error::Refused(refusal) => {
            let field = refusal.field.clone().unwrap_or_default();
            refusal.at(format!("/sessions/{place}{field}")).into()
        }
        other => other,
    }
}

/// Checks that a session is opened with no more bytes than any other.
fn check_config(session: &OldSession, now: Timestamp) -> Result<(), Refusal> {
    let place = session.place;
    let bytes = |config: &Map<String, Value>| Sealed::json(config).bytes.len();
    let no = |what: &str, field: String| {
        let message = format!("{what} at most {CONFIG_BYTES_MAX} bytes as JSON");
        Err(Refusal::new(ErrorCode::Invalid, message).at(field))
    };
    if session
        .config
        .as_ref()
        .is_some_and(|config| bytes(config) > CONFIG_BYTES_MAX)
    {
        return no(
            "what a session is opened with has",
            format!("/sessions/{place}/config"),
        );
    }
    if matches!(session.import_status(now), ImportStatus::GoesOn { .. })
        && bytes(&session.handed_over()) > CONFIG_BYTES_MAX
    {
        let what = "the config of a session that goes on, its ui_state and what was asked in it \
                    and not answered have together";
        return no(what, format!("/sessions/{place}"));
    }
    Ok(())
}

/// The data of a session that stays active.
#[derive(Debug, Clone, Copy)]
struct Going {
    /// Milliseconds that it may last from now on; none without a limit.
    limit_ms: Option<u64>,
}

/// Returns the commit of one session with all its data.
fn import_commit(
    by: &UserId,
    session: &OldSession,
    row: &AgentRow,
    going: Option<Going>,
    now: Timestamp,
) -> Result<Commit, Refusal> {
    let config = match going {
        Some(_) => Some(session.handed_over()),
        None => session.config.clone(),
    };
    let config = config
        .filter(|config| !config.is_empty())
        .map(|config| Sealed::json(&config));
    let agent = row.agent.id;
    let id = session.session_id;
    let context = Context::by(by, now).about(agent, Some(id), None);
    let mut events = vec![Event::SessionOpened(SessionOpened {
        session_type: session.session_type.clone(),
        config: config.as_ref().map(|config| config.digest),
        ..SessionOpened::chat(
            agent,
            id,
            session.conversation_id,
            session.user_id.clone(),
            session.started_at,
        )
    })];
    events.extend(
        (1_u32..)
            .zip(&session.items)
            .map(|(sequence, item)| recorded(session, sequence, item)),
    );
    let change = agent_event(session, &row.agent, going, now)?;
    if going.is_some() {
        events.push(Event::InputAccepted(InputAccepted {
            user_id: session.user_id.clone(),
            ..InputAccepted::of(id, fresh::input(), Source::Opening, now)
        }));
    }
    let mut commit = Commit::new()
        .guard(AgentGuard::Active(agent))
        .append(Stream::Session(id), Expected::New, context.events(events))
        .append(
            Stream::Agent(agent),
            Expected::Version(row.version),
            vec![context.event(change)],
        );
    commit.blobs = config
        .into_iter()
        .map(|config| config.bytes.to_vec())
        .collect();
    Ok(commit)
}

/// Returns the event of an item, as it is stored on the session's record.
fn recorded(session: &OldSession, sequence: u32, item: &OldItem) -> Event {
    let answered = item.answered.as_ref();
    Event::ItemRecorded(ItemRecorded {
        session: session.session_id,
        item: item.id.clone(),
        sequence: Some(sequence),
        prompt: item.prompt.clone(),
        response: answered
            .map(|answered| answered.response.clone())
            .unwrap_or_default(),
        imported: true,
        evaluation: item.evaluation.clone(),
        client_action: item.shown.as_ref().map(|shown| shown.action.clone()),
        asked_at: item.asked,
        answered_at: answered.map(|answered| answered.time),
        time: answered
            .map(|answered| answered.time)
            .or(item.asked)
            .unwrap_or(session.started_at),
    })
}

/// Returns the event of the session for its agent's stream.
fn agent_event(
    session: &OldSession,
    agent: &Agent,
    going: Option<Going>,
    now: Timestamp,
) -> Result<Event, Refusal> {
    if let Some(Going { limit_ms }) = going {
        let beginning = Beginning {
            session_id: session.session_id,
            conversation_id: session.conversation_id,
            session_type: session.session_type.clone(),
            started_by: session.user_id.clone(),
            time_limit_ms: limit_ms,
            items_imported: u32::try_from(session.items.len()).unwrap_or(u32::MAX),
        };
        return agent.start_session(beginning, now);
    }
    let past = session.past("another session was active when this one was imported", now);
    agent.import_session(past, FORMAT.to_owned(), now)
}
