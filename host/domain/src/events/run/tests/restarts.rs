//! Open work after a restart: performed again, settled or waited for.

use super::super::recover::goes_on;
use super::*;

#[test]
fn what_would_be_sent_by_itself_is_told_from_what_waits_or_only_reads() {
    for (effect, sent) in [
        (EffectClass::ReadOnly, 0),
        (EffectClass::Idempotent, 2),
        (EffectClass::NonIdempotent, 2),
    ] {
        let run = with_two_calls(effect);
        assert_eq!(
            run.open
                .values()
                .filter(|open| would_be_sent(open, NOW))
                .count(),
            sent,
            "{effect:?}"
        );
        assert!(goes_on(&run, NOW), "{effect:?}");
    }
    // What was sent once and must not be sent twice settles as unknown.
    let run = with_two_calls(EffectClass::NonIdempotent);
    let operation = run.by_key("call-2-0").unwrap().operation.id;
    let run = sent_once(&run, operation, None);
    assert!(!would_be_sent(&run.open[&operation], NOW));
    // A question and a timer whose time has not come wait; the timer goes on when it has.
    let asks = free_text();
    let start = vec![
        Request {
            key: "q".into(),
            work: Work::Client(asks),
        },
        Request {
            key: "t".into(),
            work: Work::Timer { ms: 50 },
        },
    ];
    let (run, _) = first_step(wait(start, Until::Any));
    assert!(!goes_on(&run, NOW) && goes_on(&run, NOW.plus_ms(50)));
    assert!(
        run.open
            .values()
            .all(|open| !would_be_sent(open, NOW.plus_ms(50)))
    );
    assert!(goes_on(&begun(), NOW), "its first step is due");
}

/// A call of a model may be repeated, until a program takes the model's place.
#[test]
fn work_whose_effect_grew_when_it_was_sent_is_unknown_after_a_crash() {
    for (effect, expected) in [
        (
            None,
            Next::Perform {
                record_first: false,
            },
        ),
        (
            Some(EffectClass::ReadOnly),
            Next::Perform {
                record_first: false,
            },
        ),
    ] {
        let run = sent_with(effect);
        assert_eq!(next(run.open.values().next().unwrap(), NOW), expected);
    }
    let run = sent_with(Some(EffectClass::NonIdempotent));
    let open = run.open.values().next().unwrap();
    let Next::Settle(settled) = next(open, NOW) else {
        panic!("it is not performed again")
    };
    assert!(matches!(settled.outcome, OperationOutcome::Unknown { .. }));
}

/// A run with an idempotent call that was sent with another effect.
fn sent_with(effect: Option<EffectClass>) -> Run {
    let run = with_two_calls(EffectClass::Idempotent);
    let operation = *run.open.keys().next().unwrap();
    sent_once(&run, operation, effect)
}

#[test]
fn after_a_crash_only_what_was_never_sent_of_non_idempotent_work_is_performed() {
    let run = with_two_calls(EffectClass::NonIdempotent);
    let first = run.by_key("call-2-0").unwrap().operation.id;
    let nobody = |_| false;
    let inspected: Vec<_> = ready(&run, &nobody, NOW);
    assert_eq!(
        inspected,
        vec![(first, Next::Perform { record_first: true })],
        "one after the other, in order"
    );
    let run = sent_once(&run, first, None);
    let Next::Settle(after_a_crash) = next(&run.open[&first], NOW) else {
        panic!("work that was sent is not sent again");
    };
    let interrupted = Failure::interrupted();
    assert_eq!(
        after_a_crash.outcome,
        OperationOutcome::Unknown { cause: interrupted }
    );
    let OperationOutcome::Unknown { cause } = stopped(&run.open[&first], NOW).outcome else {
        panic!("work that was sent and stopped may have taken effect");
    };
    assert_eq!(cause.code, "stopped");
}

#[test]
fn lost_work_has_failed_unless_it_may_have_taken_effect() {
    for (effect, sent, outcome) in [
        (EffectClass::ReadOnly, true, "failed"),
        (EffectClass::Idempotent, true, "failed"),
        (EffectClass::NonIdempotent, false, "failed"),
        (EffectClass::NonIdempotent, true, "unknown"),
    ] {
        let mut open = with_two_calls(effect).open.into_values().next().unwrap();
        open.sent = sent.then_some(open.segment);
        let work_outcome = match lost(&open, Failure::lasting("x", "y"), NOW).outcome {
            OperationOutcome::Failed { failure } if failure.code == "x" => "failed",
            OperationOutcome::Unknown { cause } if cause.code == "x" => "unknown",
            other => panic!("{other:?}"),
        };
        assert_eq!(work_outcome, outcome, "{effect:?}, sent: {sent}");
    }
}

#[test]
fn reads_run_side_by_side() {
    let run = with_two_calls(EffectClass::ReadOnly);
    let nobody = |_| false;
    assert_eq!(ready(&run, &nobody, NOW).len(), 2);
    let everybody = |_| true;
    assert!(ready(&run, &everybody, NOW).is_empty());
}

#[test]
fn a_timer_is_late_if_need_be_and_never_early() {
    let timer = Request {
        key: "t".into(),
        work: Work::Timer { ms: 500 },
    };
    let (run, _) = first_step(wait(vec![timer], Until::Any));
    let open = run.by_key("t").unwrap();
    assert_eq!(
        next(open, NOW.plus_ms(499)),
        Next::Wait {
            until: Some(NOW.plus_ms(500))
        }
    );
    assert!(
        matches!(next(open, NOW.plus_ms(500)), Next::Settle(settled) if settled.outcome == OperationOutcome::Elapsed)
    );
}
