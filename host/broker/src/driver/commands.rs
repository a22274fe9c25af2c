//! Calls that command lines make. Each is resolved like any other call of a tool, and starts as an
//! operation of its own before it is made.

use super::calls::{Offer, is_of_model, object_of};
use super::context::SessionContext;
use super::driving::Driving;
use super::record::{OVERTAKEN_MAX, is_overtaken};
use super::scope::{BetweenSteps, Scope, failed, simply};
use super::state::Driver;
use crate::performance::result::{CommitExtras, WantedCall};
use crate::refusals::changing;
use crate::shared::DriverError;
use domain::error_code::INVALID_ARGUMENTS;
use domain::event::Event;
use domain::id::OperationId;
use domain::operation::{CommandCall, Continuation, Operation, Pause, Performer};
use domain::ruling::TOOL_CALL;
use domain::run::Open;
use domain::run::decide::Resolved;
use domain::skill::{BASH, COMMAND_BYTES_MAX, COMMAND_MS_MAX, is_left};
use domain::step::Call;
use domain::tool::EffectClass;
use serde_json::Value;
use store::Guard;

/// A call that is about to be recorded.
struct Made {
    event: Event,
    extras: CommitExtras,
    guard: Option<Guard>,
}

impl Driver {
    /// Records the calls that command lines need, each as an operation that starts.
    pub(super) async fn record_calls(&mut self) -> Result<(), DriverError> {
        while let Some((wanted, extras)) = self.next_call() {
            let line = wanted.line;
            self.record_call(&wanted, &extras).await?;
            if let Some(driving) = self.phase.driving_mut() {
                driving.calls.retain(|(call, _)| call.line != line);
            }
            self.context.core.timers.notify_one();
        }
        Ok(())
    }

    fn next_call(&self) -> Option<(WantedCall, CommitExtras)> {
        self.phase.driving()?.calls.first().cloned()
    }

    async fn record_call(
        &mut self,
        wanted: &WantedCall,
        extras: &CommitExtras,
    ) -> Result<(), DriverError> {
        for _ in 0..OVERTAKEN_MAX {
            if self.stale {
                self.refresh().await?;
            }
            let Some(driving) = self.phase.driving() else {
                return Ok(());
            };
            let is_wanted = |open: &&Open| open.segment < wanted.segment;
            let Some(open) = driving.run.open.get(&wanted.line).filter(is_wanted) else {
                return Ok(());
            };
            let made = Box::pin(self.context.made(driving, open, wanted)).await?;
            let extras = CommitExtras {
                events: extras
                    .events
                    .iter()
                    .cloned()
                    .chain(made.extras.events)
                    .collect(),
                ..extras.clone()
            };
            let guards = made.guard.into_iter().collect();
            match self.commit_run_event_with(made.event, extras, guards).await {
                Err(failure) if is_overtaken(&failure) => self.stale = true,
                recorded => return recorded,
            }
        }
        Err(DriverError::Refused(changing("the session")))
    }
}

impl SessionContext {
    /// Resolves a command line over the agent's skills.
    pub(super) fn resolve_command(
        &self,
        scope: &mut Scope<'_>,
        call: &Call,
        arguments: &str,
    ) -> Resolved {
        // A tool that was offered since the turn began is not available to it.
        if scope.config.tool(BASH).is_none() {
            return self.not_available(scope, BASH, is_of_model(call));
        }
        if let Err(denied) = scope.caller().may_use_skills() {
            return scope.deny_tool(BASH, &denied);
        }
        let parsed = match object_of(arguments) {
            Ok(parsed) => parsed,
            Err(fault) => return failed(INVALID_ARGUMENTS, fault),
        };
        let command = match (parsed.get("command"), parsed.len()) {
            (Some(Value::String(command)), 1) if command.len() <= COMMAND_BYTES_MAX => command,
            _ => {
                return failed(
                    INVALID_ARGUMENTS,
                    format!(
                        "the arguments are `command` alone, a text of at most \
                         {COMMAND_BYTES_MAX} bytes"
                    ),
                );
            }
        };
        scope.left.calls -= 1;
        scope.grant(TOOL_CALL, BASH);
        let performer = Performer::Command {
            command: command.clone(),
        };
        Resolved {
            deadline: Some(scope.now.plus_ms(COMMAND_MS_MAX)),
            ..simply(performer, EffectClass::ReadOnly)
        }
    }

