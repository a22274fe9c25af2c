//! A counting semaphore that is fair between users and between the agents of a user.
//!
//! Users take turns. In a user's turn the most urgent of what waits for them goes first, and among
//! equally urgent ones their agents take turns. However much one user has under way, and however
//! urgent it is, each other one waits for a turn of everybody else's at most. A model writes how
//! urgent a delegation is, so that puts nothing before another user's work.
//!
//! A section, such as the steps of one component, has a lower limit of its own. Who waits for a
//! section that is full keeps its turn, and holds up nobody who waits for another.
//!
//! It stands here because this is the lowest layer that has permits to give: a provider takes so
//! many calls at a time. The broker has others, for steps and for model calls. Never in here: the
//! work that a permit is for.

use domain::delegate::Priority;
use domain::event::RunStarted;
use domain::id::AgentId;
use domain::user::UserId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// The party that a permit is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// The user that the work is done for.
    pub user: UserId,
    /// The agent that does it.
    pub agent: AgentId,
    /// The urgency of it among the work for the same user.
    pub priority: Priority,
    /// The section that it is in, if it is in one. All that an agent asks for is in the same.
    pub section: Option<Section>,
}

impl Party {
    /// The same in a section of so many permits.
    #[must_use]
    pub fn in_section(self, name: impl Into<Arc<str>>, permits: usize) -> Self {
        let name = name.into();
        Self {
            section: Some(Section { name, permits }),
            ..self
        }
    }
}

impl From<&RunStarted> for Party {
    fn from(started: &RunStarted) -> Self {
        Self {
            user: started.user_id.clone(),
            agent: started.agent,
            priority: started.priority,
            section: None,
        }
    }
}

/// A section of the permits, with a limit of its own, however many others are free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name within the semaphore.
    pub name: Arc<str>,
    /// The number of its permits.
    pub permits: usize,
}

/// A number of permits, and the queue for them.
#[derive(Debug)]
pub struct FairSemaphore(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    free: usize,
    /// Each section by its name, and all that is in none.
    sections: HashMap<Option<Arc<str>>, Occupancy>,
    /// The sections that have room and for which somebody waits. Most often there are none, however
    /// many sections are in use.
    callable: HashSet<Option<Arc<str>>>,
    /// Nobody waits while a permit is free that they may have.
    waiting: Users,
}

/// The use that is made of a section.
#[derive(Debug, Default)]
struct Occupancy {
    permits: usize,
    acquired: usize,
    /// The number that wait, with those that have given up since and are still in the queue.
    waiting: usize,
}

impl Occupancy {
    fn has_room(&self) -> bool {
        self.acquired < self.permits
    }

    /// Returns whether a free permit would be given to somebody who waits for this section.
    fn is_callable(&self) -> bool {
        self.waiting > 0 && self.has_room()
    }
}

/// A request for a permit, in the queue.
#[derive(Debug)]
struct QueuedRequest {
    called: oneshot::Sender<Permit>,
    section: Option<Arc<str>>,
}

type Users = Turns<UserId, Urgencies>;
/// The waiters of a user, the most urgent first.
type Urgencies = BTreeMap<Reverse<Priority>, Agents>;
type Agents = Turns<AgentId, VecDeque<QueuedRequest>>;

/// A queue of several parties, who take turns.
#[derive(Debug)]
struct Turns<K, T> {
    order: VecDeque<K>,
    entries: HashMap<K, T>,
}

impl<K, T> Default for Turns<K, T> {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            entries: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, T: Default> Turns<K, T> {
    /// Returns the things of one of them; one who had nothing comes last.
    fn entry(&mut self, who: &K) -> &mut T {
        if !self.entries.contains_key(who) {
            self.order.push_back(who.clone());
        }
        self.entries.entry(who.clone()).or_default()
    }

