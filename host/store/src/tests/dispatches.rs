//! Work that agents handed to each other: the runs that it counts against, and for how long.

use super::sample::{
    NOON, Sample, accepted, agent, created, dead, input, opened, requeued, run, run_started,
    session, step, timer,
};
use crate::{AgentGuard, Clash, Commit, CommitError, Guard, SessionGuard};
use domain::delegate::Priority;
use domain::digest::Digest;
use domain::dispatch::waits::Waits;
use domain::event::{Event, RunSettled, Source};
use domain::id::OperationId;
use domain::operation::{Operation, Performer, ReplyTo, Settlement};
use domain::step::OperationOutcome;

/// Work of the agent `of`, handed over by a run.
fn handed_over(by: u128) -> Source {
    let reply_to = Some(ReplyTo {
        run: run(by),
        operation: OperationId(Digest::of(b"d")),
        attached: false,
    });
    Source::Dispatch {
        reply_to,
        from: "/ada".to_owned(),
        deadline: None,
        depth: 1,
        hops: 0,
        priority: Priority::default(),
        spawn_depth: 0,
        budget: Default::default(),
        denies: Default::default(),
        permissions: Default::default(),
        accounts: Default::default(),
    }
}

#[tokio::test]
async fn work_that_was_handed_over_counts_against_its_run_and_its_tree_until_it_has_ended() {
    let sample = Sample::begun().await;
    // Agent 3 is below agent 2, which is below agent 1; agent 4 is of nobody's tree but its own.
    for (n, parent) in [(2, Some(agent(1))), (3, Some(agent(2))), (4, None)] {
        sample
            .in_agent(n, [created(n, &format!("/ada/{n}"), parent)])
            .await;
        sample.in_session(n, [opened(n, n, None)]).await;
    }
    let counts = async |by: u128, of: u128| {
        let found = sample.handed_over(run(by), agent(of)).await.unwrap();
        (found.by_run, found.in_tree, found.tree)
    };
    sample
        .in_session(2, [accepted(1, 2, handed_over(8), "work")])
        .await;
    sample
        .in_session(
            3,
            [
                accepted(2, 3, handed_over(9), "more"),
                accepted(3, 3, Source::Api, "hello"),
            ],
        )
        .await;
    sample
        .in_session(4, [accepted(4, 4, handed_over(7), "elsewhere")])
        .await;
    assert_eq!(
        (counts(8, 1).await, counts(9, 2).await),
        ((1, 2, agent(1)), (1, 2, agent(1)))
    );
    assert_eq!(counts(7, 4).await, (1, 1, agent(4)));
    let guard = |max| {
        Commit::new().guard(AgentGuard::TreeDispatchesAtMost {
            tree: agent(1),
            max,
        })
    };
    sample.commit(guard(2)).await.unwrap();
    let Err(CommitError::Conflict(conflict)) = sample.commit(guard(1)).await else {
        panic!("two are not at most one")
    };
    assert_eq!(
        conflict.clash,
        Clash::Guard(Guard::Agent(AgentGuard::TreeDispatchesAtMost {
            tree: agent(1),
            max: 1
        }))
    );

    // It counts while it is dealt with, and no longer once its run has ended.
    sample.begin_run(1, 2, [input(1)]).await;
    assert_eq!(counts(8, 1).await, (1, 2, agent(1)));
    sample.end_run(1, 2).await;
    assert_eq!(counts(8, 1).await, (0, 1, agent(1)));

    // Nor as a dead letter, unless it waits again.
    sample.in_session(3, [dead(2, 3, "it traps")]).await;
    assert_eq!(counts(9, 3).await, (0, 0, agent(1)));
    sample.in_session(3, [requeued(2, 3, None)]).await;
    assert_eq!(counts(9, 3).await, (1, 1, agent(1)));

    sample.rebuild().await.unwrap();
    assert_eq!(
        (counts(9, 3).await, counts(7, 4).await),
        ((1, 1, agent(1)), (1, 1, agent(4)))
    );
}

#[tokio::test]
async fn no_commit_lands_that_would_have_sessions_wait_in_a_circle() {
    let sample = Sample::begun().await;
    for n in [2, 3] {
        sample.in_session(n, [opened(n, 1, None)]).await;
    }
    let handed = |by: u128, to: u128| {
        let performer = Performer::Agent {
            agent: agent(1),
            session: session(to),
            input: input(to),
            delegation: None,
            message: None,
            since: NOON,
            queued: false,
        };
        Operation {
            performer,
            ..timer(run(by), "d", NOON)
        }
    };
    for (from, to) in [(1, 2), (2, 3)] {
        let step = step(run(from), Vec::new(), Vec::new(), vec![handed(from, to)]);
        sample
            .in_run(from, [run_started(run(from), from, None, Vec::new()), step])
            .await;
    }
    let edge = |from, to| Waits {
        session: session(from),
        for_session: session(to),
    };
    let mut edges = sample.waits_of(session(1)).await.unwrap();
    edges.sort_by_key(|edge| edge.session);
    assert_eq!(
        (edges, sample.waits_of(session(3)).await.unwrap()),
        (vec![edge(1, 2), edge(2, 3)], Vec::new())
    );
    let guard = |from, to| {
        Guard::Session(SessionGuard::MayWait {
            session: session(from),
            for_session: session(to),
        })
    };
    sample
        .commit(Commit::new().guard(guard(1, 3)))
        .await
        .unwrap();
    for (from, to) in [(3, 1), (3, 2), (3, 3)] {
        let Err(CommitError::Conflict(conflict)) =
            sample.commit(Commit::new().guard(guard(from, to))).await
        else {
            panic!("{from} waits for {to}")
        };
        assert_eq!(conflict.clash, Clash::Guard(guard(from, to)));
    }
    // Who has what it waited for waits no more.
    let settled = vec![Settlement::new(
        handed(2, 3).id,
        OperationOutcome::Cancelled,
        NOON,
    )];
    sample
        .in_run(
            2,
            [Event::RunSettled(RunSettled {
                run: run(2),
                settled,
            })],
        )
        .await;
    sample
        .commit(Commit::new().guard(guard(3, 1)))
        .await
        .unwrap();
}
