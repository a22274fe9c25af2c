//! Agents that talk: to each other's sessions, back to their callers, and never in a circle.

mod dispatches;

use agent_host_tests::process::{script, shows, tells};
use agent_host_tests::{Setup, World};
use domain::id::SessionId;
use domain::operation::Performer;
use domain::speaker::Speaker;
use domain::user::UserId;
use serde_json::{Value, json};
use std::time::Duration;

/// A model that asks the other agent what it is told to ask.
const ASKS: &str = r#"
[[rule]]
when = { last = "user", user = "^ask (.*)$", tools = ["agents_message"] }
reply = { calls = [{ tool = "agents_message", arguments = { agentId = "other", content = "$1" } }] }
"#;

/// A setup with a third puppet, in which agents may call each other so deep.
fn deep(call_depth_max: u32) -> Setup {
    let mut setup = Setup::default();
    setup.limits.dispatch.call_depth_max = call_depth_max;
    setup
        .definitions
        .push(json!({ "agentId": "third", "displayName": "Third", "component": "puppet" }));
    setup
}

fn says(reply: &str) -> String {
    script(&json!([{ "reply": reply }]))
}

/// Work that ends after the caller has gone on.
fn later(reply: &str) -> String {
    script(&json!([{ "start": [{ "key": "t", "timer": 1_200 }] }, { "reply": reply }]))
}

fn call(key: &str, tool: &str, arguments: &Value) -> Value {
    json!({ "key": key, "tool": tool, "args": arguments })
}

fn message(key: &str, to: &str, content: &str) -> Value {
    call(
        key,
        "agents_message",
        &json!({ "agentId": to, "content": content }),
    )
}

/// Sends a message with more arguments, and waits for its result.
async fn sent(world: &World, to: &str, content: &str, more: Value) -> Value {
    let steps = start(&[message_with(to, content, more)]);
    result(&world.play(steps).await, "m")
}

/// Work for another agent, that its caller waits for.
fn dispatch(key: &str, to: &str, content: &str) -> Value {
    let arguments = json!({ "target": to, "content": content, "wait": true });
    call(key, "dispatch_to_agent", &arguments)
}

fn message_with(to: &str, content: &str, mut more: Value) -> Value {
    more["agentId"] = json!(to);
    more["content"] = json!(content);
    call("m", "agents_message", &more)
}

fn start(operations: &[Value]) -> Value {
    json!([{ "until": "all", "start": operations }])
}

/// Returns the outcome of an operation, as the puppet reports it.
fn outcome<'a>(lines: &'a [String], key: &str) -> &'a str {
    let line = lines
        .iter()
        .find_map(|line| line.strip_prefix(&format!("{key} ")));
    line.unwrap_or_else(|| panic!("nothing about {key}: {lines:?}"))
}

/// The result of a message.
fn result(lines: &[String], key: &str) -> Value {
    let text = outcome(lines, key);
    serde_json::from_str(text.strip_prefix("parts ").unwrap_or(text))
        .unwrap_or_else(|_| panic!("no result: {text}"))
}

/// Everything that was said in a session, one line each.
async fn heard(world: &World, session: SessionId) -> String {
    world
        .messages(session)
        .await
        .iter()
        .map(|message| message.text() + "\n")
        .collect()
}

/// The session of the first turn that is not of this one.
async fn other_than(world: &World, session: SessionId) -> SessionId {
    let starts = world.starts().await;
    let mut sessions = starts.iter().map(|start| start.session);
    sessions.find(|other| *other != session).unwrap()
}

