//! The facts about a step that its requests are resolved from, and the refusals.

use super::budget::Affords;
use super::context::SessionContext;
use super::driving::Driving;
use crate::ledger::{Through, entry, ledger_event};
use crate::resolved_config::ResolvedConfig;
use crate::shared::DriverError;
use crate::view::StepView;
use domain::approval::{Approval, Exact};
use domain::authority::{Caller, Denied, NamedModel, Permissions};
use domain::budget::{Amount, Available};
use domain::definition::Definition;
use domain::digest::Digest;
use domain::event::{BoundaryDecided, BoundaryVerdict, Event};
use domain::grant::Grant;
use domain::id::OperationId;
use domain::operation::{Performer, Settlement};
use domain::path::AgentPath;
use domain::persona::Bounds;
use domain::ruling::Rule;
use domain::run::decide::Resolved;
use domain::run::intake::Intake;
use domain::step::{Failure, OperationOutcome};
use domain::time::Timestamp;
use domain::tool::EffectClass;
use runtime::Decided;
use std::sync::Arc;
use store::{AgentRow, HandedOver};

/// A step whose requests will be resolved.
#[derive(Clone, Copy)]
pub(super) struct RequestingStep<'a> {
    pub(super) driving: &'a Driving,
    pub(super) agent: &'a AgentRow,
    /// The resolved config that the agent was shown when the run began.
    pub(super) config: &'a ResolvedConfig,
    pub(super) intake: &'a Intake,
    /// The view that the step was taken with; none for a call that a command line makes.
    pub(super) view: Option<&'a StepView>,
    pub(super) now: Timestamp,
}

/// The facts that a call outside of a step is resolved from.
pub(super) struct BetweenSteps {
    agent: AgentRow,
    config: Arc<ResolvedConfig>,
    pub(super) intake: Intake,
}

impl BetweenSteps {
    /// Reads what a call outside of a step is resolved from. The outcomes have arrived since the
    /// last step.
    pub(super) async fn read(
        context: &SessionContext,
        driving: &Driving,
        settled: Vec<Settlement>,
    ) -> Result<Self, DriverError> {
        let run = &driving.run;
        let agent = context.agent_row(driving).await?;
        let missing = || DriverError::Missing("what this turn may do".to_owned());
        let core = &context.core;
        let config = core
            .serving
            .config_of_run(&core.store, &run.started)
            .await?
            .ok_or_else(missing)?;
        let intake = Intake {
            settled,
            claimed: Vec::new(),
            hops: run.hops,
            heard: Vec::new(),
            news: Vec::new(),
            history_untrusted: false,
        };
        Ok(Self {
            agent,
            config,
            intake,
        })
    }

    pub(super) fn asking<'a>(&'a self, driving: &'a Driving, now: Timestamp) -> RequestingStep<'a> {
        RequestingStep {
            driving,
            agent: &self.agent,
            config: &self.config,
            intake: &self.intake,
            view: None,
            now,
        }
    }
}

/// A request that was not carried out, because of a rule or a limit.
pub(super) struct NotMade {
    pub(super) operation: OperationId,
    /// The requested tool. None for anything else, and for a name that no tool can have.
    pub(super) tool: Option<String>,
    pub(super) decided: Decided,
}

/// The longest name that is recorded as that of a tool, in bytes, whether the tool exists or not.
const TOOL_NAME_BYTES_MAX: usize = 128;

/// The facts about a step that its requests are resolved from.
pub(super) struct Scope<'a> {
    pub(super) driving: &'a Driving,
    pub(super) agent: &'a AgentRow,
    pub(super) definition: &'a Definition,
    /// The resolved config that the agent was shown when the run began.
    pub(super) config: &'a ResolvedConfig,
    /// The resolved config that it would be shown now. It decides what the agent may do.
    pub(super) granted: Arc<ResolvedConfig>,
    pub(super) intake: &'a Intake,
    /// The view that the step was taken with; none for a call that a command line makes.
    pub(super) view: Option<&'a StepView>,
    pub(super) now: Timestamp,
    /// The rest of the turn's limits or of the accounts, whichever is less.
    pub(super) left: Available,
    /// The reserves of open work, whose unused part will become available again.
    pub(super) lent: Amount,
    /// The source of the tightest limit, for people.
    pub(super) of: &'static str,
    /// Number of runs that resulted from the same message so far.
    pub(super) runs: u64,
    /// The open dispatches of the run and its tree of agents. Read only for a step that may hand
    /// work over.
    pub(super) handed_over: HandedOver,
    /// Number of dispatches of the step so far, and number of agents made for them below the
    /// caller.
    pub(super) handed: u64,
    /// Number of delegations of the step so far that wait for room.
    pub(super) queued: u64,
    /// Number of calls of `delegate` of the step after the present request.
    pub(super) delegations_to_come: u64,
    pub(super) workers: u64,
    /// The paths of agents that the step makes and that are no workers.
    pub(super) making: Vec<AgentPath>,
    /// True if the step has replied to its caller.
    pub(super) replied: bool,
    /// The grant of the agent's component.
    pub(super) own: Grant,
    /// The bounds of the turn besides its agent's own lists.
    pub(super) bounds: Bounds,
    /// The operation that the present request would become.
    pub(super) operation: OperationId,
    /// The boundary's grants so far, and its refusals.
    pub(super) granted_so_far: Decided,
    pub(super) refused_so_far: Vec<NotMade>,
}

