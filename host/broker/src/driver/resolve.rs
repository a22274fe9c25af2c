//! Resolution of an agent's requests: who performs each, and under which rules.
//!
//! It is decided from the grants of this moment, and recorded.

use super::calls::{Called, as_delegation, may_lead_to_agents};
use super::context::SessionContext;
use super::deliver::resolve_outbound_message;
use super::driving::Driving;
use super::handover::Sent;
use super::reserve::RoutedCall;
use super::scope::{NotMade, RequestingStep, Scope, failed, simply};
use crate::asking::ready;
use crate::performance::attempts::Short;
use crate::resolved_config::ResolvedConfig;
use crate::shared::DriverError;
use domain::authority::{Denied, ModelStatus, NamedModel};
use domain::budget::Amount;
use domain::delegate;
use domain::error_code::INVALID_ARGUMENTS;
use domain::id::OperationId;
use domain::limits::{RECALL_HITS_MAX, TIMER_MS_MAX};
use domain::operation::Performer;
use domain::outbound_message;
use domain::reply_schema;
use domain::ruling::{MODEL_CALL, Rule};
use domain::run::decide::Resolved;
use domain::sampling::UnfitSetting;
use domain::session::CHAT;
use domain::step::{Audience, Call, Decision, Effect, ModelRequest, StepResult, Toolset, Work};
use domain::tool::{ClientAction, EffectClass};
use llm::{Gateway, ResolvedModel};
use runtime::Decided;
use serde_json::Value;
use std::sync::Arc;

/// The results of all of a step's requests.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) operations: Vec<Resolved>,
    /// The messages to other sessions that go with them.
    pub(super) sent: Vec<Sent>,
    /// The boundary's grants for them.
    pub(super) granted: Decided,
    /// The boundary's refusals: an entry of the ledger for each request.
    pub(super) refused: Vec<NotMade>,
}

/// Returns whether a request may become work of another agent.
fn may_hand_over(work: &Work, config: &ResolvedConfig) -> bool {
    match work {
        Work::Agent(_) => true,
        Work::Tool {
            call: Call::Own { name, .. },
        } => may_lead_to_agents(name),
        Work::Tool {
            call: Call::OfModel { .. },
        } => {
            let mut tools = config.tool_list.iter();
            tools.any(|tool| may_lead_to_agents(&tool.name))
        }
        Work::Model(_) | Work::Client(_) | Work::Recall { .. } | Work::Timer { .. } => false,
    }
}

/// Returns whether a request of a step is a call of `delegate`, the model's or the agent's own.
fn is_delegation(work: &Work, asked: RequestingStep<'_>) -> bool {
    let Work::Tool { call } = work else {
        return false;
    };
    Called::find(call, asked.driving, asked.intake, asked.config)
        .is_some_and(|called| called.tool == delegate::NAME)
}

