//! The messages in which replies grow, as they are stored: after a kill the host continues in them,
//! and leaves none of them behind.
//!
//! A snapshot of the connector's stream has ids of runs and of messages, and no words. It is
//! written when a message is first shown. Entries that are no longer needed are removed with the
//! next one.

use super::GROWING_MAX;
use crate::connectors::Shared;
use crate::connectors::served::Served;
use domain::event::OutboundMessageCause;
use domain::id::{OutboundMessageId, RunId};
use domain::path::ConnectorName;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use store::{Commit, ReadError, Snapshot};
use tokio::sync::Mutex as AsyncMutex;

/// The layout of the snapshot.
const FORMAT: u32 = 1;
/// Maximum number of outbound messages of one run that are searched for the first message of its
/// reply.
const OF_RUN_MAX: usize = 64;

/// The messages of all connectors. It is locked while the store is written.
#[derive(Debug, Default)]
pub(in crate::connectors) struct Stored(AsyncMutex<HashMap<ConnectorName, Kept>>);

/// The messages of one connector, by the runs whose replies grow in them.
#[derive(Debug, Default)]
struct Kept {
    /// Number of times that they were stored.
    version: u64,
    messages: BTreeMap<RunId, String>,
}

impl Shared {
    /// Stores in which message the reply of a run grows.
    pub(super) async fn store_preview(&self, served: &Served, run: RunId, id: &str) {
        let mut all = self.stored_previews.0.lock().await;
        let stored = match self.kept(&mut all, served).await {
            Ok(kept) => {
                kept.messages.insert(run, id.to_owned());
                while kept.messages.len() > GROWING_MAX {
                    kept.messages.pop_first();
                }
                kept.version = kept.version.saturating_add(1);
                let snapshot = Snapshot {
                    version: kept.version,
                    format: FORMAT,
                    state: serde_json::to_vec(&kept.messages).unwrap_or_default(),
                };
                let commit = Commit::new().snapshot(served.stream(), snapshot);
                self.core.store().commit(commit).await.map(drop)
            }
            Err(error) => Err(error.into()),
        };
        if let Err(error) = stored {
            tracing::warn!(
                connector.name = %served.name,
                error = &error as &dyn std::error::Error,
                "it cannot be stored in which message a reply grows"
            );
        }
    }

    /// Returns the message in which the reply of a run grew, if it was stored and is the run's only
    /// message: none was queued except the one that is sent now.
    pub(in crate::connectors) async fn stored_preview(
        &self,
        served: &Served,
        run: RunId,
        sent: Option<OutboundMessageId>,
    ) -> Result<Option<String>, ReadError> {
        let mut all = self.stored_previews.0.lock().await;
        let kept = self.kept(&mut all, served).await?;
        let Some(id) = kept.messages.get(&run).cloned() else {
            return Ok(None);
        };
        let store = self.core.store();
        let of_run = store.outbound_messages_of_runs(&[run], OF_RUN_MAX).await?;
        let first = of_run
            .iter()
            .find(|row| matches!(row.cause, OutboundMessageCause::Turn { .. }));
        let is_free = first.is_none_or(|row| Some(row.outbound_message) == sent);
        Ok(is_free.then_some(id))
    }

    /// Forgets the message in which the reply of a run grew.
    pub(in crate::connectors) async fn drop_preview(&self, served: &Served, run: RunId) {
        let mut all = self.stored_previews.0.lock().await;
        if let Some(kept) = all.get_mut(&served.name) {
            kept.messages.remove(&run);
        }
    }

    async fn kept<'a>(
        &self,
        all: &'a mut HashMap<ConnectorName, Kept>,
        served: &Served,
    ) -> Result<&'a mut Kept, ReadError> {
        match all.entry(served.name.clone()) {
            Entry::Occupied(kept) => Ok(kept.into_mut()),
            Entry::Vacant(place) => {
                let snapshot = self.core.store().snapshot(served.stream()).await?;
                let version = snapshot.as_ref().map_or(0, |snapshot| snapshot.version);
                let messages = snapshot
                    .filter(|snapshot| snapshot.format == FORMAT)
                    .and_then(|snapshot| serde_json::from_slice(&snapshot.state).ok());
                Ok(place.insert(Kept {
                    version,
                    messages: messages.unwrap_or_default(),
                }))
            }
        }
    }
}
