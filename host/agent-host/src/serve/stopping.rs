//! The end of a host that serves: its parts end in the reverse of the order in which they began.

use api::{Api, Stopper};
use broker::Broker;
use edge::Edge;
use std::time::Duration;

/// Seconds that connections get after the last turn has come to a pause.
const CONNECTIONS_DRAIN_S: u64 = 2;

/// The parts of a host that stops.
pub(super) struct Stopping {
    pub(super) api: Api,
    pub(super) edge: Edge,
    pub(super) broker: Broker,
    pub(super) stopper: Stopper,
}

impl Stopping {
    /// Ends commands first, then what comes in and goes out by itself, then work, then requests.
    pub(super) async fn shut_down(&self, drain: Duration) {
        tracing::info!("stopping: turns in progress come to a pause");
        self.api.drain();
        self.edge.stop().await;
        self.broker.shutdown(drain).await;
        self.stopper
            .stop(Duration::from_secs(CONNECTIONS_DRAIN_S))
            .await;
    }

    /// Stops without waiting for turns in progress.
    pub(super) async fn stop_at_once(&self) {
        tracing::warn!(
            "stopped without waiting for turns in progress; they go on at the next start"
        );
        self.broker.note_end().await;
        self.stopper.stop(Duration::ZERO).await;
    }
}
