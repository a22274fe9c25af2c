//! Tests of the code of a turn that its agent gives up.

use super::*;

fn gives_up() -> StepResult {
    StepResult {
        decision: Decision::Fail {
            reason: "why".into(),
        },
        effects: vec![],
        memo: None,
    }
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
        let (mut run, _) = step(
            &begun(),
            vec![],
            &[words("hello")],
            wait(vec![asking_a_model("m1")], Until::Any),
            EffectClass::ReadOnly,
        );
        let operation = run.by_key("m1").unwrap().operation.clone();
        let failed = Ended::Failed(Failure::lasting(code, "why"));
        let arrived = vec![settlement(&operation, failed, NOW)];
        assert_eq!(code_of_end(&run, &arrived), expected);
        // The same if the outcome was recorded before the step.
        let settled = RunSettled {
            run: run.started.run,
            settled: arrived.clone(),
        };
        let recorded = run.clone().apply(&Event::RunSettled(settled)).unwrap();
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
        wait(vec![asking_a_model("m1")], Until::Any),
        EffectClass::NonIdempotent,
    );
    let operation = run.by_key("m1").unwrap().operation.clone();
    let mut lost = settlement(&operation, Ended::Unknown(Failure::interrupted()), NOW);
    assert_eq!(run.given_up("why", std::slice::from_ref(&lost)), "why");
    lost.attempts.push(Attempt {
        provider: "p".into(),
        model: "m".into(),
        usage: None,
        cost_micros: None,
        wall_ms: 1,
        error: Some("it took too long".into()),
        reserved: None,
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
