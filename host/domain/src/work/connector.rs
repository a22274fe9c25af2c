//! Connectors: how agents talk with people at messaging services.
//!
//! - what an operator says of a connector: `spec.rs`; how its service proves its calls:
//!   `webhook.rs`
//! - the one whose service is the host itself: `direct.rs`
//! - what arrives: `incoming.rs`; who it is from: `sender.rs`, `pairing.rs`
//! - where replies go: `reply_route.rs`
//! - what is sent: `outgoing.rs`, split where it is too long (`split.rs`), questions and their
//!   answers (`question.rs`); tries of it: `tries.rs`; limits: `limits.rs`

mod direct;
mod incoming;
mod limits;
mod outgoing;
mod pairing;
mod question;
mod reply_route;
mod sender;
mod spec;
mod split;
mod tries;
mod webhook;

pub use direct::*;
pub use incoming::*;
pub use limits::*;
pub use outgoing::*;
pub use pairing::*;
pub use question::*;
pub use reply_route::*;
pub use sender::*;
pub use spec::*;
pub use split::*;
pub use tries::*;
pub use webhook::*;
