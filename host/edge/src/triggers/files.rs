//! Watched folders: the changes since the last scan become a trigger event, in one commit with the
//! new scan. So after a restart the changes since the scan before it become one, too.
//!
//! The system reports that a folder has changed, if it can; a scan finds the changes. Without
//! reports of the system, a folder is scanned periodically. The reports concern a folder and not
//! its path, so every few seconds a check finds out whether another folder is at the path.

mod difference;

use super::Shared;
use super::scan::Wanted;
use broker::Error;
pub(crate) use difference::{Kept, ScanResult, scan_again};
use domain::trigger::{Interval, TriggerKind, TriggerName};
use notify::event::{AccessKind, AccessMode};
use notify::{Config, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use store::TriggerFilter;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Maximum number of watched folders. Those of further triggers are not watched, which is logged.
const WATCHED_MAX: usize = 1_000;
/// Triggers that are read at a time.
const PAGE: usize = 500;
/// Milliseconds between two scans of a folder whose changes the system reports.
const REPORTED_POLL_MS: u64 = 600_000;
/// Milliseconds between two scans of a folder whose changes it does not report.
const UNREPORTED_POLL_MS: u64 = 30_000;
/// Milliseconds between two checks of which folder is at a path.
const PLACE_POLL_MS: u64 = 2_000;
/// Milliseconds until a folder is scanned again after the store did not accept the last scan.
const AGAIN_MS: u64 = 5_000;
/// Milliseconds after the first of many changes until they are a trigger event, however many
/// follow.
const FLOOD_MS_MAX: u64 = 30_000;
/// Milliseconds until triggers are read again that could not be read.
const TROUBLE_MS: u64 = 1_000;

/// A folder that is watched.
struct Watched {
    wanted: Wanted,
    /// Cancelled when it must no longer be watched, or must be watched in another way.
    leaving: CancellationToken,
    task: AbortHandle,
}

/// Watches all folders until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut changed = shared.changed.subscribe();
    let mut replaced = shared.core.replacements();
    let mut watched: HashMap<TriggerName, Watched> = HashMap::new();
    let mut tasks: JoinSet<()> = JoinSet::new();
    loop {
        changed.mark_unchanged();
        replaced.mark_unchanged();
        watched.retain(|_, watched| !watched.task.is_finished());
        match wanted(&shared).await {
            Ok(wanted) => watch_these(&shared, wanted, &mut watched, &mut tasks),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "it cannot be read which folders are watched"
                );
                if !shared.core.sleep_ms(TROUBLE_MS).await {
                    return;
                }
                continue;
            }
        }
        tokio::select! {
            _ = changed.changed() => {}
            _ = replaced.changed() => {}
            Some(ended) = tasks.join_next() => {
                // A panic that the folder causes would repeat at once.
                if ended.is_err() && !shared.core.sleep_ms(TROUBLE_MS).await {
                    return;
                }
            }
        }
    }
}

/// Begins to watch new folders, and ends the other watches. A folder with changed options is
/// watched only after its previous watch has ended: a commit of that under way could otherwise land
/// after the first scan of the new one.
fn watch_these(
    shared: &Arc<Shared>,
    wanted: BTreeMap<TriggerName, Wanted>,
    watched: &mut HashMap<TriggerName, Watched>,
    tasks: &mut JoinSet<()>,
) {
    for (name, before) in watched.iter() {
        let stays = wanted
            .get(name)
            .is_some_and(|now| is_same(&before.wanted, now));
        if !stays {
            before.leaving.cancel();
        }
    }
    for (name, wanted) in wanted {
        if watched.contains_key(&name) {
            continue;
        }
        let leaving = CancellationToken::new();
        let watch = watch(
            shared.clone(),
            name.clone(),
            wanted.clone(),
            leaving.clone(),
        );
        let task = tasks.spawn(store::in_background(watch));
        let now = Watched {
            wanted,
            leaving,
            task,
        };
        watched.insert(name, now);
    }
}

fn is_same(before: &Wanted, now: &Wanted) -> bool {
    before.grant == now.grant && before.spec == now.spec
}

