//! A running host.

use super::PATIENCE;
use super::frames::Frames;
use super::line::Line;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::ops::Deref;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::Child;

/// A running host.
#[derive(Debug)]
pub struct Host {
    pub(super) child: Child,
    pub(super) line: Line,
}

impl Deref for Host {
    type Target = Line;

    fn deref(&self) -> &Line {
        &self.line
    }
}

impl Host {
    /// A line with a key of a user's own, which may be used for these scopes.
    ///
    /// # Panics
    /// When no key is issued.
    pub async fn user(&self, user: &str, scopes: &[&str]) -> Line {
        let wanted = json!({ "user": user, "name": "test", "scopes": scopes });
        let issued = self.post("/api/keys", &wanted).gives(201).await;
        self.with_token(issued.text("key"))
    }

    /// Returns a line to the host that can outlive it.
    #[must_use]
    pub fn line(&self) -> Line {
        self.line.clone()
    }

    /// Follows an event stream, after an event or from now on.
    ///
    /// # Panics
    /// When there is no stream.
    pub async fn follow(&self, path: &str, last_event_id: Option<u64>) -> Frames {
        self.line
            .follow(path, last_event_id)
            .await
            .expect("a stream")
    }

    /// Its process.
    ///
    /// # Panics
    /// When it has ended.
    #[must_use]
    pub fn process(&self) -> Pid {
        self.child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .expect("a running process")
    }

    /// Returns the exit status of the process, if it ends within this time.
    pub async fn died(&mut self, within: Duration) -> Option<ExitStatus> {
        tokio::time::timeout(within, self.child.wait())
            .await
            .ok()
            .and_then(Result::ok)
    }

    /// Kills it at once, as `kill -9` does.
    ///
    /// # Panics
    /// When it does not die.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("a killed process");
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.process(), signal).expect("a signal that arrives");
    }

    /// Tells it to stop.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    pub fn tell_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Tells it to stop, and waits until it has.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn stop(mut self) -> ExitStatus {
        self.tell_to_stop();
        self.died(PATIENCE).await.expect("an end in time")
    }
}
