//! The todo list.

use super::{call, ids, ok, world};
use serde_json::{Value, json};

#[test]
fn a_task_has_what_was_given_and_when() {
    world();
    let added = ok(
        "todo_add",
        json!({
            "title": "Call Ann", "notes": "about tea", "dueDate": "2028-02-29", "priority": "low",
            "tags": ["Home"],
        }),
    );
    let expected = json!({
        "id": 1, "title": "Call Ann", "notes": "about tea", "dueDate": "2028-02-29",
        "priority": "low", "tags": ["home"], "done": false,
        "addedAt": "2026-01-01T00:00:00Z",
    });
    assert_eq!(added, expected);
    assert_eq!(ok("todo_get", json!({ "id": 1 })), expected);
}

#[test]
fn two_tasks_may_be_called_the_same() {
    world();
    assert_eq!(ok("todo_add", json!({ "title": "x" }))["id"], 1);
    assert_eq!(ok("todo_add", json!({ "title": "x" }))["id"], 2);
}

#[test]
fn a_task_is_completed_and_reopened() {
    world();
    ok("todo_add", json!({ "title": "x" }));
    let done = ok("todo_complete", json!({ "id": 1 }));
    assert_eq!(
        (&done["done"], &done["doneAt"]),
        (&json!(true), &json!("2026-01-01T00:01:00Z"))
    );
    assert_eq!(ok("todo_complete", json!({ "id": 1 })), done);
    assert_eq!(ids("todo_list", json!({})), [0; 0]);
    assert_eq!(ids("todo_list", json!({ "show": "done" })), [1]);
    let open = ok("todo_reopen", json!({ "id": 1 }));
    assert_eq!(
        (&open["done"], &open["doneAt"]),
        (&json!(false), &Value::Null)
    );
    assert_eq!(ids("todo_list", json!({ "show": "done" })), [0; 0]);
}

#[test]
fn an_update_changes_what_is_given_and_nothing_else() {
    world();
    ok(
        "todo_add",
        json!({
            "title": "x", "notes": "n", "dueDate": "2026-05-01", "tags": ["t"], "priority": "high",
        }),
    );
    let after = ok("todo_update", json!({ "id": 1, "dueDate": "2026-06-01" }));
    assert_eq!(
        (
            &after["title"],
            &after["notes"],
            &after["dueDate"],
            &after["tags"]
        ),
        (
            &json!("x"),
            &json!("n"),
            &json!("2026-06-01"),
            &json!(["t"])
        )
    );
    let cleared = ok(
        "todo_update",
        json!({ "id": 1, "dueDate": "", "notes": "", "tags": [], "priority": "low", "title": "y" }),
    );
    assert_eq!(
        cleared,
        json!({
            "id": 1, "title": "y", "priority": "low", "done": false,
            "addedAt": "2026-01-01T00:00:00Z",
        })
    );
}

#[test]
fn tasks_are_listed_by_day_and_urgency() {
    world();
    for (title, due, priority) in [
        ("a", "", "high"),
        ("b", "2026-03-01", "low"),
        ("c", "2026-02-01", "normal"),
        ("d", "2026-02-01", "high"),
        ("e", "", "normal"),
    ] {
        ok(
            "todo_add",
            json!({ "title": title, "dueDate": due, "priority": priority, "tags": [title] }),
        );
    }
    ok("todo_complete", json!({ "id": 4 }));
    assert_eq!(ids("todo_list", json!({})), [3, 2, 1, 5]);
    assert_eq!(ids("todo_list", json!({ "show": "all" })), [3, 2, 1, 5, 4]);
    assert_eq!(
        ids("todo_list", json!({ "dueBy": "2026-02-28", "show": "all" })),
        [3, 4]
    );
    assert_eq!(ids("todo_list", json!({ "tag": "B" })), [2]);
}

#[test]
fn a_search_finds_tasks_done_or_not() {
    world();
    ok("todo_add", json!({ "title": "Buy tea", "tags": ["shop"] }));
    ok(
        "todo_add",
        json!({ "title": "Sell tea", "notes": "in the shop" }),
    );
    ok("todo_complete", json!({ "id": 1 }));
    assert_eq!(ids("todo_search", json!({ "query": "tea shop" })), [2, 1]);
    assert_eq!(
        ids("todo_search", json!({ "query": "tea", "show": "open" })),
        [2]
    );
    ok("todo_delete", json!({ "id": 2 }));
    assert_eq!(ids("todo_search", json!({ "query": "tea" })), [1]);
    assert!(call("todo_get", json!({ "id": 2 })).is_err());
}
