//! Access: who asks, what components are granted, and what leaves the host.
//!
//! - A user, and what an API key is good for: [`user`] and [`key`].
//! - What a tool declares: its schema, its effect, the capabilities that it asks for: [`tool`].
//! - The grant of a component, and the part of it that a call is bound to: [`grant`].
//! - The rule that decided about a call: [`ruling`]; `agents/authority.rs` decides.
//! - The tools that are called only when a user has agreed: [`confirm`]; the question is in
//!   `work/approval.rs`.
//! - The files of a granted folder that a tool may use: [`glob`] and `grant/directory.rs`.
//! - What a tool may keep in a bucket: [`bucket`] and `grant/bucket.rs`.
//! - Where a component may send a request, and the addresses that are never dialled: [`egress`]:
//!   URL, pattern, address, header, permit.
//! - Where a secret goes, and how its echo is taken out: [`secret`], `egress/placeholder.rs`,
//!   [`redact`].
//!
//! ## Where things are
//!
//! - grants and capabilities: `access/grant.rs`
//! - patterns on files of a granted folder, and its quotas: `access/glob.rs`,
//!   `access/grant/directory.rs`
//! - buckets of tools: `access/bucket.rs`
//! - requests that a component may send, and addresses that nobody dials: `access/egress.rs`
//! - the place of a secret in a request: `access/egress/placeholder.rs`
//! - echoes of secrets: `access/redact.rs`
//! - API keys and users: `access/key.rs`, `access/user.rs`

pub mod bucket;
pub mod confirm;
pub mod egress;
pub mod glob;
pub mod grant;
pub mod key;
pub mod redact;
pub mod ruling;
pub mod secret;
pub mod tool;
pub mod user;
