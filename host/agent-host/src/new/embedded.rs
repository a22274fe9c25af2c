//! Files of the repository that the program carries, for projects outside of it, and the names that
//! projects may have.

use crate::config::component::BUILT_INS;
use domain::connector::DIRECT;
use domain::user::RESERVED_WORDS;

/// A file of the repository.
#[derive(Debug, Clone, Copy)]
pub(super) struct EmbeddedFile {
    /// Its path from the repository's root.
    pub(super) path: &'static str,
    /// Its content.
    pub(super) bytes: &'static [u8],
}

/// All of them, as `build.rs` has found them.
const EMBEDDED: &[EmbeddedFile] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The declaration of a file of unit tests, which is not carried.
const TESTS: &str = "#[cfg(test)]\nmod tests;\n";

/// Returns the files whose paths begin so, each with the rest of its path.
pub(super) fn below(folder: &str) -> impl Iterator<Item = (&'static str, &'static EmbeddedFile)> {
    let files = EMBEDDED.iter();
    files.filter_map(move |file| Some((file.path.strip_prefix(folder)?, file)))
}

impl EmbeddedFile {
    /// Returns it as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }

    /// Returns its text as it stands in a project: without the declaration of tests that are not
    /// there.
    pub(super) fn in_project(&self) -> String {
        let text = self.text().replace(TESTS, "");
        format!("{}\n", text.trim_end())
    }
}

/// Bytes of a name, as of a component's or a tool's.
const BYTES_MAX: usize = 64;
/// Packages that projects depend on. A package cannot depend on one of its own name.
const PACKAGES: [&str; 5] = [
    "agent-host-sdk",
    "componentize-qjs",
    "schemars",
    "serde",
    "serde_json",
];

/// Returns the fault of a name, or none if a project can have it.
pub(super) fn fault(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let shown: String = name.chars().take(BYTES_MAX).collect();
    if !(1..=BYTES_MAX).contains(&name.len()) || !name.chars().all(fits) {
        return Some(format!(
            "`{shown}` is no name of a project: 1 to {BYTES_MAX} of `a-z`, `0-9`, `-` and `_`"
        ));
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some(format!(
            "`{shown}` is no name of a project: it begins with a letter, as packages do"
        ));
    }
    if BUILT_INS.contains(&name) || name == DIRECT {
        return Some(format!("`{name}` is a component that comes with the host"));
    }
    if RESERVED_WORDS.contains(&name) {
        return Some(format!(
            "`{name}` has a meaning of its own in paths of agents"
        ));
    }
    if PACKAGES.contains(&name) {
        return Some(format!("`{name}` is a package that projects depend on"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, fault};

    #[test]
    fn a_name_that_cannot_be_a_components_or_a_packages_is_refused_with_the_rule() {
        let longest = "a".repeat(BYTES_MAX);
        for name in ["a", "word-count", "word_count2", "fn", "test", &longest] {
            assert_eq!(fault(name), None, "{name}");
        }
        let too_long = "a".repeat(BYTES_MAX + 1);
        for (name, reported) in [
            ("", "1 to 64 of `a-z`, `0-9`, `-` and `_`"),
            (&*too_long, "1 to 64 of"),
            ("Words", "1 to 64 of"),
            ("wörter", "1 to 64 of"),
            ("a b", "1 to 64 of"),
            ("../words", "1 to 64 of"),
            ("a/b", "1 to 64 of"),
            ("2words", "begins with a letter"),
            ("-words", "begins with a letter"),
            ("_", "begins with a letter"),
            ("assistant", "comes with the host"),
            ("direct", "comes with the host"),
            ("agent", "a meaning of its own"),
            ("serde", "a package that projects depend on"),
        ] {
            let fault = fault(name).unwrap_or_else(|| panic!("{name} is refused"));
            assert!(fault.contains(reported), "{name}: {fault}");
        }
    }
}
