//! The size of the large benchmarks.

use std::fmt;

/// The whole size, or one that takes seconds, to try the bench itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// As the bars are meant.
    Whole,
    /// A twentieth.
    Small,
}

impl Size {
    /// Returns the number to use where the whole size has `whole`.
    pub(crate) fn scaled(self, whole: usize) -> usize {
        match self {
            Self::Whole => whole,
            Self::Small => whole / 20,
        }
    }
}

/// A number as people read it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grouped(pub(crate) usize);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Grouped;

    #[test]
    fn a_number_is_written_in_groups_of_three() {
        assert_eq!(
            [1, 999, 1_000, 1_000_000].map(|number| Grouped(number).to_string()),
            ["1", "999", "1,000", "1,000,000"]
        );
    }
}
