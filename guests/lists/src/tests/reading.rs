//! The reading list.

use super::{call, ids, invalid, ok, world};
use serde_json::{Value, json};

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
