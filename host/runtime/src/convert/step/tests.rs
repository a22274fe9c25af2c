//! Steps that go over a limit or break a rule, and the messages of their refusals.

use super::*;
use crate::bindings::agent::agent_host::plugin::types;
use crate::convert::Unacceptable;

fn replying(effects: Vec<agent::Effect>) -> agent::StepResult {
    agent::StepResult {
        decision: agent::Decision::Reply(vec![types::Part::Text("hi".into())]),
        effects,
        memo: None,
    }
}

fn waiting(key: &str, work: agent::Work) -> agent::StepResult {
    let start = vec![agent::Operation {
        key: key.into(),
        work,
    }];
    let wait = agent::Wait {
        start,
        cancel: Vec::new(),
        until: agent::Until::All,
        hear: false,
    };
    agent::StepResult {
        decision: agent::Decision::Wait(wait),
        effects: Vec::new(),
        memo: None,
    }
}

fn check(result: agent::StepResult, expected: &str) {
    let Unacceptable(detail) = step_result(result).unwrap_err();
    assert!(
        detail.contains(expected),
        "{detail} does not contain {expected}"
    );
}

#[test]
fn what_is_over_a_limit_is_refused_with_the_field_and_the_limit() {
    check(
        replying(vec![
            agent::Effect::Remember(String::new());
            EFFECTS_MAX + 1
        ]),
        "`effects` are 65; 64 at most",
    );
    check(
        replying(vec![agent::Effect::SessionState(
            "0".repeat(SESSION_STATE_BYTES_MAX + 1),
        )]),
        "`effects[0]` is 262145 bytes",
    );
    check(
        replying(vec![agent::Effect::Remember("x".repeat(2 << 20)); 3]),
        "`effects[1]` brings what was returned over",
    );
    check(
        waiting("", agent::Work::TimerMs(1)),
        "`decision.wait.start[0].key` is 0 bytes",
    );
    check(
        waiting("t", agent::Work::TimerMs(u64::MAX)),
        "`decision.wait.start[0].work` is 18446744073709551615",
    );
    let memo = Some(turn::Memo {
        format: 1,
        bytes: vec![0; MEMO_BYTES_MAX + 1],
    });
    check(
        agent::StepResult {
            memo,
            ..replying(Vec::new())
        },
        "`memo.bytes` is 65537 bytes long; 65536 at most",
    );
}

#[test]
fn text_that_is_not_json_is_refused_where_json_belongs() {
    check(
        replying(vec![agent::Effect::Prefer("[]".into())]),
        "`effects[0]` is not a JSON object",
    );
    check(
        replying(vec![agent::Effect::SessionState("{".into())]),
        "`effects[0]` is not JSON",
    );
    let own = agent::OwnCall {
        name: "t".into(),
        arguments: "no".into(),
    };
    check(
        waiting("k", agent::Work::Tool(agent::Call::Own(own))),
        "`decision.wait.start[0].work.arguments` is not JSON",
    );
    let event = agent::OwnEvent {
        name: "Upper".into(),
        data: "{}".into(),
    };
    check(
        replying(vec![agent::Effect::Emit(event)]),
        "`effects[0].name` is not 1 to 64",
    );
}

#[test]
fn a_guest_cannot_write_a_call_or_an_opaque_part_into_the_thread() {
    let call = types::Part::Call(types::ModelCall {
        index: 0,
        name: "t".into(),
        arguments: "{}".into(),
    });
    for part in [call, types::Part::Opaque("sha256:0".into())] {
        check(
            replying(vec![agent::Effect::Say(vec![part])]),
            "which a guest cannot write",
        );
    }
    let blob = types::Part::Blob(types::Blob {
        handle: "x".into(),
        media_type: "text/plain".into(),
        size: 1,
    });
    check(
        replying(vec![agent::Effect::Say(vec![blob])]),
        "`effects[0][0]` names no blob",
    );
}

#[test]
fn an_acceptable_result_becomes_the_same_in_the_hosts_terms() {
    let result = step_result(waiting("k", agent::Work::TimerMs(5))).unwrap();
    let start = vec![Request {
        key: "k".into(),
        work: Work::Timer { ms: 5 },
    }];
    let wait = Wait {
        start,
        cancel: Vec::new(),
        until: Until::All,
        hear: false,
    };
    assert_eq!(
        result,
        StepResult {
            decision: Decision::Wait(wait),
            effects: Vec::new(),
            memo: None
        }
    );
}
