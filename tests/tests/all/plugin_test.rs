//! `agent-host plugin test` over components that are good, odd and hostile, and the manifests that
//! components carry: shown without running them, and never in the way of a host.

use agent_host_tests::guests::wasm;
use agent_host_tests::process::{PATIENCE, program};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;

/// The result of a test of a component.
struct Tested {
    report: Value,
    stderr: String,
    code: Option<i32>,
}

/// Writes a component into a folder and tests it.
async fn test_in(dir: &Path, code: &[u8], more: &[&str]) -> Tested {
    std::fs::write(dir.join("plugin.wasm"), code).unwrap();
    let mut command = Command::new(program());
    command
        .args(["plugin", "test", "plugin.wasm", "--json"])
        .args(more)
        .current_dir(dir)
        .env_remove("AGENT_HOST_CONFIG")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.expect("an end in time").unwrap();
    Tested {
        report: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

async fn test(code: &[u8]) -> Tested {
    let dir = TempDir::new().unwrap();
    test_in(dir.path(), code, &[]).await
}

impl Tested {
    /// The findings of a weight: each with its place and what is wrong.
    fn findings(&self, severity: &str) -> Vec<String> {
        let all = self.report["findings"].as_array().unwrap().iter();
        all.filter(|finding| finding["severity"] == severity)
            .map(|finding| {
                assert!(finding["fix"].as_str().is_some_and(|fix| !fix.is_empty()));
                let text = |key: &str| finding[key].as_str().unwrap().to_owned();
                format!("{}: {}", text("where"), text("what"))
            })
            .collect()
    }

    #[track_caller]
    fn has(&self, severity: &str, part: &str) {
        let found = self.findings(severity);
        assert!(
            found.iter().any(|line| line.contains(part)),
            "no {severity} with {part:?}: {}",
            self.report
        );
    }

    #[track_caller]
    fn is_good(&self) {
        assert_eq!(
            (self.findings("error"), self.findings("warning"), self.code),
            (Vec::new(), Vec::new(), Some(0)),
            "{}",
            self.stderr
        );
    }
}

#[tokio::test]
async fn good_tools_and_good_agents_pass_a_test_without_an_error_or_a_warning() {
    for name in [
        "text-stats",
        "lists",
        "files",
        "assistant",
        "worker",
        "haiku",
        "coder",
        "code",
    ] {
        let tested = test(&wasm(name)).await;
        tested.is_good();
        let runs = tested.report["runs"].as_array().unwrap();
        assert!(runs.len() >= 3, "{name}: {runs:?}");
        assert!(
            runs.iter().any(|run| run["wall_us"].as_u64() > Some(0)
                && run["memory_bytes_peak"].as_u64() > Some(0)),
            "{name}: {runs:?}"
        );
    }
}

#[tokio::test]
async fn a_tool_that_traps_fails_a_test_with_the_call_that_did_it() {
    let tested = test(&wasm("trap")).await;
    assert_eq!(tested.code, Some(1));
    tested.has("error", "tool `trap`: it traps");
    tested.has("error", "with {}, which fits its schema");
    tested.has(
        "warning",
        "called by the name of a tool that it does not offer",
    );
    assert!(
        tested.stderr.contains("has to be mended"),
        "{}",
        tested.stderr
    );
}

/// In most languages the reason of a trap stands there alone.
#[tokio::test]
async fn a_trap_is_told_with_what_the_guest_wrote_to_stderr_before() {
    let tested = test(&wasm("trap")).await;
    let findings = tested.report["findings"].as_array().unwrap();
    let traps: Vec<&Value> = findings
        .iter()
        .filter(|finding| finding["what"].as_str().unwrap().starts_with("it traps"))
        .collect();
    assert!(!traps.is_empty(), "{}", tested.report);
    for trap in traps {
        let lines = trap["stderr"].as_array().unwrap();
        let reason = json!("before the end: \\u{200b}a reason");
        assert!(lines.contains(&reason), "{trap}");
    }
}

#[tokio::test]
async fn an_agent_whose_decision_follows_from_chance_is_told_so() {
    let tested = test(&wasm("clock")).await;
    tested.has("warning", "its decision depends on randomness");
    assert_eq!(tested.code, Some(0));
    let dir = TempDir::new().unwrap();
    let strict = test_in(dir.path(), &wasm("clock"), &["--strict"]).await;
    assert_eq!(strict.code, Some(1));
}

#[tokio::test]
async fn an_agent_whose_step_is_not_accepted_fails_a_test() {
    let tested = test(&wasm("refused")).await;
    assert_eq!(tested.code, Some(1));
    tested.has(
        "error",
        "a host does not take what it returns: `effects[0]` is not JSON",
    );
}

#[tokio::test]
async fn an_import_that_no_tool_declares_is_told_with_its_capability() {
    // The program imports all of WASI, and declares what it uses.
    let declared = wasm("reach");
    let named = "no tool declares `net.http`";
    let reported = test(&declared).await.findings("warning").join("\n");
    assert!(!reported.contains(named), "{reported}");
    let tested = test(&declaring(declared, b"env.read")).await;
    tested.has("warning", "imports: it imports wasi:http/outgoing-handler");
    tested.has("warning", named);
    tested.has("warning", "it declares `secrets.use` without `net.http`");
}

/// The same code with another capability in place of `net.http`, which stands in its data, or in an
/// instruction that stores it as a number.
fn declaring(code: Vec<u8>, capability: &[u8; 8]) -> Vec<u8> {
    let with_data = replaced(code, b"net.http", capability);
    replaced(with_data, &leb(*b"net.http"), &leb(*capability))
}

/// Replaces bytes by as many others.
fn replaced(mut code: Vec<u8>, old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let places: Vec<usize> = code
        .windows(old.len())
        .enumerate()
        .filter(|(_, bytes)| *bytes == old)
        .map(|(at, _)| at)
        .collect();
    for at in places {
        code[at..at + old.len()].copy_from_slice(new);
    }
    code
}

/// The bytes of the constant of an instruction: signed LEB128.
fn leb(bytes: [u8; 8]) -> Vec<u8> {
    let mut rest = i64::from_le_bytes(bytes);
    let mut encoded = Vec::new();
    loop {
        let low = u8::try_from(rest & 0x7f).unwrap();
        rest >>= 7;
        if rest == 0 && low & 0x40 == 0 {
            encoded.push(low);
            return encoded;
        }
        encoded.push(low | 0x80);
    }
}

/// A component that no host would load is told why, as a finding.
#[tokio::test]
async fn a_component_that_no_host_loads_fails_a_test_with_the_reason() {
    let mut promise = wasm("schemas");
    let marker = b"promises:a number.";
    let at = promise
        .windows(marker.len())
        .position(|bytes| bytes == marker)
        .unwrap();
    promise[at..at + marker.len()].copy_from_slice(b"promises:doubling.");
    for (code, part) in [
        (
            promise,
            "`promise.results` is a JSON Schema that cannot be used",
        ),
        (
            declaring(wasm("reach"), b"net.htpp"),
            "has `net.htpp`, which is no capability of this host; the nearest is `net.http`",
        ),
        (wasm("trap-in-describe"), "describe: it traps: "),
        (
            wasm("unknown-import"),
            "imports: this host does not have acme:teleport/beam@1.0.0",
        ),
        (
            b"\x7fELF".to_vec(),
            "component: this is not a WebAssembly component",
        ),
    ] {
        let tested = test(&code).await;
        assert_eq!(tested.code, Some(1), "{}", tested.stderr);
        tested.has("error", part);
        assert_eq!(tested.report["runs"], json!([]));
    }
}

const CASES: &str = r#"
[[case]]
name = "reads what is there"
tool = "read_file"
arguments = { path = "notes/a.txt" }
files = { "notes/a.txt" = "hello\n" }
expect.contains = ["hello"]

[[case]]
name = "writes"
tool = "write_file"
arguments = { path = "b.txt", content = "new" }
expect.files = { "b.txt" = "new" }

[[case]]
name = "misses"
tool = "read_file"
arguments = { path = "none.txt" }
expect.outcome = "not-found"

[[case]]
name = "refuses"
tool = "read_file"
arguments = { path = 1 }
expect.outcome = "invalid-arguments"
"#;

#[tokio::test]
async fn sample_calls_of_a_file_are_run_and_compared_in_a_folder_of_their_own() {
    let dir = TempDir::new().unwrap();
    let cases = dir.path().join("cases.toml");
    std::fs::write(&cases, CASES).unwrap();
    let tested = test_in(dir.path(), &wasm("files"), &["--cases", "cases.toml"]).await;
    tested.is_good();
    let wrong = CASES
        .replace("[\"hello\"]", "[\"goodbye\"]")
        .replace("\"not-found\"", "\"done\"")
        .replace("\"b.txt\" = \"new\"", "\"b.txt\" = \"old\"");
    std::fs::write(&cases, wrong).unwrap();
    let tested = test_in(dir.path(), &wasm("files"), &["--cases", "cases.toml"]).await;
    assert_eq!(tested.code, Some(1));
    tested.has("error", "reads what is there: \"goodbye\" is not in");
    tested.has("error", "misses: it ends as `not-found` instead of `done`");
    tested.has(
        "error",
        "writes: the file `b.txt` holds \"new\" instead of \"old\"",
    );
}

const BUCKET_CASES: &str = r#"
[[case]]
name = "goes on"
tool = "keep"
arguments = { do = [["set", "a", "1"]], then = "later", resumed = [["get", "a"], ["set", "b", "2"]] }
expect.text = "1 | ok"
expect.buckets = { notes = { a = "1", b = "2" } }

[[case]]
name = "asks"
tool = "keep"
arguments = { do = [["set", "a", "1"]], then = "ask", resumed = [["add", "a", 2]] }
answers = [true]
expect.buckets = { notes = { a = "1" } }

[[case]]
name = "deletes"
tool = "keep"
arguments = { do = [["delete", "a"]] }
buckets = { notes = { a = "1", b = "2" } }
expect.buckets = { notes = { b = "2" } }

[[case]]
name = "fails"
tool = "keep"
arguments = { do = [["set", "a", "1"]], then = "fail" }
expect.outcome = "failed"
expect.buckets = { notes = {} }
"#;

/// A host commits the writes of each segment of a call before the next.
#[tokio::test]
async fn a_case_tells_what_a_call_leaves_in_buckets_over_all_its_segments() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("cases.toml"), BUCKET_CASES).unwrap();
    let tested = test_in(dir.path(), &wasm("shelf"), &["--cases", "cases.toml"]).await;
    let runs = tested.report["runs"].as_array().map_or(0, Vec::len);
    assert!(runs >= 4, "{}", tested.stderr);
    let of_cases: Vec<String> = ["goes on: ", "asks: ", "deletes: ", "fails: "]
        .iter()
        .flat_map(|case| {
            let mut errors = tested.findings("error");
            errors.retain(|error| error.starts_with(case));
            errors
        })
        .collect();
    // What this case expects is wrong.
    assert_eq!(
        of_cases,
        ["asks: the key `a` of the bucket `notes` holds \"3\" instead of \"1\""]
    );
}

