//! Triggers: messages from the host to an agent without a user's message.
//!
//! A trigger event is first accepted, in a commit of its own. Then the trigger's component is
//! called on it, and one commit stores its messages, the trigger's new state and the
//! acknowledgement. At last each message is handed to its session through the broker, under an
//! idempotency key that is derived from the trigger event. After a crash each of these steps is
//! repeated from the store, and counts once. One event of a trigger is processed at a time, in the
//! order of acceptance.
//!
//! - triggers of the configuration: `triggers/definitions.rs`; commands of users and operators:
//!   `triggers/commands.rs`; checks of a trigger's definition: `triggers/checks.rs`, and of its
//!   targets: `triggers/targets.rs`
//! - times that come due: `triggers/clock.rs`; heartbeats: `triggers/heartbeat.rs`
//! - webhook calls: `triggers/webhook.rs`
//! - files that change: `triggers/files.rs` and `triggers/files/`, and a scan of a folder:
//!   `triggers/scan.rs`
//! - events of the host: `triggers/host_events.rs`, and their content: `triggers/host_events/`
//! - the order in which trigger events are processed: `triggers/dispatch.rs`, and those requested
//!   by hand of inactive triggers: `triggers/by_hand.rs`
//! - one trigger event: the call of its component in `triggers/trigger_run.rs`, its messages in
//!   `triggers/posting.rs`, its failures in `triggers/failing.rs`
//! - events of triggers and the commits that store them: `triggers/recording.rs`
//! - the ledger's entries for a trigger run: `triggers/ledger.rs`
//! - turns that do not end: `triggers/watchdog.rs`

mod by_hand;
mod checks;
mod clock;
mod commands;
mod definitions;
mod dispatch;
mod failing;
mod files;
mod heartbeat;
mod host_events;
mod ledger;
mod posting;
mod recording;
mod scan;
mod targets;
mod trigger_run;
mod watchdog;
mod webhook;

pub use commands::{KindName, TriggerQuery, UnknownKind};
pub use webhook::{HookAnswer, HookCall, HookForm};

/// The items that tests of watched folders use.
#[cfg(test)]
pub(crate) mod files_for_tests {
    pub(crate) use super::files::{Kept, ScanResult, scan_again};
    pub(crate) use super::scan::Wanted;
}

use crate::core::Core;
use crate::worker;
use broker::Error;
use std::sync::Arc;
use tokio::sync::{Mutex, Notify, Semaphore, watch};

/// The crash points of triggers.
pub(crate) const CRASH_POINTS: &[&str] = &[
    "edge.define.before",
    "edge.define.after",
    "edge.due.before",
    "edge.due.after",
    "edge.webhook.before",
    "edge.webhook.after",
    "edge.files.before",
    "edge.files.after",
    "edge.heard.before",
    "edge.heard.after",
    "edge.call.before",
    "edge.call.after",
    "edge.fire.before",
    "edge.fire.after",
    "edge.fail.before",
    "edge.fail.after",
    "edge.post.before",
    "edge.post.between",
    "edge.posted.before",
    "edge.posted.after",
];

/// The triggers of a host: commands on them, and the calls of webhooks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Triggers {
    shared: Arc<Shared>,
}

/// The things that the triggers' tasks and commands share.
#[derive(Debug)]
pub(crate) struct Shared {
    core: Arc<Core>,
    /// Wakes the clock: the next due time may have changed.
    due: Notify,
    /// Wakes the dispatch: a trigger event was accepted, or may be processed now.
    open: Notify,
    /// A counter that changes whenever triggers are defined, changed, paused, resumed or removed.
    changed: watch::Sender<u64>,
    /// Lock that is held while triggers are defined. Two at once could take the same name.
    defining: Mutex<()>,
    /// Permits for webhook calls that are stored at a time.
    accepting: Semaphore,
    /// Webhook calls that were not verified.
    unverified: webhook::Unverified,
}

impl Shared {
    /// Tells all tasks that triggers are other ones than before.
    fn changed(&self) {
        self.changed.send_modify(|count| *count += 1);
        self.due.notify_one();
        self.open.notify_one();
    }
}

impl Triggers {
    /// Records the triggers of the configuration, and starts everything that has them fire.
    pub(crate) async fn start(core: Arc<Core>) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            core: core.clone(),
            due: Notify::new(),
            open: Notify::new(),
            changed: watch::Sender::new(0),
            defining: Mutex::default(),
            accepting: Semaphore::new(webhook::ACCEPTING_MAX),
            unverified: webhook::Unverified::default(),
        });
        let blocked = definitions::compare(&shared).await?;
        let keep_up = |name, task: fn(Arc<Shared>) -> futures::future::BoxFuture<'static, ()>| {
            let shared = shared.clone();
            core.keep_up(name, move |_| task(shared.clone()));
        };
        keep_up("the clock of triggers", |it| Box::pin(clock::run(it)));
        keep_up("the dispatch of trigger events", |it| {
            Box::pin(worker::run(dispatch::Dispatch(it)))
        });
        keep_up("the watch over folders", |it| Box::pin(files::run(it)));
        keep_up("the watch over events", |it| Box::pin(host_events::run(it)));
        keep_up("the watch over turns", |it| Box::pin(watchdog::run(it)));
        by_hand::go_on(&shared, blocked);
        Ok(Self { shared })
    }

    /// Compares the triggers of the configuration, which was replaced, with those that are
    /// recorded.
    pub(crate) async fn replaced(&self) -> Result<(), Error> {
        definitions::compare(&self.shared).await.map(drop)
    }

    /// Returns the state that the triggers share.
    #[cfg(test)]
    pub(crate) fn shared_for_tests(&self) -> &Shared {
        &self.shared
    }
}
