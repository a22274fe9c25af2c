//! Resolution of calls of tools, and of work for other agents.

mod repeats;

use super::context::SessionContext;
use super::driving::Driving;
use super::handover::{Handover, Sent, To, Waits};
use super::scope::{Scope, at_once, failed, refused, simply};
use crate::kept_results::{Lookup, WRITING_MAX, Writing};
use crate::resolved_config::ResolvedConfig;
use crate::serving::Offering;
use crate::shared::DriverError;
use crate::view::StepView;
use domain::authority::{Denied, only_delegates};
use domain::budget::Budget;
use domain::definition::DefinitionId;
use domain::delegate::{
    self, CacheScope, DelegateAddress, Delegation, Invalid, OperationRule, Target,
};
use domain::direct_message;
use domain::error_code::INVALID_ARGUMENTS;
use domain::limits::TIMER_MS_MAX;
use domain::memory;
use domain::message::Part;
use domain::operation::Performer;
use domain::panels;
use domain::ruling::{AGENT_CALL, Rule, TOOL_CALL};
use domain::run::decide::{Resolved, find_call};
use domain::run::intake::Intake;
use domain::shown::visible;
use domain::skill;
use domain::step::{Call, Dispatch, OperationOutcome};
use domain::tool::{EffectClass, ToolDefinition};
use domain::trigger;
use repeats::repeated;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use store::InputState;

/// Number of characters that are repeated of an unknown tool's name.
const NAME_CHARS_SHOWN: usize = 80;
/// The code of a call that is not made again.
const REPEATED_CALL: &str = "repeated-call";

/// A tool as it was shown to the agent when the turn began, and as it is now.
#[derive(Clone, Copy)]
pub(super) struct Offer<'a> {
    pub(super) shown: &'a ToolDefinition,
    pub(super) tool: &'a ToolDefinition,
}

impl SessionContext {
    /// Resolves a call of a tool.
    pub(super) async fn resolve_call(
        &self,
        scope: &mut Scope<'_>,
        call: &Call,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let Some(called) = Called::find(call, scope.driving, scope.intake, scope.config) else {
            return Ok(failed("not-found", "there is no such call"));
        };
        let Called {
            tool: name,
            arguments,
            operation,
        } = called;
        if is_of_model(call)
            && let Some(reported) = repeated(scope, &called)
        {
            return Ok(failed(REPEATED_CALL, reported));
        }
        if scope.left.calls == 0 {
            let reported = format!("no tool calls are left of {} (toolCallsMax)", scope.of);
            return Ok(scope.limit_reached(Some(name), TOOL_CALL, "toolCallsMax", reported));
        }
        if name == skill::BASH {
            return Ok(self.resolve_command(scope, call, arguments));
        }
        let Some(shown) = scope.config.tool(name) else {
            return Ok(self.not_available(scope, name, is_of_model(call)));
        };
        let started = &scope.driving.run.started;
        let offering = self.core.serving.tool(&self.served, started, name);
        let earlier = offering.as_ref().and_then(|it| it.earlier(&self.served));
        let granted = scope.granted.clone();
        let Some(tool) = earlier.or(granted.tool(name)) else {
            // The tool was taken from the agent, or from all agents, since the turn began.
            let denied = self.denied_tool(scope, name).unwrap_or(Denied {
                rule: Rule::Unknown,
                what: name.to_owned(),
            });
            return Ok(scope.deny_tool(name, &denied));
        };
        if let Err(denied) = scope.caller().may_call(tool) {
            return Ok(scope.deny_tool(name, &denied));
        }
        let parsed = match object_of(arguments) {
            Ok(parsed) => parsed,
            // An operation's faults are reported together with a valid call.
            Err(_) if operation.is_some() => Map::new(),
            Err(fault) => return Ok(failed(INVALID_ARGUMENTS, fault)),
        };
        // Faults in the arguments of these tools are reported in the tools' own terms.
        if is_own(name) {
            let call = OwnCall { called, parsed };
            return self.resolve_own(scope, call, sent).await;
        }
        let parsed = Value::Object(parsed);
        if let Some(wrong) = self.wrong_arguments(scope.config, name, &parsed).await {
            return Ok(wrong);
        }
        scope.left.calls -= 1;
        let Some(offering) = &offering else {
            return Ok(self.not_available(scope, name, is_of_model(call)));
        };
        Ok(self.tool_call(scope, offering, Offer { shown, tool }, parsed.to_string()))
    }

