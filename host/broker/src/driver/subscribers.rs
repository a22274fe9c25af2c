//! The people outside who receive a run's messages.

use domain::connector::Destination;
use domain::event::{InputAccepted, Source};
use domain::queue::WaitKind;

/// The subscribers of a run, from the inputs read so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscribers {
    pub(super) destination: Option<Destination>,
    /// Number of the run's inputs that were read.
    pub(super) inputs: usize,
    /// True if the run began with words of a trigger whose replies go nowhere: no others join it.
    pub(super) is_unheard: bool,
}

impl Subscribers {
    /// Returns the subscribers of a run that begins with these inputs.
    pub(super) fn of(inputs: &[InputAccepted]) -> Self {
        let mut subscribers = Self::default();
        inputs
            .iter()
            .for_each(|input| subscribers.inspect(Some(input)));
        subscribers
    }

    /// Reads the next input of the run; none for an erased one, which has no sender.
    pub(super) fn inspect(&mut self, input: Option<&InputAccepted>) {
        if let Some(input) = input {
            let is_apart = matches!(input.source, Source::Trigger { .. })
                && input.waits_for() == WaitKind::OwnTurn;
            self.is_unheard |= self.inputs == 0 && is_apart;
            self.destination = input.source.directs(self.destination.take());
        }
        self.inputs += 1;
    }
}
