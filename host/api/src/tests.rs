//! The routes of a whole host, over real sockets, with a real store behind them.

mod chat;
mod described;
mod document;
mod error_codes;
mod files;
mod host;
pub(crate) mod issuer;
mod keys;
mod outside;
mod problems;
mod quotas;
mod routes;
mod scopes;
mod status;
mod streams;
mod telemetry;
mod tokens;
mod triggers;
mod usage;
mod widgets;
