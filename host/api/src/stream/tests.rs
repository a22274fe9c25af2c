//! Positions to go on from, and what waits for slow readers.

use super::outbox::{self, HungUp};
use super::{Resumed, resumed};
use futures::StreamExt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[test]
fn only_the_id_of_a_frame_can_be_gone_on_from() {
    let at = |position, frames| Resumed { position, frames };
    assert_eq!(resumed("0").unwrap(), at(0, 0));
    assert_eq!(resumed("7").unwrap(), at(7, 0));
    // Between two frames of the event after it.
    assert_eq!(resumed("6.2").unwrap(), at(6, 2));
    assert_eq!(
        (
            resumed("6.2").unwrap().begun(),
            resumed("6.2").unwrap().seen()
        ),
        (Some((7, 2)), 7)
    );
    for text in [
        "18446744073709551616",
        "99999999999999999999999",
        "-1",
        "+1",
        "1.0",
        "1.x",
        "1.",
        ".1",
        "1.1.1",
        "x",
        "",
        " 1",
        "0x1",
    ] {
        let problem = resumed(text).unwrap_err();
        assert_eq!(
            (problem.code.status(), problem.code.as_str()),
            (400, "INVALID_LAST_EVENT_ID"),
            "{text}"
        );
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
    assert_eq!(
        tokio::join!(out.push("y".repeat(100).into()), reading),
        (Ok(()), 100)
    );
    assert!(!hang_up.is_cancelled());
    assert_eq!(out.push("z".into()).await, Err(HungUp));
    assert!(hang_up.is_cancelled());
}

#[tokio::test]
async fn a_reader_that_went_away_ends_the_writing() {
    let (out, chunks) = outbox::channel(10, Duration::from_secs(60), CancellationToken::new());
    drop(chunks);
    out.closed().await;
    assert_eq!(out.push("x".into()).await, Err(HungUp));
}
