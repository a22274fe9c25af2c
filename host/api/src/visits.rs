//! Limits on the visitors of chats, who come without a credential: how many come, how much each of
//! them, each address and all together say, and how many event streams they follow.
//!
//! They are kept for this process, as those of users are (`quota.rs`). What is stored of a visitor
//! is limited as what is stored of any user. What all visitors of a chat say in some days is
//! limited too: an address may hold a part of what it leaves to all others, and what is refused
//! costs nothing.

use crate::problem::Problem;
use crate::quota::{PerMinute, Rates};
use domain::connector::{VISITOR_SAYING_BYTES, VISITORS_BYTES_DAYS, has_room};
use domain::error_code::ErrorCode;
use domain::path::{ConnectorKey, ConnectorName};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Visitors who come to one connector.
const COMING: PerMinute = PerMinute {
    max: 600,
    at_once: 100,
};
/// Visitors who come from one address.
const COMING_FROM_ADDRESS: PerMinute = PerMinute {
    max: 20,
    at_once: 10,
};
/// Messages and answers of one visitor.
const SAYING: PerMinute = PerMinute {
    max: 60,
    at_once: 20,
};
/// KiB of what is said from one address.
const SAYING_FROM_ADDRESS_KIB: PerMinute = PerMinute {
    max: 2_048,
    at_once: 1_024,
};
/// Places of visitors whose addresses are known at the same time, so that the list stays small.
const PLACES_KNOWN_MAX: usize = 100_000;
/// Seconds after which the bytes of a chat are counted again: some may be old or purged.
const BYTES_COUNTED_S: u64 = 600;
/// Seconds of a day.
const DAY_S: u64 = 86_400;
/// Event streams of one visitor at the same time.
const STREAMS_OF_VISITOR_MAX: usize = 4;

/// See the module. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Visits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    coming: Rates<ConnectorName>,
    coming_from: Rates<IpAddr>,
    saying: Rates<ConnectorKey>,
    saying_from: Rates<IpAddr>,
    streams: Mutex<Streams>,
    places: Mutex<Places>,
    said: Mutex<HashMap<ConnectorName, ChatBytes>>,
    /// Held by whoever reads the store for `said`.
    counting: tokio::sync::Mutex<()>,
    began: Instant,
}

/// The addresses from which visitors came to their places.
#[derive(Debug, Default)]
struct Places {
    of: HashMap<ConnectorKey, IpAddr>,
    /// Number of places of each address in a chat.
    number: HashMap<(ConnectorName, IpAddr), usize>,
}

/// The bytes that the visitors of a chat said in the last days.
#[derive(Debug)]
struct ChatBytes {
    /// All of them: what the store has of them, and what was taken since.
    all: u64,
    counted: Instant,
    /// The bytes of each address, by the day of this process on which they came.
    of: HashMap<IpAddr, BTreeMap<u64, u64>>,
    /// The first day whose bytes count.
    since: u64,
}

impl ChatBytes {
    fn of_address(&self, address: IpAddr) -> u64 {
        self.of.get(&address).map_or(0, |days| days.values().sum())
    }

    /// Forgets what addresses said on the days that count no longer.
    fn forget_before(&mut self, day: u64) {
        if day == self.since {
            return;
        }
        self.since = day;
        self.of.retain(|_, days| {
            *days = days.split_off(&day);
            !days.is_empty()
        });
    }
}

/// Something that a visitor says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saying<'a> {
    pub(crate) visitor: &'a ConnectorKey,
    pub(crate) from: IpAddr,
    /// Bytes of its text.
    pub(crate) bytes: usize,
}

/// The event streams of visitors.
#[derive(Debug, Default)]
struct Streams {
    of: HashMap<ConnectorKey, usize>,
    all: usize,
}

impl Default for Visits {
    fn default() -> Self {
        Self(Arc::new(Shared {
            coming: Rates::new(COMING),
            coming_from: Rates::new(COMING_FROM_ADDRESS),
            saying: Rates::new(SAYING),
            saying_from: Rates::new(SAYING_FROM_ADDRESS_KIB),
            streams: Mutex::default(),
            places: Mutex::default(),
            said: Mutex::default(),
            counting: tokio::sync::Mutex::default(),
            began: Instant::now(),
        }))
    }
}

impl Visits {
    /// Counts a visitor who comes to a connector.
    ///
    /// # Errors
    /// 429: too many come from this address, or to this connector.
    pub(crate) fn come(&self, connector: &ConnectorName, from: IpAddr) -> Result<(), Problem> {
        let Self(shared) = self;
        let from = network(from);
        shared
            .coming_from
            .take(from)
            .map_err(|wait| limited("too many visitors come from your address", wait))?;
        shared.coming.take(connector.clone()).map_err(|wait| {
            shared.coming_from.give_back(&from, 1);
            limited("too many visitors come here", wait)
        })
    }

