//! Restrictions that travel: a persona's permissions, and the mark of what comes from outside, go
//! with all work that comes of a turn.

use agent_host_tests::process::puppet;
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::By;
use broker::{Address, PostRouted, Routed};
use domain::event::{BoundaryVerdict, Event, NoteRemembered, Source};
use domain::id::SessionId;
use domain::message::Part;
use domain::queue::QueueOverride;
use domain::user::UserId;
use serde_json::{Value, json};
use store::SessionStatus;

/// Sends a message to a persona's main session, and waits until nothing is left to do.
async fn say_to(world: &World, persona: &str, steps: Value) -> SessionId {
    let posted = world
        .broker
        .messages()
        .post_routed(PostRouted {
            to: Address::Persona(persona.parse().unwrap()),
            content: vec![Part::text(json!({ "steps": steps }).to_string())],
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
    world.quiet().await;
    accepted.session
}

/// Returns the refusals: the caller, and the rule.
async fn refused(world: &World) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in world.ledger().await {
        let refused = entry
            .decisions
            .iter()
            .filter(|decision| decision.verdict == BoundaryVerdict::Refused);
        lines.extend(refused.map(|decision| {
            format!(
                "{} {} {}",
                entry.definition, decision.capability, decision.rule
            )
        }));
    }
    lines
}

/// Agents that read a file at any message, unless it is a script.
fn readers() -> Setup {
    let reads = json!({
        "steps": [{ "start": [{ "key": "r", "tool": "read_file", "args": { "path": "a.txt" } }] }],
    });
    let reader = |id: &str| {
        json!({
            "agentId": id, "displayName": id, "component": "puppet",
            "settings": { "script": reads },
        })
    };
    let personas = vec![
        json!({ "id": "free", "displayName": "Free", "agent": "puppet" }),
        json!({
            "id": "narrow", "displayName": "Narrow", "agent": "puppet", "capabilityAllowlist": [],
        }),
    ];
    let mut setup = Setup {
        personas,
        ..Setup::default()
    };
    setup.definitions = vec![puppet(), reader("middle"), reader("last")];
    setup
}

/// The persona's agent has `middle` read, which has `last` read and does not wait, and sets itself
/// a reminder: its late reply and the reminder each begin a turn that reads.
fn chain() -> Value {
    let middle = json!({
        "steps": [
            {
                "effects": [{ "schedule": 50 }],
                "start": [{ "key": "l", "agent": "last", "text": "read", "detached": true }],
            },
            { "reply": "handed on" },
        ],
    });
    json!([{ "start": [{ "key": "m", "agent": "middle", "text": middle.to_string() }] }])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_persona_permits_holds_for_everybody_who_works_for_its_turn() {
    let world = World::new(readers()).await;
    std::fs::write(world.dir.path().join("files/a.txt"), "secret").unwrap();
    say_to(&world, "free", chain()).await;
    let free = world.starts().await;
    assert!(
        free.iter().all(|started| started.permissions.are_all()),
        "{free:?}"
    );
    let refused_so_far = refused(&world).await;
    assert!(
        refused_so_far
            .iter()
            .all(|line| !line.contains("files.read")),
        "{refused_so_far:?}"
    );
    let read = |events: &[Event]| {
        events
            .iter()
            .filter(|event| json!(event).to_string().contains("secret"))
            .count()
    };
    assert!(
        read(&world.events().await) > 0,
        "whom no persona narrows reads"
    );
    let before = world.events().await.len();

    say_to(&world, "narrow", chain()).await;
    let narrow: Vec<_> = world.starts().await.split_off(free.len());
    // The turn, its work, and the work of that. The late reply and the reminder get turns of their
    // own, because they come of a narrowed turn; those of the other may join what is open.
    assert!(
        narrow.len() == 5 && free.len() >= 3,
        "{} {}",
        narrow.len(),
        free.len()
    );
    assert!(
        narrow
            .iter()
            .all(|started| !started.permissions.permit_capability("files.read")),
        "{narrow:?}"
    );
    let refused = refused(&world).await;
    assert!(
        refused.contains(&"last files.read permissions".to_owned()),
        "{refused:?}"
    );
    assert!(
        refused.contains(&"middle files.read permissions".to_owned()),
        "in its late reply or its reminder: {refused:?}"
    );
    assert_eq!(
        read(&world.events().await[before..]),
        0,
        "nobody has read it for the persona"
    );

    // Who was made for the work is narrowed for as long as it lives, in turns as well that the user
    // begins with it.
    let made = world
        .events()
        .await
        .into_iter()
        .rev()
        .find_map(|event| match event {
            Event::AgentCreated(created) if created.parent.is_some() => Some(created),
            _ => None,
        });
    let made = made.unwrap();
    assert!(!made.permissions.permit_capability("files.read"));
    let target = broker::Target::Agent(made.agent);
    let new = broker::NewSession::of(target.clone(), UserId::local());
    let session = world.broker.sessions().open(new).await.unwrap().row.id;
    world
        .broker
        .messages()
        .post(broker::PostMessage {
            target,
            ..world.message("last", session, "read", None)
        })
        .await
        .unwrap();
    world.idle(session).await;
    assert_eq!(
        world.last_reply(session).await.lines().last(),
        Some("r denied")
    );
}

/// The notes that were kept, each with whether it is marked.
async fn notes(world: &World) -> Vec<(String, bool)> {
    let notes = world
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::NoteRemembered(NoteRemembered {
                note, untrusted, ..
            }) => Some((note, untrusted)),
            _ => None,
        });
    notes.collect()
}

