//! The isolation of work that may have ended the process.
//!
//! If the process ends unexpectedly, the sessions with work in progress at that moment are
//! recorded. Sessions that only waited are not among them. The session that ends the process is
//! among them each time, and others by chance. Suspects are therefore resumed in halves, and in the
//! end alone.

use crate::values::id::{RunId, SessionId};
use crate::values::limits::{ALONE_ENDS_MAX, SUSPECTED_ENDS_MIN};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The ends of the process during a session's work, with no progress in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspicion {
    /// The open run; none if the session had none yet.
    pub run: Option<RunId>,
    /// Number of these ends.
    pub ends: u32,
    /// Number of those ends during which no other suspect had work.
    pub alone: u32,
}

/// The suspicions of a store's sessions.
pub type Suspicions = BTreeMap<SessionId, Suspicion>;

/// A session with work, as found at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The session.
    pub session: SessionId,
    /// Its open run.
    pub run: Option<RunId>,
    /// True if that run made progress since it was resumed last, or was never resumed.
    pub has_progressed: bool,
}

impl Suspicion {
    /// Returns whether the session is under suspicion, and resumed with few others.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.ends >= SUSPECTED_ENDS_MIN
    }

    /// Returns whether the work ended the process as the only suspect so often that it is given up.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.alone >= ALONE_ENDS_MAX
    }

    /// Returns whether the session has made no progress since this was noted.
    fn stands(&self, found: &Found) -> bool {
        match self.run {
            None => found.run.is_none() || !found.has_progressed,
            Some(run) => found.run == Some(run) && !found.has_progressed,
        }
    }
}

/// Returns the suspicions after the process ended during these sessions' work. A requested end, or
/// one with an outside cause, adds no suspicion.
#[must_use]
pub fn suspected(
    before: &Suspicions,
    found: &[Found],
    computed: &BTreeSet<SessionId>,
) -> Suspicions {
    let status: Suspicions = found
        .iter()
        .filter_map(|found| {
            Some((found.session, *before.get(&found.session)?))
                .filter(|(_, suspicion)| suspicion.stands(found))
        })
        .collect();
    let suspects = status
        .iter()
        .filter(|(session, suspicion)| suspicion.is_suspect() && computed.contains(*session));
    let suspects: Vec<SessionId> = suspects.map(|(session, _)| *session).collect();
    let mut after = Suspicions::new();
    for found in found {
        let mut suspicion = status.get(&found.session).copied().unwrap_or_default();
        suspicion.run = found.run;
        if computed.contains(&found.session) {
            suspicion.ends = suspicion.ends.saturating_add(1);
            let is_alone = suspects == [found.session];
            suspicion.alone = suspicion.alone.saturating_add(u32::from(is_alone));
        }
        if suspicion.ends > 0 {
            after.insert(found.session, suspicion);
        }
    }
    after
}

