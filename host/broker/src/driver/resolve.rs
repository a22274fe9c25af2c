//! What an agent's requests become: who performs each, under which rules, decided from the grants of this moment and recorded.

use super::{Driver, Driving, Trouble};
use crate::core::fresh;
use crate::journal::Context;
use crate::outfit::{Outfit, schema_error};
use domain::authority::{Caller, Denied, Permissions, Rule};
use domain::definition::{Definition, DefinitionId};
use domain::delegate::{self, Priority};
use domain::dispatch::Standing;
use domain::event::{
    AGENT_CALL, AgentCreated, Decision as Ruled, Event, InputAccepted, MODEL_CALL, SessionOpened, Source, TOOL_CALL, Verdict,
};
use domain::grant::Grant;
use domain::id::{OperationId, SessionId, Stream};
use domain::limits::{RECALL_HITS_MAX, TIMER_MS_MAX};
use domain::message::{Draft, Part, Role};
use domain::operation::{Performer, ReplyTo};
use domain::run::decide::{Resolved, find_call};
use domain::run::intake::Intake;
use domain::step::{Call, Decision, Dispatch, Failure, ModelRequest, Outcome, Request, StepResult, Toolset, Work};
use domain::time::Timestamp;
use domain::tool::{ClientAction, EffectClass};
use std::sync::Arc;
use store::{AgentRow, Guard, HandedOver};

/// Another agent's session that a step opens, in the step's own commit.
pub(super) struct Spawned {
    pub(super) session: SessionId,
    pub(super) guards: Vec<Guard>,
    pub(super) events: Vec<(Stream, Event)>,
    pub(super) context: Context,
}

/// What all of a step's requests became.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) operations: Vec<Resolved>,
    pub(super) spawned: Vec<Spawned>,
    /// What the boundary decided about them.
    pub(super) decisions: Vec<Ruled>,
}

/// Work that is handed to another agent.
struct Handover {
    target: Arc<Definition>,
    content: Vec<Part>,
    timeout_ms: u64,
    detached: bool,
    delegation: Option<String>,
    priority: Priority,
}

/// What resolving needs to know of the step.
struct Scope<'a> {
    driving: &'a Driving,
    agent: &'a AgentRow,
    definition: &'a Definition,
    /// What the agent was shown when the run began.
    outfit: &'a Outfit,
    /// What it would be shown now, and so what it may do.
    granted: &'a Outfit,
    intake: &'a Intake,
    now: Timestamp,
    tool_calls_left: u32,
    tokens_left: u64,
    /// What the run and its tree of agents have handed over that has not ended. Looked up only for a step that may hand something over.
    handed_over: HandedOver,
    /// What the agent's component is granted.
    own: &'a Grant,
    permissions: &'a Permissions,
    /// What the boundary has decided so far.
    decisions: Vec<Ruled>,
}

impl Scope<'_> {
    fn caller(&self) -> Caller<'_> {
        Caller { agent: self.definition, denies: &self.driving.run.started.denies, permissions: self.permissions }
    }

    /// Refuses, uniformly for the guest and with the rule on record.
    fn deny(&mut self, capability: &str, denied: Denied) -> Resolved {
        let Denied { rule, what } = denied;
        tracing::info!(definition = %self.definition.agent_id, capability, what, %rule, "a request was denied");
        self.decided(capability, Verdict::Refused, rule, what);
        refused(Outcome::Denied)
    }

    fn decided(&mut self, capability: &str, verdict: Verdict, rule: Rule, detail: String) {
        let same = |known: &&mut Ruled| known.capability == capability && known.verdict == verdict && known.rule == rule;
        match self.decisions.iter_mut().find(same) {
            Some(known) => known.times += 1,
            None => self.decisions.push(Ruled { capability: capability.to_owned(), verdict, rule, times: 1, detail }),
        }
    }
}

/// Whether a request may become work of another agent's.
fn may_hand_over(work: &Work, outfit: &Outfit) -> bool {
    match work {
        Work::Agent(_) => true,
        Work::Tool { call: Call::Own { name, .. } } => name == delegate::NAME,
        Work::Tool { call: Call::OfModel { .. } } => outfit.tool(delegate::NAME).is_some(),
        Work::Model(_) | Work::Client(_) | Work::Recall { .. } | Work::Timer { .. } => false,
    }
}

fn simply(performer: Performer, effect: EffectClass) -> Resolved {
    Resolved { performer, effect, time_limit_ms: None, deadline: None }
}

