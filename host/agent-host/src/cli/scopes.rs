//! The scopes that each command needs of its key, as its help names them; and lifetimes of keys.

use super::Cli;
use clap::{Command, CommandFactory, FromArgMatches};
use std::str::FromStr;

/// The scopes of the key of one command.
#[derive(Debug, Clone, Copy)]
enum Needs {
    /// It asks no running host.
    Nothing,
    /// All of these.
    All(&'static [&'static str]),
    /// Any one of these.
    Any(&'static [&'static str]),
    /// All of these, under a condition.
    If(&'static [&'static str], &'static str),
    /// The host's own token.
    OwnToken,
}

/// The condition of commands that open the data folder when no host runs.
const WHILE_RUNNING: &str = "while a host is running";

/// Every command, by its words.
const COMMANDS: &[(&str, Needs)] = &[
    ("serve", Needs::Nothing),
    ("dev", Needs::Nothing),
    ("new", Needs::Nothing),
    ("init", Needs::Nothing),
    ("plugin test", Needs::Nothing),
    ("plugin stamp", Needs::Nothing),
    ("chat", Needs::All(&["read", "write"])),
    ("component list", Needs::Nothing),
    ("component inspect", Needs::Nothing),
    (
        "component suggest",
        Needs::If(&["admin"], "without --calls"),
    ),
    (
        "component check",
        Needs::If(
            &["admin"],
            "to compare with a running host; without, it does not",
        ),
    ),
    ("session list", Needs::All(&["read"])),
    ("session show", Needs::All(&["read"])),
    ("session stats", Needs::All(&["read"])),
    ("session tree", Needs::All(&["read"])),
    ("session diff", Needs::All(&["read"])),
    ("session export", Needs::All(&["read"])),
    ("session import", Needs::All(&["read", "write"])),
    ("session search", Needs::All(&["read"])),
    ("session compact", Needs::All(&["read", "write"])),
    ("session inputs", Needs::All(&["read"])),
    ("session quarantined", Needs::All(&["admin"])),
    ("session release", Needs::All(&["admin"])),
    ("session purge", Needs::OwnToken),
    ("session cancel", Needs::All(&["read", "write"])),
    ("prompt show", Needs::All(&["read"])),
    ("events tail", Needs::All(&["admin"])),
    ("audit", Needs::All(&["admin"])),
    ("telemetry", Needs::All(&["admin"])),
    ("model list", Needs::All(&["read"])),
    ("model check", Needs::All(&["read"])),
    ("task list", Needs::Any(&["read", "admin"])),
    ("task show", Needs::Any(&["read", "admin"])),
    ("task stats", Needs::Any(&["read", "admin"])),
    ("task cancel", Needs::All(&["write"])),
    ("memory list", Needs::All(&["read"])),
    ("memory search", Needs::All(&["read"])),
    ("memory forget", Needs::All(&["write"])),
    ("memory read", Needs::All(&["read", "write"])),
    ("usage", Needs::Any(&["read", "admin"])),
    ("grants explain", Needs::Nothing),
    (
        "grants diff",
        Needs::If(&["read", "admin"], "without --against"),
    ),
    ("verify", Needs::If(&["admin"], WHILE_RUNNING)),
    ("rebuild", Needs::If(&["admin"], WHILE_RUNNING)),
    ("vacuum", Needs::Nothing),
    ("backup", Needs::If(&["admin"], WHILE_RUNNING)),
    ("restore", Needs::Nothing),
    ("dead-letter list", Needs::All(&["admin"])),
    ("dead-letter show", Needs::All(&["admin"])),
    ("dead-letter requeue", Needs::All(&["admin"])),
    ("dead-letter drop", Needs::All(&["admin"])),
    ("import", Needs::All(&["admin"])),
    ("clock show", Needs::All(&["admin"])),
    ("clock confirm", Needs::All(&["admin"])),
    ("config schema", Needs::Nothing),
    ("config check", Needs::Nothing),
    ("config diff", Needs::All(&["admin"])),
    ("config apply", Needs::All(&["admin"])),
    ("reload", Needs::All(&["admin"])),
    ("key create", Needs::Any(&["keys", "admin"])),
    ("key list", Needs::Any(&["keys", "admin"])),
    ("key revoke", Needs::Any(&["keys", "admin"])),
    ("agents tree", Needs::All(&["read"])),
    ("agents definitions", Needs::All(&["read"])),
    ("agents make", Needs::All(&["write"])),
    ("agents remove", Needs::All(&["write"])),
    ("agents sessions", Needs::All(&["read"])),
    ("connector bind", Needs::All(&["admin"])),
    ("connector unbind", Needs::All(&["admin"])),
    ("connector list", Needs::Any(&["read", "admin"])),
    ("connector pairings", Needs::All(&["admin"])),
    ("connector pair", Needs::Any(&["write", "admin"])),
    ("connector unpair", Needs::All(&["admin"])),
    ("connector outbound-messages", Needs::All(&["admin"])),
    ("connector requeue", Needs::All(&["admin"])),
    ("connector test", Needs::All(&["admin"])),
    ("trigger list", Needs::Any(&["read", "admin"])),
    ("trigger show", Needs::Any(&["read", "admin"])),
    ("trigger run", Needs::Any(&["write", "admin"])),
    ("trigger pause", Needs::Any(&["write", "admin"])),
    ("trigger resume", Needs::Any(&["write", "admin"])),
    ("trigger history", Needs::Any(&["read", "admin"])),
    ("trigger remove", Needs::Any(&["write", "admin"])),
    ("token show", Needs::Nothing),
    ("status", Needs::All(&["admin"])),
    ("doctor", Needs::Nothing),
    ("completions", Needs::Nothing),
    ("man", Needs::Nothing),
    (super::COMPILE_COMMAND, Needs::Nothing),
    (super::KEEP_COMMAND, Needs::Nothing),
    (super::CONFINE_COMMAND, Needs::Nothing),
];

