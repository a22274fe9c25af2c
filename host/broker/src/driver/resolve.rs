//! What an agent's requests become: who performs each, under which rules, decided from the grants of this moment and recorded.

use super::entry::{Through, entry};
use super::{Driver, Driving, Trouble};
use crate::asking::ready;
use crate::catalogue::CHAT;
use crate::core::fresh;
use crate::journal::Context;
use crate::outfit::{Outfit, schema_error};
use domain::authority::{Caller, Denied, Permissions, Rule};
use domain::definition::{Definition, DefinitionId};
use domain::delegate::{self, Priority};
use domain::dispatch::Standing;
use domain::event::{
    AGENT_CALL, AgentCreated, BoundaryDecided, Event, InputAccepted, MODEL_CALL, SessionOpened, Source, TOOL_CALL, Verdict,
};
use domain::grant::Grant;
use domain::id::{OperationId, SessionId, Stream};
use domain::limits::{RECALL_HITS_MAX, TIMER_MS_MAX};
use domain::message::{Draft, Part, Role};
use domain::operation::{Performer, ReplyTo};
use domain::path::{self, AgentConfig, AgentPath};
use domain::run::decide::{Resolved, find_call};
use domain::run::intake::Intake;
use domain::step::{Call, Decision, Dispatch, Effect, Failure, ModelRequest, Outcome, StepResult, Toolset, Work};
use domain::time::Timestamp;
use domain::tool::{ClientAction, EffectClass, ToolDefinition};
use runtime::Decided;
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
    /// The operation that the request in hand would be.
    operation: OperationId,
    /// What the boundary has granted so far, and what it has not.
    granted_so_far: Decided,
    refused_so_far: Vec<NotMade>,
}

