//! Tests of purges: their work, and their completion after a stop.

use super::host::Host;
use crate::core::Core;
use crate::fresh;
use crate::journal::Context;
use crate::kept_results::Lookup;
use crate::purge::{begin_agent, begin_session, finish, finish_open};
use domain::authority::{Denies, Permissions};
use domain::definition::DefinitionId;
use domain::delegate::{self, CacheScope, Hit};
use domain::event::{AgentCreated, Event};
use domain::id::{AgentId, OperationId, Stream};
use domain::path::PathKind;
use domain::user::UserId;
use futures::FutureExt;
use serde_json::json;
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
            agent_type: "puppet".to_owned(),
            path: format!("/local/agent/{agent}").parse().unwrap(),
            kind: PathKind::Agent,
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

/// Each worker takes three reads: what led to it or came of it outside, what tools kept for it, and
/// the tally. The list of the open purges,
/// which grows with their number, is none of them.
#[tokio::test]
async fn a_purge_reads_the_open_purges_once_however_many_workers_an_agent_has() {
    let few = reads_of_purge(10).await;
    let many = reads_of_purge(100).await;
    let more = many - few;
    assert!(
        more < 90 * 7 / 2,
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

/// Looks for the result of a delegation of an agent's that reads a file.
fn inspect(core: &Core, caller: AgentId, path: &str) -> Lookup {
    let arguments = json!({
        "target": "worker", "operation": "read_file", "parameters": { "path": path },
    });
    let targets = &delegate::Target::ALL;
    let delegation = delegate::parse(&arguments.to_string(), targets).unwrap();
    let user = UserId::local();
    let denies = Denies::default();
    let permissions = Permissions::default();
    let scope = CacheScope {
        user: &user,
        agent: caller,
        denies: &denies,
        permissions: &permissions,
    };
    let served = core.served();
    core.kept_results
        .inspect(&served, &delegation, scope, core.now())
}

/// Hands over a delegation whose result is to be kept.
fn hand_over(core: &Core, caller: AgentId, path: &str) -> OperationId {
    let Lookup::Awaited(key) = inspect(core, caller, path) else {
        panic!("the result of {path} is not to be kept");
    };
    let operation = OperationId::mint(fresh::run(), 1, path);
    let served = core.served();
    core.kept_results
        .expect(&served, operation, key, &UserId::local());
    operation
}

/// Ends the work of a delegation, as its worker's turn does.
fn end_work(core: &Core, operation: OperationId) {
    let result = json!({ "success": true, "output": "secret", "metadata": {} });
    let hit = || {
        Some(Hit {
            result: result.to_string(),
            untrusted: false,
        })
    };
    let served = core.served();
    core.kept_results.keep(&served, operation, hit, core.now());
}

/// A worker may go on after its caller's turn has ended, and come to its end while the caller's
/// session is purged.
#[tokio::test]
async fn no_result_is_kept_over_a_purge_and_none_that_comes_meanwhile() {
    for is_whole_agent in [false, true] {
        let host = Host::new().await;
        let core = &host.broker.core;
        let row = core.store.session(host.session).await.unwrap().unwrap();
        let early = hand_over(core, row.agent, "early.txt");
        let late = hand_over(core, row.agent, "late.txt");
        end_work(core, early);
        assert!(matches!(
            inspect(core, row.agent, "early.txt"),
            Lookup::Kept(_)
        ));
        let purged = if is_whole_agent {
            begin_agent(core, row.agent).await.unwrap();
            Stream::Agent(row.agent)
        } else {
            begin_session(core, host.session).await.unwrap();
            Stream::Session(host.session)
        };
        Box::pin(finish(core, purged, None)).await.unwrap();
        end_work(core, late);
        for path in ["early.txt", "late.txt"] {
            let inspected = inspect(core, row.agent, path);
            assert!(matches!(inspected, Lookup::Awaited(_)), "{purged}: {path}");
        }
        let later = hand_over(core, row.agent, "early.txt");
        end_work(core, later);
        assert!(matches!(
            inspect(core, row.agent, "early.txt"),
            Lookup::Kept(_)
        ));
    }
}
