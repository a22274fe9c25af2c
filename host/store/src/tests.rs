//! Tests through the store's own boundary, on a real database.

mod backups;
mod commits;
mod disk;
mod opening;
mod power;
mod projections;
mod recalling;
mod sample;
mod sequences;
mod threads;
mod verification;
