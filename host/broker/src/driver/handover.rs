//! Handing work over, in the commit of the step that decides it.
//!
//! The work goes to a worker that is made for it, or to a session of an existing agent.

use super::context::SessionContext;
use super::scope::{Scope, failed, simply};
use crate::core::fresh;
use crate::journal::Context;
use crate::shared::DriverError;
use crate::shared::guards::allowed;
use domain::agent::Agent;
use domain::budget::{Available, Budget};
use domain::definition::Definition;
use domain::delegate::Priority;
use domain::direct_message::{AGENT_SESSION_ERROR, Messaged};
use domain::dispatch::blocked::Admitted;
use domain::dispatch::waits::{WAITS_FOR_CYCLE, circle, describe_circle};
use domain::dispatch::{Depth, DispatchState, Edge};
use domain::event::{AgentCreated, Event, InputAccepted, SessionOpened, Source};
use domain::id::{AgentId, InputId, SessionId, Stream};
use domain::limits::WAITING_INPUTS_MAX;
use domain::message::{Draft, Part, Role};
use domain::operation::{Performer, ReplyTo};
use domain::path::{AgentConfig, INDEX_MAX, PathError, PathKind};
use domain::ruling::AGENT_CALL;
use domain::run::decide::Resolved;
use domain::step::Failure;
use domain::time::Timestamp;
use domain::tool::EffectClass;
use std::sync::Arc;
use store::{AgentGuard, Guard, QueueGuard, SessionGuard};

/// A message to another session, in the step's own commit.
pub(super) struct Sent {
    pub(super) session: SessionId,
    pub(super) guards: Vec<Guard>,
    pub(super) events: Vec<(Stream, Event)>,
    pub(super) blobs: Vec<Vec<u8>>,
    pub(super) context: Context,
}

/// Work that is handed to another agent.
pub(super) struct Handover {
    pub(super) to: To,
    pub(super) content: Vec<Part>,
    pub(super) waits: Waits,
    /// The arguments of a call of `delegate`; none for other calls.
    pub(super) delegation: Option<String>,
    pub(super) priority: Priority,
    pub(super) budget: Budget,
    /// The tool that was called; none for an operation of the agent's own.
    pub(super) tool: Option<&'static str>,
}

/// The agent that is to do the work.
pub(super) enum To {
    /// A worker that is made for it, below the caller.
    Worker(Arc<Definition>),
    /// An agent that is made for it, below the caller, and searches the caller's memory.
    Searcher(Arc<Definition>),
    /// An agent of the user's, in a session of its own.
    There(Box<Place>),
}

/// The agent and the session that work is handed to.
pub(super) struct Place {
    pub(super) agent: Agent,
    /// The event that makes the agent, if it is made for this work.
    pub(super) made: Option<AgentCreated>,
    pub(super) session: SessionId,
    pub(super) session_name: Option<String>,
    /// True if the session is opened for this.
    pub(super) created: bool,
}

/// The result that the step's run waits for, if any.
pub(super) enum Waits {
    /// The result of the work. The work is stopped when its time is up, or when its caller no
    /// longer waits.
    Attached { timeout_ms: u64 },
    /// No result: the reply becomes an input.
    Detached { timeout_ms: u64 },
    /// The answer to a message. The other agent's turn is its own, and continues even if its caller
    /// no longer waits.
    Answer(Messaged),
    /// No result: the answer becomes an input.
    Nothing(Messaged),
}

impl Waits {
    fn waits(&self) -> bool {
        matches!(self, Self::Attached { .. } | Self::Answer(_))
    }

    /// Returns the message whose answer an operation waits for, if any, and the time at which the
    /// wait ends. None when no operation waits.
    fn answer(
        &self,
        now: Timestamp,
        deadline: Option<Timestamp>,
    ) -> Option<(Option<Messaged>, Option<Timestamp>)> {
        match self {
            Self::Attached { .. } => Some((None, deadline)),
            Self::Answer(messaged) => {
                let until = now.plus_ms(messaged.timeout_s.saturating_mul(1_000));
                Some((Some(messaged.clone()), Some(until)))
            }
            Self::Detached { .. } | Self::Nothing(_) => None,
        }
    }

