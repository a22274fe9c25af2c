//! Given what happened, when the agent decides, then this follows: the step engine without a host.

mod attempts;
mod handed_over;
mod outbound_messages;
mod questions;
mod restarts;
mod speaking;

use super::check::check;
use super::decide::{Resolved, Taken, decide};
use super::end::{Cause, Joint, cut_off, turn};
use super::intake::{Intake, intake, wakes};
use super::recover::{Next, lost, next, ready, would_be_sent};
use super::settle::{Ended, answer, settlement, stopped};
use super::*;
use crate::access::tool::{ClientAction, EffectClass};
use crate::access::user::UserId;
use crate::agents::definition::DefinitionId;
use crate::events::event::{InputAccepted, OperationStarted, RunSettled, Source};
use crate::thread::message::{Draft, Part, Role};
use crate::thread::model::{Reply, Stop};
use crate::values::digest::Salt;
use crate::values::id::{AgentId, RunId, SessionId};
use crate::work::operation::{Attempt, CallUsage, Continuation, Kept};
use crate::work::step::{
    Audience, Call, Context, Failure, ModelRequest, OperationOutcome, Request, StepResult, Toolset,
    Work,
};
use serde_json::json;
use uuid::Uuid;

const NOW: Timestamp = Timestamp(1_000);
const SALT: Salt = Salt([7; 16]);

fn begun() -> Run {
    Run::begin(RunStarted {
        claimed: vec![InputId(Uuid::from_u128(9))],
        ..RunStarted::of(
            RunId(Uuid::from_u128(1)),
            SessionId(Uuid::from_u128(2)),
            AgentId(Uuid::from_u128(3)),
            DefinitionId("assistant".into()),
            Digest::of(b"component"),
            NOW,
        )
    })
}

fn more_words(id: u128, text: &str) -> InputAccepted {
    InputAccepted {
        input: InputId(Uuid::from_u128(id)),
        ..words(text)
    }
}

fn words(text: &str) -> InputAccepted {
    InputAccepted {
        message: Some(Draft::text(Role::User, "api", text)),
        ..InputAccepted::of(
            SessionId(Uuid::from_u128(2)),
            InputId(Uuid::from_u128(9)),
            Source::Api,
            NOW,
        )
    }
}

fn asking_a_model(key: &str) -> Request {
    let request = ModelRequest {
        system: vec![],
        context: Context::Whole,
        also: vec![],
        tools: Toolset::All,
        model: None,
        max_tokens: None,
        reply_schema: None,
        audience: Audience::User,
        sampling: crate::sampling::Sampling::default(),
    };
    Request {
        key: key.into(),
        work: Work::Model(request),
    }
}

fn asking(key: &str) -> StepResult {
    wait(vec![asking_a_model(key)], Until::Any)
}

fn free_text() -> ClientAction {
    ClientAction::of("free_text", json!({}))
}

/// Result of a tool with words from outside.
fn gave_text(text: &str) -> Ended {
    Ended::Gave {
        parts: vec![Part::text(text)],
        untrusted: true,
    }
}

fn decided(decision: Decision) -> StepResult {
    StepResult {
        decision,
        effects: vec![],
        memo: None,
    }
}

/// An operation of the first step that only reads.
fn operation_of(id: OperationId, key: &str, performer: Performer) -> Operation {
    Operation {
        id,
        key: key.into(),
        step: 0,
        place: 0,
        performer,
        effect: EffectClass::ReadOnly,
        time_limit_ms: None,
        deadline: None,
        answers: None,
        in_thread: false,
        reserved: Default::default(),
        approval: None,
    }
}

fn continuing(operation: OperationId, segment: u32, pause: Pause) -> Continuation {
    Continuation {
        operation,
        segment,
        state: Vec::new(),
        pause,
        active_ms: 0,
        call: None,
    }
}

fn attempt_at(model: &str) -> Attempt {
    Attempt {
        provider: "p".into(),
        model: model.into(),
        usage: None,
        cost_micros: None,
        wall_ms: 1,
        error: None,
        reserved: None,
    }
}

