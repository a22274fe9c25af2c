//! The host's own tools by which agents exchange messages: the addressed agent, the rules, and the
//! result.

use super::context::SessionContext;
use super::handover::{Handover, Place, Sent, To, Waits, full};
use super::late_replies::{Late, LateReplyParts};
use super::scope::{Scope, failed, refused, simply};
use crate::core::fresh;
use crate::journal::Context;
use crate::shared::DriverError;
use crate::shared::runs::load_caller;
use crate::shared::{Broker, Error, Target, Whom as Found};
use domain::agent::Agent;
use domain::authority::Denied;
use domain::budget::Budget;
use domain::definition::DefinitionId;
use domain::direct_message::{
    self, AGENT_NOT_ACCESSIBLE, AGENT_NOT_FOUND, AGENT_SESSION_ERROR, DISPATCH, DispatchCall,
    MESSAGE, MessageCall, Messaged, Mode, NO_CALLER, REPLY, Which, Whom,
};
use domain::error_code::ErrorKind;
use domain::event::{AgentCreated, Event, RunSettled};
use domain::id::{AgentId, Stream};
use domain::limits::{TIMER_MS_MAX, WAITING_INPUTS_MAX};
use domain::message::Part;
use domain::operation::{Performer, ReplyTo};
use domain::role::{AgentRole, Right};
use domain::ruling::{AGENT_CALL, Rule};
use domain::run::Open;
use domain::run::decide::Resolved;
use domain::run::end::{CallerReply, given};
use domain::session::CHAT;
use domain::step::{Failure, OperationOutcome};
use domain::time::Timestamp;
use domain::tool::EffectClass;
use domain::user::UserId;
use serde_json::{Map, Value};
use store::{Guard, RunGuard, SessionRow, SessionStatus};

/// Number of levels up to which an agent is known as below another.
const ABOVE_MAX: usize = 32;

impl SessionContext {
    /// Resolves a call of one of these tools.
    pub(super) async fn resolve_direct_message(
        &self,
        scope: &mut Scope<'_>,
        name: &str,
        arguments: Map<String, Value>,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let invalid =
            |invalid: direct_message::Invalid| Ok(failed(invalid.code(), invalid.to_string()));
        match name {
            DISPATCH => match direct_message::dispatch(arguments) {
                Ok(call) => self.resolve_dispatch_to(scope, call, sent).await,
                Err(wrong) => invalid(wrong),
            },
            MESSAGE => match direct_message::message(arguments) {
                Ok(call) => self.resolve_message(scope, call, sent).await,
                Err(wrong) => invalid(wrong),
            },
            _ => match direct_message::reply(arguments) {
                Ok(content) => self.resolve_reply(scope, content, sent).await,
                Err(wrong) => invalid(wrong),
            },
        }
    }

    async fn resolve_dispatch_to(
        &self,
        scope: &mut Scope<'_>,
        call: DispatchCall,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let to = match &call.target {
            Whom::Definition(id) => match self.reachable(scope, DISPATCH, id) {
                Ok(()) => match self.served.catalogue.definition(id) {
                    Some(definition) => To::Worker(definition.clone()),
                    None => return Ok(unknown(scope, DISPATCH, &id.0)),
                },
                Err(refused) => return Ok(*refused),
            },
            Whom::Path(_) | Whom::Agent(_) => match self
                .find_place(scope, DISPATCH, &call.target, Which::LatestOrCreate)
                .await?
            {
                Ok(place) => To::There(Box::new(place)),
                Err(refused) => return Ok(*refused),
            },
        };
        let timeout_ms = call
            .timeout_ms
            .unwrap_or_else(|| self.limits_of(scope).dispatch_ms)
            .min(TIMER_MS_MAX);
        let waits = if call.wait {
            Waits::Attached { timeout_ms }
        } else {
            Waits::Detached { timeout_ms }
        };
        let handover = Handover {
            to,
            content: call.content,
            waits,
            delegation: None,
            priority: scope.driving.run.started.priority,
            budget: call.budget,
            tool: Some(DISPATCH),
        };
        self.hand_over(scope, handover, sent).await
    }

