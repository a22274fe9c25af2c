//! Hosts that are killed between a message and its reply, at a random moment and at every commit:
//! what was acknowledged is there, and nothing is said twice without anybody knowing.
//!
//! A reply that people see before it is whole: the agent types, and the reply grows.

use super::scene::{ADA, AGENT, Scene, UNKNOWN_SENDER, Wanted, choice, reply, texts};
use super::telegram_server::Fault;
use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{PATIENCE, script, tells};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The crash points between the inbound message of a message and its session.
const IN: [&str; 5] = [
    "edge.received.before",
    "edge.received.after",
    "edge.handed.after",
    "edge.settled.before",
    "edge.settled.after",
];
/// The crash points on the way out, with the number of messages that are in the chat afterwards,
/// and with what the host knows of them.
const OUT: [(&str, usize, &str); 5] = [
    ("edge.started.before", 1, "delivered"),
    ("edge.started.after", 0, "unknown"),
    ("edge.sent", 1, "unknown"),
    ("edge.delivered.before", 1, "unknown"),
    ("edge.delivered.after", 1, "delivered"),
];
/// The crash points of a pairing that is confirmed.
const PAIRED: [&str; 3] = ["edge.pair.bound", "edge.pair.before", "edge.pair.after"];
/// The crash points of an outbound message that is to be sent again.
const REQUEUED: [&str; 2] = ["edge.requeue.before", "edge.requeue.after"];
/// The crash points that other tests here name themselves.
const ALONE: [&str; 2] = ["edge.file.after", "edge.answered.after"];

async fn dying_at(point: &str, connector: Value) -> Scene {
    Scene::with(Wanted {
        connector,
        crash_at: Some(format!("{point}:1")),
        ..Wanted::default()
    })
    .await
}

