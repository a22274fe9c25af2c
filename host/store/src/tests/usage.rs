//! Usage: whatever happens in turns, its sums are what the turns have drawn on their accounts, also
//! after a rebuild and a purge.

use super::purging::purged;
use super::sample::{NOON, Sample, agent, opened, run, run_started, session, stepped, timer};
use crate::{UsageBy, UsageFilter, UsageRow};
use domain::account::Accounts;
use domain::budget::Amount;
use domain::digest::Digest;
use domain::event::{Event, OperationAttempted, RunEnded, RunSettled};
use domain::id::{RunId, Stream};
use domain::limits::TurnLimits;
use domain::model::Usage;
use domain::operation::{Attempt, Continuation, Operation, Pause, Performer, Settlement};
use domain::step::{Audience, Context, ModelRequest, OperationOutcome, Toolset};
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use domain::usage::{Day, UsageSum};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;
/// Sessions of a story; each has one run.
const SESSIONS: u128 = 3;

/// Something that happens in a turn.
#[derive(Debug, Clone)]
enum Happens {
    /// A model is asked, for which so much is reserved.
    Asks(u64),
    /// A tool or, with a number, an agent is called.
    Calls,
    /// A timer begins: it has a place in the outbox, and costs nothing.
    Waits,
    /// The oldest open call is attempted again, with so much more reserved.
    AttemptsAgain(u64),
    /// The oldest open operation goes on later, after so many milliseconds.
    GoesOn(u64),
    /// The oldest open operation settles.
    Settles(Outcome),
}

/// The end of an operation.
#[derive(Debug, Clone)]
struct Outcome {
    is_lost: bool,
    /// Tokens of each attempt, if the provider said so, and their cost, if there is a price.
    attempts: Vec<(Option<u64>, Option<u64>)>,
    active_ms: u64,
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let attempt = (prop::option::of(0_u64..500), prop::option::of(0_u64..90));
    (
        any::<bool>(),
        prop::collection::vec(attempt, 0..3),
        0_u64..50,
    )
        .prop_map(|(is_lost, attempts, active_ms)| Outcome {
            is_lost,
            attempts,
            active_ms,
        })
}

/// Session, day and what happens there then.
fn story() -> impl Strategy<Value = Vec<(u128, u64, Happens)>> {
    let happens = prop_oneof![
        (1_u64..1_000).prop_map(Happens::Asks),
        Just(Happens::Calls),
        Just(Happens::Waits),
        (1_u64..200).prop_map(Happens::AttemptsAgain),
        (0_u64..9).prop_map(Happens::GoesOn),
        outcome().prop_map(Happens::Settles),
        outcome().prop_map(Happens::Settles),
    ];
    prop::collection::vec((1..=SESSIONS, 0_u64..3, happens), 1..40)
}

fn asks(of: RunId, key: &str, reserved_tokens: u64) -> Operation {
    let request = ModelRequest {
        system: Vec::new(),
        context: Context::Whole,
        also: Vec::new(),
        tools: Toolset::None,
        model: Some("alias".to_owned()),
        max_tokens: None,
        reply_schema: None,
        audience: Audience::Hidden,
        sampling: domain::sampling::Sampling::default(),
    };
    Operation {
        performer: Performer::Model {
            request,
            through: 0,
            reserved_tokens,
            reserved_micros: Some(reserved_tokens / 10),
        },
        ..timer(of, key, NOON)
    }
}

fn calls(of: RunId, key: &str) -> Operation {
    let performer = Performer::Tool {
        component: Digest::of(b"tool"),
        tool: "look".to_owned(),
        arguments: "{}".to_owned(),
        capabilities: Vec::new(),
    };
    Operation {
        performer,
        ..timer(of, key, NOON)
    }
}

/// The open operations of one run, and the number of those that it has begun.
#[derive(Debug, Default)]
struct Begun {
    open: Vec<Operation>,
    count: u32,
}

