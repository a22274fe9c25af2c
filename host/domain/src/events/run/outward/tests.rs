//! Given what happens in a run, then people outside are told this.

use super::*;
use crate::access::tool::{ClientAction, EffectClass};
use crate::agents::definition::DefinitionId;
use crate::events::event::RunStarted;
use crate::thread::cut_off::NO_ANSWER;
use crate::thread::message::Draft;
use crate::values::digest::{Digest, Salt};
use crate::values::id::{AgentId, RunId, SessionId, TriggerEventId, TurnId};
use crate::work::approval::{Approval, Exact};
use crate::work::basis::{Basis, Documents, LimitsLeft};
use crate::work::budget::Amount;
use crate::work::connector::ReplyRoute;
use crate::work::operation::{CallUsage, Pause, Performer, ReplyTo};
use crate::work::step::{Until, Wait};
use crate::work::trigger::Quiet;
use serde_json::json;
use uuid::Uuid;

const NOW: Timestamp = Timestamp(1_000);

fn run() -> Run {
    Run::begin(RunStarted {
        base_message: 4,
        ..RunStarted::of(
            RunId(Uuid::from_u128(1)),
            SessionId(Uuid::from_u128(2)),
            AgentId(Uuid::from_u128(3)),
            DefinitionId("assistant".to_owned()),
            Digest::of(b"component"),
            NOW,
        )
    })
}

fn stepped(decision: Decision) -> RunStepped {
    let none = Digest::of(b"");
    let basis = Basis {
        files: 0,
        documents: Documents::all_of(none, none),
        base: None,
        head: 4,
        session_state: none,
        now: NOW,
        left: LimitsLeft {
            steps: 1,
            tool_calls: 1,
            tokens: 1,
        },
        seed: none,
    };
    RunStepped {
        run: RunId(Uuid::from_u128(1)),
        step: 0,
        basis,
        settled: Vec::new(),
        claimed: Vec::new(),
        news: Vec::new(),
        hops: 0,
        heard: Vec::new(),
        history_untrusted: false,
        decision,
        effects: Vec::new(),
        memo: None,
        said: Vec::new(),
        started: Vec::new(),
        stopped: Vec::new(),
        answers: none,
        usage: CallUsage::default(),
        ledger: Vec::new(),
        time: NOW,
    }
}

fn said(id: MessageId, role: Role, text: &str) -> Message {
    let origin = if role == Role::Assistant {
        "model:m"
    } else {
        "api"
    };
    Draft::text(role, origin, text).at(id, Salt::default())
}

fn reply() -> Decision {
    Decision::Reply { parts: Vec::new() }
}

fn reported(stepped: RunStepped) -> Vec<Outward> {
    outward(&run(), &Event::RunStepped(Box::new(stepped)))
}

fn words(message: MessageId, text: &str) -> Outward {
    Outward::Words {
        message,
        is_new: true,
        text: text.to_owned(),
    }
}

fn route(chat: &str) -> ReplyRoute {
    ReplyRoute {
        connector: "telegram".parse().unwrap(),
        chat: chat.to_owned(),
    }
}

fn written(chat: &str) -> Source {
    Source::Connector {
        reply_to: route(chat),
        messages: vec!["1".to_owned()],
    }
}

fn triggered(chat: Option<&str>, quiet: Option<Quiet>) -> Source {
    Source::Trigger {
        trigger: "morning".parse().unwrap(),
        trigger_event: TriggerEventId(Uuid::from_u128(5)),
        quiet,
        reply_to: chat.map(route),
    }
}

fn reminder() -> Source {
    serde_json::from_value(json!({ "kind": "reminder", "due": 1, "depth": 0 })).unwrap()
}

fn handed_over(reply_to: Option<ReplyTo>) -> Source {
    let dispatch = json!({
        "kind": "dispatch", "reply_to": reply_to, "from": "/alice/agent/a", "deadline": null,
        "depth": 1, "hops": 0, "priority": "normal",
    });
    serde_json::from_value(dispatch).unwrap()
}

fn chat(chat: &str, is_awaited: bool, quiet: Option<Quiet>) -> Destination {
    Destination::Chat(Recipient {
        route: route(chat),
        is_awaited,
        quiet,
    })
}

