//! Questions in a chat: how what an agent asks is said to people, and how what they say or press
//! is read as an answer.

mod ask;
mod button;
mod read;
#[cfg(test)]
mod tests;

pub use ask::{ask, elsewhere, open_approval};
pub use button::{ButtonValue, Pressed};
pub use read::{NotAnAnswer, read};
