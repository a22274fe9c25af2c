//! Sessions below sessions, whose they are, and their events in one order.

use super::sample::{Sample, accepted, agent, created, input, new, noise, opened, run, session};
use super::sample::{active, ada};
use crate::{Commit, Expected, SpawnedSession};
use domain::delegate::Priority;
use domain::event::{AgentCreated, Event, InputAccepted, SessionOpened, Source};
use domain::id::{OperationId, SessionId, Stream};
use domain::operation::ReplyTo;

/// Work that was handed over.
pub(super) fn dispatch(reply_to: Option<ReplyTo>) -> Source {
    Source::Dispatch {
        reply_to,
        from: "/ada".to_owned(),
        deadline: None,
        depth: 1,
        hops: 1,
        priority: Priority::High,
        spawn_depth: 0,
        budget: Default::default(),
        denies: Default::default(),
        permissions: Default::default(),
        accounts: Default::default(),
    }
}

/// Session `n` of agent `n`, begun by the run of session `by`, which belongs to `owner`. All of it
/// in one commit, as the broker does.
pub(super) async fn spawn(sample: &Sample, n: u128, by: u128, path: &str, owner: &str) {
    let Event::AgentCreated(made) = created(n, path, (owner == "ada").then(|| agent(by))) else {
        panic!("an agent")
    };
    let made = Event::AgentCreated(AgentCreated {
        owner_user_id: owner.parse().unwrap(),
        ..made
    });
    let Event::SessionOpened(begun) = opened(n, n, None) else {
        panic!("a session")
    };
    let begun = Event::SessionOpened(SessionOpened {
        started_by: "agent:/ada".to_owned(),
        ..begun
    });
    let reply_to = Some(ReplyTo {
        run: run(by),
        operation: OperationId::mint(run(by), 0, "a"),
        attached: true,
    });
    let source = dispatch(reply_to);
    let work = accepted(n, n, source, "work");
    let of = |event: Event| {
        let mut event = new(event);
        event.subject.session = Some(session(n));
        vec![event]
    };
    let commit = Commit::new()
        .append(Stream::Agent(agent(n)), Expected::Any, of(made))
        .append(Stream::Session(session(n)), Expected::Any, of(begun))
        .append(Stream::Session(session(n)), Expected::Any, of(work));
    sample.commit(commit).await.unwrap();
    start(sample, n).await;
}

/// A run begins in a session.
async fn start(sample: &Sample, n: u128) {
    sample.begin_run(n, n, []).await;
}

/// Something happens in a session; its position.
async fn happen(sample: &Sample, n: u128) -> u64 {
    let mut event = new(noise(1));
    event.subject.session = Some(session(n));
    sample
        .commit(Commit::new().append(Stream::Session(session(n)), Expected::Any, vec![event]))
        .await
        .unwrap()
        .last_position
}

async fn family() -> Sample {
    let sample = Sample::new();
    for n in [1, 2] {
        sample
            .in_agent(n, [created(n, &format!("/ada/{n}"), None)])
            .await;
        sample.in_session(n, [opened(n, n, None)]).await;
        start(&sample, n).await;
    }
    spawn(&sample, 3, 1, "/ada/1/sub/0", "ada").await;
    spawn(&sample, 4, 3, "/ada/1/sub/0/sub/0", "ada").await;
    spawn(&sample, 5, 2, "/ada/2/sub/0", "ada").await;
    spawn(&sample, 6, 1, "/bob/other", "bob").await;
    sample
}

async fn positions(sample: &Sample, after: u64, of: SessionId, limit: usize) -> Vec<u64> {
    let events = sample
        .events_with_spawned(after, of, &sample.sees_all().await, limit)
        .await
        .unwrap();
    events.iter().map(|recorded| recorded.position).collect()
}

