//! Positions to go on from, and what waits for slow readers.

use super::outbox::{self, Parted};
use super::position;
use futures::StreamExt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[test]
fn only_the_position_of_an_event_that_is_there_can_be_gone_on_from() {
    assert_eq!(position("0", 7).unwrap(), 0);
    assert_eq!(position("7", 7).unwrap(), 7);
    for text in ["8", "18446744073709551616", "99999999999999999999999", "-1", "+1", "1.0", "x", "", " 1", "0x1"] {
        let problem = position(text, 7).unwrap_err();
        assert_eq!((problem.status.as_u16(), problem.code), (400, "INVALID_LAST_EVENT_ID"), "{text}");
    }
}

#[tokio::test]
async fn a_reader_with_too_much_waiting_is_waited_for_and_not_for_ever() {
    let hang_up = CancellationToken::new();
    let (out, mut chunks) = outbox::channel(10, Duration::from_millis(300), hang_up.clone());
    out.push("x".repeat(100).into()).await.unwrap();
    let reading = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        chunks.next().await.unwrap().unwrap().len()
    };
    assert_eq!(tokio::join!(out.push("y".repeat(100).into()), reading), (Ok(()), 100));
    assert!(!hang_up.is_cancelled());
    assert_eq!(out.push("z".into()).await, Err(Parted));
    assert!(hang_up.is_cancelled());
}

#[tokio::test]
async fn a_reader_that_went_away_ends_the_writing() {
    let (out, chunks) = outbox::channel(10, Duration::from_secs(60), CancellationToken::new());
    drop(chunks);
    out.closed().await;
    assert_eq!(out.push("x".into()).await, Err(Parted));
}
