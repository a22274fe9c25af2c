//! The performance of operations: calls of models and tools, and their results.

mod attempts;
mod model;
mod tool;

pub(crate) use attempts::Attempts;
pub(crate) use model::Model;
pub(crate) use tool::{Ran, Tool};
