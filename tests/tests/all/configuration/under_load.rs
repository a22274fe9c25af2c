//! Turns while the file changes all the time, between two configurations that are right and one
//! that is wrong.

use super::{config, first_of, put, stored, text_of};
use agent_host_tests::process::{Folder, Host, Session};
use agent_host_tests::repeats;
use domain::digest::Digest;
use domain::event::{ConfigRefused, Event, ReloadCause, RunStarted};
use domain::id::RunId;
use domain::turn::TurnEnd;
use futures::future::join_all;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// Sessions with turns at the same time.
const SESSIONS: usize = 6;
/// Turns in all: what a run of the tests has time for, and what `./x nightly` makes.
const TURNS: usize = 60;
const TURNS_WHOLE: usize = 1_000;
/// Changes of the file while there are turns, at least.
const CHANGES_MIN: usize = 96;
/// Number of changes of the file that the host is told of by a signal, and of those after them that
/// it has to find by itself. It looks seldom while it is told.
const SIGNALLED: usize = 12;

/// The agent that both configurations let the puppet reach, and that which one of them does.
const BOTH: &str = "both";
const ONE: [&str; 2] = ["left", "right"];
/// The same of tools.
const TOOL: [&str; 2] = ["put", "send"];
/// The replies of the model of each.
const SAYS: [&str; 2] = ["I am one", "I am two"];
/// Work that a turn of each may hand over at once.
const AT_ONCE: [usize; 2] = [2, 3];
/// The steps that a turn of each may take.
const STEPS: [u32; 2] = [41, 42];

/// The time between two changes of the file: 100 ms, but in no step with the host.
fn pause(number: usize) -> Duration {
    Duration::from_millis(60 + (number as u64 * 37 % 9) * 10)
}

/// One of the two configurations that are right. They differ in each kind of key, and both allow
/// the part of a turn that [`check`] wants done.
fn right(which: usize) -> Value {
    let models = json!({ "provider": format!("p{which}"), "model": "m" });
    let rules = |which: usize| json!({ "kind": "scripted", "script": format!("{which}.toml") });
    let mut config = config(
        &json!(["look", "agents_message", TOOL[which]]),
        &json!({
            "providers": { "p0": rules(0), "p1": rules(1) },
            "models": { "m": models },
            "defaultModel": "m",
            "limits": { "childrenMax": AT_ONCE[which], "treeDispatchesMax": 1_000 },
        }),
    );
    config["agents"][0]["limits"] = json!({ "stepsMax": STEPS[which] });
    config["agents"][0]["agentAllowlist"] = json!([BOTH, ONE[which]]);
    let others = [BOTH, ONE[0], ONE[1]].map(|id| {
        json!({
            "agentId": id, "displayName": id, "component": "puppet",
            "maxConcurrentMessages": 10_000,
        })
    });
    if let Some(agents) = config["agents"].as_array_mut() {
        agents.extend(others);
    }
    config
}

/// The one that is wrong, and that would refuse what the turns do.
fn wrong() -> Value {
    let mut config = config(&json!([]), &json!({ "defaultModel": "nobody" }));
    config["agents"][0]["limits"] = json!({ "stepsMax": 1 });
    config
}

/// The steps of a turn: it asks its model, calls tools, says something to agents, and hands over
/// more at once than one of the configurations permits.
fn steps() -> Value {
    let replies = |words: &str| json!({ "steps": [{ "reply": words }] }).to_string();
    let tool = |key: &str, name: &str| json!({ "key": key, "tool": name });
    let message = |key: &str, agent: &str| {
        let args = json!({ "agentId": agent, "content": replies(&format!("{agent} heard")) });
        json!({ "key": key, "tool": "agents_message", "args": args })
    };
    let hand_over = |key: &str| json!({ "key": key, "agent": BOTH, "text": replies("heard") });
    json!([
        { "until": "all", "start": [
            tool("a", "look"), { "key": "t", "timer": 150 }, { "key": "m", "model": "be brief" },
        ] },
        { "until": "all", "start": [
            tool("b", "look"), tool("tool0", TOOL[0]), tool("tool1", TOOL[1]),
            message("agent0", ONE[0]), message("agent1", ONE[1]),
        ] },
        { "until": "all", "start": [hand_over("c0"), hand_over("c1"), hand_over("c2")] },
    ])
}

/// A turn as its user saw it: the id of the message, and the puppet's report.
struct LoadTally {
    input: String,
    reported: String,
}

/// Has the puppet play the steps.
async fn turn(host: &Host, session: &str) -> LoadTally {
    let words = json!({ "content": json!({ "steps": steps() }).to_string() });
    let said = host
        .post(&format!("{session}/messages?wait_s=60"), &words)
        .await;
    let reported = said.body.pointer("/reply/text").and_then(Value::as_str);
    LoadTally {
        input: said.text("input_id"),
        reported: reported.unwrap_or_else(|| panic!("{said:?}")).to_owned(),
    }
}

/// Checks that a turn under one of the configurations did what both allow, and nothing that the
/// other one alone allows. Returns the number of calls that its own alone allows and that were
/// made: each is refused while the other one is in force.
fn check(seen: &LoadTally, which: usize) -> usize {
    let LoadTally { reported, .. } = seen;
    assert_eq!(reported.matches("look done").count(), 2, "{reported}");
    let says = format!("m message {}", SAYS[which]);
    assert!(reported.contains(&says), "{says}: {reported}");
    for key in ["c0", "c1"] {
        let both = reported.contains(&format!("{key} parts heard"));
        assert!(both, "both allow two at once: {reported}");
    }
    if AT_ONCE[which] == 2 {
        assert!(!reported.contains("c2 parts heard"), "{reported}");
    }
    let of = |which: usize| {
        [
            format!("{} done", TOOL[which]),
            format!("{} heard", ONE[which]),
        ]
    };
    for words in of(1 - which) {
        assert!(!reported.contains(&words), "{words}: {reported}");
    }
    of(which)
        .iter()
        .filter(|words| reported.contains(words.as_str()))
        .count()
}