#[test]
fn the_chat_that_wrote_last_hears_the_reply() {
    let quiet = Some(Quiet { chars_max: 300 });
    let caller = ReplyTo {
        run: RunId(Uuid::from_u128(7)),
        operation: OperationId::mint(RunId(Uuid::from_u128(7)), 0, "a"),
        attached: true,
    };
    for (sources, expected) in [
        (vec![], Destination::Nobody),
        (vec![Source::Api], Destination::Nobody),
        (vec![written("1")], chat("1", true, None)),
        (vec![written("1"), written("2")], chat("2", true, None)),
        (vec![written("1"), Source::Api], chat("1", true, None)),
        (vec![Source::Api, written("1")], chat("1", true, None)),
        (vec![triggered(Some("3"), None)], chat("3", false, None)),
        (vec![triggered(None, None)], Destination::Nobody),
        (vec![triggered(Some("3"), quiet)], chat("3", false, quiet)),
        (
            vec![triggered(Some("3"), quiet), triggered(Some("4"), None)],
            chat("4", false, None),
        ),
        (
            vec![triggered(Some("4"), None), triggered(Some("3"), quiet)],
            chat("3", false, None),
        ),
        (
            vec![written("1"), triggered(Some("3"), quiet)],
            chat("1", true, None),
        ),
        (
            vec![triggered(Some("3"), quiet), written("1")],
            chat("1", true, None),
        ),
        (vec![reminder()], Destination::Session),
        (vec![reminder(), Source::Api], Destination::Nobody),
        (vec![Source::Api, reminder()], Destination::Nobody),
        (
            vec![reminder(), triggered(None, None)],
            Destination::Session,
        ),
        (vec![handed_over(None)], Destination::Nobody),
        (vec![handed_over(Some(caller))], Destination::Caller(caller)),
    ] {
        assert_eq!(Source::destination(&sources), expected, "{sources:?}");
    }
}

#[test]
fn a_turn_tells_its_reply_and_what_was_said_on_the_way() {
    let mut replied = stepped(reply());
    replied.heard = vec![said(5, Role::User, "hello"), said(6, Role::Assistant, "hi")];
    assert_eq!(reported(replied), [words(6, "hi")]);
    // What a model says before it calls a tool is not told; what the agent says is.
    let mut going_on = stepped(Decision::Wait(Wait {
        start: Vec::new(),
        cancel: Vec::new(),
        until: Until::Any,
        hear: true,
    }));
    going_on.heard = vec![said(5, Role::Assistant, "let me look")];
    going_on.said = vec![
        said(6, Role::Tool, "skipped"),
        said(7, Role::Assistant, "looking"),
    ];
    assert_eq!(reported(going_on), [words(7, "looking")]);
    let mut nothing = stepped(reply());
    nothing.said = vec![said(5, Role::Assistant, "  ")];
    // A person who waits for a reply hears that there is none.
    assert_eq!(reported(nothing), [words(5, NO_ANSWER)]);
    let completed = stepped(Decision::Complete { summary: json!({}) });
    assert_eq!(reported(completed), []);
}

#[test]
fn a_reply_that_stood_in_the_thread_before_is_marked_as_such() {
    let mut run = run();
    run.messages.push(Arc::new(said(5, Role::Assistant, "hi")));
    let replied = Event::RunStepped(Box::new(stepped(reply())));
    let expected = Outward::Words {
        message: 5,
        is_new: false,
        text: "hi".to_owned(),
    };
    assert_eq!(outward(&run, &replied), [expected]);
}

#[test]
fn files_of_a_reply_are_told_as_a_note() {
    let mut replied = stepped(reply());
    let mut message = said(5, Role::Assistant, "see");
    message.parts.push(Part::Blob {
        digest: Digest::of(b"x"),
        media_type: "image/png".to_owned(),
        size: 1,
    });
    replied.said = vec![message];
    let text = "see\n\n[1 file is where the conversation is kept.]";
    assert_eq!(reported(replied), [words(5, text)]);
}

fn operation(performer: Performer) -> Operation {
    Operation {
        id: OperationId::mint(RunId(Uuid::from_u128(1)), 0, "q"),
        key: "q".to_owned(),
        step: 0,
        place: 0,
        performer,
        effect: EffectClass::ReadOnly,
        time_limit_ms: None,
        deadline: None,
        answers: None,
        in_thread: false,
        reserved: Amount::default(),
        approval: None,
    }
}

#[test]
fn questions_are_told_under_the_ids_that_answer_them() {
    let action = ClientAction::of("free_text", json!({ "prompt": "Which?" }));
    let client = operation(Performer::Client {
        action: action.clone(),
    });
    let mut tool = operation(Performer::Timer { due: NOW });
    let exact = Exact {
        operation: tool.id,
        component: Digest::of(b"tool"),
        tool: "delete_file",
        arguments: "{}",
    };
    tool.approval = Some(Box::new(Approval::new(&exact, "files", "assistant", NOW)));
    let id = tool.id;
    let mut asking = stepped(reply());
    asking.started = vec![client, tool];
    let reported = reported(asking);
    let [
        Outward::Question { question, asked },
        Outward::Question {
            question: approval, ..
        },
    ] = reported.as_slice()
    else {
        panic!("{reported:?}")
    };
    assert_eq!((question, asked.text.as_str()), (&id, "Which?"));
    assert_eq!(*approval, id.approval());
    let continued = Event::OperationContinued(Continuation {
        operation: id,
        segment: 3,
        state: Vec::new(),
        pause: Pause::Asking {
            tool: "notes_add".to_owned(),
            action: Box::new(action),
            until: None,
            since: NOW,
        },
        active_ms: 0,
        call: None,
    });
    let later = outward(&run(), &continued);
    let [Outward::Question { question, .. }] = later.as_slice() else {
        panic!("{later:?}")
    };
    assert_eq!(*question, id.question(3));
}