    /// Resolves a call whose arguments do not fit the schema that the agent was shown; none if they
    /// do.
    pub(super) async fn wrong_arguments(
        &self,
        config: &ResolvedConfig,
        tool: &str,
        arguments: &Value,
    ) -> Option<Resolved> {
        let configs = &self.served.resolved_configs;
        match configs.arguments_error(config, tool, arguments).await {
            Ok(complaints) => complaints.map(|wrong| failed(INVALID_ARGUMENTS, wrong)),
            Err(given_up) => Some(refused(OperationOutcome::Failed {
                failure: given_up.failure(),
            })),
        }
    }

    /// Resolves a call of one of the host's own tools.
    async fn resolve_own(
        &self,
        scope: &mut Scope<'_>,
        call: OwnCall<'_>,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let OwnCall { called, parsed } = call;
        let name = called.tool;
        scope.left.calls -= 1;
        match name {
            delegate::NAME => self.resolve_delegate(scope, &called, sent).await,
            _ if hands_over(name) => self.resolve_direct_message(scope, name, parsed, sent).await,
            _ if panels::NAMES.contains(&name) => self.resolve_panels(scope, name, &parsed).await,
            _ => {
                let before = sent.len();
                let made = self.resolve_kept(scope, name, parsed, sent).await?;
                if self.asks_first(scope, &made) {
                    sent.truncate(before);
                    return self.agreed_first(scope, name, called.arguments).await;
                }
                Ok(made)
            }
        }
    }

    /// Returns the call of a tool that may be made, with its limits and the approval that it needs.
    pub(super) fn tool_call(
        &self,
        scope: &Scope<'_>,
        offering: &Offering,
        offer: Offer<'_>,
        arguments: String,
    ) -> Resolved {
        let Offer { shown, tool } = offer;
        let entry = &offering.entry;
        let own_limit = tool.time_limit_ms.map_or(u64::MAX, u64::from);
        let performer = Performer::Tool {
            component: offering.component.digest(),
            tool: tool.name.clone(),
            arguments,
            capabilities: tool
                .capabilities
                .iter()
                .filter(|capability| shown.capabilities.contains(capability))
                .cloned()
                .collect(),
        };
        let time_limit_ms = Some(own_limit.min(entry.grant.limits.wall_ms_max));
        // The shown tool and the current one may differ. The more careful class decides the
        // treatment after a crash.
        let effect = tool.effect.max(shown.effect);
        let asks = [tool, shown]
            .into_iter()
            .any(|tool| scope.caller().must_ask(tool, &entry.grant));
        let approval_ms = self.limits_of(scope).approval_ms;
        let approval = asks.then(|| scope.approval(&performer, &entry.name, approval_ms));
        // An approved call is made once: it is recorded as sent before it is sent, whatever its
        // class.
        let effect = if asks {
            EffectClass::NonIdempotent
        } else {
            effect
        };
        Resolved {
            approval: approval.flatten(),
            time_limit_ms,
            ..simply(performer, effect)
        }
    }

    /// Resolves a call of a tool by which an agent stores data of its own: notes, triggers.
    pub(super) async fn resolve_kept(
        &self,
        scope: &mut Scope<'_>,
        name: &str,
        arguments: Map<String, Value>,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        if trigger::OWN_TOOLS.contains(&name) {
            self.resolve_triggers(scope, name, arguments, sent).await
        } else {
            self.resolve_memory(scope, name, arguments, sent).await
        }
    }

