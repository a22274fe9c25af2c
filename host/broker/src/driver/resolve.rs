//! Resolution of an agent's requests: who performs each, and under which rules.
//!
//! It is decided from the grants of this moment, and recorded.

use super::budget::Affords;
use super::entry::{Through, entry};
use super::handover::{Handover, Sent, To, Waits};
use super::{Driver, DriverError, Driving};
use crate::asking::ready;
use crate::catalogue::CHAT;
use crate::resolved_config::ResolvedConfig;
use domain::approval::{Approval, Exact};
use domain::authority::{Caller, Denied, Permissions, Rule};
use domain::budget::{Budget, Left, Spent};
use domain::definition::{Definition, DefinitionId};
use domain::delegate;
use domain::digest::Digest;
use domain::event::{AGENT_CALL, BoundaryDecided, Event, MODEL_CALL, TOOL_CALL, Verdict};
use domain::grant::Grant;
use domain::id::OperationId;
use domain::limits::{RECALL_HITS_MAX, TIMER_MS_MAX};
use domain::message::Part;
use domain::operation::Performer;
use domain::run::decide::{Resolved, find_call};
use domain::run::intake::Intake;
use domain::shown::visible;
use domain::step::{
    Call, Decision, Dispatch, Effect, Failure, ModelRequest, Outcome, StepResult, Toolset, Work,
};
use domain::talk;
use domain::time::Timestamp;
use domain::tool::{ClientAction, EffectClass, ToolDefinition};
use runtime::Decided;
use serde_json::Value;
use std::sync::Arc;
use store::{AgentRow, HandedOver};

/// The results of all of a step's requests.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) operations: Vec<Resolved>,
    /// The deliveries to other sessions that go with them.
    pub(super) sent: Vec<Sent>,
    /// The boundary's grants for them.
    pub(super) granted: Decided,
    /// The boundary's refusals: an entry of the ledger for each request.
    pub(super) refused: Vec<NotMade>,
}

/// A request that came to nothing, by a rule or a limit.
pub(super) struct NotMade {
    operation: OperationId,
    /// The tool that was asked for. None for anything else, and for a name that no tool can have.
    tool: Option<String>,
    decided: Decided,
}

/// The longest name that is recorded as that of a tool, in bytes, whether the tool exists or not.
const TOOL_NAME_BYTES_MAX: usize = 128;
/// Number of characters that are repeated of an unknown tool's name.
const NAME_CHARS_SHOWN: usize = 80;

/// The facts about a step that its requests are resolved from.
pub(super) struct Scope<'a> {
    pub(super) driving: &'a Driving,
    pub(super) agent: &'a AgentRow,
    pub(super) definition: &'a Definition,
    /// The resolved config that the agent was shown when the run began.
    pub(super) config: &'a ResolvedConfig,
    /// The resolved config that it would be shown now. It says what the agent may do.
    pub(super) granted: &'a ResolvedConfig,
    pub(super) intake: &'a Intake,
    pub(super) now: Timestamp,
    /// The rest of the turn's limits and of the accounts, the less of both.
    pub(super) left: Left,
    /// The source of the tightest limit, for people.
    pub(super) of: &'static str,
    /// Number of runs that came of the same message so far.
    pub(super) runs: u64,
    /// The open dispatches of the run and its tree of agents. Looked up only for a step that may
    /// hand something over.
    pub(super) handed_over: HandedOver,
    /// Number of dispatches of the step so far, and number of agents made for them below the
    /// caller.
    pub(super) handed: u64,
    pub(super) workers: u64,
    /// The paths of agents that the step makes and that are no workers.
    pub(super) making: Vec<String>,
    /// True if the step has replied to its caller.
    pub(super) replied: bool,
    /// The grant of the agent's component.
    pub(super) own: &'a Grant,
    pub(super) permissions: &'a Permissions,
    /// The operation that the present request would be.
    pub(super) operation: OperationId,
    /// The boundary's grants so far, and its refusals.
    pub(super) granted_so_far: Decided,
    pub(super) refused_so_far: Vec<NotMade>,
}

