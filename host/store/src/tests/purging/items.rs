//! A purge costs what it erases, however much else is stored.

use super::super::commits::key;
use super::super::recalling::note;
use super::super::sample::{
    NOON, Sample, ada, agent, commit, created, input, message, noise, opened, run, run_ended,
    run_started, session, take_turn, turn_after,
};
use super::super::spawned::spawn;
use super::inputs::naming;
use super::{MARK, deleted, erase_all, filled, is_nowhere, is_sound, purged};
use crate::sql::STEPS;
use crate::{PurgeItem, Rewritten};
use domain::definition::DefinitionId;
use domain::digest::Digest;
use domain::event::{
    Erased, Event, ImportedTurn, KeptByPurge, PurgeBegun, Purged, Remains, SlotCompleted,
    SlotTaken, TurnsImported,
};
use domain::id::{ConversationId, Stream, TurnId};
use domain::message::Role;
use domain::path::PathKind;
use uuid::Uuid;

/// A store with so many other sessions, each with words, remembered requests, notes and blobs of
/// its own.
async fn beside(others: u128) -> Sample {
    let sample = Sample::new();
    filled(&sample).await;
    for n in 1_000..1_000 + others {
        sample.in_session(n, [opened(n, 1, None)]).await;
        take_turn(
            &sample.store,
            n,
            None,
            n,
            "what others say",
            "and what they are told",
        )
        .await;
        sample.in_agent(1, [note(n, "likes others")]).await;
        let mut asked = commit(Stream::Run(run(n)), [noise(1)]).blob(n.to_be_bytes().to_vec());
        asked.key = Some(crate::Key {
            about: Some(session(n)),
            ..key(&n.to_string(), b"r", b"others")
        });
        sample.commit(asked).await.unwrap();
    }
    // What no event of theirs names is gone before.
    erase_all(&sample.store, Stream::Session(session(1)), PurgeItem::Blobs).await;
    sample
}

/// Returns the steps that SQLite's virtual machine has done for the writer.
pub(super) async fn steps(sample: &Sample) -> u64 {
    let steps = sample.in_writer(|_| Ok(STEPS.get())).await;
    steps.unwrap()
}

/// Returns the cost of purging one session beside so many others, in steps.
async fn steps_beside(others: u128) -> u64 {
    let sample = beside(others).await;
    let before = steps(&sample).await;
    purged(&sample, 1).await;
    let took = steps(&sample).await - before;
    is_nowhere(&sample);
    is_sound(&sample).await;
    took
}

#[tokio::test]
async fn a_purge_does_no_more_in_a_store_that_is_ten_times_larger() {
    let small = steps_beside(20).await;
    let large = steps_beside(200).await;
    assert!(
        large <= small + small / 4,
        "{small} steps beside 20 sessions, {large} beside 200"
    );
}

/// Erases a chunk of the purge of session 9.
async fn erase(sample: &Sample, item: PurgeItem) {
    erase_all(&sample.store, Stream::Session(session(9)), item).await;
}

/// Returns the steps for each of so many runs of one deleted session, each of which took in an
/// input that names a blob.
async fn steps_for_each_run(runs: u64) -> u64 {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    for n in 1..=u128::from(runs) {
        let content = n.to_be_bytes();
        let heard = commit(stream, [naming(n, &[&content])]).blob(content.to_vec());
        sample.commit(heard).await.unwrap();
        let turn = TurnId(Digest([0; 32]));
        let events = vec![
            run_started(run(n), 1, None, vec![input(n)]),
            run_ended(run(n), 1, turn),
        ];
        sample.in_run(n, events).await;
    }
    sample.append(stream, [deleted(1)]).await;
    let before = steps(&sample).await;
    for n in 1..=u128::from(runs) {
        let item = PurgeItem::Run {
            run: run(n),
            committed: None,
        };
        erase(&sample, item).await;
    }
    erase(&sample, PurgeItem::Streams).await;
    let took = steps(&sample).await - before;
    is_sound(&sample).await;
    took / runs
}

/// The session itself is not purged: its runs go with a thread that another session forked.
#[tokio::test]
async fn inputs_that_go_with_their_runs_cost_no_more_each_the_more_of_them_there_are() {
    let few = steps_for_each_run(20).await;
    let many = steps_for_each_run(200).await;
    assert!(
        many <= few + few / 4,
        "{few} steps for each of 20 runs, {many} for each of 200"
    );
}

/// Returns the steps for each of so many runs of one session, each of which began another session.
async fn steps_for_each_spawning_run(runs: u64) -> u64 {
    let sample = Sample::begun().await;
    for n in 1..=u128::from(runs) {
        let stream = Stream::Run(run(n));
        let started = run_started(run(n), 1, None, Vec::new());
        sample.append(stream, [started]).await;
        spawn(&sample, 1_000 + n, n, &format!("/bob/{n}"), "bob").await;
        let ended = run_ended(run(n), 1, TurnId(Digest([0; 32])));
        sample.append(stream, [ended]).await;
    }
    sample.in_session(1, [deleted(1)]).await;
    let before = steps(&sample).await;
    for n in 1..=u128::from(runs) {
        let item = PurgeItem::Run {
            run: run(n),
            committed: None,
        };
        erase(&sample, item).await;
    }
    let took = steps(&sample).await - before;
    is_sound(&sample).await;
    took / runs
}

#[tokio::test]
async fn runs_that_began_sessions_cost_no_more_each_the_more_of_them_there_are() {
    let few = steps_for_each_spawning_run(20).await;
    let many = steps_for_each_spawning_run(200).await;
    assert!(
        many <= few + few / 4,
        "{few} steps for each of 20 runs, {many} for each of 200"
    );
}