/// Returns for each turn that was committed whether its thread is marked.
async fn turns(world: &World) -> Vec<bool> {
    let turns = world
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::TurnCommitted(committed) => Some(committed.untrusted),
            _ => None,
        });
    turns.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mark_untrusted_goes_with_everything_derived_along_a_chain() {
    let world = World::new(Setup::default()).await;
    let inspection = json!({ "start": [{ "key": "t", "tool": "look" }] });
    let remember = |note: &str| {
        json!({
            "effects": [{ "remember": note }], "start": [{ "key": "z", "timer": 1 }],
        })
    };

    // Nothing from outside: no mark.
    world.play(json!([remember("plainnote")])).await;
    assert_eq!(
        (notes(&world).await, turns(&world).await),
        (vec![("plainnote".to_owned(), false)], vec![false])
    );

    // A tool's result → the worker's reply → the caller's result → its note.
    let inner = json!({ "steps": [inspection] }).to_string();
    world
        .play(json!([
            { "start": [{ "key": "o", "agent": "other", "text": inner }] }, remember("derivednote"),
        ]))
        .await;
    assert_eq!(notes(&world).await[1..], [("derivednote".to_owned(), true)]);
    assert_eq!(
        turns(&world).await[1..],
        [true, true],
        "the worker's turn, and the caller's"
    );

    // → what a later session recalls → its note.
    let recall = |word: &str| json!({ "start": [{ "key": "r", "recall": word }] });
    let reported = world
        .play(json!([recall("derivednote"), remember("again")]))
        .await;
    assert!(
        reported
            .iter()
            .any(|line| line.starts_with("r value") && line.contains(r#""untrusted":true"#)),
        "{reported:?}"
    );
    assert_eq!(notes(&world).await[2..], [("again".to_owned(), true)]);
    let reported = world
        .play(json!([recall("plainnote"), remember("still")]))
        .await;
    let hit = reported
        .iter()
        .find(|line| line.starts_with("r value"))
        .unwrap();
    assert!(!hit.contains("untrusted"), "{hit}");
    assert_eq!(notes(&world).await[3..], [("still".to_owned(), false)]);

    // → the work that is handed over, and the reminder, and what comes of them.
    let before = turns(&world).await.len();
    let inner = json!({ "steps": [{ "reply": "done" }] }).to_string();
    let hands_over = json!({
        "effects": [{ "schedule": 20 }], "start": [{ "key": "o", "agent": "other", "text": inner }],
    });
    world.play(json!([inspection, hands_over])).await;
    world.quiet().await;
    let mut marks = Vec::new();
    for event in world.events().await {
        if let Event::InputAccepted(accepted) = event {
            let marked = accepted.message.is_some_and(|message| message.untrusted);
            match accepted.source {
                Source::Dispatch { .. } => marks.push(("work", marked)),
                Source::Reminder { .. } => marks.push(("reminder", marked)),
                Source::Api => assert!(!marked, "people's words are theirs"),
                Source::Opening
                | Source::LateReply { .. }
                | Source::Trigger { .. }
                | Source::Connector { .. } => {}
            }
        }
    }
    marks.sort_unstable();
    assert_eq!(
        marks,
        [("reminder", true), ("work", false), ("work", true)],
        "the first work was handed over before anything was heard"
    );
    let later = turns(&world).await;
    // The worker's turn and the caller's, and one of the reminder's own unless it came while the
    // caller's was open.
    assert!(
        later.len() >= before + 2 && later[before..].iter().all(|mark| *mark),
        "{later:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marked_thread_marks_its_later_turns_until_it_is_cleared() {
    let (world, session) = World::with_puppet().await;
    let say = async |steps: Value| {
        world.played(session, &steps).await;
    };
    let remember = |note: &str| {
        json!([{
            "effects": [{ "remember": note }], "start": [{ "key": "z", "timer": 1 }],
        }])
    };
    say(json!([{ "start": [{ "key": "t", "tool": "look" }] }])).await;
    say(remember("second")).await;
    assert_eq!(notes(&world).await, [("second".to_owned(), true)]);
    let world = world.restart(|_| {}).await;
    world.played(session, &remember("third")).await;
    assert_eq!(notes(&world).await[1..], [("third".to_owned(), true)]);
    world
        .broker
        .sessions()
        .clear(By::from(&UserId::local()), &target("puppet"), session)
        .await
        .unwrap();
    world.played(session, &remember("fourth")).await;
    assert_eq!(notes(&world).await[2..], [("fourth".to_owned(), false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_session_that_heard_content_from_outside_marks_later_turns() {
    let world = World::new(Setup::default()).await;
    let inspection = json!({ "start": [{ "key": "t", "tool": "look" }] });
    let complete = json!({ "complete": { "score": 1 } });
    let remember = |note: &str| {
        json!({
            "effects": [{ "remember": note }], "start": [{ "key": "z", "timer": 1 }],
        })
    };
    let lesson = async |steps: Value| {
        let session = world.open_as("puppet", Some("lesson")).await;
        world.idle(session).await;
        world.play_in(session, &steps).await;
        let row = world.idle(session).await;
        assert_eq!(row.status, SessionStatus::Completed);
    };
    lesson(json!([complete])).await;
    world.play(json!([remember("plain")])).await;
    assert_eq!(notes(&world).await, [("plain".to_owned(), false)]);

    // A turn is open when a session ends that heard of something: its next step is shown that.
    let session = world.open("puppet").await;
    let asks = json!({ "start": [{ "key": "q", "client": "confirmation" }] });
    let steps = json!([asks, remember("during")]);
    world.play_in(session, &steps).await;
    let (question, _) = world.question("puppet", session).await;
    lesson(json!([inspection, complete])).await;
    world.confirm("puppet", question).await;
    world.idle(session).await;
    assert_eq!(notes(&world).await[1..], [("during".to_owned(), true)]);

    let world = world.restart(|_| {}).await;
    world.play(json!([remember("later")])).await;
    assert_eq!(notes(&world).await[2..], [("later".to_owned(), true)]);
    assert_eq!(turns(&world).await.last(), Some(&true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preference_that_words_from_outside_ask_for_is_not_kept() {
    let world = World::new(Setup::default()).await;
    let inspection = json!({ "start": [{ "key": "t", "tool": "look" }] });
    let prefer = json!({
        "effects": [{ "prefer": { "tone": "rude" } }], "start": [{ "key": "z", "timer": 1 }],
    });
    world.play(json!([prefer])).await;
    world.play(json!([inspection, prefer])).await;
    let marks: Vec<bool> = world
        .events_that(|event| match event {
            Event::PreferencesUpdated(updated) => Some(updated.untrusted),
            _ => None,
        })
        .await;
    assert_eq!(
        marks,
        [false],
        "the second is refused: a step cannot ask its user"
    );
    world.play(json!([{ "reply": "hello" }])).await;
    assert_eq!(turns(&world).await, [false, true, false]);
}
