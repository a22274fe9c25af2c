//! Tests of what a connector returns. Its bounds are held with a component, in
//! `tests/all/connectors.rs`.

use super::*;
use crate::convert::Unacceptable;

fn incoming() -> connector::Incoming {
    connector::Incoming {
        id: "1".into(),
        sender: "anna".into(),
        sender_name: None,
        group: None,
        chat: "7".into(),
        said: connector::Said::Text("hello".into()),
        quotations: Vec::new(),
        attachments: Vec::new(),
        sent_ms: 5,
        acknowledge: None,
        overheard: false,
        replies_to: None,
    }
}

fn moved(from: &str) -> connector::Moved {
    connector::Moved {
        from: from.into(),
        to: "-100".into(),
        is_group: true,
    }
}

fn bringing(messages: Vec<connector::Incoming>) -> connector::Batch {
    connector::Batch {
        messages,
        moved: Vec::new(),
        undelivered: Vec::new(),
        cursor: None,
        next_ms: 1_000,
        answer: None,
    }
}

fn check<T: std::fmt::Debug>(read: Answer<T>, expected: &str) {
    let Unacceptable(detail) = read.unwrap_err();
    assert!(
        detail.contains(expected),
        "{detail} does not contain {expected}"
    );
}

/// An id of the service's that steers a terminal or is endless is the component's fault.
#[test]
fn ids_are_short_and_plain() {
    for id in [String::new(), "a\nb".to_owned(), "i".repeat(257)] {
        let message = connector::Incoming {
            id: id.clone(),
            ..incoming()
        };
        check(batch(Ok(bringing(vec![message]))), "`messages[0]`");
        if !id.is_empty() {
            check(sent(Ok(id)), "`id`");
        }
    }
    assert_eq!(sent(Ok(String::new())), Ok(Ok(String::new())));
}

/// People may write as much as they want: it does not stop the connector.
#[test]
fn a_message_that_is_too_long_is_taken_cut() {
    let message = connector::Incoming {
        said: connector::Said::Text("a".repeat(70_000)),
        ..incoming()
    };
    let batch = batch(Ok(bringing(vec![message]))).unwrap().unwrap();
    let Said::Text { text } = &batch.messages[0].said else {
        panic!("it was words");
    };
    assert!((65_536..66_000).contains(&text.len()), "{}", text.len());
}

/// A handle that is none is the component's fault, and no reason to lose what people say.
#[test]
fn a_message_whose_handle_is_none_is_taken_and_not_acknowledged() {
    let handled = |id: &str, handle: &str| connector::Incoming {
        id: id.into(),
        acknowledge: Some(handle.into()),
        ..incoming()
    };
    let endless = "h".repeat(16_385);
    let messages = vec![
        incoming(),
        handled("2", "h"),
        handled("3", ""),
        handled("4", &endless),
    ];
    let batch = batch(Ok(bringing(messages))).unwrap().unwrap();
    assert_eq!(batch.messages.len(), 4);
    assert_eq!(
        batch.acknowledgements,
        [Acknowledgement::new("2", "h").unwrap()]
    );
}

#[test]
fn what_is_overheard_and_who_moved_is_told_beside_the_messages() {
    let overheard = connector::Incoming {
        id: "2".into(),
        overheard: true,
        replies_to: Some("1".into()),
        ..incoming()
    };
    let brought = connector::Batch {
        moved: vec![moved("-5")],
        ..bringing(vec![incoming(), overheard])
    };
    let brought = batch(Ok(brought)).unwrap().unwrap();
    assert_eq!(brought.overheard, ["2"]);
    let reply = Reply {
        message: "2".to_owned(),
        to: "1".to_owned(),
    };
    assert_eq!(brought.replies, [reply]);
    let now = Moved {
        from: "-5".to_owned(),
        to: "-100".to_owned(),
        is_group: true,
    };
    assert_eq!(brought.moved, std::slice::from_ref(&now));
    let nobody = connector::Batch {
        moved: vec![moved("")],
        ..bringing(Vec::new())
    };
    check(batch(Ok(nobody)), "moved.from");
    let reported = || connector::ConnectorError::Moved(("-100".into(), moved("-5")));
    assert_eq!(
        sent(Err(reported())),
        Ok(Err(ConnectorFailure::Moved {
            chat: "-100".to_owned(),
            moved: now,
        }))
    );
    // Nothing but a message that is sent goes elsewhere.
    let polled = batch(Err(reported()));
    assert!(
        matches!(polled, Ok(Err(ConnectorFailure::Rejected(_)))),
        "{polled:?}"
    );
}

#[test]
fn an_acknowledgement_goes_out_with_the_handle_that_came_in() {
    let message = Outgoing {
        chat: "7".to_owned(),
        body: Body::Acknowledgement("h".to_owned()),
        idempotency_key: "key".to_owned(),
    };
    let connector::Body::Acknowledgement(handle) = guest_outgoing(&message).body else {
        panic!("it was an acknowledgement");
    };
    assert_eq!(handle, "h");
}

#[test]
fn a_connectors_own_error_is_a_result() {
    assert_eq!(
        sent(Err(connector::ConnectorError::RetryLater(5))),
        Ok(Err(ConnectorFailure::RetryLater {
            after_ms: 5,
            reason: LATER.to_owned(),
        }))
    );
    let endless = connector::ConnectorError::Rejected("r".repeat(5_000));
    let Ok(Err(ConnectorFailure::Rejected(reason))) = sent(Err(endless)) else {
        panic!("it was rejected");
    };
    assert_eq!(reason.len(), 1_024);
}