    async fn resolve_message(
        &self,
        scope: &mut Scope<'_>,
        call: MessageCall,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let found = self.find_place(scope, MESSAGE, &call.agent, call.session);
        let place = match found.await? {
            Ok(place) => place,
            Err(refused) => return Ok(*refused),
        };
        let messaged = Messaged {
            definition: place.agent.definition.clone(),
            session_name: place
                .session_name
                .clone()
                .unwrap_or_else(|| place.session.to_string()),
            created: place.created,
            timeout_s: call.timeout_s,
        };
        let of = self.served.catalogue.definition(&place.agent.definition);
        let is_external = of.is_some_and(|definition| definition.program().is_some());
        let waits = match call.mode {
            Mode::Sync if !is_external => Waits::Answer(messaged),
            // A program elsewhere answers at a time of its choosing, so no operation waits for it.
            Mode::Sync | Mode::Async => Waits::Nothing(messaged),
        };
        let handover = Handover {
            to: To::There(Box::new(place)),
            content: call.content,
            waits,
            delegation: None,
            priority: scope.driving.run.started.priority,
            budget: Budget::default(),
            tool: Some(MESSAGE),
        };
        self.hand_over(scope, handover, sent).await
    }

    /// Resolves a reply to the agent that handed this run its work.
    ///
    /// It settles the operation that waits for it, without going through the queue of its session.
    /// Otherwise it becomes an input of that session.
    async fn resolve_reply(
        &self,
        scope: &mut Scope<'_>,
        parts: Vec<Part>,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let run = &scope.driving.run;
        let Some(to) = run.started.reply_to else {
            return Ok(failed(
                NO_CALLER,
                "no agent handed this turn its work: whom it is for hears what you reply at its \
                 end",
            ));
        };
        let Some(caller) = load_caller(self.store(), to.run).await? else {
            return Ok(failed(
                NO_CALLER,
                "whoever handed this turn its work is not there any more",
            ));
        };
        let replied = run.replied || scope.replied;
        let untrusted = scope.is_untrusted();
        let waiting = caller
            .open
            .get(&to.operation)
            .filter(|open| !replied && matches!(open.operation.performer, Performer::Agent { .. }));
        let session = caller.started.session;
        let mut reply = Sent {
            session,
            guards: Vec::new(),
            events: Vec::new(),
            blobs: Vec::new(),
            context: Context::of_run(&run.started, scope.now).about_run(&caller.started),
        };
        let settled = waiting.is_some();
        if let Some(open) = waiting {
            settle(
                &mut reply,
                open,
                to,
                CallerReply {
                    run,
                    said: &[],
                    parts,
                    untrusted,
                },
            );
        } else {
            let late = Late {
                from: run,
                hops: scope.intake.hops,
                to: &caller,
                parts,
                untrusted,
            };
            self.add_late(&mut reply, late, scope.now).await?;
        }
        sent.push(reply);
        scope.replied = true;
        scope.grant(AGENT_CALL, REPLY);
        Ok(simply(
            Performer::Reply { to, settled },
            EffectClass::Idempotent,
        ))
    }

    /// Adds to a message that the reply becomes an input of its session.
    async fn add_late(
        &self,
        reply: &mut Sent,
        late: Late<'_>,
        time: Timestamp,
    ) -> Result<(), DriverError> {
        let LateReplyParts {
            events,
            blob,
            guard,
        } = Box::pin(late.events(&self.core, time)).await?;
        reply.blobs.extend(blob);
        reply.guards.extend(guard);
        let stream = Stream::Session(reply.session);
        reply
            .events
            .extend(events.into_iter().map(|event| (stream, event)));
        Ok(())
    }

    /// Checks that lists let the agent reach those of a definition.
    ///
    /// A definition that may not be reached and one that does not exist are refused differently.
    /// The list of peers that the agent sees shows the same difference.
    fn reachable(
        &self,
        scope: &mut Scope<'_>,
        tool: &str,
        id: &DefinitionId,
    ) -> Result<(), Box<Resolved>> {
        let there = self.served.catalogue.definition(id);
        let Some(definition) = there.filter(|it| scope.knows(it)) else {
            return Err(Box::new(unknown(scope, tool, &id.0)));
        };
        let may = scope.may_reach(definition);
        may.map_err(|denied| Box::new(not_accessible(scope, tool, &denied)))
    }

