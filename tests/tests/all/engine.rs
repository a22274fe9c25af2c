//! The step engine: every kind of operation, alone and together, with any and all, cancel and hear.
//!
//! The number of commits, and therefore fsyncs, of a turn.

use agent_host_tests::{Setup, World};
use broker::{By, Respond, Target};
use domain::user::UserId;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_operation_settles() {
    let world = World::new(Setup::default()).await;
    let reported = world
        .play(json!([{ "until": "all", "start": [
            { "key": "timer", "timer": 20 },
            { "key": "tool", "tool": "look" },
            { "key": "model", "model": "be brief" },
            { "key": "hidden", "model": "be brief", "hidden": true },
            { "key": "recall", "recall": "zebra" },
            {
                "key": "agent", "agent": "other",
                "text": r#"{"steps":[{"reply":"from the other"}]}"#,
            },
        ] }]))
        .await;
    let mut reported: Vec<&str> = reported.iter().map(String::as_str).collect();
    reported.sort_unstable();
    assert_eq!(
        reported,
        [
            "agent parts from the other",
            "hidden parts hello from the model",
            "model message hello from the model",
            r#"recall value {"hits":[]}"#,
            "timer elapsed",
            "tool parts look done",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_waits_for_any_is_told_of_the_first_and_can_cancel_the_rest() {
    let world = World::new(Setup::default()).await;
    let reported = world
        .play(json!([
            { "start": [{ "key": "fast", "timer": 10 }, { "key": "slow", "timer": 3_600_000 }] },
            { "cancel": ["slow"], "start": [{ "key": "next", "timer": 10 }], "until": "all" },
        ]))
        .await;
    assert_eq!(reported, ["fast elapsed", "slow cancelled", "next elapsed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_hears_is_stepped_when_the_user_speaks() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let steps = json!([
        { "start": [{ "key": "long", "timer": 3_600_000 }], "hear": true },
        { "cancel": ["long"] },
    ]);
    world.play_in(session, &steps).await;
    world.until(session, |row| row.open_run.is_some()).await;
    assert_eq!(
        world.turn("puppet", session, "are you there?").await,
        "said are you there?\nlong cancelled"
    );
}

/// Returns the thread after its first message, when a message arrives before the first has its
/// reply.
async fn interrupted(world: &World) -> Vec<String> {
    let session = world.open("puppet").await;
    let steps = json!([
        { "start": [{ "key": "t", "tool": "look", "args": { "sleep": 400 } }] },
        { "reply": "first" },
    ]);
    world.play_in(session, &steps).await;
    world.until(session, |row| row.open_run.is_some()).await;
    world.turn("puppet", session, "one more thing").await;
    world
        .messages(session)
        .await
        .iter()
        .map(|message| message.text())
        .skip(1)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_arrive_while_a_reply_is_made_join_the_turn() {
    let world = World::new(Setup::default()).await;
    let texts = interrupted(&world).await;
    assert_eq!(
        texts,
        [
            "first",
            "one more thing",
            "t parts look done\nsaid one more thing"
        ]
    );
    assert_eq!(world.runs().await.len(), 1, "one turn, not two");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_a_turn_has_no_step_left_for_begin_the_next_one() {
    let definition = json!({
        "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
        "limits": { "stepsMax": 2 },
    });
    let world = World::new(Setup {
        definitions: vec![definition],
        ..Setup::default()
    })
    .await;
    let texts = interrupted(&world).await;
    assert_eq!(texts, ["first", "one more thing", "said one more thing"]);
    assert_eq!(
        world.runs().await.len(),
        2,
        "each has its turn, and neither failed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_can_ask_the_user_and_goes_on_with_the_answer() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "t", "tool": "asks" }] }]),
        )
        .await;
    let (call, action) = world.question("puppet", session).await;
    assert_eq!(action.widget, "question");
    assert!(
        world
            .answer("puppet", call, json!("not a boolean"))
            .await
            .is_err(),
        "the question stays open"
    );
    world.answer("puppet", call, json!(true)).await.unwrap();
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "t parts asked true");
    assert!(
        world.answer("puppet", call, json!(true)).await.is_err(),
        "one answer"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_sent_twice_leaves_the_next_question_of_a_tool_open() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "t", "tool": "asks_twice" }] }]),
        )
        .await;
    let (first, _) = world.question("puppet", session).await;
    world.answer("puppet", first, json!("one")).await.unwrap();
    let second = loop {
        let (call, _) = world.question("puppet", session).await;
        if call != first {
            break call;
        }
    };
    assert!(
        world.answer("puppet", first, json!("one")).await.is_err(),
        "that question was answered"
    );
    world.answer("puppet", second, json!("two")).await.unwrap();
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, r#"t parts second "two""#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_wants_to_remember_more_than_there_is_room_for_is_refused() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    // Three times what is a good part of 64 KiB: the third does not fit any more.
    for key in ["x", "y", "z"] {
        let keys = json!({ key: "-".repeat(24_000) });
        let steps = json!([{ "reply": "done", "effects": [{ "prefer_for_user": keys }] }]);
        world.played(session, &steps).await;
    }
    let row = world.idle(session).await;
    let agent = world
        .store()
        .agent_with_users(row.agent)
        .await
        .unwrap()
        .unwrap()
        .agent;
    let kept = agent.user_preferences.values().next().unwrap();
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["x", "y"]);
    let ledger = world.ledger().await;
    let refused = ledger
        .iter()
        .flat_map(|entry| &entry.decisions)
        .find(|decision| decision.detail.contains("65536"));
    assert!(refused.is_some(), "the ledger says why: {ledger:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_can_ask_to_be_called_again_later() {
    let world = World::new(Setup::default()).await;
    let reported = world
        .play(json!([{ "start": [{ "key": "t", "tool": "patient" }] }]))
        .await;
    assert_eq!(reported, ["t parts waited"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_is_kept_as_a_blob() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let steps = json!({
        "steps": [
            { "start": [{ "key": "m", "model": "x" }] }, { "start": [{ "key": "t", "call": 0 }] },
        ],
    });
    world.turn("puppet", session, &format!("{steps} ")).await;
    let reported = world
        .play(json!([{ "start": [{ "key": "t", "tool": "long" }] }]))
        .await
        .join("\n");
    assert!(
        reported.len() < 10_000 && reported.contains("the whole is sha256:"),
        "{}",
        reported.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_may_not_or_cannot_do_is_an_outcome_and_not_a_crash() {
    let world = World::new(Setup::default()).await;
    let reported = world
        .play(json!([{ "until": "all", "start": [
            { "key": "a", "tool": "no_such_tool" },
            { "key": "b", "agent": "nobody", "text": "x" },
            { "key": "c", "tool": "read_file", "args": { "path": 7 } },
            { "key": "d", "client": "" },
        ] }]))
        .await;
    assert!(
        reported[0].starts_with(
            "a failed TOOL_NOT_AVAILABLE: there is no tool `no_such_tool`; available are: "
        ),
        "{}",
        reported[0]
    );
    assert_eq!(
        reported[1],
        "b failed agent-not-found: there is no agent `nobody`"
    );
    assert!(
        reported[2].starts_with("c failed invalid-arguments: /path: "),
        "{}",
        reported[2]
    );
    assert!(
        reported[3].starts_with("d failed invalid-arguments: "),
        "{}",
        reported[3]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_tool_is_denied_whoever_asks() {
    let mut setup = Setup::default();
    setup.definitions[0]["toolDenylist"] = json!(["loo*"]);
    setup.definitions[0]["capabilityDenylist"] = json!(["files.write"]);
    let world = World::new(setup).await;
    let reported = world
        .play(json!([{
            "until": "all",
            "start": [{ "key": "a", "tool": "look" }, { "key": "b", "tool": "write_file" }],
        }]))
        .await;
    assert_eq!(reported, ["a denied", "b denied"]);
    assert!(world.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn non_idempotent_calls_run_one_after_the_other_and_reads_side_by_side() {
    let world = World::new(Setup::default()).await;
    let start = |tool: &str| -> Vec<_> {
        (0..3)
            .map(|n| json!({ "key": format!("{tool}{n}"), "tool": tool, "args": { "sleep": 100 } }))
            .collect()
    };
    world
        .play(json!([{ "until": "all", "start": start("send") }]))
        .await;
    let order = |lines: Vec<String>| -> Vec<String> {
        lines
            .iter()
            .map(|line| line.split(' ').nth(1).unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        order(world.effects()),
        ["begin", "end", "begin", "end", "begin", "end"]
    );
    let world = World::new(Setup::default()).await;
    world
        .play(json!([{ "until": "all", "start": start("look") }]))
        .await;
    assert_eq!(order(world.effects())[..2], ["begin", "begin"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_one_reply_gets_a_result() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    // The model asks for two calls; the agent makes one of them and asks the model again.
    let steps = json!([
        { "start": [{ "key": "m", "model": "x" }] },
        { "start": [{ "key": "t", "call": 0 }] },
        { "start": [{ "key": "m2", "model": "x" }] },
    ]);
    let asks = json!({ "steps": steps, "do": "call:look,put" }).to_string();
    world.turn("puppet", session, &asks).await;
    let messages = world.messages(session).await;
    let results: Vec<String> = messages
        .iter()
        .filter(|message| message.answers.is_some())
        .map(|message| message.text())
        .collect();
    assert_eq!(results, ["look done", "Skipped."]);
    assert!(domain::run::unpaired(&messages).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_dispatch_replies_with_a_message_of_its_own() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let other = r#"{"steps":[{"start":[{"key":"t","timer":50}]},{"reply":"late news"}]}"#;
    let steps = json!([
        { "start": [{ "key": "d", "agent": "other", "text": other, "detached": true }] },
        { "reply": "gone on" },
    ]);
    world.play_in(session, &steps).await;
    world.until(session, |row| row.revision == 2).await;
    let texts: Vec<String> = world
        .messages(session)
        .await
        .iter()
        .map(|message| message.text())
        .collect();
    assert!(
        texts.contains(&"gone on".to_owned()) && texts.contains(&"late news".to_owned()),
        "{texts:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispatch_that_takes_too_long_times_out_and_its_run_is_ended() {
    let world = World::new(Setup::default()).await;
    let other = r#"{"steps":[{"start":[{"key":"t","timer":3600000}]}]}"#;
    let reported = world
        .play(
            json!([{ "start": [{ "key": "d", "agent": "other", "text": other, "timeout": 150 }] }]),
        )
        .await;
    assert_eq!(reported, ["d timed-out"]);
    let runs = world.runs().await;
    let child = world.store().run(runs[1]).await.unwrap().unwrap();
    world
        .until(child.session, |row| row.open_run.is_none())
        .await;
}

/// The person answers when the time of the work would long be over. What the work still does has
/// the time that was left when it asked.
#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_handed_over_work_stands_still_while_a_person_is_asked() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let asks =
        json!([{ "start": [{ "key": "q", "client": "confirmation" }] }, { "reply": "thanks" }]);
    let other = json!({ "steps": asks }).to_string();
    let hand_over = json!({ "key": "d", "agent": "other", "text": other, "timeout": 1_500 });
    let steps = json!([{ "start": [hand_over] }]);
    world.play_in(session, &steps).await;
    let child = loop {
        if let [_, child] = world.runs().await[..] {
            break world.store().run(child).await.unwrap().unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    let worker = Target::Agent(child.agent);
    let question = loop {
        let view = world
            .broker
            .sessions()
            .get(&UserId::local(), &worker, child.session, None)
            .await
            .unwrap();
        if let Some(asking) = view.asking.into_iter().next() {
            break asking.tool_call_id;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    tokio::time::sleep(std::time::Duration::from_millis(4_000)).await;
    let respond = Respond {
        target: worker,
        call: question,
        session: None,
        response: json!({ "confirmed": true }),
        user: UserId::local(),
        idempotency_key: None,
    };
    world.broker.runs().respond(respond).await.unwrap();
    world.idle(session).await;
    let reported = world.last_reply(session).await;
    assert!(reported.contains("d parts thanks"), "{reported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_turn_cancels_what_it_handed_over() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let other = r#"{"steps":[{"start":[{"key":"t","timer":3600000}]}]}"#;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "d", "agent": "other", "text": other }] }]),
        )
        .await;
    let child = loop {
        if let [_, child] = world.runs().await[..] {
            break world.store().run(child).await.unwrap().unwrap().session;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    assert!(
        world
            .broker
            .runs()
            .cancel(
                By::from(&UserId::local()),
                &agent_host_tests::world::target("puppet"),
                session,
                None
            )
            .await
            .unwrap()
    );
    world.idle(session).await;
    world.until(child, |row| row.open_run.is_none()).await;
    assert_eq!(
        world.last_reply(session).await,
        "The turn was cancelled: User cancelled"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_ends_at_each_of_its_limits() {
    let mut setup = Setup::default();
    setup.definitions[0]["limits"] = json!({ "stepsMax": 2, "toolCallsMax": 1 });
    let world = World::new(setup).await;
    let tick = |n: u32| json!({ "start": [{ "key": format!("t{n}"), "timer": 1 }] });
    let reported = world.play(json!([tick(1), tick(2), tick(3)])).await;
    assert_eq!(
        reported,
        ["The turn failed: it took 2 steps, which is its limit (stepsMax)"]
    );
    let reported = world.play(json!([{
        "until": "all", "start": [{ "key": "a", "tool": "look" }, { "key": "b", "tool": "look" }],
    }])).await;
    assert!(
        reported.contains(
            &"b failed limit-reached: no tool calls are left of this turn's limit (toolCallsMax)"
                .to_owned()
        ),
        "{reported:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_tools_work_for_too_long_is_ended_while_they_work() {
    let mut setup = Setup::default();
    setup.definitions[0]["limits"] = json!({ "activeMsMax": 200 });
    let world = World::new(setup).await;
    let reported = world
        .play(json!([{ "start": [{ "key": "t", "tool": "look", "args": { "sleep": 15_000 } }] }]))
        .await;
    assert_eq!(
        reported,
        ["The turn failed: models and tools worked for 200 ms, which is its limit (activeMsMax)"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_are_stored_with_the_decision() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let effects = json!([
        { "say": "working on it" }, { "prefer": { "tone": "dry" } }, { "state": { "n": 1 } },
        { "remember": "the zebra is striped" }, { "emit": "noted" }, { "schedule": 30 },
    ]);
    world
        .play_in(
            session,
            &json!([
                { "effects": effects, "start": [{ "key": "t", "timer": 1 }] },
                { "reply": "done" },
            ]),
        )
        .await;
    // The reminder comes as a message of its own.
    let row = world.until(session, |row| row.revision == 2).await;
    assert_eq!(
        world.store().blob(row.state).await.unwrap().unwrap(),
        br#"{"n":1}"#
    );
    let agent = world.store().agent(row.agent).await.unwrap().unwrap().agent;
    assert_eq!(agent.preferences["tone"], "dry");
    let hits = world
        .store()
        .recall(row.agent, None, "zebra", 5)
        .await
        .unwrap();
    assert!(hits.iter().any(|hit| hit.text.contains("striped")));
    let texts: Vec<String> = world
        .messages(session)
        .await
        .iter()
        .map(|message| message.text())
        .collect();
    assert_eq!(texts[1..4], ["working on it", "done", "reminder"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_user_model_and_reply_takes_three_commits_and_five_events() {
    let world = World::new(Setup::default()).await;
    let session = world.open("assistant").await;
    let position = *world.store().durable().borrow();
    let before = world.store().stats();
    world.turn("assistant", session, "hello").await;
    let after = world.store().stats();
    let events = world
        .store()
        .events(position, store::EventFilter::default(), 100);
    let events = events.await.unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "session.input.accepted.v1",
            "run.started.v1",
            "run.stepped.v1",
            "run.ended.v1",
            "session.turn.committed.v1",
        ]
    );
    assert_eq!(after.commits - before.commits, 3, "accept, start, end");
    assert_eq!(
        after.transactions - before.transactions,
        3,
        "each is a transaction of its own, and so one fsync"
    );
    assert_eq!(world.last_reply(session).await, "hello from the model");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_call_adds_one_commit_and_a_non_idempotent_one_two() {
    let world = World::new(Setup::default()).await;
    for (tool, extra) in [("look", 1), ("send", 2)] {
        let session = world.open("puppet").await;
        let before = world.store().stats();
        world
            .played(
                session,
                &json!([{ "start": [{ "key": "t", "tool": tool }] }]),
            )
            .await;
        let after = world.store().stats();
        assert_eq!(
            after.commits - before.commits,
            2 + extra,
            "{tool}: accept, start, end and {extra} more"
        );
    }
}
