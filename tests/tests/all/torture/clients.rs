//! Clients that repeat what was not answered under the same key, and keep account of what was.

use super::super::crash::turn;
use agent_host_tests::process::{Answer, Line, Session};
use fastrand::Rng;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Clients at the same time, each with an agent and sessions of its own.
const CLIENTS: u64 = 6;
/// Between two requests of a client, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 5..60;
/// Time for which a request is repeated without an answer that counts.
const PATIENCE: Duration = Duration::from_secs(120);
/// Sessions that a client opens first: enough for it to purge one.
const OPENED_FIRST: usize = 3;
/// Definitions whose agents begin many sessions: one for each client.
const DEFINITION: &str = "puppet";

/// The facts that the clients know for certain.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The input of each message that was acknowledged, with its session, by key.
    pub(super) inputs: BTreeMap<String, (String, String)>,
    /// Sessions that were opened, forked or found by a message, by the key of the first that did
    /// it.
    pub(super) opened: BTreeMap<String, String>,
    /// Sessions that were purged.
    pub(super) purged: BTreeSet<String>,
    /// Messages to a session that were acknowledged.
    said: u64,
    /// Messages to an agent that were acknowledged.
    routed: u64,
    /// Sessions that were forked from others.
    forks: u64,
    /// Requests that were sent twice at the same moment.
    pairs: u64,
    /// Requests that were repeated because there was no answer, or one that asks to try again.
    repeats: u64,
}

impl Ledger {
    /// The sessions that are still there.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &str> {
        self.opened
            .values()
            .filter(|session| !self.purged.contains(*session))
            .map(String::as_str)
    }

    fn add(&mut self, other: Self) {
        self.inputs.extend(other.inputs);
        self.opened.extend(other.opened);
        self.purged.extend(other.purged);
        self.said += other.said;
        self.routed += other.routed;
        self.forks += other.forks;
        self.pairs += other.pairs;
        self.repeats += other.repeats;
    }

    /// Returns how often each thing was done.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("messages to a session", self.said),
            ("messages to an agent", self.routed),
            ("opened sessions", self.opened.len() as u64),
            ("forks", self.forks),
            ("purges", self.purged.len() as u64),
            ("requests that were sent twice", self.pairs),
            ("requests that were repeated", self.repeats),
        ]
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            inputs,
            opened,
            purged,
            said,
            routed,
            forks,
            pairs,
            repeats,
        } = self;
        write!(
            f,
            "{} messages acknowledged, {said} to a session and {routed} to an agent, in {} \
             sessions, {forks} of them forks and {} purged; {pairs} requests sent twice at once, \
             {repeats} repeated",
            inputs.len(),
            opened.len(),
            purged.len(),
        )
    }
}

/// All clients.
pub(super) struct Clients {
    tasks: JoinSet<Ledger>,
    over: CancellationToken,
}

impl Clients {
    pub(super) fn begin(line: &watch::Receiver<Line>, seed: u64) -> Self {
        let mut tasks = JoinSet::new();
        let over = CancellationToken::new();
        for number in 0..CLIENTS {
            let client = Client {
                line: line.clone(),
                rng: Rng::with_seed(seed ^ (number + 1)),
                number,
                count: 0,
                ledger: Ledger::default(),
                exchanges: Vec::new(),
            };
            tasks.spawn(client.exchange(over.clone()));
        }
        Self { tasks, over }
    }

    /// Has each client bring what it is at to its end. The host goes on living meanwhile.
    pub(super) async fn end(self) -> Ledger {
        self.over.cancel();
        self.tasks
            .join_all()
            .await
            .into_iter()
            .fold(Ledger::default(), |mut all, one| {
                all.add(one);
                all
            })
    }
}

struct Client {
    line: watch::Receiver<Line>,
    rng: Rng,
    number: u64,
    /// Number of requests under a key.
    count: usize,
    ledger: Ledger,
    exchanges: Vec<Session>,
}

