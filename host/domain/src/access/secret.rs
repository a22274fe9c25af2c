//! Values of secrets, protected from being printed, stored or shown by mistake.
//!
//! A configuration and a grant name a secret. Its value is only here, in memory, and in the one
//! slot of a request that it is bound to.

pub use shapes::NAME_BYTES_MAX;

use crate::access::redact::Redactor;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The least bytes of a secret's value. Redacting a shorter secret would garble ordinary text.
pub const SECRET_BYTES_MIN: usize = 8;
/// Bytes of a secret's value: 16 KiB.
pub const SECRET_BYTES_MAX: usize = 16 << 10;

/// Text that cannot be a secret. The error reveals only its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Too short to be redacted.
    #[error("it has {bytes} bytes; a secret has at least {SECRET_BYTES_MIN}")]
    TooShort {
        /// Its length.
        bytes: usize,
    },
    /// Too long for a header.
    #[error("it has more than {SECRET_BYTES_MAX} bytes")]
    TooLong,
    /// A character that headers or URLs do not allow, such as a space or a line break.
    #[error("it has a character that is not visible ASCII")]
    Character,
}

/// A secret's value. Never printed.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a value, without line ends at its end.
    ///
    /// # Errors
    /// It cannot be a secret.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let text = text.trim_end_matches(['\n', '\r']);
        if text.len() < SECRET_BYTES_MIN {
            return Err(SecretError::TooShort { bytes: text.len() });
        }
        if text.len() > SECRET_BYTES_MAX {
            return Err(SecretError::TooLong);
        }
        if text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text.into()))
        } else {
            Err(SecretError::Character)
        }
    }

    /// The same after a prefix, as a slot contains it.
    #[must_use]
    pub fn behind(&self, prefix: &str) -> Self {
        Self(format!("{prefix}{}", self.0).into())
    }

    /// Returns the value itself. The caller has to put it only where it is bound to.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Returns whether text can be the name of a secret: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    shapes::is_name(name, b"-_")
}

/// All secrets of a host, by name. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Arc<BTreeMap<String, Secret>>,
    /// The redactor of all secrets, and of the host's own confidential data. It is made once and
    /// used by every call.
    redactor: Redactor,
}

impl Secrets {
    /// These values under these names.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = (String, Secret)>) -> Self {
        let values: BTreeMap<String, Secret> = values.into_iter().collect();
        let redactors: Vec<Redactor> = values.values().map(Redactor::of).collect();
        Self {
            values: Arc::new(values),
            redactor: Redactor::all(&redactors),
        }
    }

    /// The same, with further values to redact in all responses, such as providers' keys. They have
    /// no names, so no component can request them.
    #[must_use]
    pub fn hiding(self, also: &Redactor) -> Self {
        Self {
            redactor: Redactor::all([&self.redactor, also]),
            ..self
        }
    }

    /// The value under a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.values.get(name)
    }

    /// Returns the redactor of all secrets, which is applied to every response whatever the grants:
    /// a server that got a secret from one call may repeat it to another.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_prints_a_secret() {
        let secret = Secret::parse("SK-CANARY-1\n").unwrap();
        let secrets = Secrets::new([("github".to_owned(), secret.clone())]);
        let printed = format!(
            "{secret:?} {secrets:?} {:#?} {:?}",
            secret.behind("Bearer "),
            secrets.redactor()
        );
        assert!(
            !printed.contains("CANARY") && printed.contains("github"),
            "{printed}"
        );
        assert_eq!(secret.expose(), "SK-CANARY-1");
    }

    #[test]
    fn what_cannot_be_kept_out_of_texts_is_no_secret_and_is_not_shown() {
        for (text, expected) in [
            ("", Err(SecretError::TooShort { bytes: 0 })),
            ("1234567\n", Err(SecretError::TooShort { bytes: 7 })),
            ("12345678", Ok(())),
            ("12345678\r\n", Ok(())),
            ("SK CANARY 1", Err(SecretError::Character)),
            ("SK-CANARY\n1", Err(SecretError::Character)),
            ("SK-CANARY-ä", Err(SecretError::Character)),
        ] {
            let parsed = Secret::parse(text).map(drop);
            assert_eq!(parsed, expected, "{text:?}");
            assert!(
                parsed.is_ok_and(|()| true)
                    || !format!("{:?}", expected.unwrap_err()).contains("CANARY")
            );
        }
        assert_eq!(
            Secret::parse(&"x".repeat(SECRET_BYTES_MAX + 1)).map(drop),
            Err(SecretError::TooLong)
        );
    }

    #[test]
    fn a_name_is_short_and_plain() {
        for (name, expected) in [
            ("github", true),
            ("a-b_9", true),
            ("", false),
            ("Git", false),
            ("a b", false),
            ("a.b", false),
        ] {
            assert_eq!(is_secret_name(name), expected, "{name}");
        }
        assert!(is_secret_name(&"x".repeat(64)) && !is_secret_name(&"x".repeat(65)));
    }
}
