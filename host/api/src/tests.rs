//! The routes of a whole host, over real sockets, with a real store behind them.

mod host;
mod problems;
mod routes;
mod streams;
