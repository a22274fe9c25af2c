//! Events in their public form, word for word.

use broker::{Frame, Show};
use domain::basis::{Basis, Documents, LimitsLeft};
use domain::budget::Amount;
use domain::definition::DefinitionId;
use domain::digest::{Digest, Salt};
use domain::event::{self, Recorded, Subject};
use domain::id::{AgentId, EventId, InputId, OperationId, RunId, SessionId, TurnId};
use domain::message::{Answers, Draft, Message, Part, Role};
use domain::model::Usage;
use domain::operation::{
    Attempt, CallUsage, Continuation, Operation, Pause, Performer, Settlement,
};
use domain::step::{
    Audience, Context, Decision, Memo, ModelRequest, OperationOutcome, Toolset, Until, Wait,
};
use domain::time::Timestamp;
use domain::tool::{ClientAction, EffectClass};
use domain::turn::{TurnEnd, TurnNode};
use domain::user::UserId;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

const SALT: Salt = Salt([0xab; 16]);
/// Everything that must not show is made of this.
const SECRET: &str = "SECRET";

fn secret_digest() -> Digest {
    Digest([0xee; 32])
}

fn run() -> RunId {
    RunId(Uuid::from_u128(3))
}

fn operation_id() -> OperationId {
    OperationId(Digest([1; 32]))
}

fn recorded(event: event::Event) -> Recorded {
    let kind = serde_json::to_value(&event).unwrap()["type"]
        .as_str()
        .unwrap()
        .to_owned();
    Recorded {
        position: 7,
        stream: "run/x".to_owned(),
        version: 2,
        id: EventId(Uuid::from_u128(9)),
        kind,
        event: Some(event),
        subject: Subject {
            agent: Some(AgentId(Uuid::from_u128(1))),
            session: Some(SessionId(Uuid::from_u128(2))),
            run: Some(run()),
        },
        actor: "host".to_owned(),
        causation: None,
        correlation: Some(InputId(Uuid::from_u128(4))),
        time: Timestamp(1_700_000_000_123),
        hash: secret_digest(),
    }
}

/// The data of an event, after making sure that nothing of the host's own shows in it.
fn data(event: event::Event) -> Value {
    let public = serde_json::to_value(super::event(&recorded(event))).unwrap();
    let text = public.to_string();
    for hidden in [
        SECRET,
        "abababab",
        "eeeeeeee",
        "\"salt\"",
        "\"memo\"",
        "\"basis\"",
    ] {
        assert!(!text.contains(hidden), "`{hidden}` shows in {text}");
    }
    public["data"].clone()
}

fn performer(request: ModelRequest) -> Performer {
    Performer::Model {
        request,
        through: 1,
        reserved_tokens: 5,
        reserved_micros: None,
    }
}

fn operation(performer: Performer) -> Operation {
    Operation {
        id: operation_id(),
        key: "k".to_owned(),
        step: 0,
        performer,
        effect: EffectClass::ReadOnly,
        time_limit_ms: None,
        deadline: None,
        answers: None,
        place: 0,
        in_thread: true,
        reserved: Default::default(),
        approval: None,
    }
}

pub(super) fn stepped(
    started: Vec<Operation>,
    settled: Vec<Settlement>,
    heard: Vec<Message>,
) -> event::Event {
    let digest = secret_digest();
    let basis = Basis {
        files: 0,
        documents: Documents::all_of(digest, digest),
        base: None,
        head: 1,
        session_state: digest,
        now: Timestamp(1),
        left: LimitsLeft {
            steps: 1,
            tool_calls: 1,
            tokens: 1,
        },
        seed: digest,
    };
    event::Event::RunStepped(Box::new(event::RunStepped {
        run: run(),
        step: 1,
        basis,
        settled,
        claimed: Vec::new(),
        hops: 0,
        news: Vec::new(),
        heard,
        history_untrusted: false,
        decision: Decision::Wait(Wait {
            start: Vec::new(),
            cancel: Vec::new(),
            until: Until::All,
            hear: false,
        }),
        effects: Vec::new(),
        memo: Some(Memo {
            format: 1,
            bytes: SECRET.as_bytes().to_vec(),
        }),
        said: Vec::new(),
        started,
        stopped: Vec::new(),
        answers: digest,
        usage: CallUsage::default(),
        ledger: Vec::new(),
        time: Timestamp(1),
    }))
}