fn session_of(result: &Value) -> SessionId {
    result["sessionId"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_in_the_other_agents_own_session_which_is_found_again() {
    let world = World::new(Setup::default()).await;
    let first = sent(&world, "other", &says("hello"), json!({})).await;
    shows(
        &first,
        &json!({ "mode": "sync", "status": "complete", "agentId": "other" }),
    );
    shows(
        &first,
        &json!({ "response": "hello", "created": true, "toolCallCount": 0 }),
    );
    assert_eq!(first["sessionName"], first["sessionId"]);
    assert!(
        heard(&world, session_of(&first)).await.ends_with("hello\n"),
        "the response is stored in the target's session"
    );

    let second = sent(
        &world,
        "other",
        &says("again"),
        json!({ "session": "latest" }),
    )
    .await;
    shows(
        &second,
        &json!({ "sessionId": first["sessionId"], "created": false }),
    );
    let third = sent(
        &world,
        "other",
        &says("new"),
        json!({ "session": "create" }),
    )
    .await;
    assert_ne!(third["sessionId"], first["sessionId"]);
    let explicit =
        json!({ "agentId": "other", "content": says("here"), "session": first["sessionId"] });
    let fourth = result(
        &world
            .play(start(&[call("m", "agents_message", &explicit)]))
            .await,
        "m",
    );
    shows(
        &fourth,
        &json!({ "sessionId": first["sessionId"], "response": "here" }),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_nobody_or_into_no_session_is_refused_with_the_designs_code() {
    let world =
        World::with(|setup| setup.definitions[0]["agentDenylist"] = json!(["worker"])).await;
    let own = world.open("puppet").await;
    let to = |agent: &str, session: &str| {
        json!({
            "agentId": agent, "content": "x", "session": session,
        })
    };
    let reported_of = world
        .play(start(&[
            call("latest", "agents_message", &to("other", "latest")),
            call("nobody", "agents_message", &to("nobody", "create")),
            call("denied", "agents_message", &to("worker", "create")),
            call("foreign", "agents_message", &to("other", &own.to_string())),
            call(
                "gone",
                "agents_message",
                &to("other", "00000000-0000-4000-8000-000000000001"),
            ),
            call("words", "agents_message", &to("other", "newest")),
            call(
                "path",
                "dispatch_to_agent",
                &json!({ "target": "/ada/agent/puppet", "content": "x" }),
            ),
            call("caller", "reply_to_caller", &json!({ "content": "x" })),
        ]))
        .await;
    for (key, code) in [
        ("latest", "agent-session-error"),
        ("nobody", "agent-not-found"),
        ("denied", "agent-not-accessible"),
        ("foreign", "agent-session-error"),
        ("gone", "agent-session-error"),
        ("words", "agent-session-error"),
        ("path", "agent-not-found"),
        ("caller", "no-caller"),
    ] {
        assert!(
            outcome(&reported_of, key).starts_with(&format!("failed {code}: ")),
            "{key}: {reported_of:?}"
        );
    }
    let rules: Vec<String> = world
        .ledger()
        .await
        .iter()
        .flat_map(|entry| entry.decisions.iter().map(|it| it.rule.to_string()))
        .collect();
    assert!(
        rules.iter().any(|rule| rule == "agentDenylist"),
        "{rules:?}"
    );
}

/// A message that nobody waits for is told to have started before it is dealt with. Its answer is
/// stored in the target's session and comes as a message.
#[tokio::test(flavor = "multi_thread")]
async fn an_async_message_starts_at_once_and_its_answer_comes_as_a_message() {
    let (world, session) = World::with_puppet().await;
    let asked = message_with("other", &later("much later"), json!({ "mode": "async" }));
    world.play_in(session, &start(&[asked])).await;
    world.until(session, |row| row.revision >= 1).await;
    let reply = world.last_reply(session).await;
    let lines: Vec<String> = reply.lines().map(str::to_owned).collect();
    let reported = result(&lines, "m");
    let target = session_of(&reported);
    let input: domain::id::InputId = reported["responseId"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        reported,
        json!({
            "mode": "async", "status": "started", "agentId": "other", "sessionId": target,
            "sessionName": target, "created": true, "responseId": input,
        })
    );
    let row = world.row(target).await;
    assert_eq!(row.revision, 0, "it was told before there was an answer");
    let (accepted, _) = world.store().input(input).await.unwrap().unwrap();
    assert_eq!(accepted.session, target, "by its id the turn is found");
    world.quiet().await;
    assert!(
        heard(&world, target).await.ends_with("\nmuch later\n"),
        "the answer is stored in the target's session"
    );
    assert!(heard(&world, session).await.contains("\nmuch later\n"));
    let late = world.messages(session).await;
    let late = late.iter().find(|message| message.text() == "much later");
    let by = Some(Speaker::Agent {
        agent: "other".to_owned(),
        response_id: Some(input.to_string()),
    });
    assert_eq!(
        late.unwrap().said_by(),
        by,
        "it says which question it answers"
    );
    assert_eq!(
        world
            .starts()
            .await
            .iter()
            .filter(|start| start.session == session)
            .count(),
        2,
        "the answer is a turn of its own"
    );
}

/// The answer to an async message streams in for all who watch the target's session, as any does:
/// in chunks, before it is stored.
#[tokio::test(flavor = "multi_thread")]
async fn watchers_of_the_targets_session_see_the_answer_to_an_async_message_stream() {
    const ANSWER: &str = "hello from the model";
    let rule = format!("[[rule]]\nreply = {{ text = \"{ANSWER}\", delayMs = 250 }}\n");
    let world = World::new(Setup {
        script: rule,
        ..Setup::default()
    })
    .await;
    let mut watched = world.broker.live().join(|_, _| true);
    let asked = call(
        "m",
        "agents_message",
        &json!({ "agentId": "assistant", "content": "hello", "mode": "async" }),
    );
    let watching = async {
        let mut streamed = String::new();
        let mut seen = Vec::new();
        while streamed != ANSWER {
            let frame = watched.frames.recv().await.unwrap().frame;
            if let broker::Show::Text(text) = frame.show {
                streamed.push_str(&text);
                let stored = heard(&world, frame.session).await;
                seen.push((frame.session, stored.contains(ANSWER)));
            }
        }
        seen
    };
    let both = async { tokio::join!(world.play(start(&[asked])), watching) };
    let (lines, seen) = tokio::time::timeout(Duration::from_secs(30), both)
        .await
        .expect("the whole answer");
    let target = session_of(&result(&lines, "m"));
    assert!(
        seen.iter().all(|(session, _)| *session == target),
        "{seen:?}"
    );
    let early = seen.iter().filter(|(_, is_stored)| !is_stored);
    assert!(early.count() >= 2, "{seen:?}");
    world.quiet().await;
    assert!(
        heard(&world, target)
            .await
            .ends_with("hello from the model\n")
    );
}

/// A message is a user's message to the other agent, whose turn has that agent's own lists and not
/// its sender's.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_between_agents_is_a_users_message_in_the_targets_own_scope() {
    let mut setup = deep(1);
    setup.definitions[0]["toolAllowlist"] = json!(["agents_message"]);
    setup.definitions[5]["toolDenylist"] = json!(["put"]);
    let world = World::new(setup).await;
    let steps = json!([{ "start": [{ "key": "p", "tool": "put" }] }]);
    let own = world.play(steps.clone()).await;
    assert_eq!(outcome(&own, "p"), "denied", "the sender may not do it");
    assert_eq!(world.effects(), Vec::<String>::new());
    let denied = sent(&world, "third", &script(&steps), json!({})).await;
    assert_eq!(denied["response"], "p denied", "{denied}");
    assert_eq!(world.effects(), Vec::<String>::new());
    let done = sent(&world, "other", &script(&steps), json!({})).await;
    assert!(
        done["response"].as_str().unwrap().starts_with("p parts"),
        "{done}"
    );
    assert!(!world.effects().is_empty(), "the other agent may");
    let heard = world.messages(session_of(&done)).await;
    let first = heard.first().unwrap();
    assert_eq!(
        (first.role, first.text()),
        (domain::message::Role::User, script(&steps))
    );
}

/// A timeout of a message does not cancel the turn, which goes on in the target's session.
#[tokio::test(flavor = "multi_thread")]
async fn a_messages_timeout_does_not_cancel_the_turn_in_the_targets_session() {
    let (world, session) = World::with_puppet().await;
    let slow =
        script(&json!([{ "start": [{ "key": "t", "timer": 2_500 }] }, { "reply": "slowly" }]));
    let asked = message_with("other", &slow, json!({ "timeout": 1 }));
    world.play_in(session, &start(&[asked])).await;
    world.until(session, |row| row.revision >= 1).await;
    let lines: Vec<String> = world.report(session).await;
    let result = result(&lines, "m");
    shows(
        &result,
        &json!({ "status": "timeout", "timeoutSeconds": 1 }),
    );
    let target = session_of(&result);
    assert!(
        world.row(target).await.open_run.is_some(),
        "it is at work still"
    );
    world.quiet().await;
    assert!(heard(&world, target).await.ends_with("slowly\n"));
    assert!(
        heard(&world, session).await.contains("\nslowly\n"),
        "and the answer comes late"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_target_takes_the_message_as_a_turn_of_its_own_once_it_is_free() {
    let world = World::new(Setup::default()).await;
    let busy = world.open("other").await;
    world
        .say(
            "other",
            busy,
            &script(&json!([{ "start": [{ "key": "t", "timer": 700 }] }, { "reply": "first" }])),
        )
        .await;
    world.until(busy, |row| row.open_run.is_some()).await;
    let result = sent(
        &world,
        "other",
        &says("second"),
        json!({ "session": "latest" }),
    )
    .await;
    assert_eq!(
        (result["response"].as_str(), session_of(&result)),
        (Some("second"), busy)
    );
    let text = heard(&world, busy).await;
    assert!(
        text.find("first\n").unwrap() < text.find("second\n").unwrap(),
        "{text}"
    );
    assert_eq!(world.row(busy).await.revision, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_replied_to_early_in_its_own_terms() {
    let world = World::new(Setup::default()).await;
    let early = script(&json!([
        { "start": [call("r", "reply_to_caller", &json!({ "content": "early" }))] },
        { "reply": "late" },
    ]));
    let result = sent(&world, "other", &early, json!({})).await;
    shows(
        &result,
        &json!({ "status": "complete", "response": "early", "toolCallCount": 0 }),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_in_a_circle_of_any_length() {
    let world = World::new(deep(5)).await;
    let lines = world.play(start(&[message("m", "puppet", "x")])).await;
    assert!(
        outcome(&lines, "m").starts_with(
            "failed WAITS_FOR_CYCLE: `/local/agent/puppet` would wait for the session"
        ),
        "{lines:?}"
    );

    // Each asks the next in its own session, and the last asks the first.
    let back = script(&start(&[call(
        "c",
        "agents_message",
        &json!({ "agentId": "puppet", "content": "x", "session": "latest" }),
    )]));
    let onward = script(&start(&[message("b", "third", &back)]));
    let lines = world.play(start(&[message("a", "other", &onward)])).await;
    let text = outcome(&lines, "a");
    let chain = "`/local/agent/third` would wait for `/local/agent/puppet`, which waits for \
         `/local/agent/other`, which waits for `/local/agent/third`";
    assert!(
        text.contains("WAITS_FOR_CYCLE") && text.contains(chain),
        "{text}"
    );
    // Who does not wait closes no circle.
    let back = json!({
        "agentId": "puppet", "content": says("heard"), "session": "latest", "mode": "async",
    });
    let session = world.open("puppet").await;
    let asked = message(
        "a",
        "other",
        &script(&start(&[call("c", "agents_message", &back)])),
    );
    world.play_in(session, &start(&[asked])).await;
    world.quiet().await;
    let text = heard(&world, session).await;
    assert!(
        text.contains("\nheard\n") && !text.contains("WAITS_FOR_CYCLE"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_completed_once_whichever_side_is_cut_off() {
    let (mut world, session) = World::with_puppet().await;
    let slow = script(&json!([{ "start": [{ "key": "t", "timer": 1_500 }] }, { "reply": "once" }]));
    let early = script(&json!([
        { "start": [call("r", "reply_to_caller", &json!({ "content": "early" }))] },
        { "start": [{ "key": "t", "timer": 1_500 }] }, { "reply": "silence" },
    ]));
    let slowly = json!({
        "key": "d", "tool": "dispatch_to_agent",
        "args": { "target": "other", "content": early, "wait": true },
    });
    world
        .play_in(session, &start(&[message("m", "other", &slow), slowly]))
        .await;
    world.until(session, |row| row.open_run.is_some()).await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        world = world.restart(|_| ()).await;
    }
    world.idle(session).await;
    world.quiet().await;
    let lines: Vec<String> = world.report(session).await;
    assert_eq!(outcome(&lines, "d"), "parts early");
    assert_eq!(result(&lines, "m")["response"], json!("once"));
    assert_eq!(world.row(session).await.revision, 1, "nothing came twice");
    let handed = world
        .steps()
        .await
        .into_iter()
        .map(|stepped| stepped.started);
    let handed = handed
        .flatten()
        .filter(|operation| matches!(operation.performer, Performer::Agent { .. }))
        .count();
    assert_eq!((handed, world.starts().await.len()), (2, 3));
}

/// A session that a persona narrows has no way round it through another session of its agent.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_a_persona_narrows_has_no_way_round_it_through_its_agent() {
    let personas = vec![json!({
        "id": "narrow", "displayName": "Narrow", "agent": "puppet",
        "toolAllowlist": ["look", "agents_message"],
    })];
    let world = World::new(Setup {
        personas,
        ..Setup::default()
    })
    .await;
    world.create("puppet").await;
    let path = world.agent("puppet").await.row.agent.path;
    let puts = script(&json!([{ "start": [{ "key": "t", "tool": "put" }] }]));
    for named in ["puppet", path.as_str()] {
        let arguments = json!({ "agentId": named, "content": puts, "session": "create" });
        let posted = world
            .broker
            .messages()
            .post_routed(broker::PostRouted {
                to: broker::Address::Persona("narrow".parse().unwrap()),
                content: vec![domain::message::Part::text(script(&start(&[call(
                    "m",
                    "agents_message",
                    &arguments,
                )])))],
                model: None,
                queue: domain::queue::QueueOverride::default(),
                priority: None,
                labels: domain::message_labels::MessageLabels::default(),
                user: UserId::local(),
                idempotency_key: None,
            })
            .await;
        let broker::Routed::Accepted(accepted) = posted.unwrap() else {
            panic!("it was not accepted")
        };
        world.idle(accepted.session).await;
        let reply = world.last_reply(accepted.session).await;
        assert!(
            reply.starts_with("m failed agent-not-accessible"),
            "{named}: {reply}"
        );
    }
    assert_eq!(world.effects(), Vec::<String>::new());
}

/// A conversation is handed over with what it is about and comes back with a summary.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_handed_over_with_its_subject_and_comes_back_summarised() {
    let (world, session) = World::with_puppet().await;
    let first = json!({
        "agentId": "other", "content": says("what is it about?"), "session": "create",
        "mode": "async",
    });
    world
        .play_in(session, &start(&[call("m", "agents_message", &first)]))
        .await;
    world.quiet().await;
    let there = other_than(&world, session).await;
    // The user goes on there, and the result is reported where it began.
    let summary = json!({
        "agentId": "puppet", "content": says("in short: done"), "session": session.to_string(),
        "mode": "async",
    });
    let steps =
        json!([{ "start": [call("s", "agents_message", &summary)] }, { "reply": "that was all" }]);
    world.say("other", there, &script(&steps)).await;
    world.quiet().await;
    let text = heard(&world, there).await;
    tells(&text, &["what is it about?\n", "that was all\n"]);
    assert!(heard(&world, session).await.contains("\nin short: done\n"));
}

/// Agents of any component talk to each other, whether a model or the agent itself makes the call.
#[tokio::test(flavor = "multi_thread")]
async fn agents_of_any_component_talk_to_each_other_through_a_model_or_by_themselves() {
    let world = World::with(|setup| {
        setup.script.insert_str(0, ASKS);
        setup.definitions[2]["toolAllowlist"] = json!(["agents_message"]);
    })
    .await;
    let session = world.open("assistant").await;
    let reply = world
        .turn(
            "assistant",
            session,
            &format!("ask {}", says("as you wish")),
        )
        .await;
    tells(&reply, &[r#""status":"complete""#, "as you wish"]);
    let back = sent(&world, "assistant", "hello", json!({})).await;
    assert_eq!(back["response"], json!("hello from the model"));
}

/// A long answer is cut in a result that stays JSON. Its sender can read the whole, and the calls
/// behind it are named with their durations.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_stays_whole_in_a_blob_and_its_calls_are_named_with_their_times() {
    let long = "ä".repeat(30_000);
    let works = script(&json!([
        { "until": "all", "start": [
            { "key": "p", "tool": "put" },
            dispatch("w", "third", &later("done")),
        ] },
        { "reply": long },
    ]));
    let mut setup = deep(3);
    setup.script.insert_str(0, ASKS);
    setup.definitions[2]["toolAllowlist"] = json!(["agents_message"]);
    let world = World::new(setup).await;
    let session = world.open("assistant").await;
    world
        .turn("assistant", session, &format!("ask {works}"))
        .await;
    let messages = world.messages(session).await;
    let reported = messages
        .iter()
        .find(|message| message.answers.is_some())
        .expect("the result of the model's call");
    let domain::message::Part::Text { text } = &reported.parts[0] else {
        panic!("{reported:?}")
    };
    assert!(text.len() <= domain::limits::INLINE_TEXT_BYTES_MAX);
    let result: Value = serde_json::from_str(text).unwrap();
    shows(&result, &json!({ "status": "complete", "truncated": true }));
    let domain::message::Part::Blob { digest, size, .. } = &reported.parts[1] else {
        panic!("{reported:?}")
    };
    assert_eq!(
        result["blob"],
        json!({ "digest": digest.reference(), "bytes": size })
    );
    let whole = world.store().blob(*digest).await.unwrap().unwrap();
    assert_eq!(String::from_utf8(whole).unwrap(), long);
    // The calls of the other agent, each with its time.
    let calls = result["toolCalls"].as_array().unwrap();
    let names: Vec<&str> = calls
        .iter()
        .map(|call| call["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["put", "dispatch_to_agent"]);
    assert_eq!(result["toolCallCount"], 2);
    let waited = calls[1]["durationMs"].as_u64().unwrap();
    assert!(
        (1_200..result["durationMs"].as_u64().unwrap() + 1).contains(&waited),
        "{result}"
    );
}