    /// Returns the text for an agent that waits for nothing.
    fn answer_at_once(self, session: SessionId, input: InputId) -> String {
        match self {
            Self::Answer(messaged) | Self::Nothing(messaged) => {
                messaged.started(session, input).to_string()
            }
            Self::Attached { .. } | Self::Detached { .. } => {
                format!("Started as task {input}; its reply will follow with this responseId.")
            }
        }
    }

    /// Returns the deadline of the work, never later than that of its caller.
    fn deadline(&self, now: Timestamp, of_caller: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Attached { timeout_ms } | Self::Detached { timeout_ms } => Some(
                now.plus_ms(*timeout_ms)
                    .min(of_caller.unwrap_or(Timestamp(u64::MAX))),
            ),
            // A caller that waits for an answer cancels nothing. But no work continues after the
            // deadline of its caller.
            Self::Answer(_) | Self::Nothing(_) => of_caller,
        }
    }
}

/// The session that gets the work, with the events that go before it there.
struct Begun {
    agent: AgentId,
    session: SessionId,
    guards: Vec<Guard>,
    events: Vec<(Stream, Event)>,
}

/// A piece of work that is put into a session.
struct WorkItem {
    content: Vec<Part>,
    /// True if the run that hands it over waits for its result; the work is then stopped with that
    /// run.
    attached: bool,
    deadline: Option<Timestamp>,
    depth: Depth,
    priority: Priority,
    budget: Budget,
    /// The available budget from which its own is taken.
    left: Available,
}

impl SessionContext {
    /// Returns the admission of the next work that the step hands over, with guards for its commit.
    /// A delegation may wait for room.
    ///
    /// The guards are needed because another run of the same tree may hand work over meanwhile.
    fn admit(
        &self,
        scope: &Scope<'_>,
        handover: &Handover,
        edge: Edge,
    ) -> Result<(Admitted, Vec<Guard>), Failure> {
        let handed_over = &scope.handed_over;
        let tree = handed_over.tree;
        let more = scope.handed;
        let limits = self.limits_of(scope).dispatch;
        let started = &scope.driving.run.started;
        let state = DispatchState {
            depth: Depth {
                call: started.depth,
                spawn: started.spawn_depth,
            },
            of_run: handed_over.by_run + more,
            of_tree: handed_over.in_tree + more,
            of_message: scope.runs + more + scope.queued,
        };
        let queued = handed_over.queued + scope.queued;
        let admitted = if handover.delegation.is_some() {
            limits.admit_or_hold(state, queued)?
        } else {
            Admitted {
                depth: limits.admit(state, edge)?,
                queued: false,
            }
        };
        if admitted.queued {
            let max = u64::from(limits.delegations_queued_max).saturating_sub(scope.queued + 1);
            return Ok((
                admitted,
                vec![AgentGuard::BlockedAtMost { tree, max }.into()],
            ));
        }
        let max = u64::from(limits.tree_dispatches_max).saturating_sub(more + 1);
        let mut guards = vec![AgentGuard::TreeDispatchesAtMost { tree, max }.into()];
        if queued > 0 {
            // Another waiting handover of the run may begin meanwhile.
            let run = started.run;
            let max = u64::from(limits.children_max).saturating_sub(more + 1);
            guards.push(AgentGuard::RunDispatchesAtMost { tree, run, max }.into());
        }
        Ok((admitted, guards))
    }

