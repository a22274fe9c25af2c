//! Reads about definitions: those that users made, and how much there is of each.

use super::ReadError;
use crate::sql::{Columns, int, limit as rows, unreadable};
use crate::store::Store;
use domain::definition::DefinitionId;
use domain::event::DefinitionMade;
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::{Row, params};
use std::collections::BTreeMap;

/// Numbers of a definition's agents and sessions that a user may do something with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DefinitionCounts {
    /// Active agents to which the user is assigned.
    pub agents: u64,
    /// Sessions of theirs for this user that take input.
    pub sessions: u64,
}

/// Number and size of all definitions that users made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MadeDefinitionsSize {
    /// The definitions, with those that fit no template any more.
    pub definitions: u64,
    /// Bytes of all that their users said of them.
    pub bytes: u64,
}

impl Store {
    /// Returns the definitions that users made, in the order of their ids, at most `limit`.
    pub async fn made_definitions(&self, limit: usize) -> Result<Vec<DefinitionMade>, ReadError> {
        self.read(move |sql| {
            let text = "SELECT id, user_id, template, own, made_at FROM made_definitions ORDER BY \
                        id LIMIT ?1";
            sql.rows(text, [rows(limit)], read)
        })
        .await
    }

    /// Returns how much there is of what users made.
    pub async fn made_definitions_size(&self) -> Result<MadeDefinitionsSize, ReadError> {
        self.read(|sql| {
            let text = "SELECT count(*), coalesce(sum(octet_length(own)), 0) FROM made_definitions";
            let size = sql.row(text, [], |row| {
                Ok(MadeDefinitionsSize {
                    definitions: row.uint(0)?,
                    bytes: row.uint(1)?,
                })
            })?;
            Ok(size.unwrap_or_default())
        })
        .await
    }

    /// Returns a definition that a user made; none when there is none.
    pub async fn made_definition(
        &self,
        id: &DefinitionId,
    ) -> Result<Option<DefinitionMade>, ReadError> {
        let id = id.0.clone();
        self.point_read(move |sql| {
            let text = "SELECT id, user_id, template, own, made_at FROM made_definitions WHERE id \
                        = ?1";
            sql.row(text, [id], read)
        })
        .await
    }

    /// Returns the position of the event by which a user made a definition; none when what it said
    /// is erased.
    pub async fn made_at(&self, made: &DefinitionMade) -> Result<Option<u64>, ReadError> {
        let id = made.definition.0.clone();
        let time = made.time;
        self.read(move |sql| {
            let text = "SELECT position FROM events WHERE stream = 'host' AND kind = \
                        'user.definition.made.v1' AND time = ?2 AND json_extract(CAST(payload AS \
                        TEXT), '$.definition') = ?1";
            sql.row(text, params![id, int(time.0)], |row| row.uint(0))
        })
        .await
    }

    /// Returns, for each definition of which a user may do something with an agent, how much there
    /// is of it.
    pub async fn definition_counts(
        &self,
        user: &UserId,
    ) -> Result<BTreeMap<DefinitionId, DefinitionCounts>, ReadError> {
        let user = user.clone();
        let counted = self
            .read(move |sql| {
                let text = "SELECT json_extract(agents.agent, '$.definition'), count(*), \
                            sum((SELECT count(*) FROM sessions WHERE sessions.agent = agents.id \
                            AND sessions.user_id = ?1 AND sessions.status = 'open')) FROM access \
                            CROSS JOIN agents ON agents.id = access.agent WHERE access.user_id = \
                            ?1 AND agents.active = 1 GROUP BY 1";
                sql.rows(text, params![user.as_str()], |row| {
                    let counts = DefinitionCounts {
                        agents: row.uint(1)?,
                        sessions: row.uint(2)?,
                    };
                    Ok((DefinitionId(row.get(0)?), counts))
                })
            })
            .await?;
        Ok(counted.into_iter().collect())
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<DefinitionMade> {
    let own: String = row.get(3)?;
    Ok(DefinitionMade {
        definition: DefinitionId(row.get(0)?),
        user_id: row.id(1)?,
        template: DefinitionId(row.get(2)?),
        own: serde_json::from_str(&own).map_err(|error| unreadable(3, error.to_string()))?,
        time: Timestamp(row.uint(4)?),
    })
}
