//! Projections: what follows from the events of a conversation, and that it follows from nothing
//! else.

use super::buckets::{place, written};
use super::files::uploaded;
use super::keys::{issued, revoked};
use super::outside::some_of_each;
use super::sample::active as active_agents;
use super::sample::ada;
use super::sample::{
    NOON, Sample, accepted, agent, begin, commit, created, expecting, input, message, new, noise,
    opened, run, run_ended, run_started, session, stepped, take_turn, timer, turn_after,
    turn_committed,
};
use super::spawned::spawn;
use crate::projections::PROJECTIONS;
use crate::sql::{Columns, Connection};
use crate::{
    AgentGuard, Clash, Commit, CommitError, Expected, Guard, InputState, QueueGuard, RunGuard,
    SessionGuard, SessionStatus,
};
use crate::{HistoryFilter, SessionFilter};
use domain::authority::Denies;
use domain::definition::{DefinitionId, OwnDefinition};
use domain::delegate::Priority;
use domain::digest::Digest;
use domain::event::{ConnectorKeyBound, DefinitionMade, ItemRecorded};
use domain::event::{
    Event, InputDead, InputRequeued, MemoryRead, NoteRemembered, OperationStarted,
    PreferencesUpdated, RunSettled, RunStepped, SlotCompleted, SlotTaken, SlotTerminated, Source,
    TurnCommitted,
};
use domain::grant::BucketScope;
use domain::id::{ConversationId, RunId, Stream, TurnId};
use domain::memory::TriggerEvent;
use domain::message::Role;
use domain::operation::{Continuation, Operation, Pause, Performer, Settlement};
use domain::queue::WaitKind;
use domain::step::{Decision, OperationOutcome, Until, Wait};
use domain::time::Timestamp;
use domain::turn::TurnEnd;
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
    let sample = Sample::new();
    begin(&sample).await;
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
            .append(
                Stream::Session(session(1)),
                vec![Event::TurnCommitted(committed)],
            )
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
    sample.append(Stream::Agent(agent(1)), vec![end]).await;
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
            let ended = sample.store.session_history(
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
    let sample = Sample::new();
    begin(&sample).await;
    sample
        .append(
            Stream::Agent(agent(2)),
            vec![created(2, "/ada/assistant/sub/1", Some(agent(1)))],
        )
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
    sample.append(Stream::Agent(agent(1)), events).await;

    let row = sample.store.agent(agent(1)).await.unwrap().unwrap();
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
    assert!(matches!(
        sample.store.commit(other).await,
        Err(CommitError::Conflict(_))
    ));
    sample
        .store
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
    sample
        .append(
            Stream::Agent(agent(1)),
            vec![Event::SlotCompleted(completed)],
        )
        .await;
    assert_eq!(
        sample
            .store
            .agent(agent(1))
            .await
            .unwrap()
            .unwrap()
            .agent
            .active_session,
        None
    );
    assert_eq!(
        sample
            .store
            .session(session(1))
            .await
            .unwrap()
            .unwrap()
            .status,
        SessionStatus::Completed
    );

    assert_eq!(
        sample
            .store
            .agent_at("/ada/assistant/sub/1")
            .await
            .unwrap()
            .unwrap()
            .parent,
        Some(agent(1))
    );
    assert_eq!(
        sample
            .store
            .agents(&ada(), active_agents(), Some(agent(1)), 10)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        sample
            .store
            .agents(&ada(), active_agents(), None, 10)
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn an_input_waits_is_claimed_and_is_consumed_with_its_run() {
    let sample = Sample::new();
    begin(&sample).await;
    let stream = Stream::Session(session(1));
    let dispatch = Source::Dispatch {
        reply_to: None,
        from: "/ada".to_owned(),
        deadline: None,
        depth: 1,
        hops: 0,
        priority: Priority::High,
        spawn_depth: 0,
        budget: Default::default(),
        denies: Default::default(),
        permissions: Default::default(),
        accounts: Default::default(),
    };
    sample
        .append(
            stream,
            vec![
                accepted(1, 1, dispatch, "work"),
                accepted(2, 1, reminder(1_000), "later"),
                accepted(3, 1, Source::Api, "hello"),
            ],
        )
        .await;
    let waiting = sample
        .store
        .waiting_inputs(session(1), NOON, 10)
        .await
        .unwrap();
    assert_eq!(
        waiting.iter().map(|input| input.input).collect::<Vec<_>>(),
        [input(1), input(3)]
    );
    assert_eq!(
        sample
            .store
            .waiting_inputs(session(1), NOON.plus_ms(1_000), 10)
            .await
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        sample
            .store
            .session(session(1))
            .await
            .unwrap()
            .unwrap()
            .waiting,
        3
    );
    assert_eq!(
        sample.store.input_position(input(1)).await.unwrap(),
        Some((session(1), 3))
    );

    let start = expecting(
        Stream::Run(run(1)),
        Expected::New,
        vec![run_started(run(1), 1, None, vec![input(3)])],
    )
    .guard(QueueGuard::InputWaiting(input(3)))
    .guard(SessionGuard::NoOpenRun(session(1)));
    sample.store.commit(start.clone()).await.unwrap();
    assert_eq!(
        sample.store.input(input(3)).await.unwrap().unwrap().1,
        InputState::Claimed { run: run(1) }
    );
    // Work that another agent waits for, and a reminder whose time has not come, do not keep a turn
    // from ending.
    let at = |now| {
        Commit::new().guard(QueueGuard::NothingWaiting {
            session: session(1),
            user: None,
            now,
            except: Vec::new(),
        })
    };
    sample.store.commit(at(NOON)).await.unwrap();
    assert!(matches!(
        sample.store.commit(at(NOON.plus_ms(1_000))).await,
        Err(CommitError::Conflict(_))
    ));
    let Err(CommitError::Conflict(again)) = sample.store.commit(start).await else {
        panic!("two runs at a time")
    };
    assert_eq!(
        again.clash,
        Clash::Guard(Guard::Queue(QueueGuard::InputWaiting(input(3))))
    );
    assert_eq!(
        sample.store.sessions_with_work(NOON).await.unwrap(),
        [session(1)]
    );
    for (definitions, running) in [
        (vec!["other", "assistant"], vec![session(1)]),
        (vec!["other"], Vec::new()),
        (Vec::new(), Vec::new()),
    ] {
        let definitions: Vec<DefinitionId> = definitions
            .into_iter()
            .map(|definition| DefinitionId(definition.to_owned()))
            .collect();
        let found = sample.store.sessions_running_as(&definitions).await;
        assert_eq!(found.unwrap(), running, "{definitions:?}");
    }

    let turn = turn_after(&sample.store, None, run(1), &[]).await;
    sample
        .append(Stream::Run(run(1)), vec![run_ended(run(1), 1, turn.id)])
        .await;
    assert_eq!(
        sample.store.input(input(3)).await.unwrap().unwrap().1,
        InputState::Consumed { run: run(1) }
    );
    let row = sample.store.run(run(1)).await.unwrap().unwrap();
    assert_eq!(
        (row.end, row.turn, row.session),
        (Some(TurnEnd::Replied), Some(turn.id), session(1))
    );
    assert_eq!(
        sample
            .store
            .session(session(1))
            .await
            .unwrap()
            .unwrap()
            .open_run,
        None
    );
}

#[tokio::test]
async fn a_commit_says_whether_what_it_accepts_waits_for_a_run_that_does_not_hear() {
    let sample = Sample::new();
    begin(&sample).await;
    let stream = Stream::Session(session(1));
    let said = |n| accepted(n, 1, Source::Api, "hello");
    assert!(
        !sample.append(stream, vec![said(1)]).await.waits_unheard,
        "it begins a turn"
    );
    sample
        .append(
            Stream::Run(run(1)),
            vec![run_started(run(1), 1, None, vec![input(1)])],
        )
        .await;
    assert!(
        !sample.append(stream, vec![said(2)]).await.waits_unheard,
        "a run's first step may hear it"
    );
    let mut inputs = 3..;
    for hear in [false, true, false] {
        let mut step = stepped(run(1), Vec::new(), Vec::new(), Vec::new());
        step.decision = Decision::Wait(Wait {
            start: Vec::new(),
            cancel: Vec::new(),
            until: Until::Any,
            hear,
        });
        sample
            .append(Stream::Run(run(1)), vec![Event::RunStepped(Box::new(step))])
            .await;
        assert_eq!(
            sample
                .append(stream, vec![said(inputs.next().unwrap())])
                .await
                .waits_unheard,
            !hear
        );
    }
    let Event::InputAccepted(mut interrupting) = said(inputs.next().unwrap()) else {
        panic!()
    };
    interrupting.waits_for = Some(WaitKind::Interrupt);
    assert!(
        !sample
            .append(stream, vec![Event::InputAccepted(interrupting)])
            .await
            .waits_unheard,
        "it ends the run"
    );
    assert!(
        !sample.append(stream, vec![noise(1)]).await.waits_unheard,
        "nothing was accepted"
    );
    let turn = turn_after(&sample.store, None, run(1), &[]).await;
    sample
        .append(Stream::Run(run(1)), vec![run_ended(run(1), 1, turn.id)])
        .await;
    assert!(
        !sample
            .append(stream, vec![said(inputs.next().unwrap())])
            .await
            .waits_unheard,
        "no run is open"
    );
}

#[tokio::test]
async fn a_dead_input_names_the_run_that_took_it_in_by_itself_and_in_the_list() {
    let sample = Sample::new();
    begin(&sample).await;
    let stream = Stream::Session(session(1));
    let waits = accepted(1, 1, Source::Api, "poison");
    sample.append(stream, vec![waits]).await;
    let started = run_started(run(1), 1, None, vec![input(1)]);
    sample.append(Stream::Run(run(1)), vec![started]).await;
    let dead = InputDead {
        input: input(1),
        session: session(1),
        reason: "it always traps".to_owned(),
        time: NOON,
    };
    sample.append(stream, vec![Event::InputDead(dead)]).await;
    let named = async || {
        let (_, state) = sample.store.input(input(1)).await.unwrap().unwrap();
        let InputState::Dead { run, begun, .. } = state else {
            panic!("{state:?}")
        };
        let letters = sample.store.dead_inputs(None, 10).await.unwrap();
        assert_eq!(letters.len(), 1);
        assert_eq!((letters[0].run, letters[0].begun), (run, begun));
        (run, begun)
    };
    assert_eq!(named().await, (Some(run(1)), false), "no turn is kept");
    let turn = turn_after(&sample.store, None, run(1), &[]).await;
    sample
        .append(Stream::Run(run(1)), vec![run_ended(run(1), 1, turn.id)])
        .await;
    assert_eq!(named().await, (Some(run(1)), true), "its turn is kept");
}

#[tokio::test]
async fn a_dead_input_can_be_looked_at_and_requeued() {
    let sample = Sample::new();
    begin(&sample).await;
    let stream = Stream::Session(session(1));
    sample
        .append(
            stream,
            vec![
                accepted(1, 1, Source::Api, "poison"),
                accepted(2, 1, Source::Api, "fine"),
            ],
        )
        .await;
    let dead = InputDead {
        input: input(1),
        session: session(1),
        reason: "it always traps".to_owned(),
        time: NOON,
    };
    sample
        .append(stream, vec![Event::InputDead(dead.clone())])
        .await;
    assert_eq!(
        sample
            .store
            .waiting_inputs(session(1), NOON, 10)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        sample.store.input(input(1)).await.unwrap().unwrap().1,
        InputState::Dead {
            reason: "it always traps".to_owned(),
            run: None,
            begun: false,
        }
    );
    let letters = sample.store.dead_inputs(None, 10).await.unwrap();
    assert_eq!(
        letters
            .iter()
            .map(|letter| &letter.dead)
            .collect::<Vec<_>>(),
        [&dead]
    );
    sample
        .append(
            stream,
            vec![Event::InputRequeued(InputRequeued {
                input: input(1),
                session: session(1),
                requeued_by: ada(),
                repeat: None,
                time: NOON,
            })],
        )
        .await;
    let waiting = sample
        .store
        .waiting_inputs(session(1), NOON, 10)
        .await
        .unwrap();
    assert_eq!(
        waiting.iter().map(|input| input.input).collect::<Vec<_>>(),
        [input(1), input(2)]
    );
    assert!(sample.store.dead_inputs(None, 10).await.unwrap().is_empty());
}

/// Ends a run of session 1 that took input 1 in, which dies of it.
async fn dies_in(sample: &Sample, of: RunId, turn: Option<TurnId>) {
    let mut ended = run_ended(of, 1, TurnId(Digest([0; 32])));
    if let Event::RunEnded(ended) = &mut ended {
        ended.turn = turn;
    }
    let started = run_started(of, 1, None, vec![input(1)]);
    sample.append(Stream::Run(of), vec![started, ended]).await;
    let dead = InputDead {
        input: input(1),
        session: session(1),
        reason: "the host ended".to_owned(),
        time: NOON,
    };
    let stream = Stream::Session(session(1));
    sample.append(stream, vec![Event::InputDead(dead)]).await;
}

/// Requeues input 1, if only the turn of this run would be repeated.
async fn requeues(sample: &Sample, begun: Option<RunId>) -> bool {
    let again = InputRequeued {
        input: input(1),
        session: session(1),
        requeued_by: ada(),
        repeat: begun,
        time: NOON,
    };
    let guard = Guard::from(QueueGuard::InputDeadAfter {
        input: input(1),
        begun,
    });
    let requeued = commit(
        Stream::Session(session(1)),
        vec![Event::InputRequeued(again)],
    )
    .guard(guard.clone());
    match sample.store.commit(requeued).await {
        Ok(_) => true,
        Err(CommitError::Conflict(conflict)) => {
            assert_eq!(conflict.clash, Clash::Guard(guard));
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn an_input_with_which_a_turn_had_begun_needs_consent_at_each_requeue() {
    let sample = Sample::new();
    begin(&sample).await;
    let stream = Stream::Session(session(1));
    sample
        .append(stream, vec![accepted(1, 1, Source::Api, "poison")])
        .await;
    let letter = async || {
        let letter = sample.store.dead_input(input(1)).await.unwrap().unwrap();
        assert_eq!(
            sample.store.dead_inputs(None, 10).await.unwrap(),
            std::slice::from_ref(&letter)
        );
        let state = sample.store.input(input(1)).await.unwrap().unwrap().1;
        let expected = InputState::Dead {
            reason: "the host ended".to_owned(),
            run: letter.run,
            begun: letter.begun,
        };
        assert_eq!(state, expected);
        (letter.run, letter.begun)
    };
    // No step of the first was taken.
    dies_in(&sample, run(1), None).await;
    assert_eq!(letter().await, (Some(run(1)), false));
    assert!(requeues(&sample, None).await);
    dies_in(&sample, run(2), Some(TurnId(Digest([2; 32])))).await;
    assert_eq!(letter().await, (Some(run(2)), true));
    // Nor of those after the one that had begun, and one dies before it has a run.
    for again in [Some(run(3)), Some(run(4)), None] {
        assert!(!requeues(&sample, None).await, "{again:?}");
        assert!(!requeues(&sample, Some(run(1))).await, "{again:?}");
        assert!(requeues(&sample, Some(run(2))).await, "{again:?}");
        match again {
            Some(again) => dies_in(&sample, again, None).await,
            None => {
                let dead = InputDead {
                    input: input(1),
                    session: session(1),
                    reason: "the host ended".to_owned(),
                    time: NOON,
                };
                sample.append(stream, vec![Event::InputDead(dead)]).await;
            }
        }
        assert_eq!(letter().await, (Some(run(2)), true), "{again:?}");
    }
    // The consent was to a repetition of that turn, and not of the repetition.
    assert!(requeues(&sample, Some(run(2))).await);
    dies_in(&sample, run(5), Some(TurnId(Digest([5; 32])))).await;
    assert!(!requeues(&sample, Some(run(2))).await);
    assert!(requeues(&sample, Some(run(5))).await);
    dies_in(&sample, run(6), None).await;
    assert_eq!(letter().await, (Some(run(5)), true));
    sample.store.rebuild().await.unwrap();
    assert_eq!(letter().await, (Some(run(5)), true));
}

#[tokio::test]
async fn dead_letters_are_read_page_by_page_whatever_becomes_of_those_before() {
    let sample = Sample::new();
    begin(&sample).await;
    let stream = Stream::Session(session(1));
    for n in 1..=5 {
        let dead = InputDead {
            input: input(n),
            session: session(1),
            reason: "no".to_owned(),
            time: NOON,
        };
        let said = accepted(n, 1, Source::Api, "poison");
        sample
            .append(stream, vec![said, Event::InputDead(dead)])
            .await;
    }
    let page = async |before: Option<u64>| {
        let letters = sample.store.dead_inputs(before, 2).await.unwrap();
        let last = letters.last().map(|letter| letter.position);
        let inputs: Vec<_> = letters.iter().map(|it| it.accepted.input).collect();
        (inputs, last)
    };
    let (first, last) = page(None).await;
    assert_eq!(first, [input(5), input(4)]);
    // The last of a page waits again before the next one is read.
    let again = InputRequeued {
        input: input(4),
        session: session(1),
        requeued_by: ada(),
        repeat: None,
        time: NOON,
    };
    sample
        .append(stream, vec![Event::InputRequeued(again)])
        .await;
    let (second, last) = page(last).await;
    assert_eq!(second, [input(3), input(2)]);
    let (third, last) = page(last).await;
    assert_eq!(third, [input(1)]);
    assert_eq!(page(last).await, (Vec::new(), None));
}

#[tokio::test]
async fn operations_are_open_until_they_settle_and_wake_their_session_meanwhile() {
    let sample = Sample::new();
    begin(&sample).await;
    let mut slow = timer(run(1), "slow", NOON.plus_ms(500));
    slow.deadline = Some(NOON.plus_ms(300));
    let (slow_id, quick) = (slow.id, timer(run(1), "quick", NOON.plus_ms(100)));
    let quick_id = quick.id;
    let step = Event::RunStepped(Box::new(stepped(
        run(1),
        Vec::new(),
        Vec::new(),
        vec![slow, quick],
    )));
    sample
        .append(
            Stream::Run(run(1)),
            vec![run_started(run(1), 1, None, Vec::new()), step],
        )
        .await;
    let open = |operation| {
        Commit::new().guard(RunGuard::OperationOpen {
            run: run(1),
            operation,
        })
    };
    sample.store.commit(open(quick_id)).await.unwrap();
    assert_eq!(
        sample.store.next_wake().await.unwrap(),
        Some(NOON.plus_ms(100))
    );
    assert!(sample.store.due_wakes(NOON, 10).await.unwrap().is_empty());
    let due = crate::DueSession {
        session: session(1),
        newest: NOON.plus_ms(300),
    };
    assert_eq!(
        sample.store.due_wakes(NOON.plus_ms(400), 10).await.unwrap(),
        [due]
    );

    let settlement = Settlement::new(quick_id, OperationOutcome::Elapsed, NOON);
    sample
        .append(
            Stream::Run(run(1)),
            vec![Event::RunSettled(RunSettled {
                run: run(1),
                settled: vec![settlement],
            })],
        )
        .await;
    assert!(matches!(
        sample.store.commit(open(quick_id)).await,
        Err(CommitError::Conflict(_))
    ));
    assert_eq!(
        sample.store.next_wake().await.unwrap(),
        Some(NOON.plus_ms(300))
    );

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
        .append(
            Stream::Run(run(1)),
            vec![Event::OperationContinued(continued)],
        )
        .await;
    assert_eq!(
        sample.store.next_wake().await.unwrap(),
        Some(NOON.plus_ms(50))
    );
    let started = OperationStarted {
        run: run(1),
        operation: slow_id,
        segment: 1,
        effect: None,
        time: NOON,
    };
    sample
        .append(Stream::Run(run(1)), vec![Event::OperationStarted(started)])
        .await;
    assert_eq!(
        sample.store.next_wake().await.unwrap(),
        Some(NOON.plus_ms(300))
    );

    let turn = turn_after(&sample.store, None, run(1), &[]).await;
    sample
        .append(Stream::Run(run(1)), vec![run_ended(run(1), 1, turn.id)])
        .await;
    assert_eq!(sample.store.next_wake().await.unwrap(), None);
    assert!(matches!(
        sample.store.commit(open(slow_id)).await,
        Err(CommitError::Conflict(_))
    ));
}

#[tokio::test]
async fn a_reminder_wakes_its_session_unless_a_run_is_open_that_takes_in_no_messages() {
    let sample = Sample::new();
    begin(&sample).await;
    sample
        .append(Stream::Session(session(2)), vec![opened(2, 1, None)])
        .await;
    for (n, due) in [(1, 18), (2, 20)] {
        let left = accepted(n, n, reminder(due), "now");
        sample.append(Stream::Session(session(n)), vec![left]).await;
    }
    let due = async |limit| {
        let due = sample.store.due_wakes(NOON.plus_ms(100), limit).await;
        let due = due.unwrap().into_iter();
        due.map(|due| (due.session, due.newest.since_ms(NOON)))
            .collect::<Vec<_>>()
    };
    let both = [(session(1), 18), (session(2), 20)];
    assert_eq!(due(10).await, both);
    let of_run = Stream::Run(run(1));
    sample
        .append(of_run, vec![run_started(run(1), 1, None, Vec::new())])
        .await;
    assert_eq!(due(10).await, both, "its first step may hear it");
    let waits = |hear, started, settled| {
        let step = stepped(run(1), Vec::new(), Vec::new(), started);
        let decision = Decision::Wait(Wait {
            start: Vec::new(),
            cancel: Vec::new(),
            until: Until::Any,
            hear,
        });
        vec![Event::RunStepped(Box::new(RunStepped {
            decision,
            settled,
            ..step
        }))]
    };
    let alarm = timer(run(1), "alarm", NOON.plus_ms(15));
    let rang = Settlement::new(alarm.id, OperationOutcome::Elapsed, NOON);
    sample
        .append(of_run, waits(false, vec![alarm], Vec::new()))
        .await;
    assert_eq!(due(10).await, [(session(1), 15), both[1]], "its timer only");
    sample
        .append(of_run, waits(true, Vec::new(), Vec::new()))
        .await;
    assert_eq!(due(10).await, both, "it may join the run");
    sample
        .append(of_run, waits(false, Vec::new(), vec![rang]))
        .await;
    assert_eq!(due(1).await, [both[1]], "nobody hears it");
    let turn = turn_after(&sample.store, None, run(1), &[]).await;
    sample
        .append(of_run, vec![run_ended(run(1), 1, turn.id)])
        .await;
    assert_eq!(due(10).await, both);
}

#[tokio::test]
async fn a_session_shows_its_last_reply_and_the_latest_comes_first() {
    let sample = Sample::new();
    begin(&sample).await;
    sample
        .append(Stream::Session(session(2)), vec![opened(2, 1, None)])
        .await;
    let turn = take_turn(&sample.store, 1, None, 1, "hello", "  good\n\nmorning  ").await;
    let row = sample.store.session(session(1)).await.unwrap().unwrap();
    assert_eq!(row.last_snippet.as_deref(), Some("good morning"));
    assert_eq!(
        (row.head, row.head_message, row.revision),
        (Some(turn.id), 2, 1)
    );
    let listed = sample
        .store
        .sessions(agent(1), SessionFilter::default(), None, 10)
        .await
        .unwrap();
    assert_eq!(
        listed.iter().map(|row| row.id).collect::<Vec<_>>(),
        [session(1), session(2)]
    );
    // A fork begins where its head is.
    sample
        .append(
            Stream::Session(session(3)),
            vec![opened(3, 1, Some(turn.id))],
        )
        .await;
    let fork = sample.store.session(session(3)).await.unwrap().unwrap();
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
    let sample = Sample::new();
    begin(&sample).await;
    sample
        .append(
            Stream::Agent(agent(2)),
            vec![created(2, "/ada/assistant/sub/1", Some(agent(1)))],
        )
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
        .append(
            Stream::Agent(agent(1)),
            vec![
                Event::NoteRemembered(note),
                Event::PreferencesUpdated(learned),
            ],
        )
        .await;
    let stream = Stream::Session(session(1));
    sample
        .append(
            stream,
            vec![
                accepted(50, 1, reminder(9), "soon"),
                accepted(51, 1, Source::Api, "poison"),
            ],
        )
        .await;
    let dead = InputDead {
        input: input(51),
        session: session(1),
        reason: "no".to_owned(),
        time: NOON,
    };
    sample.append(stream, vec![Event::InputDead(dead)]).await;
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
        .store
        .commit(commit(Stream::Run(run(60)), events).blob(b"[]".to_vec()))
        .await
        .unwrap();

    spawn(&sample, 70, 1, "/ada/assistant/sub/2", "ada").await;
    let kept = written(
        &place("shelf", BucketScope::Component, ""),
        &[("a", Some(b"1"))],
    );
    sample.append(Stream::Run(run(60)), vec![kept]).await;
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
        .append(
            Stream::Host,
            vec![
                Event::ConnectorKeyBound(bound),
                Event::DefinitionMade(Box::new(made)),
            ],
        )
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
            vec![Event::ItemRecorded(item), uploaded(1, b"[]", "list.json")],
        )
        .await;
    sample
        .append(
            Stream::Host,
            vec![issued(1, "ada"), issued(2, "bob"), revoked(2, "lost")],
        )
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
    sample.append(stream, vec![Event::MemoryRead(read)]).await;
    some_of_each(&sample).await;

    let before = everything(&sample.database());
    assert!(
        PROJECTIONS
            .iter()
            .all(|table| before.iter().any(|row| row.starts_with(table))),
        "every table holds something"
    );
    let found = sample
        .store
        .recall(agent(1), None, "tea morning", 10)
        .await
        .unwrap();
    assert_eq!(
        sample.store.rebuild().await.unwrap().events,
        *sample.store.durable().borrow()
    );
    assert_eq!(everything(&sample.database()), before);
    assert_eq!(
        sample
            .store
            .recall(agent(1), None, "tea morning", 10)
            .await
            .unwrap(),
        found
    );
    assert_eq!(found.len(), 2);
    // The store goes on from there.
    let next = turn_after(
        &sample.store,
        Some(&turn),
        run(60),
        &[message(15, Role::User, &"x".repeat(300))],
    )
    .await;
    let end = commit(Stream::Run(run(60)), vec![run_ended(run(60), 1, next.id)]).append(
        stream,
        Expected::Any,
        vec![new(turn_committed(1, &next))],
    );
    sample.store.commit(end).await.unwrap();
    assert_eq!(sample.store.verify().await.unwrap().fault, None);
}
