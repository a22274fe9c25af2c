//! How models and tools are called, and what their results become.

mod model;
mod tool;

pub(crate) use model::Model;
pub(crate) use tool::{Ran, Tool};
