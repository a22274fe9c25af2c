//! Compaction of a session's thread between its turns: the decision whether it is due, and its run.
//!
//! The decision is derived from the store: the last turn, its run, and the attempts since. So a
//! crash in between changes nothing. The rules are the domain's ([`domain::compaction`]). The run
//! is like any other, except that no agent decides in it ([`step`]).

mod step;

use super::claim::Led;
use super::context::SessionContext;
use super::driving::Driving;
use super::phase::{Phase, Starting};
use super::state::Driver;
use crate::refusals::{
    changing, definition_gone, nothing_to_compact, run_open, session_closed, session_structured,
};
use crate::shared::DriverError;
use crate::shared::Request;
use crate::shared::guards::allowed;
use crate::shared::runs::load_run;
use domain::authority::Caller;
use domain::compaction::{
    ATTEMPTS_MAX, Compacted, Compaction, Mark, cut, cut_turns, estimated_tokens, is_due,
    kept_tokens_max, summary_tokens_max,
};
use domain::event::{Event, RunStarted};
use domain::id::{RunId, Stream, TurnId};
use domain::limits::TurnLimits;
use domain::path::ModelRole;
use domain::persona::Persona;
use domain::refusal::Refusal;
use domain::run::Run;
use domain::session::CHAT;
use domain::turn::TurnEnd;
use domain::user::UserId;
use store::{AgentRow, Commit, CommitError, Key, SessionRow, SessionStatus};

/// Number of steps of a run that compacts: it asks, and it concludes.
const STEPS_MAX: u32 = 2;

/// Part of its window that a prompt is hardly ever cut below: a third.
const CUT_PART: u64 = 3;

/// The cause of a compaction.
enum TriggerEvent<'a> {
    /// The newest call of the model in a turn used so many tokens.
    Due { tokens: u64 },
    /// This user requested it.
    Asked { by: &'a UserId },
}

impl Driver {
    /// Begins a compaction of the thread if it is due and no run is open. Returns whether it did.
    ///
    /// Nothing is stored yet.
    pub(super) async fn compact_if_due(&mut self) -> Result<bool, DriverError> {
        let Some(session) = self.phase.idle().filter(|session| {
            session.session_type == CHAT && session.status == SessionStatus::Open
        }) else {
            return Ok(false);
        };
        let Some(head) = session.head.filter(|head| self.roomy != Some(*head)) else {
            return Ok(false);
        };
        let session = session.clone();
        if let Some((tokens, window)) = self.context.due(&session, head).await?
            && let Some(compaction) = self
                .context
                .compaction(&session, head, window, TriggerEvent::Due { tokens })
                .await?
            && self.begin_after_reading(&session, compaction).await?
        {
            return Ok(true);
        }
        self.roomy = Some(head);
        Ok(false)
    }

    /// Compacts the thread on a user's request. Returns the run, once its start is stored.
    pub(super) async fn compact(
        &mut self,
        by: &UserId,
        request: Option<&Request>,
    ) -> Result<RunId, DriverError> {
        let session = self
            .idle_chat("only chats are compacted", run_open())
            .await?;
        let compaction = match session.head {
            Some(head) => {
                let window = self.context.window_of(&session).await?;
                self.context
                    .compaction(&session, head, window, TriggerEvent::Asked { by })
                    .await?
            }
            None => None,
        };
        let Some(compaction) = compaction else {
            return Err(DriverError::Refused(nothing_to_compact()));
        };
        if !self.begin_after_reading(&session, compaction).await? {
            return Err(self.context.not_led(&session).await?);
        }
        let with = Commit::new().guard(allowed(session.agent, by));
        self.store_begun(with, |run| request.map(|request| request.answered(&run)))
            .await
    }

    /// Returns the session if it is a chat without an open run, in which the run of a request can
    /// begin. Otherwise returns the refusal, `busy` for an open run.
    pub(super) async fn idle_chat(
        &mut self,
        only: &str,
        busy: Refusal,
    ) -> Result<SessionRow, DriverError> {
        self.stale = true;
        if self.refresh().await? {
            return Err(DriverError::Refused(busy));
        }
        let session = self.context.session_row().await?;
        if session.status != SessionStatus::Open {
            return Err(DriverError::Refused(session_closed()));
        }
        if session.session_type != CHAT {
            return Err(DriverError::Refused(session_structured(only)));
        }
        Ok(session)
    }

