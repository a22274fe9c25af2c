//! A5: guests that reach for what was not given to them, and agents that take too much or forge
//! what is not theirs.

use super::siege::Ledger::{Lines, Nothing};
use super::siege::Turn::{Ends, Fails, Replies};
use super::siege::{Ledger, Line, Siege, Turn, narrow, of_an_agent};
use agent_host_tests::{Setup, World};
use domain::event::{BoundaryVerdict, Event};
use domain::grant::Grant;
use domain::ruling::{AGENT_CALL, MODEL_CALL, Rule, STEP, TOOL_CALL};
use serde_json::json;

// What the ledger has of each kind of attack by an agent. Where it is nothing, the journal has it:
// `run.step-failed`, `run.ended`.

/// The ledger after a step that takes more than a limit of its component.
const CPU: Ledger = Lines(&[(3, Line::limited(STEP, "cpuMsMax"))]);
const MEMORY: Ledger = Lines(&[(3, Line::limited(STEP, "memoryBytesMax"))]);
const CROSSING: Ledger = Lines(&[(3, Line::limited(STEP, "hostcallBytes"))]);
/// The ledger after a step whose result is refused for what it says.
const STEP_REFUSED: Ledger = Lines(&[(3, Line::refused(STEP, Rule::Contract, ""))]);
/// The ledger after a turn that meets one of the agent's own limits.
const TURN_LIMITED: Ledger =
    Nothing("an agent's own limits end its turn, which the journal of its run tells");
/// The ledger after calls of agents by patterns, which name no agent. One of the names is an
/// agent's, and its lists are asked.
const PATTERNS_DENIED: Ledger = Lines(&[
    (1, Line::refused(AGENT_CALL, Rule::AgentAllowlist, "puppet")),
    (6, Line::refused(AGENT_CALL, Rule::Unknown, "")),
]);
/// The ledger after requests for tools and models that are not offered. The agent's lists have
/// taken one tool from it; two tools and a model do not exist. One model may be asked.
const TOOL_NOT_OFFERED: Ledger = Lines(&[
    (1, Line::granted(MODEL_CALL, "m")),
    (1, Line::refused(TOOL_CALL, Rule::ToolAllowlist, "look")),
    (2, Line::refused(TOOL_CALL, Rule::Unknown, "")),
    (1, Line::refused(MODEL_CALL, Rule::Unknown, "../other")),
]);
/// The ledger after operations that cannot be what they say: no rule decides on them.
const OPERATION_INVALID: Ledger =
    Nothing("an operation that makes no sense fails before a rule is asked");
/// The ledger after a turn in which nothing is asked for.
const NOTHING_ASKED: Ledger = Nothing("nothing is asked of the boundary");

cases! {
    #[test]
    fn nothing_of_the_host_is_in_the_environment("parts 0 0");
    #[test]
    fn no_socket_is_made("parts 0")
        .refused("wasi:sockets", "wasi:sockets/tcp-create-socket.create-tcp-socket");
    #[test]
    fn no_bucket_opens_under_any_name("parts 0")
        .line(
            "default.read", BoundaryVerdict::Refused, Rule::NotAsked,
            "wasi:keyvalue/store.open `default`"
        );
}

/// Each attempt at the first step is refused, for a reason that begins so.
const fn refused(why: &'static str) -> Turn {
    Fails("refused", why)
}

/// The attack of an agent, by the test's name, with the expected end of its turn and the expected
/// ledger.
macro_rules! agent {
    ($attack:ident, $turn:expr, $ledger:expr) => {{
        let _: fn() = $attack;
        of_an_agent(stringify!($attack), $turn, $ledger).await
    }};
}

macro_rules! agents {
    ($(#[test] fn $attack:ident($turn:expr) => $ledger:expr;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        pub(super) async fn $attack() {
            agent!($attack, $turn, $ledger);
        }
    )*};
}