#[test]
fn an_event_says_where_and_when_it_happened() {
    let event = event::Event::PreferencesUpdated(event::PreferencesUpdated {
        untrusted: false,
        updated_at: Timestamp(0),
        user_id: None,
        agent: AgentId(Uuid::nil()),
        preferences: json!({ "a": 1 }),
    });
    let public = serde_json::to_value(super::event(&recorded(event))).unwrap();
    assert_eq!(
        public,
        json!({
            "position": 7, "id": "00000000-0000-0000-0000-000000000009", "type": "agent.preferences.updated.v1",
            "time": "2023-11-14T22:13:20.123Z", "agent_id": "00000000-0000-0000-0000-000000000001",
            "session_id": "00000000-0000-0000-0000-000000000002", "run_id": "00000000-0000-0000-0000-000000000003", "actor": "host",
            "correlation_id": "00000000-0000-0000-0000-000000000004", "data": { "preferences": { "a": 1 }, "updated_at": "1970-01-01T00:00:00.000Z", "user_id": null },
        })
    );
}

#[test]
fn an_erased_event_has_no_data() {
    let erased = Recorded {
        event: None,
        ..recorded(stepped(Vec::new(), Vec::new(), Vec::new()))
    };
    let public = json!(super::event(&erased));
    assert_eq!(
        (&public["type"], public.get("data")),
        (&json!("run.stepped.v1"), Some(&Value::Null))
    );
}

#[test]
fn a_step_shows_what_was_said_started_and_settled() {
    let reply = vec![
        Part::Opaque {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            value: json!({ "signature": SECRET }),
        },
        Part::text("Let me see."),
        Part::Call {
            call_id: "c1".to_owned(),
            name: "read_file".to_owned(),
            arguments: "{\"path\":\"a\"}".to_owned(),
        },
    ];
    let draft = Draft {
        role: Role::Assistant,
        parts: reply,
        origin: "model:m".to_owned(),
        untrusted: false,
        speaker: None,
        answers: None,
    };
    let attempt = Attempt {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        usage: Some(Usage {
            input_tokens: 1,
            output_tokens: 2,
            cached_tokens: 0,
        }),
        cost_micros: Some(9),
        wall_ms: 3,
        error: None,
        reserved: None,
    };
    let settled = Settlement {
        operation: operation_id(),
        outcome: OperationOutcome::Message { id: 0 },
        result: Some(draft.clone()),
        untrusted: false,
        attempts: vec![attempt],
        usage: None,
        spent: None,
        task: None,
        active_ms: 0,
        own_calls: Vec::new(),
        time: Timestamp(1_700_000_000_000),
    };
    let answers = Answers {
        message: 2,
        index: 0,
        call_id: "c1".to_owned(),
        name: "read_file".to_owned(),
        failed: false,
    };
    let tool = Performer::Tool {
        component: secret_digest(),
        tool: "read_file".to_owned(),
        arguments: "{\"path\":\"a\"}".to_owned(),
        capabilities: Vec::new(),
    };
    let started = Operation {
        answers: Some(answers),
        ..operation(tool)
    };
    let view = data(stepped(
        vec![started],
        vec![settled],
        vec![draft.at(2, SALT)],
    ));
    assert_eq!(
        view,
        json!({
            "step": 1, "decision": "wait",
            "messages": [{
                "id": 2, "role": "assistant", "text": "Let me see.",
                "parts": [{ "type": "opaque", "provider": "p" }, { "type": "text", "length": 11 }, { "type": "call", "index": 0 }],
                "calls": [{ "index": 0, "name": "read_file", "arguments": "{\"path\":\"a\"}" }], "origin": "model:m", "untrusted": false,
            }],
            "started": [{
                "operation_id": "01".repeat(32), "key": "k", "kind": "tool", "step": 0, "tool": "read_file",
                "answers": { "message": 2, "index": 0 }, "arguments": { "path": "a" },
            }],
            "settled": [{
                "operation_id": "01".repeat(32), "outcome": "message", "message": 2,
                "attempts": [{ "provider": "p", "model": "m", "usage": { "input_tokens": 1, "output_tokens": 2, "cached_tokens": 0 }, "cost_micros": 9, "wall_ms": 3 }],
                "time": "2023-11-14T22:13:20.000Z",
            }],
            "claimed": [], "client_actions": [],
            "usage": { "wall_us": 0, "cpu_ticks": 0, "memory_bytes_peak": 0, "host_calls": 0, "log_bytes_dropped": 0 }, "ledger": [],
        })
    );
}

