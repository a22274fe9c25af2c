//! Tests of which paths a pattern covers, and of which texts are patterns.

use super::*;

fn subtree(text: &str) -> Subtree {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_pattern_is_about_one_path_or_about_it_and_all_below_it() {
    for (pattern, text, expected) in [
        ("/alice/agent/x", "/alice/agent/x", true),
        ("/alice/agent/x", "/alice/agent/x/sub/0", false),
        ("/alice/agent/x", "/alice/agent/xy", false),
        ("/alice/agent/x/**", "/alice/agent/x", true),
        ("/alice/agent/x/**", "/alice/agent/x/sub/0/memory", true),
        ("/alice/agent/x/**", "/alice/agent/x-y", false),
        ("/alice/agent/x/**", "/alice/cron/x", false),
        (
            "/alice/agent/x/sub/1/**",
            "/alice/agent/x/sub/1/memory",
            true,
        ),
        ("/alice/agent/x/sub/1/**", "/alice/agent/x/sub/10", false),
        ("/alice/agent/**", "/alice/agent/x/sub/0", true),
        ("/alice/agent/**", "/alice/agents", false),
        ("/alice/agent/**", "/alice/telegram", false),
        ("/alice/cron/**", "/alice/cron/daily", true),
        ("/alice/telegram/**", "/alice/telegram/memory", true),
        ("/alice/**", "/alice/telegram", true),
        ("/alice/**", "/alice/agent/x/sub/0", true),
        ("/alice/**", "/alice2/telegram", false),
        ("/alice/**", "/system/alice", false),
        ("/system/**", "/system/gc/sub/0", true),
        ("/system/**", "/alice/telegram", false),
        ("/system/gc", "/system/gc", true),
        ("/**", "/alice/telegram", true),
        ("/**", "/system/gc", true),
    ] {
        assert_eq!(
            subtree(pattern).covers(&path(text)),
            expected,
            "{pattern} on {text}"
        );
    }
}

#[test]
fn what_is_no_pattern_says_what_to_write() {
    for (text, fix) in [
        ("", "does not begin with `/`"),
        ("**", "`/**` at the end"),
        ("/*", "`/**` at the end"),
        ("/*/agent/x", "`/**` at the end"),
        ("/**/agent/x", "`/**` at the end"),
        ("/alice/**/**", "`/**` at the end"),
        ("/alice/agent/x*", "`/**` at the end"),
        ("/alice/agent/x/*", "`/**` at the end"),
        ("/alice/***", "`/**` at the end"),
        ("/alice", "write `/alice/**`"),
        ("/system", "write `/system/**`"),
        ("/alice/agent", "write `/alice/agent/**`"),
        ("/alice/", "segment 2 of `/alice/`, ``, is empty"),
        ("/", "segment 1 of `/`, ``, is empty"),
        ("//**", "segment 1 of `/`, ``, is empty"),
        ("alice/**", "does not begin with `/`"),
        ("/alice/agent/x/sub/**", "ends before segment 5"),
        ("/alice/agent/x/y", "segment 4"),
        ("/sub/**", "segment 1 of `/sub`, `sub`"),
        ("/alice/sub/**", "segment 2 of `/alice/sub`, `sub`"),
        ("/system/agent/**", "segment 2 of `/system/agent`, `agent`"),
        (
            &format!("/u/agent/{}/**", "x".repeat(PATH_BYTES_MAX)),
            "1027 is the most",
        ),
    ] {
        let refused = text.parse::<Subtree>().expect_err(text).to_string();
        assert!(refused.contains(fix), "{text}: {refused}");
    }
    let json = serde_json::from_str::<Subtree>(r#""/alice""#)
        .unwrap_err()
        .to_string();
    assert!(json.contains("write `/alice/**`"), "{json}");
}

proptest! {
    #[test]
    fn a_pattern_of_a_path_reads_what_it_writes_and_is_about_what_is_within_it(a in paths(), b in paths()) {
        let alone = Subtree::alone(&a);
        let whole = and_below(&a);
        for pattern in [&alone, &whole] {
            prop_assert_eq!(&subtree(&pattern.to_string()), pattern);
            prop_assert_eq!(pattern.is_over(&b), is_within(&b, &a));
        }
        prop_assert_eq!(alone.covers(&b), a == b);
        prop_assert_eq!(whole.covers(&b), is_within(&b, &a));
    }

    #[test]
    fn no_text_makes_a_pattern_panic_and_every_one_has_one_spelling(text in "(/|\\*|sub|agent|system|a|0|-|.){0,12}") {
        if let Ok(pattern) = text.parse::<Subtree>() {
            prop_assert_eq!(pattern.to_string(), text);
        }
    }
}