fn refused(outcome: Outcome) -> Resolved {
    simply(Performer::Refused { outcome }, EffectClass::ReadOnly)
}

fn failed(code: &str, message: impl Into<String>) -> Resolved {
    refused(Outcome::Failed { failure: Failure::lasting(code, message) })
}

impl Driver {
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
        let left = driving.run.left();
        let (tool_calls_left, tokens_left) = (left.tool_calls, left.tokens);
        let hands_over = wait.start.iter().any(|request| may_hand_over(&request.work, outfit));
        let handed_over = if hands_over {
            self.core.store.handed_over(driving.run.started.run, agent.agent.id).await?
        } else {
            HandedOver { by_run: 0, in_tree: 0, tree: agent.agent.id }
        };
        let own = self.core.catalogue.entry(&definition.component).map(|entry| entry.grant.clone()).unwrap_or_default();
        let permissions = Permissions::default();
        let mut scope = Scope {
            driving,
            agent,
            definition,
            outfit,
            granted,
            intake,
            now,
            tool_calls_left,
            tokens_left,
            handed_over,
            own: &own,
            permissions: &permissions,
            decisions: Vec::new(),
        };
        let mut requests = Requests::default();
        for request in &wait.start {
            let resolved = match &request.work {
                Work::Model(model) => self.resolve_model(&mut scope, model),
                Work::Tool { call } => self.resolve_call(&mut scope, request, call, &mut requests.spawned),
                Work::Client(action) => resolve_client(action),
                Work::Agent(dispatch) => self.resolve_dispatch(&mut scope, request, dispatch, &mut requests.spawned),
                Work::Recall { query, limit } => {
                    let limit = (*limit).min(RECALL_HITS_MAX);
                    simply(Performer::Recall { query: query.clone(), limit }, EffectClass::ReadOnly)
                }
                Work::Timer { ms } => simply(Performer::Timer { due: now.plus_ms((*ms).min(TIMER_MS_MAX)) }, EffectClass::Idempotent),
            };
            requests.operations.push(resolved);
        }
        requests.decisions = scope.decisions;
        Ok(requests)
    }

    fn resolve_model(&self, scope: &mut Scope<'_>, request: &ModelRequest) -> Resolved {
        let asked = request.model.clone().or_else(|| scope.driving.run.started.model.clone());
        match self.core.gateway.resolve(asked.as_deref()) {
            Err(unknown) => return failed("unknown-model", unknown.to_string()),
            Ok(route) if !scope.own.models.matches(&route.alias) => {
                return scope.deny(MODEL_CALL, Denied { rule: Rule::NotGranted, what: route.alias });
            }
            Ok(route) => scope.decided(MODEL_CALL, Verdict::Granted, Rule::Granted, route.alias),
        }
        if let Toolset::Named(names) = &request.tools
            && let Some(name) = names.iter().find(|name| scope.outfit.tool(name).is_none())
        {
            return failed("not-found", format!("tools: `{name}` is not one of this agent's tools"));
        }
        if let Some(error) = request.reply_schema.as_ref().and_then(schema_error) {
            return failed("invalid-arguments", format!("model: the reply schema is not a JSON Schema: {error}"));
        }
        let reserved_tokens = request.max_tokens.map_or(self.core.limits.reserved_tokens, u64::from);
        if scope.tokens_left < reserved_tokens {
            return failed(
                "limit-reached",
                format!("{} tokens are left of this turn's limit and {reserved_tokens} are needed", scope.tokens_left),
            );
        }
        scope.tokens_left -= reserved_tokens;
        let request = ModelRequest { model: asked, ..request.clone() };
        simply(Performer::Model { request, through: 0, reserved_tokens }, EffectClass::Idempotent)
    }

    fn resolve_call(&self, scope: &mut Scope<'_>, request: &Request, call: &Call, spawned: &mut Vec<Spawned>) -> Resolved {
        let (name, arguments) = match call {
            Call::OfModel { message, index } => match find_call(&scope.driving.run, scope.intake, *message, *index) {
                Some((_, name, arguments)) => (name, arguments),
                None => return failed("not-found", "there is no such call"),
            },
            Call::Own { name, arguments } => (name.as_str(), arguments.as_str()),
        };
        if scope.tool_calls_left == 0 {
            return failed("limit-reached", "no tool calls are left of this turn's limit");
        }
        let Some(shown) = scope.outfit.tool(name) else { return self.not_available(scope, name) };
        let Some(tool) = scope.granted.tool(name) else {
            tracing::info!(definition = %scope.definition.agent_id, tool = name, "a tool was called that is no longer granted");
            return failed("not-granted", format!("`{name}` is no longer granted"));
        };
        let parsed = match serde_json::from_str(if arguments.trim().is_empty() { "{}" } else { arguments }) {
            Ok(value @ serde_json::Value::Object(_)) => value,
            Ok(_) => return failed("invalid-arguments", "the arguments are not a JSON object"),
            Err(error) => return failed("invalid-arguments", format!("the arguments are not JSON: {error}")),
        };
        if name != delegate::NAME
            && let Some(complaints) = scope.outfit.arguments_error(name, &parsed)
        {
            return failed("invalid-arguments", complaints);
        }
        if let Err(denied) = scope.caller().may_call(tool) {
            return scope.deny(TOOL_CALL, denied);
        }
        scope.tool_calls_left -= 1;
        if name == delegate::NAME {
            return self.resolve_delegate(scope, request, arguments, spawned);
        }
        let Some((entry, _)) = self.core.catalogue.tool(name) else { return self.not_available(scope, name) };
        let own_limit = tool.time_limit_ms.map_or(u64::MAX, u64::from);
        let performer = Performer::Tool {
            component: entry.component.digest(),
            tool: name.to_owned(),
            arguments: parsed.to_string(),
            capabilities: tool.capabilities.iter().filter(|capability| shown.capabilities.contains(capability)).cloned().collect(),
        };
        let time_limit_ms = Some(own_limit.min(entry.grant.limits.wall_ms_max));
        // Of the tool as it was shown and the tool as it is, the one that takes more care says what a crash leads to.
        Resolved { performer, effect: tool.effect.max(shown.effect), time_limit_ms, deadline: None }
    }

    /// A tool that exists and is not this agent's is denied; one that does not exist, or not for this turn yet, is said not to.
    fn not_available(&self, scope: &mut Scope<'_>, name: &str) -> Resolved {
        if let Some((_, tool)) = self.core.catalogue.tool(name)
            && let Err(denied) = scope.caller().may_call(&**tool)
        {
            return scope.deny(TOOL_CALL, denied);
        }
        let known: Vec<&str> = scope.outfit.tool_list.iter().map(|tool| tool.name.as_str()).collect();
        failed("TOOL_NOT_AVAILABLE", format!("there is no tool `{name}`; available are: {}", known.join(", ")))
    }

    fn resolve_delegate(&self, scope: &mut Scope<'_>, request: &Request, arguments: &str, spawned: &mut Vec<Spawned>) -> Resolved {
        let delegation = match delegate::parse(arguments, &self.core.outfits.delegates) {
            Ok(delegation) => delegation,
            Err(invalid) => return failed(invalid.code(), invalid.to_string()),
        };
        let target = DefinitionId(delegation.target.name().to_owned());
        let Some(target) = self.core.catalogue.definition(&target).cloned() else {
            return failed("AGENT_UNAVAILABLE", format!("the agent `{target}` is not configured"));
        };
        if let Err(denied) = scope.caller().may_hand_over(&target, scope.own) {
            return scope.deny(AGENT_CALL, denied);
        }
        scope.decided(AGENT_CALL, Verdict::Granted, Rule::Granted, target.agent_id.0.clone());
        let (timeout_ms, priority) = (delegation.timeout_ms, delegation.priority);
        let content = vec![Part::text(delegation.content())];
        let delegation = Some(arguments.to_owned());
        self.spawn(scope, request, Handover { target, content, timeout_ms, detached: false, delegation, priority }, spawned)
    }

    fn resolve_dispatch(&self, scope: &mut Scope<'_>, request: &Request, dispatch: &Dispatch, spawned: &mut Vec<Spawned>) -> Resolved {
        if scope.tool_calls_left == 0 {
            return failed("limit-reached", "no calls are left of this turn's limit");
        }
        let Some(target) = self.core.catalogue.definition(&DefinitionId(dispatch.target.clone())).cloned() else {
            return failed("agent_not_found", format!("there is no agent `{}`", dispatch.target));
        };
        if let Err(denied) = scope.caller().may_reach(&target, scope.own) {
            return scope.deny(AGENT_CALL, denied);
        }
        scope.decided(AGENT_CALL, Verdict::Granted, Rule::Granted, target.agent_id.0.clone());
        scope.tool_calls_left -= 1;
        let timeout_ms = dispatch.timeout_ms.unwrap_or(self.core.limits.dispatch_ms).min(TIMER_MS_MAX);
        let (content, detached, priority) = (dispatch.content.clone(), dispatch.detached, scope.driving.run.started.priority);
        self.spawn(scope, request, Handover { target, content, timeout_ms, detached, delegation: None, priority }, spawned)
    }

    /// How deep the next work will be that the step hands over, and what must be so when it is committed: another run of the same tree may
    /// hand over something meanwhile.
    fn admit(&self, scope: &Scope<'_>, spawned: &[Spawned]) -> Result<(u32, Vec<Guard>), Failure> {
        let HandedOver { by_run, in_tree, tree } = scope.handed_over;
        let (more, limits) = (spawned.len() as u64, self.core.limits.dispatch);
        let standing = Standing { depth: scope.driving.run.started.depth, of_run: by_run + more, of_tree: in_tree + more };
        let depth = limits.admit(standing)?;
        let max = u64::from(limits.tree_dispatches_max).saturating_sub(more + 1);
        let mut guards = vec![Guard::TreeDispatchesAtMost { tree, max }];
        // The first of a step's spawns guards the count for all of them.
        if spawned.is_empty() {
            guards.push(Guard::SubCount { agent: scope.agent.agent.id, count: scope.agent.sub_count });
        }
        Ok((depth, guards))
    }

    /// Opens a session of a new agent below this one and gives it the work.
    fn spawn(&self, scope: &Scope<'_>, request: &Request, handover: Handover, spawned: &mut Vec<Spawned>) -> Resolved {
        let (depth, guards) = match self.admit(scope, spawned) {
            Ok(admitted) => admitted,
            Err(failure) => return refused(Outcome::Failed { failure }),
        };
        let Handover { target, content, timeout_ms, detached, delegation, priority } = handover;
        let (run, hops, now) = (&scope.driving.run, scope.intake.hops, scope.now);
        let deadline = Some(now.plus_ms(timeout_ms));
        let operation = OperationId::mint(run.started.run, run.step, &request.key);
        let count = scope.agent.sub_count + spawned.len() as u64;
        let (agent, session, input) = (fresh::agent(), fresh::session(), fresh::input());
        let caller = &scope.agent.agent;
        let created = AgentCreated {
            agent,
            definition: target.agent_id.clone(),
            path: format!("{}/sub/{count}", caller.path),
            parent: Some(caller.id),
            owner_user_id: caller.owner_user_id.clone(),
            name: target.display_name.clone(),
            denies: scope.driving.run.started.denies.and_of(scope.definition),
            created_at: now,
        };
        let opened = SessionOpened {
            session,
            agent,
            session_type: "chat".to_owned(),
            name: None,
            head: None,
            model: target.model.clone(),
            started_by: format!("agent:{}", caller.path),
            time: now,
        };
        let origin = format!("agent:{}", caller.path);
        let message = Some(Draft { role: Role::User, parts: content, origin, untrusted: false, answers: None });
        let reply_to = Some(ReplyTo { run: run.started.run, operation, attached: !detached });
        let source = Source::Dispatch { reply_to, from: caller.path.clone(), deadline, depth, hops, priority };
        let accepted = InputAccepted { input, session, source, message, model: None, time: now };
        spawned.push(Spawned {
            session,
            guards,
            events: vec![
                (Stream::Agent(agent), Event::AgentCreated(created)),
                (Stream::Session(session), Event::SessionOpened(opened)),
                (Stream::Session(session), Event::InputAccepted(accepted)),
            ],
            context: Context::new(format!("agent:{}", caller.path), now)
                .about(agent, Some(session), None)
                .following(run.started.claimed.first().copied()),
        });
        if detached {
            let note = format!("Started as task {}; its reply will follow.", operation.0.short());
            return refused(Outcome::Parts { parts: vec![Part::text(note)] });
        }
        Resolved {
            performer: Performer::Agent { agent, session, input, delegation, since: now },
            effect: EffectClass::NonIdempotent,
            time_limit_ms: None,
            deadline,
        }
    }
}

fn resolve_client(action: &ClientAction) -> Resolved {
    if action.widget.is_empty() {
        return failed("invalid-arguments", "client: the widget has no name");
    }
    if let Some(error) = action.response_schema.as_ref().and_then(schema_error) {
        return failed("invalid-arguments", format!("client: the response schema is not a JSON Schema: {error}"));
    }
    simply(Performer::Client { action: action.clone() }, EffectClass::ReadOnly)
}
