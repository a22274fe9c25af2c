//! Watched folders: what changes in one is told once, also what changed while no host ran, and
//! nothing that a link leads to.

use super::scene::{Scene, config, trigger};
use agent_host_tests::process::tells;
use rustix::process::Signal;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::sleep;

/// Longer than the quiet time of every watch here.
const QUIET: Duration = Duration::from_millis(1_500);
/// Files of a flood.
const FLOOD: usize = 300;
/// Changes that one trigger event lists.
const LISTED: usize = 100;

/// A folder that is watched, and what was told of it.
struct Watch {
    scene: Scene,
    /// The number of runs so far.
    runs: usize,
}

impl Watch {
    /// Begins to watch a folder, and waits until what changes there is noticed.
    async fn new(debounce: &str) -> Self {
        let files = json!({ "folder": "/inbox", "debounce": debounce });
        let inbox = trigger(&json!({ "files": files }));
        let scene = Scene::new(&json!({ "inbox": inbox })).await;
        // The first inspection tells nothing, and nobody tells of the first inspection.
        let probe = scene.folder.path().join("inbox/probe");
        for number in 0..u32::MAX {
            std::fs::write(&probe, number.to_string().repeat(3)).unwrap();
            sleep(QUIET).await;
            if !scene.runs("inbox").await.is_empty() {
                break;
            }
        }
        sleep(QUIET).await;
        let runs = scene.done("inbox", 1).await.len();
        Self { scene, runs }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scene.folder.path().join("inbox").join(name)
    }

    /// Waits for the next trigger event, and returns its message.
    async fn reported(&mut self) -> String {
        self.runs += 1;
        let runs = self.scene.done("inbox", self.runs).await;
        assert_eq!(runs.len(), self.runs, "it is one trigger event: {runs:?}");
        let reported = self.scene.reported("inbox").await;
        let last = reported.last().unwrap();
        assert_eq!(last["untrusted"], true, "names of files are anybody's");
        last["text"].as_str().unwrap().to_owned()
    }

