//! Calls of tools: the grant is narrowed to the agent's rights, and the result becomes an outcome.

use crate::asking::ready;
use crate::buckets::{CallBuckets, behalf};
use crate::catalogue::Entry;
use crate::core::Core;
use crate::engine::Component;
use crate::live::{Frame, Show};
use crate::performance::result::{Performed, WorkOutcome};
use crate::performance::stopwatch::{AtWork, Stopwatch};
use crate::resolved_config::ResolvedConfigs;
use crate::serving::{Offering, Served};
use crate::tool_places::ToolPlace;
use domain::approval::{self, Exact};
use domain::authority::{Caller, Denied, ToolRequirements};
use domain::digest::Digest;
use domain::error_code::INVALID_ARGUMENTS;
use domain::event::{BoundaryVerdict, Event, KeyValueWritten, RunStarted};
use domain::grant::Bound;
use domain::message::{Part, text_of};
use domain::operation::{Kept, Pause, Progress};
use domain::persona::Bounds;
use domain::ruling::{Rule, TOOL_CALL};
use domain::run::Open;
use domain::run::settle::Ended;
use domain::spill::spill;
use domain::step::Failure;
use domain::tool::{EffectClass, ToolError};
use runtime::{CallAudit, Notes, Outcome, ToolCall, Written};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Number of tries of a call while the runtime has no free place.
pub(super) const BUSY_TRIES_MAX: u32 = 20;
/// The pause between such tries, in milliseconds.
pub(super) const BUSY_MS: u64 = 250;

type ToolOutcome = Outcome<Result<Progress, ToolError>>;

/// The code, tool, arguments and capabilities of a call.
pub(crate) struct Ran<'a> {
    pub(crate) component: Digest,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) capabilities: &'a [String],
}

/// One segment of one call of a tool.
pub(crate) struct Tool<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) started: &'a RunStarted,
    pub(crate) open: &'a Open,
    pub(crate) ran: Ran<'a>,
    /// The call audit for the boundary's decisions.
    pub(crate) audit: &'a CallAudit,
    /// The stopwatch, which runs while the tool is at work.
    pub(crate) stopwatch: &'a Stopwatch,
}

