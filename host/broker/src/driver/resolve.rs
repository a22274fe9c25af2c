//! What an agent's requests become: who performs each, under which rules, decided from the grants of this moment and recorded.

use super::afford::Affords;
use super::entry::{Through, entry};
use super::handover::{Handover, Sent, To, Waits};
use super::{Driver, Driving, Trouble};
use crate::asking::ready;
use crate::catalogue::CHAT;
use crate::outfit::Outfit;
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
use domain::step::{Call, Decision, Dispatch, Effect, Failure, ModelRequest, Outcome, StepResult, Toolset, Work};
use domain::talk;
use domain::time::Timestamp;
use domain::tool::{ClientAction, EffectClass, ToolDefinition};
use runtime::Decided;
use serde_json::Value;
use std::sync::Arc;
use store::{AgentRow, HandedOver};

/// What all of a step's requests became.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) operations: Vec<Resolved>,
    /// What goes to other sessions with them.
    pub(super) sent: Vec<Sent>,
    /// What the boundary granted of them.
    pub(super) granted: Decided,
    /// What it did not: an entry of the ledger for each request.
    pub(super) refused: Vec<NotMade>,
}

/// A request that came to nothing, by a rule or a limit.
pub(super) struct NotMade {
    operation: OperationId,
    /// The tool that was asked for; none if it was something else, or has no name of a tool.
    tool: Option<String>,
    decided: Decided,
}

/// Bytes of a name that is written down as that of a tool, be there one or not.
const TOOL_NAME_BYTES_MAX: usize = 128;
/// Characters that are repeated of a tool's name that nobody offers.
const NAME_CHARS_SHOWN: usize = 80;

/// What resolving needs to know of the step.
pub(super) struct Scope<'a> {
    pub(super) driving: &'a Driving,
    pub(super) agent: &'a AgentRow,
    pub(super) definition: &'a Definition,
    /// What the agent was shown when the run began.
    pub(super) outfit: &'a Outfit,
    /// What it would be shown now, and so what it may do.
    pub(super) granted: &'a Outfit,
    pub(super) intake: &'a Intake,
    pub(super) now: Timestamp,
    /// What is left of the turn's limits, and of all that came of the same message.
    pub(super) left: Left,
    /// Of which of them it is short, for people.
    pub(super) of: &'static str,
    /// Runs that came of the same message so far.
    pub(super) runs: u64,
    /// What the run and its tree of agents have handed over that has not ended. Looked up only for a step that may hand something over.
    pub(super) handed_over: HandedOver,
    /// What the step has handed over so far, and how many agents it has made for it.
    pub(super) handed: u64,
    pub(super) workers: u64,
    /// Where agents live that it makes and that are nobody's workers.
    pub(super) making: Vec<String>,
    /// Whether it has replied to its caller.
    pub(super) replied: bool,
    /// What the agent's component is granted.
    pub(super) own: &'a Grant,
    pub(super) permissions: &'a Permissions,
    /// The operation that the request in hand would be.
    pub(super) operation: OperationId,
    /// What the boundary has granted so far, and what it has not.
    pub(super) granted_so_far: Decided,
    pub(super) refused_so_far: Vec<NotMade>,
}

