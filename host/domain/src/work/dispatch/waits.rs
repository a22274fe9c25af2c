//! Detection of sessions that would wait for each other for ever.
//!
//! A turn that waits for another session's answer is an edge from its session to that one. A
//! session takes one turn at a time, so sessions that wait for each other in a circle would wait
//! for ever.

use crate::values::id::SessionId;
use std::collections::{HashMap, HashSet};

/// The code of the refusal.
pub const WAITS_FOR_CYCLE: &str = "WAITS_FOR_CYCLE";

/// A turn of one session waits for another session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Waits {
    /// The session whose turn waits.
    pub session: SessionId,
    /// The session whose answer it waits for.
    pub for_session: SessionId,
}

/// Returns the sessions that would wait for each other in a circle if `from` began to wait for
/// `to`. They are in order: `from` first, then `to`, then each session that the one before waits
/// for, up to the one that waits for `from`. None if it may wait.
#[must_use]
pub fn circle(edges: &[Waits], from: SessionId, to: SessionId) -> Option<Vec<SessionId>> {
    if from == to {
        return Some(vec![from]);
    }
    let mut next: HashMap<SessionId, Vec<SessionId>> = HashMap::new();
    for edge in edges {
        next.entry(edge.session).or_default().push(edge.for_session);
    }
    let mut reached_by: HashMap<SessionId, SessionId> = HashMap::new();
    let mut seen = HashSet::from([to]);
    let mut open = vec![to];
    while let Some(session) = open.pop() {
        for onward in next.get(&session).into_iter().flatten() {
            if *onward == from {
                let mut chain = vec![session];
                let mut at = session;
                while let Some(before) = reached_by.get(&at) {
                    chain.push(*before);
                    at = *before;
                }
                chain.push(from);
                chain.reverse();
                return Some(chain);
            }
            if seen.insert(*onward) {
                reached_by.insert(*onward, session);
                open.push(*onward);
            }
        }
    }
    None
}

/// Returns the message to the agent that would close such a circle. `names` are those of its
/// sessions' agents, in order.
#[must_use]
pub fn describe_circle(names: &[String]) -> String {
    let Some((first, rest)) = names.split_first() else {
        return "this would wait for itself".to_owned();
    };
    if rest.is_empty() {
        return format!(
            "`{first}` would wait for the session that it is in, for ever; do not wait, or answer \
             yourself"
        );
    }
    let chain: Vec<String> = rest
        .iter()
        .map(|name| format!("`{name}`, which waits for "))
        .collect();
    format!(
        "`{first}` would wait for {}`{first}`, for ever; do not wait, or reply first",
        chain.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::{Waits, circle, describe_circle};
    use crate::values::id::SessionId;
    use uuid::Uuid;

    fn session(number: u8) -> SessionId {
        SessionId(Uuid::from_bytes([number; 16]))
    }

    fn edges(pairs: &[(u8, u8)]) -> Vec<Waits> {
        pairs
            .iter()
            .map(|(from, to)| Waits {
                session: session(*from),
                for_session: session(*to),
            })
            .collect()
    }

    #[test]
    fn the_edge_that_would_close_a_circle_is_found_over_any_length_and_no_other() {
        for (there, from, to, expected) in [
            (&[][..], 1, 2, None),
            (&[], 1, 1, Some(vec![1])),
            (&[(2, 1)], 1, 2, Some(vec![1, 2])),
            (&[(1, 2)], 1, 2, None),
            (&[(2, 3), (3, 4), (4, 1)], 1, 2, Some(vec![1, 2, 3, 4])),
            (&[(2, 3), (3, 4)], 1, 2, None),
            (
                &[(2, 3), (2, 4), (4, 5), (5, 1)],
                1,
                2,
                Some(vec![1, 2, 4, 5]),
            ),
            // A circle that is there already, which nobody can have closed, is walked once.
            (&[(2, 3), (3, 2)], 1, 2, None),
        ] {
            let expected =
                expected.map(|chain: Vec<u8>| chain.into_iter().map(session).collect::<Vec<_>>());
            assert_eq!(
                circle(&edges(there), session(from), session(to)),
                expected,
                "{there:?} {from} -> {to}"
            );
        }
        let long: Vec<(u8, u8)> = (2..200).map(|at| (at, at + 1)).chain([(200, 1)]).collect();
        assert_eq!(
            circle(&edges(&long), session(1), session(2)).map(|chain| chain.len()),
            Some(200)
        );
    }

    #[test]
    fn a_refusal_names_everybody_in_the_circle() {
        let names = ["/ada/agent/a", "/ada/agent/b", "/ada/agent/c"].map(str::to_owned);
        assert_eq!(
            describe_circle(&names),
            "`/ada/agent/a` would wait for `/ada/agent/b`, which waits for `/ada/agent/c`, which \
             waits for `/ada/agent/a`, for ever; \
             do not wait, or reply first"
        );
        assert!(describe_circle(&names[..1]).contains("the session that it is in"));
    }
}
