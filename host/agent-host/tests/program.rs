//! The program as it is installed. That this test is here also has `cargo test` build the program
//! anew for the tests of whole processes.

use std::fs::File;
use std::process::{Command, Stdio};

#[test]
fn the_program_tells_its_version() {
    let reported = Command::new(env!("CARGO_BIN_EXE_agent-host"))
        .arg("--version")
        .output()
        .expect("it can be run");
    assert_eq!(
        String::from_utf8_lossy(&reported.stdout),
        concat!("agent-host ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn with_json_a_command_that_makes_no_sense_is_told_as_a_document() {
    for (arguments, message, advice) in [
        (
            &["--json", "frob"][..],
            "unrecognized subcommand 'frob'",
            "--help tells what there is",
        ),
        (
            &["sesion", "--json"],
            "unrecognized subcommand 'sesion'",
            "a similar subcommand exists: 'session'",
        ),
        (
            &["--json", "session"],
            "the command is not complete",
            "--help tells what there is",
        ),
        (
            &["--json", "backup"],
            "the following required arguments were not provided: <FILE>",
            "--help tells what there is",
        ),
    ] {
        let reported = Command::new(env!("CARGO_BIN_EXE_agent-host"))
            .args(arguments)
            .output()
            .expect("it can be run");
        assert_eq!(reported.status.code(), Some(2), "{reported:?}");
        let document: serde_json::Value =
            serde_json::from_slice(&reported.stderr).expect("a document");
        assert_eq!(
            document,
            serde_json::json!({ "error": { "message": message, "causes": [], "advice": advice, "exit": 2 } })
        );
    }
    let reported = Command::new(env!("CARGO_BIN_EXE_agent-host"))
        .arg("frob")
        .output()
        .expect("it can be run");
    assert!(
        reported
            .stderr
            .starts_with(b"error: unrecognized subcommand 'frob'"),
        "{reported:?}"
    );
}

/// A full disk fails the command; a reader that has seen enough does not.
#[test]
fn a_result_that_cannot_be_written_fails_the_command() {
    let run = |words: &[&str], out: Stdio| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_agent-host"));
        let run = program.args(words).stdout(out);
        run.stderr(Stdio::piped()).spawn().expect("it can be run")
    };
    for words in [
        &["config", "schema"][..],
        &["completions", "bash"],
        &["--help"],
    ] {
        let full = File::options().write(true).open("/dev/full");
        let reported = run(words, full.expect("Linux has it").into()).wait_with_output();
        let reported = reported.expect("it ends");
        let why = String::from_utf8_lossy(&reported.stderr);
        assert_eq!(reported.status.code(), Some(1), "{words:?}: {why}");
        assert!(why.contains("No space left on device"), "{words:?}: {why}");

        let mut left = run(words, Stdio::piped());
        drop(left.stdout.take());
        let ended = left.wait().expect("it ends");
        assert_eq!(ended.code(), Some(0), "{words:?}");
    }
}