#[test]
fn a_question_to_the_user_says_what_to_answer_under() {
    let action = ClientAction {
        widget: "choice".to_owned(),
        props: json!({ "prompt": "?" }),
        response_schema: None,
        lock_input: true,
    };
    let mut expected = json!([{ "tool_call_id": "01".repeat(32), "tool_name": "k", "widget_type": "choice", "props": { "prompt": "?" }, "lock_input": true }]);
    let view = data(stepped(
        vec![operation(Performer::Client {
            action: action.clone(),
        })],
        Vec::new(),
        Vec::new(),
    ));
    assert_eq!(view["client_actions"], expected);
    assert_eq!(view["started"][0]["client_action"], expected[0]);
    let asking = Continuation {
        operation: operation_id(),
        segment: 1,
        state: SECRET.into(),
        pause: Pause::Asking {
            tool: "notes_add".to_owned(),
            action: Box::new(action),
            until: None,
            since: Timestamp(1),
        },
        active_ms: 0,
        call: None,
    };
    expected[0]["tool_name"] = json!("notes_add");
    let [(name, frame)] =
        <[_; 1]>::try_from(frames_of(event::Event::OperationContinued(asking.clone()))).unwrap();
    assert_eq!(name, "client_action");
    for (field, value) in expected[0].as_object().unwrap() {
        assert_eq!(
            frame[field], *value,
            "the frame has the same question: {field}"
        );
    }
    assert_eq!(
        data(event::Event::OperationContinued(asking))["client_actions"],
        expected
    );
}

#[test]
fn a_model_call_shows_neither_prompt_nor_schema() {
    let request = ModelRequest {
        system: vec![SECRET.to_owned()],
        context: Context::Whole,
        also: vec![Part::text(SECRET)],
        tools: Toolset::All,
        model: Some("fast".to_owned()),
        max_tokens: None,
        reply_schema: Some(json!(SECRET)),
        audience: Audience::Hidden,
        sampling: domain::sampling::Sampling::default(),
    };
    let view = data(stepped(
        vec![operation(performer(request))],
        Vec::new(),
        Vec::new(),
    ));
    let expected = json!({ "operation_id": "01".repeat(32), "key": "k", "kind": "model", "step": 0, "model": "fast", "audience": "hidden" });
    assert_eq!(view["started"], json!([expected]));
}

pub(super) fn begun() -> event::RunStarted {
    event::RunStarted::of(
        run(),
        SessionId(Uuid::nil()),
        AgentId(Uuid::nil()),
        DefinitionId("assistant".to_owned()),
        secret_digest(),
        Timestamp(1),
    )
}

#[test]
fn the_first_step_comes_in_frames_behind_the_start_of_its_run() {
    let tool = Performer::Tool {
        component: secret_digest(),
        tool: "look".to_owned(),
        arguments: "{}".to_owned(),
        capabilities: Vec::new(),
    };
    let step = stepped(vec![operation(tool)], Vec::new(), Vec::new());
    let event::Event::RunStepped(first_step) = step.clone() else {
        panic!("a step")
    };
    let with_step = event::RunStarted {
        first_step: Some(first_step),
        ..begun()
    };
    let with_step = event::Event::RunStarted(Box::new(with_step));
    let mut alone = frames_of(event::Event::RunStarted(Box::new(begun())));
    alone.extend(frames_of(step.clone()));
    assert_eq!(alone.len(), 2);
    assert_eq!(frames_of(with_step.clone()), alone);
    assert_eq!(data(with_step)["first_step"], data(step));
}

