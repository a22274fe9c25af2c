//! Another catalogue while the host serves: a turn ends with the code and the tools that it began
//! with, the next one has the new ones, and what is granted counts at once.

use agent_host_tests::guests::wasm;
use agent_host_tests::process::tells;
use agent_host_tests::{Setup, World};
use domain::digest::Digest;
use domain::event::{ComponentAdmitted, Event};
use domain::id::Stream;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::EventFilter;

/// A program's bytes with a section at its end that says nothing: other code that does the same.
fn touched(name: &str) -> Vec<u8> {
    [wasm(name), vec![0, 2, 1, b'x']].concat()
}

/// The `effects`, whose tools end with `DONE` in place of `done`.
fn shouting_effects() -> Vec<u8> {
    let mut code = wasm("effects");
    let at = code
        .windows(5)
        .position(|bytes| bytes == b" done")
        .expect("the tool's words");
    code[at..at + 5].copy_from_slice(b" DONE");
    code
}

/// Serves other code under a name.
fn serve(setup: &mut Setup, name: &'static str, code: Vec<u8>) {
    setup.components.retain(|component| *component != name);
    setup.made.retain(|(component, _)| *component != name);
    setup.made.push((name, code));
}

/// A script that calls a tool, and again after a question.
fn before_and_after(tool: &str) -> Value {
    let call = |key: &str| json!({ "key": key, "tool": tool });
    json!({ "steps": [
        { "until": "all", "start": [call("first")] },
        { "until": "all", "start": [{ "key": "q", "client": "question" }] },
        { "until": "all", "start": [call("second")] },
    ] })
}

/// The code of the steps and of the calls of tools in a world's runs, one set for each run.
async fn codes(world: &World) -> Vec<(BTreeSet<Digest>, BTreeSet<Digest>)> {
    let mut all = Vec::new();
    for run in world.runs().await {
        let stream = Stream::Run(run);
        let events = world.store().stream(stream, 0, 1_000).await.unwrap();
        let mut of_steps = BTreeSet::new();
        let mut of_calls = BTreeSet::new();
        for event in events.into_iter().filter_map(|recorded| recorded.event) {
            of_steps.extend(event.step().map(|step| step.basis.documents.component));
            let of_tools = event.ledger().iter().filter(|entry| entry.tool.is_some());
            of_calls.extend(of_tools.filter_map(|entry| entry.code));
        }
        all.push((of_steps, of_calls));
    }
    all
}

/// The admissions of components, in order.
async fn admitted(world: &World) -> Vec<ComponentAdmitted> {
    let filter = EventFilter {
        ledger: true,
        ..EventFilter::default()
    };
    let events = world.store().events(0, filter, 100_000).await.unwrap();
    let admitted = events
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Some(Event::ComponentAdmitted(admitted)) => Some(admitted),
            _ => None,
        });
    admitted.collect()
}