impl Scope<'_> {
    pub(super) fn caller(&self) -> Caller<'_> {
        Caller {
            agent: self.definition,
            denies: &self.driving.run.started.denies,
            permissions: self.permissions,
        }
    }

    /// Returns whether what leaves this step rests on content from outside.
    pub(super) fn is_untrusted(&self) -> bool {
        self.driving.run.is_untrusted_with(self.intake)
    }

    /// Returns the approval that the present request needs of a user before a tool performs it.
    fn approval(&self, performer: &Performer, component: &str, within_ms: u64) -> Option<Approval> {
        let Performer::Tool {
            component: code,
            tool,
            arguments,
            ..
        } = performer
        else {
            return None;
        };
        let exact = Exact {
            operation: self.operation,
            component: *code,
            tool,
            arguments,
        };
        let within = self.now.plus_ms(within_ms);
        let until = self
            .driving
            .run
            .started
            .deadline
            .map_or(within, |deadline| deadline.min(within));
        Some(Approval::of(
            &exact,
            component,
            &self.definition.agent_id.0,
            until,
        ))
    }

    /// Refuses a request. The guest sees the same refusal for every rule; the ledger has the rule.
    fn deny(&mut self, tool: Option<&str>, capability: &str, denied: &Denied) -> Resolved {
        self.not_made(
            tool,
            capability,
            Verdict::Refused,
            denied.rule,
            &denied.what,
        );
        refused(Outcome::Denied)
    }

    /// Refuses a call of a tool, or showing the tool to a model.
    fn deny_tool(&mut self, name: &str, denied: &Denied) -> Resolved {
        self.not_made(
            Some(name),
            denied.capability(name),
            Verdict::Refused,
            denied.rule,
            name,
        );
        refused(Outcome::Denied)
    }

    /// Refuses a request because a limit is met. The guest is told which.
    pub(super) fn limit(
        &mut self,
        tool: Option<&str>,
        capability: &str,
        limit: &str,
        failure: Failure,
    ) -> Resolved {
        self.not_made(tool, capability, Verdict::Limited, Rule::Limits, limit);
        refused(Outcome::Failed { failure })
    }

    pub(super) fn grant(&mut self, capability: &str, detail: &str) {
        self.granted_so_far
            .note(capability, Verdict::Granted, Rule::Granted, detail);
    }

    pub(super) fn not_made(
        &mut self,
        tool: Option<&str>,
        capability: &str,
        verdict: Verdict,
        rule: Rule,
        detail: &str,
    ) {
        let (definition, operation) = (&self.definition.agent_id, self.operation);
        let mut decided = Decided::default();
        decided.note(capability, verdict, rule, detail);
        // The log has the detail as the ledger has it: a guest's text may be long, or look like a
        // log line.
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

/// Returns whether a request may become work of another agent.
fn may_hand_over(work: &Work, config: &ResolvedConfig) -> bool {
    match work {
        Work::Agent(_) => true,
        Work::Tool {
            call: Call::Own { name, .. },
        } => hands_over(name),
        Work::Tool {
            call: Call::OfModel { .. },
        } => config.tool_list.iter().any(|tool| hands_over(&tool.name)),
        Work::Model(_) | Work::Client(_) | Work::Recall { .. } | Work::Timer { .. } => false,
    }
}

fn hands_over(tool: &str) -> bool {
    tool == delegate::NAME || talk::NAMES.contains(&tool)
}

pub(in crate::driver) fn simply(performer: Performer, effect: EffectClass) -> Resolved {
    Resolved {
        performer,
        effect,
        time_limit_ms: None,
        deadline: None,
        reserved: Spent::default(),
        approval: None,
    }
}

pub(super) fn refused(outcome: Outcome) -> Resolved {
    simply(Performer::Refused { outcome }, EffectClass::ReadOnly)
}

pub(super) fn failed(code: &str, message: impl Into<String>) -> Resolved {
    refused(Outcome::Failed {
        failure: Failure::lasting(code, message),
    })
}

impl Driver {
    /// Returns the number of items on a structured session's record, with those that a step adds.
    ///
    /// Questions that wait for an answer count too. 0 for a step that asks its client nothing, and
    /// for a chat.
    async fn items(&self, driving: &Driving, result: &StepResult) -> Result<u64, DriverError> {
        let Decision::Wait(wait) = &result.decision else {
            return Ok(0);
        };
        let asks = wait
            .start
            .iter()
            .any(|request| matches!(request.work, Work::Client(_)));
        if driving.run.started.session_type == CHAT || !asks {
            return Ok(0);
        }
        let new = result
            .effects
            .iter()
            .filter(|effect| matches!(effect, Effect::RecordItem { .. }))
            .count();
        let asked = driving
            .run
            .open
            .values()
            .filter(|open| matches!(open.operation.performer, Performer::Client { .. }))
            .count();
        // An agent may record all answers at the end alone, so answered questions count all the
        // same.
        let row = self.session_row().await?;
        // Questions of another system do not count: the session begins anew here.
        let active = self
            .agent_row(driving)
            .await?
            .agent
            .active_session
            .filter(|active| active.session_id == row.id);
        let imported = active.map_or(0, |active| u64::from(active.items_imported));
        Ok((row.items.saturating_sub(imported) + new as u64).max(row.interactions) + asked as u64)
    }

    pub(super) async fn resolve(
        &self,
        driving: &Driving,
        agent: &AgentRow,
        config: &ResolvedConfig,
        intake: &Intake,
        result: &StepResult,
        now: Timestamp,
    ) -> Result<Requests, DriverError> {
        let Decision::Wait(wait) = &result.decision else {
            return Ok(Requests::default());
        };
        let id = &driving.run.started.definition;
        let definition = self
            .core
            .catalogue
            .definition(id)
            .ok_or_else(|| DriverError::Missing(format!("definition `{id}`")))?;
        let granted = self
            .core
            .resolved_configs
            .of(id)
            .ok_or_else(|| DriverError::Missing(format!("definition `{id}`")))?;
        let Affords { left, runs, of } = Box::pin(self.affords(driving, &intake.settled)).await?;
        let hands_over = wait
            .start
            .iter()
            .any(|request| may_hand_over(&request.work, config));
        let handed_over = if hands_over {
            self.core
                .store
                .handed_over(driving.run.started.run, agent.agent.id)
                .await?
        } else {
            HandedOver {
                by_run: 0,
                in_tree: 0,
                tree: agent.agent.id,
            }
        };
        let own = self
            .core
            .catalogue
            .entry(&definition.component)
            .map(|entry| entry.grant.clone())
            .unwrap_or_default();
        let mut scope = Scope {
            driving,
            agent,
            definition,
            config,
            granted,
            intake,
            now,
            left,
            of,
            runs,
            handed_over,
            handed: 0,
            workers: 0,
            making: Vec::new(),
            replied: false,
            own: &own,
            permissions: &driving.run.started.permissions,
            operation: OperationId::mint(driving.run.started.run, driving.run.step, ""),
            granted_so_far: Decided::default(),
            refused_so_far: Vec::new(),
        };
        let mut items = self.items(driving, result).await?;
        let mut requests = Requests::default();
        for request in &wait.start {
            scope.operation =
                OperationId::mint(driving.run.started.run, driving.run.step, &request.key);
            let resolved = match &request.work {
                Work::Model(model) => Box::pin(self.resolve_model(&mut scope, model)).await?,
                Work::Tool { call } => {
                    Box::pin(self.resolve_call(&mut scope, call, &mut requests.sent)).await?
                }
                Work::Client(action) => {
                    let action = ready(self.core.catalogue.schemas(), action).await;
                    let resolved = resolve_client(action, &scope, items);
                    // Each question becomes an item: several questions of one step do not pass the
                    // limit together.
                    items += 1;
                    resolved
                }
                Work::Agent(dispatch) => {
                    Box::pin(self.resolve_dispatch(&mut scope, dispatch, &mut requests.sent))
                        .await?
                }
                Work::Recall { query, limit } => {
                    let limit = (*limit).min(RECALL_HITS_MAX);
                    simply(
                        Performer::Recall {
                            query: query.clone(),
                            limit,
                        },
                        EffectClass::ReadOnly,
                    )
                }
                Work::Timer { ms } => simply(
                    Performer::Timer {
                        due: now.plus_ms((*ms).min(TIMER_MS_MAX)),
                    },
                    EffectClass::Idempotent,
                ),
            };
            requests.operations.push(resolved);
        }
        (requests.granted, requests.refused) = (scope.granted_so_far, scope.refused_so_far);
        Ok(requests)
    }

    /// Returns the ledger's entry for a request that came to nothing.
    ///
    /// The agent's code asked for it. An entry for a tool names the tool's component, any other the
    /// agent's.
    pub(super) fn not_made(
        &self,
        driving: &Driving,
        not_made: NotMade,
        code: Digest,
        time: Timestamp,
    ) -> Event {
        let NotMade {
            operation,
            tool,
            decided: Decided {
                decisions,
                left_out,
            },
        } = not_made;
        let through = tool
            .as_deref()
            .map_or(Through::Agent(code), |name| Through::Tool {
                name,
                code: None,
            });
        let entry = entry(&self.core, &driving.run, through);
        Event::BoundaryDecided(Box::new(BoundaryDecided {
            operation: Some(operation),
            decisions,
            left_out,
            time,
            ..entry
        }))
    }

    async fn resolve_model(
        &self,
        scope: &mut Scope<'_>,
        request: &ModelRequest,
    ) -> Result<Resolved, DriverError> {
        let asked = request
            .model
            .clone()
            .or_else(|| scope.driving.run.started.model.clone());
        let denied = |rule, what: &str| Denied {
            rule,
            what: what.to_owned(),
        };
        // A model that is not granted and one that does not exist look the same.
        let route = match self.core.gateway.resolve(asked.as_deref()) {
            Err(_) => {
                return Ok(scope.deny(
                    None,
                    MODEL_CALL,
                    &denied(Rule::Unknown, asked.as_deref().unwrap_or_default()),
                ));
            }
            Ok(route) if !scope.own.models.matches(&route.alias) => {
                return Ok(scope.deny(None, MODEL_CALL, &denied(Rule::NotGranted, &route.alias)));
            }
            Ok(route) => route,
        };
        if let Toolset::Named(names) = &request.tools
            && let Some(name) = names.iter().find(|name| scope.config.tool(name).is_none())
        {
            return Ok(self.not_available(scope, name));
        }
        if let Some(schema) = &request.reply_schema
            && let Err(error) = self.core.catalogue.schemas().compile(schema).await
        {
            return Ok(failed(
                "invalid-arguments",
                format!("model: the reply schema is not a JSON Schema that can be used: {error}"),
            ));
        }
        let reserve = self
            .reserve(scope.driving, scope.config, scope.intake, (request, &route))
            .await?;
        let reserved_tokens = reserve.tokens();
        let reserved_micros = match scope
            .left
            .afford(route.price, reserve.prompt, reserve.reply)
        {
            Ok(micros) => micros,
            Err(told) => {
                return Ok(scope.limit(
                    None,
                    MODEL_CALL,
                    "costMicrosMax",
                    Failure::lasting("limit-reached", told),
                ));
            }
        };
        if scope.left.tokens < reserved_tokens {
            let told = format!(
                "{} tokens are left of {} and {reserved_tokens} are needed (tokensMax)",
                scope.left.tokens, scope.of
            );
            return Ok(scope.limit(
                None,
                MODEL_CALL,
                "tokensMax",
                Failure::lasting("limit-reached", told),
            ));
        }
        scope.grant(MODEL_CALL, &route.alias);
        scope.left.take(Spent {
            tokens: reserved_tokens,
            calls: 0,
            cost_micros: reserved_micros.unwrap_or(0),
        });
        let request = ModelRequest {
            model: asked,
            ..request.clone()
        };
        Ok(simply(
            Performer::Model {
                request,
                through: 0,
                reserved_tokens,
                reserved_micros,
            },
            EffectClass::Idempotent,
        ))
    }

    async fn resolve_call(
        &self,
        scope: &mut Scope<'_>,
        call: &Call,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let (name, arguments) = match call {
            Call::OfModel { message, index } => {
                match find_call(&scope.driving.run, scope.intake, *message, *index) {
                    Some((_, name, arguments)) => (name, arguments),
                    None => return Ok(failed("not-found", "there is no such call")),
                }
            }
            Call::Own { name, arguments } => (name.as_str(), arguments.as_str()),
        };
        if scope.left.calls == 0 {
            let failure = Failure::lasting(
                "limit-reached",
                format!("no tool calls are left of {} (toolCallsMax)", scope.of),
            );
            return Ok(scope.limit(Some(name), TOOL_CALL, "toolCallsMax", failure));
        }
        let Some(shown) = scope.config.tool(name) else {
            return Ok(self.not_available(scope, name));
        };
        let Some(tool) = scope.granted.tool(name) else {
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
        let parsed = match domain::json::parse(if arguments.trim().is_empty() {
            "{}"
        } else {
            arguments
        }) {
            Ok(Value::Object(parsed)) => parsed,
            Ok(_) => {
                return Ok(failed(
                    "invalid-arguments",
                    "the arguments are not a JSON object",
                ));
            }
            Err(refused) => {
                return Ok(failed(
                    "invalid-arguments",
                    format!("the arguments cannot be taken: {refused}"),
                ));
            }
        };
        // Faults in the arguments of these tools are reported in the tools' own terms.
        if hands_over(name) {
            scope.left.calls -= 1;
            return match name == delegate::NAME {
                true => self.resolve_delegate(scope, arguments, sent).await,
                false => self.resolve_talk(scope, name, parsed, sent).await,
            };
        }
        let parsed = Value::Object(parsed);
        match self
            .core
            .resolved_configs
            .arguments_error(scope.config, name, &parsed)
            .await
        {
            Ok(None) => {}
            Ok(Some(complaints)) => return Ok(failed("invalid-arguments", complaints)),
            Err(given_up) => {
                return Ok(refused(Outcome::Failed {
                    failure: Failure::passing("busy", given_up.to_string()),
                }));
            }
        }
        scope.left.calls -= 1;
        let Some((entry, _)) = self.core.catalogue.tool(name) else {
            return Ok(self.not_available(scope, name));
        };
        let own_limit = tool.time_limit_ms.map_or(u64::MAX, u64::from);
        let performer = Performer::Tool {
            component: entry.component.digest(),
            tool: name.to_owned(),
            arguments: parsed.to_string(),
            capabilities: tool
                .capabilities
                .iter()
                .filter(|capability| shown.capabilities.contains(capability))
                .cloned()
                .collect(),
        };
        let time_limit_ms = Some(own_limit.min(entry.grant.limits.wall_ms_max));
        // The tool as shown and the tool as it is now may differ. The more careful class says what
        // a crash leads to.
        let effect = tool.effect.max(shown.effect);
        let asks = [tool, shown]
            .into_iter()
            .any(|tool| scope.caller().must_ask(tool, &entry.grant));
        let approval =
            asks.then(|| scope.approval(&performer, &entry.name, self.core.limits.approval_ms));
        // An approved call is made once: it is recorded as sent before it is sent, whatever its
        // class.
        let effect = if asks {
            EffectClass::NonIdempotent
        } else {
            effect
        };
        Ok(Resolved {
            approval: approval.flatten(),
            time_limit_ms,
            ..simply(performer, effect)
        })
    }

    /// Refuses a call of a tool that the agent has not got. Each refusal is on record.
    ///
    /// An existing tool that a rule keeps from the agent is denied. Any other is said not to exist:
    /// one that is unknown, or that did not belong to the agent yet when the turn began.
    fn not_available(&self, scope: &mut Scope<'_>, name: &str) -> Resolved {
        if let Some(denied) = self.denied_tool(scope, name) {
            return scope.deny_tool(name, &denied);
        }
        let rule = if self.offered(name).is_some() {
            Rule::Ceiling
        } else {
            Rule::Unknown
        };
        // The name of a tool that does not exist is arbitrary text of a model or a guest.
        let name = &*visible(name, NAME_CHARS_SHOWN);
        scope.not_made(Some(name), TOOL_CALL, Verdict::Refused, rule, name);
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
            self.core
                .resolved_configs
                .own_tools()
                .find(|tool| tool.name == name)
                .map(Arc::new)
        };
        self.core
            .catalogue
            .tool(name)
            .map(|(_, tool)| tool.clone())
            .or_else(own)
    }

    /// Returns the rule that keeps a tool from the agent. None when there is no such rule, or no
    /// such tool.
    fn denied_tool(&self, scope: &Scope<'_>, name: &str) -> Option<Denied> {
        scope.caller().may_call(&*self.offered(name)?).err()
    }

    async fn resolve_delegate(
        &self,
        scope: &mut Scope<'_>,
        arguments: &str,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let delegation = match delegate::parse(arguments, &self.core.resolved_configs.delegates) {
            Ok(delegation) => delegation,
            Err(invalid) => return Ok(failed(invalid.code(), invalid.to_string())),
        };
        let target = DefinitionId(delegation.target.name().to_owned());
        let Some(target) = self.core.catalogue.definition(&target).cloned() else {
            return Ok(failed(
                "AGENT_UNAVAILABLE",
                format!("the agent `{target}` is not configured"),
            ));
        };
        if let Err(denied) = scope.caller().may_hand_over(&target, scope.own) {
            return Ok(scope.deny(Some(delegate::NAME), AGENT_CALL, &denied));
        }
        let handover = Handover {
            to: To::Worker(target),
            content: vec![Part::text(delegation.content())],
            waits: Waits::Attached {
                timeout_ms: delegation.timeout_ms,
            },
            delegation: Some(arguments.to_owned()),
            priority: delegation.priority,
            budget: Budget::default(),
            tool: Some(delegate::NAME),
        };
        self.hand_over(scope, handover, sent).await
    }

    async fn resolve_dispatch(
        &self,
        scope: &mut Scope<'_>,
        dispatch: &Dispatch,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        if scope.left.calls == 0 {
            let failure = Failure::lasting(
                "limit-reached",
                format!("no calls are left of {} (toolCallsMax)", scope.of),
            );
            return Ok(scope.limit(None, AGENT_CALL, "toolCallsMax", failure));
        }
        let Some(target) = self
            .core
            .catalogue
            .definition(&DefinitionId(dispatch.target.clone()))
            .cloned()
        else {
            scope.not_made(
                None,
                AGENT_CALL,
                Verdict::Refused,
                Rule::Unknown,
                &dispatch.target,
            );
            return Ok(failed(
                "agent_not_found",
                format!("there is no agent `{}`", dispatch.target),
            ));
        };
        if let Err(denied) = scope.caller().may_reach(&target, scope.own) {
            return Ok(scope.deny(None, AGENT_CALL, &denied));
        }
        scope.left.calls -= 1;
        let timeout_ms = dispatch
            .timeout_ms
            .unwrap_or(self.core.limits.dispatch_ms)
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

/// Resolves a question to the client, within the session's policy. `items` are on its record.
fn resolve_client(action: Result<ClientAction, String>, scope: &Scope<'_>, items: u64) -> Resolved {
    let action = match action {
        Ok(action) => action,
        Err(complaint) => return failed("invalid-arguments", complaint),
    };
    let asked = simply(Performer::Client { action }, EffectClass::ReadOnly);
    let session_type = &scope.driving.run.started.session_type;
    if session_type == CHAT {
        return asked;
    }
    let policy = scope.definition.session_policy(session_type);
    if let Some(max) = policy.items_max.filter(|max| items >= u64::from(*max)) {
        return failed(
            "limit-reached",
            format!("client: {items} items are on the session's record, and {max} is its limit"),
        );
    }
    Resolved {
        deadline: policy.item_deadline(scope.now),
        ..asked
    }
}
