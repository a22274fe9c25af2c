//! Streams that have lost events: what follows from their rest.

use super::super::sample::{NOON, Sample, agent, begin, commit, noise, opened, run, session};
use super::{ANSWER, begun, deleted, erase_all, finished, is_sound, of_slot};
use crate::sql::{Columns, Connection, Sql, args};
use crate::{PurgeItem, Store};
use domain::digest::Digest;
use domain::event::{Event, ResponseReceived};
use domain::id::{OperationId, Stream};
use domain::operation::Kept;

/// An answer in a session of agent 1 that is kept as a blob.
fn answered(in_session: u128, content: &[u8]) -> Event {
    Event::ResponseReceived(ResponseReceived {
        agent: agent(1),
        session_id: session(in_session),
        tool_call_id: OperationId::mint(run(1), 0, "asked"),
        response_data: Kept::Blob(Digest::of(content)),
        received_at: NOON,
    })
}

/// Creates a store with agent 1, further sessions of it, and a structured session with an answer
/// that is kept as a blob.
async fn with_answer(sessions: &[u128]) -> Sample {
    let sample = Sample::new();
    begin(&sample).await;
    for n in sessions.iter().copied() {
        let opened = vec![opened(n, 1, None)];
        sample.append(Stream::Session(session(n)), opened).await;
    }
    let slot = commit(Stream::Agent(agent(1)), of_slot(3)).blob(ANSWER.to_vec());
    sample.store.commit(slot).await.unwrap();
    sample
}

/// Begins to purge a session of agent 1, and erases what the agent's stream tells of it.
async fn erased(sample: &Sample, n: u128) -> Stream {
    let purge = Stream::Session(session(n));
    sample.append(purge, vec![deleted(n)]).await;
    begun(&sample.store, n).await;
    let item = PurgeItem::OfAgent {
        agent: agent(1),
        session: session(n),
    };
    erase_all(&sample.store, purge, item).await;
    purge
}

/// Replaces the payload of a stream's last event, beside the store, and returns the one before.
fn replace_last(sample: &Sample, stream: Stream, payload: &[u8]) -> Vec<u8> {
    let connection = Connection::open(sample.database()).unwrap();
    let number = crate::streams::number(&Sql::new(&connection), stream).unwrap();
    let text = "SELECT position, payload FROM events WHERE stream = ?1 ORDER BY version DESC";
    let last = connection.query_row(text, [number], |row| Ok((row.get::<i64>(0)?, row.get(1)?)));
    let (position, before) = last.unwrap();
    let text = "UPDATE events SET payload = ?2 WHERE position = ?1";
    connection.execute(text, args![position, payload]).unwrap();
    before
}

async fn is_stored(store: &Store, content: &[u8]) -> bool {
    store.blob(Digest::of(content)).await.unwrap().is_some()
}

#[tokio::test]
async fn what_a_stream_gets_while_a_reader_goes_through_it_is_not_lost() {
    let sample = with_answer(&[2]).await;
    let store = &sample.store;
    let stream = Stream::Agent(agent(1));
    let purge = erased(&sample, 1).await;
    let rest = store.rest_of(stream).await.unwrap();
    let rest = store.read_on(rest).await.unwrap();
    // More than the writer looks at, and the last of it names the answer once more.
    let mut more: Vec<Event> = (0..300).map(noise).collect();
    more.push(answered(2, ANSWER));
    sample.append(stream, more).await;
    let (rest, is_done) = store.write_rest(purge, rest).await.unwrap();
    assert!(!is_done, "a reader goes through it first");
    let rest = store.read_on(rest).await.unwrap();
    let (_, is_done) = store.write_rest(purge, rest).await.unwrap();
    assert!(is_done);
    finished(store, 1).await;
    assert!(is_stored(store, ANSWER).await);
    is_sound(&sample).await;
}

#[tokio::test]
async fn references_go_in_several_transactions_when_they_are_many() {
    let sample = Sample::new();
    begin(&sample).await;
    let stream = Stream::Agent(agent(1));
    let contents: Vec<[u8; 4]> = (0..300_u32).map(u32::to_be_bytes).collect();
    let events = contents.iter().map(|content| answered(1, content));
    let mut answers = commit(stream, events.collect());
    for content in &contents {
        answers = answers.blob(content.to_vec());
    }
    sample.store.commit(answers).await.unwrap();
    let purge = erased(&sample, 1).await;
    let rest = sample.store.rest_of(stream).await.unwrap();
    let rest = sample.store.read_on(rest).await.unwrap();
    let (_, is_done) = sample.store.write_rest(purge, rest).await.unwrap();
    assert!(!is_done, "the first does not remove all");
    finished(&sample.store, 1).await;
    for content in &contents {
        assert!(!is_stored(&sample.store, content).await);
    }
    is_sound(&sample).await;
}

#[tokio::test]
async fn a_stream_that_cannot_be_read_keeps_only_its_own_purges_open() {
    let sample = with_answer(&[2, 3]).await;
    let store = &sample.store;
    let stream = Stream::Agent(agent(1));
    let others = vec![answered(3, b"another"), noise(1)];
    let others = commit(stream, others).blob(b"another".to_vec());
    store.commit(others).await.unwrap();
    let purges = [erased(&sample, 1).await, erased(&sample, 3).await];
    let readable = replace_last(&sample, stream, b"nonsense");
    for purge in purges {
        store.erase(purge, PurgeItem::Streams, 0).await.unwrap_err();
    }

    let other = Stream::Session(session(2));
    sample.append(other, vec![deleted(2)]).await;
    begun(store, 2).await;
    finished(store, 2).await;
    assert_eq!(store.open_purges().await.unwrap(), purges);
    for purge in purges {
        store.erase(purge, PurgeItem::Streams, 0).await.unwrap_err();
    }

    replace_last(&sample, stream, &readable);
    for n in [1, 3] {
        finished(store, n).await;
    }
    for content in [ANSWER, b"another"] {
        assert!(!is_stored(store, content).await);
    }
    is_sound(&sample).await;
}
