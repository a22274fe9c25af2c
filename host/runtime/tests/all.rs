//! The runtime through its public boundary, with real components: every outcome, every limit,
//! loading and the cache.
//!
//! The components are the programs of `tests/programs`, and the built-in file tools.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "all/agents.rs"]
mod agents;
#[path = "all/compiling.rs"]
mod compiling;
#[path = "all/connectors.rs"]
mod connectors;
#[path = "all/file_tools.rs"]
mod file_tools;
#[path = "all/files.rs"]
mod files;
#[path = "all/fixture.rs"]
mod fixture;
#[path = "all/imports.rs"]
mod imports;
#[path = "all/keyvalue.rs"]
mod keyvalue;
#[path = "all/lasting_folders.rs"]
mod lasting_folders;
#[path = "all/limits.rs"]
mod limits;
#[path = "all/loading.rs"]
mod loading;
#[path = "all/owned.rs"]
mod owned;
#[path = "all/quotas.rs"]
mod quotas;
#[path = "all/tools.rs"]
mod tools;
#[path = "all/triggers.rs"]
mod triggers;
