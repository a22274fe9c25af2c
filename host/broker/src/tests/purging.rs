//! Tests of purges: their work, and their completion after a stop.

use super::host::Host;
use crate::fresh;
use crate::journal::Context;
use crate::purge::{begin_agent, begin_session, finish, finish_open};
use domain::definition::DefinitionId;
use domain::event::{AgentCreated, Event};
use domain::id::{AgentId, Stream};
use domain::user::UserId;
use futures::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::{Commit, Expected, Store};

/// The longest time for which a test keeps the store busy.
const BUSY_MAX: Duration = Duration::from_secs(20);

/// Makes an agent with so many workers below it.
async fn team(host: &Host, workers: usize) -> AgentId {
    let core = &host.broker.core;
    let now = core.now();
    let root = fresh::agent();
    let workers = (0..workers).map(|_| (fresh::agent(), Some(root)));
    for (agent, parent) in [(root, None)].into_iter().chain(workers) {
        let created = AgentCreated {
            agent,
            definition: DefinitionId("puppet".to_owned()),
            agent_type: None,
            path: format!("/local/{agent}"),
            kind: None,
            config: Default::default(),
            parent,
            owner_user_id: UserId::local(),
            name: "Worker".to_owned(),
            denies: Default::default(),
            permissions: Default::default(),
            created_at: now,
        };
        let context = Context::by(&UserId::local(), now).about(agent, None, None);
        let events = vec![context.event(Event::AgentCreated(created))];
        let commit = Commit::new().append(Stream::Agent(agent), Expected::Any, events);
        core.store.commit(commit).await.unwrap();
    }
    root
}

/// Purges an agent with so many workers. Returns the number of reads that took.
async fn reads_of_purge(workers: usize) -> u64 {
    let host = Host::new().await;
    let core = &host.broker.core;
    let root = team(&host, workers).await;
    begin_agent(core, root).await.unwrap();
    let before = core.store.stats().reads;
    Box::pin(finish(core, Stream::Agent(root), None))
        .await
        .unwrap();
    let after = core.store.stats().reads;
    assert!(core.store.open_purges().await.unwrap().is_empty());
    assert!(core.store.agent(root).await.unwrap().unwrap().purged);
    after - before
}

/// Each worker takes two reads: what tools kept for it, and the tally. The list of the open purges,
/// which grows with their number, is none of them.
#[tokio::test]
async fn a_purge_reads_the_open_purges_once_however_many_workers_an_agent_has() {
    let few = reads_of_purge(10).await;
    let many = reads_of_purge(100).await;
    let more = many - few;
    assert!(
        more < 90 * 5 / 2,
        "{few} reads with 10 workers, {many} with 100"
    );
}

#[tokio::test]
async fn a_purge_that_is_stuck_at_a_start_keeps_no_other_one_open() {
    let host = Host::new().await;
    let core = &host.broker.core;
    // They are tried in the order of their ids.
    let mut sessions = [host.session, host.open().await];
    sessions.sort();
    let [stuck, sound] = sessions;
    for session in sessions {
        begin_session(core, session).await.unwrap();
    }
    host.guest.keep_folders_of(stuck);
    let before = core.store.log_state().bytes;
    finish_open(core).await;
    assert_eq!(
        core.store.open_purges().await.unwrap(),
        [Stream::Session(stuck)]
    );
    let purged = core.store.purged(Stream::Session(sound)).await.unwrap();
    assert!(purged.is_some());
    // What was erased is not left in the log either.
    let after = core.store.log_state().bytes;
    assert!(after < before, "{before} bytes before, {after} after");
}

#[tokio::test]
async fn a_session_whose_purge_is_stuck_keeps_no_other_one_of_its_agent_stored() {
    let host = Host::new().await;
    let core = &host.broker.core;
    // They are tried in the order of their ids.
    let mut sessions = [host.session, host.open().await];
    sessions.sort();
    let [stuck, sound] = sessions;
    let agent = core.store.session(stuck).await.unwrap().unwrap().agent;
    begin_agent(core, agent).await.unwrap();
    host.guest.keep_folders_of(stuck);
    finish_open(core).await;
    assert_eq!(
        core.store.open_purges().await.unwrap(),
        [Stream::Agent(agent), Stream::Session(stuck)]
    );
    let purged = core.store.purged(Stream::Session(sound)).await.unwrap();
    assert!(purged.is_some_and(|purged| purged.erased.events > 0));
    host.guest.let_folders_go();
    let purged = Box::pin(finish(core, Stream::Agent(agent), None))
        .await
        .unwrap();
    assert_eq!(purged.erased.sessions, 2);
    assert!(core.store.open_purges().await.unwrap().is_empty());
}

/// Lets no place for a read stay free until it is to end.
fn fill_with_reads(store: &Store, end: &AtomicBool) {
    let begin = Instant::now();
    while !end.load(Ordering::Relaxed) && begin.elapsed() < BUSY_MAX {
        // Nobody waits for the answer.
        let _ = store.open_purges().now_or_never();
    }
}

#[tokio::test]
async fn a_purge_comes_to_its_end_when_the_store_was_too_busy_for_its_reads() {
    let host = Host::new().await;
    let core = &host.broker.core;
    begin_session(core, host.session).await.unwrap();
    let end = Arc::new(AtomicBool::new(false));
    let filled = tokio::task::spawn_blocking({
        let store = core.store.clone();
        let end = end.clone();
        move || fill_with_reads(&store, &end)
    });
    let is = async || core.store.open_purges().await.is_err();
    host.until("a store that is too busy", is).await;
    let purge = Box::pin(finish(core, Stream::Session(host.session), None));
    let (purged, ()) = tokio::join!(purge, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        end.store(true, Ordering::Relaxed);
    });
    purged.unwrap();
    filled.await.unwrap();
    assert!(core.store.open_purges().await.unwrap().is_empty());
}