impl Scope<'_> {
    pub(super) fn caller(&self) -> Caller<'_> {
        Caller {
            agent: self.definition,
            denies: &self.bounds.denies,
            permissions: &self.bounds.permissions,
        }
    }

    /// Returns the calling agent as it was when the run began.
    pub(super) fn caller_then(&self) -> Caller<'_> {
        Caller {
            agent: &self.config.ceiling.agent,
            ..self.caller()
        }
    }

    /// Returns whether a definition is available to the run. One that was added since the run began
    /// is not.
    pub(super) fn knows(&self, definition: &Definition) -> bool {
        self.config.ceiling.knew(definition)
    }

    /// Checks whether the agent may give work to another: now, and when the run began.
    pub(super) fn may_hand_over(&self, other: &Definition) -> Result<(), Denied> {
        self.caller().may_hand_over(other, &self.own)?;
        let granted = self.config.ceiling.own_grant();
        self.caller_then().may_hand_over(other, &granted)
    }

    /// Checks whether the agent may use a model: now, by what its path permits now, and when the
    /// run began.
    pub(super) fn may_be_answered_by(
        &self,
        model: NamedModel<'_>,
        by_path: &Permissions,
    ) -> Result<(), Denied> {
        let permissions = self.bounds.permissions.both(by_path);
        let caller = Caller {
            permissions: &permissions,
            ..self.caller()
        };
        caller.may_be_answered_by(model)?;
        self.caller_then().may_be_answered_by(model)
    }

    /// Checks whether the agent may reach another that it names: now, and when the run began.
    pub(super) fn may_reach(&self, other: &Definition) -> Result<(), Denied> {
        self.caller().may_reach(other, &self.own)?;
        self.may_hand_over(other)?;
        let caller = self.caller_then();
        let id = &other.agent_id;
        // Its peers are all others that it could reach then.
        let was_visible = if *id == caller.agent.agent_id {
            caller.agent.ui_visible
        } else {
            self.config.peer_list.iter().any(|peer| peer.id == id.0)
        };
        if was_visible {
            return Ok(());
        }
        Err(Denied {
            rule: Rule::UiVisible,
            what: id.0.clone(),
        })
    }

    /// Returns whether the output of this step depends on content from outside.
    pub(super) fn is_untrusted(&self) -> bool {
        self.driving.run.is_untrusted_with(self.intake)
    }

    /// Returns the approval that a user has to give before a tool performs the present request: a
    /// component's tool, or the host's own.
    pub(super) fn approval(
        &self,
        performer: &Performer,
        component: &str,
        within_ms: u64,
    ) -> Option<Approval> {
        let (code, tool, arguments) = match performer {
            Performer::Tool {
                component,
                tool,
                arguments,
                ..
            } => (*component, tool, arguments),
            Performer::Lasting { tool, arguments } => {
                (Digest::of(component.as_bytes()), tool, arguments)
            }
            _ => return None,
        };
        let exact = Exact {
            operation: self.operation,
            component: code,
            tool,
            arguments,
        };
        // The clock of the run's deadline is stopped until then.
        let until = self.now.plus_ms(within_ms);
        Some(Approval::new(
            &exact,
            component,
            &self.definition.agent_id.0,
            until,
        ))
    }

    /// Refuses a request. The guest sees the same refusal for every rule; the ledger has the rule.
    pub(super) fn deny(
        &mut self,
        tool: Option<&str>,
        capability: &str,
        denied: &Denied,
    ) -> Resolved {
        self.refuse(tool, capability, denied.rule, &denied.what);
        refused(OperationOutcome::Denied)
    }

    /// Refuses a call of a tool, or showing the tool to a model.
    pub(super) fn deny_tool(&mut self, name: &str, denied: &Denied) -> Resolved {
        self.refuse(Some(name), denied.capability(name), denied.rule, name);
        refused(OperationOutcome::Denied)
    }

    /// Refuses a request because a limit is met. The guest learns which one.
    pub(super) fn limit(
        &mut self,
        tool: Option<&str>,
        capability: &str,
        limit: &str,
        failure: Failure,
    ) -> Resolved {
        self.not_made(
            tool,
            capability,
            BoundaryVerdict::Limited,
            Rule::Limits,
            limit,
        );
        refused(OperationOutcome::Failed { failure })
    }

    /// Refuses a request because a limit is met that has no code of its own. It may pass later if
    /// open work will release a part of the missing amount.
    pub(super) fn limit_reached(
        &mut self,
        tool: Option<&str>,
        capability: &str,
        limit: &str,
        reported: String,
    ) -> Resolved {
        let failure = Failure {
            retryable: self.lent.has_any_of(limit),
            ..Failure::lasting("limit-reached", reported).with("limit", limit)
        };
        self.limit(tool, capability, limit, failure)
    }

    pub(super) fn grant(&mut self, capability: &str, detail: &str) {
        self.granted_so_far
            .note(capability, BoundaryVerdict::Granted, Rule::Granted, detail);
    }

    /// Notes that a rule refuses a request.
    pub(super) fn refuse(&mut self, tool: Option<&str>, capability: &str, rule: Rule, what: &str) {
        self.not_made(tool, capability, BoundaryVerdict::Refused, rule, what);
    }

    fn not_made(
        &mut self,
        tool: Option<&str>,
        capability: &str,
        verdict: BoundaryVerdict,
        rule: Rule,
        detail: &str,
    ) {
        let definition = &self.definition.agent_id;
        let operation = self.operation;
        let mut decided = Decided::default();
        decided.note(capability, verdict, rule, detail);
        // The log gets the detail as it is in the ledger: a guest's text may be long, or look like
        // a log line.
        let detail = decided
            .decisions
            .first()
            .map(|decision| decision.detail.as_str());
        tracing::info!(%definition, operation.id = %operation, capability, detail, %rule, "a \
            request came to nothing");
        let is_name = |name: &&str| {
            !name.is_empty()
                && name.len() <= TOOL_NAME_BYTES_MAX
                && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        self.refused_so_far.push(NotMade {
            operation,
            tool: tool.filter(is_name).map(str::to_owned),
            decided,
        });
    }
}