#[test]
fn a_run_that_started_shows_its_hints_and_the_settings_of_its_replies() {
    let id = |number| Uuid::from_u128(number).to_string();
    let started = |more: Value| {
        let mut run = serde_json::to_value(begun()).unwrap();
        let more = more.as_object().unwrap().clone();
        run.as_object_mut().unwrap().extend(more);
        let event = json!({ "type": "run.started.v1", "data": run });
        data(serde_json::from_value(event).unwrap())
    };
    let plain = started(json!({}));
    assert_eq!(
        (&plain["hints"], &plain["generation"]),
        (&json!([]), &json!({}))
    );
    let shown = started(json!({
        "hints": [{ "note": id(5), "bytes": 9, "untrusted": true }, { "note": id(6), "bytes": 12 }],
        "generation": { "temperature": 0.5, "maxTokens": 300 },
    }));
    let hints = json!([
        { "note_id": id(5), "bytes": 9, "untrusted": true },
        { "note_id": id(6), "bytes": 12, "untrusted": false },
    ]);
    assert_eq!(shown["hints"], hints);
    assert_eq!(
        shown["generation"],
        json!({ "temperature": 0.5, "max_tokens": 300 })
    );
}

#[test]
fn a_run_that_ended_says_how_and_why() {
    let ended = event::RunEnded {
        run: run(),
        session: SessionId(Uuid::nil()),
        end: TurnEnd::Failed,
        code: Some("LIMIT".to_owned()),
        reason: Some("too many steps".to_owned()),
        turn: Some(TurnId(Digest([2; 32]))),
        stopped: Vec::new(),
        said: Vec::new(),
        inputs: Vec::new(),
        compacts: false,
        time: Timestamp(1),
    };
    let expected = json!({ "end": "failed", "code": "LIMIT", "reason": "too many steps", "turn_id": "02".repeat(32), "settled": [], "messages": [] });
    assert_eq!(data(event::Event::RunEnded(ended)), expected);
}

#[test]
fn a_frame_says_that_it_is_ephemeral() {
    let show = |show| {
        let agent = AgentId(Uuid::nil());
        let session = SessionId(Uuid::nil());
        sent(&super::log_frame(
            &Frame {
                agent,
                session,
                run: run(),
                operation: operation_id(),
                attempt: 1,
                seq: 2,
                show,
            },
            None,
        ))
    };
    let (name, data) = show(Show::Text("Hi".to_owned()));
    assert_eq!(
        (
            name.as_str(),
            &data["ephemeral"],
            &data["kind"],
            &data["text"],
            &data["seq"]
        ),
        (
            "delta",
            &json!(true),
            &json!("text"),
            &json!("Hi"),
            &json!(2)
        )
    );
    let (name, data) = show(Show::Discarded);
    assert_eq!(
        (name.as_str(), &data["attempt"]),
        ("attempt-discarded", &json!(1))
    );
}

/// The name and the data of a frame.
fn sent(frame: &impl Serialize) -> (String, Value) {
    let mut frame = serde_json::to_value(frame).unwrap();
    let name = frame["event"].as_str().unwrap().to_owned();
    (name, frame["data"].take())
}

/// The frames of a stored event, by name.
fn frames_of(event: event::Event) -> Vec<(String, Value)> {
    let recorded = recorded(event);
    let frames = super::session_frames(&recorded, None);
    frames.iter().map(sent).collect()
}

#[test]
fn frames_of_a_turn_say_which_inputs_it_answers_and_whose_it_is() {
    let inputs = [InputId(Uuid::from_u128(5)), InputId(Uuid::from_u128(6))];
    let ids = json!(inputs.map(|input| input.to_string()));
    let turn = |inputs: &[InputId], compacts| {
        event::Event::TurnCommitted(event::TurnCommitted {
            session: SessionId(Uuid::nil()),
            turn: TurnNode {
                id: TurnId(Digest([2; 32])),
                parent: None,
                jump: None,
                depth: 1,
                run: run(),
                first_message: 1,
                last_message: 2,
                messages: Vec::new(),
                session_state: Digest([3; 32]),
                end: TurnEnd::Replied,
                usage: Usage::default(),
                models: Vec::new(),
            },
            revision: 1,
            untrusted: false,
            inputs: inputs.to_vec(),
            compacts,
            time: Timestamp(1),
        })
    };
    for (event, names, inputs, compacts) in [
        (
            turn(&inputs, false),
            &["message_complete", "stream_complete"][..],
            &ids,
            false,
        ),
        (
            turn(&[], true),
            &["message_complete", "stream_complete"],
            &json!([]),
            true,
        ),
        (
            ended_with(Vec::new()),
            &["error", "stream_complete"],
            &json!([]),
            false,
        ),
    ] {
        let frames = frames_of(event);
        let found: Vec<&str> = frames.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, names);
        for (name, data) in frames {
            assert_eq!(
                (&data["input_ids"], &data["compaction"]),
                (inputs, &json!(compacts)),
                "{name}"
            );
        }
    }
}

