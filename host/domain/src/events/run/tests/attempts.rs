//! Tests of the draws of attempts at a model's call, over restarts too.

use super::super::recover::{given_up, put_aside, recovered, why_given_up};
use super::*;
use crate::work::budget::Amount;
use crate::work::operation::ReplyTo;

fn spent(tokens: u64, cost_micros: u64) -> Amount {
    Amount {
        tokens,
        calls: 0,
        cost_micros,
    }
}

fn attempt(usage: Option<u64>, cost_micros: Option<u64>, reserved: Option<Amount>) -> Attempt {
    let usage = usage.map(|input_tokens| Usage {
        input_tokens,
        output_tokens: 0,
        cached_tokens: 0,
    });
    Attempt {
        usage,
        cost_micros,
        reserved,
        ..attempt_at("m")
    }
}

/// A run whose model call reserves 100 tokens and 300 millionths of 1,000 of each.
fn reserving() -> (Run, OperationId) {
    let mut begun = begun();
    (
        begun.started.limits.tokens_max,
        begun.started.limits.cost_micros_max,
    ) = (1_000, Some(1_000));
    let (mut run, _) = step(
        &begun,
        vec![],
        &[words("hello")],
        asking("m1"),
        EffectClass::ReadOnly,
    );
    let id = run.by_key("m1").unwrap().operation.id;
    if let Performer::Model {
        reserved_micros, ..
    } = &mut run.open.get_mut(&id).unwrap().operation.performer
    {
        *reserved_micros = Some(300);
    }
    (run, id)
}

fn goes_on(run: Run, id: OperationId, ended: Vec<Attempt>, reserved: Amount) -> Run {
    let attempted = run.attempted(&run.open[&id], ended, reserved, NOW);
    run.apply(&Event::OperationAttempted(Box::new(attempted)))
        .unwrap()
}

fn left(run: &Run) -> (u64, Option<u64>) {
    let left = run.available_after(&[]);
    (left.tokens, left.cost_micros)
}

#[test]
fn a_call_draws_what_its_attempts_used_and_what_is_reserved_for_the_newest() {
    let (run, id) = reserving();
    assert_eq!(
        (run.open[&id].attempts.number, left(&run)),
        (0, (900, Some(700)))
    );
    // The first used little, the second needs more.
    let run = goes_on(
        run,
        id,
        vec![attempt(Some(20), Some(60), None)],
        spent(120, 360),
    );
    assert_eq!(
        (run.open[&id].attempts.number, left(&run)),
        (1, (860, Some(580)))
    );
    // The usage of the second is unknown.
    let run = goes_on(
        run,
        id,
        vec![attempt(None, None, Some(spent(120, 360)))],
        spent(100, 300),
    );
    assert_eq!(
        (run.open[&id].attempts.number, left(&run)),
        (2, (760, Some(280)))
    );
    assert_eq!(
        (
            run.spent_or_reserved_with(&[]).tokens,
            run.spent_or_reserved_with(&[]).cost_micros
        ),
        (240, 720)
    );

    // It replies: what was reserved for the third and not used comes back, and no more.
    let open = &run.open[&id];
    let attempts = open.attempts_with(vec![attempt(Some(10), Some(30), None)]);
    assert_eq!(attempts.len(), 3);
    let replied =
        Settlement::new(id, OperationOutcome::Parts { parts: vec![] }, NOW).costing(attempts);
    for (settlement, tokens, micros) in [
        (replied, 150, 450),
        // It is stopped, or the host fails while it works on it.
        (stopped(open, NOW), 240, 720),
        (lost(open, Failure::lasting("x", "y"), NOW), 240, 720),
    ] {
        // So that whoever was shown a part of the reply is told that it is void.
        assert!(
            settlement.attempts.len() == 3
                && settlement
                    .attempts
                    .last()
                    .is_some_and(|last| last.is_lost() == last.usage.is_none())
        );
        let run = settled_in(&run, vec![settlement]);
        assert_eq!(left(&run), (1_000 - tokens, Some(1_000 - micros)));
        assert_eq!(
            (run.spent_so_far().tokens, run.spent_so_far().cost_micros),
            (tokens, micros)
        );
    }
}

