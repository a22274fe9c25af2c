//! The number of commits, and therefore fsyncs, of a turn.

use agent_host_tests::{Setup, World};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_user_model_and_reply_takes_three_commits() {
    let world = World::new(Setup::default()).await;
    let session = world.open("assistant").await;
    let before = world.store().stats();
    world.say("assistant", session, "hello").await;
    world.idle(session).await;
    let after = world.store().stats();
    assert_eq!(after.commits - before.commits, 3, "accept, start, end");
    assert_eq!(
        after.transactions - before.transactions,
        3,
        "each is a transaction of its own, and so one fsync"
    );
    assert_eq!(world.last_reply(session).await, "hello from the model");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_call_adds_one_commit_and_a_non_idempotent_one_two() {
    let world = World::new(Setup::default()).await;
    for (tool, extra) in [("look", 1), ("send", 2)] {
        let session = world.open("puppet").await;
        let before = world.store().stats();
        world
            .play_in(
                session,
                &json!([{ "start": [{ "key": "t", "tool": tool }] }]),
            )
            .await;
        world.idle(session).await;
        let after = world.store().stats();
        assert_eq!(
            after.commits - before.commits,
            2 + extra,
            "{tool}: accept, start, end and {extra} more"
        );
    }
}
