//! The harness: that it behaves as the host does, and finds out plugins that break a rule.

use crate::harness::{Conversation, ConversationStatus, Reply, Scene, logged};
use crate::{
    Agent, CallContext, ClientAction, Description, Dispatch, Effect, IntoProgress, Item, Memo,
    MessageId, ModelRequest, News, Operation, Outcome, PastSession, Progress, Settlement, Step,
    Tool, Tools, Turn, log,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::Cell;

/// An agent that is one function.
struct By<F>(F);

impl<F: Fn(Turn<'_>, &[News]) -> Step> Agent for By<F> {
    fn describe(&self) -> Description {
        Description::new("by", "By", "Is one function.")
            .leads("quiz")
            .reads_memo(1)
    }

    fn step(&self, turn: Turn<'_>, news: &[News]) -> Step {
        (self.0)(turn, news)
    }
}

fn by<F: Fn(Turn<'_>, &[News]) -> Step>(step: F) -> Conversation<By<F>> {
    Conversation::new(By(step))
}

fn settled(news: &[News]) -> Vec<&Settlement> {
    news.iter()
        .filter_map(|item| {
            if let News::Settled(settlement) = item {
                Some(settlement)
            } else {
                None
            }
        })
        .collect()
}

fn keys(news: &[News]) -> String {
    settled(news)
        .iter()
        .map(|settlement| settlement.key.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

fn is_said(news: &[News]) -> bool {
    matches!(news.first(), Some(News::Said(_)))
}

#[test]
fn until_all_brings_every_outcome_at_once_and_until_any_one_after_the_other() {
    let both = || {
        Step::start([
            Operation::timer_ms("late", 20),
            Operation::timer_ms("soon", 10),
        ])
    };
    let all = by(move |_, news| {
        if is_said(news) {
            both()
        } else {
            Step::reply(keys(news))
        }
    })
    .say("go");
    assert_eq!(all.words(), "soon late");
    let any = by(move |_, news| {
        if is_said(news) {
            both().until_any()
        } else {
            Step::reply(keys(news))
        }
    })
    .say("go");
    assert_eq!(any.words(), "soon");
}

#[test]
fn timers_move_the_clock_and_are_never_early() {
    let mut conversation = by(|turn, news| match is_said(news) {
        true => Step::start([Operation::timer_ms("nap", 5_000)])
            .with_memo(Memo::json(1, &turn.now_ms())),
        false => {
            Step::reply((turn.now_ms() - turn.memo().unwrap().read::<u64>().unwrap()).to_string())
        }
    });
    assert_eq!(conversation.say("sleep").words(), "5000");
}

#[test]
fn a_delegate_can_be_raced_against_a_timer() {
    let race = |_: Turn<'_>, news: &[News]| match settled(news).first() {
        None => {
            let ask = Operation::agent("ask", Dispatch::to("oracle", "why?"));
            Step::start([Operation::timer_ms("patience", 10), ask]).until_any()
        }
        Some(Settlement {
            outcome: Outcome::Parts(parts),
            ..
        }) => Step::reply(parts.clone()),
        Some(other) => Step::fail(other.outcome.to_string()),
    };
    assert_eq!(
        by(race)
            .peer("oracle", |question| format!("{question} because"))
            .say("go")
            .words(),
        "why? because"
    );
    assert_eq!(
        by(race).say("go"),
        ConversationStatus::Failed("the call is not allowed".to_owned())
    );
}

#[test]
fn an_open_operation_can_be_cancelled() {
    let mut conversation = by(|_, news| match keys(news).as_str() {
        "" => Step::start([
            Operation::timer_ms("short", 1),
            Operation::timer_ms("long", 99),
        ])
        .until_any(),
        "short" => Step::start([]).cancelling("long"),
        _ => Step::reply(settled(news)[0].outcome.to_string()),
    });
    assert_eq!(conversation.say("go").words(), "the call was cancelled");
}

/// A turn that hears is stepped with the user's words; one that does not keeps them for its end.
#[test]
fn a_turn_that_hears_is_stepped_with_the_users_words_and_another_at_its_end() {
    let question = || Operation::client("name", ClientAction::free_text("Your name?"));
    let ask = move |hear: bool| {
        by(
            move |turn: Turn<'_>, news: &[News]| match (news.first(), turn.head()) {
                (Some(News::Said(_)), Some(1)) if hear => Step::start([question()]).hearing(),
                (Some(News::Said(_)), Some(1)) => Step::start([question()]),
                (Some(News::Said(_)), _) => Step::reply("I hear you."),
                _ => Step::reply("Thanks."),
            },
        )
    };
    let mut hears = ask(true);
    assert!(matches!(hears.say("hi"), ConversationStatus::Asking(_)));
    assert_eq!(hears.say("wait").words(), "I hear you.");
    let mut deaf = ask(false);
    deaf.say("hi");
    assert!(matches!(deaf.say("wait"), ConversationStatus::Asking(_)));
    assert_eq!(deaf.answer(json!({ "text": "Ann" })).words(), "I hear you.");
    assert_eq!(
        deaf.transcript(),
        [
            "user: hi",
            "user: wait",
            "assistant: Thanks.",
            "assistant: I hear you."
        ]
    );
}

#[test]
fn words_that_waited_are_heard_by_the_next_wait_that_hears() {
    let mut conversation = by(|turn, news| match (news.first(), turn.head()) {
        (Some(News::Said(_)), Some(1)) => Step::start([Operation::client(
            "deaf",
            ClientAction::confirmation("Sure?"),
        )]),
        (Some(News::Said(ids)), _) => Step::reply(turn.message(ids[0]).unwrap().text()),
        _ => Step::start([Operation::client(
            "hears",
            ClientAction::confirmation("Really?"),
        )])
        .hearing(),
    });
    conversation.say("go");
    assert!(matches!(
        conversation.say("wait"),
        ConversationStatus::Asking(_)
    ));
    assert_eq!(
        conversation.answer(json!({ "confirmed": true })).words(),
        "wait"
    );
}

#[test]
fn a_question_can_stay_open_for_too_long_or_be_withdrawn() {
    let ask = || {
        by(|_, news| match settled(news).first() {
            None => Step::start([Operation::client("q", ClientAction::confirmation("Sure?"))]),
            Some(settlement) => Step::reply(settlement.outcome.to_string()),
        })
    };
    let mut late = ask();
    late.say("go");
    assert_eq!(
        late.time_out().words(),
        "the call took too long and was stopped"
    );
    let mut withdrawn = ask();
    withdrawn.say("go");
    assert_eq!(withdrawn.withdraw().words(), "the call was cancelled");
}

#[test]
fn a_reminder_begins_a_turn_of_its_own_when_its_time_comes() {
    let mut conversation = by(|turn, news| match news {
        [News::Said(ids)] if turn.message(ids[0]).unwrap().origin == "reminder" => {
            Step::reply(turn.now_ms().to_string())
        }
        _ => Step::reply("later").with(Effect::Schedule {
            after_ms: 5,
            content: "now".to_owned(),
        }),
    });
    assert_eq!(conversation.say("go").words(), "later");
    assert_eq!(conversation.remind().words(), "1700000000005");
}

#[test]
fn what_is_remembered_of_a_user_is_among_the_preferences_from_then_on() {
    let mut conversation = by(|turn, _| {
        let known: Value = turn.preferences().unwrap();
        Step::reply(format!("{} of {}", known["level"], turn.user()))
            .prefer_for_user(json!({ "level": 2 }))
            .remember("Level 2 now.")
    })
    .preferences(json!({ "level": 1 }))
    .user("ann");
    assert_eq!(conversation.say("one").words(), "1 of ann");
    assert_eq!(conversation.say("two").words(), "2 of ann");
    assert_eq!(
        (conversation.preferred(), conversation.notes().len()),
        (&json!({ "level": 2 }), 2)
    );
}

/// Memory that holds for all is apart from the user's; a mentee's is kept for them alone.
#[test]
fn shared_memory_is_apart_from_the_users_and_a_mentees_is_kept_for_them_alone() {
    let conversation = || {
        by(|turn, _| {
            let all: Value = turn.shared_preferences().unwrap();
            let mine: Value = turn.preferences().unwrap();
            Step::reply(format!("{} {}", all["topic"], mine["topic"]))
                .prefer(json!({ "topic": "tides" }))
        })
        .shared_preferences(json!({ "topic": "sums" }))
    };
    let mut colleague = conversation();
    assert_eq!(colleague.say("one").words(), r#""sums" "sums""#);
    assert_eq!(colleague.say("two").words(), r#""tides" "tides""#);
    let mut mentee = conversation().for_mentee();
    mentee.say("one");
    assert_eq!(mentee.say("two").words(), r#""sums" "tides""#);
    assert_eq!(
        (mentee.preferred_for_all(), mentee.preferred()),
        (&json!({ "topic": "sums" }), &json!({ "topic": "tides" }))
    );
}

#[test]
fn what_others_did_is_told_apart_from_what_the_user_did_and_a_mentee_sees_their_own() {
    let past = |user_id: &str| PastSession {
        session_id: "00000000-0000-4000-8000-000000000009".to_owned(),
        user_id: user_id.to_owned(),
        session_type: "learning".to_owned(),
        status: "completed".to_owned(),
        reason: None,
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        completed_at: "2026-01-01T00:10:00Z".to_owned(),
        items: 1,
        summary: Value::Null,
    };
    let counts = || {
        by(|turn, _| {
            Step::reply(format!(
                "{} of {}",
                turn.own_history().len(),
                turn.history().len()
            ))
        })
        .user("bob")
    };
    assert_eq!(
        counts()
            .past_session(past("alice"))
            .past_session(past(""))
            .say("?")
            .words(),
        "1 of 2"
    );
    assert_eq!(
        counts()
            .for_mentee()
            .past_session(past("alice"))
            .past_session(past("bob"))
            .say("?")
            .words(),
        "1 of 1"
    );
}

#[test]
fn a_hidden_reply_is_read_as_what_its_schema_describes() {
    let read = || {
        by(|_, news| match settled(news).first() {
            None => Step::start([Operation::model(
                "m",
                ModelRequest::new(Vec::new())
                    .hidden()
                    .replying_with(json!({ "type": "number" })),
            )]),
            Some(settlement) => Step::reply(
                settlement
                    .reply::<f64>()
                    .map_or_else(|why| why, |number| number.to_string()),
            ),
        })
    };
    assert_eq!(read().model_says(" 0.5\n").say("go").words(), "0.5");
    assert!(
        read()
            .model_says("half")
            .say("go")
            .words()
            .starts_with("the reply cannot be read: ")
    );
    let failing = read()
        .model_replies(Reply::failure("model-unavailable", "no answer"))
        .say("go");
    assert_eq!(failing.words(), "no answer (model-unavailable)");
}

#[test]
fn effects_show_up_where_they_belong() {
    let mut conversation = by(|turn, _| {
        let turns: u32 = turn.state().unwrap();
        Step::done()
            .say("hello")
            .keep(json!(turns + 1))
            .with(Effect::Prefer(json!({ "colour": "blue" })))
    });
    conversation.say("one");
    assert_eq!(conversation.say("two").words(), "hello");
    assert_eq!(conversation.state(), &json!(2));
    assert_eq!(
        conversation.transcript(),
        [
            "user: one",
            "assistant: hello",
            "user: two",
            "assistant: hello"
        ]
    );
}

#[test]
fn a_memo_ends_with_its_turn() {
    let mut conversation = by(|turn, news| match (is_said(news), turn.memo()) {
        (true, None) => {
            Step::start([Operation::timer_ms("t", 1)]).with_memo(Memo::json(1, &"kept"))
        }
        (false, Some(memo)) => Step::reply(memo.read::<String>().unwrap()),
        (_, memo) => Step::fail(format!("{memo:?}")),
    });
    assert_eq!(conversation.say("one").words(), "kept");
    assert_eq!(conversation.say("two").words(), "kept");
}

#[test]
fn what_can_be_recalled_is_what_the_test_says() {
    let mut conversation = by(|_, news| match settled(news).first() {
        None => Step::start([Operation::recall("r", "birthday", 1)]),
        Some(Settlement {
            outcome: Outcome::Value(found),
            ..
        }) => Step::reply(found["hits"][0]["text"].as_str().unwrap()),
        Some(other) => Step::fail(format!("{other:?}")),
    })
    .recalls(json!({ "text": "It is in May." }));
    assert_eq!(conversation.say("when?").words(), "It is in May.");
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

struct Slow;

impl Tools for Slow {
    fn tools(&self) -> Vec<Tool> {
        let run = |call: &CallContext, _: Nothing| match (call.resumed.as_deref(), &call.answer) {
            (None, _) => Ok(Progress::Later {
                after_ms: 1_000,
                state: vec![1],
            }),
            (Some(_), None) => Ok(Progress::Ask {
                action: ClientAction::confirmation("Sure?"),
                state: vec![2],
            }),
            (Some(_), Some(answer)) => answer.to_string().into_progress(),
        };
        vec![Tool::new("slow", "Takes its time, then asks.", run)]
    }
}

struct Plain;

impl Agent for Plain {
    fn describe(&self) -> Description {
        Description::new("plain", "Plain", "The loop and nothing else.")
    }
}

#[test]
fn a_real_tool_goes_through_its_segments() {
    let mut conversation = Conversation::new(Plain)
        .tools(&Slow)
        .model_calls("slow", &json!({}))
        .model_says("Done.");
    assert_eq!(conversation.say("go").question().props["prompt"], "Sure?");
    assert_eq!(
        conversation.answer(json!({ "confirmed": true })).words(),
        "Done."
    );
    assert_eq!(conversation.transcript()[2], r#"tool: {"confirmed":true}"#);
}

#[test]
fn a_log_line_is_kept_once_although_steps_are_run_twice() {
    let mut conversation = by(|_, _| {
        log::info("thinking");
        Step::done()
    });
    conversation.say("go");
    assert_eq!(logged(), [(log::Level::Info, "thinking".to_owned())]);
}

#[test]
#[should_panic(expected = "the same step, run again, came to something else")]
fn a_step_that_is_not_reproducible_is_found_out() {
    let count = Cell::new(0);
    by(move |_, _| {
        count.set(count.get() + 1);
        Step::reply(count.get().to_string())
    })
    .say("go");
}

#[test]
#[should_panic(expected = "the key `again` was used in this turn before")]
fn a_key_that_is_used_twice_is_found_out() {
    by(|_, _| Step::start([Operation::timer_ms("again", 1)])).say("go");
}

#[test]
#[should_panic(expected = "waits for ever")]
fn a_wait_for_nothing_is_found_out() {
    by(|_, _| Step::start([])).say("go");
}

#[test]
#[should_panic(
    expected = "the widget `free_text` cannot be shown: props.prompt: a text is needed, there is \
                none"
)]
fn a_widget_that_the_host_would_refuse_is_found_out() {
    by(|_, _| {
        Step::start([Operation::client(
            "q",
            ClientAction::new("free_text", json!({})),
        )])
    })
    .say("go");
}

#[test]
#[should_panic(
    expected = "the item names the operation `q`, which asked the user nothing in this turn"
)]
fn an_item_that_nobody_asked_is_found_out() {
    let item = Item {
        prompt: json!("?"),
        response: Value::Null,
        evaluation: None,
        asked: Some("q".to_owned()),
    };
    by(move |_, _| Step::done().record(item.clone())).say("go");
}

#[test]
#[should_panic(expected = "is not among those that the description lists")]
fn a_memo_that_no_version_could_read_is_found_out() {
    by(|_, _| {
        Step::done().with_memo(Memo {
            format: 7,
            bytes: Vec::new(),
        })
    })
    .say("go");
}

#[test]
#[should_panic(expected = "message 1 has no call 0")]
fn a_call_that_the_model_never_made_is_found_out() {
    by(|_, _| Step::start([Operation::call_of_model("c", 1, 0)])).say("go");
}

#[test]
#[should_panic(expected = "no reply is scripted for the model's call 1")]
fn a_script_that_is_too_short_says_so() {
    Conversation::new(Plain).say("go");
}

#[test]
#[should_panic(expected = "the agent leads only")]
fn a_session_type_that_the_agent_does_not_lead_is_found_out() {
    let _ = Conversation::new(Plain).session_type("quiz");
}

#[test]
fn an_agent_that_never_ends_runs_out_of_steps() {
    let mut conversation =
        by(|turn, _| Step::start([Operation::timer_ms(format!("t{}", turn.left().steps), 1)]));
    assert_eq!(
        conversation.say("go"),
        ConversationStatus::Failed("the turn's steps are used up".to_owned())
    );
}

#[test]
fn settings_that_do_not_fit_say_where() {
    #[derive(Debug, Default, Deserialize)]
    struct Settings {
        #[expect(dead_code, reason = "only read by serde")]
        tone: String,
    }
    let scene = Scene::new().settings(json!({ "tone": 3 }));
    let error = scene.turn().settings::<Settings>().unwrap_err();
    let Step { decision, .. } = Step::fail_with(&error);
    let reason = "the settings cannot be read: invalid type: integer `3`, expected a string";
    assert_eq!(decision, crate::Decision::Fail(reason.to_owned()));
}

#[test]
fn a_blob_is_read_in_pieces() {
    let scene = Scene::new().blob("sha256:00", b"abcdef");
    assert_eq!(
        scene.turn().read_blob("sha256:00", 2, 3),
        Some(b"cde".to_vec())
    );
    assert_eq!(scene.turn().read_blob("sha256:00", 9, 3), Some(Vec::new()));
    assert_eq!(scene.turn().read_blob("sha256:11", 0, 3), None);
}

#[test]
fn an_opening_reaches_the_agent_without_words() {
    let ids: fn(&[News]) -> Vec<MessageId> = |news| match news {
        [News::Said(ids)] => ids.clone(),
        _ => Vec::new(),
    };
    let mut conversation = by(move |_, news| Step::complete(json!(ids(news)))).session_type("quiz");
    assert_eq!(
        conversation.open(),
        ConversationStatus::Completed(Value::Array(Vec::new()))
    );
}
