//! Importing sessions of the system that this one replaces: one agent for each user and session type, each session once.

use super::agents::{Whom, making};
use super::opening::CONFIG_BYTES_MAX;
use super::{Broker, Error, Target};
use crate::core::fresh;
use crate::journal::Context;
use crate::outfit::Sealed;
use domain::agent::Agent;
use domain::agent::role::Right;
use domain::agent::start_session::Beginning;
use domain::definition::DefinitionId;
use domain::event::{Event, InputAccepted, ItemRecorded, SessionImported, SessionOpened, Source};
use domain::id::Stream;
use domain::import::{FORMAT, OldSession};
use domain::refusal::{Kind, Refusal};
use domain::time::Timestamp;
use domain::user::UserId;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use store::{AgentRow, Commit, CommitError, Expected, Guard};

/// How often one session is tried when others change its agent at the same time.
const TRIES_MAX: u32 = 8;

/// What an import came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Imported {
    /// Sessions that joined a history.
    pub ended: u64,
    /// Sessions that go on, led by their agent from its beginning.
    pub active: u64,
    /// Sessions that were here before.
    pub known: u64,
    /// The agents that they belong to.
    pub agents: u64,
}

impl Broker {
    /// Imports old sessions, in the order in which they began. Done again, it imports nothing again: a session that is here is passed over.
    ///
    /// # Errors
    /// No definition leads a session's type: then nothing is imported. Anything else ends it in between; what was imported stays.
    pub async fn import(&self, by: &UserId, sessions: Vec<OldSession>) -> Result<Imported, Error> {
        let mut leading: BTreeMap<String, DefinitionId> = BTreeMap::new();
        for session in &sessions {
            if !leading.contains_key(&session.session_type) {
                let definition = self.core.catalogue.leading(&session.session_type).ok_or_else(|| nobody_leads(&session.session_type))?;
                leading.insert(session.session_type.clone(), definition.agent_id.clone());
            }
        }
        for session in &sessions {
            check_config(session)?;
        }
        // The one that goes on is the one that began last: an agent leads one at a time.
        let mut latest: BTreeMap<(UserId, String), usize> = BTreeMap::new();
        for (at, session) in sessions.iter().enumerate().filter(|(_, session)| session.goes_on()) {
            latest.insert((session.user_id.clone(), session.session_type.clone()), at);
        }
        let (mut imported, mut agents) = (Imported::default(), BTreeSet::new());
        for (at, session) in sessions.iter().enumerate() {
            if self.core.store.session(session.session_id).await?.is_some() {
                imported.known += 1;
                continue;
            }
            let Some(definition) = leading.get(&session.session_type) else { continue };
            let is_latest = latest.get(&(session.user_id.clone(), session.session_type.clone())) == Some(&at);
            let (agent, active) = self.import_one(by, session, definition, is_latest).await?;
            agents.insert(agent);
            if active {
                imported.active += 1;
            } else {
                imported.ended += 1;
            }
        }
        imported.agents = agents.len() as u64;
        Ok(imported)
    }

