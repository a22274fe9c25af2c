//! Egress: the one way by which anything leaves the host over HTTP, for guests and for the host
//! itself.
//!
//! A request passes the same gates in the same order each time: one parse, a grant, one lookup, a
//! judgement over every address, a dial of exactly those addresses, TLS, the exchange, and caps on
//! all that comes back. A redirect starts again at the first gate. The rules are
//! [`domain::egress`]; here they are carried out, so that what was checked is what is dialled.
//! There is no proxy, no cookie jar and no cache, and a connection serves two requests only for
//! those who ask for it, and only within the same component, scheme, host and port. Every hop
//! leaves a [`Record`], also one that was refused or dropped half-way. Never in here: WebAssembly,
//! SQL, rules of its own, what a body means.
//!
//! ## Where things are
//!
//! - the gates of a hop, in order: `egress.rs`; what is sent on it, and on the next: `leg.rs`
//! - requests, callers, credentials and requests under way: `request.rs`; headers: `headers.rs`
//! - one lookup for a check and a dial: `dial.rs`
//! - the exchange, and connections that are kept: `exchange.rs`; the counted wire with its budget,
//!   the body: `wire.rs`, `body.rs`
//! - limits: `limits.rs`; time in which the host was awake: `awake.rs`
//! - errors and records: `error.rs`, `record.rs`

pub mod awake;
mod body;
mod dial;
mod egress;
mod error;
mod exchange;
mod headers;
mod leg;
mod limits;
mod record;
mod request;
mod wire;

pub use body::{Body, Response};
pub use dial::{Resolve, Resolving, SystemResolver, no_tls, system_tls};
pub use egress::Egress;
pub use error::{Broken, Cause, EgressError, GuestError, Phase, Refused, TooLarge, Unreachable};
pub use limits::{HEAD_BYTES_MAX, HEADERS_MAX, Limits, PRELUDE_BYTES_MAX};
pub use record::{Record, Records};
pub use request::{Caller, Credentials, Request, RequestPermit};
pub use wire::ByteBudget;
