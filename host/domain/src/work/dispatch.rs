//! The limits on work that one agent hands to another. They bound the depth of nested calls, the
//! amount of open work, and the length of an exchange between agents.
//!
//! Every dispatch is checked here, whether a call of one of the host's tools or an operation of the
//! agent's own. It is an edge of one of two kinds. A *call* is one whose caller waits, or whose
//! target is an agent in its own right. A *spawn* is a worker made for the work, which runs
//! independently. Each kind has its own depth. A refused dispatch settles at once as an ordinary
//! failure that names the limit, so that the agent can react.

pub mod blocked;
pub mod waits;

use crate::work::step::Failure;

/// The code of every refusal.
const CODE: &str = "limit-reached";

/// Limits on the work that agents hand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchLimits {
    /// The most levels of nested calls. With 1 an agent may call another, which may not call a
    /// third; with 0 no agent calls another.
    pub call_depth_max: u32,
    /// The most levels of workers that run independently. With 1 an agent may spawn workers, which
    /// may not spawn others.
    pub spawn_depth_max: u32,
    /// Open dispatches of one run: work that it handed over, detached or not, and that has not
    /// ended.
    pub children_max: u32,
    /// The most open dispatches of one tree of agents. A tree is a user's agent with all agents
    /// that were made for its work.
    pub tree_dispatches_max: u32,
    /// The most delegations of one tree of agents that wait for room within the two limits before.
    /// With 0 they are refused instead of waiting.
    pub delegations_queued_max: u32,
    /// The most hops of one conversation between agents. A late reply is one hop more than the work
    /// that it replies to. Its work was detached, or its caller no longer waits. Handed-over work
    /// has the hops of the run that hands it over. A message of a user starts at zero.
    pub hops_max: u32,
    /// The most turns that follow from one message: handed-over work, late replies and reminders
    /// included.
    pub runs_per_message_max: u32,
}

impl Default for DispatchLimits {
    fn default() -> Self {
        Self {
            call_depth_max: 1,
            spawn_depth_max: 3,
            children_max: 5,
            tree_dispatches_max: 8,
            delegations_queued_max: 32,
            hops_max: 16,
            runs_per_message_max: 256,
        }
    }
}

/// The kind of edge between the agent that hands work over and the agent that does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// A caller waits for it, or an existing agent does it.
    Call,
    /// A worker does it, which is made for it and runs independently.
    Spawn,
}

/// Number of edges of each kind above a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Calls.
    pub call: u32,
    /// Spawns.
    pub spawn: u32,
}

/// The state before a dispatch, for the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DispatchState {
    /// The depth of the run that asks for the dispatch.
    pub depth: Depth,
    /// Its open dispatches.
    pub of_run: u64,
    /// The open dispatches of its tree of agents, its own included.
    pub of_tree: u64,
    /// Turns that its message has begun so far, directly or indirectly, this one included.
    pub of_message: u64,
}

