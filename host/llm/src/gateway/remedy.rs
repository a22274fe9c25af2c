//! The way out to one provider: what follows from its entry in the config, and nothing more.

use crate::config::{Config, ConfigProblem, ProviderConfig};
use crate::provider::exchange::RESPONSE_BYTES_MAX;
use domain::egress::{
    AddressRange, EgressGrant, Host, HostPattern, Method, PathPattern, Reach, Scheme, Target,
    TargetError, ceiling, classify,
};
use egress::{Egress, Limits, Resolve, SystemResolver, no_tls, system_tls};
use std::net::IpAddr;
use std::sync::Arc;

/// Connections to one provider that are kept for its next calls.
const IDLE_CONNECTIONS_MAX: usize = 16;
/// Milliseconds for which one is kept.
const IDLE_CONNECTION_MS_MAX: u64 = 60_000;
/// Milliseconds by which egress waits longer than the gateway. So the gateway reports what was
/// late.
const GRACE_MS: u64 = 1_000;
/// The addresses of `localhost`.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1"];

/// The base URL of a provider, read.
pub(super) struct ProviderUrl(Target);

impl ProviderUrl {
    /// Reads a base URL.
    pub(super) fn parse(text: &str) -> Result<Self, ConfigProblem> {
        let no = |why| ConfigProblem::BaseUrl { why };
        if text.contains(['?', '#']) {
            return Err(no("it must end with its path"));
        }
        let target = Target::parse(text).map_err(|error| match error {
            TargetError::Scheme => no("it must begin with http:// or https:// and name a host"),
            TargetError::UserInfo => no("a user or password does not belong in it"),
            _ => no("it cannot be read as a URL"),
        })?;
        Ok(Self(target))
    }

    /// Returns the URL for requests of a dialect.
    pub(super) fn permit(&self, path: &str) -> String {
        format!("{}/{path}", self.0.url().trim_end_matches('/'))
    }

    /// Returns whether a key that goes there can be read on the way.
    pub(super) fn is_in_the_open(&self) -> bool {
        self.0.scheme() == Scheme::Http && !self.0.host().is_loopback()
    }

    /// Returns the grant for this provider: requests below its path. Addresses that are not public
    /// are open if they are named: here, or in `private`.
    pub(super) fn grant(&self, private: &[AddressRange]) -> Result<EgressGrant, ConfigProblem> {
        let no = |why| ConfigProblem::BaseUrl { why };
        let Self(base) = self;
        let host = HostPattern::parse(&base.host().to_string())
            .map_err(|_| no("it cannot be read as a URL"))?;
        let path = PathPattern::parse(&format!("{}/**", base.path().trim_end_matches('/')));
        Ok(EgressGrant {
            schemes: vec![base.scheme()],
            ports: Some(vec![base.port()]),
            methods: vec![Method::Post, Method::Get],
            path: path.map_err(|_| no("its path is not a plain one"))?,
            private_addresses: private
                .iter()
                .cloned()
                .chain(
                    written(base.host())
                        .into_iter()
                        .filter(|range| !private.contains(range)),
                )
                .collect(),
            request_bytes_max: ceiling::REQUEST_BYTES_MAX,
            // The gateway says it when an answer is too large.
            response_bytes_max: RESPONSE_BYTES_MAX as u64 * 2,
            ..EgressGrant::of(host)
        })
    }
}

/// The addresses that an operator has named by writing this host.
fn written(host: &Host) -> Vec<AddressRange> {
    let named: Vec<String> = match host {
        Host::Name(_) if host.is_loopback() => LOOPBACK.map(str::to_owned).to_vec(),
        Host::Name(_) => Vec::new(),
        Host::Address(address) if matches!(classify(*address), Reach::Public | Reach::Metadata) => {
            Vec::new()
        }
        Host::Address(IpAddr::V4(address)) => vec![address.to_string()],
        Host::Address(IpAddr::V6(address)) => vec![address.to_string()],
    };
    named
        .iter()
        .filter_map(|text| AddressRange::parse(text).ok())
        .collect()
}

/// A way out for one provider alone, with the limits of the gateway's own waits.
pub(super) fn remedy(
    base: &ProviderUrl,
    provider: &ProviderConfig,
    config: &Config,
    resolver: Option<Arc<dyn Resolve>>,
) -> Result<Egress, ConfigProblem> {
    let tls = match base.0.scheme() {
        Scheme::Https => system_tls(),
        Scheme::Http => no_tls(),
    };
    let tls = tls.map_err(|source| ConfigProblem::Tls { source })?;
    let resolver = resolver.unwrap_or_else(|| Arc::new(SystemResolver));
    let timeouts = &config.timeouts;
    let patience_ms = timeouts
        .first_token_ms
        .max(timeouts.whole_ms)
        .max(timeouts.idle_ms)
        .saturating_add(GRACE_MS);
    // Lookups that were given up count until they end.
    let under_way = usize::try_from(
        provider
            .concurrent_max
            .unwrap_or(crate::config::CONCURRENT_DEFAULT),
    )
    .unwrap_or(usize::MAX)
        * 2;
    let limits = Limits {
        in_flight_max: under_way,
        in_flight_per_component_max: under_way,
        queue_ms_max: timeouts.connect_ms,
        resolve_ms_max: timeouts.connect_ms,
        connect_ms_max: timeouts.connect_ms,
        first_byte_ms_max: patience_ms,
        idle_ms_max: patience_ms,
        total_ms_max: Some(timeouts.total_ms.saturating_add(GRACE_MS)),
        idle_connections_max: IDLE_CONNECTIONS_MAX,
        idle_connection_ms_max: IDLE_CONNECTION_MS_MAX,
    };
    Ok(Egress::new(resolver, tls, limits))
}

#[cfg(test)]
mod tests;
