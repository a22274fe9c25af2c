//! Streams that have lost events: what follows from their rest.

use super::super::sample::{NOON, Sample, agent, begin, commit, noise, opened, run, session};
use super::{ANSWER, begun, deleted, erase_all, finished, is_sound, of_slot};
use crate::{Piece, Store};
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

/// Begins to purge session 1, and erases what its agent's stream tells of it.
async fn erased(sample: &Sample) -> Stream {
    let purge = Stream::Session(session(1));
    sample.append(purge, vec![deleted(1)]).await;
    begun(&sample.store, 1).await;
    let piece = Piece::OfAgent {
        agent: agent(1),
        session: session(1),
    };
    erase_all(&sample.store, purge, piece).await;
    purge
}

async fn is_stored(store: &Store, content: &[u8]) -> bool {
    store.blob(Digest::of(content)).await.unwrap().is_some()
}

#[tokio::test]
async fn what_a_stream_gets_while_a_reader_goes_through_it_is_not_lost() {
    let sample = Sample::new();
    begin(&sample).await;
    let store = &sample.store;
    let other = Stream::Session(session(2));
    sample.append(other, vec![opened(2, 1, None)]).await;
    let stream = Stream::Agent(agent(1));
    let slot = commit(stream, of_slot(3)).blob(ANSWER.to_vec());
    store.commit(slot).await.unwrap();
    let purge = erased(&sample).await;
    let rest = store.rest_of(stream.to_string()).await.unwrap();
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
    let purge = erased(&sample).await;
    let rest = sample.store.rest_of(stream.to_string()).await.unwrap();
    let rest = sample.store.read_on(rest).await.unwrap();
    let (_, is_done) = sample.store.write_rest(purge, rest).await.unwrap();
    assert!(!is_done, "the first does not remove all");
    finished(&sample.store, 1).await;
    for content in &contents {
        assert!(!is_stored(&sample.store, content).await);
    }
    is_sound(&sample).await;
}