#[test]
fn a_stream_tells_what_a_session_accepts_and_what_of_it_gets_no_turn() {
    let session = SessionId(Uuid::nil());
    let input = InputId(Uuid::from_u128(5));
    let accepted = |message: Option<Draft>| {
        event::Event::InputAccepted(event::InputAccepted {
            user_id: UserId::local(),
            message,
            ..event::InputAccepted::of(session, input, event::Source::Api, Timestamp(1))
        })
    };
    let frames = frames_of(accepted(Some(Draft::text(Role::User, "api", "hello"))));
    let [(name, data)] = frames.as_slice() else {
        panic!("{frames:?}")
    };
    assert_eq!(
        (name.as_str(), &data["message"]["text"], &data["source"]),
        ("message_accepted", &json!("hello"), &json!("api"))
    );
    assert_eq!(
        (&data["input_id"], &data["user_id"], &data["waits_for"]),
        (&json!(input), &json!("local"), &json!("steer"))
    );
    // An opening has no words.
    assert_eq!(frames_of(accepted(None)), []);
    let cancelled = event::Event::InputCancelled(event::InputCancelled {
        input,
        session,
        cancelled_by: UserId::local(),
        reason: None,
        time: Timestamp(1),
    });
    let dead = event::Event::InputDead(event::InputDead {
        input,
        session,
        reason: "host-failed".to_owned(),
        time: Timestamp(1),
    });
    for (event, reason) in [(cancelled, "cancelled"), (dead, "dead")] {
        let frames = frames_of(event);
        let [(name, data)] = frames.as_slice() else {
            panic!("{frames:?}")
        };
        assert_eq!(
            (name.as_str(), &data["input_ids"], &data["reason"]),
            ("message_withdrawn", &json!([input]), &json!(reason))
        );
    }
}

#[test]
fn thinking_is_shown_before_its_message_and_where_it_is_alone() {
    let thought = |text: &str| Part::Opaque {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        value: json!({ "type": "thinking", "thinking": text, "signature": SECRET }),
    };
    let said = |id, parts| {
        let draft = Draft {
            role: Role::Assistant,
            parts,
            origin: "model:m".to_owned(),
            untrusted: false,
            speaker: None,
            answers: None,
        };
        draft.at(id, SALT)
    };
    let heard = vec![
        said(1, vec![thought("first"), thought("then")]),
        said(2, vec![thought("so"), Part::text("Hello.")]),
    ];
    let frames = frames_of(stepped(Vec::new(), Vec::new(), heard));
    let shown: Vec<_> = frames
        .iter()
        .map(|(name, data)| (name.as_str(), &data["message"], &data["content"]))
        .collect();
    assert_eq!(
        shown,
        [
            ("thinking_complete", &json!(1), &json!("first\n\nthen")),
            ("thinking_complete", &json!(2), &json!("so")),
            ("content_complete", &json!(2), &json!("Hello.")),
        ]
    );
    assert!(
        !json!(frames.into_iter().map(|it| it.1).collect::<Vec<_>>())
            .to_string()
            .contains(SECRET)
    );
    let shown = Frame {
        agent: AgentId(Uuid::nil()),
        session: SessionId(Uuid::nil()),
        run: run(),
        operation: operation_id(),
        attempt: 1,
        seq: 0,
        show: Show::Thinking("hm".to_owned()),
    };
    let (name, data) = sent(&super::ephemeral_frame(&shown, None).unwrap());
    assert_eq!(
        (name.as_str(), &data["content"]),
        ("thinking_chunk", &json!("hm"))
    );
}

