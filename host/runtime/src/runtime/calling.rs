//! Calls of components that are loaded: an agent's steps and the calls of tools, each let in, given
//! its means, run to its end and accounted for; and what every call has in common.

use super::Runtime;
use crate::call::{CallScope, CallState, Purpose, ToolWork};
use crate::call_audit::CallAudit;
use crate::component::Component;
use crate::convert::Unacceptable;
use crate::convert::guest_news;
use crate::convert::step::step_result;
use crate::convert::tool::ToolCall;
use crate::convert::tool::{call_context, call_result};
use crate::exports::{ToolsExports, World};
use crate::folders::FolderError;
use crate::guest_semaphore::{Admission, AdmissionRefusal};
use crate::host::audit_recorder::AuditRecorder;
use crate::host::clock_and_randomness::ClockAndRandomness;
use crate::host::filesystem::folders::Folders;
use crate::host::http::{EgressScope, Sender};
use crate::host::keyvalue::write_overlay::WriteOverlay;
use crate::host::progress::NoteRelay;
use crate::host::secrets::BoundSecrets;
use crate::host::turn::step_view::StepView;
use crate::log::LogLine;
use crate::outcome::{Called, NotAdmitted, Outcome, Ran, Stepped, TurnedAway, Written};
use crate::redacted;
use crate::run;
use crate::runtime::count;
use crate::view::{Buckets, Notes, View};
use domain::basis::Basis;
use domain::digest::Digest;
use domain::grant::{Bound, DirectoryGrant, FolderPattern, GuestLimits, Owner, Owners, capability};
use domain::operation::{CallUsage, Progress};
use domain::ruling::{STEP, TOOL_CALL};
use domain::step::{News, StepResult};
use domain::tool::ToolError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::Store;

type ToolResult = Result<Progress, ToolError>;

/// Everything that remains of a call.
pub(super) struct EndedCall<T> {
    pub(super) outcome: Outcome<T>,
    pub(super) usage: CallUsage,
    pub(super) answers: Digest,
    pub(super) logs: Vec<LogLine>,
}

impl Runtime {
    /// Lets one step of a component in: waits until it has a permit, and counts it as one of the
    /// component's calls within a minute. Whatever the step is to see may be read afterwards.
    ///
    /// # Errors
    /// Too many calls are under way or wait, it took too long, or the component was called as often
    /// as it may be.
    pub async fn admit(
        &self,
        component: &Component,
        limits: &GuestLimits,
    ) -> Result<Admission, TurnedAway> {
        match self.0.guests.admit(&component.gate, limits).await {
            Ok(permit) => Ok(Admission {
                permit,
                gate: component.gate.clone(),
                limits: *limits,
            }),
            Err(refusal) => {
                let recorder = AuditRecorder::default();
                recorder.met(STEP, refusal.limit());
                count(&self.0.counts.calls);
                Err(TurnedAway {
                    why: NotAdmitted::from(&refusal),
                    decided: recorder.take(),
                })
            }
        }
    }

    /// Asks an agent that was let in what happens next: at once. The same component, view, news and
    /// basis give the same result.
    pub async fn step(
        &self,
        admission: Admission,
        component: &Component,
        view: Arc<dyn View>,
        news: &[News],
        basis: &Basis,
    ) -> Stepped {
        let recorder = AuditRecorder::default();
        let Admission {
            permit: _permit,
            gate,
            limits,
        } = admission;
        if !Arc::ptr_eq(&gate, &component.gate) {
            let detail = format!("component {} was not let in", component.digest);
            return stepped(self.not_run(Outcome::not_begun(detail)), &recorder);
        }
        let World::Agent(exports) = &*component.world else {
            let detail = format!("component {} is not an agent", component.digest);
            return stepped(self.not_run(Outcome::not_begun(detail)), &recorder);
        };
        let call_scope = CallScope {
            purpose: Purpose::Step(Box::new(StepView::new(view, basis))),
            clock_and_randomness: ClockAndRandomness::frozen(basis.now, basis.seed),
            folders: Folders::default(),
            egress_scope: EgressScope::default(),
            recorder: recorder.clone(),
        };
        let mut store = self.store(call_scope, &limits);
        let time = store.data().time();
        let news = guest_news(news);
        let guest = exports.step(&mut store, &news);
        let ended = run::drive(&time, Duration::from_millis(limits.wall_ms_max), guest).await;
        let ended = self.finish(&mut store, |state, logs| {
            run::outcome(ended, state, &time, logs).and_then(|result| accepted(step_result(result)))
        });
        record_offence(component, &ended.outcome);
        stepped(ended, &recorder)
    }

    /// Calls a tool under the part of its component's grant that it is bound to. Its writes to
    /// buckets are in the result, and nowhere else.
    pub async fn call(
        &self,
        component: &Component,
        bound: &Bound,
        call: ToolCall,
        notes: Arc<dyn Notes>,
        buckets: Arc<dyn Buckets>,
    ) -> Called {
        let audit = CallAudit::default();
        let ran = self
            .call_noting(component, bound, call, notes, buckets, &audit)
            .await;
        let (decided, egress) = audit.take();
        Called {
            outcome: ran.outcome,
            usage: ran.usage,
            logs: ran.logs,
            decided,
            egress,
            written: ran.written,
        }
    }

