//! Tests of the outcome of work that was handed over: the report and the charge to the caller.

use super::*;
use crate::events::run::end::{Closing, settlement_for_parent};
use crate::thread::message::text_of;
use crate::work::budget::Amount;

/// Returns what a run's first step starts for others.
fn handed(run: &Run, performer: Performer, effect: EffectClass) -> Operation {
    Operation {
        id: OperationId::mint(run.started.run, 0, "d"),
        key: "d".into(),
        step: 0,
        place: 0,
        performer,
        effect,
        time_limit_ms: None,
        deadline: None,
        answers: None,
        in_thread: false,
        reserved: Default::default(),
        approval: None,
    }
}

#[test]
fn a_delegation_that_is_not_done_in_time_is_told_the_same_whoever_says_so_first() {
    let arguments = r#"{"target":"worker","operation":"list_files","parameters":{"path":"/data"}}"#;
    let performer = Performer::Agent {
        agent: AgentId(Uuid::from_u128(5)),
        session: SessionId(Uuid::from_u128(6)),
        input: InputId(Uuid::from_u128(7)),
        delegation: Some(arguments.to_owned()),
        message: None,
        since: NOW,
    };
    let mut run = begun();
    let operation = Operation {
        deadline: Some(NOW),
        ..handed(&run, performer, EffectClass::NonIdempotent)
    };
    run.start(&operation, NOW);
    let open = &run.open[&operation.id];
    let Next::Settle(by_caller) = next(open, NOW) else {
        panic!("its time is up")
    };
    let cause = Cause::Failed {
        code: "timed-out".into(),
        reason: "it was not done by its deadline".into(),
    };
    let by_work = settlement_for_parent(&operation, &begun(), Closing::default(), &cause, NOW);
    assert_eq!(
        (&by_caller.outcome, &by_caller.result),
        (&by_work.outcome, &by_work.result)
    );
    let OperationOutcome::Parts { parts } = &by_caller.outcome else {
        panic!("{by_caller:?}")
    };
    assert!(text_of(parts).contains("TASK_TIMEOUT"), "{parts:?}");
}

/// Work that nobody waits for is a call whose share is charged for good and old events of it count
/// the same.
#[test]
fn the_share_of_detached_work_is_charged_for_good_also_in_old_events() {
    let told = || vec![Part::text("Started as task 1; its reply will follow.")];
    let detached = Performer::Detached {
        agent: AgentId(Uuid::from_u128(5)),
        session: SessionId(Uuid::from_u128(6)),
        input: InputId(Uuid::from_u128(7)),
        told: "Started as task 1; its reply will follow.".into(),
    };
    for performer in [
        detached,
        Performer::Refused {
            outcome: OperationOutcome::Parts { parts: told() },
        },
    ] {
        let mut run = begun();
        let reserved = Amount {
            tokens: 10,
            calls: 2,
            cost_micros: 0,
        };
        let operation = Operation {
            reserved,
            ..handed(&run, performer, EffectClass::ReadOnly)
        };
        run.start(&operation, NOW);
        assert!(run.shares && run.spending.tool_calls == 1);
        let Next::Settle(settled) = next(&run.open[&operation.id], NOW) else {
            panic!("it settles at once")
        };
        assert_eq!(settled.outcome, OperationOutcome::Parts { parts: told() });
        let run = run
            .apply(&Event::RunSettled(RunSettled {
                run: begun().started.run,
                settled: vec![*settled],
            }))
            .unwrap();
        assert_eq!(
            run.spent_so_far(),
            Amount {
                tokens: 10,
                calls: 3,
                cost_micros: 0
            }
        );
    }
}
