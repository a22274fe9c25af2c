//! Faults that come from beside the host: processes that are killed or stand still, tools that went
//! away, and too much that is due at once.

use agent_host_tests::guests::wasm;
use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{Folder, PATIENCE, effects, program, puppets};
use agent_host_tests::repeats::is_whole;
use agent_host_tests::{Setup, World};
use broker::PostMessage;
use domain::authority::Denies;
use domain::digest::Salt;
use domain::event::{Event, InputAccepted, NewEvent, Source, Subject};
use domain::id::{EventId, InputId, SessionId, Stream};
use domain::message::{Draft, Part, Role};
use domain::time::Timestamp;
use domain::user::UserId;
use runtime::{Compiler, Config, LoadError, Runtime};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{Commit, EventFilter, Expected, Store};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Processes that this one has started and that compile.
fn compilers() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let parent_of = |folder: &Path| -> Option<String> {
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        status
            .lines()
            .find_map(|line| line.strip_prefix("PPid:"))
            .map(|parent| parent.trim().to_owned())
    };
    let compiles = |folder: &Path| {
        std::fs::read(folder.join("cmdline"))
            .is_ok_and(|line| line.windows(17).any(|it| it == b"compile-component"))
    };
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()));
    processes
        .filter(|folder| parent_of(folder).as_deref() == Some(&own) && compiles(folder))
        .filter_map(|folder| Pid::from_raw(folder.file_name()?.to_str()?.parse().ok()?))
        .collect()
}

