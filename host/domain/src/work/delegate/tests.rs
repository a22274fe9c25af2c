//! Tables of calls of `delegate`, with their results.

use super::{
    Code, DelegateResult, Delegation, INPUT_BYTES_MAX, Invalid, NAME, OPERATIONS, Offers,
    PATH_BYTES_MAX, Priority, Target, Task, parse,
};
use crate::thread::message::{Part, text_of};
use crate::values::digest::Digest;
use crate::values::error_code::{category_of_tool, is_retryable};
use crate::values::id::{AgentId, OperationId};
use crate::values::limits::INLINE_TEXT_BYTES_MAX;
use crate::values::time::Timestamp;
use crate::work::step::Failure;
use serde_json::{Value, json};
use uuid::Uuid;

fn refusal(arguments: &Value, targets: &[Target]) -> (Code, String) {
    let invalid = parse(&arguments.to_string(), targets).expect_err(&arguments.to_string());
    (invalid.code, invalid.message)
}

fn worker(operation: &str, parameters: &Value) -> Value {
    json!({ "target": "worker", "operation": operation, "parameters": parameters })
}

fn delegation() -> Delegation {
    parse(
        &worker("read_file", &json!({ "path": "notes/today.md" })).to_string(),
        &Target::ALL,
    )
    .unwrap()
}

#[test]
fn a_valid_call_becomes_a_delegation_with_the_defaults_of_its_target() {
    assert_eq!(
        delegation(),
        Delegation {
            target: Target::Worker,
            operation: "read_file".to_owned(),
            parameters: json!({ "path": "notes/today.md" })
                .as_object()
                .unwrap()
                .clone(),
            timeout_ms: 60_000,
            priority: Priority::Normal,
        }
    );
    for (target, operation, parameters, expected_ms) in [
        ("worker", "web_search", json!({ "query": "wasm" }), 60_000),
        (
            "researcher",
            "deep_research",
            json!({ "query": "wasm" }),
            300_000,
        ),
        ("coder", "review_code", json!({ "diff": "-a\n+b" }), 120_000),
    ] {
        let call = json!({ "target": target, "operation": operation, "parameters": parameters, "timeout": null, "priority": null });
        assert_eq!(
            parse(&call.to_string(), &Target::ALL).unwrap().timeout_ms,
            expected_ms,
            "{call}"
        );
    }
}

#[test]
fn the_target_is_told_operation_parameters_and_time_and_nothing_else() {
    let content: Value = serde_json::from_str(&delegation().content(1_500)).unwrap();
    assert_eq!(
        content,
        json!({
            "operation": "read_file", "parameters": { "path": "notes/today.md" },
            "timeoutMs": 1_500,
        })
    );
}

#[test]
fn every_operation_accepts_all_of_its_parameters_and_misses_each_required_one() {
    let value = |name: &str| match name {
        "path" => json!("/workspace/a b.txt"),
        "url" => json!("https://example.org/?q=1"),
        "offset" => json!(0),
        "limit" | "maxDepth" | "maxResults" | "timeout" => json!(3),
        "recursive" | "createParents" => json!(true),
        "headers" => json!({ "accept": "text/plain" }),
        "sources" | "patterns" => json!(["one", "two"]),
        _ => json!("some text"),
    };
    for rule in OPERATIONS {
        let call = |left_out: &str| {
            let given = rule
                .parameters
                .iter()
                .filter(|parameter| parameter.name != left_out);
            let parameters: serde_json::Map<_, _> = given
                .map(|parameter| (parameter.name.to_owned(), value(parameter.name)))
                .collect();
            json!({ "target": rule.target.as_str(), "operation": rule.name, "parameters": parameters })
        };
        assert!(parse(&call("").to_string(), &Target::ALL).is_ok(), "{rule}");
        for parameter in rule.parameters {
            let parsed = parse(&call(parameter.name).to_string(), &Target::ALL);
            assert_eq!(
                parsed.is_err(),
                parameter.required,
                "{rule} without {}",
                parameter.name
            );
        }
    }
}

