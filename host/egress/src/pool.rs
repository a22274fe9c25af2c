//! Connections that wait for the next request to the same target.
//!
//! None is ever handed to another component, to another scheme, host or port, or to a request whose
//! grant does not open the address at its other end. They are not driven while they wait. One that
//! the server has closed, or that has waited too long, is found out and dropped at the next search
//! for one, so that no more than the limit are ever open.

use crate::exchange::Link;
use domain::egress::{Permit, Scheme, Target};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::Instant;

/// The target of a connection, and the component that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectionKey {
    component: String,
    scheme: Scheme,
    host: String,
    port: u16,
}

impl ConnectionKey {
    pub(crate) fn new(component: &str, target: &Target) -> Self {
        Self {
            component: component.to_owned(),
            scheme: target.scheme(),
            host: target.host().to_string(),
            port: target.port(),
        }
    }
}

/// A connection that waits.
struct Idle {
    key: ConnectionKey,
    link: Link,
    since: Instant,
}

/// The connections that wait.
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    connections_max: usize,
    wait_max: Duration,
}

/// The pool to which a connection returns when its answer has been read.
#[derive(Debug)]
pub(crate) struct Home {
    pool: Arc<Pool>,
    key: ConnectionKey,
}

impl Pool {
    pub(crate) fn new(connections_max: usize, wait_ms_max: u64) -> Self {
        Self {
            idle: Mutex::default(),
            connections_max,
            wait_max: Duration::from_millis(wait_ms_max),
        }
    }

    /// Returns true if connections are kept at all.
    pub(crate) fn keeps(&self) -> bool {
        self.connections_max > 0
    }

    /// Takes the connection that has waited for the shortest time among those that lead there. The
    /// permit has to open its address.
    pub(crate) async fn take(&self, key: &ConnectionKey, permit: &Permit<'_>) -> Option<Link> {
        loop {
            let mut link = self.latest(key, permit)?;
            // Until the next turn nobody knows what has come meanwhile, such as the news that the
            // server has gone.
            yield_now().await;
            if link.is_usable() {
                return Some(link);
            }
        }
    }

    fn latest(&self, key: &ConnectionKey, permit: &Permit<'_>) -> Option<Link> {
        let mut idle = self.idle();
        idle.retain(|idle| idle.since.elapsed() < self.wait_max);
        let at = idle
            .iter()
            .rposition(|idle| idle.key == *key && permit.admits(idle.link.address()).is_ok())?;
        Some(idle.remove(at).link)
    }

    /// Returns the home of a connection; none if no connections are kept.
    pub(crate) fn home(self: &Arc<Self>, key: ConnectionKey) -> Option<Home> {
        self.keeps().then(|| Home {
            pool: Arc::clone(self),
            key,
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home {
    /// Takes a connection back, if another request can be sent over it.
    pub(crate) fn receive(self, mut link: Link) {
        if !link.is_usable() {
            return;
        }
        let Self { pool, key } = self;
        let mut idle = pool.idle();
        idle.retain(|idle| idle.since.elapsed() < pool.wait_max);
        let over = (idle.len() + 1).saturating_sub(pool.connections_max);
        idle.drain(..over);
        idle.push(Idle {
            key,
            link,
            since: Instant::now(),
        });
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("idle", &self.idle().len())
            .finish_non_exhaustive()
    }
}
