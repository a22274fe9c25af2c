//! The shared fixture of the tests: built programs, a runtime over a folder of its own, and short
//! ways to step and call.

use agent_host_runtime::{
    Admission, BucketError, Buckets, Called, Component, Config, Decided, Hold, Notes, Outcome,
    Runtime, Stepped, ToolCall, View, ViewError, ViewStatic,
};
use domain::basis::{Basis, Documents, LimitsLeft, Peer};
use domain::bucket::BucketSize;
use domain::digest::{Digest, Salt};
use domain::grant::{Bound, BucketGrant, GuestLimits};
use domain::id::RunId;
use domain::message::{Message, Part, Role};
use domain::operation::Progress;
use domain::step::{Decision, Memo, News};
use domain::time::Timestamp;
use domain::tool::{EffectClass, ToolDefinition, ToolError};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tempfile::TempDir;

/// A program of `tests/programs`, built.
pub(crate) fn program(name: &str) -> Vec<u8> {
    built("tests/programs", name)
}

/// A component of a workspace of plugins, built.
pub(crate) fn built(workspace: &str, name: &str) -> Vec<u8> {
    let file = format!("{}.wasm", name.replace('-', "_"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(workspace)
        .join("target/wasm32-wasip2/release")
        .join(file);
    std::fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; run: RUSTC=$(scripts/guest-toolchain) cargo build --release --target \
             wasm32-wasip2 --manifest-path {workspace}/Cargo.toml",
            path.display()
        )
    })
}

/// A runtime and the folder that holds its cache.
pub(crate) struct Fixture {
    pub(crate) runtime: Runtime,
    pub(crate) folder: TempDir,
}

pub(crate) fn config(folder: &Path) -> Config {
    Config {
        cache_dir: folder.join("cache"),
        instances_max: 16,
        ..Config::default()
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        change(&mut config);
        Self {
            runtime: Runtime::new(config).unwrap(),
            folder,
        }
    }

    /// A new fixture, and a program of the tests that is loaded in it.
    pub(crate) async fn of(name: &str) -> (Self, Arc<Component>) {
        let fixture = Self::new();
        let component = fixture.load(name).await;
        (fixture, component)
    }

    /// Another runtime over the same folder, as after a restart.
    pub(crate) fn restarted(&self) -> Runtime {
        Runtime::new(config(self.folder.path())).unwrap()
    }

    pub(crate) async fn load(&self, name: &str) -> Arc<Component> {
        self.runtime.load(program(name)).await.unwrap()
    }

    pub(crate) async fn step(&self, component: &Component, basis: &Basis) -> Stepped {
        self.step_under(component, basis, GuestLimits::default())
            .await
    }

    pub(crate) async fn step_under(
        &self,
        component: &Component,
        basis: &Basis,
        limits: GuestLimits,
    ) -> Stepped {
        self.step_seeing(component, Arc::new(Sight::new(false)), basis, limits)
            .await
    }

    pub(crate) async fn step_seeing(
        &self,
        component: &Component,
        view: Arc<Sight>,
        basis: &Basis,
        limits: GuestLimits,
    ) -> Stepped {
        let admission = self.runtime.admit(component, &limits).await.unwrap();
        let news = [News::Said { messages: vec![1] }];
        let runtime = &self.runtime;
        runtime.step(admission, component, view, &news, basis).await
    }

    /// A step that was let in before.
    pub(crate) async fn step_admitted(
        &self,
        admission: Admission,
        component: &Component,
    ) -> Stepped {
        let view = Arc::new(Sight::new(false));
        let news = [News::Said { messages: vec![1] }];
        let basis = some_basis();
        let runtime = &self.runtime;
        runtime
            .step(admission, component, view, &news, &basis)
            .await
    }

    pub(crate) async fn call(&self, component: &Component, tool: &str, arguments: &str) -> Called {
        self.call_bound(component, &Bound::default(), tool, arguments)
            .await
    }

    pub(crate) async fn call_under(
        &self,
        component: &Component,
        limits: GuestLimits,
        arguments: &str,
    ) -> Called {
        let bound = Bound {
            limits,
            ..Bound::default()
        };
        self.call_bound(component, &bound, "only", arguments).await
    }

    pub(crate) async fn call_bound(
        &self,
        component: &Component,
        bound: &Bound,
        tool: &str,
        arguments: &str,
    ) -> Called {
        let call = tool_call(tool, arguments);
        self.call_keeping(component, bound, call, &Arc::default())
            .await
    }

    pub(crate) async fn call_keeping(
        &self,
        component: &Component,
        bound: &Bound,
        call: ToolCall,
        kept: &Arc<Kept>,
    ) -> Called {
        self.runtime.open_folders(&bound.directories, &[]).unwrap();
        self.call_in_open_folders(component, bound, call, kept)
            .await
    }

    /// The same with the folders as they were opened before.
    pub(crate) async fn call_in_open_folders(
        &self,
        component: &Component,
        bound: &Bound,
        call: ToolCall,
        kept: &Arc<Kept>,
    ) -> Called {
        let notes = Arc::new(Noted::default());
        let runtime = &self.runtime;
        runtime
            .call(component, bound, call, notes, kept.clone())
            .await
    }
}

