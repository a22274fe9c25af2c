//! The coder and the code tool, as whoever delegates sees them.

use agent_host_tests::process::puppet;
use agent_host_tests::{Setup, World};
use domain::grant::GuestLimits;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Milliseconds of one call of a tool, computing and in all.
const CALL_MS: u64 = 6_000;

/// A model that answers each of the coder's requests.
const SCRIPT: &str = r#"
[[rule]]
when = { userContains = "The data:" }
reply = { text = "A greeting in two languages." }

[[rule]]
when = { userContains = "The specification:" }
reply = { text = '{"files":[{"path":"src/a.js","content":"export const a = 1;"},{"path":"/etc/b","content":"x"}],"notes":"Small."}' }

[[rule]]
when = { userContains = "The diff:" }
reply = { text = '{"findings":[{"file":"a.rs","line":2,"severity":"high","message":"It never ends.","suggestion":"End it."},{"file":"z.rs","line":1,"severity":"low","message":"Made up.","suggestion":null}],"summary":"One fault."}' }

[[rule]]
reply = { text = "hello from the model" }
"#;

fn coding() -> Setup {
    Setup {
        components: vec!["puppet", "files", "coder", "code"],
        definitions: vec![
            puppet(),
            json!({
                "agentId": "coder", "displayName": "Coder", "component": "coder",
                "toolAllowlist": ["list_files", "read_file", "search_files", "execute_code"],
                "agentAllowlist": [],
            }),
        ],
        script: SCRIPT.to_owned(),
        guest_limits: GuestLimits {
            cpu_ms_max: CALL_MS,
            wall_ms_max: CALL_MS,
            ..GuestLimits::default()
        },
        ..Setup::default()
    }
}

/// Delegates an operation to the coder, and returns the result of the delegation.
async fn delegated(world: &World, operation: &str, parameters: Value) -> Value {
    let arguments = json!({ "target": "coder", "operation": operation, "parameters": parameters });
    delegated_as(world, arguments).await
}