impl Tool<'_> {
    pub(crate) async fn perform(self) -> Performed {
        let _place = self.place().await;
        let present = self.core.served();
        let Some(offering) = self.offering(&present) else {
            return failed(
                "not-found",
                format!("the tool `{}` is no longer there", self.ran.tool),
            );
        };
        if !self.is_approved() {
            return self.refused(TOOL_CALL, Rule::Approval);
        }
        let mut bound = match self.bound(&present, &offering).await {
            Ok(Ok(bound)) => bound,
            Ok(Err(denied)) => {
                return self.refused(denied.capability(self.ran.tool), denied.rule);
            }
            Err(failure) => return Performed::ended(Ended::Failed(failure)),
        };
        if self.has_come_to_need_approval(&present, &offering) {
            self.note_refusal(TOOL_CALL, Rule::Approval);
            return Performed::ended(Ended::Failed(approval::required_since()));
        }
        if let Some(limit) = self.open.operation.time_limit_ms {
            bound.limits.wall_ms_max = bound.limits.wall_ms_max.min(limit);
        }
        let component = match self.component(&offering).await {
            Ok(component) => component,
            Err(gone) => return failed("not-found", gone),
        };
        let answer = match self.answer().await {
            Ok(answer) => answer,
            Err(failure) => return Performed::ended(Ended::Failed(failure)),
        };
        let notes = Arc::new(self.watchers(bound.limits.wall_ms_max));
        let buckets = Arc::new(CallBuckets::new(
            self.core,
            &offering.entry.name,
            self.started.into(),
        ));
        for _ in 0..BUSY_TRIES_MAX {
            let call = self.call(&bound, answer.clone());
            let called = self
                .core
                .runtime
                .call_noting(
                    &component,
                    &bound,
                    call,
                    notes.clone(),
                    buckets.clone(),
                    self.audit,
                )
                .await;
            crate::guest_log::record(&offering.entry.name, &called.logs);
            if !matches!(called.outcome, Outcome::Busy) {
                if let Outcome::Refused { detail } = &called.outcome {
                    self.audit
                        .decided(TOOL_CALL, BoundaryVerdict::Refused, Rule::Contract, detail);
                }
                let mut performed = self.outcome(called.outcome, &offering).await;
                performed.usage = Some(called.usage);
                self.keep(&offering.entry, called.written, &mut performed);
                return performed;
            }
            tokio::time::sleep(Duration::from_millis(BUSY_MS)).await;
        }
        let failure = Failure::passing("busy", "the host has no free place for this call");
        Performed::ended(Ended::Failed(failure))
    }

    /// Waits for a place among the calls of the tool's component; none if the component does not
    /// exist. It may take long, so all checks are made after it.
    async fn place(&self) -> Option<ToolPlace> {
        let entry = self.offering(&self.core.served())?.entry;
        let party = self.started.into();
        let concurrency_max = entry.grant.limits.concurrency_max;
        let places = &self.core.tool_places;
        Some(places.enter(party, &entry.name, concurrency_max).await)
    }

    /// Records that the call is refused, and returns that outcome.
    fn refused(&self, capability: &str, rule: Rule) -> Performed {
        self.note_refusal(capability, rule);
        Performed::ended(Ended::Denied)
    }

    fn note_refusal(&self, capability: &str, rule: Rule) {
        self.audit
            .decided(capability, BoundaryVerdict::Refused, rule, self.ran.tool);
    }

    /// Returns the tool as the run may call it; none if it no longer exists.
    fn offering(&self, present: &Arc<Served>) -> Option<Offering> {
        let Ran { tool, .. } = self.ran;
        self.core.serving.tool(present, self.started, tool)
    }

    /// Returns the code that the call was resolved with. The error is the reason why it cannot be
    /// used.
    async fn component(&self, offering: &Offering) -> Result<Arc<Component>, &'static str> {
        let Offering {
            entry, component, ..
        } = offering;
        if component.digest() == self.ran.component {
            return Ok(component.clone());
        }
        if entry.is_pinned {
            return Err("this call was meant for other code than the one that is pinned");
        }
        let kept = self.core.runtime.kept(self.ran.component).await;
        kept.map(|kept| kept.in_place_of(&entry.component))
            .ok_or("the component that this call was meant for is gone")
    }

    /// Returns whether the call needs no approval, or has one for exactly this call.
    fn is_approved(&self) -> bool {
        let Ran {
            component,
            tool,
            arguments,
            ..
        } = self.ran;
        let exact = Exact {
            operation: self.open.operation.id,
            component,
            tool,
            arguments,
        };
        let is_open = matches!(self.open.pause, Pause::Approving | Pause::Declined);
        self.open
            .operation
            .approval
            .as_ref()
            .is_none_or(|approval| !is_open && approval.is_for(&exact))
    }

    /// Returns whether the call was decided without an approval, and would need one by now.
    ///
    /// The same applies to later segments: a call that has begun needs no approval any more.
    fn has_come_to_need_approval(&self, present: &Served, offering: &Offering) -> bool {
        let bounds = present.bounds_of_run(self.started);
        self.open.operation.approval.is_none()
            && self
                .caller(present, &bounds)
                .is_some_and(|caller| caller.must_ask(&offering.definition, &offering.entry.grant))
    }

    /// Returns the calling agent as it is configured now. None if it no longer exists.
    fn caller<'c>(&self, present: &'c Served, bounds: &'c Bounds) -> Option<Caller<'c>> {
        Some(Caller {
            agent: present.catalogue.definition(&self.started.definition)?,
            denies: &bounds.denies,
            permissions: &bounds.permissions,
        })
    }

    /// Returns the bounds of the call: the present grant, within the grant of the time when the run
    /// began.
    ///
    /// The outer error is the host's failure, the inner one a refusal.
    async fn bound(
        &self,
        present: &Served,
        offering: &Offering,
    ) -> Result<Result<Bound, Denied>, Failure> {
        let core = self.core;
        let entry = &offering.entry;
        let definition = &*offering.definition;
        let started = self.started;
        let gone = || Failure::lasting("not-found", "what this turn may do is not stored any more");
        let bounds = present.bounds_of_run(started);
        let caller = self.caller(present, &bounds).ok_or_else(gone)?;
        // Capabilities that the tool requests by now count only if it had them when the call was
        // decided.
        let capabilities: Vec<String> = definition
            .capabilities
            .iter()
            .filter(|capability| self.ran.capabilities.contains(capability))
            .cloned()
            .collect();
        let asked = ToolRequirements {
            tool: self.ran.tool,
            capabilities: &capabilities,
        };
        let resolved = core
            .serving
            .config_of_run(&core.store, started)
            .await
            .map_err(|error| {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "what a turn may do could not be read"
                );
                Failure::passing("unavailable", "what this turn may do could not be read")
            })?;
        let ceiling = resolved.ok_or_else(gone)?.ceiling.clone();
        let now = caller
            .may_call(definition)
            .and_then(|_| caller.bound(asked, &entry.grant));
        let bound = now.and_then(|now| {
            let caller_then = Caller {
                agent: &ceiling.agent,
                ..caller
            };
            let granted_then = ceiling.grants.get(&entry.name).cloned().unwrap_or_default();
            Ok(now.within(&caller_then.bound(asked, &granted_then)?))
        });
        // An approved call has the most careful class, but a tool that only reads is bound to
        // reading all the same.
        Ok(bound.map(|bound| bound.for_effect(self.open.operation.effect.min(definition.effect))))
    }

    /// Adds the call's writes to its result's commit, unless the call failed.
    fn keep(&self, entry: &Entry, written: Written, performed: &mut Performed) {
        let counts = match performed.work_outcome {
            WorkOutcome::End(Ended::Gave { .. })
            | WorkOutcome::Later { .. }
            | WorkOutcome::Ask { .. } => true,
            WorkOutcome::End(_) | WorkOutcome::Call(_) | WorkOutcome::Lost => false,
        };
        if !counts {
            return;
        }
        performed
            .extras
            .events
            .extend(written.buckets.into_iter().map(|(bucket, entries)| {
                Event::KeyValueWritten(KeyValueWritten {
                    run: self.started.run,
                    operation: self.open.operation.id,
                    segment: self.open.segment,
                    place: bucket.place(&entry.name, behalf(self.started)),
                    entries,
                    time: self.core.now(),
                })
            }));
        performed.extras.holds = written.holds;
    }

    /// Returns the client's answer, whole; none when none was given.
    async fn answer(&self) -> Result<Option<Value>, Failure> {
        let digest = match &self.open.answer {
            None => return Ok(None),
            Some(Kept::Value(value)) => return Ok(Some(value.clone())),
            Some(Kept::Blob(digest)) => *digest,
        };
        let bytes = self.core.store.blob(digest).await.map_err(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "an answer could not be read"
            );
            Failure::passing("unavailable", "the answer could not be read")
        })?;
        let value = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        value
            .map(Some)
            .ok_or_else(|| Failure::lasting("not-found", "the answer is gone"))
    }

    fn call(&self, bound: &Bound, answer: Option<Value>) -> ToolCall {
        let started = self.started;
        ToolCall {
            agent_id: started.agent.to_string(),
            session_id: started.session.to_string(),
            user_id: started.user_id.to_string(),
            call_id: self.open.operation.id.to_string(),
            idempotency_key: self.open.operation.id.idempotency_key(self.open.segment),
            deadline_ms: u32::try_from(bound.limits.wall_ms_max).unwrap_or(u32::MAX),
            segment: self.open.segment,
            resumed: self.open.state.clone(),
            answer,
            tool: self.ran.tool.to_owned(),
            arguments: self.ran.arguments.to_owned(),
        }
    }

    async fn outcome(&self, outcome: ToolOutcome, offering: &Offering) -> Performed {
        match outcome {
            Outcome::Returned(Ok(Progress::Done { parts })) => {
                self.done(parts, &offering.served.resolved_configs).await
            }
            Outcome::Returned(Ok(Progress::Later { after_ms, state })) => {
                Performed::finished(WorkOutcome::Later { after_ms, state })
            }
            Outcome::Returned(Ok(Progress::Ask { action, state })) => {
                match ready(&self.core.schemas, &action).await {
                    Ok(action) => Performed::finished(WorkOutcome::Ask { action, state }),
                    Err(complaint) => failed(
                        "tool-failed",
                        format!("the tool asks what cannot be asked: {complaint}"),
                    ),
                }
            }
            Outcome::Returned(Err(ToolError::InvalidArguments(detail))) => {
                failed(INVALID_ARGUMENTS, detail)
            }
            Outcome::Returned(Err(ToolError::NotFound(detail))) => failed("not-found", detail),
            Outcome::Returned(Err(ToolError::Denied)) => Performed::ended(Ended::Denied),
            Outcome::Returned(Err(ToolError::Failed(detail))) => failed("tool-failed", detail),
            Outcome::Returned(Err(ToolError::RetryLater(ms))) => Performed::ended(Ended::Failed(
                Failure::passing("retry-later", format!("busy; try again in {ms} ms")),
            )),
            Outcome::Refused { detail } => failed(
                "tool-failed",
                format!("the tool returned what is not acceptable: {detail}"),
            ),
            Outcome::Trapped { message, .. } => {
                self.cut_off("trapped", format!("the tool crashed: {message}"))
            }
            Outcome::OutOfMemory => {
                self.cut_off("out-of-memory", "the tool used more memory than it may")
            }
            Outcome::OutOfCpu => {
                self.cut_off("out-of-cpu", "the tool computed for longer than it may")
            }
            Outcome::TimedOut if self.is_repeatable() => Performed::ended(Ended::TimedOut),
            Outcome::TimedOut => self.cut_off("timed-out", "the tool took longer than it may"),
            Outcome::Faulted { detail, began } => {
                let reported = format!("the host could not serve the call: {detail}");
                if began {
                    self.cut_off("tool-failed", reported)
                } else {
                    failed("tool-failed", reported)
                }
            }
            Outcome::TooOften { .. } => Performed::ended(Ended::Failed(Failure::passing(
                "rate-limited",
                "it is called too often; try again in a minute",
            ))),
            Outcome::Busy => failed("busy", "the host has no free place for this call"),
        }
    }

    /// Returns the end of a call that was cut off while it ran. It may have taken effect, so the
    /// outcome is unknown if it must not be repeated.
    fn cut_off(&self, code: &str, why: impl Into<String>) -> Performed {
        if self.is_repeatable() {
            return failed(code, why);
        }
        let cause = Failure::lasting(code, why);
        tracing::warn!(
            tool = self.ran.tool,
            cause = cause.message,
            "a call that must not be repeated was cut off; whether it took effect is unknown"
        );
        Performed::ended(Ended::Unknown(cause))
    }

    fn is_repeatable(&self) -> bool {
        self.open.operation.effect != EffectClass::NonIdempotent
    }

    async fn done(&self, parts: Vec<Part>, configs: &ResolvedConfigs) -> Performed {
        if configs.promises_result(self.ran.tool) {
            let complaint = match domain::json::parse(&text_of(&parts)) {
                Ok(result) => match configs.result_error(self.ran.tool, result).await {
                    Ok(complaint) => complaint,
                    Err(given_up) => {
                        return failed(
                            "tool-failed",
                            format!(
                                "nobody can tell whether the result is as promised: {given_up}"
                            ),
                        );
                    }
                },
                Err(refused) => Some(refused.to_string()),
            };
            if let Some(complaint) = complaint {
                return failed(
                    "tool-failed",
                    format!(
                        "the result does not fit the schema that the tool promises: {complaint}"
                    ),
                );
            }
        }
        if parts.iter().any(|part| !matches!(part, Part::Text { .. })) {
            return failed(
                "tool-failed",
                "the tool returned parts other than text; long text is kept as a blob by the host",
            );
        }
        let (parts, blob) = spill(parts);
        let mut performed = Performed::ended(Ended::Gave {
            parts,
            untrusted: true,
        });
        performed.extras.blobs.extend(blob);
        performed
    }

    /// Returns the subscribers of a call with a time limit, who are notified that it is about to
    /// run.
    fn watchers(&self, limit_ms: u64) -> Watchers {
        let watchers = Watchers {
            core: self.core.clone(),
            frame: self.frame(),
            stopwatch: self.stopwatch.clone(),
            limit_ms,
            at_work: OnceLock::new(),
        };
        watchers.show(Show::Performing {
            what: format!("tool:{}", self.ran.tool),
        });
        watchers
    }

    fn frame(&self) -> Frame {
        let started = self.started;
        Frame {
            agent: started.agent,
            session: started.session,
            run: started.run,
            operation: self.open.operation.id,
            attempt: self.open.segment + 1,
            seq: 0,
            show: Show::Discarded,
        }
    }
}

fn failed(code: &str, message: impl Into<String>) -> Performed {
    Performed::ended(Ended::Failed(Failure::lasting(code, message)))
}

/// The watchers of the call.
struct Watchers {
    core: Arc<Core>,
    frame: Frame,
    stopwatch: Stopwatch,
    /// The call's own time limit, which it may use without a word.
    limit_ms: u64,
    /// The guard of the stopwatch, from when the call was let in.
    at_work: OnceLock<AtWork>,
}

impl Watchers {
    fn show(&self, show: Show) {
        self.core.live.show(Frame {
            show,
            ..self.frame.clone()
        });
    }
}

impl Notes for Watchers {
    fn begun(&self) {
        self.at_work
            .get_or_init(|| self.stopwatch.start_quiet(self.limit_ms));
    }

    fn note(&self, message: &str) {
        self.stopwatch.progressed();
        self.show(Show::Note(message.to_owned()));
    }
}