impl Client {
    async fn exchange(mut self, over: CancellationToken) -> Ledger {
        self.do_everything_once().await;
        while !over.is_cancelled() {
            sleep(Duration::from_millis(self.rng.u64(PAUSE_MS))).await;
            match self.rng.u8(0..20) {
                0 | 1 => self.open().await,
                2..=4 => self.route().await,
                5 => self.fork().await,
                6 => self.purge().await,
                _ => self.say().await,
            }
        }
        self.ledger
    }

    async fn do_everything_once(&mut self) {
        for _ in 0..OPENED_FIRST {
            self.open().await;
        }
        self.say_in(0).await;
        let patience = Instant::now() + PATIENCE;
        // There is nothing to go on from before the first turn has ended.
        while !self.try_fork(0).await {
            assert!(Instant::now() < patience, "the first turn has not ended");
            sleep(Duration::from_millis(20)).await;
        }
        self.route().await;
        self.purge().await;
    }

    fn key(&mut self) -> String {
        self.count += 1;
        format!("torture-{}-{}", self.number, self.count)
    }

    /// Asks under a key until there is an answer that counts; one time in three it asks twice at
    /// the same moment, and both must get the same.
    async fn under_key(&mut self, key: &str, path: &str, body: &Value) -> Answer {
        if self.rng.u8(0..3) > 0 {
            return self.ask(Method::POST, key, path, Some(body)).await;
        }
        self.ledger.pairs += 1;
        let line = self.line.clone();
        let both = body.clone();
        let (one, other) = tokio::join!(
            insist(line.clone(), Method::POST, key, path, Some(body)),
            insist(line, Method::POST, key, path, Some(&both))
        );
        self.ledger.repeats += one.1 + other.1;
        let named = |answer: &Answer| {
            ["id", "agent_id", "session_id", "input_id"].map(|name| answer.text(name))
        };
        let is_same = (one.0.status, named(&one.0)) == (other.0.status, named(&other.0));
        if is_same {
            return one.0;
        }
        // Another client may have purged the session of the first answer before the second request
        // came: with it went the key.
        let one = one.0;
        let other = other.0;
        // A refusal is not kept under its key: the first turn may have ended between the two.
        let is_refusal = |answer: &Answer| answer.text("code") == "THREAD_EMPTY";
        assert!(
            is_refusal(&one)
                || is_refusal(&other)
                || self.is_gone(&one).await
                || self.is_gone(&other).await,
            "one key, two answers: {path}: {one:?} {other:?}"
        );
        if one.status < other.status {
            one
        } else {
            other
        }
    }

