//! Turns under way while the configuration changes: they keep what they began with, less what was
//! taken away.

use agent_host_tests::process::tells;
use agent_host_tests::{Setup, World};
use broker::{Address, By, Catalogue, Fork, PostRouted, Reload, Routed, Settings, Target};
use domain::digest::Digest;
use domain::event::ReloadCause;
use domain::grant::PatternList;
use domain::id::SessionId;
use domain::message::Part;
use domain::queue::QueueOverride;
use domain::user::UserId;
use serde_json::{Value, json};
use std::sync::Arc;

/// Serves other settings, as a configuration of this name.
async fn serve(world: &World, name: &str, change: impl FnOnce(&mut Settings)) {
    let mut settings = world.broker.configuration().settings();
    change(&mut settings);
    let catalogue = Catalogue::clone(&world.broker.catalogue());
    let reload = Reload {
        catalogue: catalogue.read_from(Digest::of(name.as_bytes())),
        settings,
        because: ReloadCause::Request,
        user: None,
        differences: Vec::new(),
        needs_restart: Vec::new(),
    };
    world.broker.configuration().reload(reload).await.unwrap();
}

/// Begins a turn that asks a question before it does something, and returns its session.
async fn begun(world: &World, then: &Value) -> SessionId {
    let session = world.open("puppet").await;
    begun_in(world, session, then).await
}

/// The same, in a session that is there.
async fn begun_in(world: &World, session: SessionId, then: &Value) -> SessionId {
    let script = json!([
        { "until": "all", "start": [{ "key": "q", "client": "question" }] },
        { "until": "all", "start": [then] },
    ]);
    world.play_in(session, &script).await;
    world.question("puppet", session).await;
    session
}

