//! Full-text search over messages in sessions that a user may see.

use super::recall::any_of;
use super::{Clearance, ReadError};
use crate::full_text::{self, is_behind};
use crate::guard::ChatWith;
use crate::projections::owner_token;
use crate::query::{Query, Rows, Value};
use crate::sql::{self, Columns, named, row, text};
use crate::sqlite::ids;
use crate::store::Store;
use crate::writer::Request;
use domain::id::{AgentId, SessionId, TurnId};
use domain::message::{Message, MessageId};
use domain::persona::PersonaId;
use domain::routing::FoundMessage;
use domain::time::Timestamp;
use domain::user::UserId;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Maximum time that a search waits for the index, in milliseconds. After that it returns hits from
/// the indexed rows.
const WAIT_MS: u64 = 2_000;

row! {
    /// A message that was found.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Found {
        /// The message.
        pub message: Message as packed = "m.message",
        /// Its place in its thread.
        pub place: MessageId = "r.message",
        /// The turn that it belongs to.
        pub turn: TurnId = "r.turn",
        /// The session of the message.
        pub session: SessionId = "r.session",
        /// Name of that session.
        pub session_name: Option<String> = "s.name",
        /// Its agent.
        pub agent: AgentId = "s.agent",
        /// Time of the message.
        pub time: Timestamp = "r.time",
    }
}

impl Store {
    /// Returns messages with any of the query's words, in sessions that a user may see. Deleted
    /// sessions are left out; without an agent, the search covers all agents. The best come first,
    /// of equally good ones the latest, at most `limit`. A query consists of words, without
    /// operators.
    pub async fn search(
        &self,
        clearance: &Clearance,
        agent: Option<AgentId>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Found>, ReadError> {
        let Some(words) = any_of(query) else {
            return Ok(Vec::new());
        };
        let expression = match agent {
            Some(agent) => format!("agent : \"{}\" AND {words}", owner_token(agent)),
            None => words,
        };
        let clearance = clearance.clone();
        self.index_all().await;
        self.read(move |sql| {
            let text = text!(
                "SELECT ",
                Found::COLUMNS,
                " FROM ",
                full_text::ALL.found,
                " JOIN sessions s ON s.id = r.session JOIN access a ON a.agent = s.agent AND \
                 a.user_id = :user_id JOIN messages m ON m.run = r.run AND m.id = r.message WHERE ",
                full_text::ALL.matches,
                " AND r.note IS NULL AND s.status != 'deleted' AND (a.role != 'mentee' OR \
                 s.user_id = :user_id) AND s.agent NOT IN ",
                ids!("hidden"),
                " \
                 ORDER BY round(",
                full_text::ALL.rank,
                ", 1), r.time DESC, r.id DESC LIMIT :limit"
            );
            let params = named![
                words = expression,
                user_id = clearance.user(),
                limit,
                hidden = clearance.hidden()
            ];
            sql.all(text, params)
        })
        .await
    }
}

impl Store {
    /// Has the index brought up to the last row. A search during which that is impossible returns
    /// hits from the indexed rows.
    pub(crate) async fn index_all(&self) {
        match timeout(Duration::from_millis(WAIT_MS), self.index_chunks()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(error, "a search finds what is indexed so far"),
            Err(_) => tracing::debug!("a search does not wait for the index any longer"),
        }
    }

    async fn index_chunks(&self) -> Result<(), String> {
        while self
            .point_read(is_behind)
            .await
            .map_err(|error| error.to_string())?
        {
            let (reply, answer) = oneshot::channel();
            self.ask_writer(Request::Index(reply))
                .map_err(|error| error.to_string())?;
            answer
                .await
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Maximum number of messages that are considered for one choice, the best first.
const FOUND_MAX: u32 = 200;

/// Among which threads one is sought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Among {
    /// Sessions of this agent only.
    pub agent: Option<AgentId>,
    /// Sessions that are led as this persona only.
    pub persona: Option<PersonaId>,
}

impl Store {
    /// The session in which a turn was made or imported, and its agent; none when there is no such
    /// turn.
    pub async fn session_of_turn(
        &self,
        turn: TurnId,
    ) -> Result<Option<(AgentId, SessionId)>, ReadError> {
        self.point_read(move |sql| {
            let text = "SELECT sessions.agent, sessions.id FROM turns JOIN sessions ON sessions.id \
                        = turns.session WHERE turns.id = ?1";
            sql.one(text, [turn])
        })
        .await
    }

    /// Returns the user's open chat whose head is a turn, the latest of several, and its agent;
    /// none if there is no such chat. A chat whose thread was compacted after the turn still
    /// counts: it has had no message since.
    pub async fn chat_at(
        &self,
        user: &UserId,
        turn: TurnId,
    ) -> Result<Option<(AgentId, SessionId)>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| read_chat(&sql.ask(&chat_at_query(&user, &turn))?))
            .await
    }

