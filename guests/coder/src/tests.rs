//! The coder and its tasks.

mod limits;
mod refused;

use crate::Coder;
use agent_host_sdk::harness::{Conversation, ConversationStatus, Reply, Scene};
use agent_host_sdk::{
    Agent as _, Decision, Failure, LimitsLeft, Outcome, Part, Settlement, ToolError, Work, text_of,
};
use serde_json::{Value, json};

fn task(operation: &str, parameters: &Value) -> String {
    json!({ "operation": operation, "parameters": parameters }).to_string()
}

fn result(status: &ConversationStatus) -> Value {
    serde_json::from_str(status.words()).unwrap()
}

fn failure(status: ConversationStatus) -> String {
    match status {
        ConversationStatus::Failed(reason) => reason,
        other => panic!("it did not fail: {other:?}"),
    }
}

/// The milliseconds of the timers that the steps started.
fn timers(conversation: &Conversation<Coder>) -> Vec<u64> {
    let decisions = conversation.steps().iter().map(|step| &step.decision);
    let started = decisions.flat_map(|decision| match decision {
        Decision::Wait(wait) => wait.start.as_slice(),
        _ => &[],
    });
    started
        .filter_map(|operation| match operation.work {
            Work::TimerMs(ms) => Some(ms),
            _ => None,
        })
        .collect()
}

const MAIN: &str = "//! Says hello.\nfn main() {\n    // TODO: more\n}\n";

fn with_files() -> Conversation<Coder> {
    Conversation::new(Coder)
        .tool("list_files", |arguments: Value| {
            assert_eq!(arguments["maxDepth"], 16);
            match arguments["path"].as_str() {
                Some("/w") => Ok(
                    "node_modules/\nnode_modules/x.js (9 bytes)\npic.png (5 bytes)\n\
                     src/\nsrc/big.py (70000 bytes)\nsrc/main.rs (45 bytes)"
                        .to_owned(),
                ),
                Some(_) => Err(ToolError::invalid("path", "leads through a file")),
                None => panic!("{arguments}"),
            }
        })
        .tool(
            "search_files",
            |arguments: Value| match arguments["pattern"].as_str() {
                Some("TODO") => Ok("src/main.rs:3: // TODO: more".to_owned()),
                Some("(") => Err(ToolError::invalid("pattern", "is not a regular expression")),
                _ => Ok("[no line in `/w` matches]".to_owned()),
            },
        )
        .tool("read_file", |arguments: Value| {
            match (arguments["path"].as_str(), arguments["offset"].as_u64()) {
                (Some("/w/src/main.rs"), Some(0)) => Ok(MAIN.to_owned()),
                (Some("/w/src/big.py"), Some(0)) => {
                    Ok("class A:\n    x = 1\n\n[there is more; go on with offset 2]".to_owned())
                }
                (Some("/w/src/big.py"), Some(2)) => {
                    Ok("    def f(self):\n        pass\n".to_owned())
                }
                _ => Err(ToolError::NotFound(format!(
                    "there is no {}",
                    arguments["path"]
                ))),
            }
        })
}

#[test]
fn an_analysis_finds_files_symbols_and_hits_and_a_model_sums_them_up() {
    let mut conversation = with_files().model_says("A greeting.");
    let reported = conversation.say(&task(
        "analyze_code",
        &json!({ "path": "/w", "patterns": ["TODO", "(", "none"] }),
    ));
    let reported = result(&reported);
    assert_eq!(reported["summary"], "A greeting.");
    assert_eq!(reported["otherFiles"], 2);
    assert_eq!(
        reported["languages"],
        json!({
            "python": { "files": 1, "lines": 4, "bytes": 70_000 },
            "rust": { "files": 1, "lines": 4, "bytes": 45 },
        })
    );
    assert_eq!(
        reported["files"][0]["symbols"],
        json!([
            { "kind": "class", "name": "A", "line": 1 },
            { "kind": "method", "name": "f", "line": 3 },
        ])
    );
    assert_eq!(
        reported["files"][1]["symbols"],
        json!([{ "kind": "function", "name": "main", "line": 2 }])
    );
    assert_eq!(
        reported["patterns"][0]["hits"],
        json!([{ "file": "/w/src/main.rs", "line": 3, "text": "// TODO: more" }])
    );
    let error = reported["patterns"][1]["error"].as_str().unwrap();
    assert!(error.contains("is not a regular expression"), "{error}");
    assert_eq!(reported["patterns"][2]["hits"], json!([]));

    let [request] = conversation.requests() else {
        panic!("one request");
    };
    let shown = text_of(&request.also);
    assert!(shown.starts_with("The data:\n```\n{"), "{shown}");
    assert!(request.system[0].contains("between fences"));
}