    /// Imports one session; its agent, and whether it goes on.
    async fn import_one(
        &self,
        by: &UserId,
        session: &OldSession,
        definition: &DefinitionId,
        is_latest: bool,
    ) -> Result<(domain::id::AgentId, bool), Error> {
        for _ in 0..TRIES_MAX {
            let target = Target::Definition(definition.clone());
            let row = match self.find_or_make(&session.user_id, &target, Right::Interact).await? {
                Whom::There(row, _) => row,
                // Then it is there, whoever made it.
                Whom::New(created) => match self.core.store.commit(making(&session.user_id, *created)).await {
                    Ok(_) | Err(CommitError::Conflict(_)) => continue,
                    Err(error) => return Err(error.into()),
                },
            };
            let goes_on = is_latest && row.agent.active_session.is_none();
            let limit_ms = self.definition(definition)?.session_policy(&session.session_type).time_limit_ms(None);
            let commit = import_commit(by, session, &row, goes_on.then_some(Going { limit_ms }), self.core.now())?;
            let committed =
                if goes_on { self.core.commit_work(session.session_id, commit).await } else { self.core.store.commit(commit).await };
            match committed {
                Ok(_) => return Ok((row.agent.id, goes_on)),
                Err(CommitError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(crate::refusals::busy("an agent is changing at this moment; import again, which goes on where this ended").into())
    }
}

fn check_config(session: &OldSession) -> Result<(), Refusal> {
    if session.config.as_ref().is_some_and(|config| Sealed::json(config).bytes.len() > CONFIG_BYTES_MAX) {
        let message = format!("session {}: what it is opened with has at most {CONFIG_BYTES_MAX} bytes as JSON", session.session_id);
        return Err(Refusal::new(Kind::Invalid, "INVALID", message).at("/sessions"));
    }
    Ok(())
}

fn nobody_leads(session_type: &str) -> Refusal {
    let message = format!("no agent of this host leads `{session_type}` sessions; configure one, and import again");
    Refusal::new(Kind::Invalid, "INVALID", message).at("/sessions")
}

/// How a session that goes on does so.
#[derive(Debug, Clone, Copy)]
struct Going {
    /// How long it may last from now on.
    limit_ms: Option<u64>,
}

/// Everything of one session, stored together.
fn import_commit(by: &UserId, session: &OldSession, row: &AgentRow, going: Option<Going>, now: Timestamp) -> Result<Commit, Refusal> {
    let config = session.config.as_ref().filter(|config| !config.is_empty()).map(Sealed::json);
    let (agent, id) = (row.agent.id, session.session_id);
    let context = Context::new(format!("user:{by}"), now).about(agent, Some(id), None);
    let mut events = vec![Event::SessionOpened(SessionOpened {
        session: id,
        agent,
        session_type: session.session_type.clone(),
        conversation: session.conversation_id,
        name: None,
        head: None,
        model: None,
        started_by: format!("user:{}", session.user_id),
        user_id: session.user_id.clone(),
        config: config.as_ref().map(|config| config.digest),
        time: session.started_at,
    })];
    events.extend((1_u32..).zip(session.answered()).map(|(sequence, item)| {
        Event::ItemRecorded(ItemRecorded {
            session: id,
            item: item.id.unwrap_or_else(|| format!("imported-{sequence}")),
            sequence,
            prompt: item.prompt,
            response: item.response,
            evaluation: item.evaluation,
            client_action: item.client_action,
            asked_at: item.asked,
            answered_at: Some(item.time),
            time: item.time,
        })
    }));
    let told = told(session, &row.agent, going, now)?;
    if going.is_some() {
        events.push(Event::InputAccepted(InputAccepted {
            input: fresh::input(),
            session: id,
            source: Source::Opening,
            user_id: Some(session.user_id.clone()),
            message: None,
            model: None,
            time: now,
        }));
    }
    let mut commit = Commit::new()
        .guard(Guard::AgentActive(agent))
        .append(Stream::Session(id), Expected::New, context.events(events))
        .append(Stream::Agent(agent), Expected::Version(row.version), vec![context.event(told)]);
    commit.blobs = config.into_iter().map(|config| config.bytes.to_vec()).collect();
    Ok(commit)
}

/// What the agent's stream has of it.
fn told(session: &OldSession, agent: &Agent, going: Option<Going>, now: Timestamp) -> Result<Event, Refusal> {
    if let Some(Going { limit_ms }) = going {
        let beginning = Beginning {
            session_id: session.session_id,
            conversation_id: session.conversation_id,
            session_type: session.session_type.clone(),
            started_by: session.user_id.clone(),
            time_limit_ms: limit_ms,
        };
        return agent.start_session(beginning, now);
    }
    let reason = session.goes_on().then(|| "another session was active when this one was imported".to_owned());
    let imported = SessionImported { agent: agent.id, session: session.past(reason, now), source: FORMAT.to_owned(), imported_at: now };
    Ok(Event::SessionImported(imported))
}
