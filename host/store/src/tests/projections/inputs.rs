//! Inputs: they wait, are claimed and consumed, or die and are requeued.

use super::super::sample::{
    NOON, Sample, accepted, commit, dead, expecting, input, noise, opened, requeued, run,
    run_ended, run_started, session, stepped, timer, turn_after,
};
use super::reminder;
use crate::{Clash, Commit, CommitError, Expected, Guard, InputState, QueueGuard, SessionGuard};
use domain::definition::DefinitionId;
use domain::delegate::Priority;
use domain::digest::Digest;
use domain::event::{Event, RunStepped, Source};
use domain::id::{RunId, Stream, TurnId};
use domain::operation::Settlement;
use domain::queue::WaitKind;
use domain::step::{Decision, OperationOutcome, Until, Wait};
use domain::turn::TurnEnd;

#[tokio::test]
async fn an_input_waits_is_claimed_and_is_consumed_with_its_run() {
    let sample = Sample::begun().await;
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
            [
                accepted(1, 1, dispatch, "work"),
                accepted(2, 1, reminder(1_000), "later"),
                accepted(3, 1, Source::Api, "hello"),
            ],
        )
        .await;
    assert_eq!(sample.waiting(1, NOON).await, [input(1), input(3)]);
    assert_eq!(sample.waiting(1, NOON.plus_ms(1_000)).await.len(), 3);
    assert_eq!(sample.session(1).await.waiting, 3);
    assert_eq!(
        sample.input_position(input(1)).await.unwrap(),
        Some((session(1), 3))
    );

    let start = expecting(
        Stream::Run(run(1)),
        Expected::New,
        [run_started(run(1), 1, None, vec![input(3)])],
    )
    .guard(QueueGuard::InputWaiting(input(3)))
    .guard(SessionGuard::NoOpenRun(session(1)));
    sample.commit(start.clone()).await.unwrap();
    assert_eq!(sample.input(3).await, InputState::Claimed { run: run(1) });
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
    sample.commit(at(NOON)).await.unwrap();
    sample.conflicts(at(NOON.plus_ms(1_000))).await;
    let Err(CommitError::Conflict(again)) = sample.commit(start).await else {
        panic!("two runs at a time")
    };
    assert_eq!(
        again.clash,
        Clash::Guard(Guard::Queue(QueueGuard::InputWaiting(input(3))))
    );
    assert_eq!(sample.sessions_with_work(NOON).await.unwrap(), [session(1)]);
    for (definitions, running) in [
        (vec!["other", "assistant"], vec![session(1)]),
        (vec!["other"], Vec::new()),
        (Vec::new(), Vec::new()),
    ] {
        let definitions: Vec<DefinitionId> = definitions
            .into_iter()
            .map(|definition| DefinitionId(definition.to_owned()))
            .collect();
        let found = sample.sessions_running_as(&definitions).await;
        assert_eq!(found.unwrap(), running, "{definitions:?}");
    }

    let turn = sample.end_run(1, 1).await;
    assert_eq!(sample.input(3).await, InputState::Consumed { run: run(1) });
    let row = sample.run(1).await;
    assert_eq!(
        (row.end, row.turn, row.session),
        (Some(TurnEnd::Replied), Some(turn.id), session(1))
    );
    assert_eq!(sample.session(1).await.open_run, None);
}

