//! Values without rules of the host: ids, digests, times, JSON, limits.
//!
//! ## Where things are
//!
//! - ids, and how one follows from another: `id.rs`
//! - digests and salts, and the hash chain over all events: `digest.rs`, `chain.rs`
//! - pauses between tries: `backoff.rs`
//! - differences between two documents, by their keys: `difference.rs`
//! - points in time, and time on a host whose wall clock may jump: `time.rs`, `clock.rs`, which the
//!   broker's `clock.rs` reads
//! - JSON from outside: `json.rs`; its parser and how deep it may be nested: `sdk/shapes`
//! - JSON Schemas that are taken: `schema.rs` (`graph.rs`: of which schemas one is made);
//!   the broker's `schemas.rs`
//!   compares documents with them
//! - error codes, what each says of another try, and their categories: `error_code.rs`
//! - fields of JSON objects, with their places: `fields.rs`
//! - files that a user hands over: `file.rs`; widgets that take files are in
//!   `work/widget/upload.rs`
//! - limits of a turn, a step or an input, and ranges of configured numbers: `limits.rs`,
//!   `ranges.rs`
//! - refusals in one form: `refusal.rs`
//! - values that are made up from a JSON Schema: `sample.rs`
//! - conversions from and to text, written once: `text.rs`

pub mod backoff;
pub mod chain;
pub mod clock;
pub mod difference;
pub mod digest;
pub mod error_code;
pub(crate) mod fields;
pub mod file;
pub mod id;
pub mod json;
pub mod limits;
pub mod ranges;
pub mod refusal;
pub mod sample;
pub mod schema;
pub(crate) mod text;
pub mod time;

pub use shapes::shown;
