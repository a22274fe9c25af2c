//! Limits on the load of the host as a whole, and on the work that agents give each other.
//!
//! The limits of one turn are set at its agent, those of one component call at the component, those
//! of clients at the server.

use super::finding::Finding;
use super::patterns;
use domain::delegate::CacheLimits;
use domain::grant::PatternList;
use domain::residency::Patience;
use domain::{delegate, direct_message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Limits on the load of the host as a whole, and on the work that agents give each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct LimitsConfig {
    /// Guests (steps of agents and calls of tools) that run at the same time; more wait.
    #[schemars(range(min = 1, max = 1_000), extend("x-read" = "start"))]
    pub(crate) instances_max: u32,
    /// Guests that wait for a slot; more are refused as busy and tried again.
    #[schemars(range(min = 0, max = 100_000), extend("x-read" = "start"))]
    pub(crate) instances_waiting_max: u32,
    /// Milliseconds that a guest waits for a slot before it is refused as busy.
    #[schemars(range(min = 1, max = 600_000), extend("x-read" = "start"))]
    pub(crate) instance_wait_ms_max: u64,
    /// Bytes of all memories and tables of all guests together.
    #[schemars(range(min = 67_108_864, max = 1_099_511_627_776_u64), extend("x-read" = "start"))]
    pub(crate) instances_memory_bytes_max: u64,
    /// Bytes of one component's file.
    #[schemars(range(min = 65_536, max = 268_435_456), extend("x-read" = "start"))]
    pub(crate) component_bytes_max: u64,
    /// Model calls that run at the same time. Users take turns, and in a user's turn the calls for
    /// the most urgent delegations go first. Each provider also has a limit of its own,
    /// `concurrentMax`.
    #[schemars(range(min = 1, max = 10_000), extend("x-read" = "start"))]
    pub(crate) model_calls_max: u32,
    /// Tokens of a turn's limit that are reserved for the reply to a model call, and that the reply
    /// may have, if neither the call nor its model has a limit. A longer reply is shortened to no
    /// less than this when a budget leaves too little for it.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) reserved_tokens: u64,
    /// Milliseconds until a dispatch to another agent is stopped that names no time of its own.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub(crate) dispatch_ms: u64,
    /// Milliseconds that a user has to approve a call that the host asks about (`confirm`). After
    /// that the call has failed.
    #[schemars(range(min = 1_000, max = 2_678_400_000_u64))]
    pub(crate) approval_ms: u64,
    /// Maximum depth of calls between agents. With 1 an agent may call another, which may call
    /// nobody; with 0 nobody calls anybody.
    #[schemars(range(min = 0, max = 5))]
    pub(crate) call_depth_max: u32,
    /// Maximum depth of spawned workers, which continue on their own. With 1 an agent may spawn
    /// workers, which may spawn none; with 0 nobody spawns any.
    #[schemars(range(min = 0, max = 5))]
    pub(crate) spawn_depth_max: u32,
    /// Dispatches of one turn that are open at the same time, detached ones included.
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) children_max: u32,
    /// Dispatches of one tree of agents that are open at the same time. A tree is an agent of a
    /// user with all agents made for its work.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) tree_dispatches_max: u32,
    /// Delegations of one tree of agents that wait until the two limits before leave room for them.
    /// With 0 none waits: what exceeds the limits fails at once.
    #[schemars(range(min = 0, max = 1_000))]
    pub(crate) delegations_queued_max: u32,
    /// Number of times in a row that agents may answer each other with late replies. The next one
    /// becomes a dead letter.
    #[schemars(range(min = 0, max = 1_000))]
    pub(crate) hops_max: u32,
    /// Turns that one message may begin in all, including those for work handed over, late replies
    /// and reminders. The next one is refused, or becomes a dead letter.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) runs_per_message_max: u32,
    /// Sessions that one user opens within a minute, in whichever way. The operator has no such
    /// limit.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) user_sessions_per_minute_max: u64,
    /// Bytes of all data that one user has submitted and that was not purged: messages, files,
    /// answers, settings, imports. The operator has no such limit.
    #[schemars(range(min = 65_536, max = 1_125_899_906_842_624_u64))]
    pub(crate) user_stored_bytes_max: u64,
    /// Bytes of such data that came with one API key, also with a key of the operator's. The host's
    /// own token has no such limit.
    #[schemars(range(min = 65_536, max = 1_125_899_906_842_624_u64))]
    pub(crate) key_stored_bytes_max: u64,
    /// Milliseconds without work after which an agent is shown as sleeping.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub(crate) idle_signal_ms: u64,
    /// Milliseconds without work after which an agent made below another one for a piece of work is
    /// dead. It accepts no more messages, but all of its data can still be read.
    #[schemars(range(min = 1, max = 2_678_400_000_u64))]
    pub(crate) poison_pill_ms: u64,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let runtime = runtime::Config::default();
        let broker = broker::Limits::default();
        Self {
            instances_max: runtime.instances_max,
            instances_waiting_max: u32::try_from(runtime.wait_max).unwrap_or(u32::MAX),
            instance_wait_ms_max: runtime.wait_ms_max,
            instances_memory_bytes_max: runtime.process_memory_bytes_max,
            component_bytes_max: runtime.component_bytes_max as u64,
            model_calls_max: u32::try_from(broker.model_calls_max).unwrap_or(u32::MAX),
            reserved_tokens: broker.reserved_tokens,
            dispatch_ms: broker.dispatch_ms,
            approval_ms: broker.approval_ms,
            call_depth_max: broker.dispatch.call_depth_max,
            spawn_depth_max: broker.dispatch.spawn_depth_max,
            children_max: broker.dispatch.children_max,
            tree_dispatches_max: broker.dispatch.tree_dispatches_max,
            delegations_queued_max: broker.dispatch.delegations_queued_max,
            hops_max: broker.dispatch.hops_max,
            runs_per_message_max: broker.dispatch.runs_per_message_max,
            user_sessions_per_minute_max: broker.users.sessions_per_minute_max,
            user_stored_bytes_max: broker.users.stored_bytes_max,
            key_stored_bytes_max: broker.users.key_stored_bytes_max,
            idle_signal_ms: broker.patience.idle_signal_ms,
            poison_pill_ms: broker.patience.poison_pill_ms,
        }
    }
}