impl Begun {
    /// The event for what happens; none when there is nothing that it could happen to.
    fn event(&mut self, of: RunId, time: Timestamp, happens: &Happens) -> Option<Event> {
        let key = format!("o{}", self.count);
        let begins = match happens {
            Happens::Asks(reserved) => Some(asks(of, &key, *reserved)),
            Happens::Calls => Some(calls(of, &key)),
            Happens::Waits => Some(timer(of, &key, NOON)),
            _ => None,
        };
        if let Some(operation) = begins {
            self.count += 1;
            self.open.push(operation.clone());
            let step = stepped(of, Vec::new(), Vec::new(), vec![operation]);
            return Some(Event::RunStepped(Box::new(step)));
        }
        let oldest = self.open.first()?.clone();
        let is_model = matches!(oldest.performer, Performer::Model { .. });
        match happens {
            Happens::AttemptsAgain(more) if is_model => {
                let reserved = domain::account::reserved(&oldest.performer);
                let drawn = reserved.plus(Amount {
                    tokens: *more,
                    calls: 0,
                    cost_micros: 1,
                });
                Some(Event::OperationAttempted(Box::new(OperationAttempted {
                    run: of,
                    operation: oldest.id,
                    attempt: 1,
                    ended: Vec::new(),
                    reserved,
                    drawn,
                    time,
                })))
            }
            Happens::GoesOn(active_ms) if !is_model => {
                Some(Event::OperationContinued(Continuation {
                    operation: oldest.id,
                    segment: 1,
                    state: Vec::new(),
                    pause: Pause::None,
                    active_ms: *active_ms,
                    call: None,
                }))
            }
            Happens::Settles(outcome) => {
                self.open.remove(0);
                let settled = vec![settled(&oldest, is_model, time, outcome)];
                Some(Event::RunSettled(RunSettled { run: of, settled }))
            }
            _ => None,
        }
    }
}

fn settled(
    operation: &Operation,
    is_model: bool,
    time: Timestamp,
    outcome: &Outcome,
) -> Settlement {
    let attempts = outcome.attempts.iter().enumerate();
    let attempts = attempts.map(|(place, (tokens, cost_micros))| Attempt {
        provider: "p".to_owned(),
        model: format!("m{place}"),
        usage: tokens.map(|tokens| Usage {
            input_tokens: tokens,
            output_tokens: tokens / 3,
            cached_tokens: tokens / 5,
        }),
        cost_micros: *cost_micros,
        wall_ms: 1,
        error: None,
        reserved: None,
    });
    let end = if outcome.is_lost {
        OperationOutcome::Cancelled
    } else {
        OperationOutcome::Parts { parts: Vec::new() }
    };
    Settlement {
        attempts: if is_model {
            attempts.collect()
        } else {
            Vec::new()
        },
        active_ms: outcome.active_ms,
        ..Settlement::new(operation.id, end, time)
    }
}

fn accounts(n: u128) -> Accounts {
    Accounts::of_message(run(n), &TurnLimits::default())
}

fn everything() -> UsageFilter {
    UsageFilter {
        from: Day(0),
        to: Day(u32::MAX),
        user: None,
        agent: None,
        session: None,
    }
}

async fn by(sample: &Sample, by: UsageBy) -> Vec<UsageRow> {
    sample.usage(by, everything(), None, 1_000).await.unwrap()
}

fn sum<'r>(rows: impl IntoIterator<Item = &'r UsageRow>) -> UsageSum {
    rows.into_iter()
        .fold(UsageSum::default(), |sum, row| sum.plus(row.sum))
}

async fn reported(story: &[(u128, u64, Happens)]) -> Sample {
    let sample = Sample::begun().await;
    let mut begun: BTreeMap<u128, Begun> = BTreeMap::new();
    for n in 1..=SESSIONS {
        if n > 1 {
            let stream = Stream::Session(session(n));
            sample.append(stream, [opened(n, 1, None)]).await;
        }
        let Event::RunStarted(mut started) = run_started(run(n), n, None, Vec::new()) else {
            panic!("a start")
        };
        started.user_id = format!("user-{}", n % 2).parse().unwrap();
        let started = vec![Event::RunStarted(started)];
        sample.in_run(n, started).await;
        begun.insert(n, Begun::default());
    }
    for (n, day, happens) in story {
        let time = NOON.plus_ms(day * DAY_MS);
        let event = begun.get_mut(n).unwrap().event(run(*n), time, happens);
        if let Some(event) = event {
            sample.in_run(*n, [event]).await;
        }
    }
    for (n, begun) in begun {
        // Of what is open when a turn ends, one half is settled by the end, and one by nobody.
        let stopped = begun.open.iter().step_by(2);
        let stopped = stopped
            .map(|operation| Settlement::new(operation.id, OperationOutcome::Cancelled, NOON));
        let ended = Event::RunEnded(RunEnded {
            run: run(n),
            session: session(n),
            end: TurnEnd::Aborted,
            code: None,
            reason: None,
            turn: None,
            stopped: stopped.collect(),
            said: Vec::new(),
            inputs: Vec::new(),
            compacts: false,
            time: NOON,
        });
        sample.in_run(n, [ended]).await;
    }
    sample
}

