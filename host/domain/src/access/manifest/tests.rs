//! Tests of reading manifests.

use super::{BadManifest, ENTRIES_MAX, MANIFEST_BYTES_MAX, Manifest};
use serde_json::{Value, json};

fn parsed(document: &Value) -> Result<Manifest, BadManifest> {
    Manifest::parse(document.to_string().as_bytes())
}

fn whole() -> Value {
    json!({
        "manifest": 1,
        "version": "0.2.0",
        "authors": ["Ann <ann@example.com>"],
        "licence": "Apache-2.0",
        "homepage": "https://example.com/planner",
        "wants": {
            "hosts": [{ "host": "api.example.com", "methods": ["POST"], "reason": "plans" }],
            "folders": [{ "at": "/workspace", "access": "read-write", "reason": "drafts" }],
            "buckets": [{ "bucket": "plans", "access": "read-only", "reason": "old plans" }],
            "secrets": [{
                "secret": "planner", "host": "api.example.com", "header": "authorization",
                "prefix": "Bearer ", "reason": "signs in"
            }]
        }
    })
}

#[test]
fn a_manifest_is_read_and_written_as_it_was() {
    let manifest = parsed(&whole()).unwrap();
    assert_eq!(manifest.version, "0.2.0");
    assert_eq!(serde_json::to_value(&manifest).unwrap(), whole());
    let least = parsed(&json!({ "manifest": 1 })).unwrap();
    assert!(least.wants.is_empty());
    assert_eq!(
        serde_json::to_value(least).unwrap(),
        json!({ "manifest": 1 })
    );
}

#[test]
fn what_is_no_manifest_is_told_by_what_is_wrong_with_it() {
    for (bytes, reported) in [
        (
            b"\xff".as_slice(),
            "not a manifest of layout 1: invalid utf-8",
        ),
        (b"nonsense", "not a manifest of layout 1"),
        (b"{\"manifest\":1}{\"manifest\":1}", "trailing characters"),
        (b"[]", "`manifest` is not a number"),
        (
            b"{\"manifest\":2}",
            "the layout 2, and this host reads layout 1",
        ),
        (
            b"{\"manifest\":1,\"author\":\"x\"}",
            "unknown field `author`",
        ),
        (b"{\"manifest\":1,\"manifest\":1}", "twice"),
    ] {
        let error = Manifest::parse(bytes).unwrap_err().to_string();
        assert!(error.contains(reported), "{error}");
    }
    let hidden = Manifest::parse("{\"manifest\":1,\"a\u{202e}b\":1}".as_bytes());
    assert!(!hidden.unwrap_err().to_string().contains('\u{202e}'));
    let large = vec![b' '; MANIFEST_BYTES_MAX + 1];
    assert_eq!(
        Manifest::parse(&large),
        Err(BadManifest::TooLarge(MANIFEST_BYTES_MAX + 1))
    );
}

/// Texts follow the rule of descriptions: nothing hidden, nothing that turns the direction of text.
#[test]
fn texts_of_a_manifest_have_nothing_hidden_and_no_line_breaks() {
    for (pointer, place) in [
        ("/version", "version"),
        ("/licence", "licence"),
        ("/homepage", "homepage"),
        ("/authors/0", "authors[0]"),
        ("/wants/hosts/0/reason", "wants.hosts[0].reason"),
        ("/wants/folders/0/at", "wants.folders[0].at"),
        ("/wants/buckets/0/reason", "wants.buckets[0].reason"),
        ("/wants/secrets/0/prefix", "wants.secrets[0].prefix"),
    ] {
        for hidden in ["\u{202e}", "\n", "\u{1b}[2J", "\u{200b}"] {
            let mut document = whole();
            let value = document.pointer_mut(pointer).unwrap();
            *value = json!(format!("{}{hidden}x", value.as_str().unwrap()));
            let error = parsed(&document).unwrap_err().to_string();
            assert!(
                error.contains(&format!("`{place}` has the hidden character")),
                "{error}"
            );
        }
    }
}

#[test]
fn what_nobody_can_grant_is_refused_with_its_place() {
    for (pointer, value, reported) in [
        (
            "/homepage",
            json!("javascript:x"),
            "`homepage` is \"javascript:x\", which is not a URL",
        ),
        ("/wants/hosts/0/host", json!("a b"), "`wants.hosts[0].host`"),
        (
            "/wants/hosts/0/methods",
            json!(["STEAL"]),
            "unknown variant `STEAL`",
        ),
        (
            "/wants/folders/0/at",
            json!("work"),
            "`wants.folders[0].at`",
        ),
        (
            "/wants/folders/0/at",
            json!("/a/../b"),
            "`wants.folders[0].at`",
        ),
        (
            "/wants/buckets/0/bucket",
            json!("A b"),
            "`wants.buckets[0].bucket`",
        ),
        (
            "/wants/secrets/0/host",
            json!("*.example.com"),
            "`wants.secrets[0].host`",
        ),
        (
            "/wants/secrets/0/header",
            json!("a: b"),
            "`wants.secrets[0].header`",
        ),
        (
            "/wants/secrets/0/secret",
            json!(""),
            "`wants.secrets[0].secret`",
        ),
        (
            "/version",
            json!("1".repeat(200)),
            "`version` has 200 bytes; 128 at most",
        ),
        (
            "/authors",
            json!(vec!["a"; ENTRIES_MAX + 1]),
            "`authors` has 65 entries",
        ),
    ] {
        let mut document = whole();
        *document.pointer_mut(pointer).unwrap() = value;
        let error = parsed(&document).unwrap_err().to_string();
        assert!(error.contains(reported), "{error}");
    }
}
