//! The coder and its tasks.

use crate::Coder;
use agent_host_sdk::harness::{Conversation, ConversationStatus, Reply, Scene};
use agent_host_sdk::{
    Agent as _, Decision, Effect, Failure, LimitsLeft, Outcome, Part, Settlement, Step, ToolError,
    Work, text_of,
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

#[test]
fn a_folder_whose_only_file_cannot_be_read_is_analyzed_all_the_same() {
    let mut conversation = Conversation::new(Coder)
        .tool("list_files", |_| Ok("gone.rs (9 bytes)".to_owned()))
        .tool::<String>("read_file", |_| {
            Err(ToolError::NotFound("there is no such file".to_owned()))
        })
        .model_says("Nothing.");
    let reported = result(&conversation.say(&task("analyze_code", &json!({ "path": "/w" }))));
    assert_eq!(reported["files"][0]["cut"], true, "{reported}");
    assert_eq!(
        reported["notes"],
        json!(["`/w/gone.rs` was not read: there is no such file (not-found)"])
    );
}

/// Analyzes 58 Python files of two lines with this many calls of tools and steps.
fn analyzed_within(tool_calls: u32, steps: u32) -> Value {
    let files: String = (0..58).map(|at| format!("{at}.py (24 bytes)\n")).collect();
    let mut conversation = Conversation::new(Coder)
        .tool("list_files", move |_| Ok(files.clone()))
        .tool(
            "read_file",
            |_| Ok("import os\nprint(os.name)\n".to_owned()),
        )
        .model_says("Much.")
        .limits(LimitsLeft {
            steps,
            tool_calls,
            tokens: 100_000,
        });
    result(&conversation.say(&task("analyze_code", &json!({ "path": "/w" }))))
}

#[test]
fn files_beyond_a_budget_are_no_part_of_the_sums_and_the_limit_is_named() {
    let python = |reported: &Value| reported["languages"]["python"].clone();
    let whole = analyzed_within(100, 50);
    assert_eq!(
        python(&whole),
        json!({ "files": 58, "lines": 116, "bytes": 1_392 })
    );
    assert_eq!(whole["notes"], json!([]));

    // One call is that of the list.
    let part = analyzed_within(48, 50);
    assert_eq!(
        python(&part),
        json!({ "files": 47, "lines": 94, "bytes": 1_128 })
    );
    assert_eq!(
        part["notes"],
        json!([
            "11 files were not read: no tool calls are left of this task's share (toolCallsMax)"
        ])
    );
    let files = part["files"].as_array().unwrap();
    let unread = files.iter().filter(|file| file["lines"].is_null());
    assert!(unread.clone().all(|file| file["cut"] == true), "{part}");
    assert_eq!((files.len(), unread.count()), (58, 11));

    let short = analyzed_within(100, 5);
    let notes = short["notes"].to_string();
    assert!(notes.contains("(stepsMax)"), "{notes}");
}

#[test]
fn a_file_that_is_not_text_is_told_and_not_counted() {
    let with_picture = || {
        Conversation::new(Coder)
            .tool("list_files", |arguments: Value| {
                match arguments["path"].as_str() {
                    Some("/w") => Ok("a.py (6 bytes)".to_owned()),
                    _ => Err(ToolError::invalid("path", "is no folder")),
                }
            })
            .tool("read_file", |arguments: Value| {
                let path = arguments["path"].as_str().unwrap_or_default();
                Ok(format!("`{path}` is not text; it has 6 bytes"))
            })
            .model_says("Nothing.")
    };
    for path in ["/w", "/w/a.py"] {
        let asked = task("analyze_code", &json!({ "path": path }));
        let reported = result(&with_picture().say(&asked));
        assert_eq!(reported["languages"], json!({}), "{reported}");
        let file = &reported["files"][0];
        assert_eq!((&file["bytes"], &file["lines"]), (&json!(6), &Value::Null));
        assert_eq!(
            reported["notes"],
            json!(["`/w/a.py` was not read: it is not text; it has 6 bytes"])
        );
    }
}

#[test]
fn an_analysis_with_more_than_there_is_room_for_is_cut_and_says_so() {
    let patterns: Vec<String> = (0..20).map(|at| format!("p{at}")).collect();
    let files: String = (0..60)
        .map(|at| format!("{at}{}.rs (9000 bytes)\n", "d/".repeat(400)))
        .collect();
    let mut conversation = Conversation::new(Coder)
        .tool("list_files", move |_| Ok(files.clone()))
        .tool("search_files", |_| {
            let hit = format!("{}a.rs:7: {}\n", "\"\"/".repeat(80), "\u{1}\"\\".repeat(60));
            Ok(hit.repeat(100))
        })
        .tool("read_file", |_| {
            Ok((0..150)
                .map(|at| format!("fn a_function_of_a_rather_long_name_{at}() {{}}\n"))
                .collect::<String>())
        })
        .model_says("Much.");
    let asked = task(
        "analyze_code",
        &json!({ "path": "/w", "patterns": patterns }),
    );
    let status = conversation.say(&asked);
    assert!(status.words().len() <= 28 << 10, "{}", status.words().len());
    let reported = result(&status);
    assert_eq!(reported["languages"]["rust"]["files"], 60);
    assert_eq!(reported["summary"], "Much.");
    assert!(
        reported["notes"]
            .to_string()
            .contains("there was no room for more"),
        "{}",
        reported["notes"]
    );
    assert!(!status.words().contains("\\u0001"));
    let states = conversation.steps().iter().flat_map(|step| &step.effects);
    let sizes = states.filter_map(|effect| match effect {
        Effect::SessionState(state) => Some(state.to_string().len()),
        _ => None,
    });
    assert!(sizes.max().is_some_and(|bytes| bytes < 250 << 10));
}

#[test]
fn findings_beyond_the_room_of_a_reply_are_left_out_with_a_note() {
    let findings: Vec<Value> = (1..=50)
        .map(|line| {
            json!({
                "file": "a.rs", "line": line, "severity": "low", "message": "m".repeat(2_000),
                "suggestion": null,
            })
        })
        .collect();
    let reply = json!({ "findings": findings, "summary": "Many." });
    let mut conversation = Conversation::new(Coder).model_says(&reply.to_string());
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,3 @@\n x\n+y\n z\n";
    let status = conversation.say(&task("review_code", &json!({ "diff": diff })));
    assert!(status.words().len() <= 28 << 10);
    let reported = result(&status);
    let count = reported["findings"].as_array().unwrap().len();
    assert!((10..=13).contains(&count), "{count}");
    assert_eq!(
        reported["notes"],
        json!(["not all findings are here: there was no room for more"])
    );
}

#[test]
fn long_output_of_a_program_leaves_its_beginning_and_its_end() {
    let output = format!("begin{}end", "\u{1}".repeat(50_000));
    let mut conversation = Conversation::new(Coder).tool("execute_code", move |_| {
        let result = json!({
            "status": "failed", "stdout": output, "stderr": output, "value": [output],
            "error": { "name": "Error", "message": output },
        });
        Ok(result.to_string())
    });
    let status = conversation.say(&task("execute_code", &json!({ "code": "1" })));
    assert!(status.words().len() <= 28 << 10, "{}", status.words().len());
    let reported = result(&status);
    for text in [
        &reported["stdout"],
        &reported["stderr"],
        &reported["error"]["message"],
    ] {
        let text = text.as_str().unwrap();
        assert!(text.starts_with("begin") && text.ends_with("end"), "{text}");
        assert!(text.contains("50008 bytes in all"), "{text}");
    }
}

#[test]
fn a_program_has_its_time_before_its_call_is_given_up() {
    for (timeout, limit, expected) in [
        (Some(3_000), Some(3_000), json!(2_000)),
        (Some(1_900), Some(3_000), json!(1_900)),
        (Some(60_000), Some(120_000), json!(60_000)),
        (Some(60_000), None, json!(60_000)),
        (None, Some(500), json!(313)),
        (None, Some(120_000), Value::Null),
        (None, None, Value::Null),
    ] {
        let mut conversation = Conversation::new(Coder).tool("execute_code", |arguments: Value| {
            Ok(json!({ "value": arguments["timeout"] }).to_string())
        });
        let parameters = json!({ "code": "1", "timeout": timeout });
        let asked = json!({
            "operation": "execute_code", "parameters": parameters, "timeoutMs": limit,
        });
        let reported = result(&conversation.say(&asked.to_string()));
        assert_eq!(reported["value"], expected, "{timeout:?} of {limit:?}");
        let given_up = timers(&conversation).first().copied();
        let stopped = reported["value"].as_u64();
        assert!(given_up.is_none() || given_up > stopped, "{given_up:?}");
    }
}

fn denied(key: &str) -> Settlement {
    Settlement {
        key: key.to_owned(),
        outcome: Outcome::Denied,
    }
}

/// The state that a step leaves.
fn left_by(step: &Step) -> Value {
    let state = step.effects.iter().find_map(|effect| match effect {
        Effect::SessionState(state) => Some(state.clone()),
        _ => None,
    });
    state.unwrap_or_else(|| panic!("{step:?}"))
}

#[test]
fn what_the_coder_may_not_reach_is_named_with_the_operation() {
    let asked = task("analyze_code", &json!({ "path": "/w/out" }));
    let scene = Scene::new()
        .said(&asked)
        .tool_named("list_files")
        .tool_named("read_file");
    let begun = Coder.on_said(scene.turn(), &[1]);
    let scene = scene.state(left_by(&begun));
    // What cannot be listed is taken for a file.
    let reading = Coder.on_settled(scene.turn(), &[denied("list")]);
    let scene = scene.state(left_by(&reading));
    let ended = Coder.on_settled(scene.turn(), &[denied("read-0-0")]);
    let reason = "`analyze_code` of `/w/out`: the call is not allowed".to_owned();
    assert_eq!(ended.decision, Decision::Fail(reason));

    let scene = Scene::new()
        .said("a task")
        .state(json!(crate::Work::Execute));
    let ended = Coder.on_settled(scene.turn(), &[denied("run")]);
    let reason = "`execute_code`: the call is not allowed".to_owned();
    assert_eq!(ended.decision, Decision::Fail(reason));
}
