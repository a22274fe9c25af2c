//! A scripted engine: its guests return the outcomes that a test has written down, one after the
//! other.
//!
//! It has the methods of the runtime that the broker calls, and no more.

use domain::basis::Basis;
use domain::digest::Digest;
use domain::event::BoundaryVerdict;
use domain::grant::{Bound, GuestLimits, Owner};
use domain::id::SessionId;
use domain::operation::{CallUsage, Progress};
use domain::ruling::{Rule, STEP};
use domain::secret::Secrets;
use domain::step::{News, StepResult};
use domain::tool::ToolError;
use egress::Egress;
use futures::FutureExt;
use futures::future::BoxFuture;
use runtime::{
    Buckets, CallAudit, Decided, Described, NotAdmitted, Notes, Outcome, Ran, Stats, Stepped,
    ToolCall, TurnedAway, View, Written,
};
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Guests at a time, as in a small runtime.
const SLOTS: u64 = 4;

/// The outcome of a call of a tool.
pub(crate) type ToolOutcome = Outcome<Result<Progress, ToolError>>;

/// A component without code: a description under a digest.
#[derive(Debug, Clone)]
pub struct Component {
    digest: Digest,
    described: Arc<Described>,
}

impl Component {
    /// Returns the component that describes itself like this.
    pub(crate) fn new(described: Value) -> Arc<Self> {
        Arc::new(Self {
            digest: Digest::of(described.to_string().as_bytes()),
            described: Arc::new(serde_json::from_value(described).unwrap()),
        })
    }

    pub(crate) fn named(&self, _name: &str) -> Arc<Self> {
        Arc::new(self.clone())
    }

    pub(crate) fn in_place_of(&self, _other: &Self) -> Arc<Self> {
        Arc::new(self.clone())
    }

    pub(crate) fn version(&self) -> Option<&str> {
        None
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    pub(crate) fn describes(&self) -> &Described {
        &self.described
    }
}

/// The right to take one step.
#[derive(Debug)]
pub(crate) struct Admission;

/// The script of all guests, and the record of their progress. Clones are the same engine.
#[derive(Clone, Default)]
pub struct Runtime(Arc<Mutex<Script>>);

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Script {
    steps: VecDeque<BoxFuture<'static, Outcome<StepResult>>>,
    calls: VecDeque<BoxFuture<'static, ToolOutcome>>,
    is_full: bool,
    /// Sessions whose folders cannot be removed.
    stuck: Vec<SessionId>,
    asked: usize,
    news: Vec<Vec<News>>,
    called: Vec<ToolCall>,
}

impl Runtime {
    /// Has the next steps end like this.
    pub(crate) fn steps(&self, outcomes: impl IntoIterator<Item = Outcome<StepResult>>) {
        let outcomes = outcomes
            .into_iter()
            .map(|outcome| std::future::ready(outcome).boxed());
        self.script().steps.extend(outcomes);
    }

    /// Makes the next step last until the test ends it.
    pub(crate) fn blocked_step(&self) -> oneshot::Sender<Outcome<StepResult>> {
        let (end, ended) = oneshot::channel();
        let step = async { ended.await.unwrap() };
        self.script().steps.push_back(step.boxed());
        end
    }

    /// Sets the next call of a tool, which may read the data stored by then.
    pub(crate) fn call(&self, call: impl Future<Output = ToolOutcome> + Send + 'static) {
        self.script().calls.push_back(call.boxed());
    }

    /// Lets no step in from now on.
    pub(crate) fn fill(&self) {
        self.script().is_full = true;
    }

    /// Lets no folder of this session be removed from now on.
    pub(crate) fn keep_folders_of(&self, session: SessionId) {
        self.script().stuck.push(session);
    }

    /// Lets all folders be removed from now on.
    pub(crate) fn let_folders_go(&self) {
        self.script().stuck.clear();
    }

    /// Returns how often a step asked to be let in.
    pub(crate) fn asked(&self) -> usize {
        self.script().asked
    }

    /// Returns the news of every step that began.
    pub(crate) fn news(&self) -> Vec<Vec<News>> {
        self.script().news.clone()
    }

    /// Returns the calls of tools that began.
    pub(crate) fn called(&self) -> Vec<ToolCall> {
        self.script().called.clone()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            permits_free: SLOTS,
            ..Stats::default()
        }
    }

    pub(crate) fn forget_unused(&self) {}

    /// Returns no way out: nothing leaves these tests.
    pub(crate) fn http_egress(&self) -> Option<Arc<Egress>> {
        None
    }

    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::default()
    }

    pub(crate) async fn kept(&self, _digest: Digest) -> Option<Arc<Component>> {
        None
    }

    /// Removes nothing: these guests have no folders but those that cannot be removed.
    pub(crate) async fn remove_folders_of(&self, _owner: Owner, id: &str) -> io::Result<u64> {
        let is_stuck = |session: &SessionId| session.to_string() == id;
        match self.script().stuck.iter().any(is_stuck) {
            true => Err(io::Error::other("a test wants it so")),
            false => Ok(0),
        }
    }

    pub(crate) async fn admit(
        &self,
        _component: &Component,
        _limits: &GuestLimits,
    ) -> Result<Admission, TurnedAway> {
        let mut script = self.script();
        script.asked += 1;
        if !script.is_full {
            return Ok(Admission);
        }
        // The runtime puts its limits on record, too.
        let mut decided = Decided::default();
        decided.note(STEP, BoundaryVerdict::Limited, Rule::Limits, "scripted");
        let why = NotAdmitted::Busy;
        Err(TurnedAway { why, decided })
    }

    pub(crate) async fn step(
        &self,
        _admission: Admission,
        _component: &Component,
        _view: Arc<dyn View>,
        news: &[News],
        _basis: &Basis,
    ) -> Stepped {
        let next = {
            let mut script = self.script();
            script.news.push(news.to_vec());
            script.steps.pop_front()
        };
        Stepped {
            outcome: ended(next).await,
            usage: CallUsage::default(),
            answers: Digest::of(&[]),
            logs: Vec::new(),
            decided: Decided::default(),
        }
    }

    pub(crate) async fn call_noting(
        &self,
        _component: &Component,
        _bound: &Bound,
        call: ToolCall,
        notes: Arc<dyn Notes>,
        _buckets: Arc<dyn Buckets>,
        _audit: &CallAudit,
    ) -> Ran {
        notes.begun();
        let next = {
            let mut script = self.script();
            script.called.push(call);
            script.calls.pop_front()
        };
        Ran {
            outcome: ended(next).await,
            usage: CallUsage::default(),
            logs: Vec::new(),
            written: Written::default(),
        }
    }
}

/// Waits for the next outcome of a script. A script that is at its end traps.
async fn ended<T>(next: Option<BoxFuture<'static, Outcome<T>>>) -> Outcome<T> {
    match next {
        Some(next) => next.await,
        None => Outcome::Trapped {
            message: "the script is at its end".to_owned(),
            backtrace: String::new(),
        },
    }
}
