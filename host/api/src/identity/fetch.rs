//! The source of an issuer's keys: one or two requests through egress, bounded in size and time,
//! without redirects.

use super::config::{IssuerConfig, IssuerProblem};
use super::jwk::KeySet;
use bytes::Bytes;
use domain::egress::{AddressRange, EgressGrant, HostPattern, Method, Scheme, Target};
use domain::redact::Redactor;
use egress::{
    ByteBudget, Caller, Credentials, Egress, EgressError, Limits, Record, Records, Request,
    Resolve, no_tls, system_tls,
};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use std::sync::Arc;

/// Bytes of a key set or a discovery document.
const DOCUMENT_BYTES_MAX: u64 = 256 << 10;
/// Milliseconds of one request.
const REQUEST_MS_MAX: u64 = 5_000;
/// Requests to one issuer at the same time. Normally there is one; abandoned lookups count until
/// they end.
const REQUESTS_MAX: usize = 4;
/// Path of the document in which an issuer gives the URL of its keys.
const DISCOVERY: &str = "/.well-known/openid-configuration";
/// The addresses of this machine.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1"];

/// A failure to fetch keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("`{url}` cannot be fetched")]
    Unsent {
        url: String,
        #[source]
        source: EgressError,
    },
    #[error("`{url}` answers {status}")]
    Status { url: String, status: StatusCode },
    #[error("`{url}` names no location of keys, or is of another issuer")]
    Discovery { url: String },
    #[error("`{url}` cannot hold keys: {why}")]
    RequestPart { url: String, why: String },
    #[error("`{url}` has no key that can be used")]
    NoKey { url: String },
}

/// The source of one issuer's keys.
#[derive(Debug)]
pub(super) struct Source {
    egress: Egress,
    issuer: String,
    jwks_url: Option<String>,
    private: Vec<AddressRange>,
}

/// An issuer's discovery document, as far as it is used.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// Reads the URL of a document: `https`, except on this machine.
pub(super) fn place(url: &str) -> Result<Target, String> {
    let target =
        Target::parse(url).map_err(|error| format!("`{url}` cannot be asked for keys: {error}"))?;
    if target.scheme() == Scheme::Http && !target.host().is_loopback() {
        return Err(format!(
            "`{url}` must begin with https://, or whoever is on the way could give out keys of \
             their own"
        ));
    }
    Ok(target)
}

impl Source {
    pub(super) fn new(
        config: &IssuerConfig,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, IssuerProblem> {
        let (key, url) = config
            .jwks_url
            .as_ref()
            .map_or(("issuer", &config.issuer), |url| ("jwksUrl", url));
        let target = place(url).map_err(|message| IssuerProblem::new(key, message))?;
        let tls = if target.scheme() == Scheme::Https {
            system_tls()
        } else {
            no_tls()
        };
        let tls =
            tls.map_err(|error| IssuerProblem::new(key, format!("TLS cannot be set up: {error}")))?;
        let limits = Limits {
            in_flight_max: REQUESTS_MAX,
            in_flight_per_component_max: REQUESTS_MAX,
            first_byte_ms_max: REQUEST_MS_MAX,
            idle_ms_max: REQUEST_MS_MAX,
            total_ms_max: Some(REQUEST_MS_MAX),
            ..Limits::default()
        };
        Ok(Self {
            egress: Egress::new(resolver, tls, limits),
            issuer: config.issuer.clone(),
            jwks_url: config.jwks_url.clone(),
            private: config.private_addresses.clone(),
        })
    }

    /// The issuer's keys as they are now.
    pub(super) async fn keys(&self) -> Result<KeySet, FetchError> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discovered().await?,
        };
        KeySet::read(&self.document(&url).await?).ok_or(FetchError::NoKey { url })
    }

    /// Returns the URL that the issuer gives for its keys.
    async fn discovered(&self) -> Result<String, FetchError> {
        let url = format!("{}{DISCOVERY}", self.issuer.trim_end_matches('/'));
        let found = serde_json::from_slice::<Discovery>(&self.document(&url).await?).ok();
        // Another issuer's document would lead to that issuer's keys.
        let found = found
            .filter(|found| found.issuer == self.issuer)
            .ok_or(FetchError::Discovery { url })?;
        Ok(found.jwks_uri)
    }

    async fn document(&self, url: &str) -> Result<Bytes, FetchError> {
        let target = place(url).map_err(|why| FetchError::RequestPart {
            url: url.to_owned(),
            why,
        })?;
        let grant = self.grant(&target).ok_or_else(|| FetchError::RequestPart {
            url: url.to_owned(),
            why: "its host is none".to_owned(),
        })?;
        let request = Request {
            caller: Caller {
                component: format!("identity:{}", self.issuer),
                budget: ByteBudget::of(u64::MAX),
                records: Arc::new(Logged),
                redactor: Redactor::default(),
            },
            method: Method::Get,
            url: url.to_owned(),
            headers: HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]),
            bound: Credentials::default(),
            body: Bytes::new(),
        };
        let unsent = |source| FetchError::Unsent {
            url: url.to_owned(),
            source,
        };
        // On the heap: it is large.
        let response = Box::pin(self.egress.send(request, &[grant]))
            .await
            .map_err(unsent)?;
        if response.status != StatusCode::OK {
            return Err(FetchError::Status {
                url: url.to_owned(),
                status: response.status,
            });
        }
        response.body.read_all().await.map_err(unsent)
    }

    /// Returns a grant for one host and one port, for reading, without redirects: the target of a
    /// redirect may be anybody's.
    fn grant(&self, target: &Target) -> Option<EgressGrant> {
        let here = LOOPBACK
            .iter()
            .filter(|_| target.host().is_loopback())
            .filter_map(|range| AddressRange::parse(range).ok());
        Some(EgressGrant {
            schemes: vec![target.scheme()],
            ports: Some(vec![target.port()]),
            private_addresses: self.private.iter().cloned().chain(here).collect(),
            response_bytes_max: DOCUMENT_BYTES_MAX,
            total_ms_max: REQUEST_MS_MAX,
            ..EgressGrant::of(HostPattern::parse(&target.host().to_string()).ok()?)
        })
    }
}

/// The sink for the records of these requests. They belong to no call, so they are in no ledger.
#[derive(Debug)]
struct Logged;

impl Records for Logged {
    fn put(&self, record: Record) {
        tracing::debug!(
            request.host = record.host.as_deref().unwrap_or_default(),
            request.path = record.path.as_deref().unwrap_or_default(),
            request.outcome = record.outcome,
            request.ms = record.ms,
            "keys were requested from an issuer of tokens"
        );
    }
}