impl SessionContext {
    /// Reads the facts that a step's requests are resolved from.
    pub(super) async fn scope<'a>(
        &'a self,
        asked: RequestingStep<'a>,
        hands_over: bool,
    ) -> Result<Scope<'a>, DriverError> {
        let driving = asked.driving;
        let agent = asked.agent;
        let started = &driving.run.started;
        let id = &started.definition;
        let missing = || DriverError::Missing(format!("definition `{id}`"));
        let definition = self.served.catalogue.definition(id).ok_or_else(missing)?;
        let granted = self.served.resolved_configs.of(id).ok_or_else(missing)?;
        let Affords { left, runs, of } =
            Box::pin(self.affords(driving, &asked.intake.settled)).await?;
        let handed_over = if hands_over {
            self.store()
                .handed_over(started.run, agent.agent.id)
                .await?
        } else {
            HandedOver {
                by_run: 0,
                in_tree: 0,
                queued: 0,
                tree: agent.agent.id,
            }
        };
        let own = self.served.catalogue.grant_of(definition);
        Ok(Scope {
            driving,
            agent,
            definition,
            config: asked.config,
            granted,
            intake: asked.intake,
            view: asked.view,
            now: asked.now,
            left,
            lent: driving.run.lent_after(&asked.intake.settled),
            of,
            runs,
            handed_over,
            handed: 0,
            queued: 0,
            delegations_to_come: 0,
            workers: 0,
            making: Vec::new(),
            replied: false,
            own,
            bounds: self.served.bounds_of_run(started),
            operation: OperationId::mint(started.run, driving.run.step, ""),
            granted_so_far: Decided::default(),
            refused_so_far: Vec::new(),
        })
    }

    /// Returns the ledger's entry for a request that was not carried out.
    ///
    /// The agent's code requested it. An entry for a tool names the tool's component, any other the
    /// agent's.
    pub(super) fn not_made(
        &self,
        driving: &Driving,
        not_made: NotMade,
        code: Digest,
        time: Timestamp,
    ) -> Event {
        let through = not_made
            .tool
            .as_deref()
            .map_or(Through::Agent(code), |name| Through::Tool {
                name,
                code: None,
            });
        let entry = BoundaryDecided {
            operation: Some(not_made.operation),
            ..entry(&self.core, &driving.run, through)
        };
        ledger_event(entry, not_made.decided, time)
    }

    /// Returns the ledger's entry for a step that this code took; none when there is nothing to
    /// record.
    pub(super) fn step_decided(
        &self,
        driving: &Driving,
        code: Digest,
        decided: Decided,
        time: Timestamp,
    ) -> Option<Event> {
        (!decided.decisions.is_empty()).then(|| {
            let entry = entry(&self.core, &driving.run, Through::Agent(code));
            ledger_event(entry, decided, time)
        })
    }
}

/// Resolves a request to work of a class, without further limits.
pub(in crate::driver) fn simply(performer: Performer, effect: EffectClass) -> Resolved {
    Resolved {
        performer,
        effect,
        time_limit_ms: None,
        deadline: None,
        reserved: Amount::default(),
        approval: None,
    }
}

/// Resolves a request to an outcome that it has at once.
pub(super) fn refused(outcome: OperationOutcome) -> Resolved {
    at_once(outcome, false)
}

/// Resolves a request to an immediate outcome, which may depend on content from outside.
pub(super) fn at_once(outcome: OperationOutcome, untrusted: bool) -> Resolved {
    let performer = Performer::Refused {
        outcome,
        untrusted,
        of_delegate: false,
        address: None,
    };
    simply(performer, EffectClass::ReadOnly)
}

/// Resolves a request to a lasting failure.
pub(super) fn failed(code: &str, message: impl Into<String>) -> Resolved {
    refused(OperationOutcome::Failed {
        failure: Failure::lasting(code, message),
    })
}