fn ended(end: TurnEnd, code: &str) -> Vec<Outward> {
    let ended = RunEnded {
        run: RunId(Uuid::from_u128(1)),
        session: SessionId(Uuid::from_u128(2)),
        end,
        code: Some(code.to_owned()),
        reason: Some("the tool trapped at 0x1234".to_owned()),
        turn: None,
        stopped: Vec::new(),
        said: Vec::new(),
        inputs: Vec::new(),
        compacts: false,
        time: NOW,
    };
    outward(&run(), &Event::RunEnded(ended))
}

#[test]
fn a_failure_is_a_sentence_and_only_the_agents_own_reason_is_in_it() {
    let text = |code: &str| match ended(TurnEnd::Failed, code).as_slice() {
        [Outward::Failure { text }] => text.clone(),
        other => panic!("{other:?}"),
    };
    assert!(text(AGENT_FAILED).ends_with(": the tool trapped at 0x1234"));
    for code in ["step-failed", TIMED_OUT, LIMIT_REACHED, "provider-error"] {
        let text = text(code);
        assert!(
            text.starts_with("Sorry") && !text.contains("0x1234"),
            "{text}"
        );
    }
    assert!(text(LIMIT_REACHED).contains("more than one answer may use"));
    assert_eq!(text(MESSAGE_TIMED_OUT), text(TIMED_OUT));
    for end in [TurnEnd::Aborted, TurnEnd::Replied, TurnEnd::Completed] {
        assert_eq!(ended(end, ""), []);
    }
}

#[test]
fn a_heartbeat_that_finds_nothing_is_heard_by_nobody() {
    let run = run();
    let queued = |outward: &Outward, quiet| {
        let recipient = Recipient {
            route: route("1"),
            is_awaited: false,
            quiet,
        };
        outward.queued(&recipient, &run.started, NOW)
    };
    let quiet = Some(Quiet { chars_max: 300 });
    let nothing = words(5, "HEARTBEAT_OK all is well");
    assert_eq!(queued(&nothing, quiet), None);
    assert!(queued(&nothing, None).is_some());
    let something = words(5, "The disk is full.");
    assert_eq!(queued(&something, quiet).unwrap().text, "The disk is full.");
    let failure = Outward::Failure {
        text: "Sorry".to_owned(),
    };
    assert_eq!(queued(&failure, quiet), None);
    assert!(queued(&failure, None).is_some());
}

#[test]
fn each_thing_that_is_told_has_an_id_of_its_own() {
    let run = run();
    let recipient = |chat: &str| Recipient {
        route: route(chat),
        is_awaited: true,
        quiet: None,
    };
    let id = |outward: &Outward, chat: &str| {
        let queued = outward.queued(&recipient(chat), &run.started, NOW);
        queued.unwrap().outbound_message
    };
    let question = OperationId::mint(run.started.run, 0, "q");
    let all = [
        words(5, "a"),
        words(6, "a"),
        Outward::Failure {
            text: "a".to_owned(),
        },
        Outward::Question {
            question,
            asked: Outbound::text("a").unwrap(),
        },
    ];
    let mut ids: Vec<OutboundMessageId> = all.iter().map(|outward| id(outward, "1")).collect();
    ids.extend(all.iter().map(|outward| id(outward, "2")));
    let input = InputId(Uuid::from_u128(9));
    for time in [NOW, Timestamp(2_000)] {
        let session = run.started.session;
        let dead = OutboundMessageQueued::of_dead(&recipient("1"), session, input, time).unwrap();
        ids.push(dead.outbound_message);
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
    assert_eq!(id(&all[0], "1"), id(&words(5, "another text"), "1"));
    assert_ne!(ids[0].chunk_key(0), ids[0].chunk_key(1));
    let again = ids[0].chunk_key_after(0, "w1");
    assert!(again.starts_with(&ids[0].chunk_key(0)) && again != ids[0].chunk_key(0));
    assert_ne!(again, ids[0].chunk_key_after(0, "w2"));
}

#[test]
fn a_run_that_compacts_its_thread_tells_nothing() {
    let mut compacting = run();
    let compaction = json!({
        "summarized_through": TurnId(Digest::of(b"turn")), "through_message": 4,
        "tokens_before": 1, "kept_tokens": 1, "summary_tokens_max": 1,
    });
    compacting.started.compacts = Some(serde_json::from_value(compaction).unwrap());
    let mut replied = stepped(reply());
    replied.said = vec![said(5, Role::Assistant, "a summary")];
    let event = Event::RunStepped(Box::new(replied));
    assert_eq!(outward(&compacting, &event), []);
}