impl DispatchLimits {
    /// Returns the depth of the work after a dispatch over such an edge.
    ///
    /// # Errors
    /// The limit that it would exceed. An exceeded depth is permanent; an exceeded number may pass.
    pub fn admit(&self, status: DispatchState, edge: Edge) -> Result<Depth, Failure> {
        let Self {
            call_depth_max,
            spawn_depth_max,
            children_max,
            tree_dispatches_max,
            ..
        } = self;
        let Depth { call, spawn } = status.depth;
        let (depth, limit, too_deep) = match edge {
            Edge::Call => (
                Depth {
                    call: call + 1,
                    spawn,
                },
                ("callDepthMax", *call_depth_max),
                (call >= *call_depth_max).then(|| {
                    format!(
                        "agents may call each other {call_depth_max} deep and no deeper \
                         (callDepthMax)"
                    )
                }),
            ),
            Edge::Spawn => (
                Depth {
                    call,
                    spawn: spawn + 1,
                },
                ("spawnDepthMax", *spawn_depth_max),
                (spawn >= *spawn_depth_max).then(|| {
                    format!(
                        "workers may spawn workers {spawn_depth_max} deep and no deeper \
                             (spawnDepthMax)"
                    )
                }),
            ),
        };
        if let Some(message) = too_deep {
            return Err(with_limit(Failure::lasting(CODE, message), limit));
        }
        if let Some(message) = self.too_many_runs(status.of_message) {
            let limit = ("runsPerMessageMax", self.runs_per_message_max);
            return Err(with_limit(Failure::lasting(CODE, message), limit));
        }
        if status.of_run >= u64::from(*children_max) {
            let message = format!(
                "this turn has {} dispatches open of {children_max} (childrenMax); wait until one \
                 has ended",
                status.of_run
            );
            let limit = ("childrenMax", *children_max);
            return Err(with_limit(Failure::passing(CODE, message), limit));
        }
        if status.of_tree >= u64::from(*tree_dispatches_max) {
            let open = status.of_tree;
            let message = format!(
                "this agent and those below it have {open} dispatches open of \
                         {tree_dispatches_max} (treeDispatchesMax); try again later"
            );
            let limit = ("treeDispatchesMax", *tree_dispatches_max);
            return Err(with_limit(Failure::passing(CODE, message), limit));
        }
        Ok(depth)
    }

    /// Returns these limits, reduced to those of others. An open turn thus loses what was taken
    /// away since it began.
    #[must_use]
    pub fn within(self, others: Self) -> Self {
        Self {
            call_depth_max: self.call_depth_max.min(others.call_depth_max),
            spawn_depth_max: self.spawn_depth_max.min(others.spawn_depth_max),
            children_max: self.children_max.min(others.children_max),
            tree_dispatches_max: self.tree_dispatches_max.min(others.tree_dispatches_max),
            delegations_queued_max: self
                .delegations_queued_max
                .min(others.delegations_queued_max),
            hops_max: self.hops_max.min(others.hops_max),
            runs_per_message_max: self.runs_per_message_max.min(others.runs_per_message_max),
        }
    }

    /// Returns the reason why a message with this many turns, all that followed from it included,
    /// may begin no more. None if it may begin another.
    #[must_use]
    pub fn too_many_runs(&self, runs: u64) -> Option<String> {
        let max = self.runs_per_message_max;
        let reason = || {
            format!(
                "one message began {max} turns with all that came of it, and may begin no \
                        more (runsPerMessageMax)"
            )
        };
        (runs >= u64::from(max)).then(reason)
    }

    /// Returns the reason why a late reply with this many hops becomes a dead letter. None if it
    /// may be processed.
    #[must_use]
    pub fn too_many_hops(&self, hops: u32) -> Option<String> {
        let hops_max = self.hops_max;
        let reason = || {
            format!(
                "agents have answered each other {hops_max} times in a row and may do so no \
                        longer (hopsMax)"
            )
        };
        (hops > hops_max).then(reason)
    }
}

/// Adds the key of the exhausted limit, and its value.
fn with_limit(failure: Failure, (limit, max): (&str, u32)) -> Failure {
    failure.with("limit", limit).with("max", max)
}

#[cfg(test)]
mod tests {
    use super::{Depth, DispatchLimits, DispatchState, Edge};