#[test]
fn a_refusal_names_what_would_be_allowed() {
    let worker_operations =
        "read_file, write_file, delete_file, list_files, search_files, web_search, web_fetch";
    let only_worker = [Target::Worker];
    for (call, code, message) in [
        (
            worker("execute_code", &json!({ "code": "1" })),
            Code::InvalidOperation,
            format!(
                "Operation execute_code is not supported by worker agent. Supported: \
                     {worker_operations}."
            ),
        ),
        (
            json!({ "target": "worker", "parameters": {} }),
            Code::InvalidOperation,
            format!("`operation` is missing. Supported: {worker_operations}."),
        ),
        (
            json!({ "target": "plumber", "operation": "read_file", "parameters": {} }),
            Code::InvalidTarget,
            "There is no target plumber. Supported: worker.".to_owned(),
        ),
        (
            json!({ "operation": "read_file" }),
            Code::InvalidTarget,
            "`target` is missing. Supported: worker.".to_owned(),
        ),
        (
            json!({ "target": 1 }),
            Code::InvalidTarget,
            "`target` must be text. Supported: worker.".to_owned(),
        ),
        (
            json!({ "target": "coder", "operation": "execute_code", "parameters": { "code": "1" } }),
            Code::AgentUnavailable,
            "No coder agent is available. Supported: worker.".to_owned(),
        ),
        (
            worker("read_file", &json!({ "path": "a", "encoding": "utf-8" })),
            Code::InvalidParameters,
            "read_file has no parameter `encoding`. Expected: read_file(path; optional: \
             offset, limit)."
                .to_owned(),
        ),
        (
            worker("write_file", &json!({ "path": "a", "content": null })),
            Code::InvalidParameters,
            "write_file needs the parameter `content`. Expected: write_file(path, content; \
             optional: createParents)."
                .to_owned(),
        ),
        (
            json!({ "target": "worker", "operation": "delete_file" }),
            Code::InvalidParameters,
            "`parameters` is missing. Expected: delete_file(path; optional: recursive).".to_owned(),
        ),
        (
            json!({ "target": "worker", "operation": "delete_file", "parameters": { "path": "a" }, "force": true }),
            Code::InvalidParameters,
            "`force` is not an argument of delegate. Supported: target, operation, parameters, \
             timeout, priority."
                .to_owned(),
        ),
    ] {
        assert_eq!(refusal(&call, &only_worker), (code, message), "{call}");
    }
}

#[test]
fn arguments_that_are_not_a_json_object_are_refused() {
    for arguments in ["", "{\"target\":", "[]", "\"worker\"", "null"] {
        assert_eq!(
            parse(arguments, &Target::ALL).unwrap_err().code,
            Code::InvalidParameters,
            "{arguments}"
        );
    }
}

#[test]
fn a_parameter_of_the_wrong_kind_is_refused() {
    for (operation, parameters) in [
        ("read_file", json!({ "path": 1 })),
        ("read_file", json!({ "path": "a", "offset": -1 })),
        ("read_file", json!({ "path": "a", "offset": 1.5 })),
        ("read_file", json!({ "path": "a", "limit": 0 })),
        ("read_file", json!({ "path": "a", "limit": "3" })),
        ("write_file", json!({ "path": "a", "content": {} })),
        (
            "write_file",
            json!({ "path": "a", "content": "", "createParents": "yes" }),
        ),
        ("search_files", json!({ "path": "a", "pattern": " " })),
        ("web_fetch", json!({ "url": "file:///etc/passwd" })),
        ("web_fetch", json!({ "url": "https://" })),
        ("web_fetch", json!({ "url": "https://a/\r\nx: y" })),
        (
            "web_fetch",
            json!({ "url": "https://a/", "headers": { "a": 1 } }),
        ),
        (
            "web_fetch",
            json!({ "url": "https://a/", "headers": ["a"] }),
        ),
    ] {
        assert_eq!(
            refusal(&worker(operation, &parameters), &Target::ALL).0,
            Code::InvalidParameters
        );
    }
    let sources = json!({ "target": "researcher", "operation": "synthesize_sources", "parameters": { "sources": ["a", 1] } });
    assert_eq!(refusal(&sources, &Target::ALL).0, Code::InvalidParameters);
}

#[test]
fn a_path_cannot_climb_out_of_a_granted_folder() {
    let longest = "a".repeat(PATH_BYTES_MAX);
    for (path, fine) in [
        ("notes.txt", true),
        ("/workspace/notes.txt", true),
        ("./a/./b", true),
        ("a..b/..c/d..", true),
        (longest.as_str(), true),
        ("", false),
        ("..", false),
        ("../secret", false),
        ("a/../../secret", false),
        ("/workspace/..", false),
        ("a/..", false),
        ("..\\secret", false),
        ("a\\b", false),
        ("a\0b", false),
        (&format!("{longest}a"), false),
    ] {
        for operation in ["read_file", "delete_file", "list_files"] {
            let parsed = parse(
                &worker(operation, &json!({ "path": path })).to_string(),
                &Target::ALL,
            );
            assert_eq!(parsed.is_ok(), fine, "{operation} {path:?}");
        }
    }
}

