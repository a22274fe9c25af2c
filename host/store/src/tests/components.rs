//! Components as they were admitted last: found at the same cost, however much the ledger holds,
//! and also while nobody has the store open.

use super::sample::{NOON, Sample, ada, agent, commit, options};
use crate::sql::STEPS;
use crate::{OpenError, Options, Store, admissions_at_rest};
use domain::digest::Digest;
use domain::event::{ComponentAdmitted, Event, OperatorRead};
use domain::id::Stream;

fn admitted(component: &str, code: &[u8]) -> Event {
    Event::ComponentAdmitted(ComponentAdmitted {
        component: component.to_owned(),
        code: Digest::of(code),
        version: None,
        grant: Digest::of(b"grant"),
        described: Digest::of(b"description"),
        replaces: None,
        time: NOON,
    })
}

fn reading(n: usize) -> Event {
    Event::OperatorRead(OperatorRead {
        user_id: ada(),
        request: format!("GET /api/agents/{n}"),
        agent: agent(1),
        session: None,
        run: None,
        turn: None,
        time: NOON,
    })
}

/// Returns the cost of looking up two components before and behind so many readings by the
/// operator, in steps of SQLite's virtual machine.
async fn steps_beside(readings: usize) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(
        dir.path(),
        Options {
            readers: 1,
            ..options()
        },
    )
    .unwrap();
    let append = async |events: Vec<Event>| {
        store
            .commit(commit(Stream::Host, events))
            .await
            .map(drop)
            .unwrap()
    };
    append(vec![admitted("files", b"old"), admitted("search", b"code")]).await;
    append((0..readings).map(reading).collect()).await;
    append(vec![admitted("files", b"new")]).await;
    append((0..readings).map(reading).collect()).await;

    // One thread reads, so it has counted every step.
    let steps = async || store.read(|_| Ok(STEPS.get())).await.unwrap();
    let before = steps().await;
    let names = ["files", "search", "never admitted"]
        .map(str::to_owned)
        .to_vec();
    let found = store.last_admissions(names).await.unwrap();
    let took = steps().await - before;
    let found: Vec<(&str, Digest)> = found
        .iter()
        .map(|it| (it.component.as_str(), it.code))
        .collect();
    assert_eq!(
        found,
        [
            ("files", Digest::of(b"new")),
            ("search", Digest::of(b"code"))
        ]
    );
    took
}

#[tokio::test]
async fn the_last_admissions_are_found_without_passing_over_what_the_operator_read() {
    let few = steps_beside(1).await;
    let many = steps_beside(400).await;
    assert!(
        many <= few,
        "{few} steps beside two readings, {many} beside 800"
    );
}

#[tokio::test]
async fn the_last_admissions_of_a_closed_store_are_read_from_its_folder() {
    let sample = Sample::new();
    let admissions = [b"old", b"new"].map(|code| admitted("files", code));
    sample.in_host(admissions).await;
    let dir = sample.dir.path();
    let names = ["files", "never admitted"].map(str::to_owned);
    let refused = admissions_at_rest(dir, &names).unwrap_err();
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused}");
    sample.close().await;
    let found = admissions_at_rest(dir, &names).unwrap();
    let found: Vec<(&str, Digest)> = found
        .iter()
        .map(|it| (it.component.as_str(), it.code))
        .collect();
    assert_eq!(found, [("files", Digest::of(b"new"))]);
    let store = Store::open(dir, options()).unwrap();
    assert_eq!(
        store.last_admissions(names.to_vec()).await.unwrap().len(),
        1
    );

    let nowhere = dir.join("nowhere");
    assert!(admissions_at_rest(&nowhere, &names).unwrap().is_empty());
    assert!(!nowhere.exists(), "nothing is made for a read");
}
