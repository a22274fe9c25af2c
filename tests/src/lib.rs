//! A host in a box: real SQLite in a temporary folder, real components, a scripted model. For the
//! tests in `tests/` and the bench.

#![expect(
    clippy::indexing_slicing,
    reason = "these are tests: what is not there fails them"
)]

pub mod boxed;
pub mod faked_clock;
pub mod guests;
pub mod patience;
pub mod peer;
pub mod process;
pub mod prompt;
#[path = "../../host/domain/tests/models/queue.rs"]
pub mod queue_model;
pub mod repeats;
pub mod skip;
pub mod slow_disk;
pub mod small_disk;
pub mod world;

pub use world::{Setup, World};
