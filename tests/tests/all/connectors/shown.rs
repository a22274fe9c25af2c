//! What people see of a reply before it is there: that the agent types, and the reply as it grows.

use super::scene::{ADA, Scene, Wanted};
use super::telegram_server::Fault;
use agent_host_tests::patience::until;
use serde_json::json;

/// A model that takes its time over each word.
const SLOW: &str = "[[rule]]\n\
    reply = { text = \"one two three four five six seven eight nine ten\", delayMs = 500 }\n";
/// The whole of its reply.
const WHOLE: &str = "one two three four five six seven eight nine ten";

async fn slow(connector: serde_json::Value) -> Scene {
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
    assert!(reason.contains("message to edit not found"), "{reason}");
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
