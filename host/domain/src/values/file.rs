//! Files that a client uploads in a session: their names, sizes and number.
//!
//! The bytes are a blob. The other stored data of a file is here; a widget's requirements for files
//! are in `widget/upload.rs`.

use crate::values::digest::Digest;
use crate::values::error_code::ErrorCode;
use crate::values::refusal::Refusal;
use crate::values::shown::controls_what_is_shown;
use serde_json::{Value, json};

/// Bytes of one file.
pub const FILE_BYTES_MAX: usize = 10 << 20;
/// Files of one session.
pub const SESSION_FILES_MAX: u64 = 100;
/// Bytes of all files of one session.
pub const SESSION_FILES_BYTES_MAX: u64 = 200 << 20;
/// Bytes of a file's name.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of a media type with its parameters.
pub const MEDIA_TYPE_BYTES_MAX: usize = 255;
/// The default media type of a file, if the client gives none.
pub const UNKNOWN_MEDIA_TYPE: &str = "application/octet-stream";

/// A file as its session knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its name, given by the client.
    pub name: String,
    /// Its media type, given by the client.
    pub media_type: String,
    /// Its size in bytes.
    pub bytes: u64,
}

impl File {
    /// Returns it in the form of an agent's answer.
    #[must_use]
    pub fn describe(&self) -> Value {
        json!({ "digest": self.digest.reference(), "name": self.name, "media_type": self.media_type, "bytes": self.bytes })
    }
}

/// Checks the name of a file: it leads to no other place, and looks like what it is.
///
/// # Errors
/// The rule for names.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(format!(
            "a file's name has 1 to {NAME_BYTES_MAX} bytes, this one has {}",
            name.len()
        ));
    }
    if name == "." || name == ".." {
        return Err(format!(
            "`{name}` names a folder; a file needs a name of its own"
        ));
    }
    match name.chars().find(|char| is_refused(*char)) {
        None => Ok(()),
        Some(char) => {
            let reported =
                "a file's name has no `/`, no `\\` and no character that controls what is shown";
            Err(format!(
                "{reported}; this one has `{}`",
                char.escape_default()
            ))
        }
    }
}

fn is_refused(char: char) -> bool {
    matches!(char, '/' | '\\') || controls_what_is_shown(char)
}

/// Checks that a text is a media type, with or without parameters.
///
/// # Errors
/// The rule for media types.
pub fn check_media_type(text: &str) -> Result<(), String> {
    let is_token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let is_shown = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let is_type = essence(text)
        .split_once('/')
        .is_some_and(|(kind, name)| is_token(kind) && is_token(name));
    if text.len() <= MEDIA_TYPE_BYTES_MAX && is_shown && is_type {
        return Ok(());
    }
    Err(format!(
        "a media type such as `text/plain` is needed, of at most {MEDIA_TYPE_BYTES_MAX} visible \
         ASCII characters"
    ))
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim_end()
}

/// Returns whether one of the accepted media types, such as `text/plain` or `image/*`, matches this
/// one.
#[must_use]
pub fn is_accepted<'a>(accepted: impl IntoIterator<Item = &'a str>, media_type: &str) -> bool {
    let found = essence(media_type).to_ascii_lowercase();
    accepted
        .into_iter()
        .any(|one| match one.to_ascii_lowercase().strip_suffix("/*") {
            Some("*") => true,
            Some(kind) => found
                .split_once('/')
                .is_some_and(|(found, _)| found == kind),
            None => found.eq_ignore_ascii_case(one),
        })
}

/// The refusal of a file for which its session has no room.
#[must_use]
pub fn full() -> Refusal {
    let reported = format!(
        "a session has at most {SESSION_FILES_MAX} files of {SESSION_FILES_BYTES_MAX} \
                 bytes together; open another one"
    );
    Refusal::new(ErrorCode::SessionFilesFull, reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_leads_nowhere_and_hides_nothing() {
        for name in [
            "a",
            "essay.txt",
            ".profile",
            "...",
            "Grüße an alle (2).pdf",
            "a b",
            "名前.png",
            &"x".repeat(NAME_BYTES_MAX),
        ] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let long = "ä".repeat(128);
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "..\\x",
            "a\0",
            "a\nb",
            "\u{7f}",
            "\u{85}",
            "a\u{202e}fdp.exe",
            "a\u{2028}b",
            long.as_str(),
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(
            check_name("a\u{202e}b")
                .unwrap_err()
                .ends_with("this one has `\\u{202e}`")
        );
    }

    #[test]
    fn a_media_type_is_two_words_and_its_parameters() {
        for text in [
            "text/plain",
            "text/plain; charset=utf-8",
            "application/vnd.a+json",
            "image/svg+xml ; x=\"y z\"",
        ] {
            assert_eq!(check_media_type(text), Ok(()), "{text}");
        }
        let long = format!("text/{}", "x".repeat(MEDIA_TYPE_BYTES_MAX));
        for text in [
            "",
            "text",
            "text/",
            "/plain",
            "a b/c",
            "text/plain\n",
            "text/plain; é",
            "a/b/c",
            long.as_str(),
        ] {
            assert!(check_media_type(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_media_type_is_accepted_by_itself_its_kind_and_by_everything() {
        for (accepted, found, is) in [
            ("text/plain", "text/plain", true),
            ("text/plain", "TEXT/Plain; charset=utf-8", true),
            ("text/*", "text/markdown", true),
            ("*/*", "anything/else", true),
            ("text/*", "textual/plain", false),
            ("text/plain", "text/plainer", false),
            ("image/*", "text/plain; image/png", false),
        ] {
            assert_eq!(is_accepted([accepted], found), is, "{accepted} {found}");
        }
        assert!(is_accepted(["image/*", "text/csv"], "text/csv"));
    }
}
