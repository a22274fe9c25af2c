//! The requirements of tests on the machine. A missing one fails the tests that need it, unless a
//! variable says that this is known.

/// The variable that lets tests be skipped which need user and mount namespaces.
pub const WITHOUT_NAMESPACES: &str = "AGENT_HOST_TESTS_WITHOUT_NAMESPACES";
/// The variable that lets tests be skipped which need bash, curl and jq.
pub const WITHOUT_CURL: &str = "AGENT_HOST_TESTS_WITHOUT_CURL";
/// The variable that lets tests be skipped which need a Node.js that has an `EventSource`.
pub const WITHOUT_NODE: &str = "AGENT_HOST_TESTS_WITHOUT_NODE";
/// The variable that lets tests be skipped which build projects in Python, with componentize-py.
pub const WITHOUT_PYTHON: &str = "AGENT_HOST_TESTS_WITHOUT_PYTHON";
/// The variable that lets tests be skipped which build projects in JavaScript, with
/// componentize-qjs and componentize-js.
pub const WITHOUT_JAVASCRIPT: &str = "AGENT_HOST_TESTS_WITHOUT_JAVASCRIPT";
/// The variable that lets tests be skipped which build projects in C, with clang and wasi-libc.
pub const WITHOUT_C: &str = "AGENT_HOST_TESTS_WITHOUT_C";
/// The variable that lets tests be skipped which need terminals, by `script` of util-linux.
pub const WITHOUT_SCRIPT: &str = "AGENT_HOST_TESTS_WITHOUT_SCRIPT";

/// The variable that lets tests be skipped which need a kernel that has Landlock.
pub const WITHOUT_LANDLOCK: &str = "AGENT_HOST_TESTS_WITHOUT_LANDLOCK";

/// Returns a resource of the machine that a test needs; none when it is missing and the variable
/// says that this is known.
///
/// # Panics
/// When it does not have it and the variable is not `1`.
#[must_use]
pub fn needed<T>(found: Result<T, String>, unless: &str) -> Option<T> {
    let is_known = std::env::var_os(unless).is_some_and(|value| value == "1");
    found_or_known(found, unless, is_known)
}

/// Returns why the machine has no terminals for tests, if it has none.
///
/// # Errors
/// It has no `script` of util-linux.
pub fn terminals() -> Result<(), String> {
    let mut version = std::process::Command::new("script");
    let reported = version
        .arg("--version")
        .stdin(std::process::Stdio::null())
        .output();
    match reported {
        Ok(reported) if String::from_utf8_lossy(&reported.stdout).contains("util-linux") => Ok(()),
        _ => Err("there is no `script` of util-linux, which makes terminals".to_owned()),
    }
}

/// Returns what was found; none when it is missing and that is known.
///
/// # Panics
/// When it is missing and that is not known.
#[expect(
    clippy::print_stderr,
    reason = "whoever reads the results is to know what was not tested"
)]
#[must_use]
pub fn found_or_known<T>(found: Result<T, String>, unless: &str, is_known: bool) -> Option<T> {
    match found {
        Ok(it) => Some(it),
        Err(why) if is_known => {
            eprintln!("SKIPPED, because {unless}=1: {why}");
            None
        }
        Err(why) => panic!(
            "this machine cannot run this test: {why}. Set {unless}=1 to do without what it proves."
        ),
    }
}
