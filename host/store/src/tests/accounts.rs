//! Tests of the amounts that runs draw on accounts: no commit draws more than there is.

use super::sample::{NOON, Sample, input, opened, run, run_started, step, timer};
use crate::{AccountGuard, Clash, Commit, CommitError, Drawn, Guard};
use domain::account::Accounts;
use domain::budget::{Amount, Available, Budget};
use domain::digest::Digest;
use domain::event::{Event, OperationAttempted, RunSettled};
use domain::id::RunId;
use domain::limits::TurnLimits;
use domain::model::Usage;
use domain::operation::{Attempt, Operation, Performer, Settlement};
use domain::step::{Audience, Context, Failure, ModelRequest, OperationOutcome, Toolset};

fn spent(tokens: u64, calls: u32, cost_micros: u64) -> Amount {
    Amount {
        tokens,
        calls,
        cost_micros,
    }
}

/// A call of a model for which so many tokens are reserved.
fn asks(of: RunId, reserved_tokens: u64) -> Operation {
    let request = ModelRequest {
        system: Vec::new(),
        context: Context::Whole,
        also: Vec::new(),
        tools: Toolset::None,
        model: None,
        max_tokens: None,
        reply_schema: None,
        audience: Audience::Hidden,
        sampling: domain::sampling::Sampling::default(),
    };
    let performer = Performer::Model {
        request,
        through: 0,
        reserved_tokens,
        reserved_micros: Some(7),
    };
    Operation {
        performer,
        ..timer(of, "q", NOON)
    }
}

/// A call of a tool.
fn calls(of: RunId) -> Operation {
    let performer = Performer::Tool {
        component: Digest::of(b"tool"),
        tool: "look".to_owned(),
        arguments: "{}".to_owned(),
        capabilities: Vec::new(),
    };
    Operation {
        performer,
        ..timer(of, "c", NOON)
    }
}

/// Begins a run in a session of its own that draws on these, and has it start something.
async fn starts(sample: &Sample, n: u128, accounts: Accounts, started: Vec<Operation>) {
    if n > 1 {
        sample.in_session(n, [opened(n, 1, None)]).await;
    }
    let Event::RunStarted(mut begun) = run_started(run(n), n, None, Vec::new()) else {
        panic!("a start")
    };
    begun.accounts = accounts;
    let step = step(run(n), Vec::new(), Vec::new(), started);
    sample.in_run(n, [Event::RunStarted(begun), step]).await;
}

fn message() -> Accounts {
    Accounts::of_message(
        run(1),
        &TurnLimits {
            tokens_max: 1_000,
            tool_calls_max: 10,
            ..TurnLimits::default()
        },
    )
}

fn work() -> Accounts {
    let left = Available {
        tokens: 500,
        calls: 5,
        cost_micros: Some(50),
    };
    message().delegating(input(2), Budget::default(), left)
}

/// Amounts that runs reserve count on their accounts and on those above, also after a rebuild.
#[tokio::test]
async fn spending_counts_on_accounts_and_their_parents_until_settled_and_after_rebuild() {
    let sample = Sample::begun().await;
    starts(&sample, 1, Accounts::default(), vec![asks(run(1), 100)]).await;
    starts(&sample, 2, work(), vec![asks(run(2), 300), calls(run(2))]).await;
    // A late reply to the first, and somebody else's turn.
    starts(&sample, 3, message(), vec![calls(run(3))]).await;
    starts(&sample, 4, Accounts::default(), vec![asks(run(4), 900)]).await;
    let drawn = |accounts: Accounts, except| {
        let store = sample.store.clone();
        async move { store.drawn(&accounts, except).await.unwrap() }
    };
    let all = |others: [Amount; 2], runs| Drawn {
        runs,
        others: others.to_vec(),
    };
    assert_eq!(
        drawn(work(), None).await,
        all([spent(400, 2, 14), spent(300, 1, 7)], 3)
    );
    assert_eq!(
        drawn(work(), Some(run(2))).await,
        all([spent(100, 1, 7), spent(0, 0, 0)], 2)
    );

    // What was used counts in place of what was reserved, and a lost call is charged what was.
    let usage = Usage {
        input_tokens: 20,
        output_tokens: 5,
        cached_tokens: 0,
    };
    let attempt = Attempt {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        usage: Some(usage),
        cost_micros: Some(3),
        wall_ms: 1,
        error: None,
        reserved: None,
    };
    let replied = Settlement {
        attempts: vec![attempt],
        ..Settlement::new(
            asks(run(2), 300).id,
            OperationOutcome::Parts { parts: vec![] },
            NOON,
        )
    };
    let lost = Settlement::new(
        asks(run(1), 100).id,
        OperationOutcome::Unknown {
            cause: Failure::interrupted(),
        },
        NOON,
    );
    sample
        .in_run(
            2,
            [Event::RunSettled(RunSettled {
                run: run(2),
                settled: vec![replied],
            })],
        )
        .await;
    sample
        .in_run(
            1,
            [Event::RunSettled(RunSettled {
                run: run(1),
                settled: vec![lost],
            })],
        )
        .await;
    let expected = all([spent(125, 2, 10), spent(25, 1, 3)], 3);
    assert_eq!(drawn(work(), None).await, expected);
    assert_eq!(sample.rebuild().await.unwrap().replaced, Vec::new());
    assert_eq!(drawn(work(), None).await, expected);
}