impl Scope<'_> {
    pub(super) fn caller(&self) -> Caller<'_> {
        Caller { agent: self.definition, denies: &self.driving.run.started.denies, permissions: self.permissions }
    }

    /// Whether what leaves this step rests on content from outside.
    pub(super) fn is_untrusted(&self) -> bool {
        self.driving.run.is_untrusted_with(self.intake)
    }

    /// What a user has to agree to before the request in hand is performed by a tool.
    fn approval(&self, performer: &Performer, component: &str, within_ms: u64) -> Option<Approval> {
        let Performer::Tool { component: code, tool, arguments, .. } = performer else { return None };
        let exact = Exact { operation: self.operation, component: *code, tool, arguments };
        let within = self.now.plus_ms(within_ms);
        let until = self.driving.run.started.deadline.map_or(within, |deadline| deadline.min(within));
        Some(Approval::of(&exact, component, &self.definition.agent_id.0, until))
    }

    /// Refuses, uniformly for the guest and with the rule on record.
    fn deny(&mut self, tool: Option<&str>, capability: &str, denied: &Denied) -> Resolved {
        self.not_made(tool, capability, Verdict::Refused, denied.rule, &denied.what);
        refused(Outcome::Denied)
    }

    /// The same for a call of a tool, or for showing it to a model.
    fn deny_tool(&mut self, name: &str, denied: &Denied) -> Resolved {
        self.not_made(Some(name), denied.capability(name), Verdict::Refused, denied.rule, name);
        refused(Outcome::Denied)
    }

    /// Refuses because a limit is met, which the guest is told.
    pub(super) fn limit(&mut self, tool: Option<&str>, capability: &str, limit: &str, failure: Failure) -> Resolved {
        self.not_made(tool, capability, Verdict::Limited, Rule::Limits, limit);
        refused(Outcome::Failed { failure })
    }

    pub(super) fn grant(&mut self, capability: &str, detail: &str) {
        self.granted_so_far.note(capability, Verdict::Granted, Rule::Granted, detail);
    }

    pub(super) fn not_made(&mut self, tool: Option<&str>, capability: &str, verdict: Verdict, rule: Rule, detail: &str) {
        let (definition, operation) = (&self.definition.agent_id, self.operation);
        let mut decided = Decided::default();
        decided.note(capability, verdict, rule, detail);
        // As the ledger has it: what a guest wrote may be long, or look like a line of its own.
        let detail = decided.decisions.first().map(|decision| decision.detail.as_str());
        tracing::info!(%definition, operation.id = %operation, capability, detail, %rule, "a request came to nothing");
        let is_name =
            |name: &&str| !name.is_empty() && name.len() <= TOOL_NAME_BYTES_MAX && name.bytes().all(|byte| byte.is_ascii_graphic());
        self.refused_so_far.push(NotMade { operation, tool: tool.filter(is_name).map(str::to_owned), decided });
    }
}

/// Whether a request may become work of another agent's.
fn may_hand_over(work: &Work, outfit: &Outfit) -> bool {
    match work {
        Work::Agent(_) => true,
        Work::Tool { call: Call::Own { name, .. } } => hands_over(name),
        Work::Tool { call: Call::OfModel { .. } } => outfit.tool_list.iter().any(|tool| hands_over(&tool.name)),
        Work::Model(_) | Work::Client(_) | Work::Recall { .. } | Work::Timer { .. } => false,
    }
}

fn hands_over(tool: &str) -> bool {
    tool == delegate::NAME || talk::NAMES.contains(&tool)
}

pub(in crate::driver) fn simply(performer: Performer, effect: EffectClass) -> Resolved {
    Resolved { performer, effect, time_limit_ms: None, deadline: None, reserved: Spent::default(), approval: None }
}

pub(super) fn refused(outcome: Outcome) -> Resolved {
    simply(Performer::Refused { outcome }, EffectClass::ReadOnly)
}

pub(super) fn failed(code: &str, message: impl Into<String>) -> Resolved {
    refused(Outcome::Failed { failure: Failure::lasting(code, message) })
}

impl Driver {
    /// How many items will be on a structured session's record, or are being asked, with a step that asks its client something; 0 for any
    /// other.
    async fn items(&self, driving: &Driving, result: &StepResult) -> Result<u64, Trouble> {
        let Decision::Wait(wait) = &result.decision else { return Ok(0) };
        let asks = wait.start.iter().any(|request| matches!(request.work, Work::Client(_)));
        if driving.run.started.session_type == CHAT || !asks {
            return Ok(0);
        }
        let new = result.effects.iter().filter(|effect| matches!(effect, Effect::RecordItem { .. })).count();
        let asked = driving.run.open.values().filter(|open| matches!(open.operation.performer, Performer::Client { .. })).count();
        // An agent may put what was answered on record at the end alone: an answered question counts all the same.
        let row = self.session_row().await?;
        // What another system asked does not count: the session begins anew here.
        let active = self.agent_row(driving).await?.agent.active_session.filter(|active| active.session_id == row.id);
        let imported = active.map_or(0, |active| u64::from(active.items_imported));
        Ok((row.items.saturating_sub(imported) + new as u64).max(row.interactions) + asked as u64)
    }