/// A worker process that is killed fails the work that it was at, and the next one does it.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn fault_13_a_killed_worker_process_fails_its_work_and_the_next_one_does_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        cache_dir: folder.path().join("cache"),
        instances_max: 4,
        ..Config::default()
    };
    let runtime = Runtime::with_compiler(
        config,
        Compiler::process(program(), vec!["compile-component".into()]),
    )
    .unwrap();
    let killed = async {
        loop {
            if let Some(compiler) = compilers().first() {
                return kill_process(*compiler, Signal::KILL).unwrap();
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    let (loaded, killed) = tokio::join!(runtime.load(wasm("web")), timeout(PATIENCE, killed));
    killed.expect("a process that compiles");
    let error = loaded.unwrap_err();
    assert!(
        matches!(error, LoadError::CompilerEnded { .. })
            && error.to_string().contains("(signal: 9"),
        "{error}"
    );
    runtime.load(wasm("web")).await.unwrap();
}

/// A call of a tool that is gone by now is told to the model, and the turn goes on.
#[tokio::test(flavor = "multi_thread")]
async fn fault_29_a_call_of_a_tool_that_is_gone_is_told_to_the_model() {
    let script = r#"
[[rule]]
when = { last = "tool" }
reply = { text = "I was told: {result}" }

[[rule]]
reply = { text = "Let me see.", calls = [{ tool = "look", arguments = {} }] }
"#;
    let world = World::new(Setup {
        script: script.to_owned(),
        ..Setup::default()
    })
    .await;
    let session = world.open("puppet").await;
    let steps = json!([
        { "start": [{ "key": "asked", "model": "x" }] },
        { "start": [{ "key": "pause", "timer": 400 }] },
        { "start": [{ "key": "called", "call": 0 }] },
        { "start": [{ "key": "again", "model": "x" }] },
    ]);
    world.play_in(session, &steps).await;
    let calls = |message: &domain::message::Message| {
        message
            .parts
            .iter()
            .any(|part| matches!(part, Part::Call { .. }))
    };
    until(async || {
        let view = world.view("puppet", session).await;
        view.messages.iter().any(calls)
    })
    .await;
    let world = world
        .restart(|setup| setup.components.retain(|name| *name != "effects"))
        .await;
    world.idle(session).await;
    let reported = world.last_reply(session).await;
    let lines: Vec<&str> = reported.lines().collect();
    assert_eq!(
        (lines[0], lines[1]),
        ("asked message Let me see.", "pause elapsed")
    );
    assert_eq!(
        (lines[2], lines[3]),
        (
            "called denied",
            "again message I was told: Denied: this is not allowed here."
        )
    );
    assert_eq!(world.effects(), Vec::<String>::new());
}

/// Words are answered for once they are stored, however long their turn takes.
#[tokio::test(flavor = "multi_thread")]
async fn fault_36_words_are_acknowledged_once_stored_however_long_their_turn_takes() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let script = json!({
        "steps": [
            { "start": [{ "key": "t", "tool": "look", "args": { "sleep": 400 } }] },
            { "reply": "done" },
        ],
    });
    let message = |text: &str| world.message("puppet", session, text, Some("outbound-message-1"));
    let receipt = world
        .broker
        .messages()
        .post(message(&script.to_string()))
        .await
        .unwrap();
    // Stored, and its turn still under way or not even begun.
    assert!(world.store().input(receipt.input).await.unwrap().is_some());
    assert_eq!(world.row(session).await.revision, 0);
    // An impatient client delivers it again, meanwhile and later.
    let meanwhile = world
        .broker
        .messages()
        .post(message(&script.to_string()))
        .await
        .unwrap();
    world.idle(session).await;
    let later = world
        .broker
        .messages()
        .post(message(&script.to_string()))
        .await
        .unwrap();
    for again in [meanwhile, later] {
        assert_eq!((again.input, again.replayed), (receipt.input, true));
    }
    assert_eq!((world.runs().await.len(), world.effects().len()), (1, 2));
}

/// Sessions in which something is due, and in the whole set. There are more of them than guests at
/// work.
const HERD: (usize, usize) = (60, 250);
/// Reminders of each.
const REMINDERS: usize = 400;

/// Time before they are due at which they are set, in milliseconds. The host is away at least as
/// long.
const AWAY_MS: u64 = 4_000;

/// Guests that are at work at once in a world, at most.
const INSTANCES_MAX: u64 = 32;

/// The `n`th of the messages that an agent left for later in a session.
fn reminder(session: SessionId, n: usize, due: Timestamp) -> NewEvent {
    let text = format!("reminder {n:03}");
    let message = Draft {
        role: Role::User,
        parts: vec![Part::text(text)],
        origin: "host".into(),
        untrusted: false,
        speaker: None,
        answers: None,
    };
    let accepted = InputAccepted {
        user_id: UserId::local(),
        message: Some(message),
        ..InputAccepted::of(
            session,
            InputId(uuid::Uuid::now_v7()),
            Source::Reminder {
                due,
                depth: 0,
                spawn_depth: 0,
                hops: 0,
                denies: Denies::default(),
                permissions: domain::authority::Permissions::default(),
                accounts: Default::default(),
                deadline: None,
            },
            due,
        )
    };
    NewEvent {
        id: EventId(uuid::Uuid::now_v7()),
        event: Event::InputAccepted(accepted),
        subject: Subject {
            session: Some(session),
            ..Subject::default()
        },
        actor: "host".into(),
        causation: None,
        correlation: None,
        time: due,
        salt: Salt::default(),
    }
}

/// The reminders that a session's turns took in, in this order.
async fn taken(store: &Store, session: SessionId) -> Vec<InputId> {
    let filter = EventFilter {
        session: Some(session),
        ..EventFilter::default()
    };
    let mut taken = Vec::new();
    for recorded in store.events(0, filter, 10_000).await.unwrap() {
        taken.extend(recorded.event.iter().flat_map(Event::claimed));
    }
    taken
}

/// A hundred thousand reminders that are due at once are taken in order, and others are served. In
/// an ordinary run it is a quarter of them.
#[tokio::test(flavor = "multi_thread")]
async fn fault_40_a_hundred_thousand_reminders_due_at_once_are_taken_in_order() {
    let setup = || {
        let agent = |id: &str| {
            json!({
                "agentId": id, "displayName": id, "component": "puppet",
                "settings": { "script": [{ "reply": "yes" }] },
            })
        };
        Setup {
            components: vec!["puppet"],
            definitions: vec![agent("herd"), agent("other")],
            ..Setup::default()
        }
    };
    let world = World::new(setup()).await;
    let mut sessions = Vec::new();
    let herd = if is_whole() { HERD.1 } else { HERD.0 };
    for _ in 0..herd {
        sessions.push(world.open("herd").await);
    }
    let other = world.open("other").await;
    // They come due while the host is not there to see to them.
    let opened = world.row(other).await.created_at;
    let soon = opened.plus_ms(AWAY_MS);
    let mut wanted = Vec::new();
    for session in &sessions {
        let events: Vec<NewEvent> = (0..REMINDERS)
            .map(|n| reminder(*session, n, soon.plus_ms(n as u64)))
            .collect();
        let inputs = events.iter().map(|event| {
            if let Event::InputAccepted(it) = &event.event {
                it.input
            } else {
                unreachable!()
            }
        });
        wanted.push(inputs.collect::<Vec<_>>());
        world
            .store()
            .commit(Commit::new().append(Stream::Session(*session), Expected::Any, events))
            .await
            .unwrap();
    }
    let world = world
        .restart(|_| std::thread::sleep(Duration::from_millis(AWAY_MS + REMINDERS as u64)))
        .await;
    let mut watch = JoinSet::<()>::new();
    let at_work = Arc::new(AtomicU64::new(0));
    let runtime = world.runtime.clone();
    let seen = at_work.clone();
    watch.spawn(async move {
        loop {
            seen.fetch_max(runtime.stats().in_flight, Ordering::Relaxed);
            sleep(Duration::from_millis(1)).await;
        }
    });
    // Another message arrives in the middle of it, and is answered before all of it is done.
    world.say("other", other, "hello?").await;
    let row = world.idle(other).await;
    assert_eq!(row.revision, 1);
    let mut left = 0;
    for session in &sessions {
        left += world.row(*session).await.waiting;
    }
    assert!(
        left > 0,
        "the herd was through before anybody else had a turn"
    );
    let patience = Instant::now() + Duration::from_secs(120);
    for (session, wanted) in sessions.iter().zip(&wanted) {
        while taken(world.store(), *session).await.len() < wanted.len() {
            assert!(Instant::now() < patience, "reminders are left");
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(
            taken(world.store(), *session).await,
            *wanted,
            "each once, in the order in which they were due"
        );
    }
    let most = at_work.load(Ordering::Relaxed);
    assert!(
        most > 0 && most <= INSTANCES_MAX,
        "{most} guests were at work at once"
    );
    let open = most_open(&world).await;
    assert!(
        open > 0 && open <= herd + 1,
        "{open} turns were open at once"
    );
}

/// Turns that were open at once at most, as the events tell it in the order of their commits: never
/// two of one session.
async fn most_open(world: &World) -> usize {
    let mut open = BTreeSet::new();
    let mut most = 0;
    for recorded in world.recorded().await {
        match recorded.event {
            Some(Event::RunStarted(it)) => {
                assert!(open.insert(it.session), "two turns of one session")
            }
            Some(Event::RunEnded(it)) => {
                assert!(open.remove(&it.session), "a turn that ends twice")
            }
            _ => {}
        }
        most = most.max(open.len());
    }
    assert!(open.is_empty(), "{open:?} never ended");
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_42_a_host_that_stood_still_goes_on_where_it_was_and_repeats_nothing() {
    let turn = json!([
        { "start": [{ "key": "timer", "timer": 300 }] },
        {
            "until": "all",
            "start": [
                { "key": "send", "tool": "send", "args": { "sleep": 300 } },
                { "key": "patient", "tool": "patient" },
                { "key": "put", "tool": "put", "args": { "sleep": 300 } },
            ],
        },
        { "reply": "done" },
    ]);
    let agent = json!({
        "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
        "settings": { "script": { "steps": turn } },
    });
    let mut config = puppets(&json!([agent]));
    config["components"]["effects"] = effects();
    let (folder, host) = Folder::serving(config, &["puppet", "effects"]).await;
    let session = host.open("puppet").await;
    host.say(&session, "go").await;
    // Stopped in the middle of a timer and in the middle of calls, each time for longer than those
    // take.
    for begun in [0, 1] {
        until(async || folder.effects().len() >= begun).await;
        kill_process(host.process(), Signal::STOP).unwrap();
        sleep(Duration::from_secs(1)).await;
        kill_process(host.process(), Signal::CONT).unwrap();
    }
    let seen = found(async || {
        let seen: Value = host.get(&session).await.body;
        (seen["run_id"].is_null() && seen["revision"] == 1).then_some(seen)
    })
    .await;
    assert_eq!(seen["last_snippet"], "done", "{seen}");
    let mut effects = folder.effects();
    effects.sort();
    let names: Vec<String> = effects
        .iter()
        .map(|line| line.rsplit_once(' ').unwrap().0.to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "patient begin",
            "patient begin",
            "put begin",
            "put end",
            "send begin",
            "send end"
        ]
    );
    host.kill().await;
}

/// An outbound message that comes a thousand times, and again after a restart, is one input.
#[tokio::test(flavor = "multi_thread")]
async fn fault_35_a_call_repeated_a_thousand_times_and_after_a_restart_is_one_input() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let script = json!({ "steps": [{ "start": [{ "key": "t", "tool": "send" }] }] }).to_string();
    let deliver = |world: &World| PostMessage {
        ..world.message("puppet", session, &script, Some("update-7"))
    };
    let mut posts = JoinSet::new();
    for _ in 0..1_000 {
        let broker = world.broker.clone();
        let message = deliver(&world);
        posts.spawn(async move { broker.messages().post(message).await });
    }
    let inputs: Vec<_> = posts
        .join_all()
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(inputs.iter().filter(|receipt| !receipt.replayed).count(), 1);
    world.idle(session).await;
    let world = world.restart(|_| {}).await;
    let again = world.broker.messages().post(deliver(&world)).await.unwrap();
    assert!(again.replayed && inputs.iter().all(|receipt| receipt.input == again.input));
    assert_eq!((world.runs().await.len(), world.effects().len()), (1, 2));
}
