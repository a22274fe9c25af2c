//! The HTTP server: an accept loop of our own around hyper, because every connection needs limits
//! that `axum::serve` does not have.
//!
//! A connection that sends nothing, half a header or a byte now and then is closed on time;
//! connections are counted, in all and per address; running out of file descriptors slows accepting
//! down and never spins. Never in here: routes.

mod body;
mod connection;
mod limits;
mod pulse;
mod silent;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use body::BodyFault;
pub use connection::Connected;
pub use limits::{
    ACCEPT_PAUSES, BACKLOG, BODY_BYTES_MAX, CHECK_MS_MAX, CHECKS_MAX, GOODBYES_MAX,
    HEADER_BYTES_MAX, HEADERS_MAX, KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, LINGER_BYTES_MAX,
    Limits, UNACKNOWLEDGED_S_MAX,
};

use axum::Router;
use domain::error_code::ErrorCode;
use silent::{Guest, Silent};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The server. Bound when it is made, so that a port in use is known before anything else starts.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    limits: Limits,
    /// Answers health checks when all connections are taken.
    checks: Option<Router>,
    connections: TaskTracker,
    /// No further requests.
    stop: CancellationToken,
    /// Every connection ends at once.
    hang_up: CancellationToken,
}

impl Server {
    /// Listens at an address.
    ///
    /// # Errors
    /// Error of the operating system, such as "address in use".
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        // Accepted sockets inherit this; without it a client that does not read costs megabytes of
        // kernel memory.
        socket.set_send_buffer_size(u32::try_from(limits.send_buffer_bytes).unwrap_or(u32::MAX))?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG.unsigned_abs())?;
        Ok(Self {
            listener,
            limits,
            checks: None,
            connections: TaskTracker::new(),
            stop: CancellationToken::new(),
            hang_up: CancellationToken::new(),
        })
    }

    /// Reserves connections for health checks, which these routes answer. They are used when all
    /// other connections are taken, in all or for an address.
    #[must_use]
    pub fn checked_by(self, checks: Router) -> Self {
        Self {
            checks: Some(checks),
            ..self
        }
    }

    /// Returns the address it listens at, with the assigned port if 0 was requested.
    ///
    /// # Errors
    /// Error of the operating system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// A handle to stop it with.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper {
            connections: self.connections.clone(),
            stop: self.stop.clone(),
            hang_up: self.hang_up.clone(),
        }
    }

    /// Serves until it is stopped. Connections that are open then go on until [`Stopper::stop`] is
    /// through with them.
    pub async fn serve(self, router: Router) {
        let slots = Arc::new(Semaphore::new(self.limits.connections_max));
        let goodbyes = Arc::new(Semaphore::new(GOODBYES_MAX));
        let addresses = Arc::new(Addresses::default());
        let check_places = Arc::new(Semaphore::new(CHECKS_MAX));
        let silent = Silent::default();
        let mut failures = 0_u32;
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                // The peer has gone again: its loss, and nothing to wait for.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                    ) =>
                {
                    continue;
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    let pause_ms = ACCEPT_PAUSES.pause_ms(failures);
                    tracing::warn!(%error, pause_ms, "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                    continue;
                }
            };
            failures = 0;
            let slot = slots.clone().try_acquire_owned().ok();
            let Some(place) =
                slot.and_then(|slot| addresses.clone().enter(peer.ip(), slot, &self.limits))
            else {
                tracing::debug!(%peer, "too many connections");
                if let Some(checks) = &self.checks
                    && let Some(guest) = silent.enter(check_places.clone().try_acquire_owned().ok())
                {
                    self.answer_check(stream, peer, checks.clone(), guest);
                    continue;
                }
                match goodbyes.clone().try_acquire_owned() {
                    Ok(goodbye) => {
                        let turned_away = turn_away(
                            stream,
                            goodbye,
                            self.limits.linger_ms_max,
                            self.stop.clone(),
                        );
                        self.connections.spawn(turned_away);
                    }
                    // At once and without a task: a flood is accepted faster than tasks run, and
                    // each would hold a descriptor until then.
                    Err(_) => turn_away_at_once(stream),
                }
                continue;
            };
            self.answer(stream, peer, router.clone(), self.limits, place);
        }
    }

    /// Sets a connection up.
    fn connected(&self, stream: &TcpStream, peer: SocketAddr) -> Connected {
        settle_in(stream);
        Connected {
            peer,
            hang_up: self.hang_up.child_token(),
        }
    }

    /// Answers the requests of a connection, which keeps its place meanwhile.
    fn answer(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        router: Router,
        limits: Limits,
        place: impl Send + 'static,
    ) {
        let connected = self.connected(&stream, peer);
        let connection = connection::serve(stream, connected, router, limits, self.stop.clone());
        self.connections.spawn(async move {
            connection.await;
            drop(place);
        });
    }

    /// Answers the one request of a connection that may be a health check, and soon ends it
    /// otherwise.
    fn answer_check(&self, stream: TcpStream, peer: SocketAddr, checks: Router, guest: Guest) {
        let soon = |ms: u64| ms.min(CHECK_MS_MAX);
        let limits = self.limits;
        let limits = Limits {
            header_ms_max: soon(limits.header_ms_max),
            body_ms_max: soon(limits.body_ms_max),
            idle_ms_max: soon(limits.idle_ms_max),
            write_ms_max: soon(limits.write_ms_max),
            linger_ms_max: soon(limits.linger_ms_max),
            ..limits
        };
        let connected = self.connected(&stream, peer);
        let stop = self.stop.clone();
        self.connections.spawn(async move {
            let within = Duration::from_millis(limits.header_ms_max);
            let spoken = tokio::select! {
                () = stop.cancelled() => None,
                spoken = guest.speaks(&stream, within) => spoken,
            };
            if let Some(place) = spoken {
                connection::serve(stream, connected, checks, limits, stop).await;
                drop(place);
            }
        });
    }
}

