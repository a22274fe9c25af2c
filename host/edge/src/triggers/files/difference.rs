//! The changes in a watched folder since the last scan of it, and the record of both.

use crate::journal::Context;
use crate::triggers::scan::{Wanted, inspect};
use crate::triggers::{Shared, recording};
use broker::Error;
use domain::id::Stream;
use domain::time::Timestamp;
use domain::trigger::{FileChanges, FolderScan, TriggerEvent, TriggerName};
use serde::{Deserialize, Serialize};
use std::io;
use store::{Commit, CommitError, Snapshot};

/// The layout of a stored scan.
const FORMAT: u32 = 1;

/// The result of a scan of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanResult {
    /// The changes are recorded, or there were none.
    Recorded,
    /// The changes were not taken, because too much waits.
    NotTaken,
    /// The folder cannot be read, so nothing is known about its files.
    Unseen,
}

/// The last scan of a folder, as it is stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    /// Number of scans that were stored of the trigger; 0 without any.
    version: u64,
    /// The scan itself; none of other files than those that are watched now.
    scan: Option<FolderScan>,
}

/// A scan as it is stored, with a description of its subject.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    of: String,
    scan: FolderScan,
}

/// Returns a description of a scan's subject. A scan of another subject cannot be compared.
fn described(wanted: &Wanted) -> String {
    let spec = &wanted.spec;
    let patterns: Vec<String> = spec.patterns.iter().map(ToString::to_string).collect();
    let path = wanted.grant.path.display();
    let recursive = spec.recursive;
    format!("{path} {patterns:?} {recursive}")
}

/// Scans a folder, and records the changes since the last scan.
pub(crate) async fn scan_again(
    shared: &Shared,
    name: &TriggerName,
    wanted: &Wanted,
    kept: &mut Option<Kept>,
) -> Result<ScanResult, Error> {
    let looking = wanted.clone();
    let seen = tokio::task::spawn_blocking(move || inspect(&looking));
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
            return Ok(ScanResult::Unseen);
        }
    };
    let before = match kept.take() {
        Some(before) => before,
        None => read_kept(shared, name, wanted).await?,
    };
    let changes = before
        .scan
        .as_ref()
        .map(|before| before.changes(&seen, &wanted.spec.folder));
    if let Some(None) = changes {
        *kept = Some(before);
        return Ok(ScanResult::Recorded);
    }
    let now = Kept {
        version: before.version + 1,
        scan: Some(seen),
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
            Ok(ScanResult::Recorded)
        }
        Err(CommitError::Conflict(_)) => {
            *kept = Some(before);
            Ok(ScanResult::NotTaken)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the last scan of a folder.
async fn read_kept(shared: &Shared, name: &TriggerName, wanted: &Wanted) -> Result<Kept, Error> {
    let stream = Stream::Trigger(name.id());
    let Some(snapshot) = shared.core.store().snapshot(stream).await? else {
        return Ok(Kept::default());
    };
    let stored = serde_json::from_slice::<Stored>(&snapshot.state).ok();
    let stored = stored.filter(|it| snapshot.format == FORMAT && it.of == described(wanted));
    Ok(Kept {
        version: snapshot.version,
        scan: stored.map(|stored| stored.scan),
    })
}

/// The findings of a scan.
struct Found<'a> {
    name: &'a TriggerName,
    wanted: &'a Wanted,
    /// The changes; none of a first scan.
    changes: Option<FileChanges>,
    now: &'a Kept,
}

impl Found<'_> {
    /// Records a trigger event for the changes, and the scan with it.
    async fn record(self, shared: &Shared) -> Result<(), CommitError> {
        let core = &shared.core;
        let is_trigger_event = self.changes.is_some();
        let commit = self.commit(core.now());
        store::point("edge.files.before");
        let committed = core.store().commit(commit).await;
        store::point("edge.files.after");
        committed?;
        if is_trigger_event {
            shared.open.notify_one();
        }
        Ok(())
    }

    fn commit(self, time: Timestamp) -> Commit {
        let stream = Stream::Trigger(self.name.id());
        let stored = Stored {
            of: described(self.wanted),
            scan: self.now.scan.clone().unwrap_or_default(),
        };
        let snapshot = Snapshot {
            version: self.now.version,
            format: FORMAT,
            state: serde_json::to_vec(&stored).unwrap_or_default(),
        };
        let commit = match self.changes {
            Some(changes) => {
                let what = TriggerEvent::Files(changes);
                let accepted = recording::accepted(self.name, what, time);
                let context = Context::new("files", time);
                recording::accept(recording::if_active(self.name), &context, accepted)
            }
            None => Commit::new(),
        };
        commit.snapshot(stream, snapshot)
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
