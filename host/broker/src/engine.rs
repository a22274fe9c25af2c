//! The types that execute guests, in the one place from which the broker takes them.
//!
//! They are the runtime's. In the tests of this crate those of a scripted engine with the same
//! methods stand in for them, so that a rule of the driver is tested without a component. The
//! choice is made when the crate is compiled: the program has no other engine, and no test's cost.

#[cfg(test)]
pub(crate) mod scripted;

#[cfg(not(test))]
pub(crate) use runtime::{Admission, Component, Runtime};
#[cfg(test)]
pub(crate) use scripted::{Admission, Component, Runtime};