    /// Waits for a while, in which nothing is told.
    async fn tells_nothing(&self) {
        sleep(QUIET).await;
        let runs = self.scene.runs("inbox").await;
        assert_eq!(runs.len(), self.runs, "{runs:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_created_changed_renamed_and_removed_are_told_of() {
    let mut watch = Watch::new("200ms").await;
    std::fs::create_dir(watch.path("below")).unwrap();
    std::fs::write(watch.path("below/a.md"), "one").unwrap();
    let reported = watch.reported().await;
    tells(&reported, &["- created `below/a.md` (3 bytes)"]);
    std::fs::write(watch.path("below/a.md"), "one and two").unwrap();
    let reported = watch.reported().await;
    tells(&reported, &["- changed `below/a.md` (11 bytes)"]);
    std::fs::rename(watch.path("below/a.md"), watch.path("b.md")).unwrap();
    let reported = watch.reported().await;
    tells(&reported, &["- renamed `below/a.md` to `b.md` (11 bytes)"]);
    std::fs::remove_file(watch.path("b.md")).unwrap();
    let reported = watch.reported().await;
    tells(&reported, &["- removed `b.md`"]);
    watch.tells_nothing().await;
}

/// The system tells of a folder and not of its path, and goes on telling of the one that went away.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_another_one_replaced_is_watched_within_seconds() {
    let mut watch = Watch::new("200ms").await;
    let root = watch.scene.folder.path().to_owned();
    let inbox = root.join("inbox");
    for round in 0..2 {
        std::fs::rename(&inbox, root.join(format!("away-{round}"))).unwrap();
        std::fs::create_dir(&inbox).unwrap();
        let reported = watch.reported().await;
        assert!(reported.contains("- removed `"), "{round}: {reported}");
        sleep(QUIET).await;
        std::fs::write(watch.path("new.md"), "new").unwrap();
        let reported = watch.reported().await;
        assert!(
            reported.contains("- created `new.md`"),
            "{round}: {reported}"
        );
    }
    std::fs::rename(&inbox, root.join("away-2")).unwrap();
    for folder in ["away-0", "away-1"] {
        // A link, and then one that leads elsewhere.
        if inbox.is_symlink() {
            std::fs::remove_file(&inbox).unwrap();
        }
        symlink(root.join(folder), &inbox).unwrap();
        let reported = watch.reported().await;
        assert!(reported.contains("ed `new.md`"), "{folder}: {reported}");
        sleep(QUIET).await;
        std::fs::write(watch.path("linked.md"), folder).unwrap();
        let reported = watch.reported().await;
        assert!(
            reported.contains("- created `linked.md`"),
            "{folder}: {reported}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_no_host_ran_is_one_trigger_event_after_the_restart() {
    let mut watch = Watch::new("200ms").await;
    std::fs::write(watch.path("old.md"), "old").unwrap();
    watch.reported().await;
    let names = ["a.md", "b.md", "c.md"];
    let files = names.map(|name| watch.path(name));
    let old = watch.path("old.md");
    let Watch { scene, runs } = watch;
    // Stopped, it sees nothing of it, and then it is killed.
    scene.host.signal(Signal::STOP);
    for file in files {
        std::fs::write(file, "new").unwrap();
    }
    std::fs::remove_file(old).unwrap();
    let scene = scene.restarted_after(0).await;
    let mut watch = Watch { scene, runs };
    let reported = watch.reported().await;
    for name in names {
        tells(&reported, &[&format!("- created `{name}`")]);
    }
    tells(&reported, &["- removed `old.md`"]);
    watch.tells_nothing().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_files_is_one_trigger_event_with_a_bounded_list() {
    let mut watch = Watch::new("1s").await;
    for number in 0..FLOOD {
        std::fs::write(watch.path(&format!("flood-{number:03}")), "x").unwrap();
    }
    let reported = watch.reported().await;
    assert_eq!(
        reported.matches("- created `flood-").count(),
        LISTED,
        "{reported}"
    );
    let more = FLOOD - LISTED;
    tells(&reported, &[&format!("{more} changes more")]);
    let runs = watch.scene.runs("inbox").await;
    let expected = json!({
        "kind": "files", "folder": "/inbox", "changes": LISTED, "more": more,
    });
    assert_eq!(runs[0]["trigger_event"], expected);
    watch.tells_nothing().await;
}

/// A folder full of links, out of it and around in it: none is followed, and what happens where
/// they lead is not told.
#[tokio::test(flavor = "multi_thread")]
async fn links_in_a_watched_folder_lead_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "s").unwrap();
    let mut watch = Watch::new("200ms").await;
    for number in 0..50 {
        symlink(&secret, watch.path(&format!("file-{number}"))).unwrap();
        symlink(outside.path(), watch.path(&format!("folder-{number}"))).unwrap();
        symlink(watch.path(""), watch.path(&format!("around-{number}"))).unwrap();
    }
    std::fs::write(watch.path("real.md"), "real").unwrap();
    let reported = watch.reported().await;
    let listed: Vec<&str> = reported
        .lines()
        .filter(|line| line.starts_with('-'))
        .collect();
    assert_eq!(listed, ["- created `real.md` (4 bytes)"]);
    std::fs::write(&secret, "another").unwrap();
    std::fs::write(outside.path().join("new.txt"), "new").unwrap();
    watch.tells_nothing().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_not_granted_is_not_watched_and_the_check_says_so() {
    let scene = Scene::new(&json!({})).await;
    for folder in ["/notes", "/inbox/below", "/", "inbox"] {
        let files = trigger(&json!({ "files": { "folder": folder } }));
        let refused = scene.asked_to_make("watch", &files).await;
        assert_eq!(refused.status, 422, "{folder}: {refused:?}");
        assert_eq!(refused.text("field"), "/spec/files/folder");
    }
    let listed = scene.host.get("/api/triggers").await;
    assert_eq!(listed.body["triggers"], json!([]));
    let files = trigger(&json!({ "files": { "folder": "/notes" } }));
    scene.folder.configure(config(&json!({ "watch": files })));
    let checked = scene.folder.run(&["config", "check"]).await;
    assert!(!checked.status.success(), "{checked:?}");
    let reported = String::from_utf8_lossy(&checked.stderr);
    tells(&reported, &["triggers.watch.files.folder"]);
}
