//! The connectors that are served now: the configuration of each, its component, and the state that
//! outlasts a new configuration.

use super::asked::Notes;
use super::bucket::Bucket;
use super::health::Health;
use broker::Entry;
use broker::guest_log::RepeatedCalls;
use domain::connector::{
    Abilities, ConnectorSpec, INBOUND_MESSAGES_WAITING_MAX, Intake, ReplyRoute,
};
use domain::digest::Digest;
use domain::id::{ConnectorId, Stream};
use domain::path::ConnectorName;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of a connector's chats whose change of id is remembered. Beyond it, the service
/// reports each change once more.
const MOVED_CHATS_MAX: usize = 1_000;

/// A connector as it is served.
pub(super) struct Served {
    pub(super) name: ConnectorName,
    pub(super) spec: Arc<ConnectorSpec>,
    pub(super) link: ConnectorLink,
    pub(super) lasting: Arc<LastingState>,
    /// Cancelled when another configuration takes its place.
    pub(super) replaced: CancellationToken,
}

/// The way to people.
pub(super) enum ConnectorLink {
    /// A component, which translates for a service.
    Component(ComponentDeps),
    /// The host itself.
    Direct,
    /// None: the component does not exist, or is no connector.
    None,
}

/// The means of a connector with a component.
pub(super) struct ComponentDeps {
    /// The component, with its grant.
    pub(super) entry: Arc<Entry>,
    /// The digest of that grant, as the ledger names it.
    pub(super) grant: Digest,
    /// The abilities of its service.
    pub(super) abilities: Abilities,
}

/// The part of a connector that lasts while its configuration changes.
#[derive(Default)]
pub(super) struct LastingState {
    /// Lock that is held while inbound messages are compared with earlier ones, and stored.
    pub(super) intake: tokio::sync::Mutex<()>,
    /// Lock that is held while reports on messages, or the ids under which messages were accepted,
    /// are compared with the other and stored. It has the number of reports that were kept since
    /// the last time that no message was being sent.
    pub(super) reports: tokio::sync::Mutex<usize>,
    health: Mutex<Health>,
    /// The new ids of chats, by their old ones, since the start. Without it each message into such
    /// a chat is refused once, and sent twice.
    moved_chats: Mutex<HashMap<String, String>>,
    /// Inbound messages that are not settled.
    open: AtomicU64,
    /// Time at which a message arrived last.
    arrived: Mutex<Option<Instant>>,
    /// The bound on calls of its service.
    pub(super) calls: Mutex<Bucket>,
    /// The decisions in repeated calls.
    pub(super) notes: Mutex<Notes>,
    /// The log of its component.
    pub(super) log: RepeatedCalls,
}

impl Served {
    /// Returns whether it is to do its work now.
    fn is_at_work(&self) -> bool {
        self.spec.enabled && !matches!(self.link, ConnectorLink::None)
    }

    /// Returns its stream.
    pub(super) fn stream(&self) -> Stream {
        Stream::Connector(self.id())
    }

    pub(super) fn id(&self) -> ConnectorId {
        ConnectorId::of_name(self.name.as_str())
    }

    /// Returns the actor of its events and the source of its messages.
    pub(super) fn origin(&self) -> String {
        format!("connector:{}", self.name)
    }

    /// Returns one of its chats.
    pub(super) fn chat(&self, chat: &str) -> ReplyRoute {
        ReplyRoute {
            connector: self.name.clone(),
            chat: chat.to_owned(),
        }
    }

    pub(super) fn is_polling(&self) -> bool {
        self.spec.enabled
            && matches!(self.link, ConnectorLink::Component(_))
            && self.spec.intake() == Intake::Polling
    }

    /// Returns the abilities of its service. The host's own channel shows any text.
    pub(super) fn abilities(&self) -> Abilities {
        match &self.link {
            ConnectorLink::Component(deps) => deps.abilities.clone(),
            ConnectorLink::Direct | ConnectorLink::None => Abilities {
                intake: Vec::new(),
                text_limit: u32::MAX,
                buttons_max: u32::MAX,
                edits: false,
                typing: false,
                idempotent: true,
            },
        }
    }

    pub(super) fn is_as(&self, other: &Self) -> bool {
        let is_same_link = match (&self.link, &other.link) {
            (ConnectorLink::Component(one), ConnectorLink::Component(other)) => {
                one.entry.component.digest() == other.entry.component.digest()
                    && one.entry.grant == other.entry.grant
            }
            (ConnectorLink::Direct, ConnectorLink::Direct)
            | (ConnectorLink::None, ConnectorLink::None) => true,
            (ConnectorLink::Component(_) | ConnectorLink::Direct | ConnectorLink::None, _) => false,
        };
        is_same_link && self.spec == other.spec
    }
}

impl LastingState {
    /// Takes the number of inbound messages that wait from the store.
    pub(super) fn count(&self, open: u64) {
        self.open.store(open, Ordering::Relaxed);
    }

