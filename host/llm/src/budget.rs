//! The decision whether a model may be asked again within one call. The payer of the call takes it.

use domain::model::Attempt;
use std::fmt;
use std::pin::Pin;

/// The answer to whether another attempt may be made: its number, or why not, for people.
pub type Afforded<'a> = Pin<Box<dyn Future<Output = Result<u32, String>> + Send + 'a>>;

/// Decides on every attempt but the first, before it is made.
pub trait AttemptBudget: fmt::Debug + Send + Sync {
    /// The number of the first attempt, which needs no decision. What is shown of an attempt is
    /// shown under its number.
    fn first(&self) -> u32;

    /// Decides whether another attempt may be made; `ended` are all before it, in order. An attempt
    /// that used nothing may give its number to the next.
    fn afford<'a>(&'a self, ended: &'a [Attempt]) -> Afforded<'a>;
}

/// A call that may be tried as often as its limits say; its attempts are counted from 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unbudgeted;

impl AttemptBudget for Unbudgeted {
    fn first(&self) -> u32 {
        0
    }

    fn afford<'a>(&'a self, ended: &'a [Attempt]) -> Afforded<'a> {
        let number = u32::try_from(ended.len()).unwrap_or(u32::MAX);
        Box::pin(std::future::ready(Ok(number)))
    }
}