    pub(super) async fn resolve(
        &self,
        driving: &Driving,
        agent: &AgentRow,
        outfit: &Outfit,
        intake: &Intake,
        result: &StepResult,
        now: Timestamp,
    ) -> Result<Requests, Trouble> {
        let Decision::Wait(wait) = &result.decision else { return Ok(Requests::default()) };
        let id = &driving.run.started.definition;
        let definition = self.core.catalogue.definition(id).ok_or_else(|| Trouble::Missing(format!("definition `{id}`")))?;
        let granted = self.core.outfits.of(id).ok_or_else(|| Trouble::Missing(format!("definition `{id}`")))?;
        let Affords { left, runs, of } = Box::pin(self.affords(driving, &intake.settled)).await?;
        let hands_over = wait.start.iter().any(|request| may_hand_over(&request.work, outfit));
        let handed_over = if hands_over {
            self.core.store.handed_over(driving.run.started.run, agent.agent.id).await?
        } else {
            HandedOver { by_run: 0, in_tree: 0, tree: agent.agent.id }
        };
        let own = self.core.catalogue.entry(&definition.component).map(|entry| entry.grant.clone()).unwrap_or_default();
        let mut scope = Scope {
            driving,
            agent,
            definition,
            outfit,
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
            scope.operation = OperationId::mint(driving.run.started.run, driving.run.step, &request.key);
            let resolved = match &request.work {
                Work::Model(model) => Box::pin(self.resolve_model(&mut scope, model)).await?,
                Work::Tool { call } => Box::pin(self.resolve_call(&mut scope, call, &mut requests.sent)).await?,
                Work::Client(action) => {
                    let action = ready(self.core.catalogue.schemas(), action).await;
                    let resolved = resolve_client(action, &scope, items);
                    // What is asked becomes an item: several questions of one step do not pass the limit together.
                    items += 1;
                    resolved
                }
                Work::Agent(dispatch) => Box::pin(self.resolve_dispatch(&mut scope, dispatch, &mut requests.sent)).await?,
                Work::Recall { query, limit } => {
                    let limit = (*limit).min(RECALL_HITS_MAX);
                    simply(Performer::Recall { query: query.clone(), limit }, EffectClass::ReadOnly)
                }
                Work::Timer { ms } => simply(Performer::Timer { due: now.plus_ms((*ms).min(TIMER_MS_MAX)) }, EffectClass::Idempotent),
            };
            requests.operations.push(resolved);
        }
        (requests.granted, requests.refused) = (scope.granted_so_far, scope.refused_so_far);
        Ok(requests)
    }

    /// The ledger's entry for a request that came to nothing; the agent's code asked for it. That of a tool names the component whose tool it is, other ones the agent's.
    pub(super) fn not_made(&self, driving: &Driving, not_made: NotMade, code: Digest, time: Timestamp) -> Event {
        let NotMade { operation, tool, decided: Decided { decisions, left_out } } = not_made;
        let through = tool.as_deref().map_or(Through::Agent(code), |name| Through::Tool { name, code: None });
        let entry = entry(&self.core, &driving.run, through);
        Event::BoundaryDecided(Box::new(BoundaryDecided { operation: Some(operation), decisions, left_out, time, ..entry }))
    }

    async fn resolve_model(&self, scope: &mut Scope<'_>, request: &ModelRequest) -> Result<Resolved, Trouble> {
        let asked = request.model.clone().or_else(|| scope.driving.run.started.model.clone());
        let denied = |rule, what: &str| Denied { rule, what: what.to_owned() };
        // A model that is not granted and one that is not there look the same.
        let route = match self.core.gateway.resolve(asked.as_deref()) {
            Err(_) => return Ok(scope.deny(None, MODEL_CALL, &denied(Rule::Unknown, asked.as_deref().unwrap_or_default()))),
            Ok(route) if !scope.own.models.matches(&route.alias) => {
                return Ok(scope.deny(None, MODEL_CALL, &denied(Rule::NotGranted, &route.alias)));
            }
            Ok(route) => route,
        };
        if let Toolset::Named(names) = &request.tools
            && let Some(name) = names.iter().find(|name| scope.outfit.tool(name).is_none())
        {
            return Ok(self.not_available(scope, name));
        }
        if let Some(schema) = &request.reply_schema
            && let Err(error) = self.core.catalogue.schemas().compile(schema).await
        {
            return Ok(failed("invalid-arguments", format!("model: the reply schema is not a JSON Schema that can be used: {error}")));
        }
        let reserve = self.reserve(scope.driving, scope.outfit, scope.intake, (request, &route)).await?;
        let reserved_tokens = reserve.tokens();
        let reserved_micros = match scope.left.afford(route.price, reserve.prompt, reserve.reply) {
            Ok(micros) => micros,
            Err(told) => return Ok(scope.limit(None, MODEL_CALL, "costMicrosMax", Failure::lasting("limit-reached", told))),
        };
        if scope.left.tokens < reserved_tokens {
            let told = format!("{} tokens are left of {} and {reserved_tokens} are needed (tokensMax)", scope.left.tokens, scope.of);
            return Ok(scope.limit(None, MODEL_CALL, "tokensMax", Failure::lasting("limit-reached", told)));
        }
        scope.grant(MODEL_CALL, &route.alias);
        scope.left.take(Spent { tokens: reserved_tokens, calls: 0, cost_micros: reserved_micros.unwrap_or(0) });
        let request = ModelRequest { model: asked, ..request.clone() };
        Ok(simply(Performer::Model { request, through: 0, reserved_tokens, reserved_micros }, EffectClass::Idempotent))
    }

