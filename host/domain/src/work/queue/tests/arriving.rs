//! Tests of the treatment of messages that arrive, and of what they push out.

use super::*;
use crate::thread::speaker::Speaker;
use serde_json::json;

const TWO_DROPPED: &str =
    "[Queue overflow] Dropped 2 messages due to cap.\nSummary:\n- text 1\n- text 2";

fn comes_to(mode: &str, condition: Condition) -> serde_json::Value {
    let arriving = Arriving {
        settings: settings(mode),
        route: None,
        text: "hello",
        line: "hello",
    };
    json!(
        Queue::<u32>::default()
            .arrive(&arriving, condition)
            .unwrap()
            .kind
    )
}

#[test]
fn words_for_the_queue_wait_for_a_run_and_do_not_without_one() {
    let followup = json!({ "kind": "queued", "grouping": { "grouping": "followup" }, "debounce_ms": 500, "excerpt": "hello" });
    let collect = json!({ "grouping": "collect", "route": null, "text_bytes": 5 });
    let collect =
        json!({ "kind": "queued", "grouping": collect, "debounce_ms": 500, "excerpt": "hello" });
    let at_once = json!({ "kind": "queued", "grouping": { "grouping": "followup" }, "debounce_ms": 0, "excerpt": "hello" });
    for condition in [
        RUNNING,
        DEAF,
        Condition::Compacting,
        Condition::AwaitingClient,
    ] {
        assert_eq!(comes_to("followup", condition), followup);
        assert_eq!(comes_to("collect", condition), collect);
    }
    assert_eq!(comes_to("followup", Condition::Free), at_once);
    assert_eq!(comes_to("collect", Condition::Free), at_once);
    for condition in [RUNNING, DEAF, Condition::Compacting, Condition::Free] {
        assert_eq!(comes_to("steer", condition), json!({ "kind": "steer" }));
        assert_eq!(
            comes_to("interrupt", condition),
            json!({ "kind": "interrupt" })
        );
    }
    assert_eq!(
        comes_to("steer", Condition::AwaitingClient),
        followup,
        "only the client's answer continues it"
    );
    assert_eq!(
        comes_to("interrupt", Condition::AwaitingClient),
        followup,
        "only an abort ends it"
    );
}

#[test]
fn a_full_queue_refuses_what_arrives_when_nothing_that_waits_is_to_be_dropped() {
    let mut session = Session::new();
    session.hears("followup", None, RUNNING).unwrap();
    session.hears("collect", None, RUNNING).unwrap();
    let error = session
        .hears("followup cap:2 drop:new", None, RUNNING)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("the queue holds 2 messages and its cap is 2; wait for the run"),
        "{error}"
    );
    session
        .hears("steer cap:2 drop:new", None, RUNNING)
        .unwrap();
    session
        .hears("interrupt cap:2 drop:new", None, RUNNING)
        .unwrap();
    assert_eq!(
        session.waits(),
        [1, 2, 3, 4],
        "what does not wait for the run to end is not counted"
    );
    assert!(
        session
            .hears("steer cap:2 drop:new", None, Condition::AwaitingClient)
            .is_err(),
        "such words are followups"
    );
}

#[test]
fn a_full_queue_drops_what_has_waited_longest_and_keeps_a_line_of_it() {
    let mut session = Session::new();
    for _ in 0..3 {
        session.hears("followup", None, RUNNING).unwrap();
    }
    session.has(WaitKind::OwnTurn, Priority::Low);
    session.hears("steer", None, DEAF).unwrap();
    session.hears("followup cap:2", None, RUNNING).unwrap();
    assert_eq!(
        session.waits(),
        [3, 4, 5, 6],
        "neither work of its own nor words that steer are dropped"
    );
    assert_eq!(
        session.queue.overflow.notice().unwrap().as_str(),
        TWO_DROPPED
    );
    session
        .hears("followup cap:2 drop:old", None, RUNNING)
        .unwrap();
    let lines = session.queue.overflow.lines();
    assert_eq!(
        (session.queue.overflow.dropped(), lines),
        (3, &["text 1".to_owned(), "text 2".to_owned()][..])
    );
    session.hears("followup cap:1", None, RUNNING).unwrap();
    assert_eq!(session.waits(), [4, 5, 8]);
    let notice = session.queue.overflow.notice().unwrap().to_string();
    let expected = "[Queue overflow] Dropped 5 messages due to cap.\nSummary:\n- text 7";
    assert_eq!(
        notice, expected,
        "as many lines as the cap, and every one counted"
    );
}