#[test]
fn an_analysis_without_a_model_is_the_data_alone() {
    let asked = task("analyze_code", &json!({ "path": "/w" }));
    let mut conversation =
        with_files().model_replies(Reply::failure("model-unavailable", "it is down"));
    let reported = result(&conversation.say(&asked));
    assert_eq!(reported["summary"], Value::Null);
    assert_eq!(
        reported["notes"],
        json!(["there is no summary: it is down (model-unavailable)"])
    );

    let mut conversation = with_files().limits(LimitsLeft {
        steps: 20,
        tool_calls: 20,
        tokens: 100,
    });
    let reported = result(&conversation.say(&asked));
    assert_eq!(reported["summary"], Value::Null);
    assert_eq!(reported["files"].as_array().unwrap().len(), 2);
    assert!(conversation.requests().is_empty());
}

#[test]
fn a_path_may_be_one_file_and_has_to_be_there() {
    let mut conversation = with_files().model_says("One file.");
    let reported =
        result(&conversation.say(&task("analyze_code", &json!({ "path": "/w/src/main.rs" }))));
    assert_eq!(reported["files"][0]["lines"], 4);
    assert_eq!(reported["files"][0]["bytes"], MAIN.len());
    let reason = failure(with_files().say(&task("analyze_code", &json!({ "path": "/ghost" }))));
    assert!(reason.starts_with("there is no \"/ghost\""), "{reason}");
}