    /// Checks that work may go there. The inner error is the refusal.
    async fn may_go(
        &self,
        scope: &mut Scope<'_>,
        handover: &Handover,
        left: Available,
    ) -> Result<Result<(Admitted, Vec<Guard>), Resolved>, DriverError> {
        let Handover {
            to, waits, tool, ..
        } = handover;
        let edge = match (to, waits) {
            (To::Worker(_), Waits::Detached { .. }) => Edge::Spawn,
            _ => Edge::Call,
        };
        let admitted = match self.admit(scope, handover, edge) {
            Ok(admitted) => admitted,
            Err(failure) => {
                let reported = failure.message.clone();
                return Ok(Err(scope.limit(*tool, AGENT_CALL, &reported, failure)));
            }
        };
        if left.tokens == 0 {
            let reported = format!("no tokens are left of {} (tokensMax)", scope.of);
            return Ok(Err(scope.limit_reached(
                *tool,
                AGENT_CALL,
                "tokensMax",
                reported,
            )));
        }
        if left.cost_micros == Some(0) {
            let reported = format!("no money is left of {} (costMicrosMax)", scope.of);
            return Ok(Err(scope.limit_reached(
                *tool,
                AGENT_CALL,
                "costMicrosMax",
                reported,
            )));
        }
        if let (To::There(place), true) = (to, waits.waits())
            && let Some(circle) = self
                .closed_circle(scope.driving.run.started.session, place.session)
                .await?
        {
            let failure = Failure::lasting(WAITS_FOR_CYCLE, circle);
            return Ok(Err(scope.limit(
                *tool,
                AGENT_CALL,
                "waitsForCycle",
                failure,
            )));
        }
        Ok(Ok(admitted))
    }

    /// Hands work over, or returns the refusal.
    pub(super) async fn hand_over(
        &self,
        scope: &mut Scope<'_>,
        handover: Handover,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let left = scope.left;
        let (admitted, of_tree) = match self.may_go(scope, &handover, left).await? {
            Ok(admitted) => admitted,
            Err(refused) => return Ok(refused),
        };
        let budget = self.share(scope, &handover);
        if let Some(refused) = scope.without_calls(&handover, budget) {
            return Ok(refused);
        }
        let waits = handover.waits;
        let mut begun = match self.begin(scope, handover.to, waits.waits()) {
            Ok(begun) => begun,
            Err(error) => return Ok(failed(AGENT_SESSION_ERROR, error.to_string())),
        };
        begun.guards.extend(of_tree);
        let deadline = waits.deadline(scope.now, scope.driving.run.deadline());
        let item = WorkItem {
            content: handover.content,
            attached: matches!(waits, Waits::Attached { .. }),
            deadline,
            depth: admitted.depth,
            priority: handover.priority,
            budget,
            left,
        };
        let agent = begun.agent;
        let session = begun.session;
        let input = fresh::input();
        sent.push(scope.handed_over(begun, input, item));
        let reserved = budget.reserved(left);
        scope.left.subtract(reserved);
        scope.queued += u64::from(admitted.queued);
        scope.handed += u64::from(!admitted.queued);
        let Some((message, deadline)) = waits.answer(scope.now, deadline) else {
            // Its usage will not be reported either, so it is charged its reserve.
            let performer = Performer::Detached {
                agent,
                session,
                input,
                reported: waits.answer_at_once(session, input),
            };
            return Ok(Resolved {
                reserved,
                ..simply(performer, EffectClass::ReadOnly)
            });
        };
        scope.lent = scope.lent.plus(reserved);
        let performer = Performer::Agent {
            agent,
            session,
            input,
            delegation: handover.delegation,
            message,
            since: scope.now,
            queued: admitted.queued,
        };
        Ok(Resolved {
            deadline,
            reserved,
            ..simply(performer, EffectClass::NonIdempotent)
        })
    }