fn calling(message: u64, index: u32) -> Request {
    Request {
        key: format!("call-{message}-{index}"),
        work: Work::Tool {
            call: Call::OfModel { message, index },
        },
    }
}

fn wait(start: Vec<Request>, until: Until) -> StepResult {
    let decision = Decision::Wait(Wait {
        start,
        cancel: vec![],
        until,
        hear: false,
    });
    decided(decision)
}

fn by(performer: Performer, effect: EffectClass) -> Resolved {
    Resolved {
        performer,
        effect,
        time_limit_ms: None,
        deadline: None,
        reserved: Default::default(),
        approval: None,
    }
}

fn tool(effect: EffectClass) -> Resolved {
    let performer = Performer::Tool {
        component: Digest::of(b"tool"),
        tool: "write".into(),
        arguments: "{}".into(),
        capabilities: vec![],
    };
    by(performer, effect)
}

fn resolved(result: &StepResult, effect: EffectClass) -> Vec<Resolved> {
    let Decision::Wait(wait) = &result.decision else {
        return vec![];
    };
    wait.start
        .iter()
        .map(|request| match &request.work {
            Work::Model(request) => by(
                Performer::Model {
                    request: request.clone(),
                    through: 0,
                    reserved_tokens: 100,
                    reserved_micros: None,
                },
                EffectClass::Idempotent,
            ),
            Work::Client(action) => by(
                Performer::Client {
                    action: action.clone(),
                },
                EffectClass::ReadOnly,
            ),
            Work::Timer { ms } => by(
                Performer::Timer {
                    due: NOW.plus_ms(*ms),
                },
                EffectClass::Idempotent,
            ),
            _ => tool(effect),
        })
        .collect()
}

fn basis(run: &Run) -> Basis {
    let none = Digest::of(b"");
    Basis {
        files: 0,
        documents: Documents::all_of(run.component, none),
        base: None,
        head: run.head(),
        session_state: run.session_state,
        now: NOW,
        left: run.limits_left(),
        seed: Basis::seed(run.started.run, run.step),
    }
}

use crate::work::basis::{Basis, Documents};

/// Takes a step: the run after it, and its event.
fn step(
    run: &Run,
    arrived: Vec<Settlement>,
    inputs: &[InputAccepted],
    result: StepResult,
    effect: EffectClass,
) -> (Run, RunStepped) {
    step_on(run, intake(run, arrived, inputs, SALT), result, effect)
}

/// Takes the first step of a run, which hears a user's words.
fn first_step(result: StepResult) -> (Run, RunStepped) {
    let inputs = [words("hello")];
    step(&begun(), vec![], &inputs, result, EffectClass::ReadOnly)
}

/// The run once outcomes are recorded in a commit of their own.
fn settled_in(run: &Run, settled: Vec<Settlement>) -> Run {
    let run_id = run.started.run;
    let settled = Event::RunSettled(RunSettled {
        run: run_id,
        settled,
    });
    run.clone().apply(&settled).unwrap()
}

/// The run once a call is on record as sent.
fn sent_once(run: &Run, operation: OperationId, effect: Option<EffectClass>) -> Run {
    let started = OperationStarted {
        run: run.started.run,
        operation,
        segment: 0,
        effect,
        time: NOW,
    };
    let started = Event::OperationStarted(started);
    run.clone().apply(&started).unwrap()
}

/// Takes a step on what it takes in.
fn step_on(
    run: &Run,
    intake: Intake,
    result: StepResult,
    effect: EffectClass,
) -> (Run, RunStepped) {
    check(run, &intake, &result).unwrap();
    let taken = Taken {
        basis: basis(run),
        intake,
        resolved: resolved(&result, effect),
        result,
        answers: Digest::of(b""),
        usage: CallUsage::default(),
        time: NOW,
        salt: SALT,
    };
    let stepped = decide(run, taken);
    let run = run
        .clone()
        .apply(&Event::RunStepped(Box::new(stepped.clone())))
        .unwrap();
    (run, stepped)
}

