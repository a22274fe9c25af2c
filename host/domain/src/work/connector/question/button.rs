//! The value of a question's button: the question and the choice, in few bytes.

use crate::values::digest::Digest;
use crate::values::id::OperationId;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The first character of a button's value, by which versions are distinguished.
const FORMAT: char = 'q';
/// The word for skipping a question.
const SKIP: &str = "skip";

/// The value of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ButtonValue {
    /// The question.
    pub question: OperationId,
    /// The choice.
    pub pressed: Pressed,
}

/// The choice of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// The index of an option, a rating, or 1 for yes and 0 for no.
    Number(i64),
    /// The question is passed on.
    Skip,
}

impl ButtonValue {
    /// Returns the value as a text of at most 64 bytes
    /// ([`super::super::limits::BUTTON_BYTES_MAX`]).
    #[must_use]
    pub fn to_text(self) -> String {
        let question = URL_SAFE_NO_PAD.encode(self.question.0.0);
        match self.pressed {
            Pressed::Number(number) => format!("{FORMAT}{question}.{number}"),
            Pressed::Skip => format!("{FORMAT}{question}.{SKIP}"),
        }
    }

    /// Reads a value; none if it is no button of this host.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (question, pressed) = text.strip_prefix(FORMAT)?.split_once('.')?;
        let bytes = URL_SAFE_NO_PAD.decode(question).ok()?;
        let pressed = match pressed {
            SKIP => Pressed::Skip,
            number => Pressed::Number(number.parse().ok()?),
        };
        Some(Self {
            question: OperationId(Digest(bytes.try_into().ok()?)),
            pressed,
        })
    }
}
