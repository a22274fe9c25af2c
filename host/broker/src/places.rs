//! Places of this host: so many at a time. Of those that wait the most urgent go first, and of equally urgent ones users take turns, and in
//! the turns of a user their agents: however much one of them has under way, each other one waits for a turn of everybody else's at most.

use domain::delegate::Priority;
use domain::event::RunStarted;
use domain::id::AgentId;
use domain::user::UserId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// For whom a place is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Party {
    pub(crate) user: UserId,
    pub(crate) agent: AgentId,
    pub(crate) priority: Priority,
}

impl From<&RunStarted> for Party {
    fn from(started: &RunStarted) -> Self {
        Self { user: started.user_id.clone(), agent: started.agent, priority: started.priority }
    }
}

/// So many places, and who waits for one.
#[derive(Debug)]
pub(crate) struct Places(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    free: usize,
    /// Nobody waits while a place is free.
    waiting: BTreeMap<Reverse<Priority>, Users>,
}

type Users = Turns<UserId, Agents>;
type Agents = Turns<AgentId, VecDeque<oneshot::Sender<Place>>>;

/// Something of each of several, who take turns.
#[derive(Debug)]
struct Turns<K, T> {
    order: VecDeque<K>,
    of: HashMap<K, T>,
}

impl<K, T> Default for Turns<K, T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), of: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash, T: Default> Turns<K, T> {
    /// What somebody has; who had nothing comes last.
    fn of(&mut self, who: &K) -> &mut T {
        if !self.of.contains_key(who) {
            self.order.push_back(who.clone());
        }
        self.of.entry(who.clone()).or_default()
    }

    /// Takes from whoever's turn it is, who comes last after that as long as something is left.
    fn take<R>(&mut self, take: impl FnOnce(&mut T) -> Option<R>, is_left: impl FnOnce(&T) -> bool) -> Option<R> {
        let who = self.order.pop_front()?;
        let has = self.of.get_mut(&who)?;
        let taken = take(has);
        if is_left(has) {
            self.order.push_back(who);
        } else {
            self.of.remove(&who);
        }
        taken
    }
}

impl Queue {
    /// Whoever is next.
    fn pop(&mut self) -> Option<oneshot::Sender<Place>> {
        let mut most_urgent = self.waiting.first_entry()?;
        let of_agents = |agents: &mut Agents| agents.take(VecDeque::pop_front, |waiting| !waiting.is_empty());
        let next = most_urgent.get_mut().take(of_agents, |agents| !agents.order.is_empty());
        if most_urgent.get().order.is_empty() {
            most_urgent.remove();
        }
        next
    }
}

/// The right to do what the places are for. Ends when it is dropped, and then belongs to whoever is next.
#[derive(Debug)]
pub(crate) struct Place(Option<Arc<Places>>);

impl Places {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue { free: places, waiting: BTreeMap::new() })))
    }

    /// Waits for a place. Who gives up waiting, by dropping this, holds nobody up.
    pub(crate) async fn enter(self: &Arc<Self>, party: Party) -> Place {
        let called = {
            let mut queue = self.queue();
            if queue.free > 0 {
                queue.free -= 1;
                return Place(Some(self.clone()));
            }
            let (sender, called) = oneshot::channel();
            queue.waiting.entry(Reverse(party.priority)).or_default().of(&party.user).of(&party.agent).push_back(sender);
            called
        };
        // Who waits is called before its sender goes.
        called.await.unwrap_or(Place(None))
    }

    /// A place is free again: calls the next one who still waits.
    fn leave(self: Arc<Self>) {
        loop {
            let next = {
                let mut queue = self.queue();
                let next = queue.pop();
                queue.free += usize::from(next.is_none());
                next
            };
            let Some(sender) = next else { return };
            match sender.send(Place(Some(self.clone()))) {
                Ok(()) => return,
                // It has given up: the next one, and not by dropping this place, which would come here again.
                Err(mut unwanted) => drop(unwanted.0.take()),
            }
        }
    }

    /// What this guards stays right whatever panics.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(places) = self.0.take() {
            places.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Priority::{Critical, High, Low, Normal};
    use futures::FutureExt;

    fn party(user: &str, agent: u128, priority: Priority) -> Party {
        Party { user: user.parse().unwrap(), agent: AgentId(uuid::Uuid::from_u128(agent)), priority }
    }

    fn one(priority: Priority) -> Party {
        party("ann", 1, priority)
    }

    /// In which order the first so many parties get the one place that there is.
    fn order(asked: &[Party], first: usize) -> Vec<usize> {
        let places = Places::new(1);
        let mut held = places.enter(one(Low)).now_or_never();
        assert!(held.is_some(), "a free place is taken at once");
        let mut waiting: Vec<_> = asked.iter().map(|party| Some(Box::pin(places.enter(party.clone())))).collect();
        for waits in waiting.iter_mut().flatten() {
            assert!(waits.now_or_never().is_none());
        }
        let mut order = Vec::new();
        while order.len() < first {
            drop(held.take());
            let called = waiting.iter_mut().enumerate().find_map(|(index, waits)| Some((index, waits.as_mut()?.now_or_never()?)));
            let (index, place) = called.expect("somebody is called");
            waiting[index] = None;
            held = Some(place);
            order.push(index);
        }
        order
    }

    #[test]
    fn of_those_that_wait_the_most_urgent_is_next_and_of_equals_the_first() {
        assert_eq!(order(&[Low, Normal, Critical, Normal, High, Critical].map(one), 6), [2, 5, 4, 1, 3, 0]);
    }

    #[test]
    fn users_take_turns_and_in_the_turns_of_a_user_their_agents_however_much_one_of_them_has_under_way() {
        // Ann has ten thousand waiting, of which her second agent has two; then Bob comes, and Carol.
        let mut asked = vec![party("ann", 1, Normal); 9_998];
        asked.extend(vec![party("ann", 2, Normal); 2]);
        asked.extend([party("bob", 3, Normal), party("bob", 3, Normal), party("carol", 4, Normal)]);
        assert_eq!(order(&asked, 6), [0, 10_000, 10_002, 9_998, 10_001, 1]);
    }

    #[test]
    fn who_gives_up_waiting_holds_nobody_up() {
        let places = Places::new(1);
        let held = places.enter(one(Normal)).now_or_never();
        let (mut gone, mut called, mut last) =
            (Box::pin(places.enter(one(Critical))), Box::pin(places.enter(one(High))), Box::pin(places.enter(one(Low))));
        for waits in [&mut gone, &mut called, &mut last] {
            assert!(waits.now_or_never().is_none());
        }
        drop(gone);
        drop(held);
        // Called, and gone before it looked.
        drop(called);
        assert!(last.now_or_never().is_some());
    }
}
