//! Secrets of a configuration: where they come from, and what is refused.

use super::*;
use crate::config::{Severity, load, secrets_alike};
use std::os::unix::fs::PermissionsExt;

const CANARY: &str = "SK-CANARY-CONFIG";

/// A configuration in a folder with some files, each with its mode.
fn loaded(text: &str, files: &[(&str, &str, u32)]) -> (tempfile::TempDir, Loaded) {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, mode) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode)).unwrap();
    }
    let config = folder.path().join("c.toml");
    std::fs::write(&config, text).unwrap();
    let loaded = load(&config, []).unwrap();
    (folder, loaded)
}

/// Returns the findings, one line each.
fn found(text: &str, files: &[(&str, &str, u32)]) -> Vec<String> {
    let (_folder, loaded) = loaded(text, files);
    let mut findings = Vec::new();
    check(&loaded, &mut findings);
    assert!(!format!("{findings:?}").contains("CANARY"), "{findings:?}");
    let severity = |finding: &Finding| {
        if finding.severity == Severity::Error {
            "error"
        } else {
            "warning"
        }
    };
    findings
        .iter()
        .map(|finding| format!("{} {}: {}", severity(finding), finding.key, finding.message))
        .collect()
}

const GRANTED: &str = r#"
[components.c]
network = [{ host = "a.com" }]
secrets = [{ secret = "s", host = "a.com", slot = { header = "authorization" }, prefix = "Bearer " }]
"#;

