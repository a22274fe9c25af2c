//! Tests through the store's own boundary, on a real database.

mod backups;
mod blobs;
mod buckets;
mod commits;
mod disk;
mod dispatches;
mod opening;
mod power;
mod projections;
mod recalling;
mod sample;
mod sequences;
mod spawned;
mod threads;
mod verification;
