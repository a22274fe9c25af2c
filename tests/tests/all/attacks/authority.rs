//! A5: guests that reach for what nobody gave them, and agents that take too much or forge what is not theirs.

use super::siege::{Siege, narrow, of_an_agent};
use agent_host_tests::{Setup, World};
use domain::event::Event;
use domain::grant::Grant;
use serde_json::json;

const REFUSED: Option<(&str, Option<&str>)> = Some(("refused", None));
const FAILED: &str = "The turn failed: refused: ";

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn nothing_of_the_host_is_in_the_environment() {
    case!(nothing_of_the_host_is_in_the_environment, "parts 0 0").prove().await;
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn no_socket_is_made() {
    case!(no_socket_is_made, "parts 0").refused("wasi:sockets", "wasi:sockets/tcp-create-socket.create-tcp-socket").prove().await;
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn no_bucket_opens_under_any_name() {
    case!(no_bucket_opens_under_any_name, "parts 0").refused("default.read", "wasi:keyvalue/store.open `default`").prove().await;
}

/// The agent's attack is the test's name; it ends with these words.
macro_rules! agent {
    ($attack:ident, $said:expr, $failed:expr) => {{
        let _: fn() = $attack;
        of_an_agent(stringify!($attack), $said, $failed).await
    }};
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_step_without_end_fails_the_turn_after_three_attempts() {
    let failed = Some(("out_of_cpu", Some("cpuMsMax")));
    agent!(a_step_without_end_fails_the_turn_after_three_attempts, "The turn failed: out_of_cpu", failed);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_step_that_takes_all_memory_fails_the_turn() {
    let failed = Some(("out_of_memory", Some("memoryBytesMax")));
    agent!(a_step_that_takes_all_memory_fails_the_turn, "The turn failed: out_of_memory", failed);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_thousand_effects_are_refused() {
    agent!(a_thousand_effects_are_refused, "The turn failed: refused: `effects` are 1000", REFUSED);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_memo_of_a_megabyte_is_refused() {
    agent!(a_memo_of_a_megabyte_is_refused, "The turn failed: refused: `memo.bytes`", REFUSED);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_hundred_thousand_operations_are_refused() {
    let failed = Some(("trapped", Some("hostcallBytes")));
    agent!(a_hundred_thousand_operations_are_refused, "The turn failed: trapped: ", failed);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn operations_of_the_same_key_are_refused() {
    agent!(operations_of_the_same_key_are_refused, "The turn failed: refused: start: the key `k` was used", REFUSED);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn keys_of_no_length_or_too_much_are_refused() {
    agent!(keys_of_no_length_or_too_much_are_refused, FAILED, REFUSED);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_reply_of_megabytes_is_refused() {
    agent!(a_reply_of_megabytes_is_refused, "The turn failed: trapped: ", Some(("trapped", Some("hostcallBytes"))));
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn words_without_end_stop_at_the_limit_of_steps() {
    agent!(words_without_end_stop_at_the_limit_of_steps, "The turn failed: it took 5 steps, which is its limit", None);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn notes_without_end_stop_at_the_limit_of_steps() {
    agent!(notes_without_end_stop_at_the_limit_of_steps, "The turn failed: it took 5 steps, which is its limit", None);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn an_event_under_a_name_of_the_hosts_is_under_the_guests_own() {
    agent!(an_event_under_a_name_of_the_hosts_is_under_the_guests_own, "done", None);
    let mut setup = Setup::default();
    setup.components.push("rogue");
    setup.definitions.push(json!({ "agentId": "rogue", "displayName": "Rogue", "component": "rogue" }));
    setup.grants.push(("rogue", Grant { limits: narrow(), ..Grant::default() }));
    let siege = Siege::of(World::new(setup).await).await;
    let session = siege.world.open("rogue").await;
    siege.world.say("rogue", session, "an_event_under_a_name_of_the_hosts_is_under_the_guests_own").await;
    siege.world.idle(session).await;
    let (mut emitted, mut ended) = (Vec::new(), 0);
    for event in siege.events(session).await {
        match event {
            Event::PluginEmitted(it) => emitted.push(it.name.clone()),
            Event::RunEnded(_) => ended += 1,
            _ => {}
        }
    }
    assert_eq!((emitted.len(), ended), (6, 1));
    assert!(emitted.iter().all(|name| name.starts_with("plugin.rogue.")), "{emitted:?}");
    let verified = siege.world.store().verify().await;
    assert!(verified.is_ok(), "{verified:?}");
    siege.over().await;
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn an_event_with_a_name_that_is_none_is_refused() {
    agent!(an_event_with_a_name_that_is_none_is_refused, FAILED, REFUSED);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_blob_that_was_never_shown_is_neither_read_nor_said() {
    agent!(a_blob_that_was_never_shown_is_neither_read_nor_said, "The turn failed: refused: parts: the blob", REFUSED);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_message_of_another_thread_is_not_there() {
    agent!(a_message_of_another_thread_is_not_there, "0 of others, true", None);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_call_that_no_model_made_is_refused() {
    agent!(a_call_that_no_model_made_is_refused, "The turn failed: refused: start: message 1 of this turn has no call 7", REFUSED);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_model_is_offered_no_tool_that_the_agent_may_not_call() {
    agent!(a_model_is_offered_no_tool_that_the_agent_may_not_call, "", None);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn nobody_answers_to_a_pattern() {
    agent!(nobody_answers_to_a_pattern, "", None);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_question_that_no_client_could_show_is_refused() {
    agent!(a_question_that_no_client_could_show_is_refused, "", None);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_turn_that_could_never_end_is_refused() {
    agent!(a_turn_that_could_never_end_is_refused, "The turn failed: refused: wait: nothing is open", REFUSED);
}