fn model_says(run: &Run, key: &str, parts: Vec<Part>) -> Settlement {
    let operation = &run.by_key(key).unwrap().operation;
    let reply = Reply {
        parts,
        stop: Stop::End,
        provider: "scripted".into(),
        model: "m".into(),
        own_calls: Vec::new(),
        untrusted: false,
    };
    settlement(operation, Ended::Replied(reply), NOW)
}

fn call_part(name: &str) -> Part {
    Part::Call {
        call_id: "same".into(),
        name: name.into(),
        arguments: "{}".into(),
    }
}

/// The user spoke, the model answered with two calls, and both were started.
fn with_two_calls(effect: EffectClass) -> Run {
    let (run, _) = step(&begun(), vec![], &[words("hello")], asking("m1"), effect);
    let reply = model_says(&run, "m1", vec![call_part("write"), call_part("write")]);
    step(
        &run,
        vec![reply],
        &[],
        wait(vec![calling(2, 0), calling(2, 1)], Until::All),
        effect,
    )
    .0
}

#[test]
fn a_first_step_hears_what_its_run_claimed() {
    let (run, stepped) = first_step(asking("m1"));
    assert_eq!(stepped.news, vec![News::Said { messages: vec![1] }]);
    assert_eq!(run.message(1).unwrap().text(), "hello");
    assert_eq!(run.open.len(), 1);
    assert!(
        !wakes(&run, &[], true),
        "words do not wake who does not hear"
    );
}

#[test]
fn a_models_reply_enters_the_thread_and_is_named_by_its_place() {
    let (run, _) = first_step(asking("m1"));
    let reply = model_says(&run, "m1", vec![Part::text("hi")]);
    assert!(wakes(&run, std::slice::from_ref(&reply), false));
    let done = decided(Decision::Reply { parts: vec![] });
    let (run, stepped) = step(&run, vec![reply], &[], done, EffectClass::ReadOnly);
    let outcome = OperationOutcome::Message { id: 2 };
    assert_eq!(
        stepped.news,
        vec![News::Settled {
            key: "m1".into(),
            outcome
        }]
    );
    assert_eq!(
        (run.message(2).unwrap().role, run.message(2).unwrap().text()),
        (Role::Assistant, "hi".into())
    );
    assert!(run.open.is_empty() && stepped.said.is_empty());
}

#[test]
fn waiting_for_all_wakes_when_the_last_has_settled() {
    let run = with_two_calls(EffectClass::ReadOnly);
    let gave = |key: &str| {
        let ended = gave_text(key);
        settlement(&run.by_key(key).unwrap().operation, ended, NOW)
    };
    let first = gave("call-2-0");
    let second = gave("call-2-1");
    assert!(!wakes(&run, std::slice::from_ref(&first), false));
    assert!(wakes(&run, &[first.clone(), second.clone()], false));
    // Recorded one by one it is the same.
    let run = settled_in(&run, vec![first]);
    assert!(wakes(&run, std::slice::from_ref(&second), false));
    let (run, stepped) = step(&run, vec![second], &[], asking("m2"), EffectClass::ReadOnly);
    assert_eq!(stepped.heard.len(), 2);
    assert!(
        run.unpaired().is_empty(),
        "providers' call ids repeat, places do not"
    );
}

#[test]
fn a_call_without_a_result_gets_a_synthetic_one_before_the_next_model_call() {
    let run = with_two_calls(EffectClass::ReadOnly);
    let ended = gave_text("done");
    let first = settlement(&run.by_key("call-2-0").unwrap().operation, ended, NOW);
    let (run, stepped) = {
        let mut any = run;
        any.wait = Some((Until::Any, false));
        step(&any, vec![first], &[], asking("m2"), EffectClass::ReadOnly)
    };
    assert!(stepped.said[0].text().starts_with("Still running, task "));
    assert!(run.unpaired().is_empty());
    // Its late result comes as a notice: no call has two results.
    let late = gave_text("late");
    let late = settlement(&run.by_key("call-2-1").unwrap().operation, late, NOW);
    let taken = intake(&run, vec![late], &[], SALT);
    assert_eq!(
        (taken.heard[0].role, &taken.heard[0].answers),
        (Role::Notice, &None)
    );
}

