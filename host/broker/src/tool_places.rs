//! Places for calls of tools: a component has so many at a time (`concurrencyMax`).
//!
//! Users take turns at them, and no user gets all places of a component with more than one. However
//! many calls of one user compute or wait for a server, those of another begin.

use llm::fair_semaphore::{FairSemaphore, Party, Permit};
use std::sync::Arc;

/// Permits of a semaphore in which each section has a limit of its own. It is never reached.
pub(crate) const PLACES_MAX: usize = 1 << 30;
/// The part of a component's places that one user leaves to others.
const LEFT_TO_OTHERS: usize = 4;

/// The places of all components.
#[derive(Debug)]
pub(crate) struct ToolPlaces {
    /// A section for each component.
    all: Arc<FairSemaphore>,
    /// A section for each user of each component.
    of_users: Arc<FairSemaphore>,
}

/// The place of one call. It is released when this is dropped.
#[derive(Debug)]
#[must_use = "a place that is dropped is given back"]
pub(crate) struct ToolPlace {
    _of_all: Permit,
    _of_user: Permit,
}

impl Default for ToolPlaces {
    fn default() -> Self {
        Self {
            all: FairSemaphore::new(PLACES_MAX),
            of_users: FairSemaphore::new(PLACES_MAX),
        }
    }
}

impl ToolPlaces {
    /// Waits for a place for a call, among so many of a component. A call that waits for one of its
    /// user's own places occupies none of the others'.
    pub(crate) async fn enter(
        &self,
        party: Party,
        component: &str,
        concurrency_max: u32,
    ) -> ToolPlace {
        let places = usize::try_from(concurrency_max)
            .unwrap_or(usize::MAX)
            .max(1);
        let own = format!("{component} {}", party.user);
        let of_user = party.clone().in_section(own, share_of_user(places));
        let of_user = self.of_users.enter(of_user).await;
        let of_all = party.in_section(component, places);
        ToolPlace {
            _of_all: self.all.enter(of_all).await,
            _of_user: of_user,
        }
    }
}

/// Returns the places that one user may have of so many.
fn share_of_user(places: usize) -> usize {
    (places - places.div_ceil(LEFT_TO_OTHERS)).max(1)
}

#[cfg(test)]
mod tests {
    use super::{Party, ToolPlaces, share_of_user};
    use domain::delegate::Priority;
    use domain::id::AgentId;
    use futures::poll;
    use std::pin::pin;
    use std::task::Poll;
    use uuid::Uuid;

    fn of(user: &str) -> Party {
        Party {
            user: user.parse().unwrap(),
            agent: AgentId(Uuid::nil()),
            priority: Priority::default(),
            section: None,
        }
    }

    #[test]
    fn a_user_leaves_a_quarter_of_the_places_to_others_where_there_are_several() {
        for (places, share) in [(1, 1), (2, 1), (3, 2), (4, 3), (16, 12), (1_000, 750)] {
            assert_eq!(share_of_user(places), share, "{places}");
        }
    }

    #[tokio::test]
    async fn a_user_with_any_number_of_long_calls_holds_up_no_other_user() {
        let places = ToolPlaces::default();
        let mut under_way = Vec::new();
        for _ in 0..3 {
            under_way.push(places.enter(of("mallory"), "web", 4).await);
        }
        let mut waits = pin!(places.enter(of("mallory"), "web", 4));
        assert!(poll!(&mut waits).is_pending(), "no user has all places");
        let ada = places.enter(of("ada"), "web", 4).await;
        let mut next = pin!(places.enter(of("ada"), "web", 4));
        assert!(poll!(&mut next).is_pending(), "all places are taken");
        let _other = places.enter(of("mallory"), "files", 4).await;
        // The place that mallory releases goes to the other user first, though both wait for it.
        under_way.pop();
        let Poll::Ready(_next) = poll!(&mut next) else {
            panic!("a place was given back")
        };
        assert!(poll!(&mut waits).is_pending());
        drop(ada);
        assert!(poll!(&mut waits).is_ready());
    }

    #[tokio::test]
    async fn of_a_component_with_one_place_users_have_turns() {
        let places = ToolPlaces::default();
        let first = places.enter(of("mallory"), "web", 1).await;
        let mut waits: Vec<_> = (0..5)
            .map(|_| Box::pin(places.enter(of("mallory"), "web", 1)))
            .collect();
        for wait in &mut waits {
            assert!(poll!(wait).is_pending());
        }
        let mut ada = pin!(places.enter(of("ada"), "web", 1));
        assert!(poll!(&mut ada).is_pending());
        drop(first);
        assert!(poll!(&mut ada).is_ready(), "before all of the other user's");
    }
}
