//! The outbox to people outside: the order within each chat, and what becomes of each message.

use super::outside::{
    at, chat, delivered, guarded, of_telegram, outbound_message, queued, queued_because, sending,
    sent, telegram,
};
use super::projections::everything;
use super::sample::{Sample, ada, begin, noise, run, run_ended, run_started, session};
use crate::{
    CommitError, ConnectorGuard, OutboundMessageCounts, OutboundMessageFilter, OutboundMessageRow,
    OutboundMessageState,
};
use domain::digest::Digest;
use domain::event::{
    Event, OutboundMessageCause, OutboundMessageOutcome, OutboundMessageQueued,
    OutboundMessageRequeued, OutboundMessageSettled, OutboundMessageStarted,
};
use domain::id::{ConnectorId, OperationId, OutboundMessageId, Stream, TurnId};
use std::collections::BTreeSet;

async fn is_rebuilt(sample: &Sample) {
    let before = everything(&sample.database());
    let rebuilt = sample.store.rebuild().await.unwrap();
    assert_eq!(rebuilt.replaced, Vec::new());
    assert_eq!(everything(&sample.database()), before);
    assert_eq!(sample.store.verify().await.unwrap().fault, None);
}

fn which(rows: Vec<OutboundMessageRow>) -> Vec<OutboundMessageId> {
    rows.into_iter().map(|row| row.outbound_message).collect()
}

async fn due(sample: &Sample, ms: u64) -> Vec<OutboundMessageId> {
    which(
        sample
            .store
            .due_outbound_messages(at(ms), 10, &BTreeSet::new())
            .await
            .unwrap(),
    )
}

async fn row(sample: &Sample, n: u32) -> OutboundMessageRow {
    sample
        .store
        .outbound_message(outbound_message(n))
        .await
        .unwrap()
        .unwrap()
}

fn requeued(n: u32) -> Event {
    Event::OutboundMessageRequeued(OutboundMessageRequeued {
        connector: telegram(),
        outbound_message: outbound_message(n),
        by: ada(),
        edits: None,
        time: at(20),
    })
}

fn not_taken(n: u32, retry_ms: u64) -> Event {
    let reason = "too many requests".to_owned();
    sent(
        n,
        OutboundMessageOutcome::Failed {
            reason,
            retry_at: at(retry_ms),
        },
    )
}

fn given_up(n: u32) -> Event {
    let reason = "no such chat".to_owned();
    sent(n, OutboundMessageOutcome::Dead { reason })
}

fn not_known(n: u32) -> Event {
    let reason = "the host ended".to_owned();
    sent(n, OutboundMessageOutcome::Unknown { reason })
}

/// Two messages for one chat and one for another.
async fn three(sample: &Sample) {
    let all = vec![
        queued(1, "a", 1, "one"),
        queued(2, "a", 1, "two"),
        queued(3, "b", 2, "three"),
    ];
    sample.append(of_telegram(), all).await;
}

