//! The named limits of the HTTP server, with their units.

use domain::backoff::Backoff;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bytes of the request line and headers together; hyper answers 431 above.
pub const HEADER_BYTES_MAX: usize = 32 << 10;
/// Headers of one request; hyper answers 431 above. This is hyper's default: setting it would move
/// the headers to the heap.
pub const HEADERS_MAX: usize = 100;
/// Bytes of any request body but a file's ([`domain::file::FILE_BYTES_MAX`]); 413 above.
pub const BODY_BYTES_MAX: usize = 2 << 20;
/// Pauses while accepting connections goes on failing.
pub const ACCEPT_PAUSES: Backoff = Backoff {
    first_ms: 10,
    most_ms: 1_000,
};
/// Bytes that are still read, and dropped, of a request that was answered before all of it was
/// there. A client that has sent more is cut off and may not see its answer.
pub const LINGER_BYTES_MAX: usize = 32 << 20;
/// Connections that the kernel keeps waiting for `accept`.
pub const BACKLOG: i32 = 1_024;
/// Refused clients whose remaining bytes are still read, at the same time. From further ones
/// nothing is read, and they may not see why they were refused.
pub const GOODBYES_MAX: usize = 64;
/// Seconds of silence after which the kernel asks whether a peer is still there.
pub const KEEPALIVE_IDLE_S: u64 = 15;
/// Seconds between such questions. Three without an answer end the connection, 45 s after the peer
/// vanished.
pub const KEEPALIVE_INTERVAL_S: u64 = 10;
/// Seconds that what was sent may go unacknowledged, heartbeats of an event stream included, before
/// the connection ends. Without it a peer that vanished while something was under way is noticed
/// only after the kernel's retransmissions, which take a quarter of an hour. Where the kernel has
/// no such limit (it is Linux's `TCP_USER_TIMEOUT`), that is how it is.
pub const UNACKNOWLEDGED_S_MAX: u64 = 45;

/// Connections beyond the limits that are kept for health checks at the same time. They are
/// answered one request: `/healthz`, `/readyz` and `/startupz` as always, everything else by 503.
pub const CHECKS_MAX: usize = 16;
/// Milliseconds until the request on such a connection is complete.
pub const CHECK_MS_MAX: u64 = 1_000;

/// Limits of the server: connections, requests and event streams. Every field can be set in the
/// configuration under `server.limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Milliseconds until a request's headers are complete, counted from the connection's start or
    /// from the request's first byte.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub header_ms_max: u64,
    /// Milliseconds until a request's body is complete.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub body_ms_max: u64,
    /// Milliseconds that a connection may be idle between requests.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub idle_ms_max: u64,
    /// Milliseconds that a response may make no progress because the client does not read.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub write_ms_max: u64,
    /// Milliseconds for which the rest of a request is read and dropped if it was answered early.
    #[schemars(range(min = 0, max = 600_000))]
    pub linger_ms_max: u64,
    /// Connections at the same time.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_max: usize,
    /// Connections at the same time from one address.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_per_address_max: usize,
    /// Bytes that the kernel may buffer for each connection that is slow to read.
    #[schemars(range(min = 4_096, max = 16_777_216))]
    pub send_buffer_bytes: usize,
    /// Event streams at the same time.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub streams_max: usize,
    /// Event streams of one user at the same time. The host's own token has no such limit, nor any
    /// of the following six.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub streams_per_user_max: usize,
    /// Event streams that are opened with one API key at the same time.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub streams_per_key_max: usize,
    /// Messages of one user whose senders wait for the reply (`wait_s`) at the same time. Further
    /// ones are accepted without waiting.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub waits_per_user_max: usize,
    /// Messages with one API key whose senders wait for the reply at the same time.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub waits_per_key_max: usize,
    /// Requests of one user in a second; twice as many may come at once after a quiet while.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub user_requests_per_second_max: u32,
    /// Requests with one API key in a second; twice as many may come at once after a quiet while.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub key_requests_per_second_max: u32,
    /// Sessions that are opened with one API key in a minute. What all keys of a user open together
    /// is limited by `limits.userSessionsPerMinuteMax`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub key_sessions_per_minute_max: u32,
    /// Milliseconds between the heartbeats of an event stream.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub heartbeat_ms: u64,
    /// Bytes that may wait for a client that reads an event stream slowly. Above that, nothing more
    /// is sent to it until it has read.
    #[schemars(range(min = 1_024, max = 67_108_864))]
    pub stream_waiting_bytes_max: usize,
    /// Milliseconds after which such a client is disconnected when it reads nothing.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub stream_stall_ms_max: u64,
    /// Milliseconds that turns in progress get when the host shuts down.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub drain_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_ms_max: 10_000,
            body_ms_max: 30_000,
            idle_ms_max: 75_000,
            write_ms_max: 30_000,
            linger_ms_max: 10_000,
            connections_max: 1_024,
            connections_per_address_max: 256,
            send_buffer_bytes: 128 << 10,
            streams_max: 1_024,
            streams_per_user_max: 64,
            streams_per_key_max: 32,
            waits_per_user_max: 64,
            waits_per_key_max: 32,
            user_requests_per_second_max: 500,
            key_requests_per_second_max: 250,
            key_sessions_per_minute_max: 120,
            heartbeat_ms: 15_000,
            stream_waiting_bytes_max: 256 << 10,
            stream_stall_ms_max: 5_000,
            drain_ms: 10_000,
        }
    }
}

impl Limits {
    /// Returns it as a duration, for timers.
    #[must_use]
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }
}
