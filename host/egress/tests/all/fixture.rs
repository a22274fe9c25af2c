//! Servers on threads of their own, a resolver with prepared answers, and a ledger that can be
//! read.

use agent_host_egress::{
    ByteBudget, Caller, Credentials, Egress, EgressError, Limits, Record, Records, Request,
    RequestPermit, Resolve, Resolving, Response,
};
use bytes::Bytes;
use domain::egress::{AddressRange, EgressGrant, HostPattern, Method, OUTCOMES, Scheme};
use domain::redact::Redactor;
use domain::secret::Secret;
use http::HeaderMap;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for anything that happens at all, in milliseconds.
pub(crate) const PATIENCE_MS: u64 = 20_000;

/// A server that reads the head of a request and leaves the rest to a script. It goes with the
/// test's process.
pub(crate) struct Server {
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn script(script: impl Fn(&mut TcpStream, &str) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            heads: Arc::default(),
            open: Arc::default(),
        };
        let script = Arc::new(script);
        let heads = Arc::clone(&server.heads);
        let open = Arc::clone(&server.open);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let script = Arc::clone(&script);
                let heads = Arc::clone(&heads);
                let open = Arc::clone(&open);
                open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    let head = read_head(&mut stream);
                    heads.lock().unwrap().push(head.clone());
                    script(&mut stream, &head);
                    drop(stream);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    /// A server that always says the same.
    pub(crate) fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::script(move |stream, _| say(stream, &answer))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://a.test:{}/", self.port)
    }

    /// A grant for requests to it.
    pub(crate) fn grant(&self) -> EgressGrant {
        grant("a.test", self.port)
    }

    /// The heads of the requests that came.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// Waits until so many connections are open.
    pub(crate) fn wait_for_open(&self, expected: usize) {
        let begun = Instant::now();
        while self.open.load(Ordering::SeqCst) != expected {
            assert!(
                begun.elapsed() < Duration::from_millis(PATIENCE_MS),
                "{} connections are open",
                self.open.load(Ordering::SeqCst)
            );
            thread::sleep(Duration::from_millis(2));
        }
    }
}

fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

pub(crate) fn secret(text: &str) -> Secret {
    Secret::parse(text).unwrap()
}

/// Writes as far as the other side listens.
pub(crate) fn say(stream: &mut TcpStream, bytes: impl AsRef<[u8]>) {
    _ = stream.write_all(bytes.as_ref());
}

/// Sends the same bytes again and again until the client has gone.
pub(crate) fn say_for_ever(stream: &mut TcpStream, bytes: &[u8], pause: Duration) {
    while stream.write_all(bytes).is_ok() {
        thread::sleep(pause);
    }
}

/// Waits until the other side hangs up.
pub(crate) fn wait_for_end(stream: &mut TcpStream) {
    stream
        .set_read_timeout(Some(Duration::from_millis(PATIENCE_MS)))
        .unwrap();
    let mut sink = [0; 1_024];
    while match stream.read(&mut sink) {
        Ok(read) => read > 0,
        Err(error) => error.kind() == ErrorKind::Interrupted,
    } {}
}

pub(crate) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Answers in their order; the last one stays.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
    silent: bool,
    kept: Mutex<Vec<RequestPermit>>,
}

