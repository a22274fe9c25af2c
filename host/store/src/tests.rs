//! Tests through the store's own boundary, on a real database.

mod accounts;
mod agents;
mod backups;
mod blobs;
mod buckets;
mod commits;
mod components;
mod disk;
mod dispatches;
mod door;
mod files;
mod guards;
mod keys;
mod log;
mod opening;
pub(crate) mod plans;
mod power;
mod projections;
mod purging;
mod rebuilding;
mod recalling;
mod released;
mod sample;
mod sequences;
mod spawned;
mod threads;
mod verification;
