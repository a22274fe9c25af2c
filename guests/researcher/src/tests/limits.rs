//! Turns with little left: there is always enough for the report.

use super::{deep, deep_in, failure, has, note, plan, report, synthesis, with_site};
use crate::Researcher;
use crate::session::{Begins, Budget};
use agent_host_sdk::harness::{Conversation, Scene};
use agent_host_sdk::{Agent as _, Decision, Effect, LimitsLeft, News, Part, Progress, text_of};
use serde_json::{Value, json};
use std::cell::Cell;

fn left(steps: u32) -> LimitsLeft {
    LimitsLeft {
        steps,
        tool_calls: 100,
        tokens: 1_000_000,
    }
}

#[test]
fn the_last_steps_are_for_the_report() {
    let written = report(&[("The Moon.", &[1])]);
    // One round takes six steps, and a second one would take four or five more.
    for steps in 6..=9 {
        let mut conversation = with_site()
            .limits(left(steps))
            .model_says(&plan(&["tides"]))
            .model_says(&note(1, "the Moon"))
            .model_says(&note(2, "twice a day"))
            .model_says(&written);
        let status = conversation.say(&deep(5));
        has(status.words(), "The Moon. [1]");
        has(
            status.words(),
            "ended early: the steps of the turn were nearly used up.",
        );
        assert_eq!(conversation.steps().len(), 6);
    }
    // Without a plan, the query itself is searched for.
    let mut conversation = with_site()
        .limits(left(5))
        .model_says(&note(1, "the Moon"))
        .model_says(&note(2, "twice a day"))
        .model_says(&written);
    has(conversation.say(&deep(1)).words(), "The Moon. [1]");
    // With less than a round, there is nothing to report on.
    let reason = failure(with_site().limits(left(4)).say(&deep(1)));
    has(
        &reason,
        "no source could be read: The research ended early: the steps",
    );
}

#[test]
fn a_limit_for_which_nothing_could_be_read_is_told_once() {
    let sources = ["http://site.test/moon", "http://site.test/coast"];
    let reason = failure(with_site().limits(left(2)).say(&deep_in(&sources)));
    assert_eq!(
        reason,
        "no source could be read: http://site.test/moon, http://site.test/coast: the steps of the \
         turn were nearly used up"
    );
}

#[test]
fn tokens_for_the_report_are_kept_and_what_they_do_not_cover_is_told() {
    let mut limits = left(50);
    limits.tokens = 26_000;
    let mut conversation = with_site()
        .limits(limits)
        .model_says(&note(1, "the Moon"))
        .model_says(&note(2, "twice a day"))
        .model_says(&report(&[("The Moon.", &[1])]));
    let status = conversation.say(&deep_in(&[
        "http://site.test/moon",
        "http://site.test/coast",
        "http://site.test/evil",
    ]));
    has(
        status.words(),
        "ended early: the tokens of the turn were nearly used up.",
    );
    has(
        status.words(),
        "[3] Evil – http://site.test/evil (read, not cited)",
    );
    limits.tokens = 1_000;
    let mut conversation = with_site().limits(limits);
    let status = conversation.say(&deep_in(&["http://site.test/moon"]));
    has(status.words(), "# Nothing was found");
    assert!(conversation.requests().is_empty());
}

#[test]
fn pages_beyond_the_last_tool_call_are_not_asked_for() {
    let mut limits = left(50);
    limits.tool_calls = 3;
    let mut conversation = with_site()
        .limits(limits)
        .model_says(&plan(&["tides"]))
        .model_says(&note(1, "the Moon"))
        .model_says(&report(&[("The Moon.", &[1])]));
    let status = conversation.say(&deep(1));
    has(status.words(), "The Moon. [1]");
    has(
        status.words(),
        "http://site.test/coast: the tool calls of the turn were used up",
    );
    assert_eq!(conversation.calls().len(), 3);
}

