//! The tools by which an agent sets its own triggers: `trigger_set`, `trigger_list` and
//! `trigger_remove`.
//!
//! These tools are the host's own. An agent has them if its capability allow list contains a
//! pattern specific to `triggers.write`: neither a missing list nor `*` offers them. Such a trigger
//! is a schedule with a message by the agent itself, which goes to the session in which it was set.
//! Its messages are marked untrusted: an agent's words are not the user's.

use super::{
    Deliver, ScheduleSpec, SpecFault, TriggerKind, TriggerName, TriggerSpec, TriggerTarget,
};
use crate::access::grant::{PatternList, TRIGGERS};
use crate::access::tool::{EffectClass, ToolDefinition};
use crate::access::user::UserId;
use crate::values::id::{AgentId, SessionId};
use crate::work::queue::QueueOverride;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Sets a trigger, in place of the one with the same name.
pub const TRIGGER_SET: &str = "trigger_set";
/// Lists the triggers that the agent has set for the user.
pub const TRIGGER_LIST: &str = "trigger_list";
/// Removes a trigger.
pub const TRIGGER_REMOVE: &str = "trigger_remove";
/// All of them.
pub const OWN_TOOLS: [&str; 3] = [TRIGGER_LIST, TRIGGER_REMOVE, TRIGGER_SET];
/// The capability that they need.
pub const TRIGGERS_WRITE: &str = "triggers.write";

/// Bytes of the name that an agent gives a trigger: the rest of the full name identifies the owner.
const SHORT_NAME_BYTES_MAX: usize = 40;
/// Hexadecimal digits of a trigger's name that identify its owner.
const OWNER_DIGITS: usize = 16;

/// The code when the agent has set no trigger of this name for the user.
pub const TRIGGER_UNKNOWN: &str = "trigger-not-found";
/// The code when the user has reached the limit of triggers.
pub const TRIGGERS_FULL: &str = "triggers-full";
/// The code in a turn with less authority than a user's own message.
pub const TRIGGERS_NARROWED: &str = "triggers-not-here";

/// A fault in a call, which had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidTrigger(String);

/// The caller of one of the tools, and the context of the call.
#[derive(Debug, Clone, Copy)]
pub struct TriggerCaller<'a> {
    /// The agent.
    pub agent: AgentId,
    /// The user for whom it works.
    pub user: &'a UserId,
    /// The session.
    pub session: SessionId,
}

/// Returns whether a capability allow list grants the tools.
#[must_use]
pub fn are_triggers_granted(allowlist: Option<&PatternList>) -> bool {
    allowlist.is_some_and(|list| list.means(TRIGGERS, TRIGGERS_WRITE))
}

/// Returns the tools, by name. Setting and removing are idempotent: the trigger of a name is as it
/// was set last, or it is removed. Their requirement is no capability of a component, which would
/// include reading.
#[must_use]
pub fn trigger_tools() -> Vec<ToolDefinition> {
    let name = json!({ "type": "string", "description": format!("Its name: 1 to \
        {SHORT_NAME_BYTES_MAX} of a-z, 0-9, `-` and `_`.") });
    let list = ToolDefinition::idempotent(
        TRIGGER_LIST,
        "Lists the triggers that you have set for this user, with the time at which each is due \
         next.",
        &json!({}),
        &[],
    );
    vec![
        ToolDefinition {
            effect: EffectClass::ReadOnly,
            ..list
        },
        ToolDefinition {
            destructive: true,
            ..ToolDefinition::idempotent(
                TRIGGER_REMOVE,
                "Removes a trigger that you have set for this user.",
                &json!({ "name": name }),
                &["name"],
            )
        },
        ToolDefinition::idempotent(
            TRIGGER_SET,
            "Sets a trigger: from then on you get the message in this session whenever it is due. \
             One with the same name is replaced. Give exactly one of `at`, `every` and `cron`.",
            &json!({
                "name": name,
                "message": { "type": "string", "description": "What you want to be told then." },
                "at": { "type": "string", "description": "One time, with its offset, such as \
                    2026-12-15T09:30:00+01:00." },
                "every": { "type": "string", "description": "An interval such as 30m or 24h; 30s \
                    at least." },
                "cron": { "type": "string", "description": "Five fields: minute, hour, day of the \
                    month, month, day of the week." },
                "timeZone": { "type": "string", "description": "The time zone of `cron`, such as \
                    Europe/Berlin; UTC without." },
                "once": { "type": "boolean", "description": "Whether it is over with its first \
                    time; false without." },
            }),
            &["name", "message"],
        ),
    ]
}