#[tokio::test]
async fn the_sessions_below_a_session_are_known_with_their_depth_and_only_to_their_owner() {
    let sample = family().await;
    let below = |n: u128, by: u128, path: &str, depth| SpawnedSession {
        id: session(n),
        by: session(by),
        agent: agent(n),
        path: path.to_owned(),
        depth,
        task: None,
    };
    let expected = [
        below(3, 1, "/ada/1/sub/0", 1),
        below(4, 3, "/ada/1/sub/0/sub/0", 2),
    ];
    assert_eq!(
        sample
            .spawned(session(1), &sample.sees_all().await)
            .await
            .unwrap(),
        expected
    );
    assert_eq!(
        sample
            .spawned(session(3), &sample.sees_all().await)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        sample
            .spawned(session(4), &sample.sees_all().await)
            .await
            .unwrap(),
        []
    );
    sample.rebuild().await.unwrap();
    assert_eq!(
        sample
            .spawned(session(1), &sample.sees_all().await)
            .await
            .unwrap(),
        expected
    );
}

#[tokio::test]
async fn a_session_that_was_there_before_it_got_work_is_not_spawned_by_it() {
    let sample = family().await;
    let reply_to = Some(ReplyTo {
        run: run(1),
        operation: OperationId::mint(run(1), 0, "b"),
        attached: true,
    });
    for n in [2, 5] {
        let source = dispatch(reply_to);
        let Event::InputAccepted(work) = accepted(n, n, source, "work") else {
            panic!("an input")
        };
        let work = Event::InputAccepted(InputAccepted {
            input: input(90 + n),
            ..work
        });
        sample.in_session(n, [work]).await;
    }
    let below: Vec<_> = sample
        .spawned(session(1), &sample.sees_all().await)
        .await
        .unwrap()
        .into_iter()
        .map(|spawned| spawned.id)
        .collect();
    assert_eq!(below, [session(3), session(4)]);
}

#[tokio::test]
async fn the_events_of_a_session_and_those_below_it_can_be_read_on_from_any_of_them() {
    let sample = family().await;
    for n in [1, 2, 3, 4, 5, 6, 4, 4, 1, 3] {
        happen(&sample, n).await;
    }
    let mut expected = Vec::new();
    for recorded in sample
        .events(0, crate::EventFilter::default(), 1_000)
        .await
        .unwrap()
    {
        if [1, 3, 4]
            .map(session)
            .iter()
            .any(|id| recorded.subject.session == Some(*id))
        {
            expected.push(recorded.position);
        }
    }
    assert!(expected.len() > 12, "{expected:?}");
    assert_eq!(positions(&sample, 0, session(1), 1_000).await, expected);
    for (index, cut) in expected.iter().enumerate() {
        assert_eq!(
            positions(&sample, *cut, session(1), 1_000).await,
            expected[index + 1..]
        );
        assert_eq!(
            positions(&sample, *cut, session(1), 2).await,
            expected[index + 1..]
                .iter()
                .copied()
                .take(2)
                .collect::<Vec<_>>()
        );
    }
}

#[tokio::test]
async fn a_page_of_agents_is_full_of_their_owners() {
    let sample = Sample::new();
    for n in 1..=9 {
        let Event::AgentCreated(made) = created(n, &format!("/ada/{n}"), None) else {
            panic!("an agent")
        };
        let owner = if n % 3 == 0 { "ada" } else { "bob" };
        let made = Event::AgentCreated(AgentCreated {
            owner_user_id: owner.parse().unwrap(),
            ..made
        });
        sample.in_agent(n, [made]).await;
    }
    let page = async |after| {
        let page = sample.agents(&ada(), active(), after, 2).await.unwrap();
        page.into_iter()
            .map(|(row, _)| row.agent.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(page(None).await, [agent(3), agent(6)]);
    assert_eq!(page(Some(agent(6))).await, [agent(9)]);
    assert_eq!(
        sample
            .agents(&"eve".parse().unwrap(), active(), None, 9)
            .await
            .unwrap(),
        []
    );
}