#[tokio::test]
async fn the_message_that_is_edited_is_known_until_another_attempt_edits_none() {
    let sample = Sample::new();
    three(&sample).await;
    let message = Some("m7".to_owned());
    let started = |edits: Option<String>| {
        Event::OutboundMessageStarted(OutboundMessageStarted {
            connector: telegram(),
            outbound_message: outbound_message(1),
            attempt: 1,
            chunk: 0,
            edits,
            time: at(11),
        })
    };
    let settled = |outcome: OutboundMessageOutcome| {
        Event::OutboundMessageSettled(OutboundMessageSettled {
            connector: telegram(),
            outbound_message: outbound_message(1),
            outcome,
            edits: message.clone(),
            time: at(12),
        })
    };
    let again = OutboundMessageOutcome::Failed {
        reason: "no answer".to_owned(),
        retry_at: at(20),
    };
    let dead = OutboundMessageOutcome::Dead {
        reason: "no answer".to_owned(),
    };
    let requeued = Event::OutboundMessageRequeued(OutboundMessageRequeued {
        connector: telegram(),
        outbound_message: outbound_message(1),
        by: ada(),
        edits: message.clone(),
        time: at(20),
    });
    assert_eq!(
        sample.store.edited_by(outbound_message(1)).await.unwrap(),
        None
    );
    let edits = [
        started(message.clone()),
        settled(again),
        started(message.clone()),
        settled(dead),
        requeued,
    ];
    for event in edits {
        sample.append(of_telegram(), vec![event]).await;
        let edited = sample.store.edited_by(outbound_message(1)).await.unwrap();
        assert_eq!(edited, message);
    }
    sample.append(of_telegram(), vec![started(None)]).await;
    assert_eq!(
        sample.store.edited_by(outbound_message(1)).await.unwrap(),
        None
    );
    assert_eq!(
        sample.store.edited_by(outbound_message(9)).await.unwrap(),
        None
    );
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn messages_into_one_chat_are_sent_one_after_the_other() {
    let sample = Sample::new();
    three(&sample).await;
    assert_eq!(due(&sample, 9).await, []);
    assert_eq!(
        due(&sample, 10).await,
        [outbound_message(1), outbound_message(3)]
    );
    sample.append(of_telegram(), vec![sending(1, 1, 0)]).await;
    assert_eq!(due(&sample, 10).await, [outbound_message(3)]);
    let mut without = BTreeSet::new();
    let begun = sample.store.started_outbound_messages(10, &without).await;
    let begun = begun.unwrap();
    assert_eq!(begun.len(), 1);
    without.insert(telegram());
    let others = sample.store.started_outbound_messages(10, &without).await;
    assert_eq!(others.unwrap(), []);
    assert_eq!((begun[0].attempts, begun[0].chunk), (1, 0));
    // The service wants to be asked later: the next one waits too.
    sample.append(of_telegram(), vec![not_taken(1, 500)]).await;
    assert_eq!(due(&sample, 499).await, [outbound_message(3)]);
    assert_eq!(
        sample
            .store
            .next_outbound_message_after(at(10))
            .await
            .unwrap(),
        Some(at(500))
    );
    assert_eq!(
        row(&sample, 1).await.reason.as_deref(),
        Some("too many requests")
    );
    sample
        .append(of_telegram(), vec![sending(1, 2, 0), delivered(1)])
        .await;
    assert_eq!(
        due(&sample, 499).await,
        [outbound_message(2), outbound_message(3)]
    );
    let done = row(&sample, 1).await;
    assert_eq!(
        (done.state, done.attempts, done.reason),
        (OutboundMessageState::Delivered, 2, None)
    );
    assert_eq!(done.service_ids, ["s1"]);
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn a_long_message_goes_on_behind_the_piece_that_was_taken() {
    let sample = Sample::new();
    three(&sample).await;
    let taken = |service_id: &str| {
        let service_id = service_id.to_owned();
        sent(1, OutboundMessageOutcome::Chunk { service_id })
    };
    sample
        .append(
            of_telegram(),
            vec![sending(1, 1, 0), taken("p0"), sending(1, 1, 1), taken("p1")],
        )
        .await;
    let going_on = row(&sample, 1).await;
    assert_eq!(
        (going_on.state, going_on.chunk, going_on.attempts),
        (OutboundMessageState::Queued, 2, 0)
    );
    assert_eq!(going_on.service_ids, ["p0", "p1"]);
    assert_eq!(
        due(&sample, 12).await,
        [outbound_message(3), outbound_message(1)]
    );
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn what_was_given_up_can_be_tried_again_at_its_old_place() {
    let sample = Sample::new();
    three(&sample).await;
    sample
        .append(
            of_telegram(),
            vec![sending(1, 1, 0), given_up(1), sending(2, 1, 0)],
        )
        .await;
    let counts = sample
        .store
        .outbound_message_counts(&telegram())
        .await
        .unwrap();
    assert_eq!(
        counts,
        OutboundMessageCounts {
            open: 2,
            unknown: 0,
            dead: 1
        }
    );
    sample.append(of_telegram(), vec![requeued(1)]).await;
    // The other one is being sent.
    assert_eq!(due(&sample, 100).await, [outbound_message(3)]);
    sample.append(of_telegram(), vec![not_taken(2, 13)]).await;
    assert_eq!(
        due(&sample, 100).await,
        [outbound_message(3), outbound_message(1)]
    );
    assert_eq!(row(&sample, 1).await.attempts, 0);
    sample
        .append(of_telegram(), vec![sending(1, 1, 0), not_known(1)])
        .await;
    assert_eq!(
        due(&sample, 100).await,
        [outbound_message(3), outbound_message(2)]
    );
    let filter = |state| OutboundMessageFilter {
        connector: telegram(),
        state,
    };
    let in_state = |state| sample.store.outbound_messages(filter(state), None, 10);
    let unknown = in_state(Some(OutboundMessageState::Unknown)).await.unwrap();
    assert_eq!(which(unknown), [outbound_message(1)]);
    let all = in_state(None).await.unwrap();
    let before = all[0].position;
    assert_eq!(which(all), [3, 2, 1].map(outbound_message));
    let rest = sample
        .store
        .outbound_messages(filter(None), Some(before), 1)
        .await
        .unwrap();
    assert_eq!(which(rest), [outbound_message(2)]);
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn outbound_messages_are_found_by_their_run_and_by_their_chat() {
    let sample = Sample::new();
    three(&sample).await;
    let of_runs = sample
        .store
        .outbound_messages_of_runs(&[run(1), run(2), run(3)], 10)
        .await
        .unwrap();
    assert_eq!(which(of_runs), [1, 2, 3].map(outbound_message));
    let first = row(&sample, 1).await.position;
    let of_chat = sample
        .store
        .outbound_messages_of_chat(&chat("a"), first, 10)
        .await
        .unwrap();
    assert_eq!(which(of_chat), [outbound_message(2)]);
    let is = |state| ConnectorGuard::OutboundMessageIs {
        outbound_message: outbound_message(1),
        state,
    };
    for (state, expected) in [
        (OutboundMessageState::Queued, true),
        (OutboundMessageState::Dead, false),
    ] {
        let commit = guarded(is(state), Stream::Host, noise(1));
        let landed = match sample.store.commit(commit).await {
            Ok(_) => true,
            Err(CommitError::Conflict(_)) => false,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(landed, expected, "{state:?}");
    }
}

fn asked(operation: OperationId) -> OutboundMessageCause {
    OutboundMessageCause::Question {
        session: session(1),
        run: run(1),
        operation,
    }
}

#[tokio::test]
async fn a_question_is_open_until_its_run_ends() {
    let sample = Sample::new();
    begin(&sample).await;
    let [first, second] = ["a", "b"].map(|key| OperationId::mint(run(1), 0, key));
    let started = run_started(run(1), 1, None, Vec::new());
    sample.append(Stream::Run(run(1)), vec![started]).await;
    sample
        .append(
            of_telegram(),
            vec![
                queued_because(1, "a", asked(first), "First?"),
                queued_because(2, "a", asked(second), "Second?"),
                queued(3, "a", 1, "no question"),
            ],
        )
        .await;
    let texts = || async {
        let open = sample
            .store
            .open_questions_in(&chat("a"), 10)
            .await
            .unwrap();
        open.into_iter()
            .map(|it| it.outbound_message.text)
            .collect::<Vec<_>>()
    };
    assert_eq!(texts().await, ["Second?", "First?"]);
    let question = sample.store.open_question(first).await.unwrap().unwrap();
    assert_eq!((question.run, question.session), (run(1), session(1)));
    sample
        .append(of_telegram(), vec![sending(2, 1, 0), given_up(2)])
        .await;
    assert_eq!(texts().await, ["First?"]);
    let end = run_ended(run(1), 1, TurnId(Digest([0; 32])));
    sample.append(Stream::Run(run(1)), vec![end]).await;
    assert_eq!(texts().await, [""; 0]);
    assert_eq!(sample.store.open_question(first).await.unwrap(), None);
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn a_connector_that_is_passed_over_holds_no_other_back() {
    let sample = Sample::new();
    three(&sample).await;
    let Event::OutboundMessageQueued(queued) = queued(4, "c", 3, "four") else {
        panic!("it is queued")
    };
    let slack = OutboundMessageQueued {
        connector: "slack".parse().unwrap(),
        time: at(11),
        ..queued
    };
    let of_slack = Stream::Connector(ConnectorId::of_name("slack"));
    sample
        .append(of_slack, vec![Event::OutboundMessageQueued(slack)])
        .await;
    let without = BTreeSet::from([telegram()]);
    let due = sample
        .store
        .due_outbound_messages(at(20), 1, &without)
        .await;
    assert_eq!(which(due.unwrap()), [outbound_message(4)]);
}

/// Three chunks that the service took, of the first message.
async fn taken_in_chunks(sample: &Sample) {
    three(sample).await;
    let chunk = |id: &str| {
        let service_id = id.to_owned();
        sent(1, OutboundMessageOutcome::Chunk { service_id })
    };
    let service_ids = ["p0", "p1", "p2"].map(str::to_owned).to_vec();
    let all = vec![
        sending(1, 1, 0),
        chunk("p0"),
        sending(1, 1, 1),
        chunk("p1"),
        sending(1, 1, 2),
        sent(1, OutboundMessageOutcome::Delivered { service_ids }),
    ];
    sample.append(of_telegram(), all).await;
}

fn lost(n: u32, chunk: u32) -> Event {
    let reason = format!("piece {} did not arrive", chunk + 1);
    sent(n, OutboundMessageOutcome::Undelivered { chunk, reason })
}

#[tokio::test]
async fn a_lost_piece_is_sent_again_and_none_that_arrived() {
    let sample = Sample::new();
    taken_in_chunks(&sample).await;
    sample
        .append(of_telegram(), vec![lost(1, 0), lost(1, 2)])
        .await;
    let dead = row(&sample, 1).await;
    assert_eq!(dead.state, OutboundMessageState::Dead);
    assert_eq!(dead.reason.as_deref(), Some("piece 3 did not arrive"));
    assert_eq!(dead.service_ids, ["p0", "p1", "p2"]);
    assert_eq!(dead.lost, BTreeSet::from([0, 2]));
    sample.append(of_telegram(), vec![requeued(1)]).await;
    let again = row(&sample, 1).await;
    assert_eq!(
        (again.state, again.chunk),
        (OutboundMessageState::Queued, 0)
    );
    assert_eq!((again.lost_id(0), again.lost_id(1)), (Some("p0"), None));
    let taken = vec![
        sending(1, 1, 0),
        sent(
            1,
            OutboundMessageOutcome::Chunk {
                service_id: "p3".to_owned(),
            },
        ),
    ];
    sample.append(of_telegram(), taken).await;
    // The second one arrived.
    let third = row(&sample, 1).await;
    assert_eq!(
        (third.state, third.chunk),
        (OutboundMessageState::Queued, 2)
    );
    assert_eq!(third.service_ids, ["p3", "p1", "p2"]);
    let service_ids = ["p3", "p1", "p4"].map(str::to_owned).to_vec();
    let taken = vec![
        sending(1, 1, 2),
        sent(1, OutboundMessageOutcome::Delivered { service_ids }),
    ];
    sample.append(of_telegram(), taken).await;
    let whole = row(&sample, 1).await;
    assert_eq!(
        (whole.state, whole.reason),
        (OutboundMessageState::Delivered, None)
    );
    assert_eq!(whole.lost, BTreeSet::new());
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn a_piece_that_is_lost_while_others_are_sent_has_the_message_given_up_at_its_end() {
    let sample = Sample::new();
    three(&sample).await;
    let service_id = "p0".to_owned();
    let taken = sent(1, OutboundMessageOutcome::Chunk { service_id });
    let some = vec![sending(1, 1, 0), taken, sending(1, 1, 1), lost(1, 0)];
    sample.append(of_telegram(), some).await;
    let open = row(&sample, 1).await;
    assert_eq!((open.state, open.chunk), (OutboundMessageState::Started, 1));
    let service_ids = ["p0", "p1"].map(str::to_owned).to_vec();
    let end = vec![sent(1, OutboundMessageOutcome::Delivered { service_ids })];
    sample.append(of_telegram(), end).await;
    let dead = row(&sample, 1).await;
    assert_eq!(dead.state, OutboundMessageState::Dead);
    assert_eq!(dead.reason.as_deref(), Some("piece 1 did not arrive"));
    assert_eq!((dead.missing_from(0), dead.missing_from(1)), (0, 2));
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn pieces_are_found_by_the_ids_of_their_service_in_one_look() {
    let sample = Sample::new();
    taken_in_chunks(&sample).await;
    sample.append(of_telegram(), vec![lost(1, 0)]).await;
    let found = async |ids: &[&str]| {
        let found = sample.store.chunks_under(&telegram(), ids).await.unwrap();
        let found = found.into_iter();
        found
            .map(|it| (it.service_id, it.outbound_message, it.chunk))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found(&["p2", "p0", "x"]).await,
        [
            ("p0".to_owned(), outbound_message(1), 0),
            ("p2".to_owned(), outbound_message(1), 2)
        ]
    );
    assert_eq!(found(&[]).await, []);
    assert!(!sample.store.is_sending(&telegram()).await.unwrap());
    sample.append(of_telegram(), vec![sending(2, 1, 0)]).await;
    assert!(sample.store.is_sending(&telegram()).await.unwrap());
}
