//! No transaction costs more the longer something is that is purged, from the first to the last.

use super::super::buckets::{place, written};
use super::super::sample::{
    Sample, accepted, agent, begin, commit, created, input, new, noise, opened, run, run_ended,
    run_started, session, take_turn,
};
use super::buckets::{LARGE_BYTES, erase_a_few_at_a_time};
use super::items::{agent_begun, agent_purged, steps};
use super::{ANSWER, begun, deleted, erase_all, finished, is_sound, of_slot};
use crate::purge::EVENTS_PER_COMMIT_MAX;
use crate::{Commit, Expected, PurgeItem};
use domain::digest::Digest;
use domain::event::{Event, NewEvent, PluginEmitted, Source, Subject};
use domain::grant::BucketScope;
use domain::id::{Stream, TurnId};
use domain::turn::TurnNode;

/// Events of something long.
const EVENTS: u64 = 10_000;
/// Events of one commit.
const EVENTS_AT_ONCE: u64 = 1_000;

/// Appends so many events to a stream.
async fn much(sample: &Sample, stream: Stream, events: u64) {
    for begun in (0..events).step_by(usize::try_from(EVENTS_AT_ONCE).unwrap()) {
        let some = (begun..begun + EVENTS_AT_ONCE).map(noise);
        sample.append(stream, some).await;
    }
}

/// Erases a chunk to its end; the steps of each transaction.
async fn steps_of_each(sample: &Sample, purge: Stream, item: PurgeItem) -> Vec<u64> {
    let mut all = Vec::new();
    let mut after = Some(0);
    while let Some(from) = after {
        let before = steps(sample).await;
        let erased = sample.erase(purge, item.clone(), from).await;
        after = erased.unwrap();
        all.push(steps(sample).await - before);
    }
    all
}

/// Asserts that no transaction does more for something longer, be it the first or the last.
fn none_does_more(few: &[u64], many: &[u64]) {
    let most = |steps: &[u64]| steps.iter().copied().max().unwrap_or(0);
    assert!(
        many.len() > few.len() && most(many) <= most(few) + most(few) / 4,
        "{few:?} steps of something short, {many:?} of something longer"
    );
}

/// Returns the steps of each of the transactions that erase a run with so many events.
async fn steps_of_run(events: u64) -> Vec<u64> {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    sample
        .append(stream, [accepted(1, 1, Source::Api, "a word")])
        .await;
    let of_run = Stream::Run(run(1));
    let started = run_started(run(1), 1, None, vec![input(1)]);
    sample.append(of_run, [started]).await;
    much(&sample, of_run, events).await;
    let ended = run_ended(run(1), 1, TurnId(Digest([0; 32])));
    sample.append(of_run, [ended]).await;
    sample.append(stream, [deleted(1)]).await;
    let item = PurgeItem::Run {
        run: run(1),
        committed: None,
    };
    let took = steps_of_each(&sample, Stream::Session(session(9)), item).await;
    is_sound(&sample).await;
    took
}

#[tokio::test]
async fn pieces_of_a_run_do_not_pass_over_what_is_erased_already() {
    let few = steps_of_run(EVENTS / 10).await;
    none_does_more(&few, &steps_of_run(EVENTS).await);
}

/// Returns the steps of each of the transactions that erase a session with so many events.
async fn steps_of_session(events: u64) -> Vec<u64> {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    much(&sample, stream, events).await;
    sample.append(stream, [deleted(1)]).await;
    begun(&sample.store, 1).await;
    let took = steps_of_each(&sample, stream, PurgeItem::Session(session(1))).await;
    finished(&sample.store, 1).await;
    is_sound(&sample).await;
    took
}

#[tokio::test]
async fn pieces_of_a_session_do_not_pass_over_what_is_erased_already() {
    let few = steps_of_session(EVENTS / 10).await;
    none_does_more(&few, &steps_of_session(EVENTS).await);
}

/// Returns the steps of each of the transactions that erase an agent with so many events.
async fn steps_of_agent(events: u64) -> Vec<u64> {
    let sample = Sample::new();
    let stream = Stream::Agent(agent(1));
    sample
        .append(stream, [created(1, "/ada/assistant", None)])
        .await;
    much(&sample, stream, events).await;
    sample.append(stream, [agent_begun()]).await;
    let took = steps_of_each(&sample, stream, PurgeItem::Agent(agent(1))).await;
    sample.append(stream, [agent_purged()]).await;
    is_sound(&sample).await;
    took
}

