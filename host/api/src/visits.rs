//! Limits on the visitors of chats, who come without a credential: how many come, how much each
//! says, and how many event streams they follow.
//!
//! They are kept for this process, as those of users are (`quota.rs`). What is stored of a visitor
//! is limited as what is stored of any user.

use crate::problem::Problem;
use crate::quota::{PerMinute, Rates};
use domain::path::{ConnectorKey, ConnectorName};
use http::StatusCode;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
    streams: Mutex<Streams>,
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
            streams: Mutex::default(),
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

    /// Counts a message or an answer of a visitor.
    ///
    /// # Errors
    /// 429: there were too many.
    pub(crate) fn say(&self, visitor: &ConnectorKey) -> Result<(), Problem> {
        let Self(shared) = self;
        let taken = shared.saying.take(visitor.clone());
        taken.map_err(|wait| limited("that are too many messages in a minute", wait))
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