    /// Notes that a place of a chat went to a visitor from an address, unless that is known, and
    /// the place of whom it was, if it was somebody's.
    pub(crate) fn place(&self, visitor: &ConnectorKey, from: IpAddr, gone: Option<&ConnectorKey>) {
        let mut places = self.places();
        if let Some(gone) = gone
            && let Some(address) = places.of.remove(gone)
            && let Entry::Occupied(mut number) =
                places.number.entry((gone.connector().clone(), address))
        {
            *number.get_mut() -= 1;
            if *number.get() == 0 {
                number.remove();
            }
        }
        if places.of.len() < PLACES_KNOWN_MAX && !places.of.contains_key(visitor) {
            let address = network(from);
            places.of.insert(visitor.clone(), address);
            let of_address = (visitor.connector().clone(), address);
            *places.number.entry(of_address).or_default() += 1;
        }
    }

    /// Returns the number of places in a chat that went to an address.
    pub(crate) fn places_of(&self, connector: &ConnectorName, from: IpAddr) -> usize {
        let places = self.places();
        let number = places.number.get(&(connector.clone(), network(from)));
        number.copied().unwrap_or_default()
    }

    /// Returns the number of places that went to the address from which a visitor came, as far as
    /// it is known.
    pub(crate) fn places_beside(&self, visitor: &ConnectorKey) -> usize {
        let address = self.places().of.get(visitor).copied();
        address.map_or(1, |address| self.places_of(visitor.connector(), address))
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        let Self(shared) = self;
        shared.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a message or an answer of a visitor.
    ///
    /// # Errors
    /// 429: there were too many.
    pub(crate) fn say(&self, visitor: &ConnectorKey) -> Result<(), Problem> {
        let Self(shared) = self;
        let taken = shared.saying.take(visitor.clone());
        taken.map_err(|wait| limited("that are too many messages in a minute", wait))
    }

    /// Counts the bytes of what a visitor says: those that come from an address in a minute, and
    /// those that visitors of the chat said in the last days, which are read from the store if they
    /// were not a moment ago. They are given back when the result
    /// is dropped, unless it is kept. After a restart, it is noted from where the visitor comes.
    ///
    /// # Errors
    /// 429: there were too many; the store cannot be read.
    pub(crate) async fn say_bytes(
        &self,
        received: impl Future<Output = Result<u64, broker::Error>>,
        saying: Saying<'_>,
    ) -> Result<SaidShare, Problem> {
        let Self(shared) = self;
        let connector = saying.visitor.connector();
        let from = network(saying.from);
        let kib = u32::try_from(saying.bytes.div_ceil(1_024)).unwrap_or(u32::MAX);
        let counted = self.count(received, connector).await?;
        let taken = shared.saying_from.take_many(from, kib);
        taken.map_err(|wait| limited("too much is said from your address", wait))?;
        let day = shared.began.elapsed().as_secs() / DAY_S;
        let mut share = SaidShare {
            visits: self.clone(),
            connector: connector.clone(),
            from,
            kib,
            bytes: 0,
            day,
            counted,
        };
        let bytes = VISITOR_SAYING_BYTES.saturating_add(saying.bytes as u64);
        let mut said = self.said();
        if let Some(chat) = said.get_mut(connector) {
            chat.forget_before(day.saturating_sub(VISITORS_BYTES_DAYS));
            if !has_room(chat.of_address(from), chat.all, bytes) {
                let recount = Duration::from_secs(BYTES_COUNTED_S);
                let wait = recount.saturating_sub(chat.counted.elapsed());
                drop(said);
                let detail = "your address has its share of what this chat takes in some days";
                return Err(limited(detail, wait));
            }
            chat.all += bytes;
            *chat.of.entry(from).or_default().entry(day).or_default() += bytes;
            share.bytes = bytes;
        }
        drop(said);
        self.place(saying.visitor, saying.from, None);
        Ok(share)
    }

    /// Counts the bytes of a chat in the store, unless that was done a moment ago. Returns when it
    /// was done.
    async fn count(
        &self,
        received: impl Future<Output = Result<u64, broker::Error>>,
        connector: &ConnectorName,
    ) -> Result<Instant, Problem> {
        let Self(shared) = self;
        let _alone = shared.counting.lock().await;
        let known = self.said().get(connector).map(|chat| chat.counted);
        if let Some(counted) = known
            && counted.elapsed() < Duration::from_secs(BYTES_COUNTED_S)
        {
            return Ok(counted);
        }
        let counted = Instant::now();
        let all = received.await?;
        let mut said = self.said();
        match said.entry(connector.clone()) {
            Entry::Occupied(mut chat) => {
                let chat = chat.get_mut();
                chat.all = all;
                chat.counted = counted;
            }
            Entry::Vacant(place) => {
                place.insert(ChatBytes {
                    all,
                    counted,
                    of: HashMap::new(),
                    since: 0,
                });
            }
        }
        Ok(counted)
    }

    fn said(&self) -> MutexGuard<'_, HashMap<ConnectorName, ChatBytes>> {
        let Self(shared) = self;
        shared.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event stream of a visitor, which is given back when the result is dropped. All of
    /// them together are at most `all_max`.
    ///
    /// # Errors
    /// 429: the visitor, or all visitors together, have too many.
    pub(crate) fn follow(
        &self,
        visitor: &ConnectorKey,
        all_max: usize,
    ) -> Result<VisitorStream, Problem> {
        let Self(shared) = self;
        let mut streams = shared
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let own = streams.of.get(visitor).copied().unwrap_or_default();
        if own >= STREAMS_OF_VISITOR_MAX || streams.all >= all_max {
            let detail = "too many event streams are open; close one, or try again later";
            return Err(Problem::new(ErrorCode::TooManyStreams, detail));
        }
        streams.all += 1;
        streams.of.insert(visitor.clone(), own + 1);
        Ok(VisitorStream {
            visits: self.clone(),
            visitor: visitor.clone(),
        })
    }
}

/// The bytes of something that a visitor says; given back when it is dropped: unless it is kept,
/// nothing was said.
#[derive(Debug)]
#[must_use]
pub(crate) struct SaidShare {
    visits: Visits,
    connector: ConnectorName,
    from: IpAddr,
    kib: u32,
    bytes: u64,
    day: u64,
    /// The time at which the bytes of the chat were counted to which these were added.
    counted: Instant,
}

impl SaidShare {
    /// Counts them for good.
    pub(crate) fn keep(mut self) {
        self.kib = 0;
        self.bytes = 0;
    }
}

impl Drop for SaidShare {
    fn drop(&mut self) {
        let Visits(shared) = &self.visits;
        shared.saying_from.give_back(&self.from, self.kib);
        let mut said = self.visits.said();
        let Some(chat) = said.get_mut(&self.connector) else {
            return;
        };
        // Another count has not found them.
        if chat.counted == self.counted {
            chat.all = chat.all.saturating_sub(self.bytes);
        }
        let days = chat.of.get_mut(&self.from);
        if let Some(total) = days.and_then(|days| days.get_mut(&self.day)) {
            *total = total.saturating_sub(self.bytes);
        }
    }
}

/// One event stream of a visitor's; given back when it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct VisitorStream {
    visits: Visits,
    visitor: ConnectorKey,
}