/// Delegates with these arguments, and returns the result of the delegation.
async fn delegated_as(world: &World, arguments: Value) -> Value {
    let steps = json!([{ "start": [{ "key": "d", "tool": "delegate", "args": arguments }] }]);
    let reported = world.play(steps).await.join("\n");
    let text = reported
        .strip_prefix("d parts ")
        .unwrap_or_else(|| panic!("{reported}"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {reported}"))
}

/// The data of a delegation that succeeded.
async fn coded(world: &World, operation: &str, parameters: Value) -> Value {
    let reported = delegated(world, operation, parameters).await;
    assert_eq!(reported["success"], true, "{reported}");
    assert_eq!(reported["metadata"]["operation"], operation, "{reported}");
    reported["data"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn code_is_analyzed_by_the_coder_with_real_files_and_summed_up_by_a_model() {
    let world = World::new(coding()).await;
    let files = world.dir.path().join("files/hello/src");
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(
        files.join("main.rs"),
        "//! Says hello.\nfn main() {\n    // TODO: more\n}\n",
    )
    .unwrap();
    std::fs::write(
        files.join("tool.py"),
        "class A:\n    def f(self):\n        pass\n",
    )
    .unwrap();
    let reported = coded(
        &world,
        "analyze_code",
        json!({ "path": "/data/hello", "patterns": ["TODO", "f\\(", "("] }),
    )
    .await;
    assert_eq!(
        reported["summary"], "A greeting in two languages.",
        "{reported}"
    );
    assert_eq!(
        reported["languages"]["python"],
        json!({ "files": 1, "lines": 3, "bytes": 39 }),
        "{reported}"
    );
    assert_eq!(
        reported["files"][0]["symbols"],
        json!([{ "kind": "function", "name": "main", "line": 2 }]),
        "{reported}"
    );
    assert_eq!(
        reported["patterns"][0]["hits"],
        json!([{ "file": "/data/hello/src/main.rs", "line": 3, "text": "    // TODO: more" }]),
        "{reported}"
    );
    assert_eq!(reported["patterns"][1]["hits"][0]["line"], 2, "{reported}");
    assert!(
        reported["patterns"][2]["error"]
            .as_str()
            .is_some_and(|error| error.contains("is not a regular expression")),
        "{reported}"
    );
    let ghost = delegated(&world, "analyze_code", json!({ "path": "/data/ghost" })).await;
    assert_eq!(ghost["error"]["code"], "TASK_FAILED", "{ghost}");
}

/// A program that does its worst.
struct Worst {
    code: &'static str,
    /// Milliseconds that the task has for it; none for as many as the tool's calls have.
    timeout: Option<u64>,
    /// The ways in which it may end.
    statuses: &'static [&'static str],
    /// Words that the result has somewhere.
    said: &'static str,
}

/// A program that ends in one way, whatever time it has.
const fn worst(code: &'static str, statuses: &'static [&'static str], said: &'static str) -> Worst {
    Worst {
        code,
        timeout: None,
        statuses,
        said,
    }
}

/// A program without an end, in a task with a time.
const fn endless(code: &'static str, said: &'static str) -> Worst {
    Worst {
        code,
        timeout: Some(300),
        statuses: &["timed-out"],
        said,
    }
}

/// A program without an end that the tool cannot look into: the host or the coder stops it.
const fn stuck(code: &'static str, said: &'static str) -> Worst {
    Worst {
        timeout: None,
        ..endless(code, said)
    }
}

const WORST: [Worst; 16] = [
    endless("console.log('begun'); while (true);", "begun"),
    endless(
        "console.log('begun'); setTimeout(() => { while (true); })",
        "begun",
    ),
    endless("await null; console.log('begun'); while (true);", "begun"),
    stuck("[1].forEach(() => { while (true); })", "longer than it may"),
    stuck("/^(a+)+$/.test('a'.repeat(40) + 'b')", "longer than it may"),
    worst(
        "console.log('begun'); await new Promise(() => {}); console.log('never')",
        &["failed"],
        "awaits a promise that nothing resolves",
    ),
    worst(
        "const line = 'x'.repeat(10_000); for (let i = 0; i < 10_000; i++) console.log(line); 7",
        &["completed"],
        "lines left out or cut",
    ),
    Worst {
        code: "const all = [], x = 'x'.repeat(1_000_000); while (true) all.push(x + all.length)",
        timeout: Some(CALL_MS),
        statuses: &["out-of-memory"],
        said: "more memory than it may",
    },
    Worst {
        code: "const all = []; while (true) all.push(new Uint8Array(1_000_000))",
        timeout: Some(CALL_MS),
        statuses: &["out-of-memory"],
        said: "more memory than it may",
    },
    worst(
        "new Float64Array(20_000_000)",
        &["out-of-memory"],
        "more memory than it may",
    ),
    worst(
        "'x'.repeat(2 ** 29)",
        &["out-of-memory"],
        "more memory at once than there can be",
    ),
    worst(
        "require('fs').readFileSync('/etc/passwd')",
        &["failed"],
        "no modules, files",
    ),
    worst("fetch('http://127.0.0.1/')", &["failed"], "no network"),
    worst(
        "function f() { return f() + 1 } f()",
        &["failed"],
        "Maximum call stack size exceeded",
    ),
    worst(
        "const f = () => [1].map(f); f()",
        &["failed", "crashed"],
        "",
    ),
    worst("eval('('.repeat(200_000))", &["failed", "crashed"], ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_do_their_worst_have_a_clear_result_and_the_host_goes_on() {
    let world = World::new(coding()).await;
    for Worst {
        code,
        timeout,
        statuses,
        said,
    } in WORST
    {
        let begun = Instant::now();
        let task = json!({ "code": code, "timeout": timeout });
        let ran = coded(&world, "execute_code", task).await;
        let status = ran["status"].as_str().unwrap_or_default();
        assert!(statuses.contains(&status), "{code}: {ran}");
        assert!(ran.to_string().contains(said), "{code}: {ran}");
        if status != "completed" {
            let message = ran["error"]["message"].as_str();
            assert!(
                message.is_some_and(|said| !said.is_empty()),
                "{code}: {ran}"
            );
        }
        assert!(ran.to_string().len() < 64 << 10, "{code}");
        if timeout.is_some() {
            assert!(
                begun.elapsed() < 2 * Duration::from_millis(CALL_MS),
                "{code}"
            );
        }
        let next = coded(&world, "execute_code", json!({ "code": "1 + 1" })).await;
        assert_eq!(next["value"], 2, "after {code}: {next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_program_keeps_its_output_under_the_default_limits() {
    let world = World::new(Setup {
        guest_limits: GuestLimits::default(),
        ..coding()
    })
    .await;
    for code in [
        "console.log('begun'); while (true);",
        "await null; console.log('begun'); while (true);",
        "console.log('begun'); let s = ''; for (;;) s += 'x'",
        "console.log('begun'); for (;;) console.log('x'.repeat(1000))",
        "console.log('begun'); for (;;) JSON.stringify(Array(1000).fill(1))",
        "await null; console.log('begun'); for (;;) JSON.stringify(Array(1000).fill(1))",
    ] {
        let ran = coded(&world, "execute_code", json!({ "code": code })).await;
        assert_eq!(ran["status"], "timed-out", "{code}: {ran}");
        let stdout = ran["stdout"].as_str().unwrap_or_default();
        assert!(stdout.starts_with("begun\n"), "{code}: {ran}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_program_with_all_of_its_tasks_time_keeps_its_output() {
    let world = World::new(coding()).await;
    for timeout in [json!(3_000), Value::Null] {
        let arguments = json!({
            "target": "coder", "operation": "execute_code", "timeout": 3_000,
            "parameters": { "code": "console.log('begun'); while (true);", "timeout": timeout },
        });
        let reported = delegated_as(&world, arguments).await;
        assert_eq!(reported["data"]["status"], "timed-out", "{reported}");
        assert_eq!(reported["data"]["stdout"], "begun\n", "{reported}");
    }
}
