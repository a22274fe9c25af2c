//! The types that execute guests, in the one place from which the broker takes them.
//!
//! They are the runtime's. In the tests of this crate they are replaced by those of a scripted
//! engine with the same methods, so that a rule of the driver is tested without a component. The
//! choice is made at compile time: the program has no other engine, and no cost of the tests.

#[cfg(test)]
pub(crate) mod scripted;

#[cfg(not(test))]
pub(crate) use runtime::{Admission, Component, Runtime};
#[cfg(test)]
pub(crate) use scripted::{Admission, Component, Runtime};
