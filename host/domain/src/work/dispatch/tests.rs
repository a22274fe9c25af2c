//! Tests of the limits on dispatches.

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