/// Answers the question, and returns the report.
async fn ended(world: &World, session: SessionId) -> String {
    let (call, _) = world.question("puppet", session).await;
    world.answer("puppet", call, json!("yes")).await.unwrap();
    world.idle(session).await;
    world.last_reply(session).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_under_way_keeps_its_limits_less_what_was_taken_away() {
    let call = json!({ "key": "d", "agent": "other", "text": r#"{"steps":[{"reply":"deep"}]}"# });
    for (before, after) in [(1, 0), (0, 1), (1, 2)] {
        let world = World::with(|setup| setup.limits.dispatch.call_depth_max = before).await;
        let session = begun(&world, &call).await;
        serve(&world, "other", |settings| {
            settings.limits.dispatch.call_depth_max = after;
        })
        .await;
        let may_call = |max: u32, reported: &str| {
            let refused = reported.contains("0 deep and no deeper");
            assert_eq!(refused, max == 0, "{reported}");
            assert_eq!(reported.contains("d parts deep"), max > 0, "{reported}");
        };
        may_call(before.min(after), &ended(&world, session).await);
        let next = begun(&world, &call).await;
        may_call(after, &ended(&world, next).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_taken_away_is_asked_no_more_and_a_new_one_by_new_turns_alone() {
    let world = World::with(|setup| setup.definitions[0]["model"] = json!("deep")).await;
    let call = json!({ "key": "m", "model": "be brief" });
    let models = |models: Value| {
        let config = json!({ "models": models, "defaultModel": "m" });
        serde_json::from_value::<llm::Config>(config).unwrap()
    };
    let plain = json!({ "provider": "scripted", "model": "m" });
    let both = models(json!({ "m": plain, "deep": { "provider": "scripted", "model": "deep" } }));
    let one = models(json!({ "m": plain }));
    let serve_models = |name: &'static str, config: llm::Config| {
        serve(&world, name, move |settings| {
            settings.gateway = Arc::new(settings.gateway.successor(config).unwrap());
        })
    };
    let session = begun(&world, &call).await;
    serve_models("one", one).await;
    let reported = ended(&world, session).await;
    assert!(reported.contains("m denied"), "taken away: {reported}");
    let session = begun(&world, &call).await;
    serve_models("both", both).await;
    let reported = ended(&world, session).await;
    assert!(
        reported.contains("m denied"),
        "not there when it began: {reported}"
    );
    let session = begun(&world, &call).await;
    let reported = ended(&world, session).await;
    let replied = reported.contains("m message hello from the model");
    assert!(replied, "there again: {reported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_became_the_default_is_not_for_turns_whose_default_is_gone() {
    let world = World::new(Setup::default()).await;
    let call = json!({ "key": "m", "model": "be brief" });
    let session = begun(&world, &call).await;
    serve(&world, "new", |settings| {
        let config = json!({
            "models": { "new": { "provider": "scripted", "model": "new" } },
            "defaultModel": "new",
        });
        let config = serde_json::from_value(config).unwrap();
        settings.gateway = Arc::new(settings.gateway.successor(config).unwrap());
    })
    .await;
    let reported = ended(&world, session).await;
    tells(&reported, &["m denied"]);
    let next = begun(&world, &call).await;
    let reported = ended(&world, next).await;
    tells(&reported, &["m message hello from the model"]);
}

/// A way to have another agent work: the request, and what its outcome says.
struct DelegationRoute {
    request: Value,
    /// The words where the agent worked.
    worked: &'static str,
    /// The words where a rule was against it.
    denied: &'static str,
    /// The words where there was no such agent.
    unknown: &'static str,
}

/// The ways to reach the other agent or the worker: the agent's own dispatch, and the host's tools.
fn routes() -> [DelegationRoute; 3] {
    let heard = r#"{"steps":[{"reply":"heard"}]}"#;
    let tool =
        |name: &str, arguments: Value| json!({ "key": "d", "tool": name, "args": arguments });
    [
        DelegationRoute {
            request: json!({ "key": "d", "agent": "other", "text": heard }),
            worked: "d parts heard",
            denied: "d denied",
            unknown: "d failed agent-not-found",
        },
        DelegationRoute {
            request: tool(
                "agents_message",
                json!({ "agentId": "other", "content": heard }),
            ),
            worked: "heard",
            denied: "d failed agent-not-accessible",
            unknown: "d failed agent-not-found",
        },
        DelegationRoute {
            request: tool(
                "delegate",
                json!({
                    "target": "worker", "operation": "list_files",
                    "parameters": { "path": "/data" },
                }),
            ),
            worked: r#""success":true"#,
            denied: r#""code":"NOT_ALLOWED""#,
            unknown: r#""code":"AGENT_UNAVAILABLE""#,
        },
    ]
}

/// Returns what a request came to in a turn that began before a change, and in the next one.
async fn across(setup: Setup, change: fn(&mut Setup), request: &Value) -> [String; 2] {
    let mut world = World::new(setup).await;
    let session = begun(&world, request).await;
    world.reload(change).await;
    let before = ended(&world, session).await;
    let session = begun(&world, request).await;
    [before, ended(&world, session).await]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_under_way_reaches_no_agent_that_it_is_allowed_since() {
    for route in routes() {
        let mut listed = Setup::default();
        listed.definitions[0]["agentAllowlist"] = json!(["tutor"]);
        let more_listed: fn(&mut Setup) = |setup| {
            setup.definitions[0]["agentAllowlist"] = json!(["*"]);
        };
        let mut denied = Setup::default();
        denied.definitions[0]["agentDenylist"] = json!(["other", "worker"]);
        let none_denied: fn(&mut Setup) = |setup| {
            setup.definitions[0]["agentDenylist"] = json!([]);
        };
        let granted = Setup {
            change_grant: |name, grant| {
                if name == "puppet" {
                    grant.agents = PatternList(vec!["tutor".to_owned()]);
                }
            },
            ..Setup::default()
        };
        let more_granted: fn(&mut Setup) = |setup| setup.change_grant = |_, _| {};
        for (setup, change) in [
            (listed, more_listed),
            (denied, none_denied),
            (granted, more_granted),
        ] {
            let [before, after] = across(setup, change, &route.request).await;
            tells(&before, &[route.denied]);
            tells(&after, &[route.worked]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_added_or_shown_is_there_for_the_next_turn_alone() {
    for route in routes() {
        let mut setup = Setup::default();
        setup
            .definitions
            .retain(|it| it["agentId"] != "other" && it["agentId"] != "worker");
        // Another target, so that the turn has the tool that leads to targets.
        setup.definitions.push(json!({
            "agentId": "researcher", "displayName": "Researcher", "component": "puppet",
        }));
        let add: fn(&mut Setup) = |setup| {
            let all = Setup::default().definitions.into_iter();
            let added = all.filter(|it| it["agentId"] == "other" || it["agentId"] == "worker");
            setup.definitions.extend(added);
        };
        let [before, after] = across(setup, add, &route.request).await;
        tells(&before, &[route.unknown]);
        tells(&after, &[route.worked]);
    }
    let [dispatch, message, _] = routes();
    for route in [dispatch, message] {
        let mut setup = Setup::default();
        setup.definitions[1]["uiVisible"] = json!(false);
        let show: fn(&mut Setup) = |setup| setup.definitions[1]["uiVisible"] = json!(true);
        let [before, after] = across(setup, show, &route.request).await;
        tells(&before, &[route.denied]);
        tells(&after, &[route.worked]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_taken_away_is_taken_from_a_turn_under_way_too() {
    for route in routes() {
        let take: fn(&mut Setup) = |setup| {
            setup.definitions[0]["agentDenylist"] = json!(["other", "worker"]);
        };
        let [before, after] = across(Setup::default(), take, &route.request).await;
        tells(&before, &[route.denied]);
        tells(&after, &[route.denied]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_larger_window_is_for_the_next_turn_alone() {
    let request = json!({ "key": "m", "model": "many words ".repeat(4_000) });
    let mut setup = Setup::default();
    setup.definitions[0]["contextWindowSize"] = json!(2_000);
    let widen: fn(&mut Setup) = |setup| {
        setup.definitions[0]["contextWindowSize"] = json!(100_000);
    };
    let [before, after] = across(setup, widen, &request).await;
    tells(&before, &["m failed model-prompt-too-long"]);
    tells(&after, &["hello from the model"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longer_message_timeout_is_for_the_next_turn_alone() {
    let script = r#"
[[rule]]
reply = { text = "it took its time", firstDelayMs = 2500 }
"#;
    let mut setup = Setup {
        script: script.to_owned(),
        ..Setup::default()
    };
    setup.definitions[0]["messageTimeout"] = json!(1);
    let mut world = World::new(setup).await;
    let request = json!({ "key": "m", "model": "be brief" });
    let session = begun(&world, &request).await;
    world
        .reload(|setup| setup.definitions[0]["messageTimeout"] = json!(60))
        .await;
    let (call, _) = world.question("puppet", session).await;
    world.answer("puppet", call, json!("yes")).await.unwrap();
    world.idle(session).await;
    let said = json!(world.messages(session).await).to_string();
    assert!(!said.contains("it took its time"), "{said}");
    let next = begun(&world, &request).await;
    let reported = ended(&world, next).await;
    tells(&reported, &["it took its time"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_names_its_configuration_and_each_change_is_on_record() {
    let world = World::new(Setup::default()).await;
    let first = world.broker.configuration().digest();
    let steps = json!([{ "start": [{ "key": "t", "tool": "look" }] }]);
    world.play(steps.clone()).await;
    serve(&world, "other", |_| {}).await;
    let second = world.broker.configuration().digest();
    world.play(steps.clone()).await;
    // The same again is no change, and on no record.
    serve(&world, "other", |_| {}).await;
    world.play(steps).await;
    let starts = world.starts().await;
    let under: Vec<Digest> = starts.iter().map(|it| it.configuration).collect();
    assert_eq!(under, [first, second, second]);
    let filter = store::EventFilter::default();
    let events = world.store().events(0, filter, 10_000).await.unwrap();
    let changes = events
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Some(domain::event::Event::ConfigReloaded(change)) => {
                Some((change.replaces, change.configuration))
            }
            _ => None,
        });
    assert_eq!(changes.collect::<Vec<_>>(), [(first, second)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persona_that_is_narrowed_or_gone_permits_less_to_its_turn_under_way() {
    let guide = |denied: Value| {
        json!({
            "id": "guide", "displayName": "Guide", "agent": "puppet", "toolDenylist": denied,
        })
    };
    let script = json!({ "steps": [
        { "until": "all", "start": [{ "key": "first", "tool": "look" }] },
        { "until": "all", "start": [{ "key": "q", "client": "question" }] },
        { "until": "all", "start": [{ "key": "second", "tool": "look" }] },
    ] });
    for after in [vec![guide(json!(["look"]))], Vec::new()] {
        let setup = Setup {
            personas: vec![guide(json!([]))],
            ..Setup::default()
        };
        let mut world = World::new(setup).await;
        let posted = world
            .broker
            .messages()
            .post_routed(PostRouted {
                to: Address::Persona("guide".parse().unwrap()),
                content: vec![Part::text(script.to_string())],
                model: None,
                queue: QueueOverride::default(),
                priority: None,
                labels: domain::message_labels::MessageLabels::default(),
                user: UserId::local(),
                idempotency_key: None,
            })
            .await;
        let Routed::Accepted(accepted) = posted.unwrap() else {
            panic!("it was not accepted")
        };
        let session = accepted.session;
        world.question("puppet", session).await;
        world.reload(|setup| setup.personas = after).await;
        let reported = ended(&world, session).await;
        assert_eq!(reported.matches("look done").count(), 1, "{reported}");
        assert_eq!(world.effects().len(), 2, "the second call reached no file");
    }
}

/// The code of a command's refusal.
fn code<T: std::fmt::Debug>(answer: Result<T, broker::Error>) -> &'static str {
    match answer {
        Err(broker::Error::Refused(refusal)) => refusal.code.as_str(),
        other => panic!("it is not refused: {other:?}"),
    }
}

/// The end of a turn whose definition is gone.
const GONE: &str = "The turn failed: the definition `puppet` is no longer configured";

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_a_definition_that_is_gone_end_though_they_wait_and_no_words_are_taken() {
    let mut world = World::new(Setup::default()).await;
    let asking = begun(&world, &json!({ "key": "t", "tool": "look" })).await;
    let (call, _) = world.question("puppet", asking).await;
    let waiting = world.open("puppet").await;
    let long = json!([{ "start": [{ "key": "t", "timer": 600_000 }] }]);
    world.play_in(waiting, &long).await;
    world.until(waiting, |row| row.open_run.is_some()).await;
    let structured = world.open_as("tutor", Some("learning")).await;
    world.question("tutor", structured).await;
    let goes = ["puppet", "tutor"];
    world
        .reload(|setup| {
            setup
                .definitions
                .retain(|definition| goes.iter().all(|id| definition["agentId"] != *id));
        })
        .await;
    for session in [asking, waiting] {
        let row = world.until(session, |row| row.open_run.is_none()).await;
        assert_eq!(row.status, store::SessionStatus::Open);
        assert_eq!(world.last_reply(session).await, GONE);
    }
    let row = world.until(structured, |row| row.open_run.is_none()).await;
    assert_eq!(row.status, store::SessionStatus::Terminated);
    let agent = world.store().agent(row.agent).await.unwrap().unwrap();
    assert_eq!(agent.agent.active_session, None, "its slot is free");

    // Who answers or says something now is told, and nothing of it is kept.
    let puppet = world.until(asking, |_| true).await.agent;
    let target = Target::Agent(puppet);
    let answer = broker::Respond {
        target: target.clone(),
        call,
        session: None,
        response: json!("yes"),
        user: UserId::local(),
        idempotency_key: None,
    };
    assert_eq!(
        code(world.broker.runs().respond(answer).await),
        "DEFINITION_GONE"
    );
    let words = broker::PostMessage {
        target,
        ..world.message("puppet", asking, "hello", None)
    };
    let said = world.broker.messages().post(words).await;
    assert_eq!(code(said), "DEFINITION_GONE");
    let by_address = world
        .broker
        .messages()
        .post_routed(PostRouted {
            to: Address::Session(asking),
            content: vec![Part::text("hello")],
            model: None,
            queue: QueueOverride::default(),
            priority: None,
            labels: domain::message_labels::MessageLabels::default(),
            user: UserId::local(),
            idempotency_key: None,
        })
        .await;
    assert_eq!(code(by_address), "DEFINITION_GONE");
    let row = world.idle(asking).await;
    assert_eq!(row.waiting, 0);
    let dead = world.store().dead_inputs(None, 10).await.unwrap();
    assert!(dead.is_empty(), "{dead:?}");

    // A definition that is there again leads them again.
    world
        .reload(|setup| setup.definitions = Setup::default().definitions)
        .await;
    let next = begun_in(&world, asking, &json!({ "key": "t", "tool": "look" })).await;
    assert!(ended(&world, next).await.contains("look done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_session_of_a_definition_that_is_gone_is_forked() {
    let (mut world, session) = World::with_puppet().await;
    let script = json!([{ "reply": "hello" }]);
    world.play_in(session, &script).await;
    let target = Target::Agent(world.idle(session).await.agent);
    let me = UserId::local();
    let fork = async |world: &World| {
        world
            .broker
            .transcripts()
            .fork(By::from(&me), &target, session, Fork::default())
            .await
    };
    assert!(fork(&world).await.is_ok());
    world
        .reload(|setup| {
            setup
                .definitions
                .retain(|definition| definition["agentId"] != "puppet");
        })
        .await;
    assert_eq!(code(fork(&world).await), "DEFINITION_GONE");
}
