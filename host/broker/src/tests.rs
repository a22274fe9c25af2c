//! Rules of the driver and of purges, each tested with a scripted guest over a real store.

mod cutting;
mod definitions;
mod host;
mod inbound_messages;
mod operations;
mod outbound_messages;
mod purging;
mod stepping;
mod telling;
mod triggers;
mod waking;