    async fn resolve_call(&self, scope: &mut Scope<'_>, call: &Call, sent: &mut Vec<Sent>) -> Result<Resolved, Trouble> {
        let (name, arguments) = match call {
            Call::OfModel { message, index } => match find_call(&scope.driving.run, scope.intake, *message, *index) {
                Some((_, name, arguments)) => (name, arguments),
                None => return Ok(failed("not-found", "there is no such call")),
            },
            Call::Own { name, arguments } => (name.as_str(), arguments.as_str()),
        };
        if scope.left.calls == 0 {
            let failure = Failure::lasting("limit-reached", format!("no tool calls are left of {} (toolCallsMax)", scope.of));
            return Ok(scope.limit(Some(name), TOOL_CALL, "toolCallsMax", failure));
        }
        let Some(shown) = scope.outfit.tool(name) else { return Ok(self.not_available(scope, name)) };
        let Some(tool) = scope.granted.tool(name) else {
            // It was taken from the agent, or from everybody, since the turn began.
            let denied = self.denied_tool(scope, name).unwrap_or(Denied { rule: Rule::Unknown, what: name.to_owned() });
            return Ok(scope.deny_tool(name, &denied));
        };
        if let Err(denied) = scope.caller().may_call(tool) {
            return Ok(scope.deny_tool(name, &denied));
        }
        let parsed = match domain::json::parse(if arguments.trim().is_empty() { "{}" } else { arguments }) {
            Ok(Value::Object(parsed)) => parsed,
            Ok(_) => return Ok(failed("invalid-arguments", "the arguments are not a JSON object")),
            Err(refused) => return Ok(failed("invalid-arguments", format!("the arguments cannot be taken: {refused}"))),
        };
        // What is wrong with a call of those is said in their own terms.
        if hands_over(name) {
            scope.left.calls -= 1;
            return match name == delegate::NAME {
                true => self.resolve_delegate(scope, arguments, sent).await,
                false => self.resolve_talk(scope, name, parsed, sent).await,
            };
        }
        let parsed = Value::Object(parsed);
        match self.core.outfits.arguments_error(scope.outfit, name, &parsed).await {
            Ok(None) => {}
            Ok(Some(complaints)) => return Ok(failed("invalid-arguments", complaints)),
            Err(given_up) => return Ok(refused(Outcome::Failed { failure: Failure::passing("busy", given_up.to_string()) })),
        }
        scope.left.calls -= 1;
        let Some((entry, _)) = self.core.catalogue.tool(name) else { return Ok(self.not_available(scope, name)) };
        let own_limit = tool.time_limit_ms.map_or(u64::MAX, u64::from);
        let performer = Performer::Tool {
            component: entry.component.digest(),
            tool: name.to_owned(),
            arguments: parsed.to_string(),
            capabilities: tool.capabilities.iter().filter(|capability| shown.capabilities.contains(capability)).cloned().collect(),
        };
        let time_limit_ms = Some(own_limit.min(entry.grant.limits.wall_ms_max));
        // Of the tool as it was shown and the tool as it is, the one that takes more care says what a crash leads to.
        let effect = tool.effect.max(shown.effect);
        let asks = [tool, shown].into_iter().any(|tool| scope.caller().must_ask(tool, &entry.grant));
        let approval = asks.then(|| scope.approval(&performer, &entry.name, self.core.limits.approval_ms));
        // What was agreed to is done once: it is recorded as sent before it is, whatever it would be otherwise.
        let effect = if asks { EffectClass::NonIdempotent } else { effect };
        Ok(Resolved { approval: approval.flatten(), time_limit_ms, ..simply(performer, effect) })
    }

