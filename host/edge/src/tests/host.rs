//! A broker and an edge over a store in a temporary folder.

use crate::{Edge, EdgeParts, EdgeSettings};
use broker::{AfterRestore, Broker, Catalogue, Clock, Limits, Parts, PathSettings};
use domain::clock::Reading;
use domain::secret::{Secret, Secrets};
use domain::time::Timestamp;
use domain::trigger::{TriggerName, TriggerSpec};
use llm::Gateway;
use runtime::{Config, Runtime};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{Options, Store, TriggerEventRow, TriggerRecord, TriggerRow};
use tempfile::TempDir;

/// The time limit of anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time at which every test begins, in milliseconds: a whole minute.
pub(super) const BEGIN_MS: u64 = 1_700_000_040_000;
/// The secret `hook` of every test.
pub(super) const SECRET: &str = "a-secret-of-the-test";

/// A host under test.
pub(super) struct Host {
    pub(super) edge: Edge,
    pub(super) broker: Broker,
    store: Store,
    triggers: Value,
    time: Arc<AtomicU64>,
    dir: TempDir,
}

pub(super) fn name(text: &str) -> TriggerName {
    text.parse().unwrap()
}

/// Returns a trigger that works for a user and has the given keys besides.
pub(super) fn trigger(mut keys: Value) -> Value {
    let map = keys.as_object_mut().unwrap();
    map.insert("user".to_owned(), json!("ada"));
    map.insert("target".to_owned(), json!({ "agent": "assistant" }));
    keys
}

impl Host {
    /// A host with these triggers in its configuration.
    pub(super) async fn with(triggers: Value) -> Self {
        let dir = TempDir::new().unwrap();
        let time = Arc::new(AtomicU64::new(0));
        let (broker, store, edge) = start(dir.path(), &time, &triggers).await;
        Self {
            edge,
            broker,
            store,
            triggers,
            time,
            dir,
        }
    }

    /// Ends the host, and starts it again after some time.
    pub(super) async fn restarted_after_ms(self, ms: u64) -> Self {
        self.edge.stop().await;
        self.broker.shutdown(Duration::from_secs(1)).await;
        self.time.fetch_add(ms, Ordering::SeqCst);
        let (broker, store, edge) = start(self.dir.path(), &self.time, &self.triggers).await;
        Self {
            edge,
            broker,
            store,
            ..self
        }
    }

    pub(super) fn pass_ms(&self, ms: u64) {
        self.time.fetch_add(ms, Ordering::SeqCst);
    }

    pub(super) fn now(&self) -> Timestamp {
        self.broker.clock().now()
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns a trigger that is there.
    pub(super) async fn trigger(&self, of: &str) -> TriggerRow {
        self.store().trigger(&name(of)).await.unwrap().unwrap()
    }

    /// Returns the events of a trigger, the newest first.
    pub(super) async fn trigger_events(&self, of: &str) -> Vec<TriggerEventRow> {
        let name = name(of);
        let records = self.store().trigger_events_of(&name, None, 1_000);
        let records = records.await.unwrap().into_iter();
        let trigger_events = records.filter_map(|record| match record {
            TriggerRecord::TriggerEvent(row) => Some(*row),
            TriggerRecord::Skipped { .. } => None,
        });
        trigger_events.collect()
    }

    /// Waits until something is so.
    pub(super) async fn until(&self, what: &str, is: impl AsyncFn() -> bool) {
        let begin = Instant::now();
        while !is().await {
            assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn start(dir: &Path, time: &Arc<AtomicU64>, triggers: &Value) -> (Broker, Store, Edge) {
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
    let runtime = Runtime::new(Config {
        cache_dir: dir.join("cache"),
        instances_max: 2,
        ..Config::default()
    });
    let runtime = runtime.unwrap();
    let store = Store::open(&dir.join("data"), options).unwrap();
    let parts = Parts {
        store: store.clone(),
        runtime: runtime.clone(),
        gateway: Arc::new(gateway(dir)),
        catalogue: Catalogue::default(),
        limits: Limits::default(),
        after_restore: AfterRestore::default(),
        paths: PathSettings::default(),
        skipped: Vec::new(),
        clock,
    };
    let broker = Broker::start(parts).await.unwrap();
    let edge = Edge::start(EdgeParts {
        broker: broker.clone(),
        store: store.clone(),
        runtime,
        settings: settings(triggers),
    });
    (broker, store, edge.await.unwrap())
}

fn settings(triggers: &Value) -> EdgeSettings {
    let triggers: BTreeMap<TriggerName, TriggerSpec> =
        serde_json::from_value(triggers.clone()).unwrap();
    let secret = Secret::parse(SECRET).unwrap();
    EdgeSettings {
        triggers,
        secrets: Secrets::new([("hook".to_owned(), secret)]),
        ..EdgeSettings::default()
    }
}

fn gateway(dir: &Path) -> Gateway {
    std::fs::write(
        dir.join("model.toml"),
        "[[rule]]\nreply = { text = \"ok\" }\n",
    )
    .unwrap();
    let config = json!({
        "providers": { "scripted": { "kind": "scripted", "script": "model.toml" } },
        "models": { "scripted": { "provider": "scripted", "model": "scripted" } },
        "defaultModel": "scripted",
    });
    Gateway::new(serde_json::from_value(config).unwrap(), dir, &|_| None).unwrap()
}
