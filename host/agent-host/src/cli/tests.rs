//! Tests of the command line as a whole.

use super::{Cli, Command};
use clap::{CommandFactory, Parser};
use std::path::Path;

#[test]
fn every_command_takes_a_data_folder_and_restore_its_own() {
    for words in [
        &["serve"][..],
        &["dev"],
        &["chat"],
        &["session", "list"],
        &["task", "show", "t"],
        &["status"],
        &["verify"],
    ] {
        let arguments = [&["agent-host"][..], words, &["--data", "/x"]].concat();
        let cli = Cli::try_parse_from(arguments).unwrap();
        assert_eq!(cli.data.as_deref(), Some(Path::new("/x")), "{words:?}");
    }
    let restore = ["agent-host", "restore", "file", "--data", "/x"];
    let Command::Restore(restore) = Cli::try_parse_from(restore).unwrap().command else {
        panic!("it is another command")
    };
    assert_eq!(restore.data, Path::new("/x"));
    let nowhere = ["agent-host", "restore", "file"];
    assert!(Cli::try_parse_from(nowhere).is_err());
}

#[test]
fn the_help_tells_how_a_key_is_written_in_the_environment() {
    let help = Cli::command().render_long_help().to_string();
    let variable = "AGENT_HOST__LIMITS__HOPS_MAX";
    assert!(
        help.contains(&format!("{variable}=8 is limits.hopsMax")),
        "{help}"
    );
    let [overlaid] = crate::config::overlaid([(variable.to_owned(), "3".to_owned())])
        .try_into()
        .unwrap();
    assert_eq!(overlaid.key, ["limits", "hopsMax"]);
}

#[test]
fn the_command_line_fits_together() {
    Cli::command().debug_assert();
}