#[test]
fn ending_a_turn_cancels_what_is_open_and_pairs_every_call() {
    let run = with_two_calls(EffectClass::NonIdempotent);
    let sent = run.by_key("call-2-0").unwrap().operation.id;
    let run = sent_once(&run, sent, None);
    let (stops, said) = cut_off(&run, "The turn was cancelled.", NOW, SALT);
    let outcome = |id| {
        stops
            .iter()
            .find(|stop| stop.operation == id)
            .map(|stop| stop.outcome.clone())
            .unwrap()
    };
    assert!(
        matches!(outcome(sent), OperationOutcome::Unknown { .. }),
        "what may have happened is never called cancelled"
    );
    assert_eq!(
        outcome(run.by_key("call-2-1").unwrap().operation.id),
        OperationOutcome::Cancelled
    );
    let all: Vec<&Message> = run.messages.iter().map(Arc::as_ref).chain(&said).collect();
    assert!(unpaired(all).is_empty());
    assert_eq!(said.last().unwrap().role, Role::Notice);
}

#[test]
fn a_models_cost_is_that_of_its_attempts_and_its_reservation_where_nobody_knows_it() {
    let mut begun = begun();
    begun.started.limits.cost_micros_max = Some(1_000);
    let (mut run, _) = step(
        &begun,
        vec![],
        &[words("hello")],
        asking("m1"),
        EffectClass::ReadOnly,
    );
    assert_eq!(run.available_after(&[]).cost_micros, Some(1_000));
    let id = run.by_key("m1").unwrap().operation.id;
    if let Performer::Model {
        reserved_micros, ..
    } = &mut run.open.get_mut(&id).unwrap().operation.performer
    {
        *reserved_micros = Some(300);
    }
    assert_eq!(
        run.available_after(&[]).cost_micros,
        Some(700),
        "what is reserved is not there for others"
    );
    let attempt = |usage, cost_micros| Attempt {
        usage,
        cost_micros,
        ..attempt_at("m")
    };
    let known = || {
        attempt(
            Some(Usage {
                input_tokens: 9,
                output_tokens: 9,
                cached_tokens: 0,
            }),
            Some(40),
        )
    };
    let unpriced = attempt(Some(Usage::default()), None);
    for (attempts, outcome, left) in [
        (vec![known(), known()], OperationOutcome::Cancelled, 920),
        (
            vec![known(), attempt(None, None)],
            OperationOutcome::Cancelled,
            660,
        ),
        (vec![unpriced], OperationOutcome::Cancelled, 1_000),
        (
            vec![],
            OperationOutcome::Unknown {
                cause: Failure::interrupted(),
            },
            700,
        ),
        (vec![], OperationOutcome::Denied, 1_000),
    ] {
        let settlement = Settlement {
            attempts: attempts.clone(),
            ..Settlement::new(id, outcome, NOW)
        };
        assert_eq!(
            run.available_after(std::slice::from_ref(&settlement))
                .cost_micros,
            Some(left),
            "before it is recorded: {attempts:?}"
        );
        let run = settled_in(&run, vec![settlement]);
        assert_eq!(
            (
                run.available_after(&[]).cost_micros,
                run.spent_so_far().cost_micros
            ),
            (Some(left), 1_000 - left),
            "{attempts:?}"
        );
        assert_eq!(run.exhausted_limit(0), None);
    }
    run.spending.delegated.cost_micros = 1_001;
    assert!(
        run.exhausted_limit(0).unwrap().contains("(costMicrosMax)"),
        "what others cost counts too"
    );
}