/// Whatever happens: each session's usage is what its run has drawn on its account, each sum by
/// another key adds up to the same, and neither a rebuild nor a purge changes that.
async fn check(story: Vec<(u128, u64, Happens)>) -> Result<(), TestCaseError> {
    let sample = reported(&story).await;
    let sessions = by(&sample, UsageBy::Session).await;
    for n in 1..=SESSIONS {
        let drawn = sample.drawn(&accounts(n), None).await.unwrap();
        let of_session = sessions
            .iter()
            .filter(|row| row.key == session(n).to_string());
        prop_assert_eq!(sum(of_session).amount(), drawn.others[0], "session {}", n);
    }
    let total = sample.usage_total(everything()).await.unwrap();
    for key in [
        UsageBy::Session,
        UsageBy::Agent,
        UsageBy::User,
        UsageBy::Day,
        UsageBy::Model,
    ] {
        prop_assert_eq!(sum(&by(&sample, key).await), total, "{:?}", key);
    }
    for user in ["user-0", "user-1"] {
        let mine = UsageFilter {
            user: Some(user.parse().unwrap()),
            ..everything()
        };
        let listed = by(&sample, UsageBy::User).await;
        let own = sample.usage_total(mine).await.unwrap();
        prop_assert_eq!(sum(listed.iter().filter(|row| row.key == user)), own);
    }
    prop_assert_eq!(sample.rebuild().await.unwrap().replaced, Vec::new());

    purged(&sample, 1).await;
    prop_assert_eq!(sample.usage_total(everything()).await.unwrap(), total);
    let after = by(&sample, UsageBy::Session).await;
    let gone = |rows: &[UsageRow]| sum(rows.iter().filter(|row| row.key == session(1).to_string()));
    prop_assert!(gone(&after).is_nothing());
    prop_assert_eq!(
        sum(after.iter().filter(|row| row.key.is_empty())),
        gone(&sessions)
    );
    prop_assert_eq!(sample.rebuild().await.unwrap().replaced, Vec::new());
    prop_assert_eq!(sample.verify().await.unwrap().fault, None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn usage_is_what_accounts_were_charged_and_outlives_rebuild_and_purge(story in story()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check(story))?;
    }
}

fn one_of_each() -> Vec<(u128, u64, Happens)> {
    let done = |tokens, active_ms| {
        Happens::Settles(Outcome {
            is_lost: false,
            attempts: vec![(Some(tokens), Some(7))],
            active_ms,
        })
    };
    vec![
        (1, 0, Happens::Asks(100)),
        (1, 0, done(30, 5)),
        (1, 1, Happens::Calls),
        (1, 1, done(0, 2)),
        (2, 1, Happens::Asks(50)),
        (2, 1, done(60, 1)),
    ]
}

#[tokio::test]
async fn usage_is_listed_by_day_within_a_range_and_page_by_page() {
    let sample = reported(&one_of_each()).await;
    let first = Day::from_time(NOON);
    let all = by(&sample, UsageBy::Day).await;
    let days: Vec<String> = all.iter().map(|row| row.key.clone()).collect();
    assert_eq!(days, [first.to_string(), Day(first.0 + 1).to_string()]);
    let only_first = UsageFilter {
        to: first,
        ..everything()
    };
    let total = sample.usage_total(only_first).await.unwrap();
    assert_eq!((total, total.model_calls), (all[0].sum, 1));
    assert_eq!((all[1].sum.tool_calls, all[1].sum.active_ms), (1, 3));
    for key in [
        UsageBy::Day,
        UsageBy::Session,
        UsageBy::Model,
        UsageBy::User,
    ] {
        let mut paged = Vec::new();
        let mut after = None;
        loop {
            let page = sample.usage(key, everything(), after, 1).await;
            let Some(row) = page.unwrap().pop() else {
                break;
            };
            after = Some(row.key.clone());
            paged.push(row);
        }
        assert_eq!(paged, by(&sample, key).await, "{key:?}");
    }
    let of_agent = by(&sample, UsageBy::Agent).await;
    let named: Vec<(String, Option<&str>)> = of_agent
        .iter()
        .map(|row| (row.key.clone(), row.agent_path.as_deref()))
        .collect();
    assert_eq!(named, [(agent(1).to_string(), Some("/ada/assistant"))]);
    let session = UsageFilter {
        session: Some(session(2)),
        ..everything()
    };
    let of_session = sample.usage_total(session).await.unwrap();
    assert_eq!((of_session.input_tokens, of_session.cost_micros), (60, 7));
}

/// A turn of one model's call adds one statement to what its commits did before.
#[tokio::test]
async fn the_settlement_of_a_models_call_adds_one_row_to_usage() {
    let sample = reported(&[]).await;
    assert_eq!(by(&sample, UsageBy::Session).await, []);
    let sample = reported(&one_of_each()[..2]).await;
    let rows = by(&sample, UsageBy::Model).await;
    let models: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(models, ["m0"], "nothing beside the model's row");
}
