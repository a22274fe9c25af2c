//! What stays of a note that is forgotten, and what erases that.

use super::get;
use super::tools::{Shared, call, shared};
use agent_host_tests::process::Line;
use serde_json::json;

/// What the note says.
const NOTE: &str = "Ada likes zebras.";

impl Shared {
    async fn purge(&self, line: &Line, session: &str) {
        line.delete(session).gives(200).await;
        let [agent, id] =
            [self.agent.as_str(), session].map(|path| path.rsplit('/').next().unwrap());
        let purge = ["session", "purge", id, "--agent", agent, "--yes"];
        self.folder.succeeds(&purge).await;
    }

    async fn events_have_the_note(&self) -> bool {
        let events = self.host.get("/api/events?limit=1000").await;
        events.body.to_string().contains(NOTE)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_in_which_a_search_found_a_note_keeps_its_words_until_it_is_purged() {
    let shared = shared().await;
    let alice = shared.user("alice", None).await;
    let saves = shared.open(&alice).await;
    let save = call("memory_save", &json!({ "text": NOTE }));
    shared.played(&alice, &saves, &save).await;
    let search = json!({ "query": "zebras", "notes": true });
    let search = call("memory_search", &search);
    let finds = shared.open(&alice).await;
    let reported = shared.played(&alice, &finds, &search).await;
    assert!(reported.contains(NOTE), "{reported}");
    for id in shared.ids(&alice).await {
        let path = format!("{}/memory/{id}", shared.agent);
        alice.delete(&path).gives(200).await;
    }
    let later = shared.open(&alice).await;
    let reported = shared.played(&alice, &later, &search).await;
    assert!(!reported.contains(NOTE), "{reported}");
    shared.purge(&alice, &saves).await;
    let kept = get(&alice, &finds).await["messages"].to_string();
    assert!(kept.contains(NOTE), "what was found was said: {kept}");
    assert!(shared.events_have_the_note().await);
    shared.purge(&alice, &finds).await;
    assert!(!shared.events_have_the_note().await);
}