    /// Stores the start of a run that has just begun on request, under the request's key. Returns
    /// the run.
    pub(super) async fn store_begun(
        &mut self,
        mut with: Commit,
        key: impl FnOnce(RunId) -> Option<Key>,
    ) -> Result<RunId, DriverError> {
        let Some(run) = self.phase.driving().map(|driving| driving.run.started.run) else {
            return Err(DriverError::Refused(session_closed()));
        };
        with.key = key(run);
        match self.commit_start_with(with).await {
            Ok(()) => Ok(run),
            Err(failure) => {
                // A run whose start was not stored has not begun.
                self.phase = Phase::Unknown;
                Err(match failure {
                    DriverError::Commit(CommitError::Conflict(_)) => {
                        DriverError::Refused(changing("the session"))
                    }
                    failure => failure,
                })
            }
        }
    }

    /// Begins the run, after the memory agent was handed the unread part of the thread.
    async fn begin_after_reading(
        &mut self,
        session: &SessionRow,
        compaction: Compaction,
    ) -> Result<bool, DriverError> {
        self.read_before_compaction(session).await?;
        self.begin_compaction(session, compaction).await
    }

    /// Begins the run. Returns false when no turn of the session can be led, or none will follow.
    pub(super) async fn begin_compaction(
        &mut self,
        session: &SessionRow,
        compaction: Compaction,
    ) -> Result<bool, DriverError> {
        let Some(agent) = self.context.store().agent(session.agent).await? else {
            return Ok(false);
        };
        // An agent made for a piece of work has done it: nothing more is said there.
        if agent.kind.is_ephemeral() && compaction.asked_by.is_none() {
            return Ok(false);
        }
        let Ok(led) = self.context.leads(&agent, session) else {
            return Ok(false);
        };
        let definition = led.definition;
        let model = self.context.model_of_summary(session, &agent, &led);
        let window = self
            .context
            .served
            .settings
            .gateway
            .resolve(model.as_deref())
            .map_or(0, |route| route.context_window);
        let limits = TurnLimits {
            steps_max: STEPS_MAX,
            tool_calls_max: 0,
            // The model may be asked with all that fits into its window, however little a turn of
            // the agent may use.
            tokens_max: definition.limits.tokens_max.max(window),
            open_operations_max: 1,
            ..definition.limits
        };
        let bare = self.context.bare_start(session, &agent, &led).await?;
        let user_id = compaction.asked_by.clone();
        let started = RunStarted {
            limits,
            user_id: user_id.unwrap_or_else(|| session.user_id.clone()),
            compacts: Some(Box::new(compaction)),
            model,
            ..bare
        };
        self.phase = Phase::starting(Starting {
            driving: Driving::new(Run::begin(started), Vec::new()),
            inputs: Vec::new(),
            agent: Some(agent),
            overrides: None,
            sections: None,
            begins_under: Vec::new(),
        });
        self.stale = false;
        Ok(true)
    }
}

impl SessionContext {
    /// Returns the model that summarises a session's thread: that of the role, or else that of its
    /// turns, if the agent may use it there; none for the host's own.
    fn model_of_summary(
        &self,
        session: &SessionRow,
        agent: &AgentRow,
        led: &Led<'_>,
    ) -> Option<String> {
        let settings = &self.served.settings;
        let definition = led.definition;
        let permissions = led
            .persona
            .map(Persona::permissions)
            .unwrap_or_default()
            .both(&agent.agent.permissions)
            .both(&settings.paths.permissions(
                &session.user_id,
                agent.agent.path.as_str(),
                agent.kind,
                definition,
            ));
        let caller = Caller {
            agent: definition,
            denies: &agent.agent.denies,
            permissions: &permissions,
        };
        let found = |model: &String| settings.gateway.resolve(Some(model)).ok();
        let paths = &settings.paths;
        let gateway = &settings.gateway;
        // The operator chose that of the role, as a fallback is chosen.
        let of_role = settings.paths.models.get(&ModelRole::Memory);
        let of_role = of_role.filter(|model| {
            found(model).is_some_and(|route| {
                let model = paths.named(gateway, agent.kind, definition, &route.alias);
                caller.may_fall_back_to(model).is_ok()
            })
        });
        let of_turns = || {
            let model = self.model(None, session, agent, definition)?;
            let route = found(&model)?;
            let named = paths.named(gateway, agent.kind, definition, &route.alias);
            caller.may_be_answered_by(named).ok()?;
            Some(model)
        };
        of_role.cloned().or_else(of_turns)
    }