/// Returns the suspects in groups, which are resumed one after the other. The first has half of the
/// most suspected ones, each later group half of the rest. Work that is to be given up waits for
/// nothing and is in no group.
#[must_use]
pub fn groups(suspicions: &Suspicions) -> Vec<Vec<SessionId>> {
    let mut rest: Vec<(Reverse<u32>, SessionId)> = suspicions
        .iter()
        .filter(|(_, suspicion)| suspicion.is_suspect() && !suspicion.is_over())
        .map(|(session, suspicion)| (Reverse(suspicion.ends), *session))
        .collect();
    rest.sort_unstable();
    let most = rest
        .iter()
        .take_while(|one| rest.first().is_some_and(|first| first.0 == one.0));
    let mut size = most.count().div_ceil(2);
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let group = rest.drain(..size).map(|(_, session)| session);
        groups.push(group.collect());
        size = rest.len().div_ceil(2);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn session(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    fn run(number: u128) -> RunId {
        RunId(Uuid::from_u128(number))
    }

    /// A session whose run was resumed and came to nothing since.
    fn stuck(number: u128) -> Found {
        Found {
            session: session(number),
            run: Some(run(number)),
            has_progressed: false,
        }
    }

    fn suspicion(number: u128, ends: u32, alone: u32) -> (SessionId, Suspicion) {
        let run = Some(run(number));
        (session(number), Suspicion { run, ends, alone })
    }

    fn sessions(numbers: &[u128]) -> BTreeSet<SessionId> {
        numbers.iter().copied().map(session).collect()
    }

    #[test]
    fn who_only_waited_at_an_end_is_not_suspected_and_who_computed_is() {
        let found = [1, 2, 3].map(stuck);
        let first = suspected(&Suspicions::new(), &found, &sessions(&[1, 2]));
        assert_eq!(
            first,
            Suspicions::from([suspicion(1, 1, 0), suspicion(2, 1, 0)])
        );
        assert_eq!(
            groups(&first),
            Vec::<Vec<SessionId>>::new(),
            "after one end nobody waits"
        );
        let second = suspected(&first, &found, &sessions(&[1, 3]));
        let expected = [suspicion(1, 2, 0), suspicion(2, 1, 0), suspicion(3, 1, 0)];
        assert_eq!(second, Suspicions::from(expected));
        assert_eq!(groups(&second), [[session(1)]]);
        assert_eq!(
            suspected(&second, &found, &sessions(&[])),
            second,
            "an end that blames nobody"
        );
    }

    #[test]
    fn progress_and_another_run_end_a_suspicion() {
        let noted = Suspicions::from([suspicion(1, 4, 2)]);
        let progressed = Found {
            has_progressed: true,
            ..stuck(1)
        };
        let another = Found {
            run: Some(run(7)),
            ..stuck(1)
        };
        for found in [progressed, another] {
            assert_eq!(
                suspected(&noted, &[found], &sessions(&[])),
                Suspicions::new()
            );
            let blamed = suspected(&noted, &[found], &sessions(&[1]));
            let expected = Suspicion {
                run: found.run,
                ends: 1,
                alone: 0,
            };
            assert_eq!(blamed, Suspicions::from([(session(1), expected)]));
        }
        assert_eq!(
            suspected(&noted, &[], &sessions(&[1])),
            Suspicions::new(),
            "it has no work"
        );
    }

    #[test]
    fn words_that_no_turn_began_with_are_suspected_with_the_turn_that_begins_with_them() {
        let unbegun = Found {
            run: None,
            ..stuck(1)
        };
        let first = suspected(&Suspicions::new(), &[unbegun], &sessions(&[1]));
        let second = suspected(&first, &[stuck(1)], &sessions(&[1]));
        assert_eq!(second, Suspicions::from([suspicion(1, 2, 0)]));
    }

    #[test]
    fn only_ends_with_no_other_suspect_at_work_count_as_alone() {
        let noted = Suspicions::from([suspicion(1, 2, 0), suspicion(2, 2, 0), suspicion(3, 1, 0)]);
        let found = [1, 2, 3].map(stuck);
        let both = suspected(&noted, &found, &sessions(&[1, 2]));
        assert_eq!([both[&session(1)].alone, both[&session(2)].alone], [0, 0]);
        let beside_others = suspected(&noted, &found, &sessions(&[1, 3]));
        let expected = [suspicion(1, 3, 1), suspicion(2, 2, 0), suspicion(3, 2, 0)];
        assert_eq!(beside_others, Suspicions::from(expected));
    }

    #[test]
    fn suspects_are_resumed_in_halves_the_most_suspected_first() {
        let of = |ends: &[u32]| -> Suspicions {
            let numbered = ends.iter().zip(1..);
            numbered
                .map(|(ends, number)| suspicion(number, *ends, 0))
                .collect()
        };
        let sizes =
            |ends: &[u32]| -> Vec<usize> { groups(&of(ends)).iter().map(Vec::len).collect() };
        assert_eq!(sizes(&[2; 5]), [3, 1, 1]);
        assert_eq!(sizes(&[2; 8]), [4, 2, 1, 1]);
        assert_eq!(
            sizes(&[3, 2, 2, 2, 1]),
            [1, 2, 1],
            "the most suspected is alone"
        );
        assert_eq!(groups(&of(&[2, 3]))[0], [session(2)]);
        let over = Suspicions::from([suspicion(1, 6, 3)]);
        assert!(over[&session(1)].is_over() && groups(&over).is_empty());
    }

    /// A host that ends each time it computes for one of its sessions.
    struct Host {
        all: Vec<Found>,
        guilty: SessionId,
        suspicions: Suspicions,
        /// Sessions that made progress and compute for themselves since.
        fine: BTreeSet<SessionId>,
    }

    impl Host {
        /// One process: returns the sessions that it computed for as it ended. Everybody that is
        /// resumed computes, and whoever is resumed before the guilty one gets on.
        fn ends(&mut self) -> BTreeSet<SessionId> {
            let groups = groups(&self.suspicions);
            let blocked: BTreeSet<SessionId> = groups.iter().flatten().copied().collect();
            let all = self.all.iter().map(|found| found.session);
            let at_once: BTreeSet<SessionId> =
                all.filter(|session| !blocked.contains(session)).collect();
            for group in std::iter::once(at_once.into_iter().collect()).chain(groups) {
                if group.contains(&self.guilty) {
                    return group.into_iter().chain(self.fine.iter().copied()).collect();
                }
                self.fine.extend(group);
            }
            unreachable!("the guilty one is resumed")
        }
    }

    /// The number of ends is at most five for one suspect, and one more for each time that the
    /// suspects can be halved.
    #[test]
    fn the_guilty_one_alone_is_given_up_after_a_number_of_ends_that_is_known() {
        for count in [1_u128, 2, 3, 7, 20, 51, 200] {
            for guilty in [1, count.div_ceil(2), count] {
                let mut host = Host {
                    all: (1..=count).map(stuck).collect(),
                    guilty: session(guilty),
                    suspicions: Suspicions::new(),
                    fine: BTreeSet::new(),
                };
                let mut ends = 0;
                while !host.suspicions.values().any(Suspicion::is_over) {
                    let computed = host.ends();
                    for found in &mut host.all {
                        found.has_progressed = host.fine.contains(&found.session);
                    }
                    host.suspicions = suspected(&host.suspicions, &host.all, &computed);
                    ends += 1;
                }
                let over = host
                    .suspicions
                    .iter()
                    .filter(|(_, suspicion)| suspicion.is_over());
                let over: Vec<&SessionId> = over.map(|(session, _)| session).collect();
                assert_eq!(over, [&host.guilty], "{guilty} of {count}");
                let halvings = u128::BITS - (count - 1).leading_zeros();
                assert!(ends <= 5 + halvings, "{guilty} of {count}: {ends} ends");
            }
        }
    }
}