    /// The chat of a user with an agent that has the latest activity and no persona; none without
    /// such a chat. A session that a trigger began for a trigger run of its own does not count.
    pub async fn latest_chat(
        &self,
        user: &UserId,
        agent: AgentId,
    ) -> Result<Option<SessionId>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            let chat = read_chat(&sql.ask(&latest_chat_query(&user, agent))?)?;
            Ok(chat.map(|(_, session)| session))
        })
        .await
    }

    /// The main session of a user with a persona, which is the one with the latest activity, and
    /// its agent. A session that a trigger began for a trigger run of its own does not count.
    pub async fn main_session(
        &self,
        user: &UserId,
        persona: &PersonaId,
    ) -> Result<Option<(AgentId, SessionId)>, ReadError> {
        let user = user.clone();
        let persona = persona.clone();
        self.point_read(move |sql| read_chat(&sql.ask(&main_session_query(&user, &persona))?))
            .await
    }

    /// Returns messages with any of the words in a user's own open chats, the best first. Only
    /// agents that the user may see count.
    pub async fn speaks_of(
        &self,
        clearance: &Clearance,
        among: Among,
        words: &str,
    ) -> Result<Vec<FoundMessage>, ReadError> {
        let Some(expression) = any_of(words) else {
            return Ok(Vec::new());
        };
        let clearance = clearance.clone();
        self.index_all().await;
        self.read(move |sql| {
            let Among { agent, persona } = among;
            let text = text!(
                "SELECT r.session, -",
                full_text::ALL.rank,
                ", r.time FROM ",
                full_text::ALL.found,
                " JOIN sessions s ON s.id = r.session JOIN agents a ON a.id = s.agent JOIN access \
                 ON access.agent = s.agent AND access.user_id = :user WHERE ",
                full_text::ALL.matches,
                " AND r.turn IS NOT NULL AND s.user_id = :user AND s.session_type = 'chat' AND \
                 s.status = 'open' AND a.active AND (:agent IS NULL OR s.agent = :agent) AND \
                 (:persona IS NULL OR s.persona = :persona) AND s.agent NOT IN ",
                ids!("hidden"),
                " ORDER BY ",
                full_text::ALL.rank,
                ", r.id DESC LIMIT :limit"
            );
            let params = named![
                words = expression,
                user = clearance.user(),
                agent,
                persona,
                limit = FOUND_MAX,
                hidden = clearance.hidden()
            ];
            let found = sql.all(text, params)?;
            let found = found.into_iter().map(|(session, rank, time)| FoundMessage {
                session,
                rank,
                time,
            });
            Ok(found.collect())
        })
        .await
    }
}

/// The query for the chat that takes messages to an addressee.
pub(crate) fn chat_query<'q>(user: &'q UserId, with: &'q ChatWith) -> Query<'q> {
    match with {
        ChatWith::Agent(agent) => latest_chat_query(user, *agent),
        ChatWith::Persona(persona) => main_session_query(user, persona),
        ChatWith::Turn(turn) => chat_at_query(user, turn),
    }
}

fn chat_at_query<'q>(user: &'q UserId, turn: &'q TurnId) -> Query<'q> {
    let text = "SELECT agent, id FROM sessions WHERE head IN (SELECT ?1 UNION ALL SELECT t.id FROM \
                turns t JOIN messages m ON m.run = t.run AND m.id = t.first_message WHERE t.parent \
                = ?1 AND t.first_message = t.last_message AND m.role = 'notice' AND \
                m.origin IN ('host:compaction', 'pi:compaction')) AND \
                user_id = ?2 AND session_type = 'chat' AND status = 'open' ORDER BY updated_at \
                DESC, id LIMIT 1";
    Query::new(text, [Value::digest(&turn.0), Value::text(user.as_str())])
}

fn latest_chat_query(user: &UserId, agent: AgentId) -> Query<'_> {
    let text = "SELECT agent, id FROM sessions WHERE agent = ?1 AND user_id = ?2 AND session_type \
                = 'chat' AND status = 'open' AND persona IS NULL AND started_by NOT LIKE \
                'trigger:%' ORDER BY updated_at DESC, id LIMIT 1";
    Query::new(text, [Value::id(&agent), Value::text(user.as_str())])
}

fn main_session_query<'q>(user: &'q UserId, persona: &'q PersonaId) -> Query<'q> {
    let text = "SELECT sessions.agent, sessions.id FROM sessions JOIN agents ON agents.id = \
                sessions.agent WHERE sessions.persona = ?1 AND sessions.user_id = ?2 AND \
                sessions.session_type = 'chat' AND sessions.status = 'open' AND agents.active AND \
                sessions.started_by NOT LIKE 'trigger:%' ORDER BY sessions.updated_at DESC, \
                sessions.id LIMIT 1";
    Query::new(
        text,
        [Value::text(persona.as_str()), Value::text(user.as_str())],
    )
}

/// Reads the row that answers [`chat_query`]: the chat and its agent.
pub(crate) fn read_chat(rows: &Rows) -> sql::Result<Option<(AgentId, SessionId)>> {
    let chat = rows.first().map(|row| Ok((row.get(0)?, row.get(1)?)));
    chat.transpose()
}