    /// Returns the budget of the next work that the step hands over. The step's admissible
    /// delegations share evenly. Those that wait for room get their share now, too. Each has one
    /// call at least while any is left: its agent could do next to nothing without.
    fn share(&self, scope: &Scope<'_>, handover: &Handover) -> Budget {
        let limits = self.limits_of(scope).dispatch;
        let admitted_max =
            u64::from(limits.children_max) + u64::from(limits.delegations_queued_max);
        let later = scope.delegations_to_come.min(admitted_max);
        let budget = handover.budget.or_share_of(scope.left, later);
        let calls_min = u32::from(handover.delegation.is_some()).min(scope.left.calls);
        Budget {
            calls: budget.calls.map(|calls| calls.max(calls_min)),
            ..budget
        }
    }

    /// Begins work at its destination, whether or not the caller `waits` for it.
    ///
    /// # Errors
    /// No path below the caller's fits.
    fn begin(&self, scope: &mut Scope<'_>, to: To, waits: bool) -> Result<Begun, PathError> {
        match to {
            To::Worker(target) => {
                let agent_type = self.served.catalogue.agent_type(&target);
                scope.worker(&target, agent_type, PathKind::Sub)
            }
            To::Searcher(target) => {
                let agent_type = self.served.catalogue.agent_type(&target);
                scope.worker(&target, agent_type, PathKind::Search)
            }
            To::There(place) => Ok(scope.place(*place, waits)),
        }
    }

    /// Returns an error text if sessions would wait for each other for ever. None if the wait is
    /// allowed.
    async fn closed_circle(
        &self,
        from: SessionId,
        to: SessionId,
    ) -> Result<Option<String>, DriverError> {
        let edges = self.store().waits_of(to).await?;
        let Some(sessions) = circle(&edges, from, to) else {
            return Ok(None);
        };
        let mut names = Vec::new();
        for session in sessions {
            let row = self.store().session(session).await?;
            let agent = match row {
                Some(row) => self.store().agent(row.agent).await?,
                None => None,
            };
            names.push(agent.map_or_else(|| session.to_string(), |row| row.agent.path.into()));
        }
        Ok(Some(describe_circle(&names)))
    }
}