    /// Returns the event with which a call starts, and the other events of its commit.
    async fn made(
        &self,
        driving: &Driving,
        line: &Open,
        wanted: &WantedCall,
    ) -> Result<Made, DriverError> {
        let now = self.core.now();
        let run = &driving.run;
        let between = BetweenSteps::read(self, driving, driving.settlements()).await?;
        let mut scope = self.scope(between.asking(driving, now), false).await?;
        let number = u32::try_from(line.called.len()).unwrap_or(u32::MAX);
        scope.operation = line.operation.id.call(number);
        let resolved = self.resolve_command_call(&mut scope, wanted).await?;
        let refused = std::mem::take(&mut scope.refused_so_far);
        let events = refused
            .into_iter()
            .map(|not_made| self.not_made(driving, not_made, run.component, now))
            .collect();
        let id = scope.operation;
        let started = started(&line.operation, resolved, id, number);
        let guard = self.afforded(
            driving,
            &between.intake.settled,
            std::slice::from_ref(&started),
        );
        let call = CommandCall {
            tool: wanted.wanted.tool.clone(),
            arguments: wanted.wanted.arguments.clone(),
            started,
            time: now,
        };
        Ok(Made {
            event: Event::OperationContinued(continuation(wanted, call)),
            extras: CommitExtras {
                events,
                ..CommitExtras::default()
            },
            guard,
        })
    }

    /// Resolves a call that a command line makes, by the rules of any call of a tool.
    async fn resolve_command_call(
        &self,
        scope: &mut Scope<'_>,
        wanted: &WantedCall,
    ) -> Result<Resolved, DriverError> {
        let name = wanted.wanted.tool.as_str();
        if scope.left.calls == 0 {
            let reported = format!("no tool calls are left of {} (toolCallsMax)", scope.of);
            return Ok(scope.limit_reached(Some(name), TOOL_CALL, "toolCallsMax", reported));
        }
        let started = &scope.driving.run.started;
        let offering = self.core.serving.tool(&self.served, started, name);
        let offered = scope
            .config
            .skills
            .tool(name)
            .filter(|(skill, _)| is_left(scope.definition, &skill.id));
        let (Some(offering), Some((_, shown))) = (offering, offered) else {
            return Ok(self.not_available(scope, name, true));
        };
        let tool = &*offering.definition;
        if let Err(denied) = scope.caller().may_call(tool) {
            return Ok(scope.deny_tool(name, &denied));
        }
        // A permission granted since the turn began does not apply to it.
        if let Err(denied) = scope.caller_then().may_call(tool) {
            return Ok(scope.deny_tool(name, &denied));
        }
        let parsed: Value = match domain::json::parse(&wanted.wanted.arguments) {
            Ok(parsed) => parsed,
            Err(refused) => return Ok(failed(INVALID_ARGUMENTS, refused.to_string())),
        };
        if let Some(wrong) = self.wrong_arguments(scope.config, name, &parsed).await {
            return Ok(wrong);
        }
        let offer = Offer { shown, tool };
        Ok(self.tool_call(scope, &offering, offer, parsed.to_string()))
    }
}

/// Returns the operation of a command line's call. It has the same deadline as the line.
fn started(line: &Operation, resolved: Resolved, id: OperationId, number: u32) -> Operation {
    let deadline = [line.deadline, resolved.deadline]
        .into_iter()
        .flatten()
        .min();
    Operation {
        id,
        key: format!("call {number} of {}", line.key),
        step: line.step,
        place: line.place,
        performer: resolved.performer,
        effect: resolved.effect,
        time_limit_ms: resolved.time_limit_ms,
        deadline,
        answers: None,
        in_thread: false,
        reserved: resolved.reserved,
        approval: resolved.approval.map(Box::new),
    }
}

fn continuation(wanted: &WantedCall, call: CommandCall) -> Continuation {
    Continuation {
        operation: wanted.line,
        segment: wanted.segment,
        state: Vec::new(),
        pause: Pause::None,
        active_ms: 0,
        call: Some(Box::new(call)),
    }
}