#[tokio::test]
async fn a_commit_says_whether_what_it_accepts_waits_for_a_run_that_does_not_hear() {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    let said = |n| accepted(n, 1, Source::Api, "hello");
    assert!(
        !sample.append(stream, [said(1)]).await.waits_unheard,
        "it begins a turn"
    );
    sample.begin_run(1, 1, [input(1)]).await;
    assert!(
        !sample.append(stream, [said(2)]).await.waits_unheard,
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
        sample.in_run(1, [Event::RunStepped(Box::new(step))]).await;
        assert_eq!(
            sample
                .append(stream, [said(inputs.next().unwrap())])
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
            .append(stream, [Event::InputAccepted(interrupting)])
            .await
            .waits_unheard,
        "it ends the run"
    );
    assert!(
        !sample.append(stream, [noise(1)]).await.waits_unheard,
        "nothing was accepted"
    );
    sample.end_run(1, 1).await;
    assert!(
        !sample
            .append(stream, [said(inputs.next().unwrap())])
            .await
            .waits_unheard,
        "no run is open"
    );
}

#[tokio::test]
async fn a_dead_input_names_the_run_that_took_it_in_by_itself_and_in_the_list() {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    sample
        .append(stream, [accepted(1, 1, Source::Api, "poison")])
        .await;
    sample.begin_run(1, 1, [input(1)]).await;
    sample.append(stream, [dead(1, 1, "it always traps")]).await;
    let named = async || {
        let (_, state) = sample.store.input(input(1)).await.unwrap().unwrap();
        let InputState::Dead { run, begun, .. } = state else {
            panic!("{state:?}")
        };
        let letters = sample.dead_inputs(None, 10).await.unwrap();
        assert_eq!(letters.len(), 1);
        assert_eq!((letters[0].run, letters[0].begun), (run, begun));
        (run, begun)
    };
    assert_eq!(named().await, (Some(run(1)), false), "no turn is kept");
    sample.end_run(1, 1).await;
    assert_eq!(named().await, (Some(run(1)), true), "its turn is kept");
}

#[tokio::test]
async fn a_dead_input_can_be_looked_at_and_requeued() {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    sample
        .append(
            stream,
            [
                accepted(1, 1, Source::Api, "poison"),
                accepted(2, 1, Source::Api, "fine"),
            ],
        )
        .await;
    let dead = dead(1, 1, "it always traps");
    sample.append(stream, [dead.clone()]).await;
    assert_eq!(sample.waiting(1, NOON).await.len(), 1);
    assert_eq!(
        sample.input(1).await,
        InputState::Dead {
            reason: "it always traps".to_owned(),
            run: None,
            begun: false,
        }
    );
    let letters = sample.dead_inputs(None, 10).await.unwrap();
    let letters: Vec<Event> = letters
        .into_iter()
        .map(|it| Event::InputDead(it.dead))
        .collect();
    assert_eq!(letters, [dead]);
    sample.append(stream, [requeued(1, 1, None)]).await;
    assert_eq!(sample.waiting(1, NOON).await, [input(1), input(2)]);
    assert!(sample.dead_inputs(None, 10).await.unwrap().is_empty());
}

/// Ends a run of session 1 that took input 1 in, which dies of it.
async fn dies_in(sample: &Sample, of: RunId, turn: Option<TurnId>) {
    let mut ended = run_ended(of, 1, TurnId(Digest([0; 32])));
    if let Event::RunEnded(ended) = &mut ended {
        ended.turn = turn;
    }
    let started = run_started(of, 1, None, vec![input(1)]);
    sample.append(Stream::Run(of), [started, ended]).await;
    let dead = dead(1, 1, "the host ended");
    let stream = Stream::Session(session(1));
    sample.append(stream, [dead]).await;
}

/// Requeues input 1, if only the turn of this run would be repeated.
async fn requeues(sample: &Sample, begun: Option<RunId>) -> bool {
    let again = requeued(1, 1, begun);
    let guard = Guard::from(QueueGuard::InputDeadAfter {
        input: input(1),
        begun,
    });
    let requeued = commit(Stream::Session(session(1)), [again]).guard(guard.clone());
    match sample.commit(requeued).await {
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
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    sample
        .append(stream, [accepted(1, 1, Source::Api, "poison")])
        .await;
    let letter = async || {
        let letter = sample.dead_input(input(1)).await.unwrap().unwrap();
        assert_eq!(
            sample.dead_inputs(None, 10).await.unwrap(),
            std::slice::from_ref(&letter)
        );
        let state = sample.input(1).await;
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
                sample.append(stream, [dead(1, 1, "the host ended")]).await;
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
    sample.rebuild().await.unwrap();
    assert_eq!(letter().await, (Some(run(5)), true));
}

#[tokio::test]
async fn dead_letters_are_read_page_by_page_whatever_becomes_of_those_before() {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    for n in 1..=5 {
        let dead = dead(n, 1, "no");
        let said = accepted(n, 1, Source::Api, "poison");
        sample.append(stream, [said, dead]).await;
    }
    let page = async |before: Option<u64>| {
        let letters = sample.dead_inputs(before, 2).await.unwrap();
        let last = letters.last().map(|letter| letter.position);
        let inputs: Vec<_> = letters.iter().map(|it| it.accepted.input).collect();
        (inputs, last)
    };
    let (first, last) = page(None).await;
    assert_eq!(first, [input(5), input(4)]);
    // The last of a page waits again before the next one is read.
    sample.append(stream, [requeued(4, 1, None)]).await;
    let (second, last) = page(last).await;
    assert_eq!(second, [input(3), input(2)]);
    let (third, last) = page(last).await;
    assert_eq!(third, [input(1)]);
    assert_eq!(page(last).await, (Vec::new(), None));
}

#[tokio::test]
async fn a_reminder_wakes_its_session_unless_a_run_is_open_that_takes_in_no_messages() {
    let sample = Sample::begun().await;
    sample.in_session(2, [opened(2, 1, None)]).await;
    for (n, due) in [(1, 18), (2, 20)] {
        sample
            .in_session(n, [accepted(n, n, reminder(due), "now")])
            .await;
    }
    let due = async |limit| {
        let due = sample.due_wakes(NOON.plus_ms(100), limit).await;
        let due = due.unwrap().into_iter();
        due.map(|due| (due.session, due.newest.since_ms(NOON)))
            .collect::<Vec<_>>()
    };
    let both = [(session(1), 18), (session(2), 20)];
    assert_eq!(due(10).await, both);
    let of_run = Stream::Run(run(1));
    sample
        .append(of_run, [run_started(run(1), 1, None, Vec::new())])
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
    sample.append(of_run, [run_ended(run(1), 1, turn.id)]).await;
    assert_eq!(due(10).await, both);
}
