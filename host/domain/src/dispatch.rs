//! Whether an agent may hand work to another: how deep calls nest, how much is under way at once, and how long agents may go on answering
//! each other.
//!
//! Every dispatch passes here, whether a `delegate` call or an operation of the agent's own. What is refused settles at once as an ordinary
//! failure that names the limit, so that the agent can do something else.

use crate::step::Failure;

/// The code of every refusal.
const CODE: &str = "limit-reached";

/// How far agents may go with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How deep calls nest. With 1 an agent may call another, which may call nobody; with 0 nobody calls anybody.
    pub call_depth_max: u32,
    /// Dispatches of one run that are open at the same time: work that it handed over, detached or not, and that has not ended.
    pub children_max: u32,
    /// Dispatches of one tree of agents that are open at the same time. A tree is an agent of a user's with all that were made for its work.
    pub tree_dispatches_max: u32,
    /// Hops of one conversation between agents. A late reply (of work that was detached, or that nobody waits for any more) is one hop more
    /// than the work that it replies to; work that is handed over has as many as the run that hands it over. What a user says, and a reminder
    /// of an agent's own, begin anew.
    pub hops_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { call_depth_max: 1, children_max: 5, tree_dispatches_max: 8, hops_max: 16 }
    }
}

/// What is so before a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// How many calls deep the run is that asks.
    pub depth: u32,
    /// Its open dispatches.
    pub of_run: u64,
    /// The open dispatches of its tree of agents, its own included.
    pub of_tree: u64,
}

impl Limits {
    /// How many calls deep the work will be that a dispatch hands over.
    ///
    /// # Errors
    /// The limit that it would exceed. Too deep is too deep for good; too many at once may pass.
    pub fn admit(&self, standing: Standing) -> Result<u32, Failure> {
        let Self { call_depth_max, children_max, tree_dispatches_max, .. } = self;
        if standing.depth >= *call_depth_max {
            let message = format!("agents may call each other {call_depth_max} deep and no deeper (callDepthMax)");
            return Err(Failure::lasting(CODE, message));
        }
        if standing.of_run >= u64::from(*children_max) {
            let message =
                format!("this turn has {} dispatches open of {children_max} (childrenMax); wait until one has ended", standing.of_run);
            return Err(Failure::passing(CODE, message));
        }
        if standing.of_tree >= u64::from(*tree_dispatches_max) {
            let open = standing.of_tree;
            let message = format!(
                "this agent and those below it have {open} dispatches open of {tree_dispatches_max} (treeDispatchesMax); try again later"
            );
            return Err(Failure::passing(CODE, message));
        }
        Ok(standing.depth + 1)
    }

    /// Why a late reply of so many hops becomes a dead letter; none when it may be dealt with.
    #[must_use]
    pub fn too_many_hops(&self, hops: u32) -> Option<String> {
        let hops_max = self.hops_max;
        let reason = || format!("agents have answered each other {hops_max} times in a row and may do so no longer (hopsMax)");
        (hops > hops_max).then(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Standing};

    #[test]
    fn a_dispatch_is_admitted_within_depth_children_and_tree_and_refused_by_the_first_limit_it_exceeds() {
        let limits = Limits { call_depth_max: 2, children_max: 3, tree_dispatches_max: 4, hops_max: 16 };
        for (depth, of_run, of_tree, expected) in [
            (0, 0, 0, Ok(1)),
            (1, 2, 3, Ok(2)),
            (2, 0, 0, Err(("callDepthMax", false))),
            (7, 9, 9, Err(("callDepthMax", false))),
            (0, 3, 3, Err(("childrenMax", true))),
            (1, 3, 4, Err(("childrenMax", true))),
            (0, 0, 4, Err(("treeDispatchesMax", true))),
            (1, 2, 9, Err(("treeDispatchesMax", true))),
        ] {
            let admitted = limits.admit(Standing { depth, of_run, of_tree });
            let row = format!("{depth} {of_run} {of_tree}");
            match (admitted, expected) {
                (Ok(depth), Ok(expected)) => assert_eq!(depth, expected, "{row}"),
                (Err(failure), Err((limit, retryable))) => {
                    assert_eq!((failure.code.as_str(), failure.retryable), ("limit-reached", retryable), "{row}");
                    assert!(failure.message.contains(&format!("({limit})")), "{row}: {}", failure.message);
                }
                (admitted, _) => panic!("{row}: {admitted:?}"),
            }
        }
        assert!(Limits { call_depth_max: 0, ..limits }.admit(Standing::default()).is_err(), "0 switches calls off");
    }

    #[test]
    fn a_late_reply_is_put_aside_once_it_is_one_hop_too_many() {
        let limits = Limits { hops_max: 2, ..Limits::default() };
        assert_eq!([0, 1, 2].map(|hops| limits.too_many_hops(hops)), [None, None, None]);
        let reason = limits.too_many_hops(3).unwrap();
        assert!(reason.contains("2 times") && reason.contains("(hopsMax)"), "{reason}");
    }
}