agents! {
    #[test]
    fn a_step_without_end_fails_the_turn_after_three_attempts(
        Fails("out-of-cpu", "out-of-cpu")
    ) => CPU;
    #[test]
    fn a_step_that_takes_all_memory_fails_the_turn(
        Fails("out-of-memory", "out-of-memory")
    ) => MEMORY;
    #[test]
    fn a_thousand_effects_are_refused(refused("refused: `effects` are 1000")) => STEP_REFUSED;
    #[test]
    fn a_memo_of_a_megabyte_is_refused(refused("refused: `memo.bytes`")) => STEP_REFUSED;
    #[test]
    fn a_hundred_thousand_operations_are_refused(Fails("trapped", "trapped: ")) => CROSSING;
    #[test]
    fn operations_of_the_same_key_are_refused(
        refused("refused: start: the key `k` was used")
    ) => STEP_REFUSED;
    #[test]
    fn a_key_that_is_too_long_is_refused(refused("refused: ")) => STEP_REFUSED;
    #[test]
    fn a_key_of_no_length_is_refused(refused("refused: ")) => STEP_REFUSED;
    #[test]
    fn a_reply_of_megabytes_is_refused(Fails("trapped", "trapped: ")) => CROSSING;
    #[test]
    fn words_without_end_stop_at_the_limit_of_steps(
        Ends("The turn failed: it took 5 steps, which is its limit")
    ) => TURN_LIMITED;
    #[test]
    fn notes_without_end_stop_at_the_limit_of_steps(
        Ends("The turn failed: it took 5 steps, which is its limit")
    ) => TURN_LIMITED;
    #[test]
    fn an_event_with_a_name_that_is_none_is_refused(refused("refused: ")) => STEP_REFUSED;
    #[test]
    fn a_blob_that_was_never_shown_is_neither_read_nor_said(
        refused("refused: parts: the blob")
    ) => STEP_REFUSED;
    #[test]
    fn a_message_of_another_thread_is_not_there(Replies("0 of others, true")) => NOTHING_ASKED;
    #[test]
    fn a_call_that_no_model_made_is_refused(
        refused("refused: start: message 1 of this turn has no call 7")
    ) => STEP_REFUSED;
    #[test]
    fn a_turn_that_could_never_end_is_refused(
        refused("refused: wait: nothing is open")
    ) => STEP_REFUSED;
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn an_event_under_a_name_of_the_hosts_is_under_the_guests_own() {
    agent!(
        an_event_under_a_name_of_the_hosts_is_under_the_guests_own,
        Replies("done"),
        NOTHING_ASKED
    );
    let mut setup = Setup::default();
    setup.components.push("rogue");
    setup
        .definitions
        .push(json!({ "agentId": "rogue", "displayName": "Rogue", "component": "rogue" }));
    setup.grants.push((
        "rogue",
        Grant {
            limits: narrow(),
            ..Grant::default()
        },
    ));
    let siege = Siege::of(World::new(setup).await).await;
    let session = siege.world.open("rogue").await;
    siege
        .world
        .say(
            "rogue",
            session,
            "an_event_under_a_name_of_the_hosts_is_under_the_guests_own",
        )
        .await;
    siege.world.idle(session).await;
    let mut emitted = Vec::new();
    let mut ended = 0;
    for event in siege.events(session).await {
        match event {
            Event::PluginEmitted(it) => emitted.push(it.name.clone()),
            Event::RunEnded(_) => ended += 1,
            _ => {}
        }
    }
    assert_eq!((emitted.len(), ended), (6, 1));
    assert!(
        emitted.iter().all(|name| name.starts_with("plugin.rogue.")),
        "{emitted:?}"
    );
    let verified = siege.world.store().verify().await;
    assert!(verified.is_ok(), "{verified:?}");
    siege.over().await;
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_model_is_offered_no_tool_that_the_agent_may_not_call() {
    let reported = "model denied, none TOOL_NOT_AVAILABLE, pattern TOOL_NOT_AVAILABLE, since parts , \
                tool denied";
    agent!(
        a_model_is_offered_no_tool_that_the_agent_may_not_call,
        Replies(reported),
        TOOL_NOT_OFFERED
    );
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn nobody_answers_to_a_pattern() {
    let reported = "0 agent-not-found, 1 agent-not-found, 2 agent-not-found, 3 denied, 4 \
                agent-not-found, 5 agent-not-found, 6 agent-not-found";
    agent!(
        nobody_answers_to_a_pattern,
        Replies(reported),
        PATTERNS_DENIED
    );
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_question_that_no_client_could_show_is_refused() {
    let reported = "bomb invalid-arguments, elsewhere invalid-arguments, file invalid-arguments, \
                widget invalid-arguments";
    agent!(
        a_question_that_no_client_could_show_is_refused,
        Replies(reported),
        OPERATION_INVALID
    );
}
