//! Tasks that come to nothing without a word of the tool's own.

use super::task;
use crate::Coder;
use agent_host_sdk::harness::Scene;
use agent_host_sdk::{Agent as _, Decision, Effect, Outcome, Settlement, Step};
use serde_json::{Value, json};

fn denied(key: &str) -> Settlement {
    Settlement {
        key: key.to_owned(),
        outcome: Outcome::Denied,
    }
}

/// The state that a step leaves.
fn left_by(step: &Step) -> Value {
    let state = step.effects.iter().find_map(|effect| match effect {
        Effect::SessionState(state) => Some(state.clone()),
        _ => None,
    });
    state.unwrap_or_else(|| panic!("{step:?}"))
}

#[test]
fn what_the_coder_may_not_reach_is_named_with_the_operation() {
    let asked = task("analyze_code", &json!({ "path": "/w/out" }));
    let scene = Scene::new()
        .said(&asked)
        .tool_named("list_files")
        .tool_named("read_file");
    let begun = Coder.on_said(scene.turn(), &[1]);
    let scene = scene.state(left_by(&begun));
    // What cannot be listed is taken for a file.
    let reading = Coder.on_settled(scene.turn(), &[denied("list")]);
    let scene = scene.state(left_by(&reading));
    let ended = Coder.on_settled(scene.turn(), &[denied("read-0-0")]);
    let reason = "`analyze_code` of `/w/out`: the call is not allowed".to_owned();
    assert_eq!(ended.decision, Decision::Fail(reason));

    let scene = Scene::new()
        .said("a task")
        .state(json!(crate::Work::Execute));
    let ended = Coder.on_settled(scene.turn(), &[denied("run")]);
    let reason = "`execute_code`: the call is not allowed".to_owned();
    assert_eq!(ended.decision, Decision::Fail(reason));
}