#[tokio::test]
async fn a_file_of_calls_that_makes_no_sense_is_a_wrong_usage() {
    let dir = TempDir::new().unwrap();
    for (cases, part) in [
        ("nonsense", "cases.toml"),
        ("[[case]]\ntool = \"raed_file\"", "no tool `raed_file`"),
        (
            "[[case]]\ntool = \"read_file\"\nhttp = []",
            "no canned answers",
        ),
    ] {
        std::fs::write(dir.path().join("cases.toml"), cases).unwrap();
        let tested = test_in(dir.path(), &wasm("files"), &["--cases", "cases.toml"]).await;
        assert!(
            tested.code == Some(2) && tested.stderr.contains(part),
            "{}",
            tested.stderr
        );
    }
    std::fs::write(dir.path().join("cases.toml"), CASES).unwrap();
    let agent = test_in(dir.path(), &wasm("haiku"), &["--cases", "cases.toml"]).await;
    assert!(agent.stderr.contains("is an agent"), "{}", agent.stderr);
    let missing = test_in(dir.path(), &wasm("files"), &["--cases", "none.toml"]).await;
    assert!(
        missing.stderr.contains("cannot read `none.toml`"),
        "{}",
        missing.stderr
    );
}

/// Hostile components meet their limits in a test as they do in a host, and the test ends.
#[tokio::test]
async fn hostile_components_are_stopped_and_told_by_the_limit_that_they_met() {
    for (name, part) in [
        ("spin", "computes for more than 1000 ms"),
        ("grow", "of memory"),
    ] {
        let tested = test(&wasm(name)).await;
        assert_eq!(tested.code, Some(1), "{name}: {}", tested.report);
        tested.has("error", part);
    }
}