    /// Calls a tool with a call audit of the caller's: if the call is cut off, everything until
    /// then is in it.
    pub async fn call_noting(
        &self,
        component: &Component,
        bound: &Bound,
        call: ToolCall,
        notes: Arc<dyn Notes>,
        buckets: Arc<dyn Buckets>,
        audit: &CallAudit,
    ) -> Ran {
        let limits = &bound.limits;
        let recorder = audit.recorder(bound.rulings.clone());
        if let World::StandIn(answer) = &*component.world {
            return ran(self.not_run(stood_in(answer.clone(), &*notes).await));
        }
        let World::Tools(exports) = &*component.world else {
            let detail = format!("component {} has no tools", component.digest);
            return ran(self.not_run(Outcome::not_begun(detail)));
        };
        let _permit = match self.0.guests.admit(&component.gate, limits).await {
            Ok(permit) => permit,
            Err(refusal) => return ran(self.turned_away(&refusal, TOOL_CALL, &recorder)),
        };
        notes.begun();
        let secrets = BoundSecrets::new(&bound.secrets, self.0.config.secrets.clone());
        let redactor = secrets.redactor();
        recorder.redact(&redactor);
        let work = ToolWork {
            notes: NoteRelay::new(notes, redactor.clone()),
            overlay: WriteOverlay::new(buckets, &bound.key_value),
            environment: bound.environment.clone(),
        };
        let sender = Sender {
            component: component.name.clone(),
            network: &bound.network,
            bytes_max: limits.egress_bytes_max,
            secrets,
            recorder: recorder.clone(),
            audit,
        };
        let egress_scope = EgressScope::open(self.0.config.egress.clone(), sender);
        let folders = match self.folders(&bound.directories, &call).await {
            Ok(folders) => folders,
            Err(error) => {
                let outcome = without_folders(&error, &bound.directories, &recorder);
                return ran(self.not_run(outcome));
            }
        };
        recorder.owned(&folders.owned);
        let call_scope = CallScope {
            purpose: Purpose::Tool(Box::new(work)),
            clock_and_randomness: ClockAndRandomness::live(),
            folders,
            egress_scope,
            recorder,
        };
        let mut store = self.store(call_scope, limits);
        let mut ended = self.run_tool(&mut store, exports, &call, limits).await;
        let written = store.data_mut().take_written();
        // With it go the call's connections.
        drop(store);
        audit.closed().await;
        record_offence(component, &ended.outcome);
        redacted::logs(&redactor, &mut ended.logs);
        let mut result = ran(ended);
        result.outcome = redacted::outcome(&redactor, result.outcome);
        if matches!(result.outcome, Outcome::Returned(Ok(_))) {
            result.written = redacted::written(&redactor, written);
        }
        result
    }

    /// Opens the folders of a call, those that may wait on a thread that may: folders of owners are
    /// made, and others may be a server's. All others are open already, and going to another thread
    /// costs nearly half as much as a short call.
    async fn folders(
        &self,
        granted: &[DirectoryGrant],
        call: &ToolCall,
    ) -> Result<Folders, FolderError> {
        if granted.is_empty() {
            return Ok(Folders::default());
        }
        if !self.0.folders.may_wait(granted) {
            let owners = Owners {
                user: &call.user_id,
                agent: &call.agent_id,
                session: &call.session_id,
            };
            return Folders::of(granted, owners, &self.0.folders, &self.0.accounts);
        }
        let runtime = self.clone();
        let granted = granted.to_vec();
        let user = call.user_id.clone();
        let agent = call.agent_id.clone();
        let session = call.session_id.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let owners = Owners {
                user: &user,
                agent: &agent,
                session: &session,
            };
            Folders::of(&granted, owners, &runtime.0.folders, &runtime.0.accounts)
        });
        opened.await.unwrap_or_else(|panic| {
            Err(FolderError::Unusable {
                path: PathBuf::new(),
                source: io::Error::other(panic),
            })
        })
    }

    /// Removes the folders that a user, an agent or a session has of its own, with all that is in
    /// them. Returns how many there were.
    ///
    /// # Errors
    /// The machine refuses to remove one. The others are removed all the same.
    pub async fn remove_folders_of(&self, owner: Owner, id: &str) -> io::Result<u64> {
        let runtime = self.clone();
        let id = id.to_owned();
        let removed =
            tokio::task::spawn_blocking(move || runtime.0.folders.remove_of(owner, &id)).await;
        removed.map_err(io::Error::other)?
    }

    /// Runs a tool in its store, to its end or to one of its limits.
    async fn run_tool(
        &self,
        store: &mut Store<CallState>,
        exports: &ToolsExports,
        call: &ToolCall,
        limits: &GuestLimits,
    ) -> EndedCall<ToolResult> {
        let time = store.data().time();
        let wall_ms = limits.wall_ms_max.min(u64::from(call.deadline_ms));
        let context = call_context(call, u32::try_from(wall_ms).unwrap_or(u32::MAX));
        let guest = exports.call(store, &context, &call.tool, &call.arguments);
        let ended = run::drive(&time, Duration::from_millis(wall_ms), guest).await;
        let ended = self.finish(store, |state, logs| {
            run::outcome(ended, state, &time, logs).and_then(|result| accepted(call_result(result)))
        });
        if may_miss_a_folder(&ended.outcome) {
            store.data().record_unreached_folders();
        }
        ended
    }

    /// Counts a call that is over, and returns everything that remains of it.
    pub(super) fn finish<T>(
        &self,
        store: &mut Store<CallState>,
        outcome: impl FnOnce(&CallState, &[LogLine]) -> Outcome<T>,
    ) -> EndedCall<T> {
        count(&self.0.counts.calls);
        let state = store.data_mut();
        let (logs, dropped) = state.log.take();
        let outcome = outcome(state, &logs);
        run::note_limits(&outcome, state, dropped);
        let usage = state.usage(self.0.config.tick_ms, dropped);
        EndedCall {
            outcome,
            usage,
            answers: state.answers(),
            logs,
        }
    }

    /// Counts a call that never began, and returns its result.
    pub(super) fn not_run<T>(&self, outcome: Outcome<T>) -> EndedCall<T> {
        count(&self.0.counts.calls);
        EndedCall {
            outcome,
            usage: CallUsage::default(),
            answers: Digest::of(&[]),
            logs: Vec::new(),
        }
    }

    /// Returns the result of a call that was not let in, and records that it was not.
    pub(super) fn turned_away<T>(
        &self,
        refusal: &AdmissionRefusal,
        capability: &str,
        recorder: &AuditRecorder,
    ) -> EndedCall<T> {
        recorder.met(capability, refusal.limit());
        self.not_run(NotAdmitted::from(refusal).into())
    }
}

