//! Programs that answer twice, for others, too much, or with signatures that are not theirs to use.

use super::{
    TRAFFIC, WEATHER, answer, attach, lines, message_of, name, now_s, post, signed_at, world,
};
use agent_host_tests::peer::{Peer, Says};
use broker::ExternalPost;
use domain::event::BoundaryVerdict;
use serde_json::json;
use std::time::{Duration, Instant};

/// The time after which an answer that nobody signed is refused, whether there is its session or
/// not.
const REFUSED_AFTER: Duration = Duration::from_millis(25);

#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_is_refused_and_the_same_one_changes_nothing() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "What is it?").await;
    let message = message_of(&peer.heard(1).await[0]);
    let first = answer(&world, post(WEATHER, "w-1", message, "This."))
        .await
        .unwrap();
    world.idle(session).await;
    let again = answer(&world, post(WEATHER, "w-1", message, "This."))
        .await
        .unwrap();
    assert_eq!((again.0, first.1, again.1), (first.0, false, true));
    let other = answer(&world, post(WEATHER, "w-1", message, "That.")).await;
    assert_eq!(other, Err("NOTHING_TO_ANSWER".to_owned()));
    let unasked = answer(&world, post(WEATHER, "w-1", None, "And?")).await;
    assert_eq!(unasked, Err("NOTHING_TO_ANSWER".to_owned()));
    assert_eq!(world.last_reply(session).await, "This.");
    assert_eq!(world.messages(session).await.len(), 2);
    let refused = (BoundaryVerdict::Refused, "NOTHING_TO_ANSWER".to_owned());
    let reported = lines(&world, "external.answer").await;
    assert_eq!(
        reported.iter().filter(|line| **line == refused).count(),
        2,
        "{reported:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_answers_for_another_session_or_another_agent() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    let one = attach(&world, "weather", "w-1").await.unwrap().session;
    let two = attach(&world, "weather", "w-2").await.unwrap().session;
    world.say("weather", one, "One?").await;
    let first = message_of(&peer.heard(1).await[0]);
    world.say("weather", two, "Two?").await;
    let second = message_of(&peer.heard(2).await[1]);
    let began = Instant::now();
    let foreign = answer(&world, post(TRAFFIC, "w-1", first, "Mine.")).await;
    assert!(began.elapsed() >= REFUSED_AFTER, "the time tells of it");
    assert_eq!(foreign, Err("SIGNATURE_INVALID".to_owned()));
    let elsewhere = answer(&world, post(WEATHER, "w-2", first, "One.")).await;
    assert_eq!(elsewhere, Err("NOTHING_TO_ANSWER".to_owned()));
    let moved = ExternalPost {
        name: name("w-2"),
        ..post(WEATHER, "w-1", second, "Two.")
    };
    assert_eq!(
        answer(&world, moved).await,
        Err("SIGNATURE_INVALID".to_owned())
    );
    let began = Instant::now();
    let unknown = answer(&world, post(WEATHER, "w-3", first, "One.")).await;
    assert!(began.elapsed() >= REFUSED_AFTER, "the time tells of it");
    assert_eq!(unknown, Err("SIGNATURE_INVALID".to_owned()));
    let by_user = world.answer("weather", first.unwrap(), json!("Me.")).await;
    assert!(by_user.is_err(), "no user answers for the program");
    let refusals = lines(&world, "external.answer").await;
    let codes: Vec<&str> = refusals.iter().map(|line| line.1.as_str()).collect();
    assert_eq!(
        codes,
        [
            "SIGNATURE_INVALID",
            "NOTHING_TO_ANSWER",
            "SIGNATURE_INVALID"
        ]
    );
    for (session, message, text) in [("w-1", first, "One."), ("w-2", second, "Two.")] {
        answer(&world, post(WEATHER, session, message, text))
            .await
            .unwrap();
    }
    world.idle(one).await;
    world.idle(two).await;
    assert_eq!(world.last_reply(one).await, "One.");
    assert_eq!(world.last_reply(two).await, "Two.");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_megabytes_are_neither_read_nor_taken() {
    let peer = Peer::new(|_, _| Says::Body(200, "", vec![b'x'; 10 << 20]));
    let world = world(&peer, &json!({ "answerBytesMax": 1_000 })).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "How much?").await;
    let message = message_of(&peer.heard(1).await[0]);
    let large = answer(&world, post(WEATHER, "w-1", message, &"x".repeat(1_001))).await;
    assert_eq!(large, Err("ANSWER_TOO_LARGE".to_owned()));
    let unread = ExternalPost {
        body: None,
        ..post(WEATHER, "w-1", message, "")
    };
    assert_eq!(
        answer(&world, unread).await,
        Err("ANSWER_TOO_LARGE".to_owned())
    );
    let limited = (BoundaryVerdict::Limited, "ANSWER_TOO_LARGE".to_owned());
    let refused = lines(&world, "external.answer").await;
    assert_eq!(refused, [limited.clone(), limited]);
    answer(&world, post(WEATHER, "w-1", message, "Enough."))
        .await
        .unwrap();
    world.replies(session, "Enough.").await;
    let ledger = world.ledger().await;
    let read: u64 = ledger
        .iter()
        .flat_map(|decided| &decided.egress.hops)
        .map(|hop| hop.bytes_in)
        .sum();
    assert!(read < 1 << 20, "{read} bytes were read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_is_good_for_one_request_and_five_minutes() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "Who?").await;
    let heard = peer.heard(1).await.remove(0);
    let message = message_of(&heard);
    let old = signed_at(now_s() - 301, WEATHER, "w-1", message, "Me.");
    assert_eq!(answer(&world, old).await, Err("SIGNATURE_STALE".to_owned()));
    let early = signed_at(now_s() + 400, WEATHER, "w-1", message, "Me.");
    assert_eq!(
        answer(&world, early).await,
        Err("SIGNATURE_STALE".to_owned())
    );
    // What the host signed is no answer of the program's.
    let sent_back = ExternalPost {
        name: name("w-1"),
        message,
        time_s: heard.header("x-agent-host-time").parse().unwrap(),
        signature: heard.header("x-agent-host-signature").to_owned(),
        body: Some(heard.text.into_bytes()),
    };
    assert_eq!(
        answer(&world, sent_back).await,
        Err("SIGNATURE_INVALID".to_owned())
    );
    let honest = post(WEATHER, "w-1", message, "You.");
    let changed = ExternalPost {
        body: Some(b"Me.".to_vec()),
        ..honest.clone()
    };
    assert_eq!(
        answer(&world, changed).await,
        Err("SIGNATURE_INVALID".to_owned())
    );
    answer(&world, honest.clone()).await.unwrap();
    world.idle(session).await;
    assert!(
        answer(&world, honest).await.unwrap().1,
        "it is the same answer"
    );
    assert_eq!(world.messages(session).await.len(), 2);
    let refusals = lines(&world, "external.answer").await;
    let stale = refusals.iter().filter(|line| line.1 == "SIGNATURE_STALE");
    assert_eq!(stale.count(), 1, "the second is told of a minute later");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_for_one_message_answers_no_other() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "Rain?").await;
    let first = message_of(&peer.heard(1).await[0]);
    world.say("weather", session, "Wind?").await;
    let second = message_of(&peer.heard(2).await[1]);
    let seen = post(WEATHER, "w-1", first, "Yes.");
    let replayed = async |message| {
        let moved = ExternalPost {
            message,
            ..seen.clone()
        };
        answer(&world, moved).await
    };
    let invalid = || Err("SIGNATURE_INVALID".to_owned());
    assert_eq!(replayed(second).await, invalid(), "before it is used");
    assert_eq!(replayed(None).await, invalid());
    assert!(!replayed(first).await.unwrap().1);
    assert_eq!(replayed(second).await, invalid(), "while another waits");
    assert_eq!(replayed(None).await, invalid());
    answer(&world, post(WEATHER, "w-1", second, "No."))
        .await
        .unwrap();
    world.idle(session).await;
    // Answers that one step hears are one reply.
    let reply = world.last_reply(session).await;
    assert!(["No.", "Yes.\nNo."].contains(&reply.as_str()), "{reply}");

    world.say("weather", session, "Snow?").await;
    let third = message_of(&peer.heard(3).await[2]);
    assert_eq!(replayed(third).await, invalid(), "in the next turn");
    assert_eq!(replayed(None).await, invalid());
    assert!(replayed(first).await.unwrap().1, "it is the same answer");
    let unnamed = post(WEATHER, "w-1", None, "Never.");
    assert!(!answer(&world, unnamed.clone()).await.unwrap().1);
    world.replies(session, "Never.").await;

    world.say("weather", session, "Hail?").await;
    let fourth = message_of(&peer.heard(4).await[3]);
    assert!(answer(&world, unnamed).await.unwrap().1);
    answer(&world, post(WEATHER, "w-1", fourth, "Perhaps."))
        .await
        .unwrap();
    world.replies(session, "Perhaps.").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_sign_learns_of_no_session_and_adds_nothing_to_what_has_ended() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "Anybody?").await;
    let message = message_of(&peer.heard(1).await[0]);
    let reported =
        async |post: ExternalPost| match world.broker.external_agents().answer(post).await {
            Err(broker::Error::Refused(refusal)) => format!("{refusal:?}"),
            other => panic!("{other:?}"),
        };
    let forged = |session| post(TRAFFIC, session, message, "Me.");
    let unread = |session| ExternalPost {
        body: None,
        ..forged(session)
    };
    assert_eq!(reported(forged("w-1")).await, reported(forged("w-2")).await);
    assert_eq!(reported(unread("w-1")).await, reported(unread("w-2")).await);
    for _ in 0..50 {
        reported(forged("w-1")).await;
        reported(unread("w-1")).await;
    }
    let collected = [
        (BoundaryVerdict::Refused, "SIGNATURE_INVALID".to_owned()),
        (BoundaryVerdict::Limited, "ANSWER_TOO_LARGE".to_owned()),
    ];
    assert_eq!(lines(&world, "external.answer").await, collected);
    answer(&world, post(WEATHER, "w-1", message, "I."))
        .await
        .unwrap();
    world.idle(session).await;
    let stale = signed_at(now_s() - 301, WEATHER, "w-1", message, "I.");
    assert_eq!(
        answer(&world, stale).await,
        Err("SIGNATURE_STALE".to_owned())
    );
    let after = lines(&world, "external.answer").await;
    assert_eq!(after.len(), 3, "only the answer was added: {after:?}");
}