#[tokio::test]
async fn pieces_of_an_agent_do_not_pass_over_what_is_erased_already() {
    let few = steps_of_agent(EVENTS / 10).await;
    none_does_more(&few, &steps_of_agent(EVENTS).await);
}

/// Makes a session with so many turns, in each of which a tool wrote something of the session.
/// Returns the last of them.
async fn long_thread(sample: &Sample, turns: u128) -> TurnNode {
    begin(sample).await;
    let mut last: Option<TurnNode> = None;
    let own = place("shelf", BucketScope::Session, &session(1).to_string());
    let mut writes = Commit::new();
    for n in 1..=turns {
        let turn = take_turn(&sample.store, 1, last.as_ref(), n, "a word", "and a reply").await;
        last = Some(turn);
        let write = NewEvent {
            subject: Subject {
                agent: Some(agent(1)),
                session: Some(session(1)),
                run: Some(run(n)),
            },
            ..new(written(&own, &[(n.to_string().as_str(), Some(b"v"))]))
        };
        writes = writes.append(Stream::Run(run(n)), Expected::Any, vec![write]);
    }
    sample.commit(writes).await.unwrap();
    last.unwrap()
}

/// Begins to purge a session with so many turns, which all stay because another session shares
/// them. Returns the last of them.
async fn forked(sample: &Sample, turns: u128) -> TurnNode {
    let last = long_thread(sample, turns).await;
    for n in [2, 3] {
        sample.in_session(n, [opened(n, 1, Some(last.id))]).await;
    }
    let deleted_fork = Stream::Session(session(3));
    sample.append(deleted_fork, [deleted(3)]).await;
    // All words are in the index.
    let hits = sample.store.recall(agent(1), None, "reply", 10).await;
    assert!(!hits.unwrap().is_empty());
    sample.in_session(1, [deleted(1)]).await;
    begun(&sample.store, 1).await;
    last
}

/// Returns the steps of each of the transactions of such a purge.
async fn steps_of_forked_session(turns: u128) -> Vec<u64> {
    let sample = Sample::new();
    let last = forked(&sample, turns).await;
    let plan = sample.purge_plan(agent(1), session(1)).await.unwrap();
    let stream = Stream::Session(session(1));
    let mut took = Vec::new();
    for item in plan.items {
        took.extend(steps_of_each(&sample, stream, item).await);
    }
    let tally = finished(&sample.store, 1).await;
    let turns = u64::try_from(turns).unwrap();
    assert_eq!((tally.kept.turns, tally.erased.bucket_keys), (turns, turns));
    let left = sample.messages(Some(last.id), 1, 10).await.unwrap();
    assert_eq!(left.len(), 10);
    let hits = sample.store.recall(agent(1), None, "reply", 10).await;
    assert_eq!(hits.unwrap(), []);
    is_sound(&sample).await;
    took
}

#[tokio::test]
async fn no_transaction_of_a_forked_sessions_purge_does_more_the_longer_it_is() {
    let few = steps_of_forked_session(300).await;
    none_does_more(&few, &steps_of_forked_session(900).await);
}

/// Begins anew to erase what belongs to session 1, and ends after so many transactions.
async fn erase_some(sample: &Sample, transactions: usize) {
    let mut left = transactions;
    let plan = sample.purge_plan(agent(1), session(1)).await.unwrap();
    for item in plan.items {
        let mut after = Some(0);
        while let Some(from) = after.filter(|_| left > 0) {
            let purge = Stream::Session(session(1));
            let erased = sample.erase(purge, item.clone(), from).await;
            after = erased.unwrap();
            left -= 1;
        }
    }
}

#[tokio::test]
async fn a_forked_sessions_purge_that_begins_anew_again_and_again_counts_once() {
    let mut tallies = Vec::new();
    for interruptions in [0, 8] {
        let sample = Sample::new();
        forked(&sample, 300).await;
        for transactions in 1..=interruptions {
            erase_some(&sample, transactions).await;
        }
        tallies.push(finished(&sample.store, 1).await);
        is_sound(&sample).await;
    }
    assert_eq!(tallies[0], tallies[1]);
}

