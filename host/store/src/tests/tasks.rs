//! Tasks: what is known of work that was handed over, at each moment of it.

use super::projections::everything;
use super::sample::{
    NOON, Sample, accepted, agent, begin, input, opened, run, run_started, session, stepped, timer,
};
use crate::read::tasks::{COUNTED_OF_AGENT, COUNTED_OF_SESSION, COUNTED_OF_USER};
use crate::read::tasks::{OF_AGENT, OF_SESSION, OF_USER};
use crate::sql::args;
use crate::{AgentGuard, Commit, TaskFilter};
use domain::budget::Amount;
use domain::delegate::{Priority, TaskState};
use domain::event::{Event, RunSettled, Source};
use domain::id::{OperationId, Stream};
use domain::operation::{Operation, Performer, ReplyTo, Settlement};
use domain::step::OperationOutcome;
use domain::task::{TaskKind, TaskStatus};
use domain::user::UserId;
use std::collections::BTreeMap;

/// Arguments of an urgent delegation.
const ARGUMENTS: &str =
    r#"{"target":"worker","operation":"list_files","parameters":{"path":"/data"},"priority":4}"#;

/// A delegation by run 1 that goes to session `to` with the input of the same number.
fn handed_over(to: u128, queued: bool) -> Operation {
    let performer = Performer::Agent {
        agent: agent(1),
        session: session(to),
        input: input(to),
        delegation: Some(ARGUMENTS.to_owned()),
        message: None,
        since: NOON,
        queued,
    };
    Operation {
        performer,
        ..timer(run(1), &format!("d{to}"), NOON)
    }
}

fn transferred(operation: OperationId) -> Source {
    Source::Dispatch {
        reply_to: Some(ReplyTo {
            run: run(1),
            operation,
            attached: true,
        }),
        from: "/ada".to_owned(),
        deadline: None,
        depth: 1,
        hops: 0,
        priority: Priority::Critical,
        spawn_depth: 0,
        budget: Default::default(),
        denies: Default::default(),
        permissions: Default::default(),
        accounts: Default::default(),
    }
}

async fn status(sample: &Sample, id: OperationId) -> TaskStatus {
    let row = sample.task(id, None).await.unwrap();
    row.expect("a task").status
}

/// Has run 1 hand two pieces of work over; the second waits for room.
async fn two_tasks(sample: &Sample) -> [OperationId; 2] {
    begin(sample).await;
    for n in [2, 3] {
        sample.in_session(n, [opened(n, 1, None)]).await;
    }
    let work = [handed_over(2, false), handed_over(3, true)];
    let step = stepped(run(1), Vec::new(), Vec::new(), work.to_vec());
    sample
        .in_run(
            1,
            [
                run_started(run(1), 1, None, Vec::new()),
                Event::RunStepped(Box::new(step)),
            ],
        )
        .await;
    let ids = work.map(|operation| operation.id);
    for (n, id) in [(2, ids[0]), (3, ids[1])] {
        sample
            .in_session(n, [accepted(n, n, transferred(id), "work")])
            .await;
    }
    ids
}

