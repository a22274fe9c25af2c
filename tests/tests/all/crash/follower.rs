//! A watcher of an agent, at all times, who comes back with the last id when the connection is
//! lost.

use agent_host_tests::process::Line;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// The ids of all committed events that were shown, in the order in which they arrived.
pub(super) type SeenPlaces = Vec<u64>;

/// See the module.
#[derive(Debug)]
pub(super) struct Follower {
    line: watch::Sender<Line>,
    seen: Arc<Mutex<SeenPlaces>>,
    task: AbortHandle,
}

impl Follower {
    /// Begins to watch, from the agent's first event on.
    #[expect(
        clippy::disallowed_methods,
        reason = "the task is aborted with its handle"
    )]
    pub(super) fn begin(line: Line, agent: &str) -> Self {
        let (sender, receiver) = watch::channel(line);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(follow(
            receiver,
            format!("/api/agents/{agent}/stream?view=log"),
            seen.clone(),
        ))
        .abort_handle();
        Self {
            line: sender,
            seen,
            task,
        }
    }

    /// The host is somewhere else now.
    pub(super) fn moved(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// Watches no more.
    pub(super) fn end(self) -> SeenPlaces {
        self.task.abort();
        self.seen.lock().unwrap().clone()
    }
}

async fn follow(mut line: watch::Receiver<Line>, path: String, seen: Arc<Mutex<SeenPlaces>>) {
    loop {
        let here = line.borrow_and_update().clone();
        let last = seen.lock().unwrap().last().copied().unwrap_or(0);
        match here.follow(&path, Some(last)).await {
            Ok(mut frames) => {
                while let Some(frame) = frames.receive().await {
                    seen.lock().unwrap().extend(frame.id);
                }
            }
            // What was shown is not there any more: nothing will be right from here on.
            Err(Some(400)) => return seen.lock().unwrap().push(u64::MAX),
            Err(_) => {}
        }
        tokio::select! {
            _ = line.changed() => {}
            () = sleep(Duration::from_millis(50)) => {}
        }
    }
}