    /// Refuses a call of a tool that the agent has not got. Each refusal is on record.
    ///
    /// To a model every such tool is reported as unknown, and so is any tool of an agent that only
    /// delegates. For the agent's own code, an existing tool that a rule forbids is reported as
    /// denied, and any other as unknown. Any other includes a tool that did not belong to the agent
    /// yet when the turn began.
    pub(super) fn not_available(
        &self,
        scope: &mut Scope<'_>,
        name: &str,
        by_model: bool,
    ) -> Resolved {
        let denied = self.denied_tool(scope, name);
        let is_hidden = by_model || only_delegates(scope.definition) && name != delegate::NAME;
        let (capability, rule) = match &denied {
            Some(denied) if !is_hidden => return scope.deny_tool(name, denied),
            Some(denied) => (denied.capability(name), denied.rule),
            None if self.offered(name).is_some() => (TOOL_CALL, Rule::Ceiling),
            None => (TOOL_CALL, Rule::Unknown),
        };
        // The name of a tool that does not exist is arbitrary text of a model or a guest.
        let name = &*visible(name, NAME_CHARS_SHOWN);
        scope.refuse(Some(name), capability, rule, name);
        let known: Vec<&str> = scope
            .config
            .tool_list
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        failed(
            "TOOL_NOT_AVAILABLE",
            format!(
                "there is no tool `{name}`; available are: {}",
                known.join(", ")
            ),
        )
    }

    /// Returns a tool of any component, or of the host's own.
    fn offered(&self, name: &str) -> Option<Arc<ToolDefinition>> {
        let own = || {
            self.served
                .resolved_configs
                .own_tools()
                .find(|tool| tool.name == name)
                .filter(|tool| !self.served.catalogue.is_disabled(&tool.name))
                .map(Arc::new)
        };
        self.served
            .catalogue
            .tool(name)
            .map(|(_, tool)| tool.clone())
            .or_else(own)
    }

    /// Returns the rule that forbids the agent a tool. None if there is no such rule or no such
    /// tool.
    fn denied_tool(&self, scope: &Scope<'_>, name: &str) -> Option<Denied> {
        scope.caller().may_call(&*self.offered(name)?).err()
    }

    /// Resolves a call of `delegate`.
    async fn resolve_delegate(
        &self,
        scope: &mut Scope<'_>,
        called: &Called<'_>,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let offers = &self.served.resolved_configs.delegates;
        let parsed = match called.operation {
            Some(rule) => offers.parse_named(rule, called.arguments),
            None => offers.parse(called.arguments),
        };
        let delegation = match parsed {
            Ok(delegation) => delegation,
            Err(invalid) => return Ok(invalid_call(invalid)),
        };
        let target = DefinitionId(delegation.target.as_str().to_owned());
        let there = self.served.catalogue.definition(&target);
        let Some(target) = there.filter(|it| scope.knows(it)).cloned() else {
            let targets: Vec<Target> = offers.targets().collect();
            let unavailable = Invalid::unavailable(delegation.target, &targets);
            return Ok(invalid_call(unavailable));
        };
        if let Err(denied) = scope.may_hand_over(&target) {
            return Ok(scope.deny(Some(delegate::NAME), AGENT_CALL, &denied));
        }
        let to_keep = match self.kept_result(scope, &delegation).await? {
            Lookup::Kept(hit) => {
                scope.grant(AGENT_CALL, &target.agent_id.0);
                let parts = vec![Part::text(hit.result)];
                return Ok(at_once(OperationOutcome::Parts { parts }, hit.untrusted));
            }
            Lookup::Awaited(key) => Some(key),
            Lookup::Never => None,
        };
        let Some(view) = scope.view else {
            return Ok(failed("not-found", "a command line hands no work over"));
        };
        let content = handed_on(view, &delegation, time_of(scope, &delegation)).await?;
        let handover = Handover {
            to: To::Worker(target),
            content,
            waits: Waits::Attached {
                timeout_ms: delegation.timeout_ms,
            },
            delegation: Some(called.of_delegate().unwrap_or_default().into_owned()),
            priority: delegation.priority,
            budget: Budget::default(),
            tool: Some(delegate::NAME),
        };
        let resolved = self.hand_over(scope, handover, sent).await?;
        let kept_results = &self.core.kept_results;
        let input = match &resolved.performer {
            Performer::Agent { input, .. } => Some(*input),
            _ => None,
        };
        match to_keep {
            Some(key) if input.is_some() => {
                let user = &scope.driving.run.started.user_id;
                kept_results.expect(&self.served, scope.operation, key, user);
            }
            Some(_) => {}
            None => kept_results.handed_over(scope.operation, input),
        }
        Ok(resolved)
    }

