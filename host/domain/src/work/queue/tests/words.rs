//! Modes, settings and directives as they are written.

use super::*;
use serde_json::{Value, json};

#[test]
fn a_mode_is_read_in_every_spelling_and_written_in_one() {
    let spellings = [
        (
            Mode::Steer,
            &[
                "steer",
                " Steer\n",
                "QUEUE",
                "queued",
                "steering",
                "steer-backlog",
                "steer+backlog",
                "steer_backlog",
            ][..],
        ),
        (
            Mode::Followup,
            &["followup", "follow-up", "follow-ups", "FollowUps"],
        ),
        (Mode::Collect, &["collect", "coalesce"]),
        (Mode::Interrupt, &["interrupt", "interrupts", "Abort"]),
    ];
    for (mode, words) in spellings {
        for word in words {
            assert_eq!(word.parse(), Ok(mode), "{word}");
            assert_eq!(serde_json::from_value::<Mode>(json!(word)).unwrap(), mode);
        }
        assert_eq!(json!(mode), json!(mode.as_str()));
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
}

#[test]
fn a_word_that_is_no_mode_is_refused_with_those_that_are() {
    let error = "stear".parse::<Mode>().unwrap_err().to_string();
    assert!(
        error.starts_with("`stear` is no mode of the queue; write steer (or steering, queue"),
        "{error}"
    );
    for word in [
        "followup",
        "follow-ups",
        "collect (or coalesce)",
        "interrupt (or interrupts, abort)",
    ] {
        assert!(error.contains(word), "{error}");
    }
    assert!(
        "x".repeat(1 << 20)
            .parse::<Mode>()
            .unwrap_err()
            .to_string()
            .len()
            < 1_000,
        "a long word is not repeated"
    );
}

#[test]
fn a_debounce_is_milliseconds_or_a_number_with_a_unit() {
    for (text, ms) in [
        ("500", 500),
        (" 500ms ", 500),
        ("2s", 2_000),
        ("1.5S", 1_500),
        ("1m", 60_000),
        ("1h", 3_600_000),
        ("0", 0),
    ] {
        assert_eq!(text.parse::<Debounce>().map(Debounce::ms), Ok(ms), "{text}");
    }
    assert_eq!(
        "1d".parse::<Debounce>().map(Debounce::ms),
        Ok(DEBOUNCE_MS_MAX)
    );
    for text in [
        "", "s", "-1", "-2s", "2 s", "2w", "1.2.3", "1e3", "NaN", "inf", "٣",
    ] {
        assert_eq!(
            text.parse::<Debounce>(),
            Err(SettingError::Debounce(text.to_owned())),
            "{text}"
        );
    }
    for text in ["86400001", "2d", "9999999999999999999999999999"] {
        assert_eq!(
            text.parse::<Debounce>(),
            Err(SettingError::DebounceTooLong(text.to_owned())),
            "{text}"
        );
    }
}

#[test]
fn a_cap_is_rounded_down_and_at_least_one() {
    for (text, inputs) in [
        ("1", 1),
        ("25", 25),
        ("2.9", 2),
        (" 7 ", 7),
        ("1000", CAP_MAX),
    ] {
        assert_eq!(text.parse::<Cap>().map(Cap::inputs), Ok(inputs), "{text}");
    }
    for text in [
        "",
        "0",
        "0.9",
        "-1",
        "+1",
        "1001",
        "many",
        "2.",
        "2.x",
        "99999999999999999999999",
    ] {
        assert_eq!(
            text.parse::<Cap>(),
            Err(SettingError::Cap(text.to_owned())),
            "{text}"
        );
    }
}

#[test]
fn each_field_is_what_the_first_level_says_that_says_it() {
    let none = QueueOverride::default();
    let default = json!({ "mode": "steer", "debounce_ms": 500, "cap": 20, "drop": "summarize" });
    assert_eq!(json!(QueueSettings::resolve([none, none, none])), default);
    let message = QueueOverride {
        mode: Some(Mode::Collect),
        ..none
    };
    let session = QueueOverride {
        mode: Some(Mode::Followup),
        cap: "3".parse().ok(),
        ..none
    };
    let configured = QueueOverride {
        cap: "4".parse().ok(),
        drop: Some(DropPolicy::Old),
        ..none
    };
    let resolved = QueueSettings::resolve([message, session, configured]);
    assert_eq!(
        json!(resolved),
        json!({ "mode": "collect", "debounce_ms": 500, "cap": 3, "drop": "old" })
    );
    assert!(
        resolved
            .in_words()
            .contains("collect, debounce 500 ms, cap 3, drop old"),
        "{}",
        resolved.in_words()
    );
}

/// An override is read leniently written sparsely and refused with the wrong field named.
#[test]
fn an_override_is_read_leniently_written_sparsely_and_refused_by_field() {
    let given = json!({ "mode": "Queued", "debounce_ms": "2s", "cap": 2.5, "drop": "oldest" });
    let read: QueueOverride = serde_json::from_value(given).unwrap();
    assert_eq!(
        json!(read),
        json!({ "mode": "steer", "debounce_ms": 2_000, "cap": 2, "drop": "old" })
    );
    assert_eq!(json!(QueueOverride::default()), json!({}));
    let wrong = [
        (json!({ "mode": "x" }), "`x` is no mode"),
        (json!({ "debounce_ms": -1 }), "`-1` is no debounce"),
        (json!({ "debounce_ms": true }), "`true` is no debounce"),
        (json!({ "cap": 0 }), "`0` is no cap"),
        (json!({ "drop": "all" }), "`all` is no drop policy"),
        (json!({ "delay": 1 }), "unknown field `delay`"),
    ];
    for (given, expected) in wrong {
        let error = serde_json::from_value::<QueueOverride>(given)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_directive_says_what_it_names_and_leaves_the_rest() {
    let read = |text: &str| match text.parse::<Directive>() {
        Ok(Directive::Set(said)) => json!(said),
        Ok(Directive::Reset) => Value::Null,
        Err(error) => panic!("{error}"),
    };
    let all = json!({ "mode": "collect", "debounce_ms": 2_000, "cap": 25, "drop": "old" });
    assert_eq!(read("/queue collect debounce:2s cap:25 drop:old"), all);
    assert_eq!(
        read(" /Queue  DROP=oldest cap=25 debounce=2000\tCoalesce\n"),
        all
    );
    assert_eq!(read("/queue cap:5"), json!({ "cap": 5 }));
    for text in ["/queue default", "/queue Reset", "/queue clear"] {
        assert_eq!(read(text), Value::Null);
    }
    let Ok(set) = "/queue cap:5".parse::<Directive>() else {
        panic!()
    };
    let session: QueueOverride =
        serde_json::from_value(json!({ "mode": "collect", "cap": 2 })).unwrap();
    assert_eq!(
        json!(set.applied(session)),
        json!({ "mode": "collect", "cap": 5 })
    );
    assert_eq!(Directive::Reset.applied(session), QueueOverride::default());
}

#[test]
fn a_directive_that_cannot_be_taken_names_the_word() {
    let wrong = [
        ("hello", "`hello` is no directive"),
        ("/queued collect", "`/queued` is no directive"),
        ("", "`` is no directive"),
        ("/queue", "`/queue` alone says nothing"),
        ("/queue later", "`later` is no mode"),
        ("/queue wait:2s", "`wait:2s` is no option"),
        ("/queue debounce:soon", "`soon` is no debounce"),
        ("/queue debounce:2d", "`2d` is too long"),
        ("/queue cap:0", "`0` is no cap"),
        ("/queue drop:", "`` is no drop policy"),
        ("/queue steer collect", "`collect` says a second time"),
        ("/queue cap:1 cap:2", "`cap:2` says a second time"),
        ("/queue default collect", "`collect` cannot stand beside"),
        ("/queue reset clear", "`clear` cannot stand beside"),
    ];
    for (text, expected) in wrong {
        let error = text.parse::<Directive>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn an_excerpt_is_one_line_of_bounded_length() {
    assert_eq!(excerpt("  two\n\tlines  "), "two lines");
    assert_eq!(excerpt(&"ä".repeat(160)), "ä".repeat(160));
    assert_eq!(excerpt(&"ä".repeat(161)), "ä".repeat(159) + "…");
    assert_eq!(
        excerpt(&format!("{} {}", "a".repeat(158), "b".repeat(9))),
        "a".repeat(158) + "…",
        "no blank before the end"
    );
    assert_eq!(excerpt(""), "");
}