#[test]
fn another_attempt_at_a_call_voids_what_was_shown_of_the_one_before() {
    let attempted = event::OperationAttempted {
        run: run(),
        operation: operation_id(),
        attempt: 2,
        ended: Vec::new(),
        reserved: Amount::default(),
        drawn: Amount::default(),
        time: Timestamp(1),
    };
    let reported = frames_of(event::Event::OperationAttempted(Box::new(attempted)));
    let [(name, data)] = reported.as_slice() else {
        panic!("{reported:?}")
    };
    assert_eq!(
        (name.as_str(), &data["attempt"], &data["operation_id"]),
        ("content_discarded", &json!(1), &json!("01".repeat(32)))
    );
}

/// An attempt that gave a reply or failed, or one of whose end nothing is known.
fn attempt(is_lost: bool) -> Attempt {
    Attempt {
        provider: if is_lost {
            String::new()
        } else {
            "p".to_owned()
        },
        model: "m".to_owned(),
        usage: None,
        cost_micros: None,
        wall_ms: 3,
        error: Some("lost".to_owned()),
        reserved: None,
    }
}

/// The attempts that are void by an event, each a part of the same call.
fn voided(event: event::Event) -> Vec<u64> {
    let reported = frames_of(event);
    let voided = reported
        .iter()
        .filter(|frame| frame.0 == "content_discarded");
    let attempts = voided.map(|frame| {
        assert_eq!(frame.1["operation_id"], json!("01".repeat(32)));
        frame.1["attempt"].as_u64().unwrap()
    });
    attempts.collect()
}

fn ended_with(stopped: Vec<Settlement>) -> event::Event {
    event::Event::RunEnded(event::RunEnded {
        run: run(),
        session: SessionId(Uuid::nil()),
        end: TurnEnd::Failed,
        code: Some("host-failed".to_owned()),
        reason: None,
        turn: None,
        stopped,
        said: Vec::new(),
        inputs: Vec::new(),
        compacts: false,
        time: Timestamp(1),
    })
}

#[test]
fn what_was_shown_of_a_call_that_is_not_made_again_is_void_with_its_outcome() {
    let work_outcome = |outcome: OperationOutcome, attempts: &[bool]| Settlement {
        attempts: attempts.iter().map(|is_lost| attempt(*is_lost)).collect(),
        ..Settlement::new(operation_id(), outcome, Timestamp(1))
    };
    let cases = [
        (
            "it could not be afforded again",
            work_outcome(OperationOutcome::Cancelled, &[true]),
            vec![0],
        ),
        (
            "its time was up, with another attempt",
            work_outcome(OperationOutcome::TimedOut, &[false, true]),
            vec![0, 1],
        ),
        (
            "it was stopped, after two ends of the host",
            work_outcome(OperationOutcome::Cancelled, &[true, true, true]),
            vec![0, 1, 2],
        ),
        (
            "it replied at its second attempt",
            work_outcome(OperationOutcome::Message { id: 2 }, &[true, false]),
            vec![],
        ),
        (
            "its provider failed, which was told",
            work_outcome(OperationOutcome::Cancelled, &[false]),
            vec![],
        ),
        (
            "it is no call of a model",
            work_outcome(OperationOutcome::Cancelled, &[]),
            vec![],
        ),
    ];
    for (what, settlement, expected) in cases {
        let settled = vec![settlement.clone()];
        assert_eq!(
            voided(event::Event::RunSettled(event::RunSettled {
                run: run(),
                settled
            })),
            expected,
            "{what}"
        );
        assert_eq!(
            voided(stepped(Vec::new(), vec![settlement.clone()], Vec::new())),
            expected,
            "{what}"
        );
        let event::Event::RunStepped(mut cancels) = stepped(Vec::new(), Vec::new(), Vec::new())
        else {
            unreachable!()
        };
        cancels.stopped = vec![settlement.clone()];
        assert_eq!(
            voided(event::Event::RunStepped(cancels)),
            expected,
            "{what}"
        );
        assert_eq!(voided(ended_with(vec![settlement])), expected, "{what}");
    }
}

