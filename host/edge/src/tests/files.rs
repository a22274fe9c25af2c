//! Watched folders.

use super::host::{Host, name, trigger};
use crate::triggers::files_for_tests::{Kept, ScanResult, Wanted, scan_again};
use domain::grant::{Access, DirectoryGrant};
use domain::trigger::TriggerKind;
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
async fn inspect(host: &Host, wanted: &Wanted) -> ScanResult {
    let shared = host.edge.triggers().shared_for_tests();
    let mut kept: Option<Kept> = None;
    scan_again(shared, &name("inbox"), wanted, &mut kept)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_folder_that_is_gone_says_nothing_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(inside.join("a.md"), "1").unwrap();
    let host = host().await;
    let wanted = wanted(&host, &inside).await;
    assert_eq!(inspect(&host, &wanted).await, ScanResult::Recorded);
    let away = folder.path().join("away");
    std::fs::rename(&inside, &away).unwrap();
    assert_eq!(inspect(&host, &wanted).await, ScanResult::Unseen);
    std::fs::rename(&away, &inside).unwrap();
    assert_eq!(inspect(&host, &wanted).await, ScanResult::Recorded);
    assert_eq!(host.trigger_events("inbox").await.len(), 0);
}
