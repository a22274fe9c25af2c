//! Reads of the data stored under names of the configuration: of components, connectors and
//! definitions.

use super::ReadError;
use crate::projections::scope_name;
use crate::sql::{self, Columns, Sql};
use crate::store::Maintenance;
use domain::grant::BucketScope;
use std::collections::BTreeMap;

/// All that is kept under names of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The buckets that have keys.
    pub buckets: Vec<KeptBucket>,
    /// The connectors of which there are connector keys.
    pub connectors: Vec<KeptConnector>,
    /// The definitions of which there are agents, without those that users made.
    pub definitions: Vec<KeptDefinition>,
    /// Number of users of whom anything is stored.
    pub users: u64,
}

/// The content of one bucket of a component in one scope, of all its owners together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBucket {
    /// The component, by its name in the configuration.
    pub component: String,
    /// The bucket.
    pub bucket: String,
    /// The calls that share it.
    pub scope: BucketScope,
    /// Number of keys.
    pub keys: u64,
}

/// The people who are known by a connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptConnector {
    /// Its name in the configuration.
    pub name: String,
    /// Number of connector keys.
    pub keys: u64,
}

/// The living agents of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptDefinition {
    /// The id of the definition.
    pub name: String,
    /// Number of agents.
    pub agents: u64,
    /// Number of their open sessions.
    pub open_sessions: u64,
    /// Number of their open turns.
    pub open_turns: u64,
}

/// Returns all that is kept under names.
pub(crate) fn kept(sql: &Sql<'_>) -> sql::Result<Kept> {
    Ok(Kept {
        buckets: buckets(sql)?,
        connectors: connectors(sql)?,
        definitions: definitions(sql)?,
        users: sql.number("SELECT count(*) FROM user_storage", [])?,
    })
}

/// Returns all buckets that have keys.
fn buckets(sql: &Sql<'_>) -> sql::Result<Vec<KeptBucket>> {
    let scopes = [
        BucketScope::Component,
        BucketScope::User,
        BucketScope::Agent,
        BucketScope::Session,
    ];
    let mut kept = Vec::new();
    for scope in scopes {
        let found = sql.all::<(String, String, u64)>(
            "SELECT component, bucket, SUM(keys) FROM buckets WHERE scope = ?1 AND keys > 0 GROUP \
             BY component, bucket ORDER BY component, bucket",
            [scope_name(scope)],
        )?;
        kept.extend(
            found
                .into_iter()
                .map(|(component, bucket, keys)| KeptBucket {
                    component,
                    bucket,
                    scope,
                    keys,
                }),
        );
    }
    Ok(kept)
}

fn connectors(sql: &Sql<'_>) -> sql::Result<Vec<KeptConnector>> {
    let mut keys: BTreeMap<String, u64> = BTreeMap::new();
    sql.query("SELECT key FROM connector_keys", [], |rows| {
        while let Some(row) = rows.next()? {
            let name = row.text(0)?.split(':').next().unwrap_or_default();
            *keys.entry(name.to_owned()).or_default() += 1;
        }
        Ok(())
    })?;
    let kept = keys.into_iter();
    Ok(kept
        .map(|(name, keys)| KeptConnector { name, keys })
        .collect())
}

/// Returns the definitions of living agents, without those that users made.
fn definitions(sql: &Sql<'_>) -> sql::Result<Vec<KeptDefinition>> {
    let found = sql.all(
        "SELECT agents.definition, count(DISTINCT agents.id), \
         count(sessions.id), count(sessions.open_run) FROM agents LEFT JOIN sessions ON \
         sessions.agent = agents.id AND sessions.status = 'open' WHERE agents.active = 1 AND \
         agents.definition NOT IN (SELECT id FROM made_definitions) GROUP BY 1",
        [],
    )?;
    let kept = found
        .into_iter()
        .map(|(name, agents, open_sessions, open_turns)| KeptDefinition {
            name,
            agents,
            open_sessions,
            open_turns,
        });
    Ok(kept.collect())
}

impl Maintenance {
    /// Returns all that is kept under names of the configuration. The time grows with the number
    /// of agents and of connector keys.
    pub async fn kept(&self) -> Result<Kept, ReadError> {
        self.read(kept).await
    }
}
