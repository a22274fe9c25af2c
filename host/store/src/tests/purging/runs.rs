//! Purges of runs that have much beside their events, and that are begun anew after a crash.

use super::super::blobs::part;
use super::super::buckets::{place, written};
use super::super::sample::{
    NOON, Sample, accepted, ada, agent, begin, commit, input, message, new, noise, opened, run,
    run_begun, run_ended, run_started, session, stepped, timer,
};
use super::buckets::{BYTES_MAX, LARGE_BYTES, payloads};
use super::{ANSWER, begun, deleted, erase_all, finished, is_sound, of_slot, purged};
use crate::sql::{Columns, Connection, Sql, args};
use crate::{Commit, Expected, PurgeItem, Store};
use domain::digest::Digest;
use domain::event::{Event, NewEvent, ResponseReceived, Source, Subject};
use domain::grant::BucketScope;
use domain::id::{OperationId, Stream, TurnId};
use domain::message::{Message, Role};
use domain::operation::{Continuation, Kept, Pause};
use domain::user::UserId;

fn item() -> PurgeItem {
    PurgeItem::Run {
        run: run(1),
        committed: None,
    }
}

/// A step that heard so many messages, each of which shows a blob of its own.
fn heard(contents: &[[u8; 4]]) -> Event {
    let shows = |(content, id): (&[u8; 4], u64)| {
        let mut said = message(id, Role::User, "see here");
        said.parts.push(part(content));
        said
    };
    let said: Vec<Message> = contents.iter().zip(1..).map(shows).collect();
    Event::RunStepped(Box::new(stepped(run(1), said, Vec::new(), Vec::new())))
}

/// A millisecond of work.
fn worked() -> Event {
    Event::OperationContinued(Continuation {
        operation: timer(run(1), "call", NOON).id,
        segment: 1,
        state: Vec::new(),
        pause: Pause::None,
        active_ms: 1,
        call: None,
    })
}

/// Counts the messages and the references to blobs.
fn rows(sample: &Sample) -> u64 {
    Connection::open(sample.database())
        .unwrap()
        .query_row(
            "SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM blob_references)",
            [],
            |row| row.uint(0),
        )
        .unwrap()
}

#[tokio::test]
async fn messages_and_blobs_of_a_run_go_a_few_at_a_time() {
    let sample = Sample::new();
    begin(&sample).await;
    let contents: Vec<[u8; 4]> = (0..600_u32).map(u32::to_be_bytes).collect();
    let events = vec![
        run_started(run(1), 1, None, Vec::new()),
        heard(&contents),
        run_ended(run(1), 1, TurnId(Digest([0; 32]))),
    ];
    let mut said = commit(Stream::Run(run(1)), events);
    for content in &contents {
        said = said.blob(content.to_vec());
    }
    sample.store.commit(said).await.unwrap();
    sample
        .append(Stream::Session(session(1)), vec![deleted(1)])
        .await;
    let purge = Stream::Session(session(9));
    let mut before = rows(&sample);
    assert!(before >= 1_200, "{before} rows");
    let mut after = Some(0);
    while let Some(from) = after {
        after = sample.store.erase(purge, item(), from).await.unwrap();
        let now = rows(&sample);
        assert!(before - now <= 512, "{before} rows before, then {now}");
        before = now;
    }
    assert_eq!(before, 0);
    is_sound(&sample).await;
    erase_all(&sample.store, purge, PurgeItem::Blobs).await;
    for content in &contents {
        let found = sample.store.blob(Digest::of(content)).await.unwrap();
        assert_eq!(found, None);
    }
}

#[tokio::test]
async fn a_run_whose_purge_begins_anew_each_time_moves_its_usage_once() {
    let sample = Sample::new();
    begin(&sample).await;
    let of_run = Stream::Run(run(1));
    let of_user = place("shelf", BucketScope::User, "ada");
    let contents: Vec<[u8; 4]> = (0..300_u32).map(u32::to_be_bytes).collect();
    let mut events = vec![run_started(run(1), 1, None, Vec::new()), heard(&contents)];
    for n in 0..300 {
        let kept = written(&of_user, &[("kept", Some(b"v"))]);
        events.extend([noise(n), worked(), kept]);
    }
    events.push(run_ended(run(1), 1, TurnId(Digest([0; 32]))));
    let mut all = commit(of_run, events);
    for content in &contents {
        all = all.blob(content.to_vec());
    }
    sample.store.commit(all).await.unwrap();
    let purge = Stream::Session(session(1));
    sample.append(purge, vec![deleted(1)]).await;
    begun(&sample.store, 1).await;
    let mut transactions = 1;
    // Each is the first one after a crash.
    while sample
        .store
        .erase(purge, item(), 0)
        .await
        .unwrap()
        .is_some()
    {
        transactions += 1;
    }
    assert!(transactions > 3, "{transactions} transactions");
    erase_all(&sample.store, purge, item()).await;
    let tally = finished(&sample.store, 1).await;
    let worked: u64 = tally.usage.iter().map(|share| share.sum.active_ms).sum();
    assert_eq!(
        (worked, tally.kept.bucket_writes, tally.erased.messages),
        (300, 300, 300)
    );
    let kept = sample.store.bucket_value(&of_user, "kept").await.unwrap();
    assert_eq!(kept.as_deref(), Some(&b"v"[..]));
    is_sound(&sample).await;
}

