//! Results with more than there is room for, and programs with more time than there is.

use super::{result, task, timers};
use crate::Coder;
use agent_host_sdk::harness::Conversation;
use agent_host_sdk::{Effect, LimitsLeft, ToolError};
use serde_json::{Value, json};

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