/// The default limits with a change.
pub(crate) fn limits(change: impl FnOnce(&mut GuestLimits)) -> GuestLimits {
    let mut limits = GuestLimits::default();
    change(&mut limits);
    limits
}

/// Subjects of the decisions on record.
pub(crate) fn details(decided: &Decided) -> Vec<&str> {
    let decisions = decided.decisions.iter();
    decisions.map(|decision| decision.detail.as_str()).collect()
}

#[track_caller]
pub(crate) fn assert_faulted<T: Debug>(outcome: &Outcome<T>) {
    assert!(matches!(outcome, Outcome::Faulted { .. }), "{outcome:?}");
}

#[track_caller]
pub(crate) fn assert_refused<T: Debug>(outcome: &Outcome<T>, expected: &str) {
    match outcome {
        Outcome::Refused { detail } => assert!(detail.contains(expected), "{detail}"),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_trapped<T: Debug>(outcome: &Outcome<T>) {
    assert!(matches!(outcome, Outcome::Trapped { .. }), "{outcome:?}");
}

pub(crate) fn tool_call(tool: &str, arguments: &str) -> ToolCall {
    ToolCall {
        agent_id: "agent".into(),
        session_id: "session".into(),
        user_id: "user".into(),
        call_id: "call".into(),
        idempotency_key: "call-0".into(),
        segment: 0,
        resumed: None,
        answer: None,
        tool: tool.into(),
        arguments: arguments.into(),
        deadline_ms: 60_000,
    }
}

/// A basis that names nothing, of a step at this time with this seed.
pub(crate) fn basis(now: u64, seed: &[u8]) -> Basis {
    let nothing = Digest::of(b"");
    Basis {
        files: 0,
        documents: Documents::all_of(nothing, nothing),
        base: None,
        head: 1,
        session_state: nothing,
        now: Timestamp(now),
        left: LimitsLeft {
            steps: 1,
            tool_calls: 2,
            tokens: 3,
        },
        seed: Digest::of(seed),
    }
}

pub(crate) fn some_basis() -> Basis {
    let run: RunId = "018f0000-0000-7000-8000-000000000001".parse().unwrap();
    Basis {
        seed: Basis::seed(run, 0),
        ..basis(1_700_000_000_123, b"")
    }
}

/// A view of one message, or of a store that cannot be read.
pub(crate) struct Sight {
    fixed: ViewStatic,
    said: &'static str,
    broken: bool,
}

impl Sight {
    pub(crate) fn new(broken: bool) -> Self {
        let tool = ToolDefinition {
            name: "echo".into(),
            description: String::new(),
            arguments: serde_json::json!({"type": "object"}),
            results: None,
            capabilities: Vec::new(),
            effect: EffectClass::ReadOnly,
            destructive: false,
            time_limit_ms: None,
        };
        let fixed = ViewStatic {
            history: "[]".to_owned(),
            session_config: "{}".to_owned(),
            user: "local".to_owned(),
            agent_id: "agent".into(),
            path: "/agent/one".into(),
            session_type: "chat".into(),
            settings: r#"{"prompt":"p"}"#.into(),
            preferences: "{}".into(),
            shared_preferences: "{}".into(),
            session_state: "null".into(),
            head: Some(1),
            tools: Arc::new(vec![tool]),
            peers: vec![Peer {
                id: "worker".into(),
                name: "Worker".into(),
                description: String::new(),
            }],
            memo: Some(Memo {
                format: 1,
                bytes: vec![7],
            }),
        };
        Self {
            fixed,
            said: "hello",
            broken,
        }
    }

    /// A view of one message, with this text.
    pub(crate) fn saying(said: &'static str) -> Self {
        Self {
            said,
            ..Self::new(false)
        }
    }
}

#[async_trait::async_trait]
impl View for Sight {
    fn basis_static(&self) -> &ViewStatic {
        &self.fixed
    }

    async fn message(&self, id: u64) -> Result<Option<Message>, ViewError> {
        if self.broken {
            return Err(ViewError("the disk is gone".into()));
        }
        Ok((id == 1).then(|| Message {
            id,
            role: Role::User,
            parts: vec![Part::text(self.said)],
            origin: "api".into(),
            untrusted: false,
            speaker: None,
            answers: None,
            marked_elsewhere: None,
            salt: Salt::default(),
        }))
    }

    async fn read_blob(
        &self,
        _digest: Digest,
        offset: u64,
        length: u32,
    ) -> Result<Option<Vec<u8>>, ViewError> {
        Ok(Some(vec![u8::try_from(offset).unwrap(); length as usize]))
    }
}

/// Values by bucket and key.
type Entries = BTreeMap<(String, String), Vec<u8>>;

/// Buckets in memory, by name and key, of which any number may be held; or a store that cannot be
/// read.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) entries: Mutex<Entries>,
    pub(crate) leased: Mutex<Vec<(String, Arc<()>)>>,
    pub(crate) broken: bool,
}

impl Kept {
    fn entries(&self) -> Result<MutexGuard<'_, Entries>, BucketError> {
        if self.broken {
            Err(BucketError("the disk is gone".into()))
        } else {
            Ok(self.entries.lock().unwrap())
        }
    }

    /// The names of the buckets that are held at this moment.
    pub(crate) fn leased(&self) -> Vec<String> {
        self.leased
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, hold)| Arc::strong_count(hold) > 1)
            .map(|(name, _)| name.clone())
            .collect()
    }
}