#[test]
fn nothing_but_notes_and_the_report_is_begun_when_the_time_is_over() {
    let late = Budget {
        left: left(50),
        is_late: true,
    };
    for what in [Begins::Plan, Begins::Search, Begins::Read] {
        assert_eq!(late.against(what), Some("its time was over"));
    }
    for what in [Begins::Note, Begins::Report] {
        assert_eq!(late.against(what), None);
    }
    // The page comes after twenty seconds, of ten.
    let has_waited = Cell::new(false);
    let mut conversation = Conversation::new(Researcher)
        .settings(json!({ "timeSeconds": 10 }))
        .tool("web_search", |_| Ok("[]".to_owned()))
        .tool("web_fetch", move |_| {
            Ok(if has_waited.replace(true) {
                Progress::Done(vec![Part::Text("It is the Moon.".to_owned())])
            } else {
                Progress::Later {
                    after_ms: 20_000,
                    state: Vec::new(),
                }
            })
        })
        .model_says(&plan(&["tides"]))
        .model_says(&note(1, "the Moon"))
        .model_says(&report(&[("The Moon.", &[1])]));
    let status = conversation.say(&deep_in(&["web", "http://site.test/slow"]));
    has(status.words(), "The Moon. [1]");
    has(
        status.words(),
        "The research ended early: its time was over.",
    );
}

#[test]
fn a_task_with_a_limit_of_its_own_reads_nothing_too_late_for_it() {
    let has_waited = Cell::new(false);
    let mut conversation = Conversation::new(Researcher)
        .tool("web_search", |_| Ok("[]".to_owned()))
        .tool("web_fetch", move |_| {
            Ok(if has_waited.replace(true) {
                Progress::Done(vec![Part::Text("It is the Moon.".to_owned())])
            } else {
                Progress::Later {
                    after_ms: 25_000,
                    state: Vec::new(),
                }
            })
        })
        .model_says(&plan(&["tides"]))
        .model_says(&note(1, "the Moon"))
        .model_says(&report(&[("The Moon.", &[1])]));
    let mut task: Value =
        serde_json::from_str(&deep_in(&["web", "http://site.test/slow"])).unwrap();
    task["timeoutMs"] = json!(30_000);
    let status = conversation.say(&task.to_string());
    has(status.words(), "The Moon. [1]");
    has(
        status.words(),
        "The research ended early: its time was over.",
    );
}

#[test]
fn notes_on_a_text_that_could_not_be_kept_are_left_out_and_it_is_told() {
    // Eight texts of control characters, each of which takes six bytes where it is kept.
    let texts: Vec<String> = (1..=8)
        .map(|number| format!("{number} ebb {}", "\u{1}".repeat(12_000)))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut conversation = Conversation::new(Researcher).limits(left(50));
    for number in 1..=8 {
        conversation = conversation.model_says(&note(number, "words of nobody"));
    }
    let status = conversation.say(&synthesis(&texts, "markdown"));
    has(status.words(), "# Nothing was found");
    has(status.words(), "was too long to be checked");
    assert!(!status.words().contains("words of nobody"));
}

#[test]
fn a_task_that_fails_leaves_those_that_wait_their_turn() {
    let bad = "this is no task";
    let good = synthesis(&["Now: ebb"], "markdown");
    let scene = Scene::new().said(bad).said(&good);
    let step = Researcher.step(scene.turn(), &[News::Said(vec![1, 2])]);
    assert!(matches!(step.decision, Decision::Wait(_)), "{step:?}");
    let reported = step.effects.iter().find_map(|effect| match effect {
        Effect::Say(parts) => Some(text_of(parts)),
        _ => None,
    });
    has(&reported.unwrap(), "A task failed: this is not a task");
    let scene = Scene::new().said(&good).said(bad);
    let step = Researcher.step(scene.turn(), &[News::Said(vec![2])]);
    assert!(matches!(step.decision, Decision::Fail(_)), "{step:?}");
}
