//! Tests of the outcome of work that was handed over: the report and the charge to the caller.

use super::*;
use crate::events::run::compact::{
    self, CODE, KEY, RETURN_CODE, RETURN_INSTRUCTION, RETURN_SYSTEM, conclude,
};
use crate::events::run::end::{Closing, settlement_for_parent};
use crate::thread::compaction::{Compaction, Mark, ORIGIN, Return};
use crate::thread::message::{Answers, text_of};
use crate::values::id::TurnId;
use crate::work::budget::Amount;
use crate::work::delegate::DelegateAddress;
use crate::work::step::{Decision, Failure, News};

fn worker(arguments: &str) -> Performer {
    Performer::Agent {
        agent: AgentId(Uuid::from_u128(5)),
        session: SessionId(Uuid::from_u128(6)),
        input: InputId(Uuid::from_u128(7)),
        delegation: Some(arguments.to_owned()),
        message: None,
        since: NOW,
        queued: false,
    }
}

/// Returns what a run's first step starts for others.
fn handed(run: &Run, performer: Performer, effect: EffectClass) -> Operation {
    Operation {
        effect,
        ..operation_of(OperationId::mint(run.started.run, 0, "d"), "d", performer)
    }
}

#[test]
fn a_delegation_that_is_not_done_in_time_is_told_the_same_whoever_says_so_first() {
    let arguments = r#"{"target":"worker","operation":"list_files","parameters":{"path":"/data"}}"#;
    let performer = worker(arguments);
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
    let (by_work, _) = settlement_for_parent(&operation, &begun(), Closing::default(), &cause, NOW);
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
    let reported = || vec![Part::text("Started as task 1; its reply will follow.")];
    let detached = Performer::Detached {
        agent: AgentId(Uuid::from_u128(5)),
        session: SessionId(Uuid::from_u128(6)),
        input: InputId(Uuid::from_u128(7)),
        reported: "Started as task 1; its reply will follow.".into(),
    };
    for performer in [
        detached,
        Performer::Refused {
            outcome: OperationOutcome::Parts { parts: reported() },
            untrusted: false,
            of_delegate: false,
            address: None,
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
        assert_eq!(
            settled.outcome,
            OperationOutcome::Parts { parts: reported() }
        );
        let run = settled_in(&run, vec![*settled]);
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

/// Returns what the model reads of its call of a tool that ended so.
fn read_of(tool: &str, performer: Performer, ended: Ended) -> String {
    let run = begun();
    let answers = Answers {
        message: 2,
        index: 0,
        call_id: "c".into(),
        name: tool.into(),
        failed: false,
    };
    let operation = Operation {
        answers: Some(answers),
        ..handed(&run, performer, EffectClass::NonIdempotent)
    };
    let settlement = settlement(&operation, ended, NOW);
    text_of(&settlement.result.expect("a result").parts)
}

#[test]
fn a_delegation_that_comes_to_nothing_is_told_as_a_result_and_not_as_text() {
    let arguments = r#"{"target":"worker","operation":"list_files","parameters":{"path":"/data"}}"#;
    let task = || worker(arguments);
    let refused = || Performer::Refused {
        outcome: OperationOutcome::Denied,
        untrusted: false,
        of_delegate: false,
        address: None,
    };
    let limit = || Ended::Failed(Failure::passing("limit-reached", "too many"));
    for (performer, ended, code, state, retryable) in [
        (refused(), Ended::Denied, "NOT_ALLOWED", None, false),
        (refused(), limit(), "LIMIT_REACHED", None, true),
        (task(), limit(), "TASK_FAILED", Some("FAILED"), false),
        (
            task(),
            Ended::TimedOut,
            "TASK_TIMEOUT",
            Some("TIMEOUT"),
            false,
        ),
        (
            task(),
            Ended::Cancelled,
            "TASK_FAILED",
            Some("CANCELLED"),
            false,
        ),
        (
            task(),
            Ended::Unknown(Failure::interrupted()),
            "TASK_UNKNOWN",
            Some("FAILED"),
            false,
        ),
    ] {
        let reported = read_of("delegate", performer.clone(), ended.clone());
        let result: serde_json::Value = serde_json::from_str(&reported).expect(&reported);
        assert_eq!(
            (
                result["error"]["code"].as_str(),
                result["taskState"].as_str(),
                result["error"]["retryable"].as_bool(),
                result["taskId"].is_string(),
            ),
            (Some(code), state, Some(retryable), state.is_some()),
            "{reported}"
        );
        // Calls of other tools are told in words.
        let other = read_of("dispatch_to_agent", performer, ended);
        assert!(serde_json::from_str::<serde_json::Value>(&other).is_err());
    }
}

#[test]
fn a_task_that_its_agent_gives_up_over_an_outcome_is_told_with_the_code_of_that() {
    let arguments =
        r#"{"target":"worker","operation":"read_file","parameters":{"path":"/data/a"}}"#;
    let performer = worker(arguments);
    let fail = Decision::Fail {
        reason: "`read_file` of `/data/a`: why".into(),
    };
    let given_up = Cause::of(&fail, None).expect("the end of a turn");
    let limit = Cause::Failed {
        code: "limit-reached".into(),
        reason: "it took 50 steps".into(),
    };
    for (outcome, cause, code) in [
        (OperationOutcome::Denied, &given_up, "NOT_ALLOWED"),
        (
            OperationOutcome::Unknown {
                cause: Failure::interrupted(),
            },
            &given_up,
            "TASK_UNKNOWN",
        ),
        (OperationOutcome::TimedOut, &given_up, "TASK_FAILED"),
        (OperationOutcome::Denied, &limit, "TASK_FAILED"),
    ] {
        let run = begun();
        let operation = handed(&run, performer.clone(), EffectClass::NonIdempotent);
        let heard = [News::Settled {
            key: "task-1".into(),
            outcome,
        }];
        let closing = Closing {
            heard: &heard,
            ..Closing::default()
        };
        let (settlement, _) = settlement_for_parent(&operation, &run, closing, cause, NOW);
        let OperationOutcome::Parts { parts } = &settlement.outcome else {
            panic!("{settlement:?}")
        };
        let reported: serde_json::Value = serde_json::from_str(&text_of(parts)).expect("a result");
        assert_eq!(
            (
                reported["error"]["code"].as_str(),
                reported["taskState"].as_str(),
                reported["error"]["retryable"].as_bool(),
            ),
            (Some(code), Some("FAILED"), Some(false)),
            "{reported}"
        );
        let Cause::Failed { reason, .. } = cause else {
            panic!("{cause:?}")
        };
        assert_eq!(&reported["error"]["message"], reason, "{reported}");
    }
}

#[test]
fn an_agents_own_delegation_that_is_refused_is_told_as_a_result_too() {
    let failed = |code: &str| OperationOutcome::Failed {
        failure: Failure::lasting(code, "why"),
    };
    for (outcome, code) in [
        (OperationOutcome::Denied, "NOT_ALLOWED"),
        (failed("limit-reached"), "LIMIT_REACHED"),
        (failed("INVALID_TARGET"), "INVALID_TARGET"),
    ] {
        for of_delegate in [true, false] {
            let performer = Performer::Refused {
                outcome: outcome.clone(),
                untrusted: false,
                of_delegate,
                address: DelegateAddress::of(r#"{"target":"worker","operation":"fly"}"#),
            };
            let mut run = begun();
            let operation = handed(&run, performer, EffectClass::ReadOnly);
            run.start(&operation, NOW);
            // A refused call is none that was made.
            assert_eq!(run.spending.tool_calls, 0, "{code}");
            let Next::Settle(settled) = next(&run.open[&operation.id], NOW) else {
                panic!("it settles at once")
            };
            assert_eq!(settled.result, None);
            if !of_delegate {
                assert_eq!(settled.outcome, outcome);
                continue;
            }
            let OperationOutcome::Parts { parts } = &settled.outcome else {
                panic!("{settled:?}")
            };
            let reported: serde_json::Value =
                serde_json::from_str(&text_of(parts)).expect("a result");
            assert_eq!(
                (&reported["success"], &reported["error"]["code"]),
                (&json!(false), &json!(code)),
                "{reported}"
            );
            assert_eq!(
                reported["metadata"],
                json!({ "target": "worker" }),
                "{reported}"
            );
            let category = &reported["error"]["category"];
            assert_eq!(category, "TOOL_EXECUTION_FAILED", "{reported}");
        }
    }
}

#[test]
fn a_delegation_that_is_passed_over_is_told_as_a_result() {
    use crate::events::run::delegated::{Unmade, passed_over};
    let skipped = Unmade::PassedOver("Skipped.");
    let arguments = r#"{"target":"worker","operation":"read_file","parameters":{}}"#;
    assert_eq!(passed_over("read_file", arguments, &skipped), "Skipped.");
    let reported: serde_json::Value =
        serde_json::from_str(&passed_over("delegate", arguments, &skipped)).expect("a result");
    assert_eq!(
        reported["metadata"],
        json!({ "target": "worker", "operation": "read_file" })
    );
    assert_eq!(reported["error"]["code"], "TASK_NOT_STARTED");
    assert_eq!(reported["taskState"], "CANCELLED");
    let failure = Failure::lasting("limit-reached", "none are left").with("limit", "toolCallsMax");
    let limited = Unmade::Limited(failure);
    assert_eq!(
        passed_over("read_file", arguments, &limited),
        "none are left"
    );
    let reported: serde_json::Value =
        serde_json::from_str(&passed_over("delegate", arguments, &limited)).expect("a result");
    assert_eq!(reported["error"]["code"], "LIMIT_REACHED");
    assert_eq!(reported["error"]["details"]["limit"], "toolCallsMax");
    assert_eq!(reported["metadata"]["operation"], "read_file");
}

#[test]
fn the_thinking_of_a_run_is_that_of_its_models_in_its_own_messages() {
    let thought = |text: &str| Part::Opaque {
        provider: "p".into(),
        model: "m".into(),
        value: json!({ "type": "thinking", "thinking": text }),
    };
    let message = |id: u64, role: Role, parts: Vec<Part>| {
        let draft = Draft {
            parts,
            ..Draft::text(role, "agent", "")
        };
        draft.at(id, SALT)
    };
    let mut run = begun();
    assert_eq!(run.thinking(&[]), "");
    for (role, text) in [
        (Role::User, "of somebody else"),
        (Role::Assistant, "first"),
        (Role::Tool, "of a tool"),
    ] {
        let id = run.head() + 1;
        let parts = vec![thought(text), Part::text("words")];
        run.messages.push(message(id, role, parts).into());
    }
    let parts = vec![thought("second"), Part::text("reply"), thought("third")];
    let said = message(run.head() + 1, Role::Assistant, parts);
    assert_eq!(run.thinking(&[said]), "first\n\nsecond\n\nthird");
}

// Tests of the run that brings the summary of another conversation back.

/// A run of the host's own, which compacts or brings something back.
fn of_host(returns: Option<Return>) -> Run {
    let task = Compaction {
        summarized_through: TurnId(Digest::of(b"turn")),
        through_message: 9,
        first_kept: None,
        tokens_before: 100,
        kept_tokens: 0,
        summary_tokens_max: 50,
        untrusted: true,
        asked_by: Some(UserId::local()),
        returns,
    };
    let started = RunStarted {
        compacts: Some(Box::new(task)),
        claimed: Vec::new(),
        ..begun().started
    };
    Run::begin(started)
}

fn back() -> Return {
    Return {
        session: SessionId(Uuid::from_u128(8)),
        agent: "smith".into(),
        first_message: 5,
    }
}

/// Returns what the run tells of a summary: the message that its last step leaves.
fn reported(run: &Run, summary: &str) -> Message {
    let asked = compact::step(run, &[]);
    let Decision::Wait(wait) = &asked.decision else {
        panic!("{asked:?}")
    };
    let [
        Request {
            work: Work::Model(model),
            ..
        },
    ] = wait.start.as_slice()
    else {
        panic!("{wait:?}")
    };
    let is_return = run.started.compacts.as_ref().unwrap().returns.is_some();
    assert_eq!(model.system == [RETURN_SYSTEM], is_return);
    assert_eq!(model.also == [Part::text(RETURN_INSTRUCTION)], is_return);
    let (run, _) = step(run, vec![], &[], asked, EffectClass::Idempotent);
    let settled = model_says(&run, KEY, vec![Part::text(summary)]);
    let intake = intake(&run, vec![settled], &[], SALT);
    let concluded = compact::step(&run, &intake.news);
    assert!(
        matches!(concluded.decision, Decision::Reply { .. }),
        "{concluded:?}"
    );
    let (_, mut stepped) = step_on(&run, intake, concluded, EffectClass::Idempotent);
    conclude(&run, &mut stepped, SALT);
    let [message] = stepped.said.as_slice() else {
        panic!("{:?}", stepped.said)
    };
    message.clone()
}

#[test]
fn a_summary_that_is_brought_back_is_a_notice_and_no_compaction() {
    let message = reported(&of_host(Some(back())), " All is done. ");
    assert_eq!(
        (message.role, message.origin.as_str(), message.untrusted),
        (Role::Notice, Return::ORIGIN, true)
    );
    assert_eq!(message.text(), back().notice("All is done."));
    assert!(message.text().contains("`smith`"), "{}", message.text());
    assert_eq!(Mark::of(&message), None, "the thread goes on whole");
    let compacted = reported(&of_host(None), "All is done.");
    assert_eq!(compacted.origin, ORIGIN);
    assert!(Mark::of(&compacted).is_some());
}

#[test]
fn a_return_that_comes_to_nothing_has_a_code_of_its_own() {
    assert_eq!(compact::code(&of_host(Some(back()))), RETURN_CODE);
    assert_eq!(compact::code(&of_host(None)), CODE);
    assert_eq!(compact::code(&begun()), CODE);
}