#[test]
fn a_timeout_stays_within_the_limit_of_its_target() {
    for (target, operation, parameters, longest_ms) in [
        ("worker", "list_files", json!({ "path": "." }), 300_000_u64),
        (
            "researcher",
            "deep_research",
            json!({ "query": "q" }),
            900_000,
        ),
        ("coder", "generate_code", json!({ "spec": "s" }), 600_000),
    ] {
        let call = |timeout: Value| {
            let call = json!({ "target": target, "operation": operation, "parameters": parameters, "timeout": timeout });
            parse(&call.to_string(), &Target::ALL).map(|delegation| delegation.timeout_ms)
        };
        assert_eq!(call(json!(1)), Ok(1));
        assert_eq!(call(json!(longest_ms)), Ok(longest_ms));
        for wrong in [
            json!(longest_ms + 1),
            json!(0),
            json!(-1),
            json!(1.5),
            json!("60000"),
        ] {
            assert_eq!(call(wrong).unwrap_err().code, Code::InvalidParameters);
        }
    }
}

#[test]
fn a_priority_is_a_number_from_1_to_4() {
    let call = |priority: Value| {
        let call = json!({ "target": "worker", "operation": "list_files", "parameters": { "path": "." }, "priority": priority });
        parse(&call.to_string(), &Target::ALL).map(|delegation| delegation.priority)
    };
    for (number, expected) in [
        (1, Priority::Low),
        (2, Priority::Normal),
        (3, Priority::High),
        (4, Priority::Critical),
    ] {
        assert_eq!(call(json!(number)), Ok(expected));
    }
    for wrong in [json!(0), json!(5), json!("high"), json!(true)] {
        assert_eq!(call(wrong).unwrap_err().code, Code::InvalidParameters);
    }
}

#[test]
fn what_is_handed_over_fits_into_one_input() {
    let call = |bytes: usize| {
        parse(
            &worker(
                "write_file",
                &json!({ "path": "a", "content": "x".repeat(bytes) }),
            )
            .to_string(),
            &Target::ALL,
        )
    };
    assert!(call(INPUT_BYTES_MAX - 100).is_ok());
    assert_eq!(
        call(INPUT_BYTES_MAX).unwrap_err().code,
        Code::InvalidParameters
    );
}

#[test]
fn the_tool_offers_only_the_targets_that_are_configured() {
    let tool = Offers::from(&[Target::Worker, Target::Coder][..]).definition();
    assert_eq!(tool.name, NAME);
    assert_eq!(
        tool.arguments["properties"]["target"]["enum"],
        json!(["worker", "coder"])
    );
    assert_eq!(
        tool.arguments["properties"]["timeout"]["maximum"],
        json!(600_000)
    );
    assert!(
        tool.description
            .contains("read_file(path; optional: offset, limit)"),
        "{}",
        tool.description
    );
    assert!(
        !tool.description.contains("deep_research"),
        "{}",
        tool.description
    );
}

fn task() -> Task {
    Task {
        operation: OperationId(Digest::of(b"operation")),
        agent: AgentId(Uuid::nil()),
        created: Timestamp(1_700_000_000_000),
        completed: Timestamp(1_700_000_001_500),
    }
}

/// The error of a result, as the model reads it.
fn error(code: &str, message: &str, retryable: bool) -> Value {
    json!({
        "code": code, "message": message, "retryable": retryable,
        "category": "TOOL_EXECUTION_FAILED",
    })
}

/// A result with a code, made as the host makes it.
fn result_with(code: Code) -> DelegateResult {
    let delegation = delegation();
    let task = task();
    match code {
        Code::InvalidTarget
        | Code::InvalidOperation
        | Code::InvalidParameters
        | Code::AgentUnavailable => {
            DelegateResult::refused(&Failure::lasting(code.as_str(), "why"))
        }
        Code::TaskTimeout => DelegateResult::timed_out(&delegation, &task),
        Code::TaskFailed => DelegateResult::failed(&delegation, &task, "why", true),
        Code::TaskUnknown => DelegateResult::unknown(&delegation, &task, &Failure::interrupted()),
        Code::TaskNotStarted => DelegateResult::not_started("why"),
        Code::NotAllowed => DelegateResult::denied(),
        Code::LimitReached => DelegateResult::refused(&Failure::lasting("limit-reached", "why")),
    }
}