#[async_trait::async_trait]
impl Buckets for Kept {
    async fn hold(&self, bucket: &BucketGrant) -> Hold {
        let hold = Arc::new(());
        self.leased
            .lock()
            .unwrap()
            .push((bucket.bucket.clone(), hold.clone()));
        Hold::new(hold)
    }

    async fn value(&self, bucket: &BucketGrant, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(self
            .entries()?
            .get(&(bucket.bucket.clone(), key.to_owned()))
            .cloned())
    }

    async fn value_bytes(
        &self,
        bucket: &BucketGrant,
        key: &str,
    ) -> Result<Option<u64>, BucketError> {
        Ok(self
            .value(bucket, key)
            .await?
            .map(|value| value.len() as u64))
    }

    async fn keys(
        &self,
        bucket: &BucketGrant,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, BucketError> {
        let entries = self.entries()?;
        let keys = entries.keys().filter(|(of, key)| {
            *of == bucket.bucket && after.is_none_or(|after| key.as_str() > after)
        });
        Ok(keys.take(max).map(|(_, key)| key.clone()).collect())
    }

    async fn size(&self, bucket: &BucketGrant) -> Result<BucketSize, BucketError> {
        let entries = self.entries()?;
        let own = entries.iter().filter(|((of, _), _)| *of == bucket.bucket);
        Ok(own.fold(BucketSize::default(), |size, ((_, key), value)| {
            BucketSize {
                keys: size.keys + 1,
                bytes: size.bytes + (key.len() + value.len()) as u64,
            }
        }))
    }
}

/// Keeps the notes of a call.
#[derive(Default)]
pub(crate) struct Noted(pub(crate) Mutex<Vec<String>>);

impl Notes for Noted {
    fn note(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// The text with which a step ended its turn.
#[track_caller]
pub(crate) fn replied(stepped: &Stepped) -> String {
    match &stepped.outcome {
        Outcome::Returned(result) => match &result.decision {
            Decision::Reply { parts } => domain::message::text_of(parts),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// The text with which a tool was done.
#[track_caller]
pub(crate) fn done(called: &Called) -> String {
    match &called.outcome {
        Outcome::Returned(Ok(Progress::Done { parts })) => domain::message::text_of(parts),
        other => panic!("{other:?}"),
    }
}

/// The error that a tool ended with.
#[track_caller]
pub(crate) fn failed(called: &Called) -> ToolError {
    match &called.outcome {
        Outcome::Returned(Err(error)) => error.clone(),
        other => panic!("{other:?}"),
    }
}
