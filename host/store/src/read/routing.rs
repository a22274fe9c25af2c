//! Lookups for routing: the session meant by a turn, an agent, a persona, or by the messages in it.

use super::ReadError;
use super::recall::any_of;
use crate::commit::ChatWith;
use crate::sql::{Columns, Sql};
use crate::store::Store;
use domain::id::{AgentId, SessionId, TurnId};
use domain::persona::PersonaId;
use domain::routing::Found;
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::params;

/// Messages that are looked at for one choice, the best first.
const FOUND_MAX: u32 = 200;

/// Among which threads one is sought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Among {
    /// Those of this agent.
    pub agent: Option<AgentId>,
    /// Those that are led as this persona.
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
            sql.row(text, [turn.0.0], |row| Ok((row.id(0)?, row.id(1)?)))
        })
        .await
    }

    /// Returns the open chat of a user that is at a turn, the latest of several, and its agent;
    /// none when there is none. A chat whose thread was compacted after the turn is at it still: no
    /// message has come since.
    pub async fn chat_at(
        &self,
        user: &UserId,
        turn: TurnId,
    ) -> Result<Option<(AgentId, SessionId)>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| chat_at(sql, &user, turn)).await
    }

    /// The chat of a user with an agent that something last happened in, and that no persona leads;
    /// none when there is none.
    pub async fn latest_chat(
        &self,
        user: &UserId,
        agent: AgentId,
    ) -> Result<Option<SessionId>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| latest_chat(sql, &user, agent))
            .await
    }

    /// The main session of a user with a persona: the one that something last happened in, and its
    /// agent.
    pub async fn main_session(
        &self,
        user: &UserId,
        persona: &PersonaId,
    ) -> Result<Option<(AgentId, SessionId)>, ReadError> {
        let (user, persona) = (user.clone(), persona.clone());
        self.point_read(move |sql| main_session(sql, &user, &persona))
            .await
    }

    /// Returns messages with any of the words in a user's own open chats, the best first. Only
    /// agents that the user may see count.
    pub async fn speaks_of(
        &self,
        user: &UserId,
        among: Among,
        words: &str,
    ) -> Result<Vec<Found>, ReadError> {
        let Some(expression) = any_of(words) else {
            return Ok(Vec::new());
        };
        let user = user.clone();
        self.index_all().await;
        self.read(move |sql| {
            let Among { agent, persona } = among;
            let text = "SELECT r.session, -bm25(recall_index, 0.0, 1.0), r.time FROM recall_index \
                        JOIN recall r ON r.id = recall_index.rowid JOIN sessions s ON s.id = \
                        r.session \
                        JOIN agents a ON a.id = s.agent JOIN access ON access.agent = s.agent AND \
                        access.user_id = ?2 \
                        WHERE recall_index MATCH ?1 AND r.turn IS NOT NULL AND s.user_id = ?2 AND \
                        s.session_type = 'chat' \
                        AND s.status = 'open' AND a.active AND (?3 IS NULL OR s.agent = ?3) AND \
                        (?4 IS NULL OR s.persona = ?4) \
                        ORDER BY bm25(recall_index, 0.0, 1.0), r.id DESC LIMIT ?5";
            let persona = persona.as_ref().map(PersonaId::as_str);
            let params = params![
                expression,
                user.as_str(),
                agent.map(|agent| agent.to_string()),
                persona,
                FOUND_MAX
            ];
            sql.rows(text, params, |row| {
                Ok(Found {
                    session: row.id(0)?,
                    rank: row.get(1)?,
                    time: Timestamp(row.uint(2)?),
                })
            })
        })
        .await
    }
}

/// The chat that takes words which are addressed to this.
pub(crate) fn chat_with(
    sql: &Sql<'_>,
    user: &UserId,
    with: &ChatWith,
) -> rusqlite::Result<Option<SessionId>> {
    match with {
        ChatWith::Agent(agent) => latest_chat(sql, user, *agent),
        ChatWith::Persona(persona) => {
            Ok(main_session(sql, user, persona)?.map(|(_, session)| session))
        }
        ChatWith::Turn(turn) => Ok(chat_at(sql, user, *turn)?.map(|(_, session)| session)),
    }
}

fn chat_at(
    sql: &Sql<'_>,
    user: &UserId,
    turn: TurnId,
) -> rusqlite::Result<Option<(AgentId, SessionId)>> {
    let text = "SELECT agent, id FROM sessions WHERE head IN (SELECT ?1 UNION ALL \
                SELECT t.id FROM turns t JOIN messages m ON m.run = t.run AND m.id = \
                t.first_message \
                WHERE t.parent = ?1 AND t.first_message = t.last_message AND m.role = 'notice' \
                AND json_extract(m.message, '$.origin') IN ('host:compaction', 'pi:compaction')) \
                AND user_id = ?2 AND session_type = 'chat' AND status = 'open' ORDER BY updated_at \
                DESC, id LIMIT 1";
    sql.row(text, params![turn.0.0, user.as_str()], |row| {
        Ok((row.id(0)?, row.id(1)?))
    })
}

fn latest_chat(
    sql: &Sql<'_>,
    user: &UserId,
    agent: AgentId,
) -> rusqlite::Result<Option<SessionId>> {
    let text = "SELECT id FROM sessions WHERE agent = ?1 AND user_id = ?2 AND session_type = \
                'chat' AND status = 'open' \
                AND persona IS NULL ORDER BY updated_at DESC, id LIMIT 1";
    sql.row(text, params![agent.to_string(), user.as_str()], |row| {
        row.id(0)
    })
}

fn main_session(
    sql: &Sql<'_>,
    user: &UserId,
    persona: &PersonaId,
) -> rusqlite::Result<Option<(AgentId, SessionId)>> {
    let text = "SELECT sessions.agent, sessions.id FROM sessions JOIN agents ON agents.id = \
                sessions.agent \
                WHERE sessions.persona = ?1 AND sessions.user_id = ?2 AND sessions.session_type = \
                'chat' \
                AND sessions.status = 'open' AND agents.active ORDER BY sessions.updated_at DESC, \
                sessions.id LIMIT 1";
    sql.row(text, params![persona.as_str(), user.as_str()], |row| {
        Ok((row.id(0)?, row.id(1)?))
    })
}
