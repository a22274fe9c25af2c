//! Delegations that wait for room within the limits, and the order in which they begin.
//!
//! They are stored as handed over; their deadlines run, and their inputs wait. Only turns without a
//! waiting caller may have such delegations: a turn with a waiting caller occupies a place itself,
//! and places that wait for each other would never be free.

use super::{CODE, Depth, DispatchLimits, DispatchState, Edge, with_limit};
use crate::values::id::{InputId, RunId, SessionId};
use crate::work::step::Failure;
use std::collections::HashMap;

/// The admission of a delegation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// The depth of its work.
    pub depth: Depth,
    /// True if it waits for room.
    pub queued: bool,
}

/// A delegation that waits for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockedDelegation {
    /// The input that carries it.
    pub input: InputId,
    /// The session of that input.
    pub session: SessionId,
    /// The run that handed it over.
    pub by_run: RunId,
}

/// A tree's waiting delegations, and its open dispatches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockedQueue {
    /// Open dispatches of the tree.
    pub open_in_tree: u64,
    /// Open dispatches of each run with waiting delegations.
    pub open_by_run: HashMap<RunId, u64>,
    /// The waiting delegations: the most urgent first, and of equally urgent ones the oldest.
    pub waiting: Vec<BlockedDelegation>,
}

impl DispatchLimits {
    /// Returns the admission of a `delegate` call, which waits for room instead of being refused.
    /// `queued` is the number of waiting delegations of its tree: the call does not overtake them.
    ///
    /// # Errors
    /// The limit that it would exceed, if it may not wait. Limits on depth and on the turns of one
    /// message always refuse. All limits refuse a turn with a waiting caller, or when the queue is
    /// full.
    pub fn admit_or_hold(&self, state: DispatchState, queued: u64) -> Result<Admitted, Failure> {
        let has_queue = state.depth == Depth::default() && self.delegations_queued_max > 0;
        let may_wait = has_queue && queued < u64::from(self.delegations_queued_max);
        match self.admit(state, Edge::Call) {
            Ok(depth) => Ok(Admitted {
                depth,
                queued: queued > 0 && may_wait,
            }),
            Err(failure) if failure.retryable && may_wait => Ok(Admitted {
                depth: Depth { call: 1, spawn: 0 },
                queued: true,
            }),
            Err(failure) if failure.retryable && has_queue => {
                Err(self.queue_full(&failure, queued))
            }
            Err(failure) => Err(failure),
        }
    }

    /// The refusal of a delegation when too many wait already. It names both limits.
    fn queue_full(&self, no_room: &Failure, queued: u64) -> Failure {
        let max = self.delegations_queued_max;
        let message = format!(
            "{queued} delegations wait for room already of {max} that may (delegationsQueuedMax): \
             {}",
            no_room.message
        );
        with_limit(
            Failure::passing(CODE, message),
            ("delegationsQueuedMax", max),
        )
    }