/// Returns the steps for each of so many imports of one session.
async fn steps_for_each_import(imports: u64) -> u64 {
    let sample = Sample::begun().await;
    for n in 1..=u128::from(imports) {
        let said = [message(1, Role::User, MARK)];
        let turn = ImportedTurn {
            turn: turn_after(&sample.store, None, run(n), &said).await,
            committed: NOON,
            messages: said.map(Some).to_vec(),
        };
        let imported = TurnsImported {
            session: session(1),
            agent: agent(1),
            turns: vec![turn],
            erased: None,
            time: NOON,
        };
        let imported = Event::TurnsImported(imported);
        sample.in_session(1, [imported]).await;
    }
    let before = steps(&sample).await;
    purged(&sample, 1).await;
    let took = steps(&sample).await - before;
    is_nowhere(&sample);
    is_sound(&sample).await;
    took / imports
}

#[tokio::test]
async fn imports_cost_no_more_each_the_more_of_them_their_session_has() {
    let few = steps_for_each_import(20).await;
    let many = steps_for_each_import(200).await;
    assert!(
        many <= few + few / 4,
        "{few} steps for each of 20 imports, {many} for each of 200"
    );
}

/// The purge of agent 1 was begun.
pub(super) fn agent_begun() -> Event {
    Event::PurgeBegun(PurgeBegun {
        agent: agent(1),
        remains: Remains::Agent {
            definition: DefinitionId("assistant".to_owned()),
            agent_type: "assistant".to_owned(),
            path: "/ada/assistant".parse().unwrap(),
            kind: PathKind::Connector,
            parent: None,
            root: agent(1),
            owner_user_id: ada(),
            created_at: NOON,
        },
        begun_by: ada(),
        time: NOON,
    })
}

/// The purge of agent 1 has finished.
pub(super) fn agent_purged() -> Event {
    Event::Purged(Purged {
        agent: agent(1),
        session: None,
        purged_by: ada(),
        erased: Erased::default(),
        kept: KeptByPurge::default(),
        usage: Vec::new(),
        time: NOON,
    })
}

/// Returns the steps for each of so many structured sessions of an agent that is purged itself.
async fn steps_for_each_session_of_agent(sessions: u64) -> u64 {
    let sample = Sample::new();
    let stream = Stream::Agent(agent(1));
    sample
        .append(stream, [created(1, "/ada/assistant", None)])
        .await;
    for n in 1..=u128::from(sessions) {
        let taken = SlotTaken {
            agent: agent(1),
            session_id: session(n),
            conversation_id: ConversationId(Uuid::nil()),
            session_type: "lesson".to_owned(),
            started_by: ada(),
            started_at: NOON,
            expires_at: None,
            items_imported: 0,
        };
        let completed = SlotCompleted {
            agent: agent(1),
            session_id: session(n),
            summary: MARK.into(),
            completed_at: NOON,
        };
        let events = vec![Event::SlotTaken(taken), Event::SlotCompleted(completed)];
        sample.append(stream, events).await;
    }
    sample.append(stream, [agent_begun()]).await;
    let before = steps(&sample).await;
    for n in 1..=u128::from(sessions) {
        let item = PurgeItem::OfAgent {
            agent: agent(1),
            session: session(n),
        };
        erase(&sample, item).await;
    }
    let took = steps(&sample).await - before;
    erase(&sample, PurgeItem::Agent(agent(1))).await;
    sample.append(stream, [agent_purged()]).await;
    is_sound(&sample).await;
    took / sessions
}

#[tokio::test]
async fn sessions_of_a_purged_agent_cost_no_more_each_the_more_of_them_there_are() {
    let few = steps_for_each_session_of_agent(20).await;
    let many = steps_for_each_session_of_agent(200).await;
    assert!(
        many <= few + few / 4,
        "{few} steps for each of 20 sessions, {many} for each of 200"
    );
}

#[tokio::test]
async fn blobs_are_looked_at_and_deleted_a_few_at_a_time() {
    let sample = Sample::new();
    let purge = Stream::Session(session(1));
    for n in 0..600_u32 {
        let stray = commit(Stream::Run(run(9)), [noise(1)]).blob(n.to_be_bytes().to_vec());
        sample.commit(stray).await.unwrap();
    }
    assert_eq!(erase_all(&sample.store, purge, PurgeItem::Blobs).await, 3);
    assert_eq!(sample.unnamed_blobs(10).await.unwrap(), []);
    // Large ones by their bytes.
    for n in 0..3_u8 {
        let stray = commit(Stream::Run(run(9)), [noise(1)]).blob(vec![n; 17 << 20]);
        sample.commit(stray).await.unwrap();
    }
    let erased = sample.erase(purge, PurgeItem::Blobs, 0).await.unwrap();
    assert!(erased.is_some(), "there is a further piece");
    assert_eq!(sample.unnamed_blobs(10).await.unwrap().len(), 2);
    assert_eq!(sample.blob(Digest::of(&[9])).await.unwrap(), None);
}

#[tokio::test]
async fn words_leave_every_file_wherever_the_database_moved_them() {
    let sample = Sample::new();
    filled(&sample).await;
    // So many rows in no order that pages are split and joined again and again.
    for n in 0..300_u128 {
        let id = 5_000 + (n * 7_919) % 1_009;
        sample.in_session(id, [opened(id, 1, None)]).await;
        let words = if n % 3 == 0 { MARK } else { "what stays" };
        take_turn(&sample.store, id, None, id, &format!("{words} {n}"), words).await;
    }
    purged(&sample, 1).await;
    for n in (0..300_u128).step_by(3) {
        purged(&sample, 5_000 + (n * 7_919) % 1_009).await;
    }
    is_nowhere(&sample);
    assert_eq!(sample.vacuum().await.unwrap(), Rewritten::Yes);
    is_sound(&sample).await;
}