#[test]
fn what_a_cut_off_attempt_leaves_for_another_is_what_it_did_not_reserve() {
    let (run, id) = reserving();
    let open = &run.open[&id];
    let lost = open.lost_attempt().unwrap();
    assert_eq!(
        (lost.usage, lost.reserved, lost.error.is_some()),
        (None, Some(spent(100, 300)), true)
    );
    let left = run.available_after(&[open.without_another(vec![lost], NOW)]);
    assert_eq!((left.tokens, left.cost_micros), (900, Some(700)));
    for (tokens, micros, limit) in [
        (900, 700, None),
        (901, 700, Some("tokensMax")),
        (900, 701, Some("costMicrosMax")),
        (0, 0, None),
    ] {
        assert_eq!(
            left.short_of(spent(tokens, micros), "it")
                .map(|(limit, _)| limit),
            limit,
            "{tokens} {micros}"
        );
    }
    // However often the host dies, each attempt is charged once.
    let mut run = run;
    for number in 1..=3 {
        let lost = run.open[&id].lost_attempt().unwrap();
        run = goes_on(run, id, vec![lost], spent(100, 300));
        assert_eq!(run.open[&id].attempts.number, number);
        assert_eq!(self::left(&run).0, 900 - 100 * u64::from(number));
    }
    let kept: Run = serde_json::from_slice(&serde_json::to_vec(&run).unwrap()).unwrap();
    assert_eq!(kept, run, "a snapshot has them");
}

#[test]
fn recoveries_in_a_row_are_counted_and_progress_begins_to_count_anew() {
    let (mut run, id) = reserving();
    let recover = |run: Run| {
        let event = recovered(&run, NOW);
        run.apply(&Event::RunRecovered(event)).unwrap()
    };
    for count in 1..=2 {
        run = recover(run);
        // Another attempt at what was lost is no progress.
        let lost = run.open[&id].lost_attempt().into_iter().collect();
        run = goes_on(run, id, lost, Amount::default());
        assert_eq!(run.recoveries, count);
    }
    let settled = vec![Settlement::new(id, OperationOutcome::Elapsed, NOW)];
    let run = recover(settled_in(&run, settled));
    assert_eq!(run.recoveries, 1);
    let (run, _) = step(
        &run,
        vec![],
        &[words("go on")],
        asking("m2"),
        EffectClass::ReadOnly,
    );
    assert_eq!(run.recoveries, 0);
    // What is kept of a run has it, and a run of before had none.
    let kept = serde_json::to_value(recover(run)).unwrap();
    assert_eq!(
        (
            &kept["recoveries"],
            serde_json::from_value::<Run>(kept.clone())
                .unwrap()
                .recoveries
        ),
        (&json!(1), 1)
    );
}

#[test]
fn the_inputs_of_a_run_that_is_given_up_after_a_step_are_put_aside_with_its_reason() {
    let (mut run, _) = reserving();
    assert!(run.step > 0);
    run.claimed = [9, 10].map(|id| InputId(Uuid::from_u128(id))).to_vec();
    let cause = given_up(5);
    let reason = why_given_up(&cause).unwrap();
    assert!(reason.contains("5 times in a row"), "{reason}");
    let dead = put_aside(&run, reason, NOW);
    let inputs: Vec<u128> = dead.iter().map(|dead| dead.input.0.as_u128()).collect();
    assert_eq!(inputs, [9, 10]);
    assert!(
        dead.iter()
            .all(|dead| dead.session == run.started.session && dead.reason == reason)
    );
    // An agent that fails its turn, and a user who stops it, know why.
    for known in [
        Cause::Replied,
        Cause::Aborted {
            reason: reason.to_owned(),
        },
        Cause::Failed {
            code: "agent-failed".to_owned(),
            reason: reason.to_owned(),
        },
    ] {
        assert_eq!(why_given_up(&known), None, "{known:?}");
    }
}