/// Returns the steps of each of the transactions that erase what tools keep for an agent: one in
/// ten of its events is a write to its own bucket.
async fn steps_of_agents_buckets(events: u64) -> Vec<u64> {
    let sample = Sample::new();
    let stream = Stream::Agent(agent(1));
    sample
        .append(stream, [created(1, "/ada/assistant", None)])
        .await;
    let of_agent = place("shelf", BucketScope::Agent, &agent(1).to_string());
    let of_user = place("shelf", BucketScope::User, "ada");
    let done = |n: u64| {
        let event = match n % 10 {
            0 => written(&of_agent, &[("gone", Some(b"v"))]),
            1 => written(&of_user, &[("kept", Some(b"v"))]),
            _ => noise(n),
        };
        NewEvent {
            subject: Subject {
                agent: Some(agent(1)),
                ..Subject::default()
            },
            ..new(event)
        }
    };
    for begun in (0..events).step_by(usize::try_from(EVENTS_AT_ONCE).unwrap()) {
        let some = (begun..begun + EVENTS_AT_ONCE).map(done).collect();
        let commit = Commit::new().append(Stream::Run(run(1)), Expected::Any, some);
        sample.commit(commit).await.unwrap();
    }
    sample.append(stream, [agent_begun()]).await;
    let took = steps_of_each(&sample, stream, PurgeItem::AgentBuckets(agent(1))).await;
    // Each erases as many as it may, however many others lie in between.
    let writes = usize::try_from(events / 10).unwrap();
    assert_eq!(took.len(), writes.div_ceil(EVENTS_PER_COMMIT_MAX));
    let tally = sample.purge_tally(stream).await.unwrap();
    assert_eq!(
        (tally.erased.events, tally.erased.bucket_keys),
        (events / 10, 1)
    );
    let kept = sample.bucket_value(&of_user, "kept").await.unwrap();
    assert_eq!(kept.as_deref(), Some(&b"v"[..]));
    erase_all(&sample.store, stream, PurgeItem::Agent(agent(1))).await;
    sample.append(stream, [agent_purged()]).await;
    is_sound(&sample).await;
    took
}

#[tokio::test]
async fn what_tools_keep_for_an_agent_is_erased_without_a_look_at_its_other_events() {
    let few = steps_of_agents_buckets(3 * EVENTS_AT_ONCE).await;
    none_does_more(&few, &steps_of_agents_buckets(EVENTS).await);
}

/// Returns the steps of each of the transactions that erase what the stream of a living agent tells
/// of a structured session, and fold the agent again, beside so many other events of that stream.
async fn steps_beside_in_stream(others: u64) -> Vec<u64> {
    let sample = Sample::begun().await;
    let stream = Stream::Agent(agent(1));
    much(&sample, stream, others).await;
    let slot = commit(stream, of_slot(600)).blob(ANSWER.to_vec());
    sample.commit(slot).await.unwrap();
    let purge = Stream::Session(session(1));
    sample.append(purge, [deleted(1)]).await;
    begun(&sample.store, 1).await;
    let item = PurgeItem::OfAgent {
        agent: agent(1),
        session: session(1),
    };
    let mut took = steps_of_each(&sample, purge, item).await;
    assert_eq!(took.len(), 3, "transactions that erase");
    took.extend(steps_of_each(&sample, purge, PurgeItem::Streams).await);
    finished(&sample.store, 1).await;
    is_sound(&sample).await;
    took
}

#[tokio::test]
async fn a_structured_sessions_purge_does_no_more_beside_more_events_of_its_agent() {
    let few = steps_beside_in_stream(EVENTS / 10).await;
    let many = steps_beside_in_stream(EVENTS).await;
    assert_eq!(many.len(), few.len());
    assert!(
        few.iter()
            .zip(&many)
            .all(|(few, many)| *many <= few + few / 4),
        "{few:?} steps beside few events, {many:?} beside ten times as many"
    );
}

#[tokio::test]
async fn large_events_of_a_session_and_of_an_agent_go_a_few_at_a_time() {
    let sample = Sample::begun().await;
    let [of_session, of_agent] = [Stream::Session(session(1)), Stream::Agent(agent(1))];
    let large = Event::PluginEmitted(PluginEmitted {
        name: "plugin.sample.noise".to_owned(),
        data: serde_json::json!("x".repeat(LARGE_BYTES)),
    });
    for stream in [of_session, of_agent] {
        sample.append(stream, vec![large.clone(); 3]).await;
    }
    sample.append(of_session, [deleted(1)]).await;
    begun(&sample.store, 1).await;
    erase_a_few_at_a_time(&sample, of_session, PurgeItem::Session(session(1))).await;
    finished(&sample.store, 1).await;
    sample.append(of_agent, [agent_begun()]).await;
    erase_a_few_at_a_time(&sample, of_agent, PurgeItem::Agent(agent(1))).await;
    sample.append(of_agent, [agent_purged()]).await;
    is_sound(&sample).await;
}