impl Scope<'_> {
    /// Refuses a delegation whose agent could make no call of a tool.
    fn without_calls(&mut self, handover: &Handover, budget: Budget) -> Option<Resolved> {
        if handover.delegation.is_none() || budget.calls != Some(0) {
            return None;
        }
        let reported = format!(
            "no tool calls are left of {} for a task (toolCallsMax)",
            self.of
        );
        Some(self.limit_reached(handover.tool, AGENT_CALL, "toolCallsMax", reported))
    }

    /// Returns the message of a piece of work, as an input of the session that gets it.
    fn handed_over(&self, begun: Begun, input: InputId, item: WorkItem) -> Sent {
        let session = begun.session;
        let caller = &self.agent.agent;
        let started = &self.driving.run.started;
        let source = Source::Dispatch {
            reply_to: Some(ReplyTo {
                run: started.run,
                operation: self.operation,
                attached: item.attached,
            }),
            from: caller.path.to_string(),
            deadline: item.deadline,
            depth: item.depth.call,
            hops: self.intake.hops,
            priority: item.priority,
            spawn_depth: item.depth.spawn,
            budget: item.budget.within(item.left),
            denies: self.bounds.denies.and_of(self.definition),
            permissions: self.bounds.permissions.clone(),
            accounts: started.accounts().delegating(input, item.budget, item.left),
        };
        let origin = format!("agent:{}", caller.path);
        let message = Some(Draft {
            role: Role::User,
            parts: item.content,
            origin: origin.clone(),
            untrusted: self.is_untrusted(),
            speaker: None,
            answers: None,
        });
        let accepted = InputAccepted {
            user_id: started.user_id.clone(),
            message,
            ..InputAccepted::of(session, input, source, self.now)
        };
        let mut events = begun.events;
        events.push((Stream::Session(session), Event::InputAccepted(accepted)));
        let context = Context::new(origin, self.now)
            .about(begun.agent, Some(session), None)
            .following(started.claimed.first().copied());
        Sent {
            session,
            guards: begun.guards,
            events,
            blobs: Vec::new(),
            context,
        }
    }

    /// Makes a new agent below this one, with a session.
    fn worker(
        &mut self,
        target: &Definition,
        agent_type: String,
        kind: PathKind,
    ) -> Result<Begun, PathError> {
        let caller = &self.agent.agent;
        let now = self.now;
        let agent = fresh::agent();
        let session = fresh::session();
        let count = self.agent.sub_count + self.workers;
        let index = u32::try_from(count).unwrap_or(INDEX_MAX);
        let path = match kind {
            PathKind::Search => caller.path.search(index)?,
            _ => caller.path.sub(index)?,
        };
        // The first worker of a step guards the count for all of them.
        let guards = if self.workers == 0 {
            vec![Guard::Agent(AgentGuard::SubCount {
                agent: caller.id,
                count,
            })]
        } else {
            Vec::new()
        };
        let created = AgentCreated {
            agent,
            definition: target.agent_id.clone(),
            path,
            kind,
            config: AgentConfig::default(),
            parent: Some(caller.id),
            agent_type,
            owner_user_id: caller.owner_user_id.clone(),
            name: target.display_name.clone(),
            denies: self.bounds.denies.and_of(self.definition),
            permissions: self.bounds.permissions.clone(),
            created_at: now,
        };
        let opened = self.opened(agent, session);
        self.grant(AGENT_CALL, &target.agent_id.0);
        self.workers += 1;
        let events = vec![
            (Stream::Agent(agent), Event::AgentCreated(created)),
            (Stream::Session(session), Event::SessionOpened(opened)),
        ];
        Ok(Begun {
            agent,
            session,
            guards,
            events,
        })
    }

    /// Reserves a session of an existing agent, or of one that is made for this.
    fn place(&mut self, place: Place, waits: bool) -> Begun {
        let agent = place.agent;
        let session = place.session;
        let created = place.created;
        self.grant(AGENT_CALL, &agent.definition.0);
        let user = &self.driving.run.started.user_id;
        let mut guards = Vec::new();
        let mut events = Vec::new();
        match place.made {
            Some(made) => {
                self.making.push(made.path.clone());
                guards.push(Guard::Agent(AgentGuard::PathFree(made.path.to_string())));
                events.push((Stream::Agent(agent.id), Event::AgentCreated(made)));
            }
            // Rights are checked again in the commit: they may be taken away meanwhile.
            None => guards.extend([
                Guard::Agent(AgentGuard::Active(agent.id)),
                allowed(agent.id, user),
            ]),
        }
        if created {
            events.push((
                Stream::Session(session),
                Event::SessionOpened(self.opened(agent.id, session)),
            ));
        } else {
            guards.extend([
                Guard::Session(SessionGuard::Open(session)),
                Guard::Queue(QueueGuard::WaitingAtMost {
                    session,
                    max: WAITING_INPUTS_MAX as u64 - 1,
                }),
            ]);
        }
        if waits && !created {
            guards.push(Guard::Session(SessionGuard::MayWait {
                session: self.driving.run.started.session,
                for_session: session,
            }));
        }
        Begun {
            agent: agent.id,
            session,
            guards,
            events,
        }
    }

    fn opened(&self, agent: AgentId, session: SessionId) -> SessionOpened {
        SessionOpened {
            started_by: format!("agent:{}", self.agent.agent.path),
            ..SessionOpened::chat(
                agent,
                session,
                fresh::conversation(),
                self.driving.run.started.user_id.clone(),
                self.now,
            )
        }
    }
}

/// Returns the refusal that too many inputs wait in a session. It is temporary.
pub(super) fn full() -> Resolved {
    failed(
        AGENT_SESSION_ERROR,
        format!("{WAITING_INPUTS_MAX} inputs of that session wait already; try again later"),
    )
}
