//! Rules of the driver and of purges, each tested with a scripted guest over a real store.

mod arrivals;
mod cutting;
mod definitions;
mod deliveries;
mod host;
mod operations;
mod purging;
mod stepping;
mod telling;
mod triggers;
mod waking;