/// The configuration of a turn's start, and all that its agent is shown and may take.
type Under = (Digest, u32, String);

/// Returns under what the puppet's turn of each message ran, after an inspection of each of its
/// steps.
fn under(events: &[Event]) -> BTreeMap<String, Under> {
    let mut by_input = BTreeMap::new();
    let mut tools: BTreeMap<RunId, Digest> = BTreeMap::new();
    for event in events {
        if let Event::RunStarted(started) = event {
            let shown = started.resolved_config;
            tools.insert(started.run, shown.tools);
            if started.definition.0 == "puppet" {
                by_input.extend(of_inputs(started, json!(shown).to_string()));
            }
        }
        if let Some(step) = event.step() {
            assert_eq!(
                step.basis.documents.tools, tools[&step.run],
                "each step is shown what its turn began with"
            );
        }
    }
    by_input
}

fn of_inputs(started: &RunStarted, shown: String) -> Vec<(String, Under)> {
    let configuration = started.configuration;
    let under = (configuration, started.limits.steps_max, shown);
    let inputs = started.claimed.iter();
    inputs
        .map(|input| (input.to_string(), under.clone()))
        .collect()
}

/// Checks the records of changes and refusals: one of the two is in force at all times.
fn check_changes(events: &[Event], right: &BTreeSet<Digest>) {
    let mut changes = 0;
    let mut refused: Vec<&ConfigRefused> = Vec::new();
    for event in events {
        match event {
            Event::ConfigReloaded(change) => {
                changes += 1;
                for of in [change.configuration, change.replaces] {
                    assert!(right.contains(&of), "the wrong one took effect: {change:?}");
                }
            }
            Event::ConfigRefused(refusal) => {
                assert!(right.contains(&refusal.configuration), "{refusal:?}");
                assert!(refusal.reason.contains("nobody"), "{refusal:?}");
                refused.push(refusal);
            }
            _ => {}
        }
    }
    assert!(changes >= 8, "{changes} changes");
    assert!(
        refused.len() * 2 >= changes,
        "the wrong one was read: {} refusals, {changes} changes",
        refused.len()
    );
    for because in [ReloadCause::File, ReloadCause::Signal] {
        let is_read = refused.iter().any(|refusal| refusal.because == because);
        assert!(is_read, "the wrong one was read: {because:?}");
    }
}

/// A host under the first of the configurations, and the sessions in which there are turns. The
/// agents that are talked to are there already.
async fn started() -> (Folder, Host, Vec<Session>) {
    let folder = Folder::new(right(0));
    for (which, says) in SAYS.iter().enumerate() {
        let rules = format!("[[rule]]\nreply.text = \"{says}\"\n");
        std::fs::write(folder.path().join(format!("{which}.toml")), rules).unwrap();
    }
    folder.warm(&["puppet", "effects"]).await;
    let host = folder.serve().await;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(host.open("puppet").await);
    }
    let first = turn(&host, &sessions[0]).await;
    assert_eq!(
        check(&first, 0),
        2,
        "all that it allows: {}",
        first.reported
    );
    (folder, host, sessions)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_runs_under_one_whole_while_the_file_changes_all_the_time() {
    let turns = if repeats::is_whole() {
        TURNS_WHOLE
    } else {
        TURNS
    };
    let (folder, host, sessions) = started().await;
    let texts = [right(0), wrong(), right(1), wrong()].map(text_of);
    let changed = AtomicUsize::new(0);
    let changing = async {
        for (number, text) in texts.iter().cycle().enumerate().skip(1) {
            sleep(pause(number)).await;
            put(&folder, text);
            if (number / SIGNALLED).is_multiple_of(2) {
                host.signal(Signal::HUP);
            }
            changed.store(number, Ordering::Relaxed);
        }
    };
    let line = &host;
    let so_often = &changed;
    let talking = join_all(sessions.iter().map(|session| async move {
        let mut seen = Vec::new();
        while seen.len() < turns.div_ceil(SESSIONS)
            || so_often.load(Ordering::Relaxed) < CHANGES_MIN
        {
            seen.push(turn(line, session).await);
        }
        seen
    }));
    let seen: Vec<LoadTally> = tokio::select! {
        () = changing => Vec::new(),
        seen = talking => seen.into_iter().flatten().collect(),
    };
    assert!(host.stop().await.success());
    assert!(seen.len() >= turns, "{} turns", seen.len());

    let events = stored(&folder.data()).await;
    let of_first = first_of(&events).expect("a change");
    let under = under(&events);
    let all: BTreeSet<&Under> = under.values().collect();
    assert_eq!(all.len(), 2, "each configuration is one whole: {all:?}");
    let mut made = 0;
    for seen in &seen {
        let (configuration, steps, _) = &under[&seen.input];
        let which = usize::from(*configuration != of_first);
        assert_eq!(*steps, STEPS[which], "{}", seen.reported);
        made += check(seen, which);
    }
    assert!(made > 0, "what one alone allows is done under it");
    check_changes(&events, &all.iter().map(|(digest, ..)| *digest).collect());
    for event in &events {
        if let Event::RunEnded(run) = event {
            assert_eq!(run.end, TurnEnd::Replied, "{run:?}");
        }
    }
}