/// Answers the open question of the puppet with yes, and returns its report.
async fn report(world: &World, session: domain::id::SessionId) -> String {
    let (call, _) = world.question("puppet", session).await;
    world.answer("puppet", call, json!("yes")).await.unwrap();
    world.idle(session).await;
    world.last_reply(session).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_ends_with_the_code_it_began_with_and_the_next_has_the_new() {
    let mut world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let script = before_and_after("look").to_string();
    world.say("puppet", session, &script).await;
    world.question("puppet", session).await;
    world
        .reload(|setup| {
            serve(setup, "puppet", touched("puppet"));
            serve(setup, "effects", shouting_effects());
        })
        .await;
    let reported = report(&world, session).await;
    assert!(
        reported.contains("look done") && !reported.contains("DONE"),
        "the turn that runs: {reported}"
    );
    world.say("puppet", session, &script).await;
    let reported = report(&world, session).await;
    assert!(
        reported.contains("look DONE") && !reported.contains("done"),
        "the next turn: {reported}"
    );
    let one = |code: &[u8]| BTreeSet::from([Digest::of(code)]);
    assert_eq!(
        codes(&world).await,
        [
            (one(&wasm("puppet")), one(&wasm("effects"))),
            (one(&touched("puppet")), one(&shouting_effects())),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_new_code_has_no_more_is_there_for_turns_from_before() {
    let mut world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let script = before_and_after("look").to_string();
    world.say("puppet", session, &script).await;
    world.question("puppet", session).await;
    world
        .reload(|setup| serve(setup, "effects", wasm("echo")))
        .await;
    let reported = report(&world, session).await;
    assert_eq!(reported.matches("look done").count(), 2, "{reported}");
    let played = world
        .play(json!([{ "start": [{ "key": "t", "tool": "look" }] }]))
        .await;
    assert!(
        played.concat().contains("there is no tool `look`"),
        "{played:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_taken_away_refuses_the_next_call_of_a_turn_under_way() {
    let mut world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let script = before_and_after("look").to_string();
    world.say("puppet", session, &script).await;
    world.question("puppet", session).await;
    world
        .reload(|setup| {
            // With other code, too: the old code gets what is granted now.
            serve(setup, "effects", shouting_effects());
            setup.change_grant = |name, grant| {
                if name == "effects" {
                    grant.directories.clear();
                }
            };
        })
        .await;
    let reported = report(&world, session).await;
    assert_eq!(reported.matches("look done").count(), 1, "{reported}");
    assert_eq!(world.effects().len(), 2, "the second call reached no file");
    // What is granted again counts for the next turn, and for this one within its ceiling.
    world.reload(|setup| setup.change_grant = |_, _| {}).await;
    let played = world
        .play(json!([{ "start": [{ "key": "t", "tool": "look" }] }]))
        .await;
    assert!(played.concat().contains("look DONE"), "{played:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_code_than_the_pinned_one_ends_a_turn_after_a_reload() {
    let mut world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let script = before_and_after("look").to_string();
    world.say("puppet", session, &script).await;
    world.question("puppet", session).await;
    world
        .reload(|setup| {
            serve(setup, "puppet", touched("puppet"));
            serve(setup, "effects", shouting_effects());
            setup.is_pinned = true;
        })
        .await;
    let reported = report(&world, session).await;
    tells(&reported, &["look done", "look DONE"]);
    let (steps, calls) = codes(&world).await.remove(0);
    let both = |a: &[u8], b: &[u8]| BTreeSet::from([Digest::of(a), Digest::of(b)]);
    assert_eq!(steps, both(&wasm("puppet"), &touched("puppet")));
    assert_eq!(calls, both(&wasm("effects"), &shouting_effects()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_served_anew_is_admitted_anew_and_nothing_else_is() {
    let mut world = World::new(Setup::default()).await;
    let before = admitted(&world).await.len();
    world.reload(|_| {}).await;
    assert_eq!(admitted(&world).await.len(), before, "nothing has changed");
    world
        .reload(|setup| serve(setup, "effects", shouting_effects()))
        .await;
    let admissions = admitted(&world).await;
    assert_eq!(admissions.len(), before + 1);
    let last = admissions.last().unwrap();
    assert_eq!(
        (last.component.as_str(), last.code, last.replaces),
        (
            "effects",
            Digest::of(&shouting_effects()),
            Some(Digest::of(&wasm("effects")))
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_were_counted_stay_counted_when_the_code_is_replaced() {
    let mut setup = Setup::default();
    setup.guest_limits.calls_per_minute_max = 20;
    let mut world = World::new(setup).await;
    let call = |number: usize| json!({ "key": format!("t{number}"), "tool": "look" });
    let some = |count: usize| {
        let calls: Vec<Value> = (0..count).map(call).collect();
        json!([{ "until": "all", "start": calls }])
    };
    let done = |played: &[String]| played.concat().to_lowercase().matches("look done").count();
    assert_eq!(done(&world.play(some(12)).await), 12);
    world
        .reload(|setup| {
            serve(setup, "effects", shouting_effects());
            setup.change_grant = |name, grant| {
                // The agent is not counted here.
                if name == "puppet" {
                    grant.limits.calls_per_minute_max = 10_000;
                }
            };
        })
        .await;
    assert_eq!(done(&world.play(some(12)).await), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_is_lost_while_code_is_replaced_again_and_again() {
    const SESSIONS: usize = 6;
    const ROUNDS: usize = 12;
    let mut world = World::new(Setup::default()).await;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(world.open("puppet").await);
    }
    let script = json!({ "steps": [
        { "until": "all", "start": [{ "key": "a", "tool": "look" }, { "key": "b", "timer": 5 }] },
        { "until": "all", "start": [{ "key": "c", "tool": "look" }] },
    ] })
    .to_string();
    for round in 0..ROUNDS {
        for session in &sessions {
            world.say("puppet", *session, &script).await;
        }
        world
            .reload(|setup| match round % 2 {
                0 => {
                    serve(setup, "puppet", touched("puppet"));
                    serve(setup, "effects", shouting_effects());
                }
                _ => {
                    serve(setup, "puppet", wasm("puppet"));
                    serve(setup, "effects", wasm("effects"));
                }
            })
            .await;
    }
    for session in &sessions {
        world.idle(*session).await;
        let replies: Vec<String> = world
            .messages(*session)
            .await
            .iter()
            .filter(|message| message.role == domain::message::Role::Assistant)
            .map(domain::message::Message::text)
            .collect();
        assert!(!replies.is_empty());
        for reply in &replies {
            let old = reply.matches("look done").count();
            let new = reply.matches("look DONE").count();
            assert!(
                old.min(new) == 0 && old.max(new) >= 2,
                "a turn has one code: {reply}"
            );
        }
    }
    for (steps, calls) in codes(&world).await {
        assert_eq!((steps.len(), calls.len()), (1, 1), "a turn has one code");
    }
}
