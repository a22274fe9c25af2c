//! The host's rules for a step, as far as they can be checked without a host.

use crate::content::{MessageId, Part};
use crate::operation::{Call, Toolset, Work};
use crate::step::{Decision, Effect, Step};
use crate::tool::ToolDefinition;
use crate::turn::View;
use agent_host_shapes::limits::step::{
    EFFECTS_MAX, KEY_BYTES_MAX, MEMO_BYTES_MAX, OPEN_OPERATIONS, SESSION_STATE_BYTES_MAX,
};
use agent_host_shapes::limits::tool::TOOLS_MAX;
use agent_host_shapes::{is_name, widget};
use std::collections::BTreeSet;

/// The keys, calls and questions that one turn has used so far.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) keys: BTreeSet<String>,
    pub(super) calls: BTreeSet<(MessageId, u32)>,
    /// Keys of questions to the user.
    pub(super) questions: BTreeSet<String>,
}

/// Panics when a step breaks a rule.
pub(super) fn check_step(
    step: &Step,
    view: &dyn View,
    used: &Used,
    open: usize,
    memo_formats: &[u32],
) {
    assert!(
        step.effects.len() <= EFFECTS_MAX,
        "a step has {EFFECTS_MAX} effects at most"
    );
    for effect in &step.effects {
        check_effect(effect, used);
    }
    if let Some(memo) = &step.memo {
        assert!(
            memo.bytes.len() <= MEMO_BYTES_MAX,
            "a memo has {MEMO_BYTES_MAX} bytes at most"
        );
        assert!(
            memo_formats.contains(&memo.format),
            "the memo's format {} is not among those that the description lists: {memo_formats:?}",
            memo.format
        );
    }
    match &step.decision {
        Decision::Wait(wait) => {
            let open = open + wait.start.len();
            assert!(
                open > 0 || wait.hear,
                "a step that starts nothing, with nothing open and without `hear`, waits for ever"
            );
            assert!(
                open <= OPEN_OPERATIONS as usize,
                "at most {OPEN_OPERATIONS} operations are open at the same time"
            );
            let mut keys = used.keys.clone();
            for operation in &wait.start {
                let key = &operation.key;
                assert!(
                    (1..=KEY_BYTES_MAX).contains(&key.len()),
                    "the key `{key}` has not 1 to {KEY_BYTES_MAX} bytes"
                );
                assert!(
                    keys.insert(key.clone()),
                    "the key `{key}` was used in this turn before"
                );
                check_work(&operation.work, view, used);
            }
        }
        Decision::Reply(parts) => check_parts(parts),
        Decision::Complete(_) | Decision::Fail(_) => {}
    }
}

fn check_effect(effect: &Effect, used: &Used) {
    match effect {
        Effect::Say(parts) => check_parts(parts),
        Effect::Prefer(preferences) | Effect::PreferForUser(preferences) => {
            assert!(preferences.is_object(), "preferences are a JSON object")
        }
        Effect::SessionState(state) => {
            let bytes = state.to_string().len();
            assert!(
                bytes <= SESSION_STATE_BYTES_MAX,
                "the session's state has {SESSION_STATE_BYTES_MAX} bytes at most"
            );
        }
        Effect::Emit { name, data } => {
            assert!(is_name(name, b".-"), "`{name}` is not a name for an event");
            assert!(data.is_object(), "an event's payload is a JSON object");
        }
        Effect::RecordItem(item) => {
            if let Some(key) = &item.asked {
                assert!(
                    used.questions.contains(key),
                    "the item names the operation `{key}`, which asked the user nothing in this \
                     turn"
                );
            }
        }
        Effect::Remember(_) | Effect::Schedule { .. } => {}
    }
}

fn check_parts(parts: &[Part]) {
    let hosts_own = |part: &Part| matches!(part, Part::Call(_) | Part::Opaque(_));
    assert!(
        !parts.iter().any(hosts_own),
        "a plugin never writes calls or opaque parts"
    );
}

fn check_work(work: &Work, view: &dyn View, used: &Used) {
    match work {
        Work::Model(request) => {
            check_parts(&request.also);
            if let Toolset::Named(names) = &request.tools {
                let known = view.tool_names();
                for name in names {
                    assert!(
                        known.contains(name),
                        "the agent may not use the tool `{name}`, only {known:?}"
                    );
                }
            }
        }
        Work::Tool(Call::OfModel { message, index }) => {
            let said = view.message(*message);
            let there = said.is_some_and(|said| said.calls().any(|call| call.index == *index));
            assert!(there, "message {message} has no call {index}");
            assert!(
                !used.calls.contains(&(*message, *index)),
                "call {index} of message {message} was carried out before"
            );
        }
        Work::Tool(Call::Own { arguments, .. }) => assert!(
            arguments.is_object(),
            "a tool's arguments are a JSON object"
        ),
        Work::Client(action) => {
            if let Err(fault) = widget::check(&action.widget, &action.props) {
                panic!("the widget `{}` cannot be shown: {fault}", action.widget);
            }
        }
        Work::Agent(dispatch) => check_parts(&dispatch.content),
        Work::Recall { .. } | Work::TimerMs(_) => {}
    }
}

/// Panics when definitions break a rule.
pub(super) fn check_definitions(definitions: &[ToolDefinition]) {
    assert!(
        definitions.len() <= TOOLS_MAX,
        "a component offers {TOOLS_MAX} tools at most"
    );
    let mut names = BTreeSet::new();
    for definition in definitions {
        let name = &definition.name;
        assert!(is_name(name, b"_"), "`{name}` is not a name for a tool");
        assert!(
            names.insert(name.clone()),
            "there are two tools named `{name}`"
        );
        let kind = definition
            .arguments
            .get("type")
            .and_then(|kind| kind.as_str());
        assert_eq!(
            kind,
            Some("object"),
            "the arguments of `{name}` are not an object"
        );
    }
}