#[test]
fn a_key_is_used_once_in_a_turn_and_waiting_for_nothing_is_refused() {
    let run = with_two_calls(EffectClass::ReadOnly);
    let nothing = intake(&run, vec![], &[], SALT);
    assert!(check(&run, &nothing, &asking("m1")).is_err());
    assert!(
        check(
            &begun(),
            &intake(&begun(), vec![], &[], SALT),
            &wait(vec![], Until::Any)
        )
        .is_err()
    );
    assert!(
        check(&run, &nothing, &wait(vec![calling(1, 0)], Until::Any)).is_err(),
        "the user's message has no calls"
    );
}

#[test]
fn a_turns_id_commits_to_its_parent_and_every_message() {
    let (run, _) = first_step(asking("m1"));
    let joint = Joint {
        depth: 1,
        jump: None,
    };
    let node = turn(&run, &[], &Cause::Replied, joint);
    assert_eq!(
        (node.first_message, node.last_message, node.id),
        (1, 1, node.compute_id())
    );
    let mut changed = run;
    Arc::make_mut(&mut changed.messages[0]).parts = vec![Part::text("hullo")];
    assert_ne!(turn(&changed, &[], &Cause::Replied, joint).id, node.id);
}

#[test]
fn folding_the_events_gives_the_run_that_made_them() {
    let begun = begun();
    let mut events = vec![Event::RunStarted(Box::new(begun.started.clone()))];
    let (run, first) = step(
        &begun,
        vec![],
        &[words("hello")],
        asking("m1"),
        EffectClass::ReadOnly,
    );
    let reply = model_says(&run, "m1", vec![call_part("write")]);
    let (run, second) = step(
        &run,
        vec![reply],
        &[],
        wait(vec![calling(2, 0)], Until::All),
        EffectClass::ReadOnly,
    );
    events.extend([
        Event::RunStepped(Box::new(first)),
        Event::RunStepped(Box::new(second)),
    ]);
    let stored: Vec<Event> = events
        .iter()
        .map(|event| serde_json::from_value(serde_json::to_value(event).unwrap()).unwrap())
        .collect();
    assert_eq!(stored, events, "events read back as they were written");
    assert_eq!(Run::fold(&stored).unwrap(), run);
    let state: Run = serde_json::from_value(serde_json::to_value(&run).unwrap()).unwrap();
    assert_eq!(state, run, "a snapshot is as good as the fold");
}

#[test]
fn active_time_is_what_outcomes_have_and_not_what_passed_between_events() {
    let (run, _) = first_step(asking("m1"));
    let max = run.started.limits.active_ms_max;
    // The host was down for longer than all active time that the turn may have.
    for (active_ms, unrecorded_ms, is_spent) in [
        (700, 0, false),
        (0, 0, false),
        (max, 0, true),
        (max - 1, 0, false),
        (max - 1, 1, true),
    ] {
        let mut reply = model_says(&run, "m1", vec![Part::text("hi")]);
        (reply.time, reply.active_ms) = (NOW.plus_ms(max * 2), active_ms);
        let after = settled_in(&run, vec![reply]);
        assert_eq!(
            (
                after.spending.active_ms,
                after.exhausted_limit(unrecorded_ms).is_some()
            ),
            (active_ms, is_spent),
            "{active_ms}, {unrecorded_ms}"
        );
    }
}

#[test]
fn the_active_time_of_every_segment_of_a_call_counts() {
    let run = with_two_calls(EffectClass::ReadOnly);
    let operation = *run.open.keys().next().unwrap();
    let later = |segment| Continuation {
        active_ms: 40,
        ..continuing(operation, segment, Pause::Until { due: NOW })
    };
    let run = run
        .apply(&Event::OperationContinued(later(1)))
        .unwrap()
        .apply(&Event::OperationContinued(later(2)))
        .unwrap();
    let settled = vec![Settlement {
        active_ms: 3,
        ..Settlement::new(operation, OperationOutcome::Cancelled, NOW.plus_ms(9_000))
    }];
    let run = settled_in(&run, settled);
    assert_eq!(run.spending.active_ms, 83);
}
