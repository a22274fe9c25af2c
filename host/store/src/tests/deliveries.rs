//! The outbox to people outside: the order within each chat, and what becomes of each message.

use super::outside::{
    at, chat, delivered, delivery, guarded, of_telegram, queued, queued_because, sending, sent,
    telegram,
};
use super::projections::everything;
use super::sample::{Sample, ada, begin, noise, run, run_ended, run_started, session};
use crate::{
    CommitError, ConnectorGuard, DeliveryCounts, DeliveryFilter, DeliveryRow, DeliveryState,
};
use domain::digest::Digest;
use domain::event::{
    DeliveryCause, DeliveryOutcome, DeliveryQueued, DeliveryRequeued, DeliverySettled,
    DeliveryStarted, Event,
};
use domain::id::{ConnectorId, DeliveryId, OperationId, Stream, TurnId};
use std::collections::BTreeSet;

async fn is_rebuilt(sample: &Sample) {
    let before = everything(&sample.database());
    let rebuilt = sample.store.rebuild().await.unwrap();
    assert_eq!(rebuilt.replaced, Vec::new());
    assert_eq!(everything(&sample.database()), before);
    assert_eq!(sample.store.verify().await.unwrap().fault, None);
}

fn which(rows: Vec<DeliveryRow>) -> Vec<DeliveryId> {
    rows.into_iter().map(|row| row.delivery).collect()
}

async fn due(sample: &Sample, ms: u64) -> Vec<DeliveryId> {
    which(
        sample
            .store
            .due_deliveries(at(ms), 10, &BTreeSet::new())
            .await
            .unwrap(),
    )
}

async fn row(sample: &Sample, n: u32) -> DeliveryRow {
    sample.store.delivery(delivery(n)).await.unwrap().unwrap()
}

fn requeued(n: u32) -> Event {
    Event::DeliveryRequeued(DeliveryRequeued {
        connector: telegram(),
        delivery: delivery(n),
        by: ada(),
        edits: None,
        time: at(20),
    })
}

fn not_taken(n: u32, retry_ms: u64) -> Event {
    let reason = "too many requests".to_owned();
    sent(
        n,
        DeliveryOutcome::Failed {
            reason,
            retry_at: at(retry_ms),
        },
    )
}

fn given_up(n: u32) -> Event {
    let reason = "no such chat".to_owned();
    sent(n, DeliveryOutcome::Dead { reason })
}

