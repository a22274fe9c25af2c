//! Requests to egress, the callers on whose behalf they are sent, and how many of them are under
//! way at once.

use crate::awake::timeout;
use crate::error::EgressError;
use crate::limits::Limits;
use crate::record::Records;
use crate::wire::ByteBudget;
use bytes::Bytes;
use domain::egress::Method;
use domain::redact::Redactor;
use domain::secret::Secret;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The caller on whose behalf a request is sent.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The component, or the part of the host. Requests under way are counted by it.
    pub component: String,
    /// The bytes that it may still send and receive.
    pub budget: ByteBudget,
    /// The sink for the records of its requests.
    pub records: Arc<dyn Records>,
    /// The redactor of answers and records.
    pub redactor: Redactor,
}

/// Credentials that the host adds to a request. The operator bound them to this component and host.
/// They are never printed, and put in only where the request is written. They never go along to
/// another origin.
#[derive(Clone, Default)]
pub struct Credentials {
    headers: HeaderMap,
    /// Parameters of the query, and their values before they are encoded.
    query: Vec<(String, Secret)>,
    /// The beginning of the path up to a placeholder, the placeholder, and its value.
    path: Option<(String, String, Secret)>,
}

impl Credentials {
    /// Adds a header.
    pub fn header(&mut self, name: HeaderName, mut value: HeaderValue) {
        value.set_sensitive(true);
        self.headers.append(name, value);
    }

    /// Adds a parameter of the query, in place of those that have its name.
    pub fn parameter(&mut self, name: String, value: Secret) {
        self.query.push((name, value));
    }

    /// Sets the value of the placeholder that stands in the path right behind a beginning of it.
    pub fn path_part(&mut self, beginning: String, placeholder: String, value: Secret) {
        self.path = Some((beginning, placeholder, value));
    }

    /// Returns whether nothing is added.
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_empty() && self.path.is_none()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// A path and query with the secrets put in.
    pub(crate) fn put_into(&self, path: &str, query: Option<&str>) -> String {
        let path = self.put_into_path(path);
        let is_set = |pair: &&str| {
            self.query
                .iter()
                .any(|(name, _)| pair.split('=').next() == Some(name))
        };
        let kept = query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .filter(|pair| !is_set(pair))
            .map(str::to_owned);
        let set = self
            .query
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(value.expose())));
        let pairs: Vec<String> = kept.chain(set).collect();
        if query.is_none() && pairs.is_empty() {
            path
        } else {
            format!("{path}?{}", pairs.join("&"))
        }
    }

    fn put_into_path(&self, path: &str) -> String {
        let filled = self
            .path
            .as_ref()
            .and_then(|(beginning, placeholder, value)| {
                let rest = path.strip_prefix(beginning)?.strip_prefix(placeholder)?;
                let value = encoded_in_path(value.expose());
                Some(format!("{beginning}{value}{rest}"))
            });
        filled.unwrap_or_else(|| path.to_owned())
    }

    /// Returns the credentials that go along with a redirect within the origin. Path and query are
    /// the server's there.
    pub(crate) fn without_url(self) -> Self {
        Self {
            query: Vec::new(),
            path: None,
            ..self
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<&String> = self.query.iter().map(|(name, _)| name).collect();
        f.debug_struct("Credentials")
            .field("headers", &self.headers.keys())
            .field("query", &parameters)
            .field("path", &self.path.as_ref().map(|(beginning, ..)| beginning))
            .finish()
    }
}

/// A value as it stands in a query.
fn encoded(value: &str) -> String {
    encoded_but(value, b"-._~")
}

/// A value as it stands in a part of a path. A colon stays: tokens of bots have one, and their
/// services do not all read it in another form.
fn encoded_in_path(value: &str) -> String {
    encoded_but(value, b"-._~:")
}

fn encoded_but(value: &str, signs: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || signs.contains(&byte);
    value
        .bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// One request. Its body is whole before it is sent, so that its length is known and a redirect can
/// repeat it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The caller on whose behalf it is sent.
    pub caller: Caller,
    /// The method.
    pub method: Method,
    /// The URL as the caller wrote it. It is read once.
    pub url: String,
    /// The headers that the caller wants. One that is not the caller's to set refuses the request.
    pub headers: HeaderMap,
    /// The credentials that the host adds.
    pub bound: Credentials,
    /// The body.
    pub body: Bytes,
}

/// A permit for one request. It is given back when every clone is gone.
#[derive(Debug, Clone)]
pub struct RequestPermit {
    _leased: Arc<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

/// The permits of all requests, and of those of each component.
#[derive(Debug)]
pub(crate) struct RequestSemaphore {
    all: Arc<Semaphore>,
    /// The semaphores of components that have requests under way.
    of_component: Mutex<HashMap<String, Weak<Semaphore>>>,
    of_component_max: usize,
    queue: Duration,
}

impl RequestSemaphore {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            all: Arc::new(Semaphore::new(limits.in_flight_max)),
            of_component: Mutex::default(),
            of_component_max: limits.in_flight_per_component_max,
            queue: Duration::from_millis(limits.queue_ms_max),
        }
    }

    /// Waits for a permit, first among the component's own requests. So no component stands in the
    /// common queue more often than it may have requests under way.
    pub(crate) async fn acquire(&self, component: &str) -> Result<RequestPermit, EgressError> {
        let own = self.semaphore(component);
        let acquire = async {
            let own = own.acquire_owned().await?;
            let all = Arc::clone(&self.all).acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>(RequestPermit {
                _leased: Arc::new((own, all)),
            })
        };
        timeout(self.queue, acquire)
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or(EgressError::Busy)
    }

    fn semaphore(&self, component: &str) -> Arc<Semaphore> {
        let mut known = self
            .of_component
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = known.get(component).and_then(Weak::upgrade) {
            return semaphore;
        }
        known.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.of_component_max));
        known.insert(component.to_owned(), Arc::downgrade(&semaphore));
        semaphore
    }
}
