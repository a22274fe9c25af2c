//! Rules of the driver, each tested with a scripted guest over a real store.

mod cutting;
mod host;
mod operations;
mod stepping;
mod waking;
