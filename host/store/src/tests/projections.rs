//! Projections: what follows from the events of a conversation, and that it follows from nothing
//! else.

mod inputs;

use super::buckets::{place, written};
use super::files::uploaded;
use super::keys::{issued, revoked};
use super::outside::some_of_each;
use super::sample::active as active_agents;
use super::sample::ada;
use super::sample::{
    NOON, Sample, accepted, agent, commit, created, dead, input, message, new, opened, run,
    run_ended, run_started, session, step, stepped, take_turn, timer, turn_after, turn_committed,
};
use super::spawned::spawn;
use crate::projections::PROJECTIONS;
use crate::sql::{Columns, Connection};
use crate::{AgentGuard, Commit, Expected, RunGuard, SessionStatus};
use crate::{HistoryFilter, SessionFilter};
use domain::authority::Denies;
use domain::definition::{DefinitionId, OwnDefinition};
use domain::digest::Digest;
use domain::event::{ConnectorKeyBound, DefinitionMade, ItemRecorded};
use domain::event::{
    Event, MemoryRead, NoteRemembered, OperationStarted, PreferencesUpdated, RunSettled,
    SlotCompleted, SlotTaken, SlotTerminated, Source, TurnCommitted,
};
use domain::grant::BucketScope;
use domain::id::{ConversationId, RunId, Stream};
use domain::memory::TriggerEvent;
use domain::message::Role;
use domain::operation::{Continuation, Operation, Pause, Performer, Settlement};
use domain::step::OperationOutcome;
use domain::time::Timestamp;
use domain::user::UserId;
use serde_json::json;
use uuid::Uuid;

/// Every row of every projection, as text.
pub(super) fn everything(database: &std::path::Path) -> Vec<String> {
    let connection = Connection::open(database).unwrap();
    let mut all = Vec::new();
    for table in PROJECTIONS {
        let mut statement = connection
            .prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2"))
            .unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<String> = (0..columns)
                .map(|column| format!("{:?}", row.value(column).unwrap()))
                .collect();
            all.push(format!("{table}: {}", values.join(", ")));
        }
    }
    all
}

/// A store with a structured session that has ended, with a summary or else for a reason, after a
/// turn with this mark or none at all.
async fn ended_after(thread: Option<bool>, completes: bool) -> Sample {
    let sample = Sample::begun().await;
    if let Some(marked) = thread {
        let said = message(1, Role::Assistant, "hello");
        let node = turn_after(&sample.store, None, run(1), &[said]).await;
        let Event::TurnCommitted(committed) = turn_committed(1, &node) else {
            panic!("a turn")
        };
        let committed = TurnCommitted {
            untrusted: marked,
            ..committed
        };
        sample
            .in_session(1, [Event::TurnCommitted(committed)])
            .await;
    }
    let end = if completes {
        Event::SlotCompleted(SlotCompleted {
            agent: agent(1),
            session_id: session(1),
            summary: json!({ "score": 1 }),
            completed_at: NOON,
        })
    } else {
        Event::SlotTerminated(SlotTerminated {
            agent: agent(1),
            session_id: session(1),
            reason: "expired".to_owned(),
            terminated_at: NOON,
        })
    };
    sample.in_agent(1, [end]).await;
    sample
}

#[tokio::test]
async fn the_end_of_a_session_has_the_mark_of_its_last_turn() {
    for (thread, completes, marked) in [
        (Some(true), true, true),
        (Some(true), false, true),
        (Some(false), true, false),
        (Some(false), false, false),
        // A summary without a thread is one of another system's.
        (None, true, true),
        (None, false, false),
    ] {
        let sample = ended_after(thread, completes).await;
        for user in [None, Some(UserId::local())] {
            let ended = sample.session_history(
                agent(1),
                HistoryFilter {
                    user,
                    deleted: false,
                },
                None,
                10,
            );
            let marks: Vec<bool> = ended.await.unwrap().iter().map(|it| it.untrusted).collect();
            assert_eq!(marks, [marked], "{thread:?} {completes}");
        }
    }
}