    /// Looks up the cached result of a delegation. A delegation that does more than read is
    /// recorded instead.
    async fn kept_result(
        &self,
        scope: &Scope<'_>,
        delegation: &Delegation,
    ) -> Result<Lookup, DriverError> {
        let started = &scope.driving.run.started;
        let kept_results = &self.core.kept_results;
        if kept_results.wants_earlier(&self.served) {
            let earlier = self.store().delegations_under_way(WRITING_MAX).await?;
            let earlier = earlier.into_iter().map(|(operation, user, input)| Writing {
                operation,
                user,
                input: Some(input),
                until: scope.now,
            });
            kept_results.learn(earlier.collect());
        }
        for writing in kept_results.in_the_way_of(&started.user_id) {
            if self.is_over(&writing, scope).await? {
                kept_results.written(writing.operation);
            }
        }
        if !delegation.is_read_only() {
            let writing = Writing {
                operation: scope.operation,
                user: started.user_id.clone(),
                input: None,
                until: scope.now.plus_ms(delegation.timeout_ms),
            };
            kept_results.begin_writing(&self.served, writing);
            return Ok(Lookup::Never);
        }
        let of = CacheScope {
            user: &started.user_id,
            agent: scope.agent.agent.id,
            denies: &scope.bounds.denies.and_of(scope.definition),
            permissions: &scope.bounds.permissions,
        };
        Ok(kept_results.inspect(&self.served, delegation, of, scope.now))
    }

    /// Returns whether the work of a delegation has ended, regardless of the result reported to its
    /// caller.
    async fn is_over(&self, writing: &Writing, scope: &Scope<'_>) -> Result<bool, DriverError> {
        let found = match writing.input {
            Some(input) => self.store().input(input).await?,
            None => None,
        };
        Ok(match found {
            Some((_, state)) => !matches!(state, InputState::Waiting | InputState::Claimed { .. }),
            // It is not stored yet, or never will be.
            None => writing.until <= scope.now,
        })
    }

    /// Resolves work for another agent that the agent itself asks for.
    pub(super) async fn resolve_dispatch(
        &self,
        scope: &mut Scope<'_>,
        dispatch: &Dispatch,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        if scope.left.calls == 0 {
            let reported = format!("no calls are left of {} (toolCallsMax)", scope.of);
            return Ok(scope.limit_reached(None, AGENT_CALL, "toolCallsMax", reported));
        }
        let target = DefinitionId(dispatch.target.clone());
        let there = self.served.catalogue.definition(&target);
        let Some(target) = there.filter(|it| scope.knows(it)).cloned() else {
            scope.refuse(None, AGENT_CALL, Rule::Unknown, &dispatch.target);
            return Ok(failed(
                direct_message::AGENT_NOT_FOUND,
                format!("there is no agent `{}`", dispatch.target),
            ));
        };
        if let Err(denied) = scope.may_reach(&target) {
            return Ok(scope.deny(None, AGENT_CALL, &denied));
        }
        scope.left.calls -= 1;
        let timeout_ms = dispatch
            .timeout_ms
            .unwrap_or_else(|| self.limits_of(scope).dispatch_ms)
            .min(TIMER_MS_MAX);
        let handover = Handover {
            to: To::Worker(target),
            content: dispatch.content.clone(),
            waits: if dispatch.detached {
                Waits::Detached { timeout_ms }
            } else {
                Waits::Attached { timeout_ms }
            },
            delegation: None,
            priority: scope.driving.run.started.priority,
            budget: Budget::default(),
            tool: None,
        };
        self.hand_over(scope, handover, sent).await
    }
}

/// A call of a tool: its name and arguments as its caller wrote them, but for calls of `delegate`
/// under another name.
#[derive(Clone, Copy)]
pub(super) struct Called<'c> {
    pub(super) tool: &'c str,
    arguments: &'c str,
    /// The operation by whose name a model called `delegate`. The arguments are then those of the
    /// operation.
    operation: Option<&'static OperationRule>,
}