    /// Returns the agent and the session to talk to. The inner error is the refusal.
    ///
    /// Another user's agent looks absent.
    async fn find_place(
        &self,
        scope: &mut Scope<'_>,
        tool: &str,
        whom: &Whom,
        which: Which,
    ) -> Result<Result<Place, Box<Resolved>>, DriverError> {
        let (agent, role, made) = match self.find_agent(scope, tool, whom).await? {
            Ok(found) => found,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Some(made) = &made
            && scope.making.contains(&made.path)
        {
            let failure = Failure::passing(
                AGENT_SESSION_ERROR,
                "that agent is being made at this moment; try again when it has answered",
            );
            return Ok(Err(Box::new(refused(OperationOutcome::Failed { failure }))));
        }
        let user = &scope.driving.run.started.user_id;
        Ok(match self.find_session(&agent, role, user, which).await? {
            Err(refused) => Err(refused),
            Ok(Some(row)) if row.waiting >= WAITING_INPUTS_MAX as u64 => Err(Box::new(full())),
            Ok(Some(row)) => Ok(Place {
                agent,
                made,
                session: row.id,
                session_name: row.name,
                created: false,
            }),
            Ok(None) => Ok(Place {
                agent,
                made,
                session: fresh::session(),
                session_name: None,
                created: true,
            }),
        })
    }

    /// Returns an agent of the user's to talk to, the user's role, and its event if it has to be
    /// made.
    async fn find_agent(
        &self,
        scope: &mut Scope<'_>,
        tool: &str,
        whom: &Whom,
    ) -> Result<Result<(Agent, AgentRole, Option<AgentCreated>), Box<Resolved>>, DriverError> {
        let (target, named) = match whom {
            Whom::Definition(id) => {
                if let Err(refused) = self.reachable(scope, tool, id) {
                    return Ok(Err(refused));
                }
                (Target::Definition(id.clone()), id.to_string())
            }
            Whom::Path(path) => (Target::Path(path.clone()), path.clone()),
            Whom::Agent(agent) => (Target::Agent(*agent), agent.to_string()),
        };
        let user = &scope.driving.run.started.user_id;
        let broker = Broker {
            core: self.core.clone(),
            is_unruled: false,
        };
        let (agent, role, made) = match broker
            .agents()
            .find_or_make(user, &target, Right::Interact)
            .await
        {
            Ok(Found::There(row, role)) => (row.agent, role, None),
            Ok(Found::New(created)) => {
                match Agent::apply(None, &Event::AgentCreated((*created).clone())) {
                    Some(agent) => (agent, AgentRole::Primary, Some(*created)),
                    None => return Ok(Err(Box::new(unknown(scope, tool, &named)))),
                }
            }
            Err(Error::Refused(refusal)) if refusal.kind() == ErrorKind::NotFound => {
                return Ok(Err(Box::new(unknown(scope, tool, &named))));
            }
            Err(Error::Refused(refusal)) => {
                return Ok(Err(Box::new(failed(AGENT_NOT_ACCESSIBLE, refusal.message))));
            }
            Err(error) => {
                return Err(DriverError::Missing(format!(
                    "the agent `{named}`, which cannot be looked up ({error})"
                )));
            }
        };
        // Another session of its own would lack the restrictions of this one.
        if agent.id == scope.agent.agent.id && self.is_narrower_than_path(scope) {
            let denied = Denied {
                rule: Rule::Permissions,
                what: agent.definition.0.clone(),
            };
            return Ok(Err(Box::new(not_accessible(scope, tool, &denied))));
        }
        if !matches!(whom, Whom::Definition(_))
            && let Err(refused) = self.may_message(scope, tool, &agent).await?
        {
            return Ok(Err(refused));
        }
        Ok(Ok((agent, role, made)))
    }

    /// Returns a session of an agent that the user sees; none if a new session has to be opened.
    async fn find_session(
        &self,
        agent: &Agent,
        role: AgentRole,
        user: &UserId,
        which: Which,
    ) -> Result<Result<Option<SessionRow>, Box<Resolved>>, DriverError> {
        match which {
            Which::Create => Ok(Ok(None)),
            Which::Id(id) => {
                let visible = |row: &SessionRow| {
                    row.agent == agent.id && (role.sees_all_sessions() || row.user_id == *user)
                };
                let row = self.store().session(id).await?;
                let row = row.filter(|row| visible(row) && row.status != SessionStatus::Deleted);
                Ok(match row {
                    None => Err(no_session(format!(
                        "the agent has no such session (`{id}`); name one by its id, or one of an \
                         external agent by its name"
                    ))),
                    Some(row) if row.status != SessionStatus::Open || row.session_type != CHAT => {
                        Err(no_session(format!(
                            "the session `{id}` takes no messages: it has ended, or is no chat"
                        )))
                    }
                    row => Ok(row),
                })
            }
            Which::Latest | Which::LatestOrCreate => {
                // The chat that words to the agent go to: none that a persona leads.
                let latest = match self.store().latest_chat(user, agent.id).await? {
                    Some(session) => self.store().session(session).await?,
                    None => None,
                };
                if latest.is_none() && which == Which::Latest {
                    return Ok(Err(no_session(
                        "the agent has no session yet; `latest-or-create` makes one".to_owned(),
                    )));
                }
                Ok(Ok(latest))
            }
        }
    }

    /// Checks that lists let the agent talk to one that is named by path or id.
    ///
    /// It may always talk to itself, to agents below it that it may give work to, and to others
    /// that it may reach. Definitions that were added since the run began are not available to it.
    async fn may_message(
        &self,
        scope: &mut Scope<'_>,
        tool: &str,
        agent: &Agent,
    ) -> Result<Result<(), Box<Resolved>>, DriverError> {
        let own = scope.agent.agent.id;
        if agent.id == own {
            return Ok(Ok(()));
        }
        let Some(definition) = self.served.catalogue.definition(&agent.definition).cloned() else {
            return Ok(Err(Box::new(failed(
                AGENT_NOT_ACCESSIBLE,
                format!("the definition `{}` is not configured", agent.definition),
            ))));
        };
        if !scope.knows(&definition) {
            return Ok(Err(Box::new(unknown(scope, tool, agent.path.as_str()))));
        }
        let may = if self.is_below(agent.id, own).await? {
            scope.may_hand_over(&definition)
        } else {
            scope.may_reach(&definition)
        };
        Ok(may.map_err(|denied| Box::new(not_accessible(scope, tool, &denied))))
    }

    async fn is_below(&self, agent: AgentId, above: AgentId) -> Result<bool, DriverError> {
        let mut at = Some(agent);
        for _ in 0..ABOVE_MAX {
            let Some(id) = at else { return Ok(false) };
            at = self.store().agent(id).await?.and_then(|row| row.parent);
            if at == Some(above) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Records in a message that the reply settles the operation that waits for it.
fn settle(reply: &mut Sent, open: &Open, to: ReplyTo, reply_given: CallerReply<'_>) {
    let time = reply.context.time;
    // The run may continue and use more, so at least the whole reserve counts as used.
    let spent = reply_given
        .run
        .spent_so_far()
        .at_least(open.operation.reserved);
    let (settlement, blobs) = given(&open.operation, reply_given, time);
    let settlement = settlement.spending(spent);
    reply.blobs = blobs;
    reply.guards.push(Guard::Run(RunGuard::OperationOpen {
        run: to.run,
        operation: to.operation,
    }));
    reply.events.push((
        Stream::Run(to.run),
        Event::RunSettled(RunSettled {
            run: to.run,
            settled: vec![settlement],
        }),
    ));
}

fn unknown(scope: &mut Scope<'_>, tool: &str, named: &str) -> Resolved {
    scope.refuse(Some(tool), AGENT_CALL, Rule::Unknown, named);
    failed(AGENT_NOT_FOUND, format!("there is no agent `{named}`"))
}

/// Refuses reach of an agent. Only the ledger names the rule.
fn not_accessible(scope: &mut Scope<'_>, tool: &str, denied: &Denied) -> Resolved {
    scope.refuse(Some(tool), AGENT_CALL, denied.rule, &denied.what);
    failed(
        AGENT_NOT_ACCESSIBLE,
        format!("this agent may not reach `{}`", denied.what),
    )
}

fn no_session(message: String) -> Box<Resolved> {
    Box::new(failed(AGENT_SESSION_ERROR, message))
}