impl TriggerCaller<'_> {
    /// Returns the beginning of the names of this agent's triggers.
    #[must_use]
    pub fn prefix(&self) -> String {
        let digits: String = self
            .agent
            .0
            .simple()
            .to_string()
            .chars()
            .take(OWNER_DIGITS)
            .collect();
        format!("{digits}-")
    }

    /// Reads a call of `trigger_set`: the name and the definition of the trigger.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn set(
        &self,
        mut arguments: Map<String, Value>,
    ) -> Result<(TriggerName, TriggerSpec), InvalidTrigger> {
        let name = self.name(arguments.remove("name"))?;
        let message = match arguments.remove("message") {
            Some(Value::String(message)) if !message.trim().is_empty() => message,
            _ => return Err(InvalidTrigger("`message` must be text".to_owned())),
        };
        // Models write `null` for omitted arguments.
        arguments.retain(|_, value| !value.is_null());
        let known = ["at", "every", "cron", "timeZone", "once"];
        if let Some(unknown) = arguments.keys().find(|key| !known.contains(&key.as_str())) {
            let message = format!(
                "`{unknown}` is not an argument of {TRIGGER_SET}; there are: name, message, {}",
                known.join(", ")
            );
            return Err(InvalidTrigger(message));
        }
        let schedule: ScheduleSpec = serde_json::from_value(Value::Object(arguments))
            .map_err(|error| InvalidTrigger(error.to_string()))?;
        let spec = TriggerSpec {
            component: None,
            user: Some(self.user.clone()),
            on: TriggerKind::Schedule(schedule),
            message: Some(message),
            target: TriggerTarget::Session {
                session: self.session,
            },
            targets: BTreeMap::new(),
            configuration: json!({}),
            isolated: false,
            queue: QueueOverride::default(),
            priority: None,
            model: None,
            deliver: Deliver::Last,
            enabled: true,
        };
        spec.check()
            .map_err(|fault: SpecFault| InvalidTrigger(fault.to_string()))?;
        Ok((name, spec))
    }

    /// Reads a call of `trigger_remove`: the name of the trigger.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn remove(&self, mut arguments: Map<String, Value>) -> Result<TriggerName, InvalidTrigger> {
        self.name(arguments.remove("name"))
    }

    /// Returns the name of a trigger, which identifies its owner.
    fn name(&self, given: Option<Value>) -> Result<TriggerName, InvalidTrigger> {
        let given = match given {
            Some(Value::String(given)) if given.len() <= SHORT_NAME_BYTES_MAX => given,
            _ => String::new(),
        };
        let form = || {
            InvalidTrigger(format!(
                "`name` must be 1 to {SHORT_NAME_BYTES_MAX} of a-z, 0-9, `-` and `_`"
            ))
        };
        let short: TriggerName = given.parse().map_err(|_| form())?;
        format!("{}{short}", self.prefix())
            .parse()
            .map_err(|_| form())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn caller(user: &UserId) -> TriggerCaller<'_> {
        TriggerCaller {
            agent: AgentId(Uuid::from_u128(1 << 100)),
            user,
            session: SessionId(Uuid::from_u128(2)),
        }
    }

    fn set(arguments: Value) -> Result<(TriggerName, TriggerSpec), String> {
        let user: UserId = "ada".parse().unwrap();
        let Value::Object(arguments) = arguments else {
            panic!("no arguments");
        };
        caller(&user)
            .set(arguments)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_trigger_speaks_to_its_own_session_for_its_user() {
        let (name, spec) = set(json!({
            "name": "water", "message": "Water the plants.", "every": "24h", "cron": null,
        }))
        .unwrap();
        assert_eq!(name.as_str(), "0000001000000000-water");
        let session = SessionId(Uuid::from_u128(2));
        assert_eq!(spec.target, TriggerTarget::Session { session });
        assert_eq!(spec.user.unwrap().as_str(), "ada");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        for (arguments, says) in [
            (json!({ "name": "a", "every": "1h" }), "`message`"),
            (
                json!({ "name": "A", "message": "a", "every": "1h" }),
                "`name`",
            ),
            (
                json!({ "name": "x".repeat(41), "message": "a", "every": "1h" }),
                "`name`",
            ),
            (json!({ "name": "a", "message": "a", "every": "1s" }), "30"),
            (json!({ "name": "a", "message": "a" }), "exactly one"),
            (
                json!({ "name": "a", "message": "a", "every": "1h", "target": {} }),
                "is not an argument",
            ),
            (
                json!({ "name": "a", "message": "{% x %}", "every": "1h" }),
                "message",
            ),
        ] {
            let refused = set(arguments.clone()).unwrap_err();
            assert!(refused.contains(says), "{arguments}: {refused}");
        }
    }

    #[test]
    fn only_a_pattern_that_is_meant_for_it_grants_the_tools() {
        let list = |patterns: &[&str]| {
            let patterns = patterns.iter().map(|pattern| (*pattern).to_owned());
            PatternList(patterns.collect())
        };
        assert!(!are_triggers_granted(None));
        for (patterns, expected) in [
            (&["*"][..], false),
            (&["*", "triggers.write"][..], true),
            (&["triggers.*"][..], true),
            (&["triggers.read"][..], false),
        ] {
            assert_eq!(
                are_triggers_granted(Some(&list(patterns))),
                expected,
                "{patterns:?}"
            );
        }
    }

    #[test]
    fn the_tools_are_in_the_order_of_their_names() {
        let tools = trigger_tools();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, OWN_TOOLS);
    }
}