#[tokio::test]
async fn a_task_is_known_from_its_hand_over_to_its_end_and_folds_again() {
    let sample = Sample::new();
    let [first, second] = two_tasks(&sample).await;
    assert_eq!(status(&sample, first).await, TaskStatus::Pending);
    assert_eq!(status(&sample, second).await, TaskStatus::Queued);
    let under_way = async || {
        let found = sample.delegations_under_way(10).await.unwrap();
        let mut inputs: Vec<_> = found.into_iter().map(|(_, _, input)| input).collect();
        inputs.sort();
        inputs
    };
    assert_eq!(under_way().await, [input(2), input(3)]);
    let row = sample.task(first, None).await.unwrap().unwrap();
    assert_eq!(
        (row.kind, row.target.as_deref(), row.operation.as_deref()),
        (TaskKind::Delegate, Some("worker"), Some("list_files"))
    );
    assert_eq!(row.parameters.as_deref(), Some(r#"{"path":"/data"}"#));
    assert_eq!((row.to_session, row.input), (session(2), input(2)));

    sample.begin_run(2, 2, [input(2)]).await;
    assert_eq!(status(&sample, first).await, TaskStatus::Running);
    sample.end_run(2, 2).await;
    let spent = Amount {
        tokens: 7,
        calls: 1,
        cost_micros: 3,
    };
    let settle = |id, state| {
        let outcome = OperationOutcome::Parts { parts: Vec::new() };
        Settlement::new(id, outcome, NOON.plus_ms(500))
            .spending(spent)
            .ending(state)
    };
    let settled = vec![
        settle(first, TaskState::Completed),
        settle(second, TaskState::Timeout),
    ];
    sample
        .in_run(
            1,
            [Event::RunSettled(RunSettled {
                run: run(1),
                settled,
            })],
        )
        .await;
    let rows = sample.tasks(TaskFilter::default(), None, 10).await.unwrap();
    let mut ends: Vec<_> = rows
        .iter()
        .map(|row| (row.to_session, row.status, row.tokens, row.ended_at))
        .collect();
    ends.sort_by_key(|end| end.0);
    let ended = Some(NOON.plus_ms(500));
    assert_eq!(
        ends,
        [
            (session(2), TaskStatus::Completed, 7, ended),
            (session(3), TaskStatus::Timeout, 7, ended)
        ]
    );
    assert_eq!(under_way().await, []);
    let before = everything(&sample.database());
    sample.rebuild().await.unwrap();
    assert_eq!(everything(&sample.database()), before);
}

#[tokio::test]
async fn work_that_the_host_gives_an_agent_takes_no_place_of_its_tree() {
    let sample = Sample::new();
    let [first, _] = two_tasks(&sample).await;
    let by_host = |depth| match transferred(first) {
        Source::Dispatch {
            from,
            deadline,
            hops,
            priority,
            spawn_depth,
            budget,
            denies,
            permissions,
            accounts,
            ..
        } => Source::Dispatch {
            reply_to: None,
            from,
            deadline,
            depth,
            hops,
            priority,
            spawn_depth,
            budget,
            denies,
            permissions,
            accounts,
        },
        other => other,
    };
    let in_tree = async || {
        let found = sample.handed_over(run(1), agent(1)).await.unwrap();
        found.in_tree
    };
    assert_eq!(in_tree().await, 1);
    let stream = Stream::Session(session(1));
    sample
        .append(stream, [accepted(8, 1, by_host(0), "read this")])
        .await;
    assert_eq!(in_tree().await, 1);
    // Without a known caller, work that an agent handed over counts still.
    sample
        .append(stream, [accepted(9, 1, by_host(1), "work")])
        .await;
    assert_eq!(in_tree().await, 2);
    sample.rebuild().await.unwrap();
    assert_eq!(in_tree().await, 2);
}

#[tokio::test]
async fn tasks_are_listed_from_the_newest_on_for_whoever_sees_their_session() {
    let sample = Sample::new();
    let ids = two_tasks(&sample).await;
    let all = |filter: TaskFilter| sample.tasks(filter, None, 10);
    assert_eq!(all(TaskFilter::default()).await.unwrap().len(), 2);
    let of = |user: &str| TaskFilter {
        user: Some(user.parse::<UserId>().unwrap()),
        ..TaskFilter::default()
    };
    assert_eq!(all(of("ada")).await.unwrap().len(), 2);
    assert_eq!(all(of("eve")).await.unwrap(), []);
    let eve: UserId = "eve".parse().unwrap();
    assert_eq!(sample.task(ids[0], Some(&eve)).await.unwrap(), None);
    let elsewhere = TaskFilter {
        session: Some(session(2)),
        ..TaskFilter::default()
    };
    assert_eq!(all(elsewhere).await.unwrap(), []);
    // Whatever else is given, an agent's tasks are those that it handed over or does.
    for (filter, by, expected) in [
        (TaskFilter::default(), 1, 2),
        (TaskFilter::default(), 7, 0),
        (of("ada"), 1, 2),
        (of("ada"), 7, 0),
        (of("eve"), 1, 0),
    ] {
        let of_agent = TaskFilter {
            agent: Some(agent(by)),
            ..filter
        };
        let in_session = TaskFilter {
            session: Some(session(1)),
            ..of_agent.clone()
        };
        for filter in [of_agent, in_session] {
            let found = all(filter.clone()).await.unwrap();
            assert_eq!(found.len(), expected, "{filter:?}");
        }
    }
    let newest = all(TaskFilter::default()).await.unwrap();
    let until = TaskFilter {
        to: Some(newest[1].created_at),
        ..of("ada")
    };
    assert_eq!(all(until).await.unwrap(), []);
    // A page goes on after the last row of the one before.
    let first = sample.tasks(TaskFilter::default(), None, 1).await;
    let first = first.unwrap();
    let after = Some((first[0].created_at, first[0].id));
    let second = sample.tasks(TaskFilter::default(), after, 5).await;
    let second = second.unwrap();
    assert_eq!(second.len(), 1);
    assert_ne!(first[0].id, second[0].id);
}

#[tokio::test]
async fn nobodys_tasks_are_found_by_walking_everybodys() {
    let sample = Sample::begun().await;
    let connection = sample.connection();
    for statement in [
        OF_SESSION,
        OF_USER,
        OF_AGENT,
        COUNTED_OF_SESSION,
        COUNTED_OF_USER,
        COUNTED_OF_AGENT,
    ] {
        let steps = connection.plan(statement);
        let of_one = ["tasks_by_session", "tasks_by_agent", "tasks_by_doer"];
        let is_narrow = |step: &String| of_one.iter().any(|index| step.contains(index));
        assert!(steps.iter().any(is_narrow), "{statement}: {steps:?}");
        let is_wide = |step: &String| step.contains("tasks_by_time") || step.contains("SCAN k");
        assert!(!steps.iter().any(is_wide), "{statement}: {steps:?}");
    }
}

/// Puts tasks of run 1 into the database that were done after 1 ms, 2 ms and so on.
fn done(sample: &Sample, tasks: u64) {
    let connection = sample.connection();
    let text = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
                INSERT INTO tasks (id, run, session, agent, user_id, kind, target, operation, \
                to_agent, to_session, input, detached, blocked, created_at, state, ended_at, tokens, \
                cost_micros) SELECT CAST(printf('%032d', i) AS BLOB), ?2, ?3, ?4, 'local', \
                'delegate', 'worker', 'read_file', ?5, ?6, CAST(printf('%016d', i) AS BLOB), 0, 0, ?7, 'COMPLETED', \
                ?7 + i, 2, 3 FROM n";
    connection
        .execute(
            text,
            args![
                i64::try_from(tasks).unwrap(),
                run(1),
                session(1),
                agent(1),
                agent(2),
                session(2),
                i64::try_from(NOON.0).unwrap(),
            ],
        )
        .unwrap();
}

#[tokio::test]
async fn tasks_are_summed_up_however_many_there_are_and_whoever_looks() {
    let sample = Sample::new();
    two_tasks(&sample).await;
    done(&sample, 60_000);
    let of = |user: &str| TaskFilter {
        user: Some(user.parse::<UserId>().unwrap()),
        ..TaskFilter::default()
    };
    let of_session = |n| TaskFilter {
        session: Some(session(n)),
        ..TaskFilter::default()
    };
    let of_agent = |n| TaskFilter {
        agent: Some(agent(n)),
        ..TaskFilter::default()
    };
    let sums = async |filter, hidden: &[u128]| {
        let hidden = hidden.iter().copied().map(agent).collect();
        let stats = sample.task_stats(filter, hidden).await.unwrap();
        assert!(!stats.is_cut_off);
        stats.sums
    };
    for filter in [
        TaskFilter::default(),
        of("ada"),
        of_session(1),
        of_agent(1),
        TaskFilter {
            session: Some(session(1)),
            ..of("ada")
        },
    ] {
        let found = sums(filter.clone(), &[7]).await;
        let [list, read] = found.as_slice() else {
            panic!("{filter:?}: {found:?}")
        };
        let waiting = [(TaskStatus::Pending, 1), (TaskStatus::Queued, 1)];
        assert_eq!(list.states, BTreeMap::from(waiting), "{filter:?}");
        let ended = [(TaskStatus::Completed, 60_000)];
        assert_eq!(read.states, BTreeMap::from(ended), "{filter:?}");
        assert_eq!((list.p50_ms, list.tokens), (None, 0));
        assert_eq!((read.p50_ms, read.p95_ms), (Some(30_016), Some(57_024)));
        assert_eq!((read.tokens, read.cost_micros), (120_000, 180_000));
        // Whom the operator hides has handed nothing over.
        assert_eq!(sums(filter, &[1]).await, []);
    }
    for filter in [of("eve"), of_session(2), of_agent(7)] {
        assert_eq!(sums(filter.clone(), &[]).await, [], "{filter:?}");
    }
    let until = TaskFilter {
        to: Some(NOON),
        ..TaskFilter::default()
    };
    assert_eq!(sums(until, &[]).await, []);
    let callers = async |user: UserId| sample.task_callers(&user).await.unwrap();
    let caller = (agent(1), "/ada/assistant".to_owned());
    assert_eq!(callers("ada".parse().unwrap()).await, [caller]);
    assert_eq!(callers("eve".parse().unwrap()).await, []);
}

#[tokio::test]
async fn a_delegation_that_waits_for_room_counts_apart_until_its_turn_begins() {
    let sample = Sample::new();
    two_tasks(&sample).await;
    let tree = agent(1);
    let counts = async || {
        let found = sample.handed_over(run(1), tree).await.unwrap();
        (found.by_run, found.in_tree, found.queued)
    };
    assert_eq!(counts().await, (1, 1, 1));
    let (found, queue) = sample.blocked_beside(input(2)).await.unwrap().unwrap();
    let waiting: Vec<_> = queue
        .waiting
        .iter()
        .map(|blocked| (blocked.input, blocked.session, blocked.by_run))
        .collect();
    assert_eq!((found, queue.open_in_tree), (tree, 1));
    assert_eq!(waiting, [(input(3), session(3), run(1))]);
    assert_eq!(queue.open_by_run.get(&run(1)), Some(&1));
    for (n, expected) in [(2, false), (3, true), (9, false)] {
        let blocked = sample.waits_for_room(input(n)).await.unwrap();
        assert_eq!(blocked, expected, "input {n}");
    }
    for (guard, holds) in [
        (AgentGuard::BlockedAtMost { tree, max: 1 }, true),
        (AgentGuard::BlockedAtMost { tree, max: 0 }, false),
        (AgentGuard::TreeDispatchesAtMost { tree, max: 1 }, true),
        (AgentGuard::TreeDispatchesAtMost { tree, max: 0 }, false),
        (
            AgentGuard::RunDispatchesAtMost {
                tree,
                run: run(1),
                max: 0,
            },
            false,
        ),
    ] {
        let commit = Commit::new().guard(guard.clone());
        let landed = sample.commit(commit).await.is_ok();
        assert_eq!(landed, holds, "{guard:?}");
    }
    sample.begin_run(3, 3, [input(3)]).await;
    assert_eq!(counts().await, (2, 2, 0));
    assert_eq!(sample.blocked_beside(input(2)).await.unwrap(), None);
    sample.rebuild().await.unwrap();
    assert_eq!(counts().await, (2, 2, 0));
}
