//! Error codes: each that a route may answer with is in the table that says of it whether another
//! try makes sense, and every problem says so.

use super::host::{Host, TOKEN};
use super::scopes::key;
use crate::problem::Problem;
use crate::routes::description;
use axum::response::IntoResponse;
use domain::delegate;
use domain::error_code::{self, ErrorCategory, ErrorCode};
use domain::user::Scope;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Codes in capitals that no operation lists: those of requests without an operation, of the
/// start, and of tools.
const ELSEWHERE: [&str; 6] = [
    "METHOD_NOT_ALLOWED",
    "RESTORED_FROM_BACKUP",
    "ROUTE_NOT_FOUND",
    "TOOL_NOT_AVAILABLE",
    "TOO_MANY_CONNECTIONS",
    "WAITS_FOR_CYCLE",
];

/// The texts after which a source names a code: of a failure, of a turn's end, of a refusal.
const BEFORE_CODES: [&str; 6] = [
    "Failure::lasting(",
    "Failure::passing(",
    " failed(",
    "(failed(",
    " code: ",
    "_GONE: (&str, &str) = (",
];

/// The codes of all operations.
fn described() -> BTreeSet<String> {
    let document = description();
    let mut codes = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let Some(responses) = operation["responses"].as_object() else {
                continue;
            };
            let listed = responses
                .values()
                .filter_map(|response| response["x-codes"].as_array());
            codes.extend(
                listed
                    .flatten()
                    .map(|code| code.as_str().unwrap().to_owned()),
            );
        }
    }
    codes
}

#[test]
fn the_table_of_error_codes_has_those_of_all_routes_and_no_other() {
    let described = described();
    for code in &described {
        assert!(
            error_code::find(code).is_some(),
            "add `{code}` to the table"
        );
    }
    for known in error_code::all() {
        let is_elsewhere = ELSEWHERE.contains(&known.code)
            || delegate::Code::from_word(known.code).is_some()
            || known
                .code
                .starts_with(|first: char| first.is_ascii_lowercase());
        assert_ne!(
            described.contains(known.code),
            is_elsewhere,
            "`{}` is not a code of a route, or is one now",
            known.code
        );
    }
}

/// Returns what a source says outside its tests.
fn without_tests(source: &str) -> &str {
    source
        .split_once("#[cfg(test)]\nmod tests {")
        .map_or(source, |(before, _)| before)
}

/// The text in quotes with which something begins, after white space.
fn quoted(text: &str) -> Option<&str> {
    let (quoted, _) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(quoted)
}

/// The codes that a source names where it makes failures, and those of its constants whose docs
/// call them codes.
fn codes_of(source: &str) -> BTreeSet<String> {
    let mut codes: BTreeSet<String> = BEFORE_CODES
        .iter()
        .flat_map(|before| source.split(before).skip(1))
        .filter_map(quoted)
        .map(str::to_owned)
        .collect();
    let mut is_code = false;
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("///") {
            is_code |= line.starts_with("/// The code ");
            continue;
        }
        let value = line.split_once(": &str = ").filter(|_| is_code);
        codes.extend(value.and_then(|value| quoted(value.1)).map(str::to_owned));
        is_code = false;
    }
    codes
}

/// The codes that the sources below a folder name.
fn codes_below(folder: &Path) -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            codes.append(&mut codes_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            codes.append(&mut codes_of(without_tests(&source)));
        }
    }
    codes
}

#[test]
fn the_table_has_every_code_that_turns_and_operations_end_with() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut named = codes_below(&host.join("domain/src"));
    named.append(&mut codes_below(&host.join("broker/src")));
    // One of each way to name it, so that the test notices when it finds nothing any more.
    for code in [
        "approval-denied",
        "busy",
        "component-gone",
        "not-found",
        "state-gone",
    ] {
        assert!(named.contains(code), "`{code}` is not found: {named:?}");
    }
    let missing: Vec<&String> = named
        .iter()
        .filter(|code| error_code::find(code).is_none())
        .collect();
    assert!(missing.is_empty(), "add to the table: {missing:?}");
}

#[test]
fn a_delegation_has_no_code_that_the_table_lacks() {
    for code in delegate::Code::ALL {
        assert_eq!(
            error_code::category(code.as_str()),
            Some(ErrorCategory::ToolExecutionFailed),
            "{code}"
        );
    }
}

/// The document of a problem.
async fn document(problem: Problem) -> Value {
    let body = problem.into_response().into_body();
    let bytes = axum::body::to_bytes(body, 1 << 16).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn every_code_becomes_a_problem_that_says_whether_to_try_again() {
    for code in ErrorCode::ALL {
        let reported = document(Problem::new(code, "why")).await;
        assert_eq!(reported["code"], json!(code.as_str()));
        assert_eq!(reported["status"], json!(code.status()), "{code}");
        assert_eq!(reported["retryable"], json!(code.is_retryable()), "{code}");
        let category = code.category().map(ErrorCategory::as_str);
        assert_eq!(reported["category"].as_str(), category, "{code}");
        let details = code.retry_after_s().map(|s| json!({ "retry_after_s": s }));
        assert_eq!(reported.get("details"), details.as_ref(), "{code}");
    }
    let reported = document(Problem::starting()).await;
    assert_eq!(reported["details"], json!({ "retry_after_s": 2 }));
    assert_eq!(reported["category"], json!("NOT_READY"));
    let reported = document(Problem::shutting_down()).await;
    assert_eq!(reported["category"], json!("SHUTDOWN_IN_PROGRESS"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_told_whether_to_try_again_and_what_would_help() {
    let host = Host::start().await;
    let reads = key(&host, "alice", &[Scope::Read]).await;
    let (agent, _) = host.agent_with_session().await;
    for (credential, method, path, body, expected) in [
        (
            TOKEN,
            "GET",
            format!("/api/agents/{agent}/sessions/x"),
            "",
            json!({ "code": "INVALID_ID", "retryable": false, "category": "MESSAGE_INVALID" }),
        ),
        (
            TOKEN,
            "POST",
            "/api/agents/nobody/sessions".to_owned(),
            "",
            json!({
                "code": "DEFINITION_NOT_FOUND", "retryable": false, "category": "INIT_FAILED",
            }),
        ),
        (
            reads.as_str(),
            "GET",
            "/api/events".to_owned(),
            "",
            json!({
                "code": "SCOPE_MISSING", "retryable": false, "details": { "scopes": ["admin"] },
            }),
        ),
        (
            "nobody's",
            "GET",
            "/api/agents".to_owned(),
            "",
            json!({ "code": "UNAUTHORIZED", "retryable": false }),
        ),
    ] {
        let answer = host.send_with(credential, method, &path, &[], body).await;
        let reported = answer.json();
        let said: Value = ["code", "retryable", "category", "details"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), reported.get(name)?.clone())))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert_eq!(said, expected, "{path}");
    }
    host.api.drain();
    let reported = host
        .send(
            "POST",
            "/api/agents",
            &["content-type: application/json"],
            r#"{"definition":"x"}"#,
        )
        .await
        .json();
    assert_eq!(
        (
            &reported["code"],
            &reported["retryable"],
            &reported["category"]
        ),
        (
            &json!("SHUTTING_DOWN"),
            &json!(true),
            &json!("SHUTDOWN_IN_PROGRESS")
        )
    );
}
