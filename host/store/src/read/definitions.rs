//! Reads about definitions: those that users made, and how much there is of each.

use super::ReadError;
use crate::sql::{self, Cells, FromRow, Json, named, row, select, text};
use crate::store::Store;
use crate::streams;
use domain::definition::DefinitionId;
use domain::event::DefinitionMade;
use domain::id::Stream;
use domain::user::UserId;
use std::collections::BTreeMap;

/// Numbers of a definition's agents and sessions that a user has access to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DefinitionCounts {
    /// Active agents to which the user is assigned.
    pub agents: u64,
    /// Open sessions of these agents for this user.
    pub sessions: u64,
}

row! {
    /// Number and size of all definitions that users made.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct MadeDefinitionsSize from "made_definitions" {
        /// The definitions, with those that fit no template any more.
        pub definitions: u64 = "count(*)",
        /// Bytes of the users' own parts of them.
        pub bytes: u64 = "coalesce(sum(octet_length(own)), 0)",
    }
}

impl Store {
    /// Returns the definitions that users made, in the order of their ids, at most `limit`.
    pub async fn made_definitions(&self, limit: usize) -> Result<Vec<DefinitionMade>, ReadError> {
        self.read(move |sql| {
            let made: Vec<Made> = sql.all(text!(MADE, "ORDER BY id LIMIT ?1"), [limit])?;
            Ok(made.into_iter().map(|made| made.0).collect())
        })
        .await
    }

    /// Returns the total size of the definitions that users made.
    pub async fn made_definitions_size(&self) -> Result<MadeDefinitionsSize, ReadError> {
        self.read(|sql| {
            let text = select!(MadeDefinitionsSize, "");
            let size: Option<MadeDefinitionsSize> = sql.one(text, [])?;
            Ok(size.unwrap_or_default())
        })
        .await
    }

    /// Returns a definition that a user made; none if it does not exist.
    pub async fn made_definition(
        &self,
        id: &DefinitionId,
    ) -> Result<Option<DefinitionMade>, ReadError> {
        let id = id.0.clone();
        self.point_read(move |sql| {
            let made: Option<Made> = sql.one(text!(MADE, "WHERE id = ?1"), [id])?;
            Ok(made.map(|made| made.0))
        })
        .await
    }

    /// Returns the position of the event by which a user made a definition; none if its content was
    /// erased.
    pub async fn made_at(&self, made: &DefinitionMade) -> Result<Option<u64>, ReadError> {
        let id = made.definition.0.clone();
        let time = made.time;
        self.read(move |sql| {
            let text = "SELECT position FROM events WHERE stream = :stream AND kind = \
                        'user.definition.made.v1' AND time = :time AND about = :id";
            let stream = streams::number(sql, Stream::Host)?;
            sql.one::<u64>(text, named![stream, time, id])
        })
        .await
    }

    /// Returns the counts of each definition of which a user has access to an agent.
    pub async fn definition_counts(
        &self,
        user: &UserId,
    ) -> Result<BTreeMap<DefinitionId, DefinitionCounts>, ReadError> {
        let user = user.clone();
        let counted = self
            .read(move |sql| {
                let text = "SELECT agents.definition, count(*), \
                            sum((SELECT count(*) FROM sessions WHERE sessions.agent = agents.id \
                            AND sessions.user_id = ?1 AND sessions.status = 'open')) FROM access \
                            CROSS JOIN agents ON agents.id = access.agent WHERE access.user_id = \
                            ?1 AND agents.active = 1 GROUP BY 1";
                sql.all::<(DefinitionId, u64, u64)>(text, [user])
            })
            .await?;
        let counted = counted
            .into_iter()
            .map(|(id, agents, sessions)| (id, DefinitionCounts { agents, sessions }));
        Ok(counted.collect())
    }
}

/// The columns of a definition that a user made.
const MADE: &str = "SELECT id, user_id, template, own, made_at FROM made_definitions ";

/// A definition that a user made, as it is read.
struct Made(DefinitionMade);

impl FromRow for Made {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        Ok(Self(DefinitionMade {
            definition: cells.next("id")?,
            user_id: cells.next("user_id")?,
            template: cells.next("template")?,
            own: cells.next::<Json<_>>("own")?.0,
            time: cells.next("made_at")?,
        }))
    }
}
