//! The changes in a watched folder since the last look at it, and the record of both.

use crate::journal::{self, Context};
use crate::triggers::Shared;
use crate::triggers::look::{Wanted, look};
use broker::Error;
use domain::event::{Event, OccasionAccepted};
use domain::id::Stream;
use domain::time::Timestamp;
use domain::trigger::{FileChanges, FolderLook, Occasion, PENDING_MAX, TriggerName};
use serde::{Deserialize, Serialize};
use std::io;
use store::{Commit, CommitError, Expected, Snapshot, TriggerGuard};

/// The layout of what is kept of a look.
const FORMAT: u32 = 1;

/// The result of a look at a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// The changes are recorded, or there were none.
    Recorded,
    /// The changes were not taken, because too much waits.
    NotTaken,
    /// The folder cannot be read. Nothing is said of its files.
    Unseen,
}

/// The last look at a folder, as it is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    /// Number of looks that were kept of the trigger; 0 without any.
    version: u64,
    /// The look itself; none of other files than those that are watched now.
    look: Option<FolderLook>,
}

/// A look as it is stored: with what it was a look at.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    of: String,
    look: FolderLook,
}

/// Returns a description of what a look is at. A look at anything else says nothing of it.
fn described(wanted: &Wanted) -> String {
    let spec = &wanted.spec;
    let patterns: Vec<String> = spec.patterns.iter().map(ToString::to_string).collect();
    let path = wanted.grant.path.display();
    let recursive = spec.recursive;
    format!("{path} {patterns:?} {recursive}")
}

/// Looks at a folder, and records what changed since the last look.
pub(crate) async fn look_again(
    shared: &Shared,
    name: &TriggerName,
    wanted: &Wanted,
    kept: &mut Option<Kept>,
) -> Result<Looked, Error> {
    let looking = wanted.clone();
    let seen = tokio::task::spawn_blocking(move || look(&looking));
    let seen = match seen
        .await
        .unwrap_or_else(|_| Err(io::Error::other("panic")))
    {
        Ok(seen) => seen,
        Err(error) => {
            tracing::warn!(
                trigger.name = %name,
                error = &error as &dyn std::error::Error,
                "a watched folder cannot be read"
            );
            return Ok(Looked::Unseen);
        }
    };
    let before = match kept.take() {
        Some(before) => before,
        None => read_kept(shared, name, wanted).await?,
    };
    let changes = before
        .look
        .as_ref()
        .map(|before| before.changes(&seen, &wanted.spec.folder));
    if let Some(None) = changes {
        *kept = Some(before);
        return Ok(Looked::Recorded);
    }
    let now = Kept {
        version: before.version + 1,
        look: Some(seen),
    };
    let found = Found {
        name,
        wanted,
        changes: changes.flatten(),
        now: &now,
    };
    match found.record(shared).await {
        Ok(()) => {
            *kept = Some(now);
            Ok(Looked::Recorded)
        }
        Err(CommitError::Conflict(_)) => {
            *kept = Some(before);
            Ok(Looked::NotTaken)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the last look at a folder.
async fn read_kept(shared: &Shared, name: &TriggerName, wanted: &Wanted) -> Result<Kept, Error> {
    let stream = Stream::Trigger(name.id());
    let Some(snapshot) = shared.core.store().snapshot(stream).await? else {
        return Ok(Kept::default());
    };
    let stored = serde_json::from_slice::<Stored>(&snapshot.state).ok();
    let stored = stored.filter(|it| snapshot.format == FORMAT && it.of == described(wanted));
    Ok(Kept {
        version: snapshot.version,
        look: stored.map(|stored| stored.look),
    })
}

/// The findings of a look.
struct Found<'a> {
    name: &'a TriggerName,
    wanted: &'a Wanted,
    /// The changes; none of a first look.
    changes: Option<FileChanges>,
    now: &'a Kept,
}

impl Found<'_> {
    /// Records an occasion for what changed, and the look with it.
    async fn record(self, shared: &Shared) -> Result<(), CommitError> {
        let core = &shared.core;
        let is_occasion = self.changes.is_some();
        let commit = self.commit(core.now());
        store::point("edge.files.before");
        let committed = core.store().commit(commit).await;
        store::point("edge.files.after");
        committed?;
        if is_occasion {
            shared.open.notify_one();
        }
        Ok(())
    }

    fn commit(self, time: Timestamp) -> Commit {
        let stream = Stream::Trigger(self.name.id());
        let stored = Stored {
            of: described(self.wanted),
            look: self.now.look.clone().unwrap_or_default(),
        };
        let snapshot = Snapshot {
            version: self.now.version,
            format: FORMAT,
            state: serde_json::to_vec(&stored).unwrap_or_default(),
        };
        let commit = Commit::new().snapshot(stream, snapshot);
        let Some(changes) = self.changes else {
            return commit;
        };
        let accepted = Event::OccasionAccepted(OccasionAccepted {
            name: self.name.clone(),
            occasion: journal::occasion(),
            what: Box::new(Occasion::Files(changes)),
            run_by: None,
            next_due: None,
            scheduled: false,
            time,
        });
        let event = Context::new("files", time).event(accepted);
        commit
            .guard(TriggerGuard::NextDue {
                trigger: self.name.clone(),
                due: None,
            })
            .guard(TriggerGuard::PendingAtMost {
                trigger: self.name.clone(),
                max: u64::from(PENDING_MAX - 1),
            })
            .append(stream, Expected::Any, vec![event])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::grant::{Access, DirectoryGrant};
    use serde_json::json;

    fn wanted(path: &str, spec: serde_json::Value) -> Wanted {
        Wanted {
            grant: DirectoryGrant::whole(path, "/inbox", Access::ReadOnly),
            spec: serde_json::from_value(spec).unwrap(),
        }
    }

    #[test]
    fn a_look_at_other_files_is_another_look() {
        let plain = wanted("/a", json!({ "folder": "/inbox" }));
        let slower = wanted("/a", json!({ "folder": "/inbox", "debounce": "5s" }));
        assert_eq!(described(&plain), described(&slower));
        for other in [
            wanted("/b", json!({ "folder": "/inbox" })),
            wanted("/a", json!({ "folder": "/inbox", "patterns": ["*.md"] })),
            wanted("/a", json!({ "folder": "/inbox", "recursive": false })),
        ] {
            assert_ne!(described(&plain), described(&other));
        }
    }
}