#[test]
fn what_is_said_from_outside_shows_in_no_event_of_triggers_and_connectors() {
    let trigger_event = event::TriggerEventAccepted {
        name: "push".parse().unwrap(),
        trigger_event: domain::id::TriggerEventId(Uuid::from_u128(5)),
        what: Box::new(
            serde_json::from_value(json!({
                "kind": "webhook", "call_id": "d-1", "path": "", "headers": [], "query": [],
                "payload": { "token": SECRET },
            }))
            .unwrap(),
        ),
        run_by: None,
        next_due: None,
        scheduled: false,
        time: Timestamp(0),
    };
    assert_eq!(
        data(event::Event::TriggerEventAccepted(trigger_event.clone())),
        json!({
            "trigger": "push", "trigger_event_id": Uuid::from_u128(5), "run_by": null,
            "scheduled": false, "next_due_at": null,
            "trigger_event": { "kind": "webhook", "call_id": "d-1" },
        })
    );
    let fired = event::TriggerFired {
        name: "push".parse().unwrap(),
        trigger_event: trigger_event.trigger_event,
        component: Digest([0; 32]),
        messages: vec![event::TriggerMessage {
            target: None,
            text: SECRET.to_owned(),
            key: "k".to_owned(),
        }],
        state: None,
        rejected: None,
        took_us: 7,
        time: Timestamp(0),
    };
    assert_eq!(
        data(event::Event::TriggerFired(fired.clone()))["messages"],
        json!([{ "target": null, "bytes": SECRET.len(), "key": "k" }])
    );
    // What a purge puts in the place of an erased trigger run.
    let erased = event::TriggerFired {
        trigger_event: domain::id::TriggerEventId(Uuid::nil()),
        ..fired
    };
    assert_eq!(data(event::Event::TriggerFired(erased)), Value::Null);
    let message = event::InboundMessage {
        id: trigger_event.trigger_event,
        message: serde_json::from_value(json!({
            "id": "m-1", "sender": "42", "sender_name": SECRET, "chat": "42",
            "said": { "kind": "text", "text": SECRET }, "sent_at": 0,
        }))
        .unwrap(),
    };
    let shown = |what| {
        let connector = "telegram".parse().unwrap();
        let time = Timestamp(0);
        data(event::Event::ConnectorReceived(event::ConnectorReceived {
            connector,
            what,
            time,
        }))
    };
    let message = shown(event::Received::InboundMessage(Box::new(message)));
    assert_eq!(message["inbound_messages"][0]["service_id"], "m-1");
    assert_eq!(message["cursor_moved"], false);
    let cursor = shown(event::Received::Cursor(SECRET.to_owned()));
    assert_eq!(cursor["inbound_messages"], json!([]));
    assert_eq!(cursor["cursor_moved"], true);
}

#[test]
fn an_input_from_outside_says_where_its_reply_goes() {
    let source = event::Source::Connector {
        reply_to: domain::connector::ReplyRoute {
            connector: "telegram".parse().unwrap(),
            chat: "42".to_owned(),
        },
        messages: vec!["m-1".to_owned()],
    };
    let accepted = event::InputAccepted::of(
        SessionId(Uuid::from_u128(2)),
        InputId(Uuid::from_u128(4)),
        source,
        Timestamp(0),
    );
    assert_eq!(
        data(event::Event::InputAccepted(accepted))["source"],
        json!({
            "kind": "connector", "service_ids": ["m-1"],
            "reply_route": { "connector": "telegram", "chat": "42" },
        })
    );
}

/// Every form of every event, as it is stored, is public as the description says.
#[test]
fn every_stored_event_has_its_data_under_its_type_as_described() {
    let description = crate::routes::description();
    let schema = json!({
        "$ref": "#/components/schemas/Event", "components": description["components"],
    });
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap();
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../domain/tests/golden");
    for kind in event::kinds() {
        let file = golden.join(format!("{kind}.json"));
        let payloads: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        for payload in payloads {
            let stored: event::Event =
                serde_json::from_value(json!({ "type": kind, "data": payload })).unwrap();
            let public = json!(super::event(&recorded(stored)));
            assert_eq!(public["type"], *kind);
            assert!(public["data"].is_object(), "{kind}: {public}");
            let errors: Vec<String> = validator
                .iter_errors(&public)
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{kind}: {errors:?}: {public}");
        }
    }
}