/// The inputs that would be put aside if a run were given up now.
fn unanswered(run: &Run) -> Vec<u128> {
    let dead = put_aside(run, "gone", NOW);
    dead.iter().map(|dead| dead.input.0.as_u128()).collect()
}

#[test]
fn inputs_that_were_answered_before_a_run_was_given_up_are_not_put_aside() {
    let said = |id: u128, text: &str| more_words(id, text);
    let decides = |run: &Run, inputs: &[InputAccepted], decision: Decision| {
        let result = decided(decision);
        step(run, vec![], inputs, result, EffectClass::ReadOnly).0
    };
    let reply = || Decision::Reply {
        parts: vec![Part::text("done")],
    };
    let work = |key: &str| asking(key).decision;
    let run = decides(&begun(), &[], work("m1"));
    let run = decides(&run, &[said(10, "and this")], work("m2"));
    assert_eq!(unanswered(&run), [9, 10], "no reply yet");
    // An agent that fails its turn has answered nothing.
    let failed = Decision::Fail {
        reason: "no".to_owned(),
    };
    assert_eq!(unanswered(&decides(&run, &[], failed)), [9, 10]);
    // It had replied when more arrived, with which it goes on.
    let run = decides(&run, &[], reply());
    assert!(run.deferred.is_some());
    let run = decides(&run, &[said(11, "one more thing")], work("m3"));
    assert_eq!(unanswered(&run), [11]);
    let kept: Run = serde_json::from_slice(&serde_json::to_vec(&run).unwrap()).unwrap();
    assert_eq!(kept, run, "a snapshot has it");
    let run = decides(&run, &[said(12, "and another")], reply());
    assert_eq!(unanswered(&run), Vec::<u128>::new());
}

#[test]
fn work_that_was_replied_to_before_a_run_was_given_up_is_not_put_aside() {
    let to = ReplyTo {
        run: RunId(Uuid::from_u128(20)),
        operation: OperationId::mint(RunId(Uuid::from_u128(20)), 0, "d"),
        attached: false,
    };
    let mut begun = begun();
    begun.started.reply_to = Some(to);
    let replies = Request {
        key: "r".into(),
        work: Work::Timer { ms: 1 },
    };
    let (unreplied, mut stepped) = step(
        &begun,
        vec![],
        &[],
        wait(vec![replies, asking_a_model("m1")], Until::Any),
        EffectClass::ReadOnly,
    );
    assert_eq!(unanswered(&unreplied), [9]);
    stepped.started[0].performer = Performer::Reply { to, settled: true };
    let run = begun.apply(&Event::RunStepped(Box::new(stepped))).unwrap();
    assert_eq!(unanswered(&run), Vec::<u128>::new());
    // Words that it has heard since are answered by its end only.
    let (run, _) = step(
        &run,
        vec![],
        &[more_words(10, "and this")],
        asking("m2"),
        EffectClass::ReadOnly,
    );
    assert_eq!(unanswered(&run), [10]);
}

#[test]
fn what_only_waits_beside_the_work_does_not_begin_to_count_anew() {
    let beside = |work: Work| Request {
        key: "beside".into(),
        work,
    };
    let action = free_text();
    let cases: [(&str, Request, Ended, u32); 3] = [
        (
            "a timer that elapses",
            beside(Work::Timer { ms: 1 }),
            Ended::Elapsed,
            2,
        ),
        (
            "a question that is answered",
            beside(Work::Client(action)),
            Ended::Value(json!("yes")),
            2,
        ),
        (
            "a call that has an outcome",
            asking_a_model("beside"),
            Ended::Failed(Failure::lasting("model-failed", "no")),
            0,
        ),
    ];
    for (what, beside, ended, recoveries) in cases {
        let start = wait(vec![asking_a_model("m1"), beside], Until::Any);
        let (mut run, _) = first_step(start);
        for _ in 0..2 {
            let event = recovered(&run, NOW);
            run = run.apply(&Event::RunRecovered(event)).unwrap();
        }
        let settled = settlement(&run.by_key("beside").unwrap().operation, ended, NOW);
        let again = || {
            wait(
                vec![Request {
                    key: "again".into(),
                    work: Work::Timer { ms: 1 },
                }],
                Until::Any,
            )
        };
        // In a commit of its own, of which the next step hears.
        let after = settled_in(&run, vec![settled.clone()]);
        assert_eq!(after.recoveries, recoveries, "{what}");
        let (after, _) = step(&after, vec![], &[], again(), EffectClass::ReadOnly);
        assert_eq!(after.recoveries, recoveries, "{what}");
        // In the commit of the step that hears of it, with words too and without.
        let (after, stepped) = step(
            &run,
            vec![settled.clone()],
            &[],
            again(),
            EffectClass::ReadOnly,
        );
        assert_eq!(
            (stepped.settled.len(), after.recoveries),
            (1, recoveries),
            "{what}"
        );
        let more = more_words(10, "go on");
        let (after, stepped) = step(&run, vec![settled], &[more], again(), EffectClass::ReadOnly);
        assert_eq!((stepped.claimed.len(), after.recoveries), (1, 0), "{what}");
    }
}