impl Scope<'_> {
    fn caller(&self) -> Caller<'_> {
        Caller { agent: self.definition, denies: &self.driving.run.started.denies, permissions: self.permissions }
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
    fn limit(&mut self, tool: Option<&str>, capability: &str, limit: &str, failure: Failure) -> Resolved {
        self.not_made(tool, capability, Verdict::Limited, Rule::Limits, limit);
        refused(Outcome::Failed { failure })
    }

    fn grant(&mut self, capability: &str, detail: &str) {
        self.granted_so_far.note(capability, Verdict::Granted, Rule::Granted, detail);
    }

    fn not_made(&mut self, tool: Option<&str>, capability: &str, verdict: Verdict, rule: Rule, detail: &str) {
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
        let left = driving.run.left();
        let (tool_calls_left, tokens_left) = (left.tool_calls, left.tokens);
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
            tool_calls_left,
            tokens_left,
            handed_over,
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
                Work::Model(model) => self.resolve_model(&mut scope, model),
                Work::Tool { call } => self.resolve_call(&mut scope, call, &mut requests.spawned),
                Work::Client(action) => {
                    let resolved = resolve_client(action, &scope, items);
                    // What is asked becomes an item: several questions of one step do not pass the limit together.
                    items += 1;
                    resolved
                }
                Work::Agent(dispatch) => self.resolve_dispatch(&mut scope, dispatch, &mut requests.spawned),
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

    /// The ledger's entry for a request that came to nothing. That of a tool names the component whose tool it is, other ones the agent's.
    pub(super) fn not_made(&self, driving: &Driving, not_made: NotMade, time: Timestamp) -> Event {
        let NotMade { operation, tool, decided: Decided { decisions, left_out } } = not_made;
        let through = tool.as_deref().map_or(Through::Agent, |name| Through::Tool { name, code: None });
        let entry = entry(&self.core, &driving.run, through);
        Event::BoundaryDecided(Box::new(BoundaryDecided { operation: Some(operation), decisions, left_out, time, ..entry }))
    }

    fn resolve_model(&self, scope: &mut Scope<'_>, request: &ModelRequest) -> Resolved {
        let asked = request.model.clone().or_else(|| scope.driving.run.started.model.clone());
        let denied = |rule, what: &str| Denied { rule, what: what.to_owned() };
        // A model that is not granted and one that is not there look the same.
        let alias = match self.core.gateway.resolve(asked.as_deref()) {
            Err(_) => return scope.deny(None, MODEL_CALL, &denied(Rule::Unknown, asked.as_deref().unwrap_or_default())),
            Ok(route) if !scope.own.models.matches(&route.alias) => {
                return scope.deny(None, MODEL_CALL, &denied(Rule::NotGranted, &route.alias));
            }
            Ok(route) => route.alias,
        };
        if let Toolset::Named(names) = &request.tools
            && let Some(name) = names.iter().find(|name| scope.outfit.tool(name).is_none())
        {
            return self.not_available(scope, name);
        }
        if let Some(error) = request.reply_schema.as_ref().and_then(schema_error) {
            return failed("invalid-arguments", format!("model: the reply schema is not a JSON Schema: {error}"));
        }
        let reserved_tokens = request.max_tokens.map_or(self.core.limits.reserved_tokens, u64::from);
        if scope.tokens_left < reserved_tokens {
            let told = format!("{} tokens are left of this turn's limit and {reserved_tokens} are needed", scope.tokens_left);
            return scope.limit(None, MODEL_CALL, "tokensMax", Failure::lasting("limit-reached", told));
        }
        scope.grant(MODEL_CALL, &alias);
        scope.tokens_left -= reserved_tokens;
        let request = ModelRequest { model: asked, ..request.clone() };
        simply(Performer::Model { request, through: 0, reserved_tokens }, EffectClass::Idempotent)
    }

    fn resolve_call(&self, scope: &mut Scope<'_>, call: &Call, spawned: &mut Vec<Spawned>) -> Resolved {
        let (name, arguments) = match call {
            Call::OfModel { message, index } => match find_call(&scope.driving.run, scope.intake, *message, *index) {
                Some((_, name, arguments)) => (name, arguments),
                None => return failed("not-found", "there is no such call"),
            },
            Call::Own { name, arguments } => (name.as_str(), arguments.as_str()),
        };
        if scope.tool_calls_left == 0 {
            let failure = Failure::lasting("limit-reached", "no tool calls are left of this turn's limit");
            return scope.limit(Some(name), TOOL_CALL, "toolCallsMax", failure);
        }
        let Some(shown) = scope.outfit.tool(name) else { return self.not_available(scope, name) };
        let Some(tool) = scope.granted.tool(name) else {
            // It was taken from the agent, or from everybody, since the turn began.
            let denied = self.denied_tool(scope, name).unwrap_or(Denied { rule: Rule::Unknown, what: name.to_owned() });
            return scope.deny_tool(name, &denied);
        };
        if let Err(denied) = scope.caller().may_call(tool) {
            return scope.deny_tool(name, &denied);
        }
        let parsed = match domain::json::parse(if arguments.trim().is_empty() { "{}" } else { arguments }) {
            Ok(value @ serde_json::Value::Object(_)) => value,
            Ok(_) => return failed("invalid-arguments", "the arguments are not a JSON object"),
            Err(refused) => return failed("invalid-arguments", format!("the arguments cannot be taken: {refused}")),
        };
        if name != delegate::NAME
            && let Some(complaints) = scope.outfit.arguments_error(name, &parsed)
        {
            return failed("invalid-arguments", complaints);
        }
        scope.tool_calls_left -= 1;
        if name == delegate::NAME {
            return self.resolve_delegate(scope, arguments, spawned);
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

    /// A tool that exists and is not this agent's is denied; one that does not exist, or not for this turn yet, is said not to. Each is on
    /// record.
    fn not_available(&self, scope: &mut Scope<'_>, name: &str) -> Resolved {
        if let Some(denied) = self.denied_tool(scope, name) {
            return scope.deny_tool(name, &denied);
        }
        let rule = if self.offered(name).is_some() { Rule::Ceiling } else { Rule::Unknown };
        scope.not_made(Some(name), TOOL_CALL, Verdict::Refused, rule, name);
        let known: Vec<&str> = scope.outfit.tool_list.iter().map(|tool| tool.name.as_str()).collect();
        failed("TOOL_NOT_AVAILABLE", format!("there is no tool `{name}`; available are: {}", known.join(", ")))
    }

    /// A tool of some component's, or of the host's own.
    fn offered(&self, name: &str) -> Option<Arc<ToolDefinition>> {
        let delegates = &self.core.outfits.delegates;
        let own = || (name == delegate::NAME && !delegates.is_empty()).then(|| Arc::new(delegate::definition(delegates)));
        self.core.catalogue.tool(name).map(|(_, tool)| tool.clone()).or_else(own)
    }

    /// The rule that keeps a tool from the agent; none when there is no such rule, or no such tool.
    fn denied_tool(&self, scope: &Scope<'_>, name: &str) -> Option<Denied> {
        scope.caller().may_call(&*self.offered(name)?).err()
    }

    fn resolve_delegate(&self, scope: &mut Scope<'_>, arguments: &str, spawned: &mut Vec<Spawned>) -> Resolved {
        let delegation = match delegate::parse(arguments, &self.core.outfits.delegates) {
            Ok(delegation) => delegation,
            Err(invalid) => return failed(invalid.code(), invalid.to_string()),
        };
        let target = DefinitionId(delegation.target.name().to_owned());
        let Some(target) = self.core.catalogue.definition(&target).cloned() else {
            return failed("AGENT_UNAVAILABLE", format!("the agent `{target}` is not configured"));
        };
        if let Err(denied) = scope.caller().may_hand_over(&target, scope.own) {
            return scope.deny(Some(delegate::NAME), AGENT_CALL, &denied);
        }
        let (timeout_ms, priority) = (delegation.timeout_ms, delegation.priority);
        let content = vec![Part::text(delegation.content())];
        let delegation = Some(arguments.to_owned());
        self.spawn(scope, Handover { target, content, timeout_ms, detached: false, delegation, priority }, spawned)
    }

    fn resolve_dispatch(&self, scope: &mut Scope<'_>, dispatch: &Dispatch, spawned: &mut Vec<Spawned>) -> Resolved {
        if scope.tool_calls_left == 0 {
            let failure = Failure::lasting("limit-reached", "no calls are left of this turn's limit");
            return scope.limit(None, AGENT_CALL, "toolCallsMax", failure);
        }
        let Some(target) = self.core.catalogue.definition(&DefinitionId(dispatch.target.clone())).cloned() else {
            scope.not_made(None, AGENT_CALL, Verdict::Refused, Rule::Unknown, &dispatch.target);
            return failed("agent_not_found", format!("there is no agent `{}`", dispatch.target));
        };
        if let Err(denied) = scope.caller().may_reach(&target, scope.own) {
            return scope.deny(None, AGENT_CALL, &denied);
        }
        scope.tool_calls_left -= 1;
        let timeout_ms = dispatch.timeout_ms.unwrap_or(self.core.limits.dispatch_ms).min(TIMER_MS_MAX);
        let (content, detached, priority) = (dispatch.content.clone(), dispatch.detached, scope.driving.run.started.priority);
        self.spawn(scope, Handover { target, content, timeout_ms, detached, delegation: None, priority }, spawned)
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
    fn spawn(&self, scope: &mut Scope<'_>, handover: Handover, spawned: &mut Vec<Spawned>) -> Resolved {
        let (depth, guards) = match self.admit(scope, spawned) {
            Ok(admitted) => admitted,
            Err(failure) => {
                let (tool, told) = (handover.delegation.as_ref().map(|_| delegate::NAME), failure.message.clone());
                return scope.limit(tool, AGENT_CALL, &told, failure);
            }
        };
        let Handover { target, content, timeout_ms, detached, delegation, priority } = handover;
        scope.grant(AGENT_CALL, &target.agent_id.0);
        let (run, hops, now) = (&scope.driving.run, scope.intake.hops, scope.now);
        let deadline = Some(now.plus_ms(timeout_ms));
        let operation = scope.operation;
        let count = scope.agent.sub_count + spawned.len() as u64;
        let (agent, session, input) = (fresh::agent(), fresh::session(), fresh::input());
        let caller = &scope.agent.agent;
        let created = AgentCreated {
            agent,
            definition: target.agent_id.clone(),
            path: below(&caller.path, count),
            kind: Some(path::Kind::Sub),
            config: AgentConfig::default(),
            parent: Some(caller.id),
            agent_type: Some(self.core.catalogue.agent_type(&target)),
            owner_user_id: caller.owner_user_id.clone(),
            name: target.display_name.clone(),
            denies: scope.driving.run.started.denies.and_of(scope.definition),
            created_at: now,
        };
        let opened = SessionOpened {
            session,
            agent,
            session_type: CHAT.to_owned(),
            conversation: fresh::conversation(),
            user_id: run.started.user_id.clone(),
            config: None,
            name: None,
            head: None,
            persona: None,
            // What its definition says comes after the role that it has by its path.
            model: None,
            started_by: format!("agent:{}", caller.path),
            time: now,
        };
        let origin = format!("agent:{}", caller.path);
        let message = Some(Draft { role: Role::User, parts: content, origin, untrusted: false, answers: None });
        let reply_to = Some(ReplyTo { run: run.started.run, operation, attached: !detached });
        let source = Source::Dispatch { reply_to, from: caller.path.clone(), deadline, depth, hops, priority };
        let user_id = Some(run.started.user_id.clone());
        let accepted = InputAccepted { input, session, source, user_id, message, model: None, waits_for: None, priority: None, time: now };
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

/// The address of an agent below another one. Below an address from before addresses had their form it is put together as text; agents call
/// each other not so deep that one could be too long.
fn below(parent: &str, index: u64) -> String {
    let built = parent.parse::<AgentPath>().ok().zip(u32::try_from(index).ok()).and_then(|(parent, index)| parent.sub(index).ok());
    built.map_or_else(|| format!("{parent}/sub/{index}"), String::from)
}

/// A question to the client, within what the session's policy allows; `items` are on its record.
fn resolve_client(action: &ClientAction, scope: &Scope<'_>, items: u64) -> Resolved {
    let action = match ready(action) {
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
