//! Values without a rule of the host's own: ids, digests, times, JSON, limits.
//!
//! - An id, and how it follows from another: [`id`].
//! - The time on a host whose wall clock may jump: [`clock`], which the broker's `clock.rs` reads.
//! - The depth to which JSON from outside may be nested: [`json`].
//! - The JSON Schemas that are taken: [`schema`]; the broker's `schemas.rs` compares documents with
//!   them.
//! - A file that a user hands over, and how an answer names it: [`file`]; widgets that take files
//!   are in `work/widget/upload.rs`.
//! - A limit of a turn, a step or an input: [`limits`].
//! - The hash chain over all events: [`chain`].
//! - The one form of a refusal: [`refusal`].
//!
//! ## Where things are
//!
//! - time on a host whose wall clock may jump: `values/clock.rs`
//! - depth of JSON from outside: `values/json.rs`
//! - JSON Schemas that are accepted: `values/schema.rs`
//! - files that users hand over: `values/file.rs`
//! - refusals: `values/refusal.rs`

pub mod chain;
pub mod clock;
pub mod digest;
pub mod file;
pub mod id;
pub mod json;
pub mod limits;
pub mod ranges;
pub mod refusal;
pub mod schema;
pub mod shown;
pub mod time;
pub(crate) mod wildcard;
