//! A whole broker over a store in a temporary folder, with a scripted guest and a clock that the
//! test sets.

use crate::command::By;
use crate::engine::scripted::{Component, Runtime, ToolOutcome};
use crate::{
    AfterRestore, Broker, Cancelled, Catalogue, Clock, Entry, Limits, NewSession, Parts,
    PathSettings, PostMessage, Target,
};
use domain::clock::Reading;
use domain::definition::DefinitionId;
use domain::delegate::CacheLimits;
use domain::event::{Event, Recorded, RunEnded};
use domain::grant::{Grant, PatternList};
use domain::id::{InputId, SessionId};
use domain::message::Part;
use domain::operation::Progress;
use domain::queue::QueueOverride;
use domain::step::{
    Call, Decision, News, OperationOutcome, Request, StepResult, Until, Wait, Work,
};
use domain::time::Timestamp;
use domain::user::UserId;
use llm::Gateway;
use runtime::Outcome;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{EventFilter, Options, Store};
use tempfile::TempDir;

/// Number of due sessions that the watch over timers reads in a round here.
pub(super) const DUE_SESSIONS_MAX: usize = 2;
/// The time limit of anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time at which every test begins, in milliseconds.
const BEGIN_MS: u64 = 1_700_000_000_000;
/// The name of the only definition, and of its component.
const PUPPET: &str = "puppet";
/// Tokens that the model `small` holds.
pub(super) const SMALL_WINDOW: u64 = 2_000;
/// The rules of the models.
const MODEL: &str = r#"
[[rule]]
when = { user = "never" }
reply = { text = "late", firstDelayMs = 3600000 }

[[rule]]
when = { user = "breaks" }
reply = { text = "cut off", fail = "cut-short" }

[[rule]]
when = { user = "wordless" }
reply = { text = "" }

[[rule]]
when = { user = "gather" }
reply = { calls = [{ tool = "read" }] }

[[rule]]
when = { user = "refused", results = { max = 2 } }
reply = { calls = [{ tool = "read" }] }

[[rule]]
when = { user = "refused" }
reply = { fail = "too-long" }

[[rule]]
reply = { text = "hello" }
"#;

/// A broker under test, with one session.
pub(super) struct Host {
    pub(super) broker: Broker,
    pub(super) guest: Runtime,
    pub(super) session: SessionId,
    time: Arc<AtomicU64>,
    limits: Value,
    dir: TempDir,
}

impl Host {
    pub(super) async fn new() -> Self {
        Self::with_limits(json!({})).await
    }

