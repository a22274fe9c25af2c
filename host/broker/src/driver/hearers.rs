//! The people outside who hear what a run says.

use domain::connector::Destination;
use domain::event::InputAccepted;

/// The hearers of a run, as far as its inputs were looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hearers {
    pub(super) destination: Option<Destination>,
    /// Number of the run's inputs that were looked at.
    pub(super) inputs: usize,
}

impl Hearers {
    /// Returns the hearers of a run that begins with these inputs.
    pub(super) fn of(inputs: &[InputAccepted]) -> Self {
        let sources = inputs.iter().map(|input| &input.source);
        Self {
            destination: sources.fold(None, |before, source| source.directs(before)),
            inputs: inputs.len(),
        }
    }
}
