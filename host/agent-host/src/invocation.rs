//! Commands suggested to the user, printed so that they can be typed as they are.

use crate::config::document::Loaded;
use crate::config::locations::locate;
use crate::terminal::quoted;
use std::path::Path;

/// A command of this program, called as it was called now, for the host of a configuration and of
/// the data folder that the command line named.
pub(crate) fn command(loaded: &Loaded, words: &str) -> String {
    let command = command_for(&loaded.file, words);
    match &loaded.data {
        Some(data) => format!("{command} --data {}", quoted(data)),
        None => command,
    }
}

/// The same, for the host of a config file and its own data folder.
pub(crate) fn command_for(file: &Path, words: &str) -> String {
    // The file that is found without being named need not be named.
    let is_found = locate(None).is_ok_and(|found| found == file);
    line(
        std::env::args_os().next().as_deref().map(Path::new),
        (!is_found).then_some(file),
        words,
    )
}

/// The same, for a config file that is yet to be named.
pub(crate) fn command_with(config: &str, words: &str) -> String {
    line(
        std::env::args_os().next().as_deref().map(Path::new),
        Some(Path::new(config)),
        words,
    )
}

fn line(called: Option<&Path>, config: Option<&Path>, words: &str) -> String {
    // A name without a folder was found on the PATH, under which name ever.
    let called = called
        .filter(|called| called.components().nth(1).is_some())
        .map_or_else(|| "agent-host".to_owned(), quoted);
    let config = config
        .map(|file| format!(" --config {}", quoted(file)))
        .unwrap_or_default();
    format!("{called} {words}{config}")
}

#[cfg(test)]
mod tests {
    use super::{command, line};
    use crate::config::{Config, Loaded};
    use std::path::Path;

    #[test]
    fn a_command_that_is_told_names_the_data_folder_of_the_command_line() {
        let mut loaded = Loaded {
            config: Config::default(),
            file: "/etc/a.toml".into(),
            written: "".into(),
            data: None,
            trusts_address: false,
            overlaid: Vec::new(),
        };
        let reported = command(&loaded, "chat");
        assert!(
            reported.ends_with(" chat --config /etc/a.toml"),
            "{reported}"
        );
        loaded.data = Some("/srv/my data".into());
        let reported = command(&loaded, "chat");
        let expected = " chat --config /etc/a.toml --data '/srv/my data'";
        assert!(reported.ends_with(expected), "{reported}");
    }

    #[test]
    fn a_command_that_is_told_can_be_typed_as_it_stands() {
        for (called, config, expected) in [
            ("agent-host", None, "agent-host chat"),
            ("./agent-host", None, "./agent-host chat"),
            (
                "/opt/my host/agent-host",
                Some("/etc/a.toml"),
                "'/opt/my host/agent-host' chat --config /etc/a.toml",
            ),
            (
                "target/debug/agent-host",
                Some("/it's/a.toml"),
                r"target/debug/agent-host chat --config '/it'\''s/a.toml'",
            ),
        ] {
            assert_eq!(
                line(Some(Path::new(called)), config.map(Path::new), "chat"),
                expected
            );
        }
        assert_eq!(line(None, None, "chat"), "agent-host chat");
    }
}
