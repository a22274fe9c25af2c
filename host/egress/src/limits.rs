//! The limits that hold for every request of every caller. Sizes and the total time of one request
//! are its grant's.

/// Headers of a request or of a response, and trailers.
pub const HEADERS_MAX: usize = 100;
/// Bytes of a request's head, or of a response's.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// Bytes that a server may send until the head of its answer is complete. Interim answers (1xx) and
/// what was read ahead count.
pub const PRELUDE_BYTES_MAX: u64 = 128 << 10;
/// Addresses of an answer that are tried, in their order. All are judged.
pub(crate) const DIALS_MAX: usize = 4;
/// Addresses that are put on record.
pub(crate) const RECORDED_ADDRESSES_MAX: usize = 16;
/// Bytes of a path that are put on record.
pub(crate) const RECORDED_PATH_BYTES_MAX: usize = 512;
/// Bytes that are decompressed in one go: at deflate's greatest ratio, 1,032, they become half a
/// megabyte.
pub(crate) const INFLATE_BYTES: usize = 512;

/// The limits of one [`Egress`](crate::Egress).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that are under way at the same time, the reading of their bodies included.
    pub in_flight_max: usize,
    /// The same for one component.
    pub in_flight_per_component_max: usize,
    /// Milliseconds that a request waits for its turn when too many are under way.
    pub queue_ms_max: u64,
    /// Milliseconds for the lookup of a name.
    pub resolve_ms_max: u64,
    /// Milliseconds until a connection stands, over all addresses that are tried, and as many again
    /// for TLS.
    pub connect_ms_max: u64,
    /// Milliseconds until the head of the answer is there, counted from the last byte that could be
    /// sent.
    pub first_byte_ms_max: u64,
    /// Milliseconds without a byte of the body.
    pub idle_ms_max: u64,
    /// Milliseconds of a request in all, for a part of the host that knows better than a grant.
    /// None for the grant's limit.
    pub total_ms_max: Option<u64>,
    /// Connections that are kept open for the next request of the same component. The scheme, the
    /// host and the port have to be the same. 0 keeps none, which is the default.
    pub idle_connections_max: usize,
    /// Milliseconds for which such a connection is used again.
    pub idle_connection_ms_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight_max: 128,
            in_flight_per_component_max: 16,
            queue_ms_max: 5_000,
            resolve_ms_max: 5_000,
            connect_ms_max: 5_000,
            first_byte_ms_max: 30_000,
            idle_ms_max: 30_000,
            total_ms_max: None,
            idle_connections_max: 0,
            idle_connection_ms_max: 60_000,
        }
    }
}
