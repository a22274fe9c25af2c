//! The chunks of a reply while it is made: shown to a watcher, never stored, never final.

use domain::redact::{Redaction, Redactor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A chunk of a reply that is being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More of its text.
    Text(String),
    /// More of what the model thinks before it answers.
    Thinking(String),
    /// The model has begun to write a call.
    CallStarted {
        /// The call's index in the reply, as far as it is known by now.
        index: u32,
        /// The tool's name.
        name: String,
    },
    /// The program in the model's place has called a tool of its own.
    OwnCall {
        /// The call's index among those of the turn.
        index: u32,
        /// The tool's name.
        name: String,
    },
}

/// A watcher of a reply in the making. Its methods must return at once: they are called between two
/// reads from the network.
pub trait DeltaSink: Send + Sync {
    /// Returns whether a reply is to come as a stream, where its provider has one.
    fn streams(&self) -> bool {
        true
    }
    /// Shows more of the reply of an attempt. `attempt` is its number from the
    /// [`AttemptBudget`](crate::AttemptBudget); `seq` counts from 0 within an attempt, without
    /// gaps.
    fn delta(&self, attempt: u32, seq: u64, delta: Delta);
    /// All that this attempt said is void. Called at most once an attempt, and only for one that
    /// said something.
    fn discarded(&self, attempt: u32);
}

/// A sink for calls that no one watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDeltas;

impl DeltaSink for NoDeltas {
    fn delta(&self, _attempt: u32, _seq: u64, _delta: Delta) {}
    fn discarded(&self, _attempt: u32) {}
}

/// The way from one attempt to the sink, without the provider's key however it is cut.
pub(crate) struct Feed<'a> {
    sink: &'a dyn DeltaSink,
    attempt: u32,
    next: AtomicU64,
    text: Mutex<Redaction>,
    thinking: Mutex<Redaction>,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(sink: &'a dyn DeltaSink, attempt: u32, redactor: &Redactor) -> Self {
        let [text, thinking] = [redactor.begin(), redactor.begin()].map(Mutex::new);
        Self {
            sink,
            attempt,
            next: AtomicU64::new(0),
            text,
            thinking,
        }
    }

    pub(crate) fn text(&self, text: &str) {
        let shown = locked(&self.text).push(text.as_bytes());
        self.show(&shown, Delta::Text);
    }

    pub(crate) fn thinking(&self, text: &str) {
        let shown = locked(&self.thinking).push(text.as_bytes());
        self.show(&shown, Delta::Thinking);
    }

    pub(crate) fn call(&self, index: u32, name: &str) {
        self.send(Delta::CallStarted {
            index,
            name: name.to_owned(),
        });
    }

    pub(crate) fn own_call(&self, index: u32, name: &str) {
        self.send(Delta::OwnCall {
            index,
            name: name.to_owned(),
        });
    }

    /// Shows what was held back because it could have become the key.
    pub(crate) fn finish(&self) {
        let [thinking, text] = [&self.thinking, &self.text].map(|pending| locked(pending).finish());
        self.show(&thinking, Delta::Thinking);
        self.show(&text, Delta::Text);
    }

    /// Takes back what was said, if anything was.
    pub(crate) fn discard(&self) {
        if self.next.load(Ordering::Relaxed) > 0 {
            self.sink.discarded(self.attempt);
        }
    }

    /// Shows a text. Redaction holds back from an ASCII character on, so that no character is cut.
    fn show(&self, text: &[u8], delta: fn(String) -> Delta) {
        if !text.is_empty() {
            self.send(delta(String::from_utf8_lossy(text).into_owned()));
        }
    }

    fn send(&self, delta: Delta) {
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        self.sink.delta(self.attempt, seq, delta);
    }
}

fn locked(pending: &Mutex<Redaction>) -> MutexGuard<'_, Redaction> {
    // Redaction does not panic between two changes that belong together.
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