/// Begins to purge a session, one run of which took in so many inputs at its start. Returns how
/// many events have content.
async fn many_inputs(sample: &Sample, inputs: u128) -> u64 {
    begin(sample).await;
    let stream = Stream::Session(session(1));
    let heard = (1..=inputs).map(|n| accepted(n, 1, Source::Api, "a word"));
    sample.append(stream, heard.collect()).await;
    let claimed = (1..=inputs).map(input).collect();
    let events = vec![
        run_started(run(1), 1, None, claimed),
        worked(),
        run_ended(run(1), 1, TurnId(Digest([0; 32]))),
    ];
    sample.append(Stream::Run(run(1)), events).await;
    sample.append(stream, vec![deleted(1)]).await;
    begun(&sample.store, 1).await;
    with_content(sample)
}

/// Counts the events that have content.
fn with_content(sample: &Sample) -> u64 {
    count(
        sample,
        "SELECT count(*) FROM events WHERE payload IS NOT NULL",
    )
}

fn count(sample: &Sample, text: &str) -> u64 {
    Connection::open(sample.database())
        .unwrap()
        .query_row(text, [], |row| row.uint(0))
        .unwrap()
}

#[tokio::test]
async fn inputs_that_a_run_took_in_at_once_go_a_few_at_a_time_and_before_its_start() {
    let purge = Stream::Session(session(1));
    for begins_anew in [false, true] {
        let sample = Sample::new();
        let mut before = many_inputs(&sample, 600).await;
        let mut after = Some(0);
        let mut transactions = 0;
        while let Some(from) = after {
            let from = if begins_anew { 0 } else { from };
            after = sample.store.erase(purge, item(), from).await.unwrap();
            transactions += 1;
            let now = with_content(&sample);
            assert!(before - now <= 256, "{before} events before, then {now}");
            before = now;
            let inputs = count(&sample, "SELECT count(*) FROM inputs");
            let starts = count(
                &sample,
                "SELECT count(*) FROM events WHERE kind = 'run.started.v1' AND payload IS NOT NULL",
            );
            assert!(inputs == 0 || starts == 1, "{inputs} inputs of no run");
        }
        assert!(transactions >= 3, "{transactions} transactions");
        let tally = finished(&sample.store, 1).await;
        let worked: u64 = tally.usage.iter().map(|share| share.sum.active_ms).sum();
        assert_eq!(worked, 1);
        assert_eq!(count(&sample, "SELECT count(*) FROM inputs"), 0);
        is_sound(&sample).await;
    }
}

#[tokio::test]
async fn large_inputs_and_messages_of_a_run_go_a_few_at_a_time() {
    let sample = Sample::new();
    begin(&sample).await;
    let stream = Stream::Session(session(1));
    let large = "x".repeat(LARGE_BYTES);
    for n in 1..=3 {
        let heard = accepted(n, 1, Source::Api, &large);
        sample.append(stream, vec![heard]).await;
    }
    let said = (1..=3).map(|id| message(id, Role::User, &large)).collect();
    let step = stepped(run(1), said, Vec::new(), Vec::new());
    let events = vec![
        run_begun(step, 1, None, (1..=3).map(input).collect()),
        run_ended(run(1), 1, TurnId(Digest([0; 32]))),
    ];
    sample.append(Stream::Run(run(1)), events).await;
    sample.append(stream, vec![deleted(1)]).await;
    begun(&sample.store, 1).await;
    let mut after = Some(0);
    let of_messages = "SELECT coalesce(sum(bytes), 0) FROM messages";
    while let Some(from) = after {
        let (stored, longest) = payloads(&sample);
        let reported = count(&sample, of_messages);
        after = sample.store.erase(stream, item(), from).await.unwrap();
        let erased = stored - payloads(&sample).0;
        assert!(erased < BYTES_MAX + longest, "{erased} bytes of payloads");
        let deleted = reported - count(&sample, of_messages);
        let message_bytes = LARGE_BYTES as u64 + 4_096;
        assert!(
            deleted < BYTES_MAX + message_bytes,
            "{deleted} bytes of messages"
        );
    }
    finished(&sample.store, 1).await;
    is_sound(&sample).await;
}

/// A limit on what a user stores holds for what components leave, too. The session is of `local`,
/// and ada caused all other events.
#[tokio::test]
async fn what_tools_leave_between_segments_is_the_users_until_it_is_purged() {
    let sample = Sample::new();
    begin(&sample).await;
    let of_run = Stream::Run(run(1));
    let started = run_started(run(1), 1, None, Vec::new());
    sample.append(of_run, vec![started]).await;
    let stored = async |user: UserId| sample.store.stored_bytes(&user).await.unwrap();
    let of_ada = stored(ada()).await;
    assert_eq!(stored(UserId::local()).await, 0);
    let mut left = worked();
    if let Event::OperationContinued(continuation) = &mut left {
        continuation.state = vec![7; 10_000];
    }
    let left = NewEvent {
        actor: "agent:assistant".to_owned(),
        subject: Subject {
            session: Some(session(1)),
            run: Some(run(1)),
            ..Subject::default()
        },
        ..new(left)
    };
    let commit = Commit::new().append(of_run, Expected::Any, vec![left]);
    sample.store.commit(commit).await.unwrap();
    let text = "SELECT bytes FROM events WHERE kind = 'operation.continued.v1'";
    let connection = Connection::open(sample.database()).unwrap();
    let payload = connection.query_row(text, [], |row| row.uint(0)).unwrap();
    assert!(payload >= 10_000, "{payload} bytes");
    assert_eq!(stored(UserId::local()).await, payload);
    assert_eq!(stored(ada()).await, of_ada, "it is not of the other user");
    let ended = run_ended(run(1), 1, TurnId(Digest([0; 32])));
    sample.append(of_run, vec![ended]).await;
    purged(&sample, 1).await;
    assert_eq!(stored(UserId::local()).await, 0, "it is given back");
}

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
