//! Tests of outbound messages to external agents: tried again, waited for, answered.

use super::*;
use crate::events::event::RunCut;
use crate::events::run::external;
use crate::thread::message::text_of;
use crate::thread::prompt_cut::PromptCut;
use crate::work::outbound_message::DELIVERED;

/// Starts an outbound message, the nth of its step, that has to be answered within a second.
fn delivered(run: &mut Run, key: &str, place: u32) -> OperationId {
    let operation = Operation {
        place,
        effect: EffectClass::Idempotent,
        deadline: Some(NOW.plus_ms(1_000)),
        ..operation_of(
            OperationId::mint(run.started.run, 0, key),
            key,
            Performer::External { messages: vec![1] },
        )
    };
    run.start(&operation, NOW);
    operation.id
}

/// Ends a try of an outbound message, after which it pauses until a time.
fn tried(run: &mut Run, operation: OperationId, state: &[u8], due: Timestamp) {
    let segment = run.open[&operation].segment + 1;
    let continuation = Continuation {
        state: state.to_vec(),
        ..continuing(operation, segment, Pause::Until { due })
    };
    run.advance(&Event::OperationContinued(continuation))
        .unwrap();
}

#[test]
fn an_outbound_message_is_performed_until_it_is_taken_and_then_waits_for_its_answer() {
    let mut run = begun();
    let id = delivered(&mut run, "d", 0);
    let performed = Next::Perform {
        record_first: false,
    };
    assert_eq!(next(&run.open[&id], NOW), performed);
    assert!(would_be_sent(&run.open[&id], NOW));
    tried(&mut run, id, b"", NOW.plus_ms(10));
    assert!(matches!(next(&run.open[&id], NOW), Next::Wait { .. }));
    assert!(would_be_sent(&run.open[&id], NOW), "after its pause");
    assert_eq!(next(&run.open[&id], NOW.plus_ms(10)), performed);
    tried(&mut run, id, DELIVERED, NOW.plus_ms(5_000));
    let waits = Next::Wait {
        until: Some(NOW.plus_ms(1_000)),
    };
    assert_eq!(next(&run.open[&id], NOW.plus_ms(10)), waits);
    assert!(!would_be_sent(&run.open[&id], NOW.plus_ms(10)));
    let Next::Settle(late) = next(&run.open[&id], NOW.plus_ms(1_000)) else {
        panic!("its time is up")
    };
    assert_eq!(late.outcome, OperationOutcome::TimedOut);
}

#[test]
fn an_answer_settles_the_message_that_it_names_or_the_one_that_waits_longest() {
    let mut run = begun();
    let second = delivered(&mut run, "b", 1);
    let first = delivered(&mut run, "a", 0);
    let taken = |run: &Run, named| external::answer(run, named, "Yes.".into(), NOW);
    for (named, expected) in [(None, first), (Some(second), second), (Some(first), first)] {
        let (event, operation, blobs) = taken(&run, named).unwrap();
        assert_eq!((operation, blobs.len()), (expected, 0));
        let Event::RunSettled(settled) = event else {
            panic!("{event:?}")
        };
        let settlement = &settled.settled[0];
        assert!(settlement.untrusted, "it is from outside");
        let OperationOutcome::Parts { parts } = &settlement.outcome else {
            panic!("{settlement:?}")
        };
        assert_eq!(text_of(parts), "Yes.");
    }
    let unknown = OperationId::mint(run.started.run, 7, "x");
    let refused = taken(&run, Some(unknown)).unwrap_err();
    assert_eq!(refused.code.as_str(), "NOTHING_TO_ANSWER");
    let (event, ..) = taken(&run, Some(first)).unwrap();
    run.advance(&event).unwrap();
    assert!(taken(&run, Some(first)).is_err(), "it was answered");
    assert_eq!(taken(&run, None).unwrap().1, second);
}

#[test]
fn what_is_said_upon_an_answer_from_elsewhere_carries_the_mark_itself() {
    let mut run = begun();
    let id = delivered(&mut run, "d", 0);
    let (event, ..) = external::answer(&run, Some(id), "Yes.".into(), NOW).unwrap();
    run.advance(&event).unwrap();
    let says = |words: &str, decision| StepResult {
        decision,
        effects: vec![Effect::Say {
            parts: vec![Part::text(words)],
        }],
        memo: None,
    };
    let marks = |stepped: &RunStepped| -> Vec<bool> {
        let said = stepped.said.iter();
        said.map(|message| message.untrusted).collect()
    };
    let goes_on = asking("m").decision;
    let heard = says("It says yes.", goes_on);
    let (run, stepped) = step(&run, vec![], &[], heard, EffectClass::ReadOnly);
    assert_eq!(marks(&stepped), [true]);
    // Words of its own after that are its own. Their turn has the mark all the same.
    let reply = Decision::Reply {
        parts: vec![Part::text("Bye.")],
    };
    let (run, stepped) = step(
        &run,
        vec![],
        &[],
        says("So be it.", reply),
        EffectClass::ReadOnly,
    );
    assert_eq!(marks(&stepped), [false, false]);
    assert!(run.is_untrusted());
}

#[test]
fn no_user_answers_an_outbound_message() {
    let mut run = begun();
    let id = delivered(&mut run, "d", 0);
    let refused = answer(&run, id, &UserId::local(), json!("Me."), NOW).unwrap_err();
    assert_eq!(refused.code.as_str(), "NOT_SUSPENDED");
}

// Tests of recorded cuts: which calls see which, and what the fold makes of a summary's attempt.

fn cut(left_out_through: u64) -> PromptCut {
    PromptCut {
        left_out_through,
        tokens_before: 900,
        ..PromptCut::default()
    }
}

fn asked(run: &Run, key: &str) -> Run {
    let request = asking(key);
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
        usage: Some(Usage {
            input_tokens,
            ..Usage::default()
        }),
        ..attempt_at(model)
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
