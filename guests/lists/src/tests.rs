//! The tools over a bucket in memory.

mod todo;

use crate::Lists;
use crate::shelf::ENTRIES_MAX;
use agent_host_sdk::harness::{Bench, grant_bucket};
use agent_host_sdk::keyvalue::{Bucket, VALUE_BYTES_MAX};
use agent_host_sdk::{EffectClass, ToolError};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::cell::Cell;

thread_local! {
    static SECOND: Cell<i64> = const { Cell::new(1_767_225_600) };
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// A minute passes between two calls. The first is made at midnight on 1 January 2026.
fn clock() -> Timestamp {
    let second = SECOND.get();
    SECOND.set(second + 60);
    Timestamp::new(second, 999_000_000).unwrap()
}

/// Makes a call under a key.
fn attempt(key: &str, tool: &str, arguments: Value) -> Result<Value, ToolError> {
    let bench = Bench::new(Lists::at(clock)).under_key(key);
    bench
        .text(tool, arguments)
        .map(|text| serde_json::from_str(&text).unwrap())
}

/// Makes a call of its own.
fn call(tool: &str, arguments: Value) -> Result<Value, ToolError> {
    CALLS.set(CALLS.get() + 1);
    attempt(&format!("call/{}", CALLS.get()), tool, arguments)
}

#[track_caller]
fn ok(tool: &str, arguments: Value) -> Value {
    call(tool, arguments).unwrap()
}

#[track_caller]
fn invalid(tool: &str, arguments: Value) -> String {
    match call(tool, arguments).unwrap_err() {
        ToolError::InvalidArguments(message) => message,
        other => panic!("{other:?}"),
    }
}

/// The ids of what a tool lists.
#[track_caller]
fn ids(tool: &str, arguments: Value) -> Vec<u64> {
    ok(tool, arguments)["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["id"].as_u64().unwrap())
        .collect()
}

fn world() {
    grant_bucket("lists");
}

#[test]
fn each_tool_says_what_it_needs_and_does() {
    let definitions = Bench::new(Lists::new()).definitions();
    assert_eq!(definitions.len(), 17);
    for definition in definitions {
        let name = definition.name.as_str();
        let reads = ["_list", "_search", "_get", "_items"]
            .iter()
            .any(|end| name.ends_with(end));
        let deletes = name.ends_with("_delete");
        let needs: &[&str] = if reads {
            &["lists.read"]
        } else {
            &["lists.read", "lists.write"]
        };
        let effect = match (reads, deletes) {
            (true, _) => EffectClass::ReadOnly,
            (false, true) => EffectClass::NonIdempotent,
            (false, false) => EffectClass::Idempotent,
        };
        assert_eq!(
            (
                definition.capabilities.as_slice(),
                definition.effect,
                definition.destructive
            ),
            (
                &needs.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()[..],
                effect,
                deletes
            ),
            "{name}"
        );
        assert_eq!(
            definition.arguments["additionalProperties"], false,
            "{name}"
        );
        assert!(definition.results.is_some(), "{name}");
    }
}

#[test]
fn each_list_names_its_items_by_a_tool_that_is_marked_for_it() {
    let definitions = Bench::new(Lists::new()).definitions();
    let marked: Vec<&str> = definitions
        .iter()
        .filter(|tool| tool.results.as_ref().unwrap()["x-artifact-items"] == true)
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(marked, ["reading_list_items", "todo_items"]);
    world();
    ok("todo_add", json!({ "title": "Buy milk" }));
    ok("reading_list_add", json!({ "title": "A book" }));
    let item = |item_type: &str, name: &str| {
        let item = json!({ "type": item_type, "id": "1", "name": name });
        json!({ "items": [item] })
    };
    assert_eq!(ok("todo_items", json!({})), item("todo", "Buy milk"));
    assert_eq!(
        ok("reading_list_items", json!({})),
        item("reading", "A book")
    );
}

#[test]
fn without_the_bucket_everything_is_denied() {
    assert_eq!(
        call("reading_list_list", json!({})).unwrap_err(),
        ToolError::Denied
    );
    assert_eq!(
        call("todo_add", json!({ "title": "x" })).unwrap_err(),
        ToolError::Denied
    );
}

#[test]
fn the_two_lists_count_apart_and_ids_are_not_used_again() {
    world();
    for n in 1..=3 {
        assert_eq!(
            ok("reading_list_add", json!({ "title": format!("r{n}") }))["id"],
            n
        );
    }
    assert_eq!(ok("todo_add", json!({ "title": "t" }))["id"], 1);
    assert_eq!(
        ok("reading_list_delete", json!({ "id": 3 })),
        json!({ "id": 3, "title": "r3" })
    );
    assert_eq!(ok("reading_list_add", json!({ "title": "r4" }))["id"], 4);
    assert_eq!(ids("reading_list_list", json!({})), [1, 2, 4]);
    assert_eq!(ids("todo_list", json!({})), [1]);
}

#[test]
fn the_same_call_again_finds_it_done() {
    world();
    let arguments = json!({ "title": "Once", "url": "https://example.com/" });
    let first = attempt("a", "reading_list_add", arguments.clone()).unwrap();
    assert_eq!(
        attempt("a", "reading_list_add", arguments.clone()).unwrap(),
        first
    );
    assert!(matches!(
        attempt("b", "reading_list_add", arguments),
        Err(ToolError::InvalidArguments(_))
    ));
    let read = attempt("c", "reading_list_mark_read", json!({ "id": 1 })).unwrap();
    assert_eq!(
        attempt("c", "reading_list_mark_read", json!({ "id": 1 })).unwrap(),
        read
    );
    let task = attempt("d", "todo_add", json!({ "title": "x" })).unwrap();
    assert_eq!(
        attempt("d", "todo_add", json!({ "title": "x" })).unwrap(),
        task
    );
    assert_eq!(
        attempt("e", "todo_add", json!({ "title": "x" })).unwrap()["id"],
        2
    );
    let done = attempt("f", "todo_complete", json!({ "id": 1 })).unwrap();
    assert_eq!(
        attempt("f", "todo_complete", json!({ "id": 1 })).unwrap(),
        done
    );
}

#[test]
fn what_is_not_there_is_named() {
    world();
    for tool in [
        "reading_list_get",
        "reading_list_mark_read",
        "reading_list_delete",
    ] {
        let error = call(tool, json!({ "id": 7 })).unwrap_err();
        assert_eq!(
            error,
            ToolError::NotFound("there is no entry of the reading list with the id 7".into()),
            "{tool}"
        );
    }
    for tool in ["todo_get", "todo_complete", "todo_reopen", "todo_delete"] {
        assert_eq!(
            call(tool, json!({ "id": 7 })).unwrap_err(),
            ToolError::NotFound("there is no task with the id 7".into()),
            "{tool}"
        );
    }
    assert!(matches!(
        call("todo_update", json!({ "id": 7, "title": "x" })),
        Err(ToolError::NotFound(_))
    ));
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    world();
    let long = |chars: usize| "é".repeat(chars);
    let tags = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>();
    for (tool, arguments, words) in [
        (
            "todo_add",
            json!({ "title": " " }),
            "`title` must not be empty",
        ),
        (
            "todo_add",
            json!({ "title": "a\nb" }),
            "`title` must be one line",
        ),
        (
            "todo_add",
            json!({ "title": long(301) }),
            "`title` has 301 characters; 300 is the most",
        ),
        (
            "todo_add",
            json!({ "title": "x", "notes": long(4_001) }),
            "`notes` has 4001 characters",
        ),
        (
            "todo_add",
            json!({ "title": "x", "tags": tags(21) }),
            "`tags` are 21; 20 is the most",
        ),
        (
            "todo_add",
            json!({ "title": "x", "tags": [""] }),
            "`tags` must be words",
        ),
        (
            "todo_add",
            json!({ "title": "x", "tags": [long(51)] }),
            "`tags` has 51 characters",
        ),
        (
            "todo_add",
            json!({ "title": "x", "dueDate": "2027-02-29" }),
            "`dueDate` must be a day that there is",
        ),
        (
            "todo_add",
            json!({ "title": "x", "dueDate": "tomorrow" }),
            "`dueDate` must be a day",
        ),
        (
            "todo_add",
            json!({ "title": "x", "dueDate": "20270228" }),
            "`dueDate` must be a day",
        ),
        (
            "todo_add",
            json!({ "title": "x", "due": "2027-02-28" }),
            "unknown field `due`",
        ),
        (
            "todo_add",
            json!({ "title": "x", "priority": "urgent" }),
            "unknown variant `urgent`",
        ),
        ("todo_list", json!({ "dueBy": "" }), "`dueBy` must be a day"),
        (
            "todo_list",
            json!({ "limit": 0 }),
            "`limit` must be from 1 to 100",
        ),
        (
            "todo_search",
            json!({ "query": " " }),
            "`query` must not be empty",
        ),
        (
            "todo_update",
            json!({ "id": 1 }),
            "nothing is to be changed",
        ),
        (
            "reading_list_add",
            json!({ "title": "x", "url": "example.com" }),
            "`url` must be a whole address",
        ),
        (
            "reading_list_add",
            json!({ "title": "x", "url": "https:///a" }),
            "`url` must be a whole address",
        ),
        (
            "reading_list_add",
            json!({ "title": "x", "url": "javascript:alert(1)" }),
            "`url` must be a whole address",
        ),
        (
            "reading_list_add",
            json!({ "title": "x", "url": "https://a.b/c d" }),
            "`url` must be a whole address",
        ),
        (
            "reading_list_update",
            json!({ "id": 1 }),
            "nothing is to be changed",
        ),
        (
            "reading_list_search",
            json!({ "query": long(201) }),
            "`query` has 201 characters",
        ),
        (
            "reading_list_get",
            json!({ "id": -1 }),
            "the arguments do not fit",
        ),
    ] {
        let message = invalid(tool, arguments);
        assert!(message.contains(words), "{tool}: {message}");
    }
    assert_eq!(ids("todo_list", json!({ "show": "all" })), [0; 0]);
}

#[test]
fn the_largest_entry_there_can_be_fits_into_the_bucket() {
    world();
    let costly = |chars: usize| "\u{1}".repeat(chars);
    let tags: Vec<String> = (0..20)
        .map(|n| format!("{n:02}{}", "字".repeat(48)))
        .collect();
    let url = format!("https://example.com/{}", "字".repeat(1_980));
    let entry = json!({
        "title": "字".repeat(300), "url": url, "notes": format!("a{}b", costly(3_998)), "tags": tags,
    });
    ok("reading_list_add", entry);
    let stored = Bucket::open("lists")
        .unwrap()
        .get::<Value>("reading/1")
        .unwrap()
        .unwrap()
        .to_string();
    assert!(
        stored.len() > 30_000 && stored.len() < VALUE_BYTES_MAX,
        "{}",
        stored.len()
    );
}

#[test]
fn a_full_list_says_so() {
    world();
    let bucket = Bucket::open("lists").unwrap();
    for id in 1..=ENTRIES_MAX {
        let task = json!({
            "id": id, "title": "x", "priority": "low", "done": false, "addedAt": "",
            "addedBy": format!("{id}"),
        });
        bucket.set(&format!("todo/{id}"), &task).unwrap();
    }
    let ToolError::Failed(message) = call("todo_add", json!({ "title": "one more" })).unwrap_err()
    else {
        panic!()
    };
    assert!(message.contains("the list is full"), "{message}");
    assert_eq!(
        ok("todo_list", json!({ "limit": 100 }))["total"],
        ENTRIES_MAX
    );
    assert_eq!(
        ok("reading_list_add", json!({ "title": "another list" }))["id"],
        1
    );
}

#[test]
fn an_entry_that_cannot_be_read_fails_the_call_by_its_key() {
    world();
    Bucket::open("lists")
        .unwrap()
        .set("todo/1", &"nonsense")
        .unwrap();
    let ToolError::Failed(message) = call("todo_list", json!({})).unwrap_err() else {
        panic!()
    };
    assert_eq!(message, "what is stored under `todo/1` cannot be read");
}

#[test]
fn long_lists_come_page_by_page() {
    world();
    for n in 0..45 {
        ok("todo_add", json!({ "title": format!("task {n}") }));
    }
    let first = ok("todo_list", json!({}));
    assert_eq!(
        (&first["total"], &first["nextOffset"]),
        (&json!(45), &json!(20))
    );
    let last = ok("todo_list", json!({ "offset": 40 }));
    assert_eq!(
        (
            last["entries"].as_array().unwrap().len(),
            &last["nextOffset"]
        ),
        (5, &Value::Null)
    );
    assert_eq!(ids("todo_list", json!({ "offset": 1_000 })), [0; 0]);
}

#[test]
fn an_entry_has_what_was_given_and_when() {
    world();
    let added = ok(
        "reading_list_add",
        json!({
            "title": " A paper ", "url": " https://example.com/p ", "notes": "for Ann",
            "tags": ["Rust", "rust ", "wasm"], "priority": "high",
        }),
    );
    let expected = json!({
        "id": 1, "title": "A paper", "url": "https://example.com/p", "notes": "for Ann",
        "tags": ["rust", "wasm"], "priority": "high",
        "status": "unread", "addedAt": "2026-01-01T00:00:00Z",
    });
    assert_eq!(added, expected);
    assert_eq!(ok("reading_list_get", json!({ "id": 1 })), expected);
    let bare = ok("reading_list_add", json!({ "title": "A book" }));
    assert_eq!(
        bare,
        json!({
            "id": 2, "title": "A book", "priority": "normal", "status": "unread",
            "addedAt": "2026-01-01T00:01:00Z",
        })
    );
}

#[test]
fn an_address_is_on_the_list_once_however_it_is_written() {
    world();
    ok(
        "reading_list_add",
        json!({ "title": "First", "url": "https://Example.com/page/" }),
    );
    for url in [
        "https://example.com/page",
        "http://EXAMPLE.com/page/#part",
        "HTTPS://example.com/page",
    ] {
        let message = invalid("reading_list_add", json!({ "title": "Again", "url": url }));
        assert_eq!(
            message,
            "`url` is on the list already: id 1, \"First\", unread"
        );
    }
    for url in [
        "https://example.com/Page",
        "https://example.com/page?a=1",
        "https://www.example.com/page",
        "https://example.com/",
    ] {
        ok("reading_list_add", json!({ "title": "Other", "url": url }));
    }
    assert!(
        invalid(
            "reading_list_update",
            json!({ "id": 2, "url": "https://example.com/page" })
        )
        .contains("already: id 1")
    );
    ok(
        "reading_list_update",
        json!({ "id": 1, "url": "https://example.com/page" }),
    );
}

#[test]
fn marking_as_read_says_when_and_reading_again_changes_nothing() {
    world();
    ok("reading_list_add", json!({ "title": "x" }));
    let read = ok("reading_list_mark_read", json!({ "id": 1 }));
    assert_eq!(
        (&read["status"], &read["readAt"]),
        (&json!("read"), &json!("2026-01-01T00:01:00Z"))
    );
    assert_eq!(ok("reading_list_mark_read", json!({ "id": 1 })), read);
    let unread = ok(
        "reading_list_update",
        json!({ "id": 1, "status": "reading" }),
    );
    assert_eq!(
        (&unread["status"], &unread["readAt"]),
        (&json!("reading"), &Value::Null)
    );
    assert_eq!(
        ok("reading_list_update", json!({ "id": 1, "status": "read" }))["status"],
        "read"
    );
}

#[test]
fn an_update_changes_what_is_given_and_nothing_else() {
    world();
    ok(
        "reading_list_add",
        json!({
            "title": "x", "url": "https://a.org", "notes": "n", "tags": ["t"], "priority": "low",
        }),
    );
    let before = ok("reading_list_get", json!({ "id": 1 }));
    let after = ok("reading_list_update", json!({ "id": 1, "title": "y" }));
    assert_eq!(after["title"], "y");
    assert_eq!(
        (
            &after["url"],
            &after["notes"],
            &after["tags"],
            &after["priority"]
        ),
        (
            &before["url"],
            &before["notes"],
            &before["tags"],
            &before["priority"]
        )
    );
    let cleared = ok(
        "reading_list_update",
        json!({ "id": 1, "url": "", "notes": " ", "tags": [], "priority": "high" }),
    );
    assert_eq!(
        cleared,
        json!({
            "id": 1, "title": "y", "priority": "high", "status": "unread",
            "addedAt": before["addedAt"],
        })
    );
}

#[test]
fn a_listing_is_by_urgency_and_age_and_can_be_narrowed() {
    world();
    for (title, priority, tags) in [
        ("a", "low", ["t"]),
        ("b", "normal", ["u"]),
        ("c", "high", ["t"]),
        ("d", "normal", ["t"]),
    ] {
        ok(
            "reading_list_add",
            json!({ "title": title, "priority": priority, "tags": tags }),
        );
    }
    ok("reading_list_mark_read", json!({ "id": 4 }));
    assert_eq!(ids("reading_list_list", json!({})), [3, 2, 4, 1]);
    assert_eq!(
        ids("reading_list_list", json!({ "status": "unread" })),
        [3, 2, 1]
    );
    assert_eq!(ids("reading_list_list", json!({ "tag": " T " })), [3, 4, 1]);
    assert_eq!(
        ids("reading_list_list", json!({ "tag": "t", "status": "read" })),
        [4]
    );
    assert_eq!(
        ids("reading_list_list", json!({ "limit": 2, "offset": 1 })),
        [2, 4]
    );
}

#[test]
fn a_search_wants_all_words_anywhere() {
    world();
    ok(
        "reading_list_add",
        json!({
            "title": "Über Sandboxes", "url": "https://example.com/wasm", "tags": ["security"],
        }),
    );
    ok(
        "reading_list_add",
        json!({ "title": "Cooking", "notes": "no sandboxes here" }),
    );
    assert_eq!(
        ids("reading_list_search", json!({ "query": "SANDBOXES" })),
        [1, 2]
    );
    assert_eq!(
        ids("reading_list_search", json!({ "query": "über wasm secur" })),
        [1]
    );
    assert_eq!(
        ids(
            "reading_list_search",
            json!({ "query": "sandboxes", "status": "read" })
        ),
        [0; 0]
    );
    assert_eq!(
        ids(
            "reading_list_search",
            json!({ "query": "sandboxes knitting" })
        ),
        [0; 0]
    );
}

#[test]
fn a_listing_shows_the_beginning_of_long_notes_and_an_entry_all_of_them() {
    world();
    let notes = "ä".repeat(4_000);
    ok("reading_list_add", json!({ "title": "x", "notes": notes }));
    let listed = ok("reading_list_list", json!({}))["entries"][0]["notes"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!((listed.chars().count(), listed.ends_with('…')), (201, true));
    assert_eq!(ok("reading_list_get", json!({ "id": 1 }))["notes"], notes);
}

#[test]
fn what_is_deleted_is_gone() {
    world();
    ok(
        "reading_list_add",
        json!({ "title": "x", "url": "https://example.com" }),
    );
    ok("reading_list_delete", json!({ "id": 1 }));
    assert!(call("reading_list_get", json!({ "id": 1 })).is_err());
    assert!(call("reading_list_delete", json!({ "id": 1 })).is_err());
    assert_eq!(
        ok(
            "reading_list_add",
            json!({ "title": "x", "url": "https://example.com" })
        )["id"],
        2
    );
}