    /// A host whose agent's turns have these limits.
    pub(super) async fn with_limits(limits: Value) -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("model.toml"), MODEL).unwrap();
        let guest = Runtime::default();
        let time = Arc::new(AtomicU64::new(0));
        let broker = start(dir.path(), &guest, &time, &limits).await;
        let session = open(&broker).await;
        Self {
            broker,
            guest,
            session,
            time,
            limits,
            dir,
        }
    }

    /// Opens another session.
    pub(super) async fn open(&self) -> SessionId {
        open(&self.broker).await
    }

    /// Ends the host as a crash does, and starts it again: its work is dropped, and nothing says
    /// that it was told to end.
    pub(super) async fn crash(self) -> Self {
        let core = &self.broker.core;
        core.stop();
        core.killed.cancel();
        core.ended().await;
        core.store.close().await;
        let broker = start(self.dir.path(), &self.guest, &self.time, &self.limits).await;
        Self { broker, ..self }
    }

    /// Ends the host as the work on the session would end it: a crash, with the session noted as
    /// one that is computed for.
    pub(super) async fn crash_at_work(self) -> Self {
        let mark = self.broker.core.computing.enter(self.session);
        let host = self.crash().await;
        // Not before: it clears the note, which the next host has read by now.
        drop(mark);
        host
    }

    /// Lets time pass for the host.
    pub(super) fn pass_ms(&self, ms: u64) {
        self.time.fetch_add(ms, Ordering::SeqCst);
        self.broker.core.timers.notify_one();
    }

    /// Posts a message in the session.
    pub(super) async fn say(&self, text: &str) {
        self.post(text).await;
    }

    /// Posts words of the user's, and returns their input.
    pub(super) async fn post(&self, text: &str) -> InputId {
        let message = PostMessage {
            target: target(),
            session: self.session,
            content: vec![Part::text(text)],
            model: None,
            queue: QueueOverride::default(),
            priority: None,
            user: UserId::local(),
            idempotency_key: None,
        };
        self.broker.messages().post(message).await.unwrap().input
    }

    /// Cancels the open turn. Returns whether one was open.
    pub(super) async fn cancel(&self) -> bool {
        self.broker
            .runs()
            .cancel(By::from(&UserId::local()), &target(), self.session, None)
            .await
            .unwrap()
    }

    /// Cancels the open turn, and takes back what waits.
    pub(super) async fn cancel_with_waiting(&self) -> Cancelled {
        self.broker
            .runs()
            .cancel_with_waiting(By::from(&UserId::local()), &target(), self.session, None)
            .await
            .unwrap()
    }

    /// Returns the kinds of the session's events, without their versions.
    pub(super) async fn kinds(&self) -> Vec<String> {
        kinds(self.broker.store(), self.session).await
    }

    /// Returns the number of the session's events of a kind.
    pub(super) async fn count(&self, of: &str) -> usize {
        let kinds = self.kinds().await;
        kinds.iter().filter(|kind| *kind == of).count()
    }

    /// Returns the session's events of a kind, which is named without its version.
    pub(super) async fn recorded(&self, of: &str) -> Vec<Recorded> {
        let events = events(self.broker.store(), self.session).await;
        let is_wanted = |recorded: &Recorded| recorded.kind.starts_with(&format!("{of}."));
        events.into_iter().filter(is_wanted).collect()
    }

    /// Returns the event by which the session's run ended.
    pub(super) async fn ended(&self) -> RunEnded {
        self.stored("run.ended", 1).await;
        let events = events(self.broker.store(), self.session).await;
        let mut events = events.into_iter().filter_map(|recorded| recorded.event);
        let ended = events.find_map(|event| match event {
            Event::RunEnded(ended) => Some(ended),
            _ => None,
        });
        ended.unwrap()
    }

    /// Waits until so many events of a kind are stored.
    pub(super) async fn stored(&self, kind: &str, count: usize) {
        let what = format!("{kind} number {count}");
        self.until(&what, async || self.count(kind).await >= count)
            .await;
    }

    /// Waits until something is true.
    pub(super) async fn until(&self, what: &str, is: impl AsyncFn() -> bool) {
        let begin = Instant::now();
        while !is().await {
            if begin.elapsed() > PATIENCE {
                panic!("not in time: {what}: {:?}", self.kinds().await);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns the outcome of the work under a key, if the step of this number heard of it.
    pub(super) fn outcome(&self, step: usize, of: &str) -> Option<OperationOutcome> {
        let news = self.guest.news().swap_remove(step);
        news.into_iter().find_map(|news| match news {
            News::Settled { key, outcome } if key == of => Some(outcome),
            News::Settled { .. } | News::Said { .. } | News::Opened => None,
        })
    }

    /// Waits until no session has a driver.
    pub(super) async fn undriven(&self) {
        let is = async || self.broker.stats().drivers == 0;
        self.until("a session without a driver", is).await;
    }

    /// Waits until so many steps have begun.
    pub(super) async fn stepped(&self, count: usize) {
        let is = async || self.guest.news().len() >= count;
        self.until("a step", is).await;
    }
}

async fn start(dir: &Path, guest: &Runtime, time: &Arc<AtomicU64>, limits: &Value) -> Broker {
    let options = Options {
        readers: 1,
        ballast_bytes: 0,
        ..Options::default()
    };
    let time = time.clone();
    let clock = Clock::of(move || {
        let passed_ms = time.load(Ordering::SeqCst);
        Reading {
            wall: Timestamp(BEGIN_MS + passed_ms),
            passed_ms,
        }
    });
    let parts = Parts {
        store: Store::open(&dir.join("data"), options).unwrap(),
        runtime: guest.clone(),
        gateway: Arc::new(gateway(dir)),
        catalogue: catalogue(limits),
        limits: Limits {
            due_sessions_max: DUE_SESSIONS_MAX,
            delegation_cache: Some(CacheLimits::default()),
            ..Limits::default()
        },
        after_restore: AfterRestore::default(),
        paths: PathSettings::default(),
        skipped: Vec::new(),
        clock,
    };
    Broker::start(parts).await.unwrap()
}

async fn open(broker: &Broker) -> SessionId {
    let new = NewSession::of(target(), UserId::local());
    broker.sessions().open(new).await.unwrap().row.id
}

fn gateway(dir: &Path) -> Gateway {
    let config = json!({
        "providers": { "scripted": { "kind": "scripted", "script": "model.toml" } },
        "models": {
            "scripted": { "provider": "scripted", "model": "scripted" },
            "small": { "provider": "scripted", "model": "small", "contextWindow": SMALL_WINDOW },
        },
        "defaultModel": "scripted",
        "retry": { "baseMs": 0 },
    });
    Gateway::new(serde_json::from_value(config).unwrap(), dir, &|_| None).unwrap()
}

/// One agent, which may do all that can be done, and two tools.
fn catalogue(limits: &Value) -> Catalogue {
    let definition = json!({
        "agentId": PUPPET, "displayName": "Puppet", "component": PUPPET, "limits": limits,
        "modelAllowlist": ["*"],
        "templateFor": ["ada"], "capabilityAllowlist": ["*", "triggers.write"],
    });
    let agent = json!({ "kind": "agent", "description": {
        "id": PUPPET, "display_name": "Puppet", "summary": "", "session_types": [], "wants": [],
        "memo_formats": [],
    } });
    let tools = json!({ "kind": "tools", "description": [
        { "name": "read", "description": "", "arguments": {}, "effect": "read-only" },
        { "name": "send", "description": "", "arguments": {}, "effect": "non-idempotent" },
    ] });
    let entry = |name: &str, described| Entry {
        name: name.to_owned(),
        component: Component::new(described),
        grant: Grant {
            models: PatternList::everything(),
            ..Grant::default()
        },
        is_pinned: false,
    };
    let entries = vec![entry(PUPPET, agent), entry("tools", tools)];
    Catalogue::new(vec![serde_json::from_value(definition).unwrap()], entries).unwrap()
}

/// Returns the only agent.
pub(super) fn target() -> Target {
    Target::Definition(DefinitionId(PUPPET.to_owned()))
}

/// Returns the events about a session, in order.
pub(super) async fn events(store: &Store, session: SessionId) -> Vec<Recorded> {
    let filter = EventFilter {
        session: Some(session),
        ..EventFilter::default()
    };
    store.events(0, filter, 1_000).await.unwrap()
}

/// Returns the types of the events about a session, in order and without their versions.
pub(super) async fn kinds(store: &Store, session: SessionId) -> Vec<String> {
    let events = events(store, session).await;
    let kinds = events.iter().map(|event| event.kind.rsplit_once('.'));
    kinds.map(|kind| kind.unwrap().0.to_owned()).collect()
}

/// A step that ends the turn with a reply.
pub(super) fn replies(text: &str) -> Outcome<StepResult> {
    decides(Decision::Reply {
        parts: vec![Part::text(text)],
    })
}

/// A step that starts work, stops the work under some keys, and waits for any that is open.
pub(super) fn works<const N: usize>(
    start: [(&str, Work); N],
    cancel: &[&str],
) -> Outcome<StepResult> {
    let start = start.into_iter().map(|(key, work)| Request {
        key: key.to_owned(),
        work,
    });
    decides(Decision::Wait(Wait {
        start: start.collect(),
        cancel: cancel.iter().map(|key| (*key).to_owned()).collect(),
        until: Until::Any,
        hear: false,
    }))
}

fn decides(decision: Decision) -> Outcome<StepResult> {
    Outcome::Returned(StepResult {
        decision,
        effects: Vec::new(),
        memo: None,
    })
}

/// A call of the model over the whole thread.
pub(super) fn model() -> Work {
    let request = json!({ "system": [], "context": "whole", "tools": "none", "audience": "user" });
    Work::Model(serde_json::from_value(request).unwrap())
}

/// A call of a tool.
pub(super) fn tool(name: &str) -> Work {
    Work::Tool {
        call: Call::Own {
            name: name.to_owned(),
            arguments: "{}".to_owned(),
        },
    }
}

/// A timer, under the key `timer`.
pub(super) fn timer(ms: u64) -> (&'static str, Work) {
    ("timer", Work::Timer { ms })
}

/// The outcome of a call of a tool that gives this text.
pub(super) fn gives(text: &str) -> ToolOutcome {
    Outcome::Returned(Ok(Progress::Done {
        parts: vec![Part::text(text)],
    }))
}