    /// A dispatch is admitted within depth children and tree and refused by the first limit it
    /// exceeds.
    #[test]
    fn a_dispatch_is_refused_by_the_first_limit_that_it_exceeds() {
        let limits = DispatchLimits {
            call_depth_max: 2,
            spawn_depth_max: 1,
            children_max: 3,
            tree_dispatches_max: 4,
            delegations_queued_max: 0,
            hops_max: 16,
            runs_per_message_max: 9,
        };
        for (edge, (call, spawn), of_run, of_tree, expected) in [
            (Edge::Call, (0, 0), 0, 0, Ok((1, 0))),
            (Edge::Call, (1, 0), 2, 3, Ok((2, 0))),
            (Edge::Call, (1, 1), 0, 0, Ok((2, 1))),
            (Edge::Spawn, (2, 0), 0, 0, Ok((2, 1))),
            (Edge::Spawn, (0, 1), 0, 0, Err(("spawnDepthMax", false))),
            (Edge::Call, (2, 0), 0, 0, Err(("callDepthMax", false))),
            (Edge::Call, (7, 0), 9, 9, Err(("callDepthMax", false))),
            (Edge::Call, (0, 0), 3, 3, Err(("childrenMax", true))),
            (Edge::Spawn, (1, 0), 3, 4, Err(("childrenMax", true))),
            (Edge::Call, (0, 0), 0, 4, Err(("treeDispatchesMax", true))),
            (Edge::Spawn, (1, 0), 2, 9, Err(("treeDispatchesMax", true))),
        ] {
            let admitted = limits.admit(
                DispatchState {
                    depth: Depth { call, spawn },
                    of_run,
                    of_tree,
                    of_message: 8,
                },
                edge,
            );
            let row = format!("{edge:?} {call} {spawn} {of_run} {of_tree}");
            match (admitted, expected) {
                (Ok(depth), Ok(expected)) => {
                    assert_eq!((depth.call, depth.spawn), expected, "{row}")
                }
                (Err(failure), Err((limit, retryable))) => {
                    assert_eq!(
                        (failure.code.as_str(), failure.retryable),
                        ("limit-reached", retryable),
                        "{row}"
                    );
                    assert!(
                        failure.message.contains(&format!("({limit})")),
                        "{row}: {}",
                        failure.message
                    );
                    assert_eq!(failure.details["limit"], limit, "{row}");
                    assert!(failure.details["max"].is_u64(), "{row}");
                }
                (admitted, _) => panic!("{row}: {admitted:?}"),
            }
        }
        let refused = limits
            .admit(
                DispatchState {
                    of_message: 9,
                    ..DispatchState::default()
                },
                Edge::Call,
            )
            .unwrap_err();
        assert!(
            !refused.retryable
                && refused.message.contains("9 turns")
                && refused.message.contains("(runsPerMessageMax)"),
            "{refused:?}"
        );
        assert!(
            DispatchLimits {
                call_depth_max: 0,
                ..limits
            }
            .admit(DispatchState::default(), Edge::Call)
            .is_err(),
            "0 switches calls off"
        );
        assert!(
            DispatchLimits {
                spawn_depth_max: 0,
                ..limits
            }
            .admit(DispatchState::default(), Edge::Spawn)
            .is_err(),
            "0 switches spawns off"
        );
    }

    #[test]
    fn a_late_reply_is_put_aside_once_it_is_one_hop_too_many() {
        let limits = DispatchLimits {
            hops_max: 2,
            ..DispatchLimits::default()
        };
        assert_eq!(
            [0, 1, 2].map(|hops| limits.too_many_hops(hops)),
            [None, None, None]
        );
        let reason = limits.too_many_hops(3).unwrap();
        assert!(
            reason.contains("2 times") && reason.contains("(hopsMax)"),
            "{reason}"
        );
    }

    #[test]
    fn limits_within_others_are_the_lower_of_both_one_by_one() {
        let own = DispatchLimits {
            call_depth_max: 2,
            children_max: 3,
            ..DispatchLimits::default()
        };
        let others = DispatchLimits {
            call_depth_max: 1,
            children_max: 4,
            hops_max: 0,
            ..DispatchLimits::default()
        };
        let both = DispatchLimits {
            call_depth_max: 1,
            children_max: 3,
            hops_max: 0,
            ..DispatchLimits::default()
        };
        assert_eq!(own.within(others), both);
        assert_eq!(others.within(own), both);
    }
}
