//! The routes of a whole host, over real sockets, with a real store behind them.

mod files;
mod host;
pub(crate) mod issuer;
mod keys;
mod problems;
mod quotas;
mod routes;
mod scopes;
mod streams;
mod tokens;
mod widgets;
