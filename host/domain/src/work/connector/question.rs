//! Questions in a chat: presenting an agent's question to people, and reading their words or
//! pressed buttons as an answer.

mod ask;
mod button;
mod read;
#[cfg(test)]
mod tests;

pub use ask::{ask, elsewhere, open_approval};
pub use button::{ButtonValue, Pressed};
pub use read::{NotAnAnswer, read};
