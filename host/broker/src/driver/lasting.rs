//! Lasting changes that a turn requests after it read content from outside: a trigger, a note.
//!
//! Words from outside may have made the agent request it. So the turn's user is asked, by the
//! approval that calls of tools have: about the exact call, once, within a time limit. The change
//! is made in one commit with the outcome of the call, and only after all its conditions were
//! checked again. If no user can be asked it is refused. An agent that keeps notes of what others
//! said has its own rule: its notes are marked, and shown as data.

use super::commit::add_sent;
use super::context::SessionContext;
use super::driving::Driving;
use super::handover::Sent;
use super::memory::forgets;
use super::record::{OVERTAKEN_MAX, is_overtaken};
use super::scope::{BetweenSteps, Scope, refused, simply};
use super::state::Driver;
use crate::purge::rewrite;
use crate::refusals::changing;
use crate::shared::DriverError;
use domain::approval::{HOST, unasked};
use domain::event::{Event, InputAccepted, RunSettled, Source};
use domain::id::OperationId;
use domain::operation::Performer;
use domain::path::PathKind;
use domain::ruling::{Rule, TOOL_CALL};
use domain::run::Open;
use domain::run::decide::Resolved;
use domain::run::recover::at_once;
use domain::run::settle::{Ended, settlement};
use domain::step::{Failure, OperationOutcome};
use domain::tool::EffectClass;
use serde_json::Value;
use store::Commit;

/// A change that was agreed to, with its outcome.
struct Made {
    settled: Event,
    /// The decisions about it.
    decided: Vec<Event>,
    sent: Vec<Sent>,
}

impl SessionContext {
    /// Returns whether a call that was resolved is made only after the turn's user has agreed.
    pub(super) fn asks_first(&self, scope: &Scope<'_>, resolved: &Resolved) -> bool {
        matches!(resolved.performer, Performer::Memory { .. })
            && scope.is_untrusted()
            && scope.agent.kind != PathKind::Memory
    }

    /// Makes a call wait until the turn's user has approved it.
    pub(super) async fn agreed_first(
        &self,
        scope: &mut Scope<'_>,
        name: &str,
        arguments: &str,
    ) -> Result<Resolved, DriverError> {
        if !self.has_user_to_ask(scope).await? {
            scope.refuse(Some(name), TOOL_CALL, Rule::Approval, name);
            return Ok(refused(OperationOutcome::Failed { failure: unasked() }));
        }
        let performer = Performer::Lasting {
            tool: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        let approval = scope.approval(&performer, HOST, self.limits_of(scope).approval_ms);
        Ok(Resolved {
            approval,
            ..simply(performer, EffectClass::Idempotent)
        })
    }

    /// Returns whether a turn works for a user who may see its question. That is not so if all its
    /// inputs came from a trigger whose replies go nowhere, or from a group of people.
    async fn has_user_to_ask(&self, scope: &Scope<'_>) -> Result<bool, DriverError> {
        let taken = scope.driving.run.claimed.iter();
        for input in taken.chain(&scope.intake.claimed) {
            let found = self.store().input(*input).await?;
            if found.is_some_and(|(input, _)| may_be_asked(&input)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Resolves an approved change again, from the present state.
    async fn made_lasting(&self, driving: &Driving, open: &Open) -> Result<Made, DriverError> {
        let now = self.core.now();
        let run = &driving.run;
        let Performer::Lasting { tool, arguments } = &open.operation.performer else {
            return Err(DriverError::Missing(
                "the change that was agreed to".to_owned(),
            ));
        };
        let between = BetweenSteps::read(self, driving, Vec::new()).await?;
        let mut scope = self.scope(between.asking(driving, now), false).await?;
        scope.operation = open.operation.id;
        let granted = scope.granted.clone();
        let allowed = granted
            .tool(tool)
            .is_some_and(|tool| scope.caller().may_call(tool).is_ok());
        let mut sent = Vec::new();
        let ended = match serde_json::from_str(arguments) {
            Ok(Value::Object(arguments)) if allowed => {
                let resolved = self.resolve_kept(&mut scope, tool, arguments, &mut sent);
                at_once(&Box::pin(resolved).await?.performer)
            }
            _ => {
                scope.refuse(Some(tool), TOOL_CALL, Rule::Unknown, tool);
                Some(Ended::Denied)
            }
        };
        let ended = ended.unwrap_or_else(|| Ended::Unknown(Failure::interrupted()));
        let granted = std::mem::take(&mut scope.granted_so_far);
        let refusals = std::mem::take(&mut scope.refused_so_far);
        let refusals = refusals
            .into_iter()
            .map(|not_made| self.not_made(driving, not_made, run.component, now));
        let decided = self
            .step_decided(driving, run.component, granted, now)
            .into_iter()
            .chain(refusals)
            .collect();
        Ok(Made {
            settled: Event::RunSettled(RunSettled {
                run: run.started.run,
                settled: vec![settlement(&open.operation, ended, now)],
            }),
            decided,
            sent,
        })
    }
}

/// Returns whether an input has a user, as its author or as the user for whom it is worked on
/// elsewhere.
fn may_be_asked(input: &InputAccepted) -> bool {
    let is_own = || {
        let speaker = input.message.as_ref().and_then(|draft| draft.said_by());
        speaker.is_none_or(|speaker| speaker.is_user())
    };
    match &input.source {
        Source::Api
        | Source::Opening
        | Source::Dispatch { .. }
        | Source::LateReply { .. }
        | Source::Reminder { .. } => true,
        Source::Connector { .. } => is_own(),
        Source::Trigger { reply_to, .. } => reply_to.is_some(),
    }
}

impl Driver {
    /// Makes an approved change, and records its outcome with it.
    pub(super) async fn make_lasting(&mut self, operation: OperationId) -> Result<(), DriverError> {
        for _ in 0..OVERTAKEN_MAX {
            if self.stale {
                self.refresh().await?;
            }
            let Some(driving) = self.phase.driving() else {
                return Ok(());
            };
            let Some(open) = driving.run.open.get(&operation) else {
                return Ok(());
            };
            let Made {
                settled,
                decided,
                sent,
            } = Box::pin(self.context.made_lasting(driving, open)).await?;
            let mut with = Commit::new();
            add_sent(&mut with, &sent);
            match self.commit_settled_with(settled, decided, with).await {
                Err(failure) if is_overtaken(&failure) => self.stale = true,
                Err(failure) => return Err(failure),
                Ok(()) => {
                    if forgets(&sent) {
                        let core = self.context.core.clone();
                        self.context.core.spawn(async move { rewrite(&core).await });
                    }
                    self.context.core.timers.notify_one();
                    return Ok(());
                }
            }
        }
        Err(DriverError::Refused(changing("the session")))
    }
}
