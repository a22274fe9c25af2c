//! Tests of recorded cuts: which calls see which, and what the fold makes of a summary's attempt.

use super::*;
use crate::events::event::RunCut;
use crate::thread::prompt_cut::PromptCut;

fn cut(left_out_through: u64) -> PromptCut {
    PromptCut {
        left_out_through,
        tokens_before: 900,
        ..PromptCut::default()
    }
}

fn asked(run: &Run, key: &str) -> Run {
    let request = wait(vec![asking_a_model(key)], Until::Any);
    let arrived = run
        .by_key("m1")
        .map(|_| says(run, None, None))
        .into_iter()
        .collect();
    let inputs = if run.step == 0 {
        vec![words("hello")]
    } else {
        Vec::new()
    };
    step(run, arrived, &inputs, request, EffectClass::ReadOnly).0
}

fn made(run: Run, key: &str, cut: PromptCut) -> Run {
    let event = RunCut {
        run: run.started.run,
        operation: run.by_key(key).unwrap().operation.id,
        cut,
        time: NOW,
    };
    run.apply(&Event::RunCut(Box::new(event))).unwrap()
}

fn attempt(model: &str, input_tokens: u64) -> Attempt {
    Attempt {
        provider: "p".into(),
        model: model.into(),
        usage: Some(Usage {
            input_tokens,
            ..Usage::default()
        }),
        cost_micros: None,
        wall_ms: 1,
        error: None,
        reserved: None,
    }
}

/// The reply of the first call, with attempts at a summary and at the call itself.
fn says(run: &Run, summary: Option<u64>, call: Option<u64>) -> Settlement {
    let attempts = summary.map(|tokens| attempt("memory", tokens));
    let attempts = attempts
        .into_iter()
        .chain(call.map(|tokens| attempt("m", tokens)));
    model_says(run, "m1", vec![Part::text("hi")]).costing(attempts.collect())
}

#[test]
fn a_cut_holds_for_its_own_call_and_for_all_that_begin_after_it() {
    let run = made(asked(&begun(), "m1"), "m1", cut(3));
    let own = run.by_key("m1").unwrap().cut.as_ref().unwrap();
    assert_eq!((own.cut.left_out_through, own.is_own), (3, true));
    let run = asked(&run, "m2");
    let later = run.by_key("m2").unwrap().cut.as_ref().unwrap();
    assert_eq!((later.cut.left_out_through, later.is_own), (3, false));
    // A further one takes its place, for this call and later ones.
    let run = made(run, "m2", cut(7));
    assert_eq!(run.cuts[""], cut(7));
    let own = run.by_key("m2").unwrap().cut.as_ref().unwrap();
    assert_eq!((own.cut.left_out_through, own.is_own), (7, true));
}

#[test]
fn a_cut_for_a_call_that_is_not_open_does_not_follow() {
    let run = asked(&begun(), "m1");
    let event = RunCut {
        run: run.started.run,
        operation: OperationId::mint(run.started.run, 9, "other"),
        cut: cut(3),
        time: NOW,
    };
    assert!(run.apply(&Event::RunCut(Box::new(event))).is_err());
}

/// The tokens of a summary say nothing about how full the window of the call is.
#[test]
fn the_attempt_at_a_summary_is_spent_and_is_not_the_newest_call() {
    let run = made(asked(&begun(), "m1"), "m1", cut(3));
    let settled = |settlement: Settlement| {
        let event = RunSettled {
            run: run.started.run,
            settled: vec![settlement],
        };
        run.clone().apply(&Event::RunSettled(event)).unwrap()
    };
    let after = settled(says(&run, Some(700), Some(40)));
    assert_eq!(after.newest_call.as_ref().unwrap().usage.input_tokens, 40);
    assert_eq!(after.spending.usage.input_tokens, 740);
    let failed = settlement(
        &run.by_key("m1").unwrap().operation,
        Ended::Failed(Failure::lasting("limit-reached", "no more")),
        NOW,
    );
    let after = settled(failed.costing(vec![attempt("memory", 700)]));
    assert_eq!(after.newest_call, None);
    assert_eq!(after.spending.usage.input_tokens, 700);
}