#[test]
fn what_is_wrong_with_a_secret_or_its_grant_is_found_and_no_value_is_shown() {
    let file = "[secrets]\ns = { file = \"key\" }\n";
    let fine: &[(&str, &str, u32)] = &[("key", "SK-CANARY-CONFIG\n", 0o600)];
    assert_eq!(
        found(&format!("{file}{GRANTED}"), fine),
        Vec::<String>::new()
    );
    let granted = |grants: &str| {
        format!("{file}[components.c]\nnetwork = [{{ host = \"a.com\" }}]\nsecrets = [{grants}]\n")
    };
    for (text, files, expected) in [
        (
            file.to_owned(),
            fine,
            "warning secrets.s: no component is granted it",
        ),
        (
            format!("{file}{GRANTED}"),
            &[("key", "SK-CANARY-CONFIG", 0o644)],
            "make it yours alone: chmod 600 ",
        ),
        (
            format!("{file}{GRANTED}"),
            &[("key", "CANARY", 0o600)],
            "its value cannot be used: it has 6 bytes; a secret has at least 8",
        ),
        (
            format!("{file}{GRANTED}"),
            &[("key", "SK-CANARY\nCONFIG", 0o600)],
            "a character that is not visible ASCII",
        ),
        (
            format!("{file}{GRANTED}"),
            &[("other", "", 0o600)],
            "cannot be read",
        ),
        (
            format!("[secrets]\ns = {{ file = \".\" }}\n{GRANTED}"),
            fine,
            "is not a regular file",
        ),
        (
            format!("[secrets]\ns = {{ env = \"AGENT_HOST_TESTS_NOT_SET\" }}\n{GRANTED}"),
            fine,
            "`AGENT_HOST_TESTS_NOT_SET` is not set",
        ),
        (
            format!("[secrets]\ns = {{ env = \"SK-CANARY-CONFIG\" }}\n{GRANTED}"),
            fine,
            "is not the name of an environment variable",
        ),
        (
            format!("[secrets]\ns = {{ command = [] }}\n{GRANTED}"),
            fine,
            "error secrets.s: `command` names no program",
        ),
        (
            format!("[secrets]\nS = {{ file = \"key\" }}\n{GRANTED}"),
            fine,
            "error secrets.S: the name of a secret",
        ),
        (
            format!("[secrets]\n{GRANTED}"),
            fine,
            "error components.c.secrets[0].secret: it names no secret of `secrets`, which has none;",
        ),
        (
            granted("{ secret = \"s\", host = \"*.com\", slot = { query = \"k\" } }"),
            fine,
            "is not one plain host",
        ),
        (
            granted(
                "{ secret = \"s\", host = \"a.com\", slot = { query = \"k\" } }, { secret = \
                     \"s\", host = \"A.com\", slot = { query = \"k\" } }",
            ),
            fine,
            "error components.c.secrets[1]: another secret goes to the same slot",
        ),
        (
            "[secrets]\ns = { env = \"PATH\" }\n[components.c.environment]\nX = { env = \"PATH\" \
             }\n"
            .to_owned(),
            fine,
            "error components.c.environment.X: the component would see the secret `s`",
        ),
    ] {
        let found = found(&text, files);
        assert!(
            found.iter().any(|found| found.contains(expected)),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn a_secret_has_one_source_and_stands_nowhere_in_the_config() {
    let (_folder, written) = loaded(
        "[secrets]\na = { env = \"X\" }\nb = { file = \"y\" }\nc = { command = [\"z\", \"1\"] }\n",
        &[],
    );
    assert_eq!(
        written.config.secrets["c"],
        SecretSource::Command(vec!["z".to_owned(), "1".to_owned()])
    );
    for wrong in [
        "{ value = \"SK-CANARY-CONFIG\" }",
        "{ env = \"X\", file = \"y\" }",
        "\"SK-CANARY-CONFIG\"",
        "{}",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, format!("[secrets]\ns = {wrong}\n")).unwrap();
        let reported = load(&path, []).unwrap_err().to_string();
        assert!(
            reported.contains("secrets.s") || reported.contains("secrets"),
            "{reported}"
        );
        assert!(!reported.contains("SK-CANARY"), "{reported}");
    }
}

/// Returns the outcome of a command.
async fn said(words: &[&str]) -> Result<String, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let text = format!("[secrets]\ns = {{ command = {words:?} }}\n");
    let (_folder, loaded) = loaded(&text, &[]);
    match read(&loaded).await {
        Ok(secrets) => Ok(secrets.get("s").unwrap().expose().to_owned()),
        Err(finding) => Err(finding.message),
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_says_a_secret_in_time_or_the_host_does_not_start() {
    let slow = said(&["sleep", "60"]).await.unwrap_err();
    assert_eq!(slow, "the program `sleep` took longer than 10000 ms");
    tokio::time::resume();
    assert_eq!(
        said(&["printf", "%s\\n", CANARY]).await.as_deref(),
        Ok(CANARY)
    );
    // No shell reads the words.
    assert_eq!(
        said(&["echo", "$HOME;ls>x"]).await.as_deref(),
        Ok("$HOME;ls>x")
    );
    for (words, expected) in [
        (vec!["false"], "the program `false` failed"),
        (vec!["no-such-program-anywhere"], "cannot be run"),
        (vec!["true"], "it has 0 bytes"),
        (vec!["seq", "100000"], "it has more than 16384 bytes"),
    ] {
        let reported = said(&words).await.unwrap_err();
        assert!(reported.contains(expected), "{words:?}: {reported}");
    }
}

#[tokio::test]
async fn a_check_tries_the_commands_that_say_secrets_as_a_start_does() {
    for (words, expected) in [
        (vec!["printf", CANARY], None),
        (vec!["false"], Some("the program `false` failed")),
        (vec!["no-such-program-anywhere"], Some("cannot be run")),
        (
            vec!["printf", "CANARY"],
            Some("it has 6 bytes; a secret has at least 8"),
        ),
        (vec![], Some("names no program")),
    ] {
        let text = format!("[secrets]\ns = {{ command = {words:?} }}\n{GRANTED}");
        let (_folder, loaded) = loaded(&text, &[]);
        let found = crate::config::check_with_commands(&loaded).await;
        let found: Vec<&Finding> = found.iter().filter(|it| it.key == "secrets.s").collect();
        assert_eq!(
            found.len(),
            usize::from(expected.is_some()),
            "{words:?}: {found:?}"
        );
        for (finding, expected) in found.iter().zip(expected) {
            assert_eq!(finding.severity, Severity::Error);
            assert!(finding.message.contains(expected), "{finding:?}");
            assert!(!finding.message.contains("CANARY"), "{finding:?}");
        }
    }
}

/// Returns the errors of a whole check about external agents that sign with one value, one line
/// each.
fn alike_at_rest(text: &str, files: &[(&str, &str, u32)]) -> Vec<String> {
    let (_folder, loaded) = loaded(text, files);
    crate::config::check(&loaded)
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| format!("{}: {}", finding.key, finding.message))
        .filter(|line| line.contains("has the same value"))
        .collect()
}

#[tokio::test]
async fn two_agents_never_sign_with_one_value_under_two_names() {
    let signs_with = |id: &str| {
        format!(
            "[[agents]]\nagentId = \"{id}\"\ndisplayName = \"x\"\ntype = \"external\"\n\
             external = {{ inputUrl = \"https://{id}.example/in\", secret = \"{id}\" }}\n"
        )
    };
    let agents = format!("{}{}", signs_with("weather"), signs_with("traffic"));
    let files = format!("{agents}[secrets]\nweather.file = \"w\"\ntraffic.file = \"t\"\n");
    let key = |file, content| (file, content, 0o600);
    let other = "SK-CANARY-OTHER";
    let own: [(&str, &str, u32); 2] = [key("w", CANARY), key("t", other)];
    assert_eq!(alike_at_rest(&files, &own), Vec::<String>::new());
    // The line end is no part of a value.
    let one = [key("w", CANARY), key("t", "SK-CANARY-CONFIG\n")];
    let reported = alike_at_rest(&files, &one);
    for (line, at, names) in [
        (&reported[0], "agents[0]", "`traffic` signs with `traffic`"),
        (&reported[1], "agents[1]", "`weather` signs with `weather`"),
    ] {
        let is_reported = line.starts_with(&format!("{at}.external.secret: "));
        assert!(is_reported && line.contains(names), "{line}");
        assert!(!line.contains("CANARY"), "{line}");
    }
    assert_eq!(reported.len(), 2, "{reported:?}");

    // What a command says is known once it was run.
    let command = format!("[\"printf\", \"%s\", \"{CANARY}\"]");
    let commands =
        format!("{agents}[secrets]\nweather.file = \"w\"\ntraffic.command = {command}\n");
    let one = [key("w", CANARY)];
    assert_eq!(alike_at_rest(&commands, &one), Vec::<String>::new());
    let (_folder, together) = loaded(&commands, &one);
    let secrets = read(&together).await.unwrap();
    assert_eq!(secrets_alike(&together.config, &secrets).len(), 2);
    let (tried, refused) = tried(&together).await;
    assert_eq!(secrets_alike(&together.config, &tried).len(), 2);
    assert!(refused.is_empty(), "{refused:?}");
}
