//! The work that one line may cause, counted in bytes that are read or made.

/// Bytes that a line may read and make in all, and so a bound of its time and memory.
const WORK_BYTES_MAX: usize = 64 << 20;
/// Bytes that one command or one word may make.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;

/// The reason why a line does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A call is needed that has no result yet.
    Call(crate::Wanted),
    /// A limit is met, or the line cannot go on: the reason, for people.
    Over(String),
}

/// The work that is left.
#[derive(Debug)]
pub(crate) struct Meter {
    left: usize,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            left: WORK_BYTES_MAX,
        }
    }

    /// Counts work before it is done.
    pub(crate) fn work(&mut self, bytes: usize) -> Result<(), Stop> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Stop::Over(format!(
                "the line works on more than {WORK_BYTES_MAX} bytes; narrow it"
            ))),
        }
    }

    /// Counts a text of so many bytes that is about to be made.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<(), Stop> {
        if bytes > TEXT_BYTES_MAX {
            return Err(Stop::Over(format!(
                "a text of more than {TEXT_BYTES_MAX} bytes would be made; narrow it"
            )));
        }
        self.work(bytes)
    }
}
