//! Tests of which rule decides.

use super::*;

/// Rules as their words: `read /alice/**`.
fn rules(texts: &[&str]) -> PathRules {
    PathRules::new(texts.iter().map(|text| rule(text)).collect()).unwrap()
}

fn rule(text: &str) -> PathRule {
    let (access, path) = text.split_once(' ').unwrap();
    let access = serde_json::from_value(serde_json::json!(access)).unwrap();
    PathRule {
        path: path.parse().unwrap(),
        access,
    }
}

#[test]
fn without_a_rule_everything_is_allowed() {
    for (text, _, _) in EVERY_KIND {
        for access in [PathAccess::Read, PathAccess::Write] {
            assert_eq!(
                PathRules::default().allows(access, &path(text)),
                PathVerdict::Unruled
            );
        }
    }
}

#[test]
fn a_deny_wins_over_every_allow_and_rules_that_allow_are_a_list_of_what_there_is() {
    use PathAccess::{Read, Write};
    let x = "/alice/agent/x";
    for (texts, verdicts) in [
        // Only denies: everything else stays allowed.
        (vec!["none /bob/**"], vec![(Write, x, "allowed: no rule")]),
        (
            vec!["none /bob/**"],
            vec![(Read, "/bob/telegram", "denied by `none /bob/**`")],
        ),
        (vec!["none /**"], vec![(Read, x, "denied by `none /**`")]),
        // A deny takes what is below with it, stars or not.
        (
            vec!["none /alice/agent/x"],
            vec![
                (
                    Read,
                    "/alice/agent/x/sub/0",
                    "denied by `none /alice/agent/x`",
                ),
                (Read, "/alice/agent/xy", "allowed: no rule"),
            ],
        ),
        (
            vec!["none /alice/agent/x/sub/0"],
            vec![(Write, x, "allowed: no rule")],
        ),
        // Nothing that is more specific takes a deny back, wherever it stands.
        (
            vec!["none /alice/**", "write /alice/agent/x"],
            vec![(Read, x, "denied by `none /alice/**`")],
        ),
        (
            vec!["write /alice/agent/x", "none /alice/**"],
            vec![(Read, x, "denied by `none /alice/**`")],
        ),
        (
            vec!["write /alice/**", "none /alice/agent/x"],
            vec![
                (Write, x, "denied by `none /alice/agent/x`"),
                (Write, "/alice/telegram", "allowed by `write /alice/**`"),
            ],
        ),
        // What no rule covers that allows is not allowed.
        (
            vec!["write /alice/agent/x"],
            vec![
                (Write, x, "allowed by `write /alice/agent/x`"),
                (Read, x, "allowed by `write /alice/agent/x`"),
                (Read, "/alice/agent/x/sub/0", "none covers the path"),
            ],
        ),
        (
            vec!["write /alice/agent/x/**"],
            vec![(
                Write,
                "/alice/agent/x/sub/0",
                "allowed by `write /alice/agent/x/**`",
            )],
        ),
        (
            vec!["read /alice/**"],
            vec![(Read, "/system/gc", "none covers the path")],
        ),
        // Reading is not writing, and of rules that allow the one that permits more counts.
        (
            vec!["read /alice/**"],
            vec![
                (Read, x, "allowed by `read /alice/**`"),
                (Write, x, "not allowed: `read /alice/**` permits no writing"),
            ],
        ),
        (
            vec!["read /alice/**", "write /alice/agent/x/**"],
            vec![
                (Write, x, "allowed by `write /alice/agent/x/**`"),
                (Read, x, "allowed by `read /alice/**`"),
                (Write, "/alice/telegram", "permits no writing"),
            ],
        ),
        // Of several that decide alike, the first is named.
        (
            vec!["none /alice/agent/x", "none /**"],
            vec![(Read, x, "denied by `none /alice/agent/x`")],
        ),
        (
            vec!["none /**", "none /alice/agent/x"],
            vec![(Read, x, "denied by `none /**`")],
        ),
    ] {
        let rules = rules(&texts);
        for (access, on, reported) in verdicts {
            let verdict = rules.allows(access, &path(on));
            assert_eq!(
                verdict.is_allowed(),
                reported.starts_with("allowed"),
                "{texts:?} {on}"
            );
            assert!(
                verdict.to_string().contains(reported),
                "{texts:?} {access:?} {on}: {verdict}"
            );
        }
    }
}

