//! A server in place of the network, for native tests: it answers the requests of the test that
//! started it, and of no other.

use crate::harness::bench::require;
use crate::http::{HttpError, Outgoing, Response, secret_in};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Headers in which the host sends nothing but a secret that is bound there.
const CREDENTIALS: [&str; 13] = [
    "api-key",
    "authorization",
    "cookie",
    "cookie2",
    "ocp-apim-subscription-key",
    "private-token",
    "x-access-token",
    "x-amz-security-token",
    "x-api-key",
    "x-auth-token",
    "x-functions-key",
    "x-goog-api-key",
    "x-vault-token",
];
/// The beginning of every placeholder.
const PLACEHOLDER: &str = "{{secret.";

type Answer = dyn Fn(&Outgoing) -> Result<Response, HttpError>;

/// The answers of a server, and what it was asked.
struct Script {
    answer: Box<Answer>,
    requests: RefCell<Vec<Outgoing>>,
}

thread_local! {
    /// The last one answers.
    static SERVERS: RefCell<Vec<Rc<Script>>> = const { RefCell::new(Vec::new()) };
}

/// A server that answers the requests of this test as long as this lives.
#[must_use = "the server answers until it is dropped"]
pub struct HttpServer(Rc<Script>);

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("requests", &self.0.requests.borrow().len())
            .finish()
    }
}

/// Answers the requests of the code under test with this function, whatever host they are for. An
/// error such as [`HttpError::TimedOut`] is one of the network. A second server answers in place of
/// the first until it is dropped.
///
/// Requests have to keep the host's rules for secrets: a tool that breaks one panics.
pub fn serve_http(
    answer: impl Fn(&Outgoing) -> Result<Response, HttpError> + 'static,
) -> HttpServer {
    let script = Rc::new(Script {
        answer: Box::new(answer),
        requests: RefCell::default(),
    });
    SERVERS.with_borrow_mut(|servers| servers.push(Rc::clone(&script)));
    HttpServer(script)
}

impl HttpServer {
    /// The requests that it got so far, in their order.
    #[must_use]
    pub fn requests(&self) -> Vec<Outgoing> {
        self.0.requests.borrow().clone()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        SERVERS.with_borrow_mut(|servers| servers.retain(|other| !Rc::ptr_eq(other, &self.0)));
    }
}

/// Answers one request.
pub(crate) fn answer(request: &Outgoing) -> Result<Response, HttpError> {
    require(&["net.http"]);
    check(request);
    let Some(script) = SERVERS.with_borrow(|servers| servers.last().cloned()) else {
        return Err(HttpError::Unscripted { url: request.url() });
    };
    script.requests.borrow_mut().push(request.clone());
    (script.answer)(request)
}

/// Panics when a placeholder stands in the host, or in the path and is not the end of a part of it.
fn check_path(request: &Outgoing) {
    let in_path = |part: &&str| part.contains(PLACEHOLDER);
    let mut parts = request.path().split('/').filter(in_path);
    let placed = parts.next();
    if placed.is_some() {
        require(&["secrets.use"]);
    }
    assert!(
        placed.is_none_or(|part| secret_in(part).is_some()) && parts.next().is_none(),
        "a secret in a path is the end of one part of it, so the host refuses `{}`",
        request.url()
    );
    assert!(
        !request.authority().contains(PLACEHOLDER),
        "a secret goes into a header, a parameter or the path, so the host refuses `{}`",
        request.url()
    );
}

/// Panics when a secret is asked for where the host puts none, or a credential is not one.
fn check(request: &Outgoing) {
    let mut values = request.parameters();
    values.extend(request.headers().iter().cloned());
    for (name, value) in &values {
        if !value.contains(PLACEHOLDER) {
            continue;
        }
        require(&["secrets.use"]);
        assert!(
            secret_in(value).is_some(),
            "the placeholder of a secret is the whole value of `{name}`, so the host refuses \
             `{value}`"
        );
    }
    check_path(request);
    for (name, value) in request.headers() {
        let is_credential = CREDENTIALS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name));
        assert!(
            !is_credential || value.contains(PLACEHOLDER),
            "the host sends `{name}` with a secret alone: `.secret_header(\"{name}\", …)`"
        );
    }
}
