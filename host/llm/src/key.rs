//! Keys of providers, and how they are kept out of everything that leaves this crate.

use crate::config::ConfigProblem;
use domain::redact::Redactor;
use domain::secret::Secret;
use domain::shown::is_hidden;
use http::HeaderValue;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a key file.
const KEY_BYTES_MAX: u64 = 16 << 10;
/// Least characters of a key that is replaced in texts. To replace a shorter one would hide words,
/// not a key.
const REPLACED_CHARS_MIN: usize = 4;
/// The text that replaces a key.
const MASK: &str = "…";

/// A provider's key. Never printed.
#[derive(Clone)]
pub(crate) struct ApiKey(String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl ApiKey {
    /// A key from the environment or a file; none if there is nothing in it.
    pub(crate) fn new(text: &str) -> Result<Self, ConfigProblem> {
        let key = text.trim();
        if key.is_empty() {
            return Err(ConfigProblem::EmptyKey);
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConfigProblem::UnusableKey);
        }
        Ok(Self(key.to_owned()))
    }

    /// A key from a file that only its owner can read.
    pub(crate) fn from_file(path: &Path) -> Result<Self, ConfigProblem> {
        let unreadable = |source| ConfigProblem::Unreadable {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unreadable)?;
        refuse_if_shared(path, &file)?;
        let mut text = String::new();
        file.take(KEY_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        Self::new(&text)
    }

    /// Returns the redactor that takes it out of every response, in the forms that echoes have. A
    /// key that is so short that it looks like a word, as local servers take them, is left.
    pub(crate) fn redactor(&self) -> Redactor {
        Secret::parse(&self.0)
            .map(|secret| Redactor::of(&secret))
            .unwrap_or_default()
    }

    /// Returns it as it is, for the environment of a program.
    pub(crate) fn exposed(&self) -> &str {
        &self.0
    }

    /// Returns it as a header's value, behind a prefix, marked so that nothing prints it.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

#[cfg(unix)]
fn refuse_if_shared(path: &Path, file: &File) -> Result<(), ConfigProblem> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file
        .metadata()
        .map_err(|source| ConfigProblem::Unreadable {
            path: path.to_owned(),
            source,
        })?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        Ok(())
    } else {
        Err(ConfigProblem::SharedKeyFile {
            path: path.to_owned(),
            mode,
        })
    }
}

#[cfg(not(unix))]
fn refuse_if_shared(_path: &Path, _file: &File) -> Result<(), ConfigProblem> {
    Ok(())
}

/// Text from outside, fit to be stored and shown: no key, nothing that looks like one, no control
/// characters, and not too long.
pub(crate) fn clean(text: &str, key: Option<&ApiKey>, chars_max: usize) -> String {
    let without_key = match key {
        Some(ApiKey(key)) if key.len() >= REPLACED_CHARS_MIN => text.replace(key.as_str(), MASK),
        Some(_) | None => text.to_owned(),
    };
    let plain: String = without_key
        .chars()
        .map(|c| if is_hidden(c) { ' ' } else { c })
        .collect();
    let mut cleaned = String::new();
    let mut after_bearer = false;
    for word in plain.split_whitespace() {
        if !cleaned.is_empty() {
            cleaned.push(' ');
        }
        match key_like(word) {
            _ if after_bearer => cleaned.push_str(MASK),
            Some(at) => {
                cleaned.push_str(word.get(..at).unwrap_or_default());
                cleaned.push_str(MASK);
            }
            None => cleaned.push_str(word),
        }
        after_bearer = word.to_ascii_lowercase().ends_with("bearer");
    }
    match cleaned.char_indices().nth(chars_max.saturating_sub(1)) {
        Some((at, last)) if at + last.len_utf8() < cleaned.len() => {
            cleaned.truncate(at);
            cleaned.push('…');
        }
        Some(_) | None => {}
    }
    cleaned
}

/// Returns where something begins that looks like a key of the most common form.
fn key_like(word: &str) -> Option<usize> {
    let begins = |at: &usize| {
        !word
            .get(..*at)
            .unwrap_or_default()
            .ends_with(char::is_alphanumeric)
    };
    word.match_indices("sk-").map(|(at, _)| at).find(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_printed() {
        assert_eq!(
            format!("{:?}", ApiKey::new("sk-CANARY-1").unwrap()),
            "ApiKey(…)"
        );
        assert!(
            !format!(
                "{:?}",
                ApiKey::new("sk-CANARY-1")
                    .unwrap()
                    .header("Bearer ")
                    .unwrap()
            )
            .contains("CANARY")
        );
    }

    #[test]
    fn a_text_is_cleaned_of_keys_before_it_is_cut() {
        let key = ApiKey::new("CANARY-KEY").unwrap();
        assert_eq!(
            clean("bad key \"CANARY-KEY\"\r\n\u{1b}[31m!", Some(&key), 200),
            "bad key \"…\" [31m!"
        );
        assert_eq!(clean("xxxxxxCANARY-KEY", Some(&key), 10), "xxxxxx…");
        assert_eq!(
            clean(
                "key:sk-part**** given, Authorization: Bearer abc",
                None,
                200
            ),
            "key:… given, Authorization: Bearer …"
        );
        assert_eq!(clean("a task-list, (sk-1)", None, 200), "a task-list, (…");
        assert_eq!(clean("äöü", None, 3), "äöü");
        assert_eq!(clean("äöüx", None, 3), "äö…");
    }
}