    /// Returns whether the session that an answer names was deleted since.
    async fn is_gone(&self, answer: &Answer) -> bool {
        let session = answer.text("session_id");
        if session.is_empty() {
            return false;
        }
        let patience = Instant::now() + PATIENCE;
        loop {
            let line = self.line.borrow().clone();
            let seen = line.get(&format!("/api/sessions/{session}"));
            match seen.attempt().await {
                Ok(seen) if seen.status < 500 => return seen.status == 404,
                _ => assert!(
                    Instant::now() < patience,
                    "session {session} cannot be looked at"
                ),
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn ask(&mut self, method: Method, key: &str, path: &str, body: Option<&Value>) -> Answer {
        let (answer, repeats) = insist(self.line.clone(), method, key, path, body).await;
        self.ledger.repeats += repeats;
        answer
    }

    /// Asks under a key until nothing is in the way any more.
    async fn unless_busy(&mut self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let key = self.key();
        let patience = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(method.clone(), &key, path, body).await;
            if answer.status != 409 || Instant::now() > patience {
                return answer;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn open(&mut self) {
        let key = self.key();
        let answer = self
            .under_key(
                &key,
                &format!("/api/agents/{DEFINITION}/sessions"),
                &json!({}),
            )
            .await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let exchange = Session::of(&answer);
        self.ledger.opened.insert(key, exchange.id().to_owned());
        self.exchanges.push(exchange);
    }

    fn any(&mut self) -> Option<usize> {
        (!self.exchanges.is_empty()).then(|| self.rng.usize(..self.exchanges.len()))
    }

    async fn say(&mut self) {
        if let Some(exchange) = self.any() {
            self.say_in(exchange).await;
        }
    }

    async fn say_in(&mut self, exchange: usize) {
        let session = self.exchanges[exchange].clone();
        let path = format!("{session}/messages");
        let key = self.key();
        let content = turn(self.count);
        let answer = self
            .under_key(&key, &path, &json!({ "content": content }))
            .await;
        assert_eq!(answer.status, 202, "{answer:?}");
        self.ledger.said += 1;
        let session = session.id().to_owned();
        self.ledger
            .inputs
            .insert(key, (answer.text("input_id"), session));
    }

    /// Words to an agent: they go to its latest chat, or to one that they begin.
    async fn route(&mut self) {
        let key = self.key();
        let content = turn(self.count);
        let answer = self
            .under_key(
                &key,
                "/api/messages",
                &json!({ "to": { "agent": DEFINITION }, "content": content }),
            )
            .await;
        assert_eq!(answer.status, 202, "{answer:?}");
        self.ledger.routed += 1;
        let session = answer.text("session_id");
        if answer.body["is_new"] == true {
            self.ledger.opened.insert(key.clone(), session.clone());
        }
        self.ledger
            .inputs
            .insert(key, (answer.text("input_id"), session));
    }

    /// Another session that goes on where one of its own is.
    async fn fork(&mut self) {
        if let Some(exchange) = self.any() {
            self.try_fork(exchange).await;
        }
    }

    /// Forks one of its sessions if that has a turn to go on from, and returns whether it has.
    async fn try_fork(&mut self, exchange: usize) -> bool {
        let path = format!("{}/fork", self.exchanges[exchange]);
        let key = self.key();
        let answer = self.under_key(&key, &path, &json!({})).await;
        match answer.status {
            201 => {
                let exchange = Session::of(&answer);
                self.ledger.forks += 1;
                self.ledger.opened.insert(key, exchange.id().to_owned());
                self.exchanges.push(exchange);
                true
            }
            // It has no turn yet.
            409 | 422 => false,
            _ => panic!("{answer:?}"),
        }
    }

    /// Deletes one of its sessions and purges it, unless a turn of it stays open: the host may be
    /// killed more often than a turn can come to its end.
    async fn purge(&mut self) {
        if self.exchanges.len() < 3 {
            return;
        }
        let exchange = self.rng.usize(..self.exchanges.len());
        let session = self.exchanges.swap_remove(exchange);
        // Both are refused as long as a turn of it is open.
        let gone = self.unless_busy(Method::DELETE, &session, None).await;
        if gone.status == 409 {
            self.exchanges.push(session);
            return;
        }
        assert_eq!(gone.status, 200, "{gone:?}");
        let body = json!({ "agent_id": session.agent_id(), "session_id": session.id() });
        let purged = self
            .unless_busy(Method::POST, "/api/purges", Some(&body))
            .await;
        assert_eq!(purged.status, 200, "{purged:?}");
        self.ledger.purged.insert(session.id().to_owned());
    }
}

/// Asks until there is an answer that counts; how often it asked again.
async fn insist(
    line: watch::Receiver<Line>,
    method: Method,
    key: &str,
    path: &str,
    body: Option<&Value>,
) -> (Answer, u64) {
    let patience = Instant::now() + PATIENCE;
    let mut repeats = 0;
    loop {
        let now = line.borrow().clone();
        let last = now.ask_under(key, method.clone(), path, body);
        let last = last.attempt().await;
        match &last {
            Ok(answer) if !matches!(answer.status, 429 | 500 | 503 | 507) => {
                return (answer.clone(), repeats);
            }
            Ok(_) | Err(_) => {}
        }
        assert!(
            Instant::now() < patience,
            "{method} {path} under {key} has no answer: {last:?}"
        );
        repeats += 1;
        sleep(Duration::from_millis(20)).await;
    }
}