    /// Takes from the first in turn who has something that can be taken, and comes last after that
    /// as long as something is left. Who has nothing left goes, and takes nobody's turn; who has
    /// only what cannot be taken now keeps their own.
    fn take<R>(
        &mut self,
        take: &mut impl FnMut(&mut T) -> Option<R>,
        is_left: impl Fn(&T) -> bool,
    ) -> Option<R> {
        let Self { order, entries } = self;
        let mut passed = 0;
        while let Some(who) = order.get(passed) {
            let taken = entries.get_mut(who).and_then(&mut *take);
            let stays = entries.get(who).is_some_and(&is_left);
            if stays && taken.is_none() {
                passed += 1;
                continue;
            }
            if let Some(who) = order.remove(passed) {
                if stays {
                    order.push_back(who);
                } else {
                    entries.remove(&who);
                }
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }
}

impl Queue {
    /// Takes the free permit for whoever is next of those that may have it. Who has given up is
    /// passed over.
    fn pop(&mut self) -> Option<QueuedRequest> {
        let Self {
            free,
            sections,
            callable,
            waiting,
        } = self;
        // So that a section that is full costs those in others nothing, however many wait for it,
        // and one in which nobody waits costs nothing at all.
        if *free == 0 || callable.is_empty() {
            return None;
        }
        let mut first = |waiting: &mut VecDeque<QueuedRequest>| -> Option<QueuedRequest> {
            while let Some(next) = waiting.front() {
                let is_gone = next.called.is_closed();
                let section = sections.get_mut(&next.section)?;
                if !is_gone && !section.has_room() {
                    return None;
                }
                section.waiting = section.waiting.saturating_sub(1);
                section.acquired += usize::from(!is_gone);
                if !section.is_callable() {
                    callable.remove(&next.section);
                }
                let next = waiting.pop_front();
                if !is_gone {
                    return next;
                }
            }
            None
        };
        let mut first_of_equals =
            |agents: &mut Agents| agents.take(&mut first, |waiting| !waiting.is_empty());
        let mut first_of_user = |urgencies: &mut Urgencies| {
            let next = urgencies.values_mut().find_map(&mut first_of_equals);
            urgencies.retain(|_, agents| !agents.order.is_empty());
            next
        };
        let next = waiting.take(&mut first_of_user, |urgencies| !urgencies.is_empty());
        *free -= usize::from(next.is_some());
        next
    }

    /// Gives back a permit.
    ///
    /// A section that nobody uses or waits for is forgotten: there may be one for each agent.
    fn give_back(&mut self, name: &Option<Arc<str>>) {
        self.free += 1;
        if let Some(section) = self.sections.get_mut(name) {
            section.acquired = section.acquired.saturating_sub(1);
            if section.acquired == 0 && section.waiting == 0 {
                self.sections.remove(name);
            } else if section.is_callable() {
                self.callable.insert(name.clone());
            }
        }
    }
}

/// The right to do the work that the semaphore limits. Ends when it is dropped, and then belongs to
/// whoever is next.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit(Option<SectionLease>);

#[derive(Debug)]
struct SectionLease {
    semaphore: Arc<FairSemaphore>,
    section: Option<Arc<str>>,
}

/// A permit that was asked for. It keeps its turn for as long as it is there, also while nobody
/// waits for it. Who drops it gives up the permit, or the turn.
#[derive(Debug)]
#[must_use = "a ticket that is dropped gives up its turn"]
pub enum Ticket {
    /// The permit is there.
    Called(Permit),
    /// Others are before it. It is called when its turn comes.
    Waiting(oneshot::Receiver<Permit>),
}

impl Ticket {
    /// Waits until the permit is there.
    pub async fn called(&mut self) {
        if let Self::Waiting(called) = self {
            // Who waits is called before its sender goes.
            let permit = called.await.unwrap_or(Permit(None));
            *self = Self::Called(permit);
        }
    }

    /// Takes the permit, if it is there.
    ///
    /// # Errors
    /// It is not: the ticket goes on waiting.
    pub fn permit(self) -> Result<Permit, Self> {
        match self {
            Self::Called(permit) => Ok(permit),
            Self::Waiting(mut called) => match called.try_recv() {
                Ok(permit) => Ok(permit),
                Err(TryRecvError::Empty) => Err(Self::Waiting(called)),
                Err(TryRecvError::Closed) => Ok(Permit(None)),
            },
        }
    }
}

impl FairSemaphore {
    /// Returns a semaphore whose permits are all free.
    #[must_use]
    pub fn new(permits: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue {
            free: permits,
            sections: HashMap::new(),
            callable: HashSet::new(),
            waiting: Users::default(),
        })))
    }

    /// Waits for a permit. Who gives up waiting, by dropping this, holds nobody up.
    pub async fn enter(self: &Arc<Self>, party: Party) -> Permit {
        let mut ticket = self.ask(&party);
        loop {
            ticket = match ticket.permit() {
                Ok(permit) => return permit,
                Err(ticket) => ticket,
            };
            ticket.called().await;
        }
    }

    /// Asks for a permit: it is there at once if one is free of all and of its section.
    pub fn ask(self: &Arc<Self>, party: &Party) -> Ticket {
        let mut queue = self.queue();
        let Queue {
            free,
            sections,
            callable,
            waiting,
        } = &mut *queue;
        let name = party.section.as_ref().map(|section| section.name.clone());
        let section = sections.entry(name.clone()).or_default();
        section.permits = party
            .section
            .as_ref()
            .map_or(usize::MAX, |section| section.permits.max(1));
        if *free > 0 && section.has_room() {
            *free -= 1;
            section.acquired += 1;
            if !section.has_room() {
                callable.remove(&name);
            }
            return Ticket::Called(Permit(Some(SectionLease {
                semaphore: self.clone(),
                section: name,
            })));
        }
        section.waiting += 1;
        if section.is_callable() {
            callable.insert(name.clone());
        }
        let (sender, called) = oneshot::channel();
        let waits = waiting
            .entry(&party.user)
            .entry(Reverse(party.priority))
            .or_default()
            .entry(&party.agent);
        waits.push_back(QueuedRequest {
            called: sender,
            section: name,
        });
        Ticket::Waiting(called)
    }

    /// Takes a permit back, and gives it to the next one who still waits and may have it. There is
    /// no more than one.
    fn release(self: &Arc<Self>, mut section: Option<Arc<str>>) {
        loop {
            let next = {
                let mut queue = self.queue();
                queue.give_back(&section);
                queue.pop()
            };
            let Some(QueuedRequest {
                called,
                section: of_next,
            }) = next
            else {
                return;
            };
            let Err(mut unwanted) = called.send(Permit(Some(SectionLease {
                semaphore: self.clone(),
                section: of_next,
            }))) else {
                return;
            };
            // It has given up: the next one, and not by dropping this permit, which would come here
            // again.
            let Some(leased) = unwanted.0.take() else {
                return;
            };
            section = leased.section;
        }
    }

    /// Locks the queue, which stays right whatever panics.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(SectionLease { semaphore, section }) = self.0.take() {
            semaphore.release(section);
        }
    }
}

#[cfg(test)]
mod tests;
