//! Tests of the files that users hand over.

use super::*;

#[test]
fn a_files_name_leads_nowhere_and_hides_nothing() {
    for name in [
        "a",
        "essay.txt",
        ".profile",
        "...",
        "Grüße an alle (2).pdf",
        "a b",
        "名前.png",
        &"x".repeat(NAME_BYTES_MAX),
    ] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    let long = "ä".repeat(128);
    for name in [
        "",
        ".",
        "..",
        "a/b",
        "..\\x",
        "a\0",
        "a\nb",
        "\u{7f}",
        "\u{85}",
        "a\u{202e}fdp.exe",
        "a\u{2028}b",
        long.as_str(),
    ] {
        assert!(check_name(name).is_err(), "{name:?}");
    }
    assert!(
        check_name("a\u{202e}b")
            .unwrap_err()
            .ends_with("this one has `\\u{202e}`")
    );
}

#[test]
fn a_media_type_is_two_words_and_its_parameters() {
    for text in [
        "text/plain",
        "text/plain; charset=utf-8",
        "application/vnd.a+json",
        "image/svg+xml ; x=\"y z\"",
    ] {
        assert_eq!(check_media_type(text), Ok(()), "{text}");
    }
    let long = format!("text/{}", "x".repeat(MEDIA_TYPE_BYTES_MAX));
    for text in [
        "",
        "text",
        "text/",
        "/plain",
        "a b/c",
        "text/plain\n",
        "text/plain; é",
        "a/b/c",
        long.as_str(),
    ] {
        assert!(check_media_type(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_media_type_is_accepted_by_itself_its_kind_and_by_everything() {
    for (accepted, found, is) in [
        ("text/plain", "text/plain", true),
        ("text/plain", "TEXT/Plain; charset=utf-8", true),
        ("text/*", "text/markdown", true),
        ("*/*", "anything/else", true),
        ("text/*", "textual/plain", false),
        ("text/plain", "text/plainer", false),
        ("image/*", "text/plain; image/png", false),
    ] {
        assert_eq!(is_accepted([accepted], found), is, "{accepted} {found}");
    }
    assert!(is_accepted(["image/*", "text/csv"], "text/csv"));
}