fn stepped(ended: EndedCall<StepResult>, recorder: &AuditRecorder) -> Stepped {
    Stepped {
        outcome: ended.outcome,
        usage: ended.usage,
        answers: ended.answers,
        logs: ended.logs,
        decided: recorder.take(),
    }
}

fn ran(ended: EndedCall<ToolResult>) -> Ran {
    Ran {
        outcome: ended.outcome,
        usage: ended.usage,
        logs: ended.logs,
        written: Written::default(),
    }
}

/// Counts against a component that it computed until it was stopped.
pub(super) fn record_offence<T>(component: &Component, outcome: &Outcome<T>) {
    if matches!(outcome, Outcome::OutOfCpu) {
        component.gate.record_offence(Instant::now());
    }
}

/// Returns true if a call failed in a way that a file that is not there explains.
fn may_miss_a_folder(outcome: &Outcome<ToolResult>) -> bool {
    matches!(
        outcome,
        Outcome::Trapped { .. }
            | Outcome::Returned(Err(ToolError::NotFound(_)
                | ToolError::Denied
                | ToolError::Failed(_)))
    )
}

/// Returns the outcome of a call whose folders cannot be opened: refused, and on record, where what
/// is there or the call's owner does not allow it; the host's fault otherwise. A model reads it, so
/// that it names the folder by its place: the path on this machine goes to the log.
fn without_folders(
    error: &FolderError,
    granted: &[DirectoryGrant],
    recorder: &AuditRecorder,
) -> Outcome<ToolResult> {
    match error {
        FolderError::InTheWay { .. } | FolderError::Ownerless { .. } => {
            recorder.refused(capability::FILES_READ, || error.to_string());
            Outcome::Returned(Err(ToolError::Denied))
        }
        FolderError::Unusable { path, source } => {
            tracing::warn!(
                folder = %path.display(),
                error = source as &dyn std::error::Error,
                "a granted folder cannot be opened; `agent-host reload` opens what is there"
            );
            let is_of = |grant: &&DirectoryGrant| {
                let pattern = FolderPattern::parse(&grant.path);
                pattern.is_ok_and(|pattern| path.starts_with(pattern.base))
            };
            let at = granted.iter().find(is_of).map(|grant| grant.at.as_str());
            Outcome::not_begun(format!(
                "the folder at `{}` cannot be opened: {source}",
                at.unwrap_or("/")
            ))
        }
        error => {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "folders are not opened"
            );
            Outcome::not_begun("a granted folder cannot be opened")
        }
    }
}

pub(super) fn accepted<T>(read: Result<T, Unacceptable>) -> Outcome<T> {
    match read {
        Ok(value) => Outcome::Returned(value),
        Err(Unacceptable(detail)) => Outcome::Refused { detail },
    }
}

/// Returns the answer of a stand-in; one without an answer never returns.
async fn stood_in(
    answer: Option<Result<Progress, ToolError>>,
    notes: &dyn Notes,
) -> Outcome<Result<Progress, ToolError>> {
    notes.begun();
    match answer {
        Some(answer) => Outcome::Returned(answer),
        None => std::future::pending().await,
    }
}