#[test]
fn rules_are_a_list_in_json_with_nothing_in_it_that_is_not_known() {
    let text =
        r#"[{"path":"/alice/**","access":"read"},{"path":"/alice/agent/x","access":"none"}]"#;
    let read: PathRules = serde_json::from_str(text).unwrap();
    assert_eq!(read, rules(&["read /alice/**", "none /alice/agent/x"]));
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    for (wrong, reported) in [
        (
            r#"[{"path":"/alice/**","access":"all"}]"#,
            "expected one of `none`, `read`, `write`",
        ),
        (
            r#"[{"path":"/alice","access":"read"}]"#,
            "write `/alice/**`",
        ),
        (r#"[{"path":"/alice/**"}]"#, "missing field `access`"),
        (
            r#"[{"path":"/alice/**","access":"read","for":"bob"}]"#,
            "unknown field `for`",
        ),
    ] {
        let refused = serde_json::from_str::<PathRules>(wrong)
            .unwrap_err()
            .to_string();
        assert!(refused.contains(reported), "{wrong}: {refused}");
    }
    let many = vec![rule("read /alice/**"); PATH_RULES_MAX + 1];
    let refused = serde_json::from_value::<PathRules>(serde_json::json!(many))
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("there are 257 rules on paths; 256 is the most"),
        "{refused}"
    );
    assert_eq!(PathRules::new(many), Err(TooManyRules { rules: 257 }));
}

#[test]
fn the_schemas_say_the_limits_that_are_checked() {
    for (schema, key, limit) in [
        (schemars::schema_for!(PathRules), "maxItems", PATH_RULES_MAX),
        (
            schemars::schema_for!(AgentPath),
            "maxLength",
            PATH_BYTES_MAX,
        ),
        (schemars::schema_for!(Name), "maxLength", NAME_BYTES_MAX),
        (
            schemars::schema_for!(Tag),
            "maxLength",
            CONNECTOR_NAME_BYTES_MAX,
        ),
        (
            schemars::schema_for!(Subtree),
            "maxLength",
            PATH_BYTES_MAX + "/**".len(),
        ),
    ] {
        assert_eq!(
            schema.get(key),
            Some(&serde_json::json!(limit)),
            "{schema:?}"
        );
    }
}

fn any_rules() -> impl Strategy<Value = Vec<PathRule>> {
    let pattern = prop_oneof![
        paths().prop_map(|path| Subtree::alone(&path)),
        paths().prop_map(|path| and_below(&path)),
        users().prop_map(|user| format!("/{user}/**").parse().unwrap()),
        Just("/**".parse::<Subtree>().unwrap()),
        Just("/system/**".parse::<Subtree>().unwrap()),
    ];
    let access = prop_oneof![
        Just(PathPermit::None),
        Just(PathPermit::Read),
        Just(PathPermit::Write)
    ];
    prop::collection::vec(
        (pattern, access).prop_map(|(path, access)| PathRule { path, access }),
        0..6,
    )
}

fn allowed(rules: &[PathRule], access: PathAccess, path: &AgentPath) -> bool {
    PathRules::new(rules.to_vec())
        .unwrap()
        .allows(access, path)
        .is_allowed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_deny_is_never_taken_back_and_denies_all_below(
        before in any_rules(), denied in paths(), after in any_rules(), below in suffixes(),
    ) {
        let deny = PathRule { path: Subtree::alone(&denied), access: PathPermit::None };
        let all: Vec<PathRule> = before.into_iter().chain([deny]).chain(after).collect();
        for path in [built(denied.clone(), &below), denied] {
            prop_assert!(!allowed(&all, PathAccess::Read, &path));
            prop_assert!(!allowed(&all, PathAccess::Write, &path));
        }
    }

    #[test]
    fn another_deny_allows_nothing_more_and_the_order_decides_nothing(rules in any_rules(), path in paths(), more in paths()) {
        let backwards: Vec<PathRule> = rules.iter().rev().cloned().collect();
        let deny = PathRule { path: and_below(&more), access: PathPermit::None };
        let narrower: Vec<PathRule> = rules.iter().cloned().chain([deny]).collect();
        for access in [PathAccess::Read, PathAccess::Write] {
            prop_assert_eq!(allowed(&rules, access, &path), allowed(&backwards, access, &path));
            prop_assert!(allowed(&rules, access, &path) || !allowed(&narrower, access, &path));
        }
    }

    #[test]
    fn who_may_write_may_read_and_the_rule_that_is_named_is_about_the_path(rules in any_rules(), path in paths()) {
        prop_assert!(!allowed(&rules, PathAccess::Write, &path) || allowed(&rules, PathAccess::Read, &path));
        let rules = PathRules::new(rules).unwrap();
        match rules.allows(PathAccess::Write, &path) {
            PathVerdict::Unruled => prop_assert!(rules.rules().iter().all(|rule| rule.access == PathPermit::None)),
            PathVerdict::Allowed(rule) => prop_assert!(rule.path.covers(&path) && rule.access == PathPermit::Write),
            PathVerdict::ReadOnly(rule) => prop_assert!(rule.path.covers(&path) && rule.access == PathPermit::Read),
            PathVerdict::Denied(rule) => prop_assert!(rule.path.is_over(&path) && rule.access == PathPermit::None),
            PathVerdict::Uncovered => {
                let covers = |rule: &PathRule| rule.access != PathPermit::None && rule.path.covers(&path);
                prop_assert!(!rules.rules().iter().any(covers));
            }
        }
    }
}

// Tests of which paths a pattern covers, and of which texts are patterns.

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