#[test]
fn every_code_of_a_result_says_what_the_table_of_codes_says() {
    for code in Code::ALL {
        let error = result_with(code).error.unwrap();
        assert_eq!(error.code, code.as_str());
        assert_eq!(error.retryable, is_retryable(code.as_str()), "{code}");
        assert_eq!(error.category, category_of_tool(code.as_str()), "{code}");
    }
}

#[test]
fn a_result_is_json_within_the_limit_however_long_the_reply_is() {
    let file = Part::Blob {
        digest: Digest::of(b"file"),
        media_type: "image/png".into(),
        size: 4,
    };
    let long = format!("begin{}end", "ä".repeat(60_000));
    let list = json!(["begin", "x".repeat(40_000)]).to_string();
    let escaped = "\u{1}".repeat(7_000);
    for (reply, media_type) in [
        ("short", None),
        (long.as_str(), Some("text/plain")),
        (list.as_str(), Some("application/json")),
        (escaped.as_str(), Some("text/plain")),
    ] {
        let given = vec![Part::text(reply), file.clone()];
        let (parts, bytes) = DelegateResult::parts(&delegation(), &task(), given);
        let text = text_of(&parts);
        assert!(text.len() <= INLINE_TEXT_BYTES_MAX, "{}", text.len());
        let result: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(result["success"], true);
        assert_eq!(result["taskId"], json!(task().operation.to_string()));
        assert_eq!(result["metadata"]["duration"], 1_500);
        assert!(result.get("data").is_none());
        let output = result["output"].as_str().unwrap();
        assert_eq!(parts.last(), Some(&file), "the reply's own blobs stay");
        let Some(media_type) = media_type else {
            assert_eq!((output, bytes, parts.len()), (reply, None, 2));
            continue;
        };
        let digest = Digest::of(reply.as_bytes());
        let size = reply.len() as u64;
        let blob = json!({
            "digest": digest.reference(), "bytes": size, "mediaType": media_type,
        });
        assert_eq!(result["blob"], blob);
        assert_eq!(bytes.as_deref(), Some(reply.as_bytes()));
        let media_type = media_type.to_owned();
        assert_eq!(
            parts[1],
            Part::Blob {
                digest,
                media_type,
                size
            }
        );
        assert!(
            output.starts_with(&reply[..5]) && output.ends_with(&reply[reply.len() - 3..]),
            "{output}"
        );
    }
}

