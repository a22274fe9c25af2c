//! Notes and readings: what is due, how much there is, and what was handed over.

use super::recalling::note;
use super::sample::{NOON, Sample, agent, created, input, opened, session, take_turn};
use crate::sql::Columns;
use crate::{Commit, CommitError, Guard, UserGuard};
use domain::event::{Event, MemoryDue, MemoryRead, NoteForgotten};
use domain::memory::TriggerEvent;
use domain::time::Timestamp;
use domain::user::UserId;

fn due(due: Option<Timestamp>) -> Event {
    Event::MemoryDue(MemoryDue {
        session: session(1),
        due,
        time: NOON,
    })
}

#[tokio::test]
async fn the_row_of_a_session_says_when_it_is_to_be_read() {
    let sample = Sample::begun().await;
    for time in [None, Some(NOON), Some(NOON.plus_ms(5)), None] {
        sample.in_session(1, [due(time)]).await;
        let row = sample.session(1).await;
        assert_eq!(row.memory_due, time);
    }
}

/// Whether a commit holds that wants at most so many notes of the first agent in its user's
/// sessions.
async fn has_at_most(sample: &Sample, max: u64) -> bool {
    let guard = Guard::User(UserGuard::NotesAtMost {
        user: UserId::local(),
        agent: agent(1),
        max,
    });
    match sample.commit(Commit::new().guard(guard)).await {
        Ok(_) => true,
        Err(CommitError::Conflict(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn notes_are_counted_by_agent_and_user_and_a_commit_can_rest_on_it() {
    let sample = Sample::begun().await;
    let other = vec![created(2, "/ada/other", None)];
    sample.in_agent(2, other).await;
    let theirs = vec![opened(2, 2, None)];
    sample.in_session(2, theirs).await;
    for (of, text) in [(1, "likes tea"), (1, "likes cake"), (2, "likes rain")] {
        let notes = vec![note(of, text)];
        sample.in_agent(of, notes).await;
    }
    let count = async |user: UserId| sample.note_count(agent(1), &user).await.unwrap();
    assert_eq!(count(UserId::local()).await, 2);
    assert_eq!(count("bob".parse().unwrap()).await, 0);
    assert!(has_at_most(&sample, 2).await);
    assert!(!has_at_most(&sample, 1).await);
    sample.is_sound().await;
}

/// The number of rows whose words the index of notes has.
fn in_the_index_of_notes(sample: &Sample) -> i64 {
    let connection = sample.connection();
    let text = "SELECT count(*) FROM notes_index_docsize";
    connection.query_row(text, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn the_index_of_notes_has_notes_alone_and_loses_those_that_are_forgotten() {
    let sample = Sample::begun().await;
    take_turn(&sample.store, 1, None, 1, "I like tea.", "Tea it is.").await;
    let notes = vec![note(1, "likes tea")];
    sample.in_agent(1, notes).await;
    let found = sample.recall_notes(agent(1), None, "tea", 10).await;
    let found: Vec<String> = found.unwrap().into_iter().map(|hit| hit.text).collect();
    assert_eq!(found, ["likes tea"]);
    assert_eq!(in_the_index_of_notes(&sample), 1);
    let all = sample.recall(1, "tea", 10).await;
    assert_eq!(all.len(), 3);
    let rebuilt = sample.rebuild().await.unwrap();
    assert_eq!(
        (rebuilt.replaced, rebuilt.index_replaced),
        (Vec::new(), false)
    );
    let [noted]: [crate::NoteRow; 1] = (sample.notes(agent(1), None, None, 10).await)
        .unwrap()
        .try_into()
        .unwrap();
    let forgotten = NoteForgotten {
        agent: agent(1),
        note: noted.id,
        position: noted.position,
        session: session(1),
        user_id: super::sample::ada(),
        time: NOON,
    };
    let forgotten = vec![Event::NoteForgotten(forgotten)];
    sample.in_agent(1, forgotten).await;
    assert_eq!(in_the_index_of_notes(&sample), 0);
    let rebuilt = sample.rebuild().await.unwrap();
    assert_eq!(
        (rebuilt.replaced, rebuilt.index_replaced),
        (Vec::new(), false)
    );
    sample.is_sound().await;
}

#[tokio::test]
async fn each_piece_that_was_handed_over_is_known_by_its_input() {
    let sample = Sample::begun().await;
    let first = take_turn(&sample.store, 1, None, 1, "I like tea.", "Good.").await;
    let second = take_turn(&sample.store, 1, Some(&first), 2, "And cake.", "Good.").await;
    let turns = [first, second];
    for (n, turn) in (1..).zip(&turns) {
        let read = MemoryRead {
            session: session(1),
            agent: agent(2),
            reader: session(2),
            through: turn.id,
            through_message: turn.last_message,
            input: input(n),
            because: TriggerEvent::Due,
            time: NOON,
        };
        let read = vec![Event::MemoryRead(read)];
        sample.in_session(1, read).await;
    }
    for (n, turn) in (1..).zip(&turns) {
        let chunk = sample.chunk_read(input(n)).await.unwrap().unwrap();
        assert_eq!((chunk.session, chunk.through), (session(1), turn.id));
    }
    assert_eq!(sample.chunk_read(input(3)).await.unwrap(), None);
    let newest = sample.reading_of(session(1)).await.unwrap().unwrap();
    assert_eq!(newest.through, turns[1].id);
    sample.is_sound().await;
}
