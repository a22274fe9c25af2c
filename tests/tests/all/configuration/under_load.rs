//! Turns while the file changes all the time, between two configurations that are right and one
//! that is wrong.

use super::{config, first_of, play, put, session, started, stored, text_of};
use agent_host_tests::repeats;
use domain::digest::Digest;
use domain::event::Event;
use domain::id::RunId;
use domain::turn::TurnEnd;
use futures::future::join_all;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::sleep;

/// Sessions with turns at the same time.
const SESSIONS: usize = 6;
/// Turns in all: what a run of the tests has time for, and what `./x nightly` makes.
const TURNS: usize = 60;
const TURNS_WHOLE: usize = 1_000;
/// The time between two changes of the file.
const CHANGE_EVERY: Duration = Duration::from_millis(100);

/// One of the two configurations that are right. Both allow what the turns do, and differ in each
/// kind of key.
fn right(is_first: bool) -> Value {
    let of = |first: Value, second: Value| if is_first { first } else { second };
    let tools = of(json!(["look", "put"]), json!(["look", "send"]));
    let mut config = config(
        &tools,
        &json!({
            "models": {
                "m": { "provider": "scripted", "model": "m" },
                "n": { "provider": "scripted", "model": "n" },
            },
            "defaultModel": of(json!("m"), json!("n")),
            "limits": { "hopsMax": of(json!(3), json!(4)) },
        }),
    );
    config["agents"][0]["model"] = of(json!("m"), json!("n"));
    config["agents"][0]["limits"] = json!({ "stepsMax": of(json!(41), json!(42)) });
    config
}

/// The one that is wrong, and that would refuse what the turns do.
fn wrong() -> Value {
    let mut config = config(&json!([]), &json!({ "defaultModel": "nobody" }));
    config["agents"][0]["limits"] = json!({ "stepsMax": 1 });
    config
}

/// The steps, the model and the tools of a turn, as its start records them.
type Under = (u32, String, Digest);

/// Returns the records of the turns of each configuration, after a look at each of their steps.
fn under(events: &[Event]) -> BTreeMap<Digest, BTreeSet<Under>> {
    let mut by_configuration: BTreeMap<Digest, BTreeSet<Under>> = BTreeMap::new();
    let mut tools: BTreeMap<RunId, Digest> = BTreeMap::new();
    for event in events {
        match event {
            Event::RunStarted(started) => {
                let configuration = started.configuration.expect("the configuration");
                let shown = started.resolved_config.expect("what it is shown").tools;
                tools.insert(started.run, shown);
                by_configuration.entry(configuration).or_default().insert((
                    started.limits.steps_max,
                    started.model.clone().unwrap_or_default(),
                    shown,
                ));
            }
            Event::RunStepped(stepped) => {
                assert_eq!(
                    stepped.basis.tools, tools[&stepped.run],
                    "each step is shown what its turn began with"
                );
            }
            _ => {}
        }
    }
    by_configuration
}

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_runs_under_one_whole_while_the_file_changes_all_the_time() {
    let turns = if repeats::is_whole() {
        TURNS_WHOLE
    } else {
        TURNS
    };
    let (folder, host) = started(right(true)).await;
    let texts = [right(true), wrong(), right(false), wrong()].map(text_of);
    let changing = async {
        for text in texts.iter().cycle().skip(1) {
            sleep(CHANGE_EVERY).await;
            put(&folder, text);
            // Besides the looks at the file.
            host.signal(Signal::HUP);
        }
    };
    let steps = json!([
        { "until": "all", "start": [
            { "key": "a", "tool": "look" }, { "key": "t", "timer": 150 },
        ] },
        { "until": "all", "start": [{ "key": "b", "tool": "look" }] },
    ]);
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(session(&host).await);
    }
    let talking = async {
        let talks = sessions.iter().map(|session| async {
            for _ in 0..turns.div_ceil(SESSIONS) {
                let told = play(&host, session, &steps).await;
                assert_eq!(told.matches("look done").count(), 2, "{told}");
            }
        });
        join_all(talks).await;
    };
    tokio::select! {
        () = changing => {}
        () = talking => {}
    }
    assert!(host.stop().await.success());
    let events = stored(&folder.data()).await;
    let under = under(&events);
    assert_eq!(
        under.len(),
        2,
        "two configurations were in force: {under:?}"
    );
    let of_first = first_of(&events).expect("a change");
    for (configuration, seen) in &under {
        let is_first = *configuration == of_first;
        let wanted = if is_first { (41, "m") } else { (42, "n") };
        assert_eq!(seen.len(), 1, "a configuration is one whole: {seen:?}");
        for (steps, model, _) in seen {
            assert_eq!((*steps, model.as_str()), wanted);
        }
    }
    let mut changes = 0;
    let mut ended = 0;
    for event in &events {
        match event {
            Event::ConfigReloaded(change) => {
                changes += 1;
                for of in [change.configuration, change.replaces] {
                    assert!(
                        under.contains_key(&of),
                        "the wrong one took effect: {change:?}"
                    );
                }
            }
            Event::RunEnded(run) => {
                ended += 1;
                assert_eq!(run.end, TurnEnd::Replied, "{run:?}");
            }
            _ => {}
        }
    }
    assert!(changes >= 4, "{changes} changes");
    assert!(ended >= turns, "{ended} turns");
}
