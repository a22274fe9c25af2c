//! The things that all of the edge shares: the broker, the runtime, the present settings, and
//! the tasks.

use crate::settings::EdgeSettings;
use broker::{Broker, Entry};
use domain::time::Timestamp;
use futures::FutureExt;
use runtime::Runtime;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Milliseconds until a task that panicked is restarted.
const AFTER_PANIC_MS: u64 = 1_000;

/// The things that all of the edge shares.
pub(crate) struct Core {
    pub(crate) broker: Broker,
    store: Store,
    pub(crate) runtime: Runtime,
    settings: RwLock<Arc<EdgeSettings>>,
    /// Number of replacements of the settings.
    replaced: watch::Sender<u64>,
    /// Cancelled when no new work may begin.
    pub(crate) stopping: CancellationToken,
    tasks: TaskTracker,
}

impl Core {
    pub(crate) fn new(
        broker: Broker,
        store: Store,
        runtime: Runtime,
        settings: EdgeSettings,
    ) -> Arc<Self> {
        Arc::new(Self {
            broker,
            store,
            runtime,
            settings: RwLock::new(Arc::new(settings)),
            replaced: watch::Sender::new(0),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Returns the event store.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.broker.clock().now()
    }

    /// Returns the present configuration.
    pub(crate) fn settings(&self) -> Arc<EdgeSettings> {
        self.settings
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the component of this name, with its grant.
    pub(crate) fn component(&self, name: &str) -> Option<Arc<Entry>> {
        self.broker.catalogue().entry(name).cloned()
    }

    /// Puts other settings in the place of the present ones.
    pub(crate) fn replace(&self, settings: EdgeSettings) {
        *self
            .settings
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        self.replaced.send_modify(|count| *count += 1);
    }

    /// Watches a counter that changes whenever the settings are replaced.
    pub(crate) fn replacements(&self) -> watch::Receiver<u64> {
        self.replaced.subscribe()
    }

    /// Starts a task that runs until the edge stops. After a panic it restarts: all its data are in
    /// the store. Its reads of the store have a lower priority than those of requests.
    pub(crate) fn keep_up<F>(
        self: &Arc<Self>,
        name: &'static str,
        task: impl Fn(Arc<Self>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let core = self.clone();
        self.tasks.spawn(store::in_background(async move {
            loop {
                let run = AssertUnwindSafe(task(core.clone())).catch_unwind();
                let ended = tokio::select! {
                    () = core.stopping.cancelled() => return,
                    ended = run => ended,
                };
                let Err(panic) = ended else { return };
                let panic = panic_text(panic.as_ref());
                tracing::error!(
                    task = name,
                    panic,
                    "a task of the edge panicked; it begins anew"
                );
                if !core.sleep_ms(AFTER_PANIC_MS).await {
                    return;
                }
            }
        }));
    }

    /// Starts a task that ends by itself. The stop of the edge waits for it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(store::in_background(task));
    }

    /// Sleeps. Returns false when the edge stops meanwhile.
    pub(crate) async fn sleep_ms(&self, ms: u64) -> bool {
        tokio::select! {
            () = self.stopping.cancelled() => false,
            () = tokio::time::sleep(Duration::from_millis(ms)) => true,
        }
    }

    /// Begins nothing new, and waits until the tasks have ended, at most for a time.
    pub(crate) async fn stop(&self, patience: Duration) {
        self.stopping.cancel();
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                "some work of triggers and connectors did not end in time; it goes on at the next \
                 start"
            );
        }
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("settings", &self.settings())
            .finish_non_exhaustive()
    }
}

/// Returns the text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without text".to_owned())
}