// Tests of the code of a turn that its agent gives up.

fn gives_up() -> StepResult {
    decided(Decision::Fail {
        reason: "why".into(),
    })
}

/// Returns the code of the end of a turn that its agent gives up once these outcomes arrive.
fn code_of_end(run: &Run, arrived: &[Settlement]) -> String {
    match Cause::of(&gives_up().decision, run.model_failure(arrived)) {
        Some(Cause::Failed { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_turn_given_up_over_a_model_ends_with_the_code_of_the_models_call() {
    for (code, is_models) in [
        ("model-unavailable", true),
        ("model-rate-limited", true),
        ("model-refused", true),
        ("model-prompt-too-long", true),
        ("model-garbage", true),
        ("invalid-reply", true),
        // Less is left than a call would take.
        ("limit-reached", true),
        // It says nothing of a model.
        ("unavailable", false),
    ] {
        let expected = if is_models { code } else { "agent-failed" };
        let (mut run, _) = first_step(asking("m1"));
        let operation = run.by_key("m1").unwrap().operation.clone();
        let failed = Ended::Failed(Failure::lasting(code, "why"));
        let arrived = vec![settlement(&operation, failed, NOW)];
        assert_eq!(code_of_end(&run, &arrived), expected);
        // The same if the outcome was recorded before the step.
        let recorded = settled_in(&run, arrived.clone());
        assert_eq!(code_of_end(&recorded, &[]), expected);
        // The same if messages had arrived meanwhile, and were taken back.
        let (deferred, _) = step(
            &run,
            arrived.clone(),
            &[],
            gives_up(),
            EffectClass::ReadOnly,
        );
        let over = deferred.deferred_over.as_deref();
        assert_eq!(over, is_models.then_some(code));
        // What was heard before is not why a later step gives up.
        assert_eq!(code_of_end(&deferred, &[]), "agent-failed");
        // A tool chooses its codes itself.
        let open = run.open.get_mut(&operation.id).unwrap();
        open.operation.performer = tool(EffectClass::ReadOnly).performer;
        assert_eq!(code_of_end(&run, &arrived), "agent-failed");
    }
}

#[test]
fn a_turn_given_up_over_a_program_that_was_cut_off_says_why() {
    let (run, _) = step(
        &begun(),
        vec![],
        &[words("hello")],
        asking("m1"),
        EffectClass::NonIdempotent,
    );
    let operation = run.by_key("m1").unwrap().operation.clone();
    let mut lost = settlement(&operation, Ended::Unknown(Failure::interrupted()), NOW);
    assert_eq!(run.given_up("why", std::slice::from_ref(&lost)), "why");
    lost.attempts.push(Attempt {
        error: Some("it took too long".into()),
        ..attempt_at("m")
    });
    let reported = run.given_up("why", std::slice::from_ref(&lost));
    assert_eq!(reported, "why: it took too long");
    let (_, stepped) = step(
        &run,
        vec![lost],
        &[],
        gives_up(),
        EffectClass::NonIdempotent,
    );
    let notice = stepped.said.last().unwrap().text();
    assert_eq!(notice, "The turn failed: why: it took too long");
}