    /// Notes that a chat is another one now.
    pub(super) fn chat_moved(&self, from: &str, to: &str) {
        let moved = self.moved_chats.lock();
        let mut moved = moved.unwrap_or_else(PoisonError::into_inner);
        if moved.len() >= MOVED_CHATS_MAX {
            moved.clear();
        }
        moved.insert(from.to_owned(), to.to_owned());
    }

    /// Returns the present id of a chat, if it is known to have changed.
    pub(super) fn present_chat(&self, chat: &str) -> String {
        let moved = self.moved_chats.lock();
        let moved = moved.unwrap_or_else(PoisonError::into_inner);
        moved.get(chat).map_or(chat, String::as_str).to_owned()
    }

    /// Counts inbound messages that wait to be settled.
    pub(super) fn opened(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.open.fetch_add(count, Ordering::Relaxed);
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        *arrived = Some(Instant::now());
    }

    /// Notes inbound messages that were settled.
    pub(super) fn settled(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let less = |open: u64| Some(open.saturating_sub(count));
        // Never refused: the function always gives a number.
        let _ = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(super) fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many more inbound messages may wait to be settled, according to the count.
    pub(super) fn room(&self) -> usize {
        let open = usize::try_from(self.open.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        INBOUND_MESSAGES_WAITING_MAX.saturating_sub(open)
    }

    /// Returns the milliseconds since a message arrived; none if none has since the start.
    pub(super) fn quiet_ms(&self) -> Option<u64> {
        let arrived = *self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = arrived?.elapsed().as_millis();
        Some(u64::try_from(quiet).unwrap_or(u64::MAX))
    }
}

/// All connectors that are served now, by name.
#[derive(Default)]
pub(super) struct Registry {
    all: RwLock<BTreeMap<ConnectorName, Arc<Served>>>,
    /// Number of polled connectors. Every poll reads it.
    polling: AtomicUsize,
    /// See [`Registry::passed_over`].
    passed_over: Mutex<BTreeSet<ConnectorName>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.all().iter().map(|it| it.name.clone()).collect();
        f.debug_set().entries(names).finish()
    }
}

impl Registry {
    pub(super) fn get(&self, name: &ConnectorName) -> Option<Arc<Served>> {
        let served = self.all.read().unwrap_or_else(PoisonError::into_inner);
        served.get(name).cloned()
    }

    /// Returns a connector that is to do its work now.
    pub(super) fn at_work(&self, name: &ConnectorName) -> Option<Arc<Served>> {
        self.get(name).filter(|served| served.is_at_work())
    }

    /// Returns the connectors known to have messages that wait until they are to do their work.
    pub(super) fn passed_over(&self) -> BTreeSet<ConnectorName> {
        let passed_over = self.passed_over.lock();
        passed_over.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Passes over those of the connectors that are not to do their work now. Returns whether there
    /// are any.
    pub(super) fn pass_over<'a>(&self, names: impl IntoIterator<Item = &'a ConnectorName>) -> bool {
        // Locked first, as in `put`: a connector that is served anew in between stays passed over
        // otherwise.
        let passed_over = self.passed_over.lock();
        let mut passed_over = passed_over.unwrap_or_else(PoisonError::into_inner);
        let not_at_work = names
            .into_iter()
            .filter(|name| self.at_work(name).is_none());
        let not_at_work: BTreeSet<_> = not_at_work.cloned().collect();
        let is_any = !not_at_work.is_empty();
        passed_over.extend(not_at_work);
        is_any
    }

    /// Returns all connectors, in the order of their names.
    pub(super) fn all(&self) -> Vec<Arc<Served>> {
        let served = self.all.read().unwrap_or_else(PoisonError::into_inner);
        served.values().cloned().collect()
    }

    /// Replaces the served connectors, and ends those that are no longer served.
    pub(super) fn put(&self, next: BTreeMap<ConnectorName, Arc<Served>>) {
        let polling = next.values().filter(|it| it.is_polling()).count();
        self.polling.store(polling, Ordering::Relaxed);
        let before = {
            let passed_over = self.passed_over.lock();
            let mut passed_over = passed_over.unwrap_or_else(PoisonError::into_inner);
            let mut served = self.all.write().unwrap_or_else(PoisonError::into_inner);
            passed_over.clear();
            std::mem::replace(&mut *served, next)
        };
        for served in before.into_values() {
            let now = self.get(&served.name);
            if now.is_none_or(|now| !Arc::ptr_eq(&now, &served)) {
                served.replaced.cancel();
            }
        }
    }

    /// Returns the number of connectors that are polled.
    pub(super) fn polling(&self) -> usize {
        self.polling.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_that_moved_is_asked_for_by_its_new_id_from_then_on() {
        let lasting = LastingState::default();
        assert_eq!(lasting.present_chat("-5"), "-5");
        lasting.chat_moved("-5", "-1001");
        lasting.chat_moved("-5", "-1002");
        assert_eq!(lasting.present_chat("-5"), "-1002");
        assert_eq!(lasting.present_chat("-6"), "-6");
        for number in 0..=MOVED_CHATS_MAX {
            lasting.chat_moved(&number.to_string(), "1");
        }
        let moved = lasting.moved_chats.lock().unwrap();
        assert!(moved.len() <= MOVED_CHATS_MAX);
    }
}