#[test]
fn a_result_says_how_the_task_ended() {
    let task = task();
    let metadata = json!({
        "target": "worker", "operation": "read_file", "agentId": "00000000-0000-0000-0000-000000000000",
        "createdAt": "2023-11-14T22:13:20.000Z", "completedAt": "2023-11-14T22:13:21.500Z", "duration": 1500,
    });
    let delegation = delegation();
    let id = task.operation.to_string();
    let late =
        "Operation read_file of worker agent took longer than 60000 milliseconds and was stopped.";
    let mut timed_out = error("TASK_TIMEOUT", late, false);
    timed_out["details"] = json!({ "timeoutMs": 60_000 });
    for (result, expected) in [
        (
            DelegateResult::succeeded(&delegation, &task, "three lines"),
            json!({ "success": true, "output": "three lines", "taskState": "COMPLETED" }),
        ),
        (
            DelegateResult::succeeded(&delegation, &task, r#"{"lines":3}"#),
            json!({ "success": true, "data": { "lines": 3 }, "taskState": "COMPLETED" }),
        ),
        (
            DelegateResult::succeeded(&delegation, &task, "3"),
            json!({ "success": true, "output": "3", "taskState": "COMPLETED" }),
        ),
        (
            DelegateResult::failed(&delegation, &task, "no such file", true),
            json!({ "success": false, "error": error("TASK_FAILED", "no such file", false), "taskState": "FAILED" }),
        ),
        (
            DelegateResult::timed_out(&delegation, &task),
            json!({ "success": false, "error": timed_out, "taskState": "TIMEOUT" }),
        ),
        (
            DelegateResult::cancelled(&delegation, &task),
            json!({ "success": false, "error": error("TASK_FAILED", "The task was cancelled.", false), "taskState": "CANCELLED" }),
        ),
        (
            DelegateResult::failed(&delegation, &task, "no turn began", false),
            json!({ "success": false, "error": error("TASK_FAILED", "no turn began", true), "taskState": "FAILED" }),
        ),
    ] {
        let mut expected = expected;
        expected["taskId"] = json!(id);
        expected["metadata"] = metadata.clone();
        assert_eq!(
            serde_json::from_str::<Value>(&result.to_string()).unwrap(),
            expected
        );
    }
}

#[test]
fn a_refused_call_is_a_result_without_a_task() {
    let invalid = parse("{}", &[Target::Worker]).unwrap_err();
    let invalid = invalid.failure();
    let refused = |error: Value| json!({ "success": false, "error": error, "metadata": {} });
    let mut no_tool = error("TOOL_NOT_AVAILABLE", "no such tool", false);
    no_tool["category"] = json!("TOOL_NOT_AVAILABLE");
    let missing = "`target` is missing. Supported: worker.";
    let with = |mut error: Value, details: Value| {
        error["details"] = details;
        error
    };
    let arguments = ["target", "operation", "parameters", "timeout", "priority"];
    let mut skipped = refused(error("TASK_NOT_STARTED", "Skipped.", true));
    skipped["taskState"] = json!("CANCELLED");
    for (result, expected) in [
        (
            DelegateResult::refused(&invalid),
            refused(with(
                error("INVALID_TARGET", missing, false),
                json!({ "allowed": ["worker"] }),
            )),
        ),
        (
            DelegateResult::refused(
                &Failure::passing("limit-reached", "too many").with("limit", "childrenMax"),
            ),
            refused(with(
                error("LIMIT_REACHED", "too many", true),
                json!({ "limit": "childrenMax" }),
            )),
        ),
        (
            DelegateResult::refused(&Failure::lasting("invalid-arguments", "no JSON")),
            refused(with(
                error("INVALID_PARAMETERS", "no JSON", false),
                json!({ "allowed": arguments }),
            )),
        ),
        (
            DelegateResult::refused(&Failure::lasting("TOOL_NOT_AVAILABLE", "no such tool")),
            refused(no_tool),
        ),
        (
            DelegateResult::denied(),
            refused(error("NOT_ALLOWED", "This is not allowed here.", false)),
        ),
        (DelegateResult::not_started("Skipped."), skipped),
    ] {
        let result: Value = serde_json::from_str(&result.to_string()).unwrap();
        assert_eq!(result, expected);
    }
}

#[test]
fn a_call_that_makes_no_sense_says_for_programs_what_would() {
    let arguments = ["target", "operation", "parameters", "timeout", "priority"];
    let operations: Vec<&str> = Target::Worker.operations().map(|rule| rule.name).collect();
    let read = |more: &str| {
        format!(
            r#"{{"target":"worker","operation":"read_file","parameters":{{"path":"a"}},{more}}}"#
        )
    };
    let with = |parameters: &str| {
        format!(r#"{{"target":"worker","operation":"read_file","parameters":{parameters}}}"#)
    };
    for (call, details) in [
        ("nonsense".to_owned(), json!({ "allowed": arguments })),
        (
            r#"{"target":"nobody"}"#.to_owned(),
            json!({ "allowed": ["worker"] }),
        ),
        (
            r#"{"target":"coder"}"#.to_owned(),
            json!({ "agent": "coder", "allowed": ["worker"] }),
        ),
        (
            r#"{"target":"worker","operation":"fly"}"#.to_owned(),
            json!({ "allowed": operations }),
        ),
        (
            r#"{"target":"worker","operation":"read_file"}"#.to_owned(),
            json!({ "parameter": "parameters" }),
        ),
        (with("[]"), json!({ "parameter": "parameters" })),
        (with("{}"), json!({ "parameter": "path" })),
        (with(r#"{"path":3}"#), json!({ "parameter": "path" })),
        (
            with(r#"{"path":"a","colour":"red"}"#),
            json!({ "allowed": ["path", "offset", "limit"] }),
        ),
        (read(r#""timeout":0"#), json!({ "parameter": "timeout" })),
        (
            read(r#""timeout":900000"#),
            json!({ "parameter": "timeout" }),
        ),
        (read(r#""priority":9"#), json!({ "parameter": "priority" })),
        (read(r#""colour":"red""#), json!({ "allowed": arguments })),
    ] {
        let failure = parse(&call, &[Target::Worker]).unwrap_err().failure();
        assert_eq!(json!(failure.details), details, "{call}");
    }
    // Also of an agent that is gone after the arguments were checked.
    let gone = Invalid::unavailable(Target::Worker, &[Target::Worker, Target::Coder]).failure();
    assert_eq!(gone.code, "AGENT_UNAVAILABLE");
    let details = json!({ "agent": "worker", "allowed": ["coder"] });
    assert_eq!(json!(gone.details), details);
}
