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
use tokio::sync::oneshot::error::TryRecvError;

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

    /// Takes from whoever's turn it is, who comes last after that as long as something is left. It is nobody's turn who has nothing to take.
    fn take<R>(&mut self, take: impl Fn(&mut T) -> Option<R>, is_left: impl Fn(&T) -> bool) -> Option<R> {
        while let Some(who) = self.order.pop_front() {
            let Some(has) = self.of.get_mut(&who) else { continue };
            let taken = take(has);
            if taken.is_some() && is_left(has) {
                self.order.push_back(who);
            } else {
                self.of.remove(&who);
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }
}

impl Queue {
    /// Whoever is next. Who has given up waiting is passed over, and takes nobody's turn.
    fn pop(&mut self) -> Option<oneshot::Sender<Place>> {
        let waits = |waiting: &mut VecDeque<oneshot::Sender<Place>>| std::iter::from_fn(|| waiting.pop_front()).find(|it| !it.is_closed());
        let of_agents = |agents: &mut Agents| agents.take(waits, |waiting| !waiting.is_empty());
        while let Some(mut most_urgent) = self.waiting.first_entry() {
            let next = most_urgent.get_mut().take(of_agents, |agents| !agents.order.is_empty());
            if most_urgent.get().order.is_empty() {
                most_urgent.remove();
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

/// The right to do what the places are for. Ends when it is dropped, and then belongs to whoever is next.
#[derive(Debug)]
pub(crate) struct Place(Option<Arc<Places>>);

/// A place that was asked for: it keeps its turn for as long as it is there, whether somebody waits for it at the moment or not. Who drops
/// it gives up the place, or the turn.
#[derive(Debug)]
pub(crate) enum Ticket {
    Called(Place),
    Waiting(oneshot::Receiver<Place>),
}

impl Ticket {
    /// Waits until the place is there.
    pub(crate) async fn called(&mut self) {
        if let Self::Waiting(called) = self {
            // Who waits is called before its sender goes.
            let place = called.await.unwrap_or(Place(None));
            *self = Self::Called(place);
        }
    }

    /// The place, if it is there.
    pub(crate) fn place(self) -> Result<Place, Self> {
        match self {
            Self::Called(place) => Ok(place),
            Self::Waiting(mut called) => match called.try_recv() {
                Ok(place) => Ok(place),
                Err(TryRecvError::Empty) => Err(Self::Waiting(called)),
                Err(TryRecvError::Closed) => Ok(Place(None)),
            },
        }
    }
}

impl Places {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue { free: places, waiting: BTreeMap::new() })))
    }

    /// Waits for a place. Who gives up waiting, by dropping this, holds nobody up.
    pub(crate) async fn enter(self: &Arc<Self>, party: Party) -> Place {
        let mut ticket = self.ask(&party);
        loop {
            ticket = match ticket.place() {
                Ok(place) => return place,
                Err(ticket) => ticket,
            };
            ticket.called().await;
        }
    }

    /// Asks for a place.
    pub(crate) fn ask(self: &Arc<Self>, party: &Party) -> Ticket {
        let mut queue = self.queue();
        if queue.free > 0 {
            queue.free -= 1;
            return Ticket::Called(Place(Some(self.clone())));
        }
        let (sender, called) = oneshot::channel();
        queue.waiting.entry(Reverse(party.priority)).or_default().of(&party.user).of(&party.agent).push_back(sender);
        Ticket::Waiting(called)
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
    #[test]
    fn a_turn_is_kept_while_nobody_looks_and_not_taken_by_who_gave_up() {
        let places = Places::new(1);
        let held = places.enter(one(Normal)).now_or_never();
        let ask = |user: &str, agent: u128| places.ask(&party(user, agent, Normal));
        // Ann's first two give up; her turn is her own all the same, and so is that of her first agent.
        let gone = ask("ann", 1);
        let gone_too = ask("ann", 2);
        let anns = ask("ann", 1);
        let annas = ask("ann", 2);
        let mut bobs = ask("bob", 3);
        let carols = ask("carol", 4);
        drop((gone, gone_too));
        // Who does something else in between has waited all the same.
        for _ in 0..3 {
            assert!(bobs.called().now_or_never().is_none());
        }
        drop(held);
        let mut waiting = vec![("carol", carols), ("bob", bobs), ("anna", annas), ("ann", anns)];
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let called = waiting.iter_mut().position(|(_, ticket)| ticket.called().now_or_never().is_some()).expect("somebody is called");
            let (who, ticket) = waiting.remove(called);
            order.push(who);
            assert!(ticket.place().is_ok(), "it is there");
        }
        assert_eq!(order, ["ann", "bob", "carol", "anna"]);
    }
}
