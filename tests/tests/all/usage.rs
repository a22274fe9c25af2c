//! Usage of real turns: what the accounts were charged is what usage sums, over restarts.

use agent_host_tests::{Setup, World};
use domain::account::Accounts;
use domain::usage::{Day, UsageSum};
use serde_json::json;
use store::{UsageBy, UsageFilter};

fn everything() -> UsageFilter {
    UsageFilter {
        from: Day(0),
        to: Day(u32::MAX),
        user: None,
        agent: None,
        session: None,
    }
}

/// The charges on the account of the first message, with all that came of it.
async fn charged(world: &World) -> domain::budget::Amount {
    let starts = world.starts().await;
    let accounts: Accounts = starts[0].accounts();
    let drawn = world.store().drawn(&accounts, None).await.unwrap();
    drawn.others[0]
}

async fn total(world: &World) -> UsageSum {
    world.store().usage_total(everything()).await.unwrap()
}

/// A model, a tool that another agent is called with, and that agent's model: all of it is usage,
/// each in its session.
#[tokio::test(flavor = "multi_thread")]
async fn the_usage_of_turns_is_what_their_account_was_charged() {
    let mut setup = Setup {
        price: Some(1.0),
        ..Setup::default()
    };
    setup.limits.dispatch.call_depth_max = 3;
    let mut world = World::new(setup).await;
    let work = json!({ "steps": [
        { "start": [{ "key": "m", "model": "be brief" }] },
        { "reply": "done" },
    ] });
    let arguments = json!({ "target": "other", "content": work.to_string(), "wait": true });
    world
        .play(json!([
            { "start": [{ "key": "a", "model": "be brief" }] },
            { "start": [{ "key": "d", "tool": "dispatch_to_agent", "args": arguments }] },
            { "start": [{ "key": "b", "model": "be brief" }] },
        ]))
        .await;
    world.quiet().await;
    let sum = total(&world).await;
    assert_eq!(sum.amount(), charged(&world).await);
    assert_eq!((sum.model_calls, sum.tool_calls), (3, 1), "{sum:?}");
    assert!(sum.cost_micros > 0 && sum.unpriced_attempts == 0, "{sum:?}");
    let by = |by| {
        let store = world.store().clone();
        async move { store.usage(by, everything(), None, 100).await.unwrap() }
    };
    let sessions = by(UsageBy::Session).await;
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    let users = by(UsageBy::User).await;
    assert_eq!(users.len(), 1, "work is done for who began it: {users:?}");
    world = world.restart(|_| ()).await;
    assert_eq!(total(&world).await, sum);
    let rebuilt = world.store().rebuild().await.unwrap();
    assert_eq!(rebuilt.replaced, []);
}