impl Answers {
    pub(crate) fn of(answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            ..Self::default()
        }
    }

    /// Never answers, and keeps the permits of those who asked.
    pub(crate) fn never() -> Self {
        Self {
            silent: true,
            ..Self::default()
        }
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolve for Answers {
    fn resolve(&self, _name: String, request_permit: RequestPermit) -> Resolving {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.silent {
            self.kept.lock().unwrap().push(request_permit);
            return Box::pin(std::future::pending());
        }
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 {
            answers.pop_front()
        } else {
            answers.front().cloned()
        };
        Box::pin(async move { Ok(answer.unwrap_or_default()) })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Vec<Record>>);

impl Records for Ledger {
    fn put(&self, record: Record) {
        self.0.lock().unwrap().push(record);
    }
}

/// A way out, with all that a test looks at.
pub(crate) struct World {
    pub(crate) egress: Egress,
    pub(crate) answers: Arc<Answers>,
    ledger: Arc<Ledger>,
    pub(crate) redactor: Redactor,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Answers::of(&[&["127.0.0.1"]]), Limits::default())
    }

    /// With a resolver that has these answers, in their order.
    pub(crate) fn resolving(answers: &[&[&str]]) -> Self {
        Self::with(Answers::of(answers), Limits::default())
    }

    /// Without this secret in what comes back.
    pub(crate) fn redacting(text: &str) -> Self {
        Self {
            redactor: Redactor::of(&secret(text)),
            ..Self::new()
        }
    }

    pub(crate) fn with(answers: Answers, limits: Limits) -> Self {
        Self::over(answers, limits, client_tls(rustls::RootCertStore::empty()))
    }

    pub(crate) fn over(answers: Answers, limits: Limits, tls: rustls::ClientConfig) -> Self {
        let answers = Arc::new(answers);
        let resolver: Arc<dyn Resolve> = Arc::<Answers>::clone(&answers);
        Self {
            egress: Egress::new(resolver, tls, limits),
            answers,
            ledger: Arc::default(),
            redactor: Redactor::default(),
        }
    }

    pub(crate) fn caller(&self, component: &str) -> Caller {
        let records: Arc<dyn Records> = Arc::<Ledger>::clone(&self.ledger);
        Caller {
            component: component.to_owned(),
            budget: ByteBudget::of(u64::MAX),
            records,
            redactor: self.redactor.clone(),
        }
    }

    pub(crate) fn request(&self, url: &str) -> Request {
        Request {
            caller: self.caller("probe"),
            method: Method::Get,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            bound: Credentials::default(),
            body: Bytes::new(),
        }
    }

    pub(crate) async fn get(
        &self,
        url: &str,
        grants: &[EgressGrant],
    ) -> Result<Response, EgressError> {
        self.egress.send(self.request(url), grants).await
    }

    /// Gets the answer of a server that is granted.
    pub(crate) async fn get_from(&self, server: &Server) -> Response {
        self.get(&server.url(), &[server.grant()]).await.unwrap()
    }

    /// Sends a request to a server that is granted.
    pub(crate) async fn send_to(
        &self,
        server: &Server,
        request: Request,
    ) -> Result<Response, EgressError> {
        self.egress.send(request, &[server.grant()]).await
    }

    /// Gets all of it: the status and the body, or what went wrong with either.
    pub(crate) async fn read(
        &self,
        url: &str,
        grants: &[EgressGrant],
    ) -> Result<(u16, String), EgressError> {
        let response = self.get(url, grants).await?;
        let status = response.status.as_u16();
        let body = response.body.read_all().await?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Returns the code with which a failed request is on record.
    pub(crate) async fn code(&self, url: &str, grants: &[EgressGrant]) -> &'static str {
        let error = self.read(url, grants).await.unwrap_err();
        let record = self.records().pop().unwrap();
        assert_eq!(record.outcome, error.code());
        assert!(OUTCOMES.contains(&error.code()), "{}", error.code());
        assert_eq!(record.detail, Some(error.detail()));
        error.code()
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.ledger.0.lock().unwrap().clone()
    }
}

pub(crate) fn client_tls(roots: rustls::RootCertStore) -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Lets `http` through to a host and port on loopback.
pub(crate) fn grant(host: &str, port: u16) -> EgressGrant {
    EgressGrant {
        schemes: vec![Scheme::Http],
        ports: Some(vec![port]),
        private_addresses: vec![AddressRange::parse("127.0.0.1").unwrap()],
        ..EgressGrant::of(HostPattern::parse(host).unwrap())
    }
}