/// Returns the place at which a host polls first, which began to poll after so many polls of
/// others.
async fn first_offset(scene: &Scene, after: usize) -> i64 {
    let polled = found(async || scene.telegram.calls("getUpdates").into_iter().nth(after)).await;
    polled.body["offset"].as_i64().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_killed_at_work_answers_once_and_polls_on_where_it_was() {
    let scene = Scene::new().await;
    scene.telegram.say(ADA, "one");
    scene.telegram.messages(1).await;
    let slow = script(&json!([{ "start": [{ "key": "t", "timer": 2_000 }] }]));
    scene.telegram.say(ADA, &slow);
    found(async || {
        let session = scene.session("ada", AGENT).await;
        session["run_id"].is_string().then_some(())
    })
    .await;
    let scene = scene.killed().await;
    let polls = scene.telegram.calls("getUpdates").len();
    scene.telegram.say(ADA, "two");
    scene.telegram.messages(2).await;
    let offset = first_offset(&scene, polls).await;
    assert!(offset > 1_000, "it began anew, at {offset}");
    found(async || {
        let reported = scene.telegram.quiet().await.join("\n");
        reported.contains("said two").then_some(())
    })
    .await;
    let reported = scene.telegram.quiet().await.join("\n");
    for words in ["said one", "t elapsed", "said two"] {
        assert_eq!(reported.matches(words).count(), 1, "{words}: {reported}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_once_wherever_the_host_dies_on_its_way_in() {
    for point in IN {
        let scene = dying_at(point, json!({})).await;
        scene.telegram.say(ADA, "hello");
        let scene = scene.died().await;
        scene.telegram.messages(1).await;
        assert_eq!(scene.telegram.quiet().await, ["said hello"], "{point}");
        let session = scene.session("ada", AGENT).await;
        assert_eq!(texts(&session, "user"), ["hello"], "{point}");
        assert_eq!(
            scene.state().await["inbound_messages_waiting"],
            0,
            "{point}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_sent_once_or_told_to_be_unknown_wherever_the_host_dies() {
    for (point, sent, state) in OUT {
        let scene = dying_at(point, json!({})).await;
        scene.telegram.say(ADA, "hello");
        let scene = scene.died().await;
        scene.until_outbound_message(state).await;
        assert_eq!(scene.telegram.quiet().await.len(), sent, "{point}");
        assert_eq!(scene.outbound_messages().await.len(), 1, "{point}");
        let unknown = u64::from(state == "unknown");
        assert_eq!(
            scene.state().await["outbound_messages_unknown"],
            unknown,
            "{point}"
        );
        // Whoever comes behind it in the chat does not wait for it.
        scene.telegram.say(ADA, "again");
        let reported = scene.telegram.messages(sent + 1).await;
        assert_eq!(reported.last().unwrap().text, "said again", "{point}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_reply_goes_on_behind_the_piece_that_was_taken() {
    let scene = dying_at("edge.delivered.after", json!({})).await;
    let lines: Vec<String> = (0..500)
        .map(|line| format!("line {line:04} of it"))
        .collect();
    scene.telegram.say(ADA, &reply(&lines.join("\n\n")));
    let scene = scene.died().await;
    assert_eq!(scene.telegram.sent().len(), 1);
    scene.until_outbound_message("delivered").await;
    let whole = scene.telegram.quiet().await.join("\n\n");
    assert_eq!(whole.split("\n\n").collect::<Vec<_>>(), lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pressed_button_counts_once_although_the_host_dies_over_it() {
    let scene = dying_at("edge.answered.after", json!({})).await;
    scene
        .telegram
        .say(ADA, &choice(&["tea", "coffee"].map(str::to_owned)));
    let asked = scene.telegram.messages(1).await.remove(0);
    scene.telegram.press(ADA, &asked.buttons()[1].1);
    let scene = scene.died().await;
    let reported = scene.telegram.messages(2).await.remove(1).text;
    tells(&reported, &["coffee"]);
    assert_eq!(scene.telegram.quiet().await.len(), 2);
    let session = scene.session("ada", AGENT).await;
    assert_eq!(texts(&session, "assistant").len(), 1, "{session}");
}

/// The first message is the one that has the agent ask; the press is the second that is stored. A
/// host that dies right after that has not told the service, and does not tell it later.
#[tokio::test(flavor = "multi_thread")]
async fn a_pressed_button_is_acknowledged_after_its_commit_and_at_most_once() {
    for (point, acknowledged) in [("edge.received.before:2", 1), ("edge.received.after:2", 0)] {
        let mut scene = Scene::with(Wanted {
            crash_at: Some(point.to_owned()),
            ..Wanted::default()
        })
        .await;
        scene
            .telegram
            .say(ADA, &choice(&["tea", "coffee"].map(str::to_owned)));
        let asked = scene.telegram.messages(1).await.remove(0);
        scene.telegram.press(ADA, &asked.buttons()[1].1);
        assert!(scene.host.died(PATIENCE).await.is_some(), "{point}");
        let early = scene.telegram.calls("answerCallbackQuery");
        assert!(early.is_empty(), "{point}: it was not stored: {early:?}");
        let scene = scene.died().await;
        let reported = scene.telegram.messages(2).await.remove(1).text;
        assert!(reported.contains("coffee"), "{point}: {reported}");
        assert_eq!(scene.telegram.quiet().await.len(), 2, "{point}");
        let calls = scene.telegram.calls("answerCallbackQuery");
        assert_eq!(calls.len(), acknowledged, "{point}: {calls:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_handed_over_once_although_the_host_dies_over_it() {
    let scene = dying_at("edge.file.after", json!({})).await;
    scene
        .telegram
        .send_file(ADA, "Read this.", b"the tide is high");
    let scene = scene.died().await;
    scene.telegram.messages(1).await;
    assert_eq!(scene.telegram.quiet().await.len(), 1);
    let session = scene.session("ada", AGENT).await;
    let said = texts(&session, "user").remove(0);
    assert_eq!(said.matches("notes.txt").count(), 1, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pairing_that_was_entered_while_the_host_died_is_entered_again() {
    for point in PAIRED {
        let scene = dying_at(point, json!({ "unknown": "pair" })).await;
        scene.telegram.say(UNKNOWN_SENDER, "hello");
        scene.telegram.messages(1).await;
        let listed = scene.host.get("/api/pairings").await;
        let code = listed.body["pairings"][0]["code"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = format!("/api/pairings/{code}");
        let body = json!({ "user": "bob" });
        let lost = scene.host.post(&path, &body).attempt().await;
        assert!(lost.is_err(), "{point}: {lost:?}");
        let scene = scene.died().await;
        let entered = scene.host.post(&path, &body).await.status;
        let settled = if point == "edge.pair.after" { 404 } else { 200 };
        assert_eq!(entered, settled, "{point}");
        scene.telegram.say(UNKNOWN_SENDER, "It is me.");
        let reported = scene.telegram.messages(2).await.remove(1).text;
        assert_eq!(reported, "said It is me.", "{point}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_sent_again_once_although_the_host_dies_over_it() {
    for point in REQUEUED {
        let scene = dying_at(point, json!({})).await;
        let wrong = Fault::Wrong("Bad Request: chat not found");
        scene.telegram.fail("sendMessage", &[wrong]);
        scene.telegram.say(ADA, "hello");
        let dead = scene.until_outbound_message("dead").await;
        let lost = scene.requeue(&dead).attempt().await;
        assert!(lost.is_err(), "{point}: {lost:?}");
        let scene = scene.died().await;
        if point == "edge.requeue.before" {
            assert_eq!(scene.outbound_messages().await[0]["state"], "dead");
            scene.requeue(&dead).gives(202).await;
        }
        scene.until_outbound_message("delivered").await;
        assert_eq!(scene.telegram.quiet().await, ["said hello"], "{point}");
    }
}

#[test]
fn every_crash_point_of_connectors_is_tried() {
    let [_, of_connectors] = edge::CRASH_POINTS;
    let listed: BTreeSet<&str> = of_connectors.iter().copied().collect();
    let out = OUT.map(|(point, ..)| point);
    let tried: BTreeSet<&str> = [IN.as_slice(), &out, &PAIRED, &REQUEUED, &ALONE]
        .concat()
        .into_iter()
        .collect();
    assert_eq!(tried, listed);
}

/// A model that takes its time over each word.
const SLOW: &str = "[[rule]]\n\
    reply = { text = \"one two three four five six seven eight nine ten\", delayMs = 500 }\n";
/// The whole of its reply.
const WHOLE: &str = "one two three four five six seven eight nine ten";

async fn slow(connector: Value) -> Scene {
    Scene::with(Wanted {
        connector,
        agent: "assistant",
        script: Some(SLOW),
        ..Wanted::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn people_see_that_the_agent_types_while_a_reply_is_in_the_making() {
    let scene = slow(json!({})).await;
    scene.telegram.say(ADA, "hello");
    scene.telegram.called("sendChatAction").await;
    assert!(scene.telegram.sent().is_empty(), "it has not replied yet");
    let action = scene.telegram.calls("sendChatAction").remove(0).body;
    assert_eq!(action, json!({ "chat_id": "7", "action": "typing" }));
    scene.telegram.messages(1).await;
    assert_eq!(scene.telegram.quiet().await, [WHOLE]);
    assert!(scene.telegram.edits().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_that_shows_no_typing_sends_the_reply_alone() {
    let scene = slow(json!({ "typing": false })).await;
    scene.telegram.say(ADA, "hello");
    scene.telegram.messages(1).await;
    assert!(scene.telegram.calls("sendChatAction").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_grows_by_edits_of_one_message_and_ends_as_the_whole() {
    let scene = slow(json!({ "stream": true })).await;
    scene.telegram.say(ADA, "hello");
    let first = scene.telegram.messages(1).await.remove(0);
    assert!(
        first.text.ends_with('…'),
        "what grows is seen to grow: {first:?}"
    );
    scene.until_outbound_message("delivered").await;
    assert_eq!(scene.telegram.quiet().await.len(), 1, "one message");
    let edits = scene.telegram.edits();
    assert!(edits.len() >= 2, "{edits:?}");
    assert!(edits.iter().all(|(id, _)| *id == first.id), "{edits:?}");
    let (_, last) = edits.last().unwrap();
    assert_eq!(last, WHOLE);
    let grows = edits
        .windows(2)
        .all(|pair| pair[0].1.len() <= pair[1].1.len() + "…".len());
    assert!(grows, "{edits:?}");
    let at = scene.telegram.calls("editMessageText");
    let pauses = at
        .windows(2)
        .map(|pair| pair[1].at.duration_since(pair[0].at));
    // The last edit is the reply itself, and waits for nothing.
    let growing = pauses.take(at.len().saturating_sub(2));
    for pause in growing {
        assert!(pause.as_millis() >= 1_400, "{pause:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_grew_when_the_host_was_killed_follows_whole() {
    let scene = slow(json!({ "stream": true })).await;
    scene.telegram.say(ADA, "hello");
    scene.telegram.messages(1).await;
    let scene = scene.killed().await;
    scene.until_outbound_message("delivered").await;
    let reported = scene.telegram.quiet().await;
    let own = reported.iter().filter(|text| *text == WHOLE).count();
    let edits = scene.telegram.edits();
    let edited = edits.last().is_some_and(|(_, text)| text == WHOLE);
    assert_eq!(own + usize::from(edited), 1, "{reported:?} {edits:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_goes_on_in_its_message_after_the_host_was_killed() {
    let scene = slow(json!({ "stream": true })).await;
    scene.telegram.say(ADA, "hello");
    // By then the id of the message is stored.
    scene.telegram.called("editMessageText").await;
    let scene = scene.killed().await;
    scene.until_outbound_message("delivered").await;
    let reported = scene.telegram.quiet().await;
    assert_eq!(
        reported.len(),
        1,
        "no part of it is left behind: {reported:?}"
    );
    let edits = scene.telegram.edits();
    assert_eq!(edits.last().unwrap().1, WHOLE, "{edits:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_does_not_grow_above_one_that_waits_in_its_chat() {
    let scene = slow(json!({ "stream": true })).await;
    // Of the first showing, and of the reply itself.
    let limited = [Fault::Limited(4), Fault::Limited(4)];
    scene.telegram.fail("sendMessage", &limited);
    scene.telegram.say(ADA, "hello");
    until(async || scene.telegram.calls("sendMessage").len() >= 2).await;
    scene.telegram.say(ADA, "and again");
    let reported = scene.telegram.messages(2).await;
    assert_eq!(
        reported[0].text, WHOLE,
        "the first reply stands first: {reported:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_ends_in_its_message_although_the_answer_to_an_edit_was_lost() {
    let scene = slow(json!({ "stream": true })).await;
    // Of the first edit, and of the one after it, which is the reply itself.
    let lost = [Fault::Lost, Fault::Lost];
    scene.telegram.fail("editMessageText", &lost);
    scene.telegram.say(ADA, "hello");
    let first = scene.telegram.messages(1).await.remove(0);
    scene.until_outbound_message("delivered").await;
    assert_eq!(scene.telegram.quiet().await.len(), 1, "one message");
    let edits = scene.telegram.edits();
    assert!(edits.iter().all(|(id, _)| *id == first.id), "{edits:?}");
    let whole = edits.iter().filter(|(_, text)| text == WHOLE).count();
    assert_eq!(whole, 3, "made, made again, and once more after a while");
    assert_eq!(edits.last().unwrap().1, WHOLE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_whose_message_is_gone_is_a_message_of_its_own() {
    let scene = slow(json!({ "stream": true })).await;
    let gone = Fault::Wrong("Bad Request: message to edit not found");
    scene.telegram.fail("editMessageText", &[gone, gone]);
    scene.telegram.say(ADA, "hello");
    scene.until_outbound_message("delivered").await;
    let reported = scene.telegram.quiet().await;
    assert_eq!(
        (reported.len(), reported[1].as_str()),
        (2, WHOLE),
        "{reported:?}"
    );
    assert!(scene.telegram.edits().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_may_be_in_its_message_is_not_sent_beside_it() {
    let scene = slow(json!({ "stream": true })).await;
    let gone = Fault::Wrong("Bad Request: message to edit not found");
    // Of an edit while it grows, of the reply itself, of that again, and after it was requeued.
    let faults = [Fault::Lost, Fault::Lost, gone, gone];
    scene.telegram.fail("editMessageText", &faults);
    scene.telegram.say(ADA, "hello");
    let unknown = scene.until_outbound_message("unknown").await;
    let reason = unknown["reason"].as_str().unwrap();
    tells(&reason, &["message to edit not found"]);
    let reported = scene.telegram.quiet().await;
    assert_eq!(reported.len(), 1, "{reported:?}");
    scene.requeue(&unknown).gives(202).await;
    scene.until_outbound_message("delivered").await;
    let reported = scene.telegram.quiet().await;
    assert_eq!(
        (reported.len(), reported[1].as_str()),
        (2, WHOLE),
        "{reported:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_edit_of_a_reply_is_made_again_where_the_host_died_over_it() {
    for point in ["edge.started.after:1", "edge.sent:1"] {
        let scene = Scene::with(Wanted {
            connector: json!({ "stream": true }),
            agent: "assistant",
            script: Some(SLOW),
            crash_at: Some(point.to_owned()),
            ..Wanted::default()
        })
        .await;
        scene.telegram.say(ADA, "hello");
        let scene = scene.died().await;
        scene.until_outbound_message("delivered").await;
        let reported = scene.telegram.quiet().await;
        assert_eq!(reported.len(), 1, "{point}: {reported:?}");
        let last = scene.telegram.edits().pop().unwrap();
        assert_eq!(last.1, WHOLE, "{point}");
    }
}