impl Drop for VisitorStream {
    fn drop(&mut self) {
        let Visits(shared) = &self.visits;
        let mut streams = shared
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        streams.all = streams.all.saturating_sub(1);
        if let Some(own) = streams.of.get_mut(&self.visitor) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                streams.of.remove(&self.visitor);
            }
        }
    }
}

/// Returns what stands for an address: of IPv6 the network of 64 bits, as one customer has.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or_else(
            || IpAddr::V6(Ipv6Addr::from(u128::from(address) >> 64 << 64)),
            IpAddr::V4,
        ),
    }
}

fn limited(detail: &str, wait: Duration) -> Problem {
    let detail = format!("{detail}; try again later");
    Problem::new(ErrorCode::VisitorLimit, detail).retry_after(wait.as_secs() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> ConnectorKey {
        format!("site:{id}").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_does_not_take_all_visits() {
        let visits = Visits::default();
        let site: ConnectorName = "site".parse().unwrap();
        let storm: IpAddr = "2001:db8::1".parse().unwrap();
        let same_network: IpAddr = "2001:db8::2:3".parse().unwrap();
        for _ in 0..COMING_FROM_ADDRESS.at_once {
            assert_eq!(visits.come(&site, storm), Ok(()));
        }
        let problem = visits.come(&site, same_network).unwrap_err();
        assert_eq!(
            (problem.code.status(), problem.code.as_str()),
            (429, "VISITOR_LIMIT")
        );
        assert_eq!(visits.come(&site, "192.0.2.1".parse().unwrap()), Ok(()));
    }

    #[test]
    fn the_places_of_an_address_are_counted_until_others_get_them() {
        let visits = Visits::default();
        let site: ConnectorName = "site".parse().unwrap();
        let [many, few]: [IpAddr; 2] = [1, 2].map(|last| [192, 0, 2, last].into());
        visits.place(&key("a"), many, None);
        visits.place(&key("b"), many, None);
        assert_eq!(visits.places_beside(&key("a")), 2);
        assert_eq!(visits.places_of(&site, few), 0);
        visits.place(&key("c"), few, Some(&key("a")));
        assert_eq!(visits.places_beside(&key("b")), 1);
        assert_eq!(visits.places_beside(&key("c")), 1);
        assert_eq!(visits.places_beside(&key("from before a restart")), 1);
        visits.place(&key("d"), few, Some(&key("b")));
        assert_eq!(visits.places_of(&site, many), 0);
    }

    const TEXT_BYTES: usize = 64 << 10;

    /// Chats of a store that has nothing of them.
    struct Chats {
        visits: Visits,
    }

    impl Chats {
        fn new() -> Self {
            Self {
                visits: Visits::default(),
            }
        }

        /// A visitor from an address says a long text.
        async fn say(&self, visitor: &str, from: IpAddr) -> Result<SaidShare, &'static str> {
            let saying = Saying {
                visitor: &key(visitor),
                from,
                bytes: TEXT_BYTES,
            };
            let said = self.visits.say_bytes(async { Ok(0) }, saying).await;
            said.map_err(|problem| problem.code.as_str())
        }

        fn of(&self, from: IpAddr) -> (u64, u64) {
            let said = self.visits.said();
            let chat = &said[&site()];
            (chat.of_address(from), chat.all)
        }
    }

    fn site() -> ConnectorName {
        "site".parse().unwrap()
    }

    fn addresses() -> [IpAddr; 2] {
        [1, 2].map(|last| [192, 0, 2, last].into())
    }

    #[tokio::test]
    async fn an_address_says_a_limited_number_of_bytes_in_a_minute() {
        let chats = Chats::new();
        let [storm, other] = addresses();
        for visitor in 0..16 {
            chats.say(&visitor.to_string(), storm).await.unwrap().keep();
        }
        assert_eq!(chats.say("new", storm).await.unwrap_err(), "VISITOR_LIMIT");
        chats.say("other", other).await.unwrap().keep();
    }

    #[tokio::test]
    async fn what_is_refused_costs_neither_its_address_nor_its_chat_anything() {
        let chats = Chats::new();
        let [from, _] = addresses();
        chats.say("a", from).await.unwrap().keep();
        let before = chats.of(from);
        assert_eq!(before.0, VISITOR_SAYING_BYTES + TEXT_BYTES as u64);
        // More than the address may say in a minute: nothing of it was taken.
        for _ in 0..100 {
            drop(chats.say("a", from).await.unwrap());
        }
        assert_eq!(chats.of(from), before);
    }

    #[tokio::test]
    async fn an_address_that_has_its_share_of_a_chat_leaves_room_and_gets_it_back_by_time() {
        let chats = Chats::new();
        let [storm, other] = addresses();
        chats.say("a", storm).await.unwrap().keep();
        let half = domain::connector::VISITORS_BYTES_MAX / 2;
        if let Some(chat) = chats.visits.said().get_mut(&site()) {
            chat.all = half;
            chat.of.insert(storm, BTreeMap::from([(0, half)]));
        }
        assert_eq!(chats.say("b", storm).await.unwrap_err(), "VISITOR_LIMIT");
        chats.say("c", other).await.unwrap().keep();
        // Days later the store has nothing of it that counts, and neither has the address.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs((VISITORS_BYTES_DAYS + 1) * DAY_S)).await;
        tokio::time::resume();
        chats.say("b", storm).await.unwrap().keep();
        let total = VISITOR_SAYING_BYTES + TEXT_BYTES as u64;
        assert_eq!(chats.of(storm), (total, total));
    }

    #[tokio::test]
    async fn the_address_of_a_visitor_is_known_again_when_they_say_something() {
        let chats = Chats::new();
        let [from, _] = addresses();
        for visitor in ["a", "b", "b"] {
            chats.say(visitor, from).await.unwrap().keep();
        }
        assert_eq!(chats.visits.places_beside(&key("a")), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_visitor_has_a_limited_number_of_streams() {
        let visits = Visits::default();
        let mut total: Vec<_> = (0..STREAMS_OF_VISITOR_MAX)
            .map(|_| visits.follow(&key("a"), 6).unwrap())
            .collect();
        assert!(visits.follow(&key("a"), 6).is_err());
        total.push(visits.follow(&key("b"), 6).unwrap());
        total.push(visits.follow(&key("c"), 6).unwrap());
        assert!(visits.follow(&key("d"), 6).is_err(), "all have too many");
        drop(total);
        assert!(visits.follow(&key("a"), 6).is_ok());
    }
}