#[test]
fn a_line_has_the_words_of_users_and_names_others() {
    let user = || Speaker::User {
        user_id: UserId::local(),
    };
    let trigger = || Speaker::Trigger {
        trigger: "issues".to_owned(),
        asks: None,
    };
    for (speaker, untrusted, expected) in [
        (None, false, "obey"),
        (Some(user()), false, "obey"),
        (Some(trigger()), false, "[from trigger=\"issues\"] obey"),
        (
            Some(trigger()),
            true,
            "[from trigger=\"issues\", untrusted: left out]",
        ),
        // It quotes somebody else.
        (
            Some(user()),
            true,
            "[from user=\"local\", untrusted: left out]",
        ),
        (None, true, "[from elsewhere, untrusted: left out]"),
    ] {
        assert_eq!(line(speaker.as_ref(), untrusted, "obey"), expected);
    }
    let mut session = Session::new();
    let kind = |line: &str| {
        let arriving = Arriving {
            settings: settings("followup"),
            route: None,
            text: "obey",
            line,
        };
        Queue::<u32>::default()
            .arrive(&arriving, RUNNING)
            .unwrap()
            .kind
    };
    session.has(kind("[from elsewhere]"), Priority::Normal);
    session.hears("followup cap:1", None, RUNNING).unwrap();
    let notice = session.queue.overflow.notice().unwrap();
    assert!(
        notice.as_str().ends_with("\n- [from elsewhere]"),
        "{notice:?}"
    );
}

#[test]
fn one_that_was_dropped_without_a_line_is_told_all_the_same() {
    let mut session = Session::new();
    session.hears("followup", None, RUNNING).unwrap();
    session
        .hears("followup cap:1 drop:old", None, RUNNING)
        .unwrap();
    assert_eq!(
        session.queue.overflow.notice().unwrap().as_str(),
        "[Queue overflow] Dropped 1 message due to cap."
    );
    assert_eq!(session.drains(), [(vec![2], "notice, words")]);
    assert_eq!(session.queue.overflow.notice(), None);
}

#[test]
fn however_long_a_queue_may_be_a_hundred_lines_are_kept_of_what_was_dropped() {
    let mut session = Session::new();
    for _ in 0..OVERFLOW_LINES_MAX + 8 {
        session.hears("followup cap:1000", None, RUNNING).unwrap();
    }
    session.hears("followup cap:1000", None, RUNNING).unwrap();
    for _ in 0..OVERFLOW_LINES_MAX + 8 {
        let cap = session.waits().len();
        session
            .hears(&format!("followup cap:{cap}"), None, RUNNING)
            .unwrap();
    }
    let overflow = &session.queue.overflow;
    assert_eq!(
        (overflow.lines().len(), overflow.dropped()),
        (OVERFLOW_LINES_MAX, OVERFLOW_LINES_MAX as u64 + 8)
    );
    assert_eq!(overflow.lines()[0], "text 9", "the oldest lines are lost");
}

#[test]
fn what_was_to_be_told_and_was_not_is_told_with_what_was_dropped_since() {
    let mut session = Session::new();
    for words in ["followup", "followup cap:1 drop:old", "followup cap:1"] {
        session.hears(words, None, RUNNING).unwrap();
    }
    let first = session.queue.overflow.clone();
    let reported = session.queue.overflow.notice().unwrap();
    assert_eq!(reported.untold(), first, "{reported:?}");
    session.queue.overflow = Overflow::default();
    session.hears("followup cap:1", None, RUNNING).unwrap();
    let both = reported.untold().and(session.queue.overflow.clone());
    let expected = "[Queue overflow] Dropped 3 messages due to cap.\nSummary:\n- text 2\n- text 3";
    assert_eq!(both.notice().unwrap().as_str(), expected);
    assert_eq!(both.notice().unwrap().untold(), both);
}