    /// Returns the waiting delegations for which there is room now, in order.
    #[must_use]
    pub fn next_blocked(&self, queue: &BlockedQueue) -> Vec<BlockedDelegation> {
        let mut in_tree = queue.open_in_tree;
        let mut by_run = queue.open_by_run.clone();
        let mut next = Vec::new();
        for blocked in &queue.waiting {
            let of_run = by_run.entry(blocked.by_run).or_default();
            if in_tree >= u64::from(self.tree_dispatches_max) {
                break;
            }
            if *of_run < u64::from(self.children_max) {
                *of_run += 1;
                in_tree += 1;
                next.push(*blocked);
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn blocked(number: u128, run: u128) -> BlockedDelegation {
        BlockedDelegation {
            input: InputId(Uuid::from_u128(number)),
            session: SessionId(Uuid::from_u128(number)),
            by_run: RunId(Uuid::from_u128(run)),
        }
    }

    fn limits() -> DispatchLimits {
        DispatchLimits {
            call_depth_max: 2,
            children_max: 2,
            tree_dispatches_max: 4,
            delegations_queued_max: 3,
            ..DispatchLimits::default()
        }
    }

    #[test]
    fn a_delegation_beyond_a_limit_waits_if_it_may_and_is_refused_otherwise() {
        let at = |depth: u32, of_run: u64, of_tree: u64| DispatchState {
            depth: Depth {
                call: depth,
                spawn: 0,
            },
            of_run,
            of_tree,
            of_message: 1,
        };
        for (state, queued, expected) in [
            (at(0, 0, 0), 0, Ok(false)),
            (at(0, 1, 3), 0, Ok(false)),
            (at(0, 2, 2), 0, Ok(true)),
            (at(0, 0, 4), 0, Ok(true)),
            // It does not overtake those that wait.
            (at(0, 0, 0), 1, Ok(true)),
            (at(0, 2, 2), 3, Err("(childrenMax)")),
            (at(0, 0, 4), 3, Err("(treeDispatchesMax)")),
            // Who is waited for does not wait for room.
            (at(1, 2, 2), 0, Err("(childrenMax)")),
            (at(1, 0, 0), 1, Ok(false)),
            (at(2, 0, 0), 0, Err("(callDepthMax)")),
        ] {
            let row = format!("{state:?} {queued}");
            match (limits().admit_or_hold(state, queued), expected) {
                (Ok(admitted), Ok(waits)) => {
                    assert_eq!(admitted.queued, waits, "{row}");
                    assert_eq!(admitted.depth.call, state.depth.call + 1, "{row}");
                }
                (Err(failure), Err(limit)) => {
                    assert!(failure.message.contains(limit), "{row}: {failure:?}");
                }
                (admitted, _) => panic!("{row}: {admitted:?}"),
            }
        }
        let of_message = DispatchState {
            of_message: 1_000,
            ..at(0, 0, 0)
        };
        assert!(limits().admit_or_hold(of_message, 0).is_err());
        let never = DispatchLimits {
            delegations_queued_max: 0,
            ..limits()
        };
        assert!(never.admit_or_hold(at(0, 2, 2), 0).is_err());
    }

    #[test]
    fn a_full_queue_is_named_as_the_limit_with_the_one_that_is_waited_for() {
        let state = |depth: u32| DispatchState {
            depth: Depth {
                call: depth,
                spawn: 0,
            },
            of_run: 2,
            of_tree: 2,
            of_message: 1,
        };
        let refused = |depth, queued| {
            let failure = limits().admit_or_hold(state(depth), queued).unwrap_err();
            assert!(failure.retryable, "{failure:?}");
            assert!(failure.message.contains("(childrenMax)"), "{failure:?}");
            failure
        };
        let full = refused(0, 3);
        assert!(full.message.contains("(delegationsQueuedMax)"), "{full:?}");
        assert_eq!(full.details["limit"], "delegationsQueuedMax");
        assert_eq!(full.details["max"], 3);
        // Who is waited for has no queue that could be full.
        assert_eq!(refused(1, 3).details["limit"], "childrenMax");
    }

    #[test]
    fn who_waits_begins_in_order_as_far_as_run_and_tree_have_room() {
        let queue = |open_in_tree, open_by_run: &[(u128, u64)], waiting: &[BlockedDelegation]| {
            BlockedQueue {
                open_in_tree,
                open_by_run: open_by_run
                    .iter()
                    .map(|(run, open)| (RunId(Uuid::from_u128(*run)), *open))
                    .collect(),
                waiting: waiting.to_vec(),
            }
        };
        let waiting = [blocked(1, 7), blocked(2, 7), blocked(3, 8), blocked(4, 7)];
        for (open_in_tree, open_by_run, expected) in [
            (0, &[][..], &[1, 2, 3][..]),
            (2, &[(7, 2)], &[3]),
            (3, &[(7, 1), (8, 2)], &[1]),
            (3, &[(7, 2), (8, 1)], &[3]),
            (4, &[], &[]),
            (9, &[(7, 9)], &[]),
        ] {
            let next = limits().next_blocked(&queue(open_in_tree, open_by_run, &waiting));
            let next: Vec<u128> = next
                .iter()
                .map(|blocked| blocked.input.0.as_u128())
                .collect();
            assert_eq!(next, expected, "{open_in_tree} {open_by_run:?}");
        }
        assert_eq!(limits().next_blocked(&BlockedQueue::default()), []);
    }
}