impl LimitsConfig {
    /// Returns the part that the runtime enforces.
    pub(crate) fn runtime(&self, cache_dir: PathBuf) -> runtime::Config {
        runtime::Config {
            cache_dir,
            instances_max: self.instances_max,
            wait_max: usize::try_from(self.instances_waiting_max).unwrap_or(usize::MAX),
            wait_ms_max: self.instance_wait_ms_max,
            process_memory_bytes_max: self.instances_memory_bytes_max,
            component_bytes_max: usize::try_from(self.component_bytes_max).unwrap_or(usize::MAX),
            ..runtime::Config::default()
        }
    }

    /// Returns the part that the broker enforces.
    pub(crate) fn broker(&self) -> broker::Limits {
        broker::Limits {
            model_calls_max: usize::try_from(self.model_calls_max).unwrap_or(usize::MAX),
            reserved_tokens: self.reserved_tokens,
            dispatch_ms: self.dispatch_ms,
            approval_ms: self.approval_ms,
            dispatch: domain::dispatch::DispatchLimits {
                call_depth_max: self.call_depth_max,
                spawn_depth_max: self.spawn_depth_max,
                children_max: self.children_max,
                tree_dispatches_max: self.tree_dispatches_max,
                delegations_queued_max: self.delegations_queued_max,
                hops_max: self.hops_max,
                runs_per_message_max: self.runs_per_message_max,
            },
            users: broker::UserLimits {
                sessions_per_minute_max: self.user_sessions_per_minute_max,
                stored_bytes_max: self.user_stored_bytes_max,
                key_stored_bytes_max: self.key_stored_bytes_max,
            },
            patience: Patience {
                idle_signal_ms: self.idle_signal_ms,
                poison_pill_ms: self.poison_pill_ms,
            },
            ..broker::Limits::default()
        }
    }
}

/// Settings of the host's own tools with which agents reach each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct AgentToolsConfig {
    /// The tools that no agent has, whatever its lists say: `agents_message`, `dispatch_to_agent`,
    /// `reply_to_caller` and `delegate`, or patterns such as `agents_*`. Tools of components are
    /// not switched off by it.
    pub(crate) disabled: PatternList,
}

/// Settings of delegations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct DelegationConfig {
    /// The cache for results of operations that only read. Off without it. A result is used again
    /// for the same operation and parameters of the same agent, user and authority, until it is too
    /// old, something is written for that user, a session or an agent is purged, or the
    /// configuration or a component changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<CacheLimits>,
}

impl AgentToolsConfig {
    /// Finds patterns that match none of these tools.
    pub(crate) fn check(&self) -> Vec<Finding> {
        let known: BTreeSet<&str> = direct_message::NAMES
            .into_iter()
            .chain([delegate::NAME])
            .collect();
        let what = "tool of the host's that reaches agents";
        patterns::nothing("agentTools.disabled", Some(&self.disabled), what, &known)
    }
}

#[cfg(test)]
mod tests {
    use super::AgentToolsConfig;
    use serde_json::json;

    #[test]
    fn patterns_that_switch_nothing_off_are_told() {
        let check = |disabled| {
            let config: AgentToolsConfig =
                serde_json::from_value(json!({ "disabled": disabled })).unwrap();
            config.check().len()
        };
        for (disabled, findings) in [
            (json!([]), 0),
            (json!(["agents_*", "delegate"]), 0),
            (json!(["agent_message"]), 1),
            (json!(["read_file"]), 1),
        ] {
            assert_eq!(check(disabled.clone()), findings, "{disabled}");
        }
    }
}
