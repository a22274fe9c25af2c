//! The attribute of every public async function here: its future is boxed.
//!
//! The body of an async function is compiled in each crate that awaits it, and those of the broker
//! are large. Behind a box they are compiled once, with this crate. The price is one allocation a
//! command.

pub(crate) use async_recursion::async_recursion as boxed;
