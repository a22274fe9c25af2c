//! Watched folders.

use super::host::{Host, name, trigger};
use crate::triggers::files_for_tests::{Kept, Looked, Wanted, look_again};
use domain::grant::{Access, DirectoryGrant};
use domain::trigger::{ChangeKind, Occasion, TriggerKind};
use serde_json::json;
use std::path::Path;

async fn host() -> Host {
    let files = json!({ "folder": "/inbox" });
    Host::with(json!({ "inbox": trigger(json!({ "files": files })) })).await
}

async fn wanted(host: &Host, folder: &Path) -> Wanted {
    let TriggerKind::Files(spec) = host.trigger("inbox").await.spec.on else {
        panic!("it is no trigger of files");
    };
    Wanted {
        grant: DirectoryGrant::whole(folder, "/inbox", Access::ReadOnly),
        spec,
    }
}

/// Looks at the folder, as a host does that knows nothing but what is stored.
async fn look(host: &Host, wanted: &Wanted) -> Looked {
    let shared = host.edge.triggers().shared_for_tests();
    let mut kept: Option<Kept> = None;
    look_again(shared, &name("inbox"), wanted, &mut kept)
        .await
        .unwrap()
}

#[tokio::test]
async fn what_changed_between_two_looks_is_one_occasion_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("old.md"), "1").unwrap();
    let host = host().await;
    let wanted = wanted(&host, folder.path()).await;
    assert_eq!(look(&host, &wanted).await, Looked::Recorded);
    assert_eq!(host.occasions("inbox").await.len(), 0, "the first look");
    std::fs::write(folder.path().join("new.md"), "22").unwrap();
    let host = host.restarted_after_ms(1_000).await;
    assert_eq!(look(&host, &wanted).await, Looked::Recorded);
    assert_eq!(look(&host, &wanted).await, Looked::Recorded);
    let occasions = host.occasions("inbox").await;
    assert_eq!(occasions.len(), 1);
    let Occasion::Files(changes) = &*occasions[0].what else {
        panic!("{occasions:?}");
    };
    assert_eq!(changes.changes.len(), 1);
    assert_eq!(changes.changes[0].kind, ChangeKind::Created);
    assert_eq!(changes.changes[0].path, "new.md");
}

#[tokio::test]
async fn a_folder_that_is_gone_says_nothing_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(inside.join("a.md"), "1").unwrap();
    let host = host().await;
    let wanted = wanted(&host, &inside).await;
    assert_eq!(look(&host, &wanted).await, Looked::Recorded);
    let away = folder.path().join("away");
    std::fs::rename(&inside, &away).unwrap();
    assert_eq!(look(&host, &wanted).await, Looked::Unseen);
    std::fs::rename(&away, &inside).unwrap();
    assert_eq!(look(&host, &wanted).await, Looked::Recorded);
    assert_eq!(host.occasions("inbox").await.len(), 0);
}
