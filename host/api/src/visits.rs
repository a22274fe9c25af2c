//! Limits on the visitors of chats, who come without a credential: how many come, how much each of
//! them, each address and all together say, and how many event streams they follow.
//!
//! They are kept for this process, as those of users are (`quota.rs`). What is stored of a visitor
//! is limited as what is stored of any user, and so is what is stored of all visitors of a chat.

use crate::problem::Problem;
use crate::quota::{PerMinute, Rates};
use domain::connector::VISITORS_BYTES_MAX;
use domain::path::{ConnectorKey, ConnectorName};
use http::StatusCode;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::Store;
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
/// Seconds after which the bytes of a chat are counted again: some may have been purged.
const BYTES_COUNTED_S: u64 = 600;
/// Event streams of one visitor at the same time.
const STREAMS_OF_VISITOR_MAX: usize = 4;
/// Seconds after which a visitor is asked to come back for a stream.
const STREAM_RETRY_AFTER_S: u64 = 5;

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
    stored: tokio::sync::Mutex<HashMap<ConnectorName, Stored>>,
}

/// The addresses from which visitors came to their places.
#[derive(Debug, Default)]
struct Places {
    of: HashMap<ConnectorKey, IpAddr>,
    /// Number of places of each address in a chat.
    number: HashMap<(ConnectorName, IpAddr), usize>,
}

/// The bytes that are stored of a chat.
#[derive(Debug)]
struct Stored {
    bytes: u64,
    counted: Instant,
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
            stored: tokio::sync::Mutex::default(),
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
        shared
            .coming_from
            .take(network(from))
            .map_err(|wait| limited("too many visitors come from your address", wait))?;
        shared
            .coming
            .take(connector.clone())
            .map_err(|wait| limited("too many visitors come here", wait))
    }

    /// Notes that a place of a chat went to a visitor from an address, and the place of whom it
    /// was, if it was somebody's.
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
        if places.of.len() < PLACES_KNOWN_MAX {
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

    /// Counts the bytes of a message: those that come from an address, and those that are stored of
    /// all visitors of the chat.
    ///
    /// # Errors
    /// 429: there were too many; the store cannot be read.
    pub(crate) async fn say_bytes(
        &self,
        store: &Store,
        visitor: &ConnectorKey,
        from: IpAddr,
        bytes: usize,
    ) -> Result<(), Problem> {
        let Self(shared) = self;
        let kib = u32::try_from(bytes.div_ceil(1_024)).unwrap_or(u32::MAX);
        let taken = shared.saying_from.take_many(network(from), kib);
        taken.map_err(|wait| limited("too much is said from your address", wait))?;
        let connector = visitor.connector();
        let mut stored = shared.stored.lock().await;
        let counted = Duration::from_secs(BYTES_COUNTED_S);
        let known = stored
            .get(connector)
            .is_some_and(|it| it.counted.elapsed() < counted);
        if !known {
            let bytes = store.bytes_of_connector(connector).await?;
            let counted = Instant::now();
            stored.insert(connector.clone(), Stored { bytes, counted });
        }
        if let Some(stored) = stored.get_mut(connector) {
            if stored.bytes + bytes as u64 > VISITORS_BYTES_MAX {
                let wait = counted.saturating_sub(stored.counted.elapsed());
                let detail = "this chat holds as much as it may; its operator can purge some";
                return Err(limited(detail, wait));
            }
            stored.bytes += bytes as u64;
        }
        Ok(())
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
            let status = StatusCode::TOO_MANY_REQUESTS;
            return Err(
                Problem::new(status, "TOO_MANY_STREAMS", detail).retry_after(STREAM_RETRY_AFTER_S)
            );
        }
        streams.all += 1;
        streams.of.insert(visitor.clone(), own + 1);
        Ok(VisitorStream {
            visits: self.clone(),
            visitor: visitor.clone(),
        })
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
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "VISITOR_LIMIT", detail)
        .retry_after(wait.as_secs() + 1)
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
            (problem.status.as_u16(), problem.code),
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

    #[tokio::test]
    async fn an_address_says_a_limited_number_of_bytes_in_a_minute() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), store::Options::default()).unwrap();
        let visits = Visits::default();
        let [storm, other]: [IpAddr; 2] = [1, 2].map(|last| [192, 0, 2, last].into());
        let say = async |id: &str, from| {
            let said = visits.say_bytes(&store, &key(id), from, 64 << 10).await;
            said.map_err(|problem| problem.code)
        };
        for visitor in 0..16 {
            assert_eq!(say(&visitor.to_string(), storm).await, Ok(()));
        }
        assert_eq!(say("new", storm).await, Err("VISITOR_LIMIT"));
        assert_eq!(say("other", other).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_visitor_has_a_limited_number_of_streams() {
        let visits = Visits::default();
        let mut held: Vec<_> = (0..STREAMS_OF_VISITOR_MAX)
            .map(|_| visits.follow(&key("a"), 6).unwrap())
            .collect();
        assert!(visits.follow(&key("a"), 6).is_err());
        held.push(visits.follow(&key("b"), 6).unwrap());
        held.push(visits.follow(&key("c"), 6).unwrap());
        assert!(visits.follow(&key("d"), 6).is_err(), "all have too many");
        drop(held);
        assert!(visits.follow(&key("a"), 6).is_ok());
    }
}