impl Needs {
    /// Returns the sentence about the key; none for a command that needs none.
    fn sentence(self) -> Option<String> {
        let (scopes, between, condition) = match self {
            Self::Nothing => return None,
            Self::OwnToken => return Some("Needs the host's own token.".to_owned()),
            Self::All(scopes) => (scopes, "and", String::new()),
            Self::Any(scopes) => (scopes, "or", String::new()),
            Self::If(scopes, condition) => (scopes, "and", format!(" {condition}")),
        };
        let scope = match (between, scopes.len()) {
            ("and", 2..) => "scopes",
            _ => "scope",
        };
        let scopes = scopes.join(&format!("` {between} `"));
        Some(format!(
            "Needs a key with the {scope} `{scopes}`{condition}."
        ))
    }
}

/// Reads the command line of this process.
///
/// # Errors
/// It is invalid, or asks for the help or the version.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let mut command = describe(Cli::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|wrong| wrong.format(&mut command))
}

/// Adds to the help of each command which scopes its key needs.
pub(crate) fn describe(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, words: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    let command = names.iter().fold(command, |command, name| {
        let words = format!("{words} {name}").trim_start().to_owned();
        command.mut_subcommand(name, |sub| below(sub, &words))
    });
    let row = COMMANDS.iter().find(|(known, _)| *known == words);
    let Some(sentence) = row.and_then(|(_, needs)| needs.sentence()) else {
        return command;
    };
    let help = match command.get_after_help() {
        Some(help) => format!("{sentence}\n\n{help}"),
        None => sentence,
    };
    command.after_help(help)
}

/// A lifetime, such as 90 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// Its length in seconds.
    pub(crate) seconds: u64,
}

impl FromStr for Lifetime {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "a time is a number with s, m, h or d behind it, such as 90d";
        let unit = text.chars().last().ok_or(wrong)?;
        let factor = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(wrong),
        };
        let digits = text
            .strip_suffix(unit)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or(wrong)?;
        let seconds = digits
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor));
        seconds.map(|seconds| Self { seconds }).ok_or(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, Lifetime, Needs, describe};
    use crate::cli::Cli;
    use clap::{Command, CommandFactory};
    use std::collections::BTreeSet;

    /// Collects the commands that have none below them, with the words that call them.
    fn leaves(command: &Command, words: &str, into: &mut Vec<(String, Command)>) {
        let mut subs = command.get_subcommands().peekable();
        if subs.peek().is_none() {
            into.push((words.to_owned(), command.clone()));
        }
        for sub in subs {
            let words = format!("{words} {}", sub.get_name());
            leaves(sub, words.trim_start(), into);
        }
    }

    #[test]
    fn the_help_of_every_command_with_a_key_names_its_scope() {
        let mut commands = Vec::new();
        leaves(&describe(Cli::command()), "", &mut commands);
        let names: BTreeSet<&str> = commands.iter().map(|(words, _)| words.as_str()).collect();
        let known: BTreeSet<&str> = COMMANDS.iter().map(|(words, _)| *words).collect();
        assert_eq!(
            names, known,
            "every command has a row, and every row a command"
        );
        for (words, command) in commands {
            let help = command.clone().render_help().to_string();
            let (_, needs) = COMMANDS.iter().find(|(known, _)| *known == words).unwrap();
            match needs {
                Needs::Nothing => assert!(!help.contains("Needs "), "{words}: {help}"),
                needs => assert!(help.contains(&needs.sentence().unwrap()), "{words}: {help}"),
            }
        }
    }

    #[test]
    fn a_time_is_a_number_with_its_unit() {
        for (text, expected) in [
            ("90d", Ok(7_776_000)),
            ("12h", Ok(43_200)),
            ("5m", Ok(300)),
            ("45s", Ok(45)),
            ("0s", Ok(0)),
        ] {
            assert_eq!(
                text.parse::<Lifetime>().map(|lifetime| lifetime.seconds),
                expected
            );
        }
        for wrong in [
            "",
            "d",
            "90",
            "+9d",
            "-1d",
            "1.5h",
            "1 d",
            "9w",
            "99999999999999999999d",
            "1ä",
        ] {
            assert!(wrong.parse::<Lifetime>().is_err(), "{wrong}");
        }
    }
}
