//! Access: who makes a request, which grants components have, and which data leaves the host.
//!
//! ## Where things are
//!
//! - users, API keys and their scopes: `user.rs`, `key.rs`
//! - the proof of a host before a client sends a credential: `proof.rs`
//! - what a tool declares, and the texts in which it does: `tool.rs`, `tool/wording.rs`
//! - items that tools list for people to look at: `artifact.rs`
//! - what an author says of a component, and wants for it: `manifest.rs`
//! - grants, and the part that a call is bound to: `grant.rs`; folders, their patterns and quotas,
//!   how they lie to each other, and those of single users, agents and sessions:
//!   `glob.rs`, `grant/placing.rs`, `grant/owned.rs`; buckets and secrets:
//!   `grant/bucket.rs`, `grant/secret.rs`
//! - keys and values in a bucket, and what a call has written: `bucket.rs`
//! - the rule that decided about a call: `ruling.rs`; `agents/authority.rs` decides
//! - tools that are called only when a user has agreed: `confirm.rs`; the question is in
//!   `work/approval.rs`
//! - requests that a component may send: `egress.rs`, and in `egress/` the URL
//!   (`request_target.rs`), patterns (`host.rs`, `path.rs`), addresses that nobody dials
//!   (`address.rs`), headers (`header.rs`), the grant (`grant.rs`)
//! - the place of a secret in a request: `egress/placeholder.rs`
//! - values of secrets, and their echoes: `secret.rs`, `redact.rs` (`escape.rs`: escapes)

pub mod artifact;
pub mod bucket;
pub mod confirm;
pub mod egress;
pub mod glob;
pub mod grant;
pub mod key;
pub mod manifest;
pub mod proof;
pub mod redact;
pub mod ruling;
pub mod secret;
pub mod tool;
pub mod user;