impl<'c> Called<'c> {
    /// Finds a call; none where a model made no such call.
    ///
    /// A model that calls an operation of `delegate` as if it were a tool means `delegate`.
    pub(super) fn find(
        call: &'c Call,
        driving: &'c Driving,
        intake: &'c Intake,
        config: &ResolvedConfig,
    ) -> Option<Self> {
        let (tool, arguments, operation) = match call {
            Call::OfModel { message, index } => {
                let (_, name, arguments) = find_call(&driving.run, intake, *message, *index)?;
                match config.operation_named(name) {
                    Some(rule) => (delegate::NAME, arguments, Some(rule)),
                    None => (name, arguments, None),
                }
            }
            Call::Own { name, arguments } => (name.as_str(), arguments.as_str(), None),
        };
        Some(Self {
            tool,
            arguments,
            operation,
        })
    }

    /// Returns the arguments of `delegate`; none for a call of another tool.
    pub(super) fn of_delegate(&self) -> Option<Cow<'c, str>> {
        match self.operation {
            Some(rule) => Some(delegate::arguments_of_named(rule, self.arguments).into()),
            None => (self.tool == delegate::NAME).then_some(self.arguments.into()),
        }
    }
}

/// Settles a refused call of `delegate` as the result of a delegation, for the agent's own call and
/// for a model's. Each result has the target and the operation of its call.
pub(super) fn as_delegation(scope: &Scope<'_>, call: &Call, mut resolved: Resolved) -> Resolved {
    let called = Called::find(call, scope.driving, scope.intake, scope.config);
    if let Performer::Refused {
        outcome,
        of_delegate,
        address,
        ..
    } = &mut resolved.performer
        && let Some(arguments) = called.and_then(|called| called.of_delegate())
    {
        *of_delegate = !is_of_model(call) && !matches!(outcome, OperationOutcome::Parts { .. });
        *address = DelegateAddress::of(&arguments);
    }
    resolved
}

/// Resolves a call of `delegate` that is invalid.
fn invalid_call(invalid: Invalid) -> Resolved {
    refused(OperationOutcome::Failed {
        failure: invalid.failure(),
    })
}

/// Returns whether a model made a call, and not the agent's own code.
pub(super) fn is_of_model(call: &Call) -> bool {
    matches!(call, Call::OfModel { .. })
}

/// Returns the time limit of a delegation in milliseconds: its own, or the rest of its caller's.
fn time_of(scope: &Scope<'_>, delegation: &Delegation) -> u64 {
    let of_caller = scope.driving.run.deadline();
    of_caller.map_or(delegation.timeout_ms, |deadline| {
        delegation.timeout_ms.min(deadline.since_ms(scope.now))
    })
}

/// Returns the content of the message to a delegation's target: the task, and the blobs that its
/// parameters name, as far as the caller may read them. Other names stay text.
async fn handed_on(
    view: &StepView,
    delegation: &Delegation,
    within_ms: u64,
) -> Result<Vec<Part>, DriverError> {
    let mut content = vec![Part::text(delegation.content(within_ms))];
    for digest in delegation.digests() {
        content.extend(view.part(digest).await?);
    }
    Ok(content)
}

/// A call of one of the host's own tools.
struct OwnCall<'a> {
    called: Called<'a>,
    parsed: Map<String, Value>,
}

/// Returns whether a tool is the host's own.
fn is_own(tool: &str) -> bool {
    hands_over(tool)
        || memory::NAMES.contains(&tool)
        || panels::NAMES.contains(&tool)
        || trigger::OWN_TOOLS.contains(&tool)
}

/// Returns whether calls of a tool become work of another agent.
fn hands_over(tool: &str) -> bool {
    tool == delegate::NAME || direct_message::NAMES.contains(&tool)
}

/// Returns whether calls of a tool may become work of another agent.
pub(super) fn may_lead_to_agents(tool: &str) -> bool {
    hands_over(tool) || tool == memory::SEARCH
}

/// Returns the arguments of a call. The error is the fault, for people.
pub(super) fn object_of(arguments: &str) -> Result<Map<String, Value>, String> {
    let arguments = match arguments.trim() {
        "" => "{}",
        _ => arguments,
    };
    match domain::json::parse(arguments) {
        Ok(Value::Object(parsed)) => Ok(parsed),
        Ok(_) => Err("the arguments are not a JSON object".to_owned()),
        Err(refused) => Err(format!("the arguments cannot be taken: {refused}")),
    }
}