fn not_known(n: u32) -> Event {
    let reason = "the host ended".to_owned();
    sent(n, DeliveryOutcome::Unknown { reason })
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
        Event::DeliveryStarted(DeliveryStarted {
            connector: telegram(),
            delivery: delivery(1),
            attempt: 1,
            piece: 0,
            edits,
            time: at(11),
        })
    };
    let settled = |outcome: DeliveryOutcome| {
        Event::DeliverySettled(DeliverySettled {
            connector: telegram(),
            delivery: delivery(1),
            outcome,
            edits: message.clone(),
            time: at(12),
        })
    };
    let again = DeliveryOutcome::Failed {
        reason: "no answer".to_owned(),
        retry_at: at(20),
    };
    let dead = DeliveryOutcome::Dead {
        reason: "no answer".to_owned(),
    };
    let requeued = Event::DeliveryRequeued(DeliveryRequeued {
        connector: telegram(),
        delivery: delivery(1),
        by: ada(),
        edits: message.clone(),
        time: at(20),
    });
    assert_eq!(sample.store.edited_by(delivery(1)).await.unwrap(), None);
    let edits = [
        started(message.clone()),
        settled(again),
        started(message.clone()),
        settled(dead),
        requeued,
    ];
    for event in edits {
        sample.append(of_telegram(), vec![event]).await;
        let edited = sample.store.edited_by(delivery(1)).await.unwrap();
        assert_eq!(edited, message);
    }
    sample.append(of_telegram(), vec![started(None)]).await;
    assert_eq!(sample.store.edited_by(delivery(1)).await.unwrap(), None);
    assert_eq!(sample.store.edited_by(delivery(9)).await.unwrap(), None);
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn messages_into_one_chat_are_sent_one_after_the_other() {
    let sample = Sample::new();
    three(&sample).await;
    assert_eq!(due(&sample, 9).await, []);
    assert_eq!(due(&sample, 10).await, [delivery(1), delivery(3)]);
    sample.append(of_telegram(), vec![sending(1, 1, 0)]).await;
    assert_eq!(due(&sample, 10).await, [delivery(3)]);
    let begun = sample.store.started_deliveries(0, 10).await.unwrap();
    assert_eq!(begun.len(), 1);
    assert_eq!((begun[0].attempts, begun[0].piece), (1, 0));
    // The service wants to be asked later: the next one waits too.
    sample.append(of_telegram(), vec![not_taken(1, 500)]).await;
    assert_eq!(due(&sample, 499).await, [delivery(3)]);
    assert_eq!(
        sample.store.next_delivery_after(at(10)).await.unwrap(),
        Some(at(500))
    );
    assert_eq!(
        row(&sample, 1).await.reason.as_deref(),
        Some("too many requests")
    );
    sample
        .append(of_telegram(), vec![sending(1, 2, 0), delivered(1)])
        .await;
    assert_eq!(due(&sample, 499).await, [delivery(2), delivery(3)]);
    let done = row(&sample, 1).await;
    assert_eq!(
        (done.state, done.attempts, done.reason),
        (DeliveryState::Delivered, 2, None)
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
        sent(1, DeliveryOutcome::Piece { service_id })
    };
    sample
        .append(
            of_telegram(),
            vec![sending(1, 1, 0), taken("p0"), sending(1, 1, 1), taken("p1")],
        )
        .await;
    let going_on = row(&sample, 1).await;
    assert_eq!(
        (going_on.state, going_on.piece, going_on.attempts),
        (DeliveryState::Queued, 2, 0)
    );
    assert_eq!(going_on.service_ids, ["p0", "p1"]);
    assert_eq!(due(&sample, 12).await, [delivery(3), delivery(1)]);
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
    let counts = sample.store.delivery_counts(&telegram()).await.unwrap();
    assert_eq!(
        counts,
        DeliveryCounts {
            open: 2,
            unknown: 0,
            dead: 1
        }
    );
    sample.append(of_telegram(), vec![requeued(1)]).await;
    // The other one is being sent.
    assert_eq!(due(&sample, 100).await, [delivery(3)]);
    sample.append(of_telegram(), vec![not_taken(2, 13)]).await;
    assert_eq!(due(&sample, 100).await, [delivery(3), delivery(1)]);
    assert_eq!(row(&sample, 1).await.attempts, 0);
    sample
        .append(of_telegram(), vec![sending(1, 1, 0), not_known(1)])
        .await;
    assert_eq!(due(&sample, 100).await, [delivery(3), delivery(2)]);
    let filter = |state| DeliveryFilter {
        connector: telegram(),
        state,
    };
    let in_state = |state| sample.store.deliveries(filter(state), None, 10);
    let unknown = in_state(Some(DeliveryState::Unknown)).await.unwrap();
    assert_eq!(which(unknown), [delivery(1)]);
    let all = in_state(None).await.unwrap();
    let before = all[0].position;
    assert_eq!(which(all), [3, 2, 1].map(delivery));
    let rest = sample
        .store
        .deliveries(filter(None), Some(before), 1)
        .await
        .unwrap();
    assert_eq!(which(rest), [delivery(2)]);
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn deliveries_are_found_by_their_run_and_by_their_chat() {
    let sample = Sample::new();
    three(&sample).await;
    let of_runs = sample
        .store
        .deliveries_of_runs(&[run(1), run(2), run(3)], 10)
        .await
        .unwrap();
    assert_eq!(which(of_runs), [1, 2, 3].map(delivery));
    let first = row(&sample, 1).await.position;
    let of_chat = sample
        .store
        .deliveries_of_chat(&chat("a"), first, 10)
        .await
        .unwrap();
    assert_eq!(which(of_chat), [delivery(2)]);
    let is = |state| ConnectorGuard::DeliveryIs {
        delivery: delivery(1),
        state,
    };
    for (state, expected) in [(DeliveryState::Queued, true), (DeliveryState::Dead, false)] {
        let commit = guarded(is(state), Stream::Host, noise(1));
        let landed = match sample.store.commit(commit).await {
            Ok(_) => true,
            Err(CommitError::Conflict(_)) => false,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(landed, expected, "{state:?}");
    }
}

fn asked(operation: OperationId) -> DeliveryCause {
    DeliveryCause::Question {
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
            .map(|it| it.delivery.text)
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
    let Event::DeliveryQueued(queued) = queued(4, "c", 3, "four") else {
        panic!("it is queued")
    };
    let slack = DeliveryQueued {
        connector: "slack".parse().unwrap(),
        time: at(11),
        ..queued
    };
    let of_slack = Stream::Connector(ConnectorId::of_name("slack"));
    sample
        .append(of_slack, vec![Event::DeliveryQueued(slack)])
        .await;
    let without = BTreeSet::from([telegram()]);
    let due = sample.store.due_deliveries(at(20), 1, &without).await;
    assert_eq!(which(due.unwrap()), [delivery(4)]);
}

/// Three pieces that the service took, of the first message.
async fn taken_in_pieces(sample: &Sample) {
    three(sample).await;
    let piece = |id: &str| {
        let service_id = id.to_owned();
        sent(1, DeliveryOutcome::Piece { service_id })
    };
    let service_ids = ["p0", "p1", "p2"].map(str::to_owned).to_vec();
    let all = vec![
        sending(1, 1, 0),
        piece("p0"),
        sending(1, 1, 1),
        piece("p1"),
        sending(1, 1, 2),
        sent(1, DeliveryOutcome::Delivered { service_ids }),
    ];
    sample.append(of_telegram(), all).await;
}

fn lost(n: u32, piece: u32) -> Event {
    let reason = format!("piece {} did not arrive", piece + 1);
    sent(n, DeliveryOutcome::Undelivered { piece, reason })
}

#[tokio::test]
async fn a_lost_piece_is_sent_again_and_none_that_arrived() {
    let sample = Sample::new();
    taken_in_pieces(&sample).await;
    sample
        .append(of_telegram(), vec![lost(1, 0), lost(1, 2)])
        .await;
    let dead = row(&sample, 1).await;
    assert_eq!(dead.state, DeliveryState::Dead);
    assert_eq!(dead.reason.as_deref(), Some("piece 3 did not arrive"));
    assert_eq!(dead.service_ids, ["p0", "p1", "p2"]);
    assert_eq!(dead.lost, BTreeSet::from([0, 2]));
    sample.append(of_telegram(), vec![requeued(1)]).await;
    let again = row(&sample, 1).await;
    assert_eq!((again.state, again.piece), (DeliveryState::Queued, 0));
    assert_eq!((again.lost_id(0), again.lost_id(1)), (Some("p0"), None));
    let taken = vec![
        sending(1, 1, 0),
        sent(
            1,
            DeliveryOutcome::Piece {
                service_id: "p3".to_owned(),
            },
        ),
    ];
    sample.append(of_telegram(), taken).await;
    // The second one arrived.
    let third = row(&sample, 1).await;
    assert_eq!((third.state, third.piece), (DeliveryState::Queued, 2));
    assert_eq!(third.service_ids, ["p3", "p1", "p2"]);
    let service_ids = ["p3", "p1", "p4"].map(str::to_owned).to_vec();
    let taken = vec![
        sending(1, 1, 2),
        sent(1, DeliveryOutcome::Delivered { service_ids }),
    ];
    sample.append(of_telegram(), taken).await;
    let whole = row(&sample, 1).await;
    assert_eq!(
        (whole.state, whole.reason),
        (DeliveryState::Delivered, None)
    );
    assert_eq!(whole.lost, BTreeSet::new());
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn a_piece_that_is_lost_while_others_are_sent_has_the_message_given_up_at_its_end() {
    let sample = Sample::new();
    three(&sample).await;
    let service_id = "p0".to_owned();
    let taken = sent(1, DeliveryOutcome::Piece { service_id });
    let some = vec![sending(1, 1, 0), taken, sending(1, 1, 1), lost(1, 0)];
    sample.append(of_telegram(), some).await;
    let open = row(&sample, 1).await;
    assert_eq!((open.state, open.piece), (DeliveryState::Started, 1));
    let service_ids = ["p0", "p1"].map(str::to_owned).to_vec();
    let end = vec![sent(1, DeliveryOutcome::Delivered { service_ids })];
    sample.append(of_telegram(), end).await;
    let dead = row(&sample, 1).await;
    assert_eq!(dead.state, DeliveryState::Dead);
    assert_eq!(dead.reason.as_deref(), Some("piece 1 did not arrive"));
    assert_eq!((dead.missing_from(0), dead.missing_from(1)), (0, 2));
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn pieces_are_found_by_the_ids_of_their_service_in_one_look() {
    let sample = Sample::new();
    taken_in_pieces(&sample).await;
    sample.append(of_telegram(), vec![lost(1, 0)]).await;
    let found = async |ids: &[&str]| {
        let found = sample.store.pieces_under(&telegram(), ids).await.unwrap();
        let found = found.into_iter();
        found
            .map(|it| (it.service_id, it.delivery, it.piece))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found(&["p2", "p0", "x"]).await,
        [
            ("p0".to_owned(), delivery(1), 0),
            ("p2".to_owned(), delivery(1), 2)
        ]
    );
    assert_eq!(found(&[]).await, []);
    assert!(!sample.store.is_sending(&telegram()).await.unwrap());
    sample.append(of_telegram(), vec![sending(2, 1, 0)]).await;
    assert!(sample.store.is_sending(&telegram()).await.unwrap());
}