/// Stops a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stopper {
    connections: TaskTracker,
    stop: CancellationToken,
    hang_up: CancellationToken,
}

impl Stopper {
    /// Accepts no further connections and requests, waits up to `drain` for those in progress, and
    /// closes the rest.
    pub async fn stop(&self, drain: Duration) {
        self.stop.cancel();
        self.connections.close();
        if tokio::time::timeout(drain, self.connections.wait())
            .await
            .is_err()
        {
            self.hang_up.cancel();
            self.connections.wait().await;
        }
    }

    /// Cancelled when the server takes no further requests: event streams end with it.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }
}

/// Returns the response to a client when all connections are taken. A fresh socket has room for it.
fn crowded() -> String {
    let retry_after_s = ErrorCode::TooManyConnections
        .retry_after_s()
        .unwrap_or_default();
    let body = r#"{"type":"urn:agent-host:problem:too-many-connections","title":"Too many connections","status":503,"code":"TOO_MANY_CONNECTIONS"}"#;
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: {retry_after_s}\r\ncontent-type: \
         application/problem+json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Answers a client that all connections are taken. The bytes that it still sends are read and
/// dropped for a while, or it might not see the answer: see [`socket`].
async fn turn_away(
    mut stream: TcpStream,
    _goodbye: OwnedSemaphorePermit,
    linger_ms_max: u64,
    stop: CancellationToken,
) {
    if stream.write_all(crowded().as_bytes()).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    let mut rest = stream.take(LINGER_BYTES_MAX as u64);
    let mut nowhere = tokio::io::sink();
    let reading = tokio::time::timeout(
        Duration::from_millis(linger_ms_max),
        tokio::io::copy(&mut rest, &mut nowhere),
    );
    tokio::select! {
        () = stop.cancelled() => {}
        // Whatever came of it, the connection ends.
        _ = reading => {}
    }
}

/// Answers a client that all connections are taken and closes. A client that is still sending may
/// not see the answer.
fn turn_away_at_once(stream: TcpStream) {
    // The socket does not block: it takes what it has room for.
    if let Ok(mut stream) = stream.into_std() {
        let _ = io::Write::write(&mut stream, crowded().as_bytes());
    }
}

/// Small writes leave at once, and a peer that vanished is noticed.
fn settle_in(stream: &TcpStream) {
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(KEEPALIVE_IDLE_S))
        .with_interval(Duration::from_secs(KEEPALIVE_INTERVAL_S))
        .with_retries(3);
    let socket = socket2::SockRef::from(stream);
    let set = stream
        .set_nodelay(true)
        .and_then(|()| socket.set_tcp_keepalive(&keepalive));
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let set = set.and_then(|()| {
        socket.set_tcp_user_timeout(Some(Duration::from_secs(UNACKNOWLEDGED_S_MAX)))
    });
    if let Err(error) = set {
        tracing::debug!(%error, "the options of a socket could not be set");
    }
}

/// Number of connections per address.
#[derive(Debug, Default)]
struct Addresses(Mutex<HashMap<IpAddr, usize>>);

/// One connection's place; leaves it when dropped.
#[derive(Debug)]
struct AddressSlot {
    addresses: Arc<Addresses>,
    address: IpAddr,
    _slot: OwnedSemaphorePermit,
}

impl Addresses {
    fn enter(
        self: Arc<Self>,
        address: IpAddr,
        slot: OwnedSemaphorePermit,
        limits: &Limits,
    ) -> Option<AddressSlot> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= limits.connections_per_address_max {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(AddressSlot {
            addresses: self,
            address,
            _slot: slot,
        })
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let mut counts = self
            .addresses
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}