impl SessionContext {
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
        // Questions from another system do not count: the session starts over here.
        let active = self.agent_row(driving).await?;
        let active = active
            .agent
            .active_session
            .filter(|active| active.session_id == row.id);
        let imported = active.map_or(0, |active| u64::from(active.items_imported));
        Ok((row.items.saturating_sub(imported) + new as u64).max(row.interactions) + asked as u64)
    }

    /// Resolves all of a step's requests, from the present state.
    pub(super) async fn resolve(
        &self,
        asked: RequestingStep<'_>,
        result: &StepResult,
    ) -> Result<Requests, DriverError> {
        let Decision::Wait(wait) = &result.decision else {
            return Ok(Requests::default());
        };
        let hands_over = wait
            .start
            .iter()
            .any(|request| may_hand_over(&request.work, asked.config));
        let mut scope = self.scope(asked, hands_over).await?;
        let delegations = wait
            .start
            .iter()
            .filter(|request| is_delegation(&request.work, asked));
        scope.delegations_to_come = delegations.count() as u64;
        let mut items = self.items(asked.driving, result).await?;
        let mut requests = Requests::default();
        let run = &asked.driving.run;
        for request in &wait.start {
            scope.operation = OperationId::mint(run.started.run, run.step, &request.key);
            if is_delegation(&request.work, asked) {
                scope.delegations_to_come -= 1;
            }
            let sent = &mut requests.sent;
            let resolved = match &request.work {
                Work::Model(model) => Box::pin(self.resolve_model(&mut scope, model)).await?,
                Work::Tool { call } => {
                    let resolved = Box::pin(self.resolve_call(&mut scope, call, sent)).await?;
                    as_delegation(&scope, call, resolved)
                }
                Work::Client(action) if action.widget == outbound_message::WIDGET => {
                    resolve_outbound_message(&mut scope, action)
                }
                Work::Client(action) => {
                    let action = ready(&self.core.schemas, action).await;
                    let resolved = resolve_client(action, &scope, items);
                    // Each question becomes an item: several questions of one step do not pass the
                    // limit together.
                    items += 1;
                    resolved
                }
                Work::Agent(dispatch) => {
                    Box::pin(self.resolve_dispatch(&mut scope, dispatch, sent)).await?
                }
                Work::Recall { query, limit } => {
                    let performer = Performer::Recall {
                        query: query.clone(),
                        limit: (*limit).min(RECALL_HITS_MAX),
                        of: None,
                        notes: false,
                        own: false,
                    };
                    simply(performer, EffectClass::ReadOnly)
                }
                Work::Timer { ms } => {
                    let due = asked.now.plus_ms((*ms).min(TIMER_MS_MAX));
                    simply(Performer::Timer { due }, EffectClass::Idempotent)
                }
            };
            requests.operations.push(resolved);
        }
        requests.granted = scope.granted_so_far;
        requests.refused = scope.refused_so_far;
        Ok(requests)
    }

    /// Returns the model that a request asks. The error is the refusal.
    async fn model_for(
        &self,
        scope: &mut Scope<'_>,
        asked: Option<&str>,
        request: &ModelRequest,
    ) -> Result<ResolvedModel, Box<Resolved>> {
        let denied = |rule, what: &str| Denied {
            rule,
            what: what.to_owned(),
        };
        // A model that is not granted and one that does not exist look the same.
        let started = &scope.driving.run.started;
        let gateway = self.core.serving.gateway_of_run(started, asked);
        let is_lost = self.core.serving.has_lost_default(started, asked);
        let route = match gateway.resolve(asked) {
            _ if is_lost => {
                let gone = denied(Rule::Unknown, "the default model of its beginning");
                return Err(Box::new(scope.deny(None, MODEL_CALL, &gone)));
            }
            Err(_) => {
                let unknown = denied(Rule::Unknown, asked.unwrap_or_default());
                return Err(Box::new(scope.deny(None, MODEL_CALL, &unknown)));
            }
            Ok(route) if !scope.own.models.matches(&route.alias) => {
                let not_granted = denied(Rule::NotGranted, &route.alias);
                return Err(Box::new(scope.deny(None, MODEL_CALL, &not_granted)));
            }
            Ok(route) => {
                if let Err(refused) = self.may_be_answered_by(scope, &gateway, &route.alias) {
                    return Err(Box::new(scope.deny(None, MODEL_CALL, &refused)));
                }
                route
            }
        };
        if let Toolset::Named(names) = &request.tools
            && let Some(name) = names.iter().find(|name| scope.config.tool(name).is_none())
        {
            return Err(Box::new(self.not_available(scope, name, false)));
        }
        if let Some(schema) = &request.reply_schema
            && let Err(error) = self.core.schemas.compile(schema).await
        {
            return Err(Box::new(failed(
                INVALID_ARGUMENTS,
                format!("model: the reply schema is not a JSON Schema that can be used: {error}"),
            )));
        }
        Ok(route)
    }

    /// Checks whether the run's agent may use a model. A model that the operator chose for it when
    /// the run began stays allowed.
    fn may_be_answered_by(
        &self,
        scope: &Scope<'_>,
        gateway: &Gateway,
        alias: &str,
    ) -> Result<(), Denied> {
        let started = &scope.driving.run.started;
        let kind = scope.agent.kind;
        let then = self.core.serving.of_run(started);
        let present = self.core.serving.present();
        let paths = &present.settings.paths;
        let chosen_then = then
            .catalogue
            .definition(&started.definition)
            .map(|definition| then.settings.paths.named(gateway, kind, definition, alias));
        let is_chosen = |model: &NamedModel<'_>| {
            !matches!(model.status, ModelStatus::Default | ModelStatus::Other)
        };
        let model = chosen_then
            .filter(is_chosen)
            .unwrap_or_else(|| paths.named(gateway, kind, scope.definition, alias));
        let agent = &scope.agent.agent;
        let by_path = paths.permissions(
            &started.user_id,
            agent.path.as_str(),
            kind,
            scope.definition,
        );
        scope.may_be_answered_by(model, &by_path)
    }

    /// Returns a request with the settings of its run, which may narrow its limit, and with the
    /// schema that a sender wants its reply to fit.
    ///
    /// The error is a setting that the model's provider, or that of a fallback, does not take.
    fn sampled(
        &self,
        scope: &Scope<'_>,
        asked: Option<&str>,
        request: &ModelRequest,
    ) -> Result<ModelRequest, UnfitSetting> {
        let started = &scope.driving.run.started;
        let settings = &started.generation;
        let reply_schema = wanted_schema(scope, request);
        let sampling = settings.sampling(reply_schema.is_some());
        let gateway = self.core.serving.gateway_of_run(started, asked);
        gateway.check_sampling(asked, &sampling)?;
        gateway.check_reply_limit(asked, settings.max_tokens)?;
        Ok(ModelRequest {
            max_tokens: request
                .max_tokens
                .and_then(|named| settings.limited(Some(named))),
            sampling,
            reply_schema,
            ..request.clone()
        })
    }

    /// Resolves a call of a model.
    async fn resolve_model(
        &self,
        scope: &mut Scope<'_>,
        request: &ModelRequest,
    ) -> Result<Resolved, DriverError> {
        let asked = request
            .model
            .clone()
            .or_else(|| scope.driving.run.started.model.clone());
        let mut route = match self.model_for(scope, asked.as_deref(), request).await {
            Ok(route) => route,
            Err(refused) => return Ok(*refused),
        };
        let started = &scope.driving.run.started;
        let settings = &started.generation;
        let request = match self.sampled(scope, asked.as_deref(), request) {
            Ok(request) => request,
            Err(unfit) => return Ok(failed(INVALID_ARGUMENTS, format!("model: {unfit}"))),
        };
        route.max_tokens = settings.limited(route.max_tokens);
        let serving = &self.core.serving;
        route.context_window = serving.window_of_run(started, route.context_window);
        let call = RoutedCall {
            request: &request,
            route: &route,
        };
        let token_request = self
            .token_request(scope.driving, scope.config, scope.intake, call)
            .await?;
        let (reserve, reserved_micros) =
            match token_request.within(&scope.left, route.price, scope.of) {
                Ok(reserved) => reserved,
                Err(Short { limit, reported }) => {
                    return Ok(scope.limit_reached(None, MODEL_CALL, limit, reported));
                }
            };
        let reserved_tokens = reserve.tokens();
        scope.grant(MODEL_CALL, &route.alias);
        scope.left.subtract(Amount {
            tokens: reserved_tokens,
            calls: 0,
            cost_micros: reserved_micros.unwrap_or(0),
        });
        // The provider gets the reserved amount as its limit: a longer reply would cost more.
        let request = ModelRequest {
            model: asked,
            max_tokens: Some(u32::try_from(reserve.reply).unwrap_or(u32::MAX)),
            ..request
        };
        Ok(simply(
            Performer::Model {
                request,
                through: 0,
                reserved_tokens,
                reserved_micros,
            },
            asking(&route),
        ))
    }
}

/// Returns the effect of calling a model. A program in a model's place may change the world by
/// itself: once started, it is not started again for the same call.
pub(super) fn asking(route: &ResolvedModel) -> EffectClass {
    if route.is_program {
        EffectClass::NonIdempotent
    } else {
        EffectClass::Idempotent
    }
}

/// Resolves a question to the client, within the session's policy. `items` are on its record.
fn resolve_client(action: Result<ClientAction, String>, scope: &Scope<'_>, items: u64) -> Resolved {
    let action = match action {
        Ok(action) => action,
        Err(complaint) => return failed(INVALID_ARGUMENTS, complaint),
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

/// Returns the schema that the reply to a request has to fit: the request's own, or for a reply
/// that the user sees, the one that a message of the turn names.
fn wanted_schema(scope: &Scope<'_>, request: &ModelRequest) -> Option<Value> {
    let own = request.reply_schema.clone();
    own.or_else(|| {
        let before = scope.driving.run.messages.iter().map(Arc::as_ref);
        let heard = before.chain(&scope.intake.heard);
        let wanted = reply_schema::of_turn(heard);
        wanted
            .filter(|_| request.audience == Audience::User)
            .cloned()
    })
}