/// Returns the folders to watch, by trigger.
async fn wanted(shared: &Shared) -> Result<BTreeMap<TriggerName, Wanted>, Error> {
    let core = &shared.core;
    let mut wanted = BTreeMap::new();
    let mut after: Option<TriggerName> = None;
    loop {
        let filter = TriggerFilter {
            kind: Some("files".to_owned()),
            ..TriggerFilter::default()
        };
        let page = core.store().triggers(filter, after, PAGE).await?;
        after = page.last().map(|row| row.name.clone());
        for row in &page {
            let TriggerKind::Files(spec) = &row.spec.on else {
                continue;
            };
            if !row.spec.enabled || row.paused.is_some() {
                continue;
            }
            let entry = core.component(row.spec.component());
            let mut granted = entry.iter().flat_map(|entry| &entry.grant.directories);
            let Some(grant) = granted.find(|grant| grant.at == spec.folder) else {
                tracing::warn!(
                    trigger.name = %row.name,
                    folder = spec.folder,
                    "a folder is not watched: the trigger's component is not granted it"
                );
                continue;
            };
            if wanted.len() >= WATCHED_MAX {
                tracing::error!(
                    trigger.name = %row.name,
                    max = WATCHED_MAX,
                    "a folder is not watched: too many are"
                );
                continue;
            }
            let what = Wanted {
                grant: grant.clone(),
                spec: spec.clone(),
            };
            wanted.insert(row.name.clone(), what);
        }
        if page.len() < PAGE {
            return Ok(wanted);
        }
    }
}

/// Watches one folder until it is cancelled.
async fn watch(shared: Arc<Shared>, name: TriggerName, wanted: Wanted, leaving: CancellationToken) {
    let (tell, mut reported) = mpsc::channel::<()>(1);
    let mut watcher: Option<RecommendedWatcher> = None;
    let mut kept: Option<Kept> = None;
    let path = wanted.grant.path.clone();
    let mut stood: Option<FolderIdentity> = None;
    loop {
        let stands = FolderIdentity::at(&path).await;
        if stands != stood {
            // The watcher reports on a folder that is gone.
            watcher = None;
            stood = stands;
        }
        if watcher.is_none() {
            watcher = watcher_of(&name, &wanted, &tell).await;
        }
        let inspected = scan_again(&shared, &name, &wanted, &mut kept).await;
        let wait_ms = match inspected {
            Ok(ScanResult::Recorded) if watcher.is_some() => REPORTED_POLL_MS,
            Ok(ScanResult::Recorded) => UNREPORTED_POLL_MS,
            Ok(ScanResult::NotTaken) => AGAIN_MS,
            Ok(ScanResult::Unseen) => {
                watcher = None;
                UNREPORTED_POLL_MS
            }
            Err(error) => {
                tracing::warn!(
                    trigger.name = %name,
                    error = &error as &dyn std::error::Error,
                    "what changed in a folder cannot be recorded now"
                );
                AGAIN_MS
            }
        };
        let changed = async {
            let reported_or_replaced = async {
                tokio::select! {
                    _ = reported.recv() => {}
                    () = replaced(&path, stood) => {}
                }
            };
            let now = timeout(Duration::from_millis(wait_ms), reported_or_replaced);
            if now.await.is_ok() {
                quiet(&mut reported, wanted.spec.debounce).await;
            }
        };
        tokio::select! {
            () = leaving.cancelled() => return,
            () = changed => {}
        }
    }
}

/// The identity of the folder at a path: its device, its number there, and the time of its
/// creation, because numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolderIdentity {
    device: u64,
    number: u64,
    made: Option<SystemTime>,
}

impl FolderIdentity {
    /// Returns the folder at a path, through links; none if there is no folder.
    async fn at(path: &Path) -> Option<Self> {
        let found = tokio::fs::metadata(path).await.ok()?;
        found.is_dir().then(|| Self {
            device: found.dev(),
            number: found.ino(),
            made: found.created().ok(),
        })
    }
}

/// Waits until another folder is at a path: it was replaced, or one above it, a link leads
/// elsewhere, or a file system was mounted there.
async fn replaced(path: &Path, stood: Option<FolderIdentity>) {
    loop {
        tokio::time::sleep(Duration::from_millis(PLACE_POLL_MS)).await;
        if FolderIdentity::at(path).await != stood {
            return;
        }
    }
}

/// Waits until no change was reported for a quiet time, or until changes were reported for too
/// long.
async fn quiet(reported: &mut mpsc::Receiver<()>, debounce: Interval) {
    let pause = Duration::from_millis(debounce.ms());
    let end = Instant::now() + pause.max(Duration::from_millis(FLOOD_MS_MAX));
    loop {
        let until = end.min(Instant::now() + pause);
        if timeout_at(until, reported.recv()).await.is_err() || Instant::now() >= end {
            return;
        }
    }
}