#[tokio::test]
async fn a_call_that_is_attempted_again_draws_both_attempts_until_it_is_settled() {
    let sample = Sample::begun().await;
    starts(&sample, 1, Accounts::default(), vec![asks(run(1), 100)]).await;
    let operation = asks(run(1), 100).id;
    let reserved = spent(120, 0, 9);
    let drawn = spent(220, 0, 16);
    let again = OperationAttempted {
        run: run(1),
        operation,
        attempt: 1,
        ended: Vec::new(),
        reserved,
        drawn,
        time: NOON,
    };
    sample
        .in_run(1, [Event::OperationAttempted(Box::new(again))])
        .await;
    let draws = || async { sample.drawn(&message(), None).await.unwrap().others };
    assert_eq!(draws().await, [drawn]);
    // One attempt is charged what was reserved for it, the other used something.
    let usage = Some(Usage {
        input_tokens: 20,
        output_tokens: 5,
        cached_tokens: 0,
    });
    let attempt = |usage, cost_micros, reserved| {
        let provider = "p".to_owned();
        let model = "m".to_owned();
        Attempt {
            provider,
            model,
            usage,
            cost_micros,
            wall_ms: 1,
            error: None,
            reserved,
        }
    };
    let attempts = vec![
        attempt(None, None, Some(spent(100, 0, 7))),
        attempt(usage, Some(3), None),
    ];
    let settled = vec![Settlement {
        attempts,
        ..Settlement::new(operation, OperationOutcome::Parts { parts: vec![] }, NOON)
    }];
    sample
        .in_run(
            1,
            [Event::RunSettled(RunSettled {
                run: run(1),
                settled,
            })],
        )
        .await;
    assert_eq!(draws().await, [spent(125, 0, 10)]);
    assert_eq!(sample.rebuild().await.unwrap().replaced, Vec::new());
    assert_eq!(draws().await, [spent(125, 0, 10)]);
}

#[tokio::test]
async fn no_commit_draws_what_an_account_does_not_have_nor_begins_a_turn_too_many() {
    let sample = Sample::begun().await;
    starts(&sample, 1, Accounts::default(), vec![asks(run(1), 700)]).await;
    starts(&sample, 2, work(), vec![asks(run(2), 100)]).await;
    let have = |drawn: u64, more: Amount| {
        Guard::Account(AccountGuard::Covers {
            run: run(2),
            accounts: work(),
            drawn: spent(drawn, 0, 0),
            more,
        })
    };
    for (guard, lands) in [
        (have(100, spent(200, 0, 0)), true),
        (have(100, spent(201, 0, 0)), false),
        (have(100, spent(0, 5, 0)), true),
        (have(100, spent(0, 6, 0)), false),
        // Of what is overdrawn nothing more is drawn: other things may be.
        (have(9_000, spent(0, 1, 0)), true),
        (have(9_000, spent(1, 0, 0)), false),
        (have(0, spent(0, 0, 51)), false),
        (
            Guard::Account(AccountGuard::RunsAtMost {
                accounts: work(),
                max: 2,
            }),
            true,
        ),
        (
            Guard::Account(AccountGuard::RunsAtMost {
                accounts: work(),
                max: 1,
            }),
            false,
        ),
    ] {
        match sample.commit(Commit::new().guard(guard.clone())).await {
            Ok(_) => assert!(lands, "{guard:?}"),
            Err(CommitError::Conflict(conflict)) => {
                assert_eq!((conflict.clash, lands), (Clash::Guard(guard), false))
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}