    /// A tool that exists and is not this agent's is denied; one that does not exist, or not for this turn yet, is said not to. Each is on
    /// record.
    fn not_available(&self, scope: &mut Scope<'_>, name: &str) -> Resolved {
        if let Some(denied) = self.denied_tool(scope, name) {
            return scope.deny_tool(name, &denied);
        }
        let rule = if self.offered(name).is_some() { Rule::Ceiling } else { Rule::Unknown };
        // A name that there is not is whatever a model or a guest wrote.
        let name = &*visible(name, NAME_CHARS_SHOWN);
        scope.not_made(Some(name), TOOL_CALL, Verdict::Refused, rule, name);
        let known: Vec<&str> = scope.outfit.tool_list.iter().map(|tool| tool.name.as_str()).collect();
        failed("TOOL_NOT_AVAILABLE", format!("there is no tool `{name}`; available are: {}", known.join(", ")))
    }

    /// A tool of some component's, or of the host's own.
    fn offered(&self, name: &str) -> Option<Arc<ToolDefinition>> {
        let own = || self.core.outfits.own_tools().find(|tool| tool.name == name).map(Arc::new);
        self.core.catalogue.tool(name).map(|(_, tool)| tool.clone()).or_else(own)
    }

    /// The rule that keeps a tool from the agent; none when there is no such rule, or no such tool.
    fn denied_tool(&self, scope: &Scope<'_>, name: &str) -> Option<Denied> {
        scope.caller().may_call(&*self.offered(name)?).err()
    }

    async fn resolve_delegate(&self, scope: &mut Scope<'_>, arguments: &str, sent: &mut Vec<Sent>) -> Result<Resolved, Trouble> {
        let delegation = match delegate::parse(arguments, &self.core.outfits.delegates) {
            Ok(delegation) => delegation,
            Err(invalid) => return Ok(failed(invalid.code(), invalid.to_string())),
        };
        let target = DefinitionId(delegation.target.name().to_owned());
        let Some(target) = self.core.catalogue.definition(&target).cloned() else {
            return Ok(failed("AGENT_UNAVAILABLE", format!("the agent `{target}` is not configured")));
        };
        if let Err(denied) = scope.caller().may_hand_over(&target, scope.own) {
            return Ok(scope.deny(Some(delegate::NAME), AGENT_CALL, &denied));
        }
        let handover = Handover {
            to: To::Worker(target),
            content: vec![Part::text(delegation.content())],
            waits: Waits::Attached { timeout_ms: delegation.timeout_ms },
            delegation: Some(arguments.to_owned()),
            priority: delegation.priority,
            budget: Budget::default(),
            tool: Some(delegate::NAME),
        };
        self.hand_over(scope, handover, sent).await
    }

    async fn resolve_dispatch(&self, scope: &mut Scope<'_>, dispatch: &Dispatch, sent: &mut Vec<Sent>) -> Result<Resolved, Trouble> {
        if scope.left.calls == 0 {
            let failure = Failure::lasting("limit-reached", format!("no calls are left of {} (toolCallsMax)", scope.of));
            return Ok(scope.limit(None, AGENT_CALL, "toolCallsMax", failure));
        }
        let Some(target) = self.core.catalogue.definition(&DefinitionId(dispatch.target.clone())).cloned() else {
            scope.not_made(None, AGENT_CALL, Verdict::Refused, Rule::Unknown, &dispatch.target);
            return Ok(failed("agent_not_found", format!("there is no agent `{}`", dispatch.target)));
        };
        if let Err(denied) = scope.caller().may_reach(&target, scope.own) {
            return Ok(scope.deny(None, AGENT_CALL, &denied));
        }
        scope.left.calls -= 1;
        let timeout_ms = dispatch.timeout_ms.unwrap_or(self.core.limits.dispatch_ms).min(TIMER_MS_MAX);
        let handover = Handover {
            to: To::Worker(target),
            content: dispatch.content.clone(),
            waits: if dispatch.detached { Waits::Detached { timeout_ms } } else { Waits::Attached { timeout_ms } },
            delegation: None,
            priority: scope.driving.run.started.priority,
            budget: Budget::default(),
            tool: None,
        };
        self.hand_over(scope, handover, sent).await
    }
}

/// A question to the client, within what the session's policy allows; `items` are on its record.
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
        return failed("limit-reached", format!("client: {items} items are on the session's record, and {max} is its limit"));
    }
    Resolved { deadline: policy.item_deadline(scope.now), ..asked }
}