/// A message that an agent left for itself, due so many milliseconds after noon.
fn reminder(due_ms: u64) -> Source {
    Source::Reminder {
        due: NOON.plus_ms(due_ms),
        depth: 0,
        spawn_depth: 0,
        hops: 0,
        denies: Denies::default(),
        permissions: Default::default(),
        accounts: Default::default(),
        deadline: None,
    }
}

#[tokio::test]
async fn agents_are_the_folds_of_their_streams() {
    let sample = Sample::begun().await;
    sample
        .in_agent(2, [created(2, "/ada/assistant/sub/1", Some(agent(1)))])
        .await;
    let preferences = serde_json::json!({ "tone": "dry" });
    let taken = SlotTaken {
        conversation_id: ConversationId(Uuid::nil()),
        expires_at: None,
        items_imported: 0,
        started_by: UserId::local(),
        agent: agent(1),
        session_id: session(1),
        session_type: "tutor".to_owned(),
        started_at: NOON,
    };
    let events = vec![
        Event::PreferencesUpdated(PreferencesUpdated {
            untrusted: false,
            updated_at: Timestamp(0),
            user_id: None,
            agent: agent(1),
            preferences: preferences.clone(),
        }),
        Event::SlotTaken(taken),
    ];
    sample.in_agent(1, events).await;

    let row = sample.agent(1).await;
    assert_eq!((row.version, row.sub_count, row.active), (3, 1, true));
    assert_eq!(
        serde_json::Value::Object(row.agent.preferences.clone()),
        preferences
    );
    let active = row.agent.active_session.unwrap();
    assert_eq!(
        (active.session_id, active.session_type.as_str()),
        (session(1), "tutor")
    );
    let other = Commit::new().guard(AgentGuard::SlotFor {
        agent: agent(1),
        session: session(2),
    });
    sample.conflicts(other).await;
    sample
        .commit(Commit::new().guard(AgentGuard::SlotFor {
            agent: agent(1),
            session: session(1),
        }))
        .await
        .unwrap();
    let completed = SlotCompleted {
        agent: agent(1),
        session_id: session(1),
        summary: serde_json::Value::Null,
        completed_at: NOON,
    };
    sample.in_agent(1, [Event::SlotCompleted(completed)]).await;
    assert_eq!(sample.agent(1).await.agent.active_session, None);
    assert_eq!(sample.session(1).await.status, SessionStatus::Completed);

    assert_eq!(
        sample
            .agent_at("/ada/assistant/sub/1")
            .await
            .unwrap()
            .unwrap()
            .parent,
        Some(agent(1))
    );
    assert_eq!(
        sample
            .agents(&ada(), active_agents(), Some(agent(1)), 10)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        sample
            .agents(&ada(), active_agents(), None, 10)
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn operations_are_open_until_they_settle_and_wake_their_session_meanwhile() {
    let sample = Sample::begun().await;
    let mut slow = timer(run(1), "slow", NOON.plus_ms(500));
    slow.deadline = Some(NOON.plus_ms(300));
    let slow_id = slow.id;
    let quick = timer(run(1), "quick", NOON.plus_ms(100));
    let quick_id = quick.id;
    let step = step(run(1), Vec::new(), Vec::new(), vec![slow, quick]);
    sample
        .in_run(1, [run_started(run(1), 1, None, Vec::new()), step])
        .await;
    let open = |operation| {
        Commit::new().guard(RunGuard::OperationOpen {
            run: run(1),
            operation,
        })
    };
    sample.commit(open(quick_id)).await.unwrap();
    assert_eq!(sample.next_wake().await.unwrap(), Some(NOON.plus_ms(100)));
    assert!(sample.due_wakes(NOON, 10).await.unwrap().is_empty());
    let due = crate::DueSession {
        session: session(1),
        newest: NOON.plus_ms(300),
    };
    assert_eq!(
        sample.due_wakes(NOON.plus_ms(400), 10).await.unwrap(),
        [due]
    );

    let settlement = Settlement::new(quick_id, OperationOutcome::Elapsed, NOON);
    sample
        .in_run(
            1,
            [Event::RunSettled(RunSettled {
                run: run(1),
                settled: vec![settlement],
            })],
        )
        .await;
    sample.conflicts(open(quick_id)).await;
    assert_eq!(sample.next_wake().await.unwrap(), Some(NOON.plus_ms(300)));

    let pause = Pause::Until {
        due: NOON.plus_ms(50),
    };
    let continued = Continuation {
        operation: slow_id,
        segment: 1,
        state: Vec::new(),
        pause,
        active_ms: 0,
        call: None,
    };
    sample
        .in_run(1, [Event::OperationContinued(continued)])
        .await;
    assert_eq!(sample.next_wake().await.unwrap(), Some(NOON.plus_ms(50)));
    let started = OperationStarted {
        run: run(1),
        operation: slow_id,
        segment: 1,
        effect: None,
        time: NOON,
    };
    sample.in_run(1, [Event::OperationStarted(started)]).await;
    assert_eq!(sample.next_wake().await.unwrap(), Some(NOON.plus_ms(300)));

    sample.end_run(1, 1).await;
    assert_eq!(sample.next_wake().await.unwrap(), None);
    sample.conflicts(open(slow_id)).await;
}

#[tokio::test]
async fn a_session_shows_its_last_reply_and_the_latest_comes_first() {
    let sample = Sample::begun().await;
    sample.in_session(2, [opened(2, 1, None)]).await;
    let turn = take_turn(&sample.store, 1, None, 1, "hello", "  good\n\nmorning  ").await;
    let row = sample.session(1).await;
    assert_eq!(row.last_snippet.as_deref(), Some("good morning"));
    assert_eq!(
        (row.head, row.head_message, row.revision),
        (Some(turn.id), 2, 1)
    );
    let listed = sample
        .sessions(agent(1), SessionFilter::default(), None, 10)
        .await
        .unwrap();
    assert_eq!(
        listed.iter().map(|row| row.id).collect::<Vec<_>>(),
        [session(1), session(2)]
    );
    // A fork begins where its head is.
    sample.in_session(3, [opened(3, 1, Some(turn.id))]).await;
    let fork = sample.session(3).await;
    assert_eq!(
        (fork.head, fork.head_message, fork.state),
        (Some(turn.id), 2, turn.session_state)
    );
}

/// Work that a run hands over and waits for.
fn handed_over(by: RunId) -> Operation {
    let performer = Performer::Agent {
        agent: agent(2),
        session: session(1),
        input: input(50),
        delegation: None,
        message: None,
        since: NOON,
        queued: false,
    };
    Operation {
        performer,
        ..timer(by, "handed over", NOON)
    }
}

#[tokio::test]
async fn projections_are_the_same_when_they_are_folded_again() {
    let sample = Sample::begun().await;
    sample
        .in_agent(2, [created(2, "/ada/assistant/sub/1", Some(agent(1)))])
        .await;
    let mut turn = take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
    for n in 2..8 {
        turn = take_turn(
            &sample.store,
            1,
            Some(&turn),
            n,
            "and then",
            "this happened",
        )
        .await;
    }
    let note = NoteRemembered {
        agent: agent(1),
        session: session(1),
        note: "likes tea".to_owned(),
        untrusted: true,
        id: None,
        about: None,
        provenance: None,
        time: NOON,
    };
    let preferences = json!({ "tone": "dry" });
    let learned = PreferencesUpdated {
        untrusted: false,
        updated_at: NOON,
        user_id: Some(ada()),
        agent: agent(1),
        preferences,
    };
    sample
        .in_agent(
            1,
            [
                Event::NoteRemembered(note),
                Event::PreferencesUpdated(learned),
            ],
        )
        .await;
    let stream = Stream::Session(session(1));
    sample
        .append(
            stream,
            [
                accepted(50, 1, reminder(9), "soon"),
                accepted(51, 1, Source::Api, "poison"),
            ],
        )
        .await;
    sample.append(stream, [dead(51, 1, "no")]).await;
    let mut open = stepped(
        run(60),
        vec![message(15, Role::User, &"x".repeat(300))],
        Vec::new(),
        vec![timer(run(60), "t", NOON.plus_ms(7)), handed_over(run(60))],
    );
    open.basis.documents.tools = Digest::of(b"[]");
    open.settled = vec![Settlement {
        active_ms: 1,
        ..Settlement::new(
            timer(run(60), "gone", NOON).id,
            OperationOutcome::Elapsed,
            NOON,
        )
    }];
    let events = vec![
        run_started(run(60), 1, Some(&turn), Vec::new()),
        Event::RunStepped(Box::new(open)),
    ];
    sample
        .commit(commit(Stream::Run(run(60)), events).blob(b"[]".to_vec()))
        .await
        .unwrap();

    spawn(&sample, 70, 1, "/ada/assistant/sub/2", "ada").await;
    let kept = written(
        &place("shelf", BucketScope::Component, ""),
        &[("a", Some(b"1"))],
    );
    sample.in_run(60, [kept]).await;
    let (key, named): (_, UserId) = ("telegram:1".parse().unwrap(), "ada".parse().unwrap());
    let bound = ConnectorKeyBound {
        key,
        user_id: named.clone(),
        bound_by: named,
        time: NOON,
    };
    let made = DefinitionMade {
        definition: DefinitionId("made-x-0".to_owned()),
        template: DefinitionId("helper".to_owned()),
        user_id: "ada".parse().unwrap(),
        own: OwnDefinition::default(),
        time: NOON,
    };
    sample
        .in_host([
            Event::ConnectorKeyBound(bound),
            Event::DefinitionMade(Box::new(made)),
        ])
        .await;
    let item = ItemRecorded {
        session: session(1),
        item: "i".to_owned(),
        sequence: None,
        prompt: json!("1 + 1?"),
        response: json!(2),
        imported: false,
        evaluation: None,
        client_action: None,
        asked_at: None,
        answered_at: None,
        time: NOON,
    };
    sample
        .append(
            stream,
            [Event::ItemRecorded(item), uploaded(1, b"[]", "list.json")],
        )
        .await;
    sample
        .in_host([issued(1, "ada"), issued(2, "bob"), revoked(2, "lost")])
        .await;

    let read = MemoryRead {
        session: session(1),
        agent: agent(2),
        reader: session(2),
        through: turn.id,
        through_message: turn.last_message,
        input: input(52),
        because: TriggerEvent::Due,
        time: NOON,
    };
    sample.append(stream, [Event::MemoryRead(read)]).await;
    some_of_each(&sample).await;

    let before = everything(&sample.database());
    assert!(
        PROJECTIONS
            .iter()
            .all(|table| before.iter().any(|row| row.starts_with(table))),
        "every table holds something"
    );
    let found = sample.recall(1, "tea morning", 10).await;
    assert_eq!(
        sample.rebuild().await.unwrap().events,
        *sample.durable().borrow()
    );
    assert_eq!(everything(&sample.database()), before);
    assert_eq!(sample.recall(1, "tea morning", 10).await, found);
    assert_eq!(found.len(), 2);
    // The store goes on from there.
    let next = turn_after(
        &sample.store,
        Some(&turn),
        run(60),
        &[message(15, Role::User, &"x".repeat(300))],
    )
    .await;
    let end = commit(Stream::Run(run(60)), [run_ended(run(60), 1, next.id)]).append(
        stream,
        Expected::Any,
        vec![new(turn_committed(1, &next))],
    );
    sample.commit(end).await.unwrap();
    sample.is_sound().await;
}