    /// Returns the refusal of a run that nothing leads in a session.
    pub(super) async fn not_led(&self, session: &SessionRow) -> Result<DriverError, DriverError> {
        let agent = self.store().agent(session.agent).await?;
        let definition = agent.map(|agent| agent.agent.definition);
        let gone = definition.filter(|id| self.served.catalogue.definition(id).is_none());
        Ok(DriverError::Refused(match gone {
            Some(id) => definition_gone(id),
            None => session_closed(),
        }))
    }

    /// Returns the tokens and the model's window of the last turn's newest call, if compaction is
    /// due.
    async fn due(
        &self,
        session: &SessionRow,
        head: TurnId,
    ) -> Result<Option<(u64, u64)>, DriverError> {
        let Some(node) = self.store().turn(head).await? else {
            return Ok(None);
        };
        // This excludes most turns: no call used more than all of the turn's calls together. Hardly
        // any prompt was cut to less than a part of its window.
        let at_most = node.usage.total().saturating_mul(CUT_PART);
        let has_failed = node.end == TurnEnd::Failed;
        if !has_failed && !is_due(at_most, self.smallest_window()) {
            return Ok(None);
        }
        let run = match load_run(self.store(), node.run).await {
            Ok((run, _)) => run,
            // An imported turn has no run here.
            Err(DriverError::Missing(_)) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        if run.started.compacts.is_some() {
            return Ok(None);
        }
        // A model refused it although it was cut: the next turn would begin with the same prompt.
        let refused = run.cuts.values().map(|cut| cut.tokens_before).max();
        if let Some(tokens) = refused.filter(|_| has_failed) {
            if self.store().is_interrupted(session.id).await? || self.has_given_up().await? {
                return Ok(None);
            }
            return Ok(Some((tokens, self.window_of(session).await?)));
        }
        let Some(call) = run.newest_call else {
            return Ok(None);
        };
        let gateway = &self.served.settings.gateway;
        let Ok(route) = gateway.resolve(call.model.as_deref()) else {
            return Ok(None);
        };
        // The part that was cut from the model's prompt is still in the thread.
        let cut = run.cuts.get(call.model.as_deref().unwrap_or_default());
        let tokens = call
            .usage
            .total()
            .max(cut.map_or(0, |cut| cut.tokens_before));
        let definition = self.served.catalogue.definition(&run.started.definition);
        let window = definition.map_or(route.context_window, |definition| {
            definition.window(route.context_window)
        });
        if !is_due(tokens, window)
            || self.store().is_interrupted(session.id).await?
            || self.has_given_up().await?
        {
            return Ok(None);
        }
        Ok(Some((tokens, window)))
    }

    /// Returns the smallest window of all models and definitions.
    fn smallest_window(&self) -> u64 {
        let window = self.served.settings.gateway.smallest_window();
        let definitions = self.served.catalogue.definitions();
        definitions.fold(window, |window, definition| definition.window(window))
    }

    /// Returns whether no further attempt is made after the last turn: enough failed, or a user
    /// stopped one.
    async fn has_given_up(&self) -> Result<bool, DriverError> {
        let mut failed = 0;
        for ended in self
            .store()
            .fruitless_runs(self.session, ATTEMPTS_MAX * 4)
            .await?
        {
            if started(self.store(), ended.run)
                .await?
                .and_then(|started| started.compacts)
                .is_some_and(|task| task.returns.is_none())
            {
                if ended.end == Some(TurnEnd::Aborted) {
                    return Ok(true);
                }
                failed += 1;
            }
        }
        if failed >= ATTEMPTS_MAX {
            tracing::warn!(session.id = %self.session, failed, "a thread could not be compacted: \
                its session goes on with the whole of it");
        }
        Ok(failed >= ATTEMPTS_MAX)
    }

    /// Returns the task of a compaction; none when there is nothing to summarise.
    async fn compaction(
        &self,
        session: &SessionRow,
        head: TurnId,
        window: u64,
        trigger_event: TriggerEvent<'_>,
    ) -> Result<Option<Compaction>, DriverError> {
        let compacted = self.compacted(Some(head)).await?;
        if compacted.is_some_and(|compacted| compacted.summary == session.head_message) {
            return Ok(None);
        }
        let from = compacted.map_or(1, |compacted| compacted.kept_from);
        let messages = self
            .store()
            .messages(Some(head), from, session.head_message)
            .await?;
        let mut turns = Vec::new();
        let mut at = Some(head);
        while let Some(turn) = at {
            let Some(node) = self.store().turn(turn).await? else {
                break;
            };
            turns.push((turn, node.first_message, node.last_message));
            at = node.parent.filter(|_| node.first_message > from);
        }
        turns.reverse();
        let cut_turns = cut_turns(&turns, &messages);
        let kept_max = match trigger_event {
            TriggerEvent::Due { .. } => kept_tokens_max(window),
            // A user who requests it wants the thread to be shorter.
            TriggerEvent::Asked { .. } => kept_tokens_max(window).min(
                cut_turns
                    .iter()
                    .map(|cut_turn| cut_turn.tokens)
                    .sum::<u64>()
                    / 2,
            ),
        };
        let Some(cut) = cut(&cut_turns, kept_max) else {
            return Ok(None);
        };
        let (tokens_before, asked_by) = match trigger_event {
            TriggerEvent::Due { tokens } => (tokens, None),
            TriggerEvent::Asked { by } => (estimated_tokens(&messages), Some(by.clone())),
        };
        let summarised = |id: u64| id <= cut.through.last;
        Ok(Some(Compaction {
            summarized_through: cut.through.turn,
            through_message: cut.through.last,
            first_kept: cut.first_kept.map(|cut_turn| cut_turn.turn),
            tokens_before,
            kept_tokens: cut.kept_tokens,
            summary_tokens_max: summary_tokens_max(window),
            untrusted: messages.iter().any(|message| {
                message.untrusted && (summarised(message.id) || Mark::of(message).is_some())
            }),
            asked_by,
            returns: None,
        }))
    }

    /// Returns the window of the model that a session's turns use where their words name none.
    pub(super) async fn window_of(&self, session: &SessionRow) -> Result<u64, DriverError> {
        let agent = self.store().agent(session.agent).await?;
        let definition = agent
            .as_ref()
            .and_then(|agent| self.served.catalogue.definition(&agent.agent.definition));
        let model = agent
            .as_ref()
            .zip(definition)
            .and_then(|(agent, definition)| self.model(None, session, agent, definition));
        let gateway = &self.served.settings.gateway;
        let route = gateway.resolve(model.as_deref());
        let window = route.map_or_else(|_| gateway.smallest_window(), |route| route.context_window);
        Ok(definition.map_or(window, |definition| definition.window(window)))
    }

    /// Returns the newest compaction of a thread; none if it was never compacted.
    ///
    /// A turn's run records the latest compaction before it. So only the last turn is checked, and
    /// turns before it if those were imported.
    pub(super) async fn compacted(
        &self,
        head: Option<TurnId>,
    ) -> Result<Option<Compacted>, DriverError> {
        let store = self.store();
        let mut at = head;
        while let Some(turn) = at {
            let Some(node) = store.turn(turn).await? else {
                return Ok(None);
            };
            if let [_] = node.messages.as_slice()
                && let Some(mark) = store
                    .message(Some(turn), node.first_message)
                    .await?
                    .as_ref()
                    .and_then(Mark::of)
            {
                let summary = node.first_message;
                let kept = match mark.first_kept {
                    Some(kept) => store.turn(kept).await?.map(|node| node.first_message),
                    None => None,
                };
                return Ok(Some(Compacted {
                    summary,
                    kept_from: kept.unwrap_or(summary).min(summary),
                }));
            }
            if let Some(started) = started(store, node.run).await? {
                return Ok(started.compacted);
            }
            at = node.parent;
        }
        Ok(None)
    }
}

/// Returns the first event of a run. None if the run does not belong to this store, or its start
/// was erased.
async fn started(store: &store::Store, run: RunId) -> Result<Option<Box<RunStarted>>, DriverError> {
    let first = store.first_of(Stream::Run(run)).await?;
    Ok(match first.and_then(|recorded| recorded.event) {
        Some(Event::RunStarted(started)) => Some(started),
        _ => None,
    })
}