#[test]
fn generated_files_are_data_and_their_paths_stay_inside() {
    let reply = json!({
        "files": [
            { "path": "src/lib.rs", "content": "pub fn f() {}" },
            { "path": "../etc/passwd", "content": "x" },
            { "path": "/abs", "content": "x" },
            { "path": "src/lib.rs", "content": "again" },
        ],
        "notes": "None.",
    });
    let mut conversation = Conversation::new(Coder).model_says(&reply.to_string());
    let spec = "A function ``` that does nothing";
    let reported = result(&conversation.say(&task(
        "generate_code",
        &json!({ "spec": spec, "language": "rust" }),
    )));
    assert_eq!(
        reported["files"],
        json!([{ "path": "src/lib.rs", "content": "pub fn f() {}" }])
    );
    let refused: Vec<&str> = reported["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["reason"].as_str().unwrap())
        .collect();
    assert_eq!(
        refused,
        [
            "its path has an empty part, `.` or `..`",
            "its path is not relative",
            "there is one of this path already",
        ]
    );
    let request = &conversation.requests()[0];
    assert!(request.reply_schema.is_some());
    // The fence around the specification is longer than what it has of its own.
    assert!(text_of(&request.also).ends_with(&format!("````\n{spec}\n````")));
}

#[test]
fn findings_about_places_that_the_diff_does_not_have_are_marked() {
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,3 @@\n x\n+y\n z\n";
    let finding = |file: &str, line: Value| {
        json!({
            "file": file, "line": line, "severity": "high", "message": "m", "suggestion": null,
        })
    };
    let reply = json!({
        "findings": [
            finding("a.rs", json!(2)), finding("a.rs", json!(9)),
            finding("b.rs", json!(1)), finding("a.rs", json!(null)),
        ],
        "summary": "Fine.",
    });
    let mut conversation = Conversation::new(Coder).model_says(&reply.to_string());
    let reported = result(&conversation.say(&task(
        "review_code",
        &json!({ "diff": diff, "guidelines": "No unsafe code." }),
    )));
    let marks: Vec<(bool, Option<&str>)> = reported["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            (
                finding["inDiff"].as_bool().unwrap(),
                finding["unverified"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        marks,
        [
            (true, None),
            (false, Some("line 9 of the file does not occur in the diff")),
            (false, Some("the file does not occur in the diff")),
            (true, None),
        ]
    );
    let shown = text_of(&conversation.requests()[0].also);
    assert!(
        shown.contains("No unsafe code.") && shown.contains("+y"),
        "{shown}"
    );
}

#[test]
fn a_program_is_run_by_the_tool_and_its_result_is_the_reply() {
    let mut conversation = Conversation::new(Coder).tool("execute_code", |arguments: Value| {
        assert_eq!(
            arguments,
            json!({ "code": "1+1", "language": "js", "timeout": 500 })
        );
        Ok(vec![Part::Text(
            r#"{"status":"completed","value":2}"#.to_owned(),
        )])
    });
    let reported = conversation.say(&task(
        "execute_code",
        &json!({ "code": "1+1", "language": "js", "timeout": 500 }),
    ));
    assert_eq!(result(&reported)["value"], 2);
    // The call is given up long after the tool itself would have stopped the program.
    assert_eq!(timers(&conversation), [5_500]);
    assert!(conversation.requests().is_empty());
}

#[test]
fn a_program_is_given_up_before_whoever_delegated_gives_the_task_up() {
    for (timeout, limit, expected) in [
        (None, Some(12_000), Some(10_000)),
        (Some(60_000), Some(12_000), Some(10_000)),
        (Some(1_000), Some(120_000), Some(6_000)),
        (None, None, None),
    ] {
        let mut conversation = Conversation::new(Coder).tool("execute_code", |_| {
            Ok(r#"{"status":"completed"}"#.to_owned())
        });
        let parameters = json!({ "code": "1", "timeout": timeout });
        let asked = json!({
            "operation": "execute_code", "parameters": parameters, "timeoutMs": limit,
        });
        assert_eq!(
            result(&conversation.say(&asked.to_string()))["status"],
            "completed"
        );
        assert_eq!(timers(&conversation).first().copied(), expected);
    }
}

#[test]
fn a_language_that_is_not_there_fails_the_task_with_those_that_are() {
    let mut conversation = Conversation::new(Coder).tool::<String>("execute_code", |_| {
        Err(ToolError::invalid(
            "language",
            "is `cobol`; installed: javascript",
        ))
    });
    let reason = failure(conversation.say(&task("execute_code", &json!({ "code": "1" }))));
    assert!(reason.contains("installed: javascript"), "{reason}");
}

#[test]
fn a_crash_says_whether_it_was_for_want_of_memory_or_of_depth() {
    for (message, status, said) in [
        (
            "the tool crashed: panicked at raw_vec.rs:1:1: capacity overflow (unreachable)",
            "out-of-memory",
            "more memory at once",
        ),
        (
            "the tool crashed: memory allocation of 99 bytes failed (unreachable)",
            "out-of-memory",
            "more memory at once",
        ),
        (
            "the tool crashed: wasm trap: call stack exhausted",
            "crashed",
            "the program, or a value that it made, is nested too deeply",
        ),
        (
            "the tool crashed: empty poll list",
            "crashed",
            "the tool crashed: empty poll list",
        ),
    ] {
        let work = json!(crate::Work::Execute);
        let scene = Scene::new().said("a task").state(work);
        let settlement = Settlement {
            key: "run".to_owned(),
            outcome: Outcome::Failed(Failure {
                code: "trapped".to_owned(),
                message: message.to_owned(),
                retryable: false,
            }),
        };
        let step = Coder.on_settled(scene.turn(), &[settlement]);
        let Decision::Reply(parts) = &step.decision else {
            panic!("{step:?}");
        };
        let reported: Value = serde_json::from_str(&text_of(parts)).unwrap();
        assert_eq!(reported["status"], status, "{message}");
        let words = reported["error"]["message"].as_str().unwrap();
        assert!(words.contains(said), "{words}");
        assert!(!words.starts_with("crashed: "), "{words}");
    }
}

#[test]
fn a_task_that_makes_no_sense_fails_with_what_would() {
    for (words, expected) in [
        (
            "Write me a program".to_owned(),
            "this is not a task, which is",
        ),
        (task("launch", &json!({})), "Supported: analyze_code(path"),
        (task("review_code", &json!({})), "missing field `diff`"),
        (
            task("generate_code", &json!({ "spec": " " })),
            "`spec` must not be empty",
        ),
        (
            task("review_code", &json!({ "diff": "fn f() {}" })),
            "send a unified diff",
        ),
        (
            task("analyze_code", &json!({ "path": "/w", "patterns": [""] })),
            "each of `patterns` must have",
        ),
        (
            task(
                "analyze_code",
                &json!({ "path": "/w", "patterns": vec!["x"; 21] }),
            ),
            "20 are the most",
        ),
        (
            task("execute_code", &json!({ "code": "1" })),
            "has no tool `execute_code`",
        ),
    ] {
        let reason = failure(with_files().say(&words));
        assert!(reason.contains(expected), "{words}: {reason}");
    }
}