/// Requests reports from the system when a folder changes; none if it cannot report them.
async fn watcher_of(
    name: &TriggerName,
    wanted: &Wanted,
    tell: &mpsc::Sender<()>,
) -> Option<RecommendedWatcher> {
    let path = wanted.grant.path.clone();
    let mode = match wanted.spec.recursive {
        true => RecursiveMode::Recursive,
        false => RecursiveMode::NonRecursive,
    };
    let tell = tell.clone();
    // It goes through all folders below.
    let begun = tokio::task::spawn_blocking(move || {
        let reported = move |event: notify::Result<notify::Event>| {
            if event.as_ref().map_or(true, |event| is_change(event.kind)) {
                // One waiting report is as good as many.
                let _ = tell.try_send(());
            }
        };
        let config = Config::default().with_follow_symlinks(false);
        let mut watcher = RecommendedWatcher::new(reported, config)?;
        // The system reports nothing for a link, only for the folder that it leads to.
        watcher.watch(&path.canonicalize()?, mode)?;
        Ok::<_, notify::Error>(watcher)
    });
    match begun.await {
        Ok(Ok(watcher)) => Some(watcher),
        Ok(Err(error)) => {
            tracing::warn!(
                trigger.name = %name,
                error = &error as &dyn std::error::Error,
                "the system does not tell when a folder changes; it is looked at every half minute"
            );
            None
        }
        Err(_) => None,
    }
}

/// Returns whether something may have changed. A scan changes nothing, but is reported, too.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::grant::{Access, DirectoryGrant};
    use notify::event::{CreateKind, ModifyKind};
    use serde_json::json;

    #[test]
    fn opening_a_folder_changes_nothing_and_writing_a_file_does() {
        let close = |mode| EventKind::Access(AccessKind::Close(mode));
        for (kind, expected) in [
            (close(AccessMode::Write), true),
            (close(AccessMode::Read), false),
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), false),
            (EventKind::Create(CreateKind::File), true),
            (EventKind::Modify(ModifyKind::Any), true),
            (EventKind::Any, true),
        ] {
            assert_eq!(is_change(kind), expected, "{kind:?}");
        }
    }

    #[tokio::test]
    async fn another_folder_stands_at_a_path_after_each_way_to_replace_one() {
        let root = tempfile::tempdir().unwrap();
        let above = root.path().join("above");
        let path = above.join("inbox");
        std::fs::create_dir_all(&path).unwrap();
        let first = FolderIdentity::at(&path).await;
        assert!(first.is_some());
        std::fs::write(path.join("a"), "1").unwrap();
        assert_eq!(FolderIdentity::at(&path).await, first, "a file in it");
        std::fs::rename(&above, root.path().join("away")).unwrap();
        assert_eq!(FolderIdentity::at(&path).await, None, "gone");
        std::fs::create_dir_all(&path).unwrap();
        let second = FolderIdentity::at(&path).await;
        assert!(second.is_some() && second != first, "the folder above it");
        std::fs::rename(&path, root.path().join("second")).unwrap();
        std::os::unix::fs::symlink(root.path().join("second"), &path).unwrap();
        assert_eq!(FolderIdentity::at(&path).await, second, "a link to itself");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(root.path().join("away/inbox"), &path).unwrap();
        assert_eq!(
            FolderIdentity::at(&path).await,
            first,
            "a link to another one"
        );
        replaced(&path, second).await;
    }

    #[tokio::test]
    async fn a_folder_is_told_of_through_a_link_to_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        for recursive in [true, false] {
            let spec = json!({ "folder": "/inbox", "recursive": recursive });
            let wanted = Wanted {
                grant: DirectoryGrant::whole(&link, "/inbox", Access::ReadOnly),
                spec: serde_json::from_value(spec).unwrap(),
            };
            let (tell, mut reported) = mpsc::channel(1);
            let watcher = watcher_of(&"inbox".parse().unwrap(), &wanted, &tell).await;
            assert!(watcher.is_some());
            std::fs::write(folder.join("a"), "1").unwrap();
            let reported = timeout(Duration::from_secs(10), reported.recv()).await;
            assert_eq!(reported.unwrap(), Some(()), "recursive: {recursive}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_waited_out_and_not_for_ever() {
        let (tell, mut reported) = mpsc::channel(1);
        let debounce: Interval = "1s".parse().unwrap();
        let begin = Instant::now();
        quiet(&mut reported, debounce).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(1));
        let flood = async {
            loop {
                let _ = tell.try_send(());
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let begin = Instant::now();
        tokio::select! {
            () = quiet(&mut reported, debounce) => {}
            () = flood => {}
        }
        let waited = begin.elapsed();
        assert!(waited >= Duration::from_millis(FLOOD_MS_MAX), "{waited:?}");
        assert!(
            waited <= Duration::from_millis(FLOOD_MS_MAX + 1_000),
            "{waited:?}"
        );
    }
}
