//! Version 0.1.0 of triggers and connectors, in the words of version 0.2.0 and back. A component of
//! 0.1.0 is told nothing that its version cannot express.

pub(super) mod connector;
pub(super) mod trigger;
