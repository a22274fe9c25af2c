//! The steps of a run that compacts. The host decides them; all else is as for an agent's steps.
//!
//! They are recorded, performed and limited alike.

use crate::driver::commit::Plan;
use crate::driver::context::SessionContext;
use crate::driver::driving::Driving;
use crate::driver::frozen::Frozen;
use crate::driver::prepare::Prepared;
use crate::driver::reserve::Reserve;
use crate::driver::resolve::asking;
use crate::driver::scope::simply;
use crate::driver::state::Driver;
use crate::ledger::{Through, entry, ledger_event};
use crate::performance::attempts::Short;
use crate::shared::DriverError;
use domain::digest::Digest;
use domain::error_code::LIMIT_REACHED;
use domain::event::{BoundaryVerdict, Event};
use domain::operation::{CallUsage, Performer};
use domain::ruling::{MODEL_CALL, Rule};
use domain::run::Run;
use domain::run::compact::{code, conclude, step};
use domain::run::decide::{Resolved, Taken, decide};
use domain::run::end::Cause;
use domain::run::intake::Intake;
use domain::step::{Decision, StepResult, Work};
use domain::time::Timestamp;
use runtime::Decided;

/// The reason why no model is asked for a summary.
enum NotAsked {
    /// There is no such model.
    NoModel,
    /// A limit leaves too little for it.
    NotAfforded { limit: &'static str, reason: String },
}

impl Driver {
    /// Takes the next step of a run that compacts its thread.
    pub(in crate::driver) async fn step_compacting(&mut self) -> Result<(), DriverError> {
        let component = self.phase.open()?.run.component;
        let Prepared {
            intake,
            frozen: Frozen { basis, blobs, .. },
            salt,
            time: now,
            ..
        } = match Box::pin(self.prepare(&[], component)).await? {
            Ok(prepared) => prepared,
            Err(cause) => return self.fail(cause).await,
        };
        let driving = self.phase.open()?;
        let result = step(&driving.run, &intake.news);
        let resolved = match self.context.resolve_summary(driving, &intake, &result) {
            Ok(resolved) => resolved,
            Err(NotAsked::NoModel) => {
                let reason = format!(
                    "there is no model `{}` to ask for a summary",
                    driving.run.started.model.as_deref().unwrap_or("default")
                );
                let code = code(&driving.run).to_owned();
                return self.fail(Cause::Failed { code, reason }).await;
            }
            Err(NotAsked::NotAfforded { limit, reason }) => {
                return self.not_afforded(limit, reason, now).await;
            }
        };
        let cause = self.context.ending(&driving.run, &result.decision);
        let decided = self
            .context
            .asked(driving, &resolved, now)
            .into_iter()
            .collect();
        let taken = Taken {
            basis,
            intake,
            result,
            resolved,
            answers: Digest::of(b""),
            usage: CallUsage::default(),
            time: now,
            salt,
        };
        let mut stepped = decide(&driving.run, taken);
        conclude(&driving.run, &mut stepped, salt);
        let plan = Plan {
            stepped,
            cause,
            role: None,
            sent: Vec::new(),
            blobs,
            words: Vec::new(),
            decided,
            afforded: None,
            untrusted: driving.run.is_untrusted(),
            time: now,
        };
        Box::pin(self.commit_step(plan)).await
    }

    /// Ends the run because a limit keeps it from asking, and records that in the ledger.
    async fn not_afforded(
        &mut self,
        limit: &str,
        reason: String,
        time: Timestamp,
    ) -> Result<(), DriverError> {
        tracing::warn!(session.id = %self.context.session, reason, "no summary was made");
        if let Some(driving) = self.phase.driving_mut() {
            let mut decided = Decided::default();
            decided.note(MODEL_CALL, BoundaryVerdict::Limited, Rule::Limits, limit);
            let entry = entry(
                &self.context.core,
                &driving.run,
                Through::Agent(driving.run.component),
            );
            driving.entries.push(ledger_event(entry, decided, time));
        }
        self.fail(Cause::Failed {
            code: LIMIT_REACHED.to_owned(),
            reason,
        })
        .await
    }
}

impl SessionContext {
    /// Returns the end of a run that compacts by a decision, if it ends.
    fn ending(&self, run: &Run, decision: &Decision) -> Option<Cause> {
        let Decision::Fail { reason } = decision else {
            return Cause::of(decision, None);
        };
        tracing::warn!(session.id = %self.session, run.id = %run.started.run, reason, "no summary \
            was made");
        Some(Cause::Failed {
            code: code(run).to_owned(),
            reason: reason.clone(),
        })
    }

    /// Resolves the step's request, if it has one.
    ///
    /// The host asks by its own configuration: no grant of the agent's says which model may be
    /// asked. The cost is limited like that of a turn.
    fn resolve_summary(
        &self,
        driving: &Driving,
        intake: &Intake,
        result: &StepResult,
    ) -> Result<Vec<Resolved>, NotAsked> {
        let Decision::Wait(wait) = &result.decision else {
            return Ok(Vec::new());
        };
        let left = driving.run.available_after(&intake.settled);
        let limits = self.core.serving.limits_of_run(&driving.run.started);
        let mut resolved = Vec::new();
        for request in &wait.start {
            let Work::Model(request) = &request.work else {
                return Err(NotAsked::NoModel);
            };
            let model = request.model.as_deref();
            let route = self
                .core
                .serving
                .gateway_of_run(&driving.run.started, model)
                .resolve(model)
                .map_err(|_| NotAsked::NoModel)?;
            let thread = driving
                .run
                .started
                .compacts
                .as_ref()
                .map_or(0, |compaction| compaction.tokens_before);
            let reply = request.max_tokens.map_or(limits.reserved_tokens, u64::from);
            let reserve = Reserve::of(thread, reply, route.context_window);
            let reserved_micros = reserve
                .afforded(&left, route.price, "this turn's limit")
                .map_err(|Short { limit, reported }| NotAsked::NotAfforded {
                    limit,
                    reason: reported,
                })?;
            let performer = Performer::Model {
                request: request.clone(),
                through: 0,
                reserved_tokens: reserve.tokens(),
                reserved_micros,
            };
            resolved.push(simply(performer, asking(&route)));
        }
        Ok(resolved)
    }

    /// Returns the ledger's entry for asking the model.
    fn asked(&self, driving: &Driving, resolved: &[Resolved], time: Timestamp) -> Option<Event> {
        let Performer::Model { request, .. } = &resolved.first()?.performer else {
            return None;
        };
        let model = request.model.as_deref();
        let serving = &self.core.serving;
        let gateway = serving.gateway_of_run(&driving.run.started, model);
        let route = gateway.resolve(model).ok()?;
        let mut decided = Decided::default();
        decided.note(
            MODEL_CALL,
            BoundaryVerdict::Granted,
            Rule::Granted,
            &route.alias,
        );
        let entry = entry(
            &self.core,
            &driving.run,
            Through::Agent(driving.run.component),
        );
        Some(ledger_event(entry, decided, time))
    }
}
