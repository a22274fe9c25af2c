//! How models and tools are called, and what their results become.

mod attempts;
mod model;
mod tool;

pub(crate) use attempts::Attempts;
pub(crate) use model::Model;
pub(crate) use tool::{Ran, Tool};
