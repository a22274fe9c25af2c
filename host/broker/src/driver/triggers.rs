//! The host's own tools by which an agent sets itself triggers.
//!
//! A trigger is set or removed in the commit of the step that decides it, so it happens once. The
//! edge finds it in the store like any other. The rights of a turn narrow with the work that caused
//! it, but a trigger is fired without these limits. So only a turn with the rights of a user's own
//! message sets one, and only if it had no other inputs. Otherwise the words of a trigger, which
//! may be a stranger's, could set the next one. In a turn that depends on content from outside its
//! user has to approve first (`driver/lasting.rs`).

use super::context::SessionContext;
use super::handover::Sent;
use super::scope::{Scope, at_once, failed, simply};
use crate::journal::Context;
use crate::shared::DriverError;
use domain::error_code::INVALID_ARGUMENTS;
use domain::event::{Event, Source, TriggerDefined, TriggerOrigin, TriggerRemoved};
use domain::id::{InputId, Stream};
use domain::message::Part;
use domain::operation::Performer;
use domain::ruling::TOOL_CALL;
use domain::run::decide::Resolved;
use domain::step::OperationOutcome;
use domain::tool::EffectClass;
use domain::trigger::{
    TRIGGER_LIST, TRIGGER_REMOVE, TRIGGER_SET, TRIGGER_UNKNOWN, TRIGGERS_FULL, TRIGGERS_MAX,
    TRIGGERS_NARROWED, TRIGGERS_OF_USER_MAX, TRIGGERS_WRITE, TriggerCaller, TriggerKind,
    TriggerName, TriggerSpec,
};
use serde_json::{Map, Value, json};
use store::{Guard, TriggerFilter, TriggerGuard, TriggerRow};

/// The change of a trigger by a call.
struct Change {
    tool: &'static str,
    name: TriggerName,
    event: Event,
    guards: Vec<Guard>,
    /// The result of the call.
    reported: Value,
}

impl SessionContext {
    /// Resolves a call of one of these tools.
    pub(super) async fn resolve_triggers(
        &self,
        scope: &mut Scope<'_>,
        name: &str,
        arguments: Map<String, Value>,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        // The right to them may have been withdrawn since the turn began.
        if let Err(denied) = scope.caller().may_have(TRIGGERS_WRITE) {
            return Ok(scope.deny_tool(name, &denied));
        }
        let started = &scope.driving.run.started;
        let user = started.user_id.clone();
        let caller = TriggerCaller {
            agent: scope.agent.agent.id,
            user: &user,
            session: started.session,
        };
        if name == TRIGGER_LIST {
            return self.list_triggers(scope, caller).await;
        }
        let is_narrowed = started.depth > 0
            || started.spawn_depth > 0
            || !started.denies.is_empty()
            || self.is_narrower_than_path(scope);
        // The inputs of this step are not among the run's yet.
        let taken = scope.driving.run.claimed.iter();
        let taken: Vec<InputId> = taken.chain(&scope.intake.claimed).copied().collect();
        if is_narrowed || !self.are_of_users(&taken).await? {
            return Ok(failed(
                TRIGGERS_NARROWED,
                "triggers are set and removed only in a turn that took a user's own messages alone, \
                 with nothing taken from the agent",
            ));
        }
        if name == TRIGGER_REMOVE {
            return match caller.remove(arguments) {
                Ok(name) => self.remove_trigger(scope, caller, name, sent).await,
                Err(wrong) => Ok(failed(INVALID_ARGUMENTS, wrong.to_string())),
            };
        }
        match caller.set(arguments) {
            Ok((name, spec)) => {
                let setting = Setting { caller, name, spec };
                self.set_trigger(scope, setting, sent).await
            }
            Err(wrong) => Ok(failed(INVALID_ARGUMENTS, wrong.to_string())),
        }
    }

    /// Returns whether the turn is permitted less than every turn of its agent at its path is.
    pub(super) fn is_narrower_than_path(&self, scope: &Scope<'_>) -> bool {
        let started = &scope.driving.run.started;
        let agent = scope.agent;
        let path = agent.agent.path.as_str();
        let paths = &self.served.settings.paths;
        let of_path = paths.permissions(&started.user_id, path, agent.kind, scope.definition);
        !started.permissions.beyond(&of_path).are_all()
    }

    /// Returns whether all inputs are a user's own words. Words of a trigger, another agent or a
    /// reminder are not, nor are words marked as content from outside.
    async fn are_of_users(&self, inputs: &[InputId]) -> Result<bool, DriverError> {
        for input in inputs {
            let Some((input, _)) = self.store().input(*input).await? else {
                return Ok(false);
            };
            let is_of_user = match input.source {
                Source::Api | Source::Connector { .. } => true,
                Source::Trigger { .. }
                | Source::Opening
                | Source::Dispatch { .. }
                | Source::LateReply { .. }
                | Source::Reminder { .. } => false,
            };
            // A user's own words may quote another person's; then the user is asked.
            let is_marked = input.message.is_some_and(|message| {
                message.untrusted && !message.said_by().is_some_and(|it| it.is_user())
            });
            if !is_of_user || is_marked {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the triggers that the caller has set for its user.
    async fn triggers_of(&self, caller: TriggerCaller<'_>) -> Result<Vec<TriggerRow>, DriverError> {
        let filter = TriggerFilter {
            user: Some(caller.user.clone()),
            ..TriggerFilter::default()
        };
        let of_user = self.store().triggers(filter, None, TRIGGERS_OF_USER_MAX);
        let mut rows = of_user.await?;
        rows.retain(|row| is_of(row, caller));
        Ok(rows)
    }

    async fn list_triggers(
        &self,
        scope: &mut Scope<'_>,
        caller: TriggerCaller<'_>,
    ) -> Result<Resolved, DriverError> {
        scope.grant(TOOL_CALL, TRIGGER_LIST);
        let prefix = caller.prefix();
        let rows = self.triggers_of(caller).await?;
        let listed: Vec<Value> = rows.iter().map(|row| view(row, &prefix)).collect();
        let text = json!({ "triggers": listed }).to_string();
        let parts = vec![Part::text(text)];
        // A trigger's text that a marked turn wrote is marked wherever it is read again.
        let untrusted = rows.iter().any(is_marked);
        Ok(at_once(OperationOutcome::Parts { parts }, untrusted))
    }

    async fn set_trigger(
        &self,
        scope: &mut Scope<'_>,
        setting: Setting<'_>,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let Setting { caller, name, spec } = setting;
        let there = self.store().trigger(&name).await?;
        let there = there.filter(|row| row.removed.is_none());
        if there.as_ref().is_some_and(|row| !is_of(row, caller)) {
            return Ok(failed(INVALID_ARGUMENTS, "`name` is taken; choose another"));
        }
        let schedule = match spec.schedule() {
            Ok(schedule) => schedule,
            Err(error) => return Ok(failed(INVALID_ARGUMENTS, error.to_string())),
        };
        let next = match &schedule {
            Some(schedule) => schedule.next(&name, scope.now, scope.now),
            None => Ok(None),
        };
        let next_due = match next {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(failed(INVALID_ARGUMENTS, "its time has passed already")),
            Err(error) => return Ok(failed(INVALID_ARGUMENTS, error.to_string())),
        };
        // The guard counts stored triggers only, so its bound excludes the others of this step.
        let set = sent
            .iter()
            .flat_map(|sent| &sent.events)
            .filter(|(_, event)| matches!(event, Event::TriggerDefined(_)))
            .count();
        let is_new = there.is_none();
        let of_user = self.store().triggers_of_user(caller.user).await?;
        let room = TRIGGERS_OF_USER_MAX.saturating_sub(set) as u64;
        if is_new && of_user >= room {
            return Ok(failed(
                TRIGGERS_FULL,
                format!("a user has at most {TRIGGERS_OF_USER_MAX} triggers; remove one first"),
            ));
        }
        let guards = [
            Guard::from(TriggerGuard::OfUserAtMost {
                user: caller.user.clone(),
                max: room.saturating_sub(1),
            }),
            Guard::from(TriggerGuard::AtMost {
                max: TRIGGERS_MAX.saturating_sub(set + 1) as u64,
            }),
        ];
        let reported = json!({ "set": name, "next_due": next_due.to_string() });
        let defined = TriggerDefined {
            name: name.clone(),
            spec: Box::new(spec),
            origin: TriggerOrigin::Agent {
                agent: caller.agent,
                user: caller.user.clone(),
                untrusted: scope.is_untrusted(),
            },
            next_due: Some(next_due),
            time: scope.now,
        };
        let change = Change {
            tool: TRIGGER_SET,
            name,
            event: Event::TriggerDefined(defined),
            guards: guards.into_iter().filter(|_| is_new).collect(),
            reported,
        };
        Ok(scope.changes_trigger(change, sent))
    }

    async fn remove_trigger(
        &self,
        scope: &mut Scope<'_>,
        caller: TriggerCaller<'_>,
        name: TriggerName,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let there = self.store().trigger(&name).await?;
        if !there.is_some_and(|row| row.removed.is_none() && is_of(&row, caller)) {
            return Ok(failed(
                TRIGGER_UNKNOWN,
                format!("you have set no such trigger for this user; {TRIGGER_LIST} lists them"),
            ));
        }
        let reported = json!({ "removed": name });
        let change = Change {
            tool: TRIGGER_REMOVE,
            name: name.clone(),
            event: Event::TriggerRemoved(TriggerRemoved {
                name,
                by: Some(caller.user.clone()),
                time: scope.now,
            }),
            guards: Vec::new(),
            reported,
        };
        Ok(scope.changes_trigger(change, sent))
    }
}

/// A trigger that is set.
struct Setting<'a> {
    caller: TriggerCaller<'a>,
    name: TriggerName,
    spec: TriggerSpec,
}

/// Returns whether a trigger was set by this agent for this user.
fn is_of(row: &TriggerRow, caller: TriggerCaller<'_>) -> bool {
    match &row.origin {
        TriggerOrigin::Agent { agent, user, .. } => *agent == caller.agent && user == caller.user,
        TriggerOrigin::Configuration | TriggerOrigin::Api { .. } => false,
    }
}

/// Returns whether a trigger was set in a turn that rested on content from outside.
fn is_marked(row: &TriggerRow) -> bool {
    matches!(row.origin, TriggerOrigin::Agent { untrusted, .. } if untrusted)
}

/// Returns a trigger as the agent that set it sees it, by the name that it gave it.
fn view(row: &TriggerRow, prefix: &str) -> Value {
    let name = row.name.as_str();
    let schedule = match &row.spec.on {
        TriggerKind::Schedule(schedule) => json!(schedule),
        TriggerKind::Heartbeat(_)
        | TriggerKind::Webhook(_)
        | TriggerKind::Files(_)
        | TriggerKind::Events(_) => Value::Null,
    };
    json!({
        "name": name.strip_prefix(prefix).unwrap_or(name),
        "message": row.spec.message,
        "schedule": schedule,
        "next_due": row.next_due.map(|due| due.to_string()),
        "paused": row.paused.is_some(),
    })
}

impl Scope<'_> {
    /// Adds the trigger change of a call to the step's commit. Returns the call with its result.
    fn changes_trigger(&mut self, change: Change, sent: &mut Vec<Sent>) -> Resolved {
        let Change {
            tool,
            name,
            event,
            guards,
            reported,
        } = change;
        self.grant(TOOL_CALL, tool);
        let started = &self.driving.run.started;
        sent.push(Sent {
            session: started.session,
            guards,
            events: vec![(Stream::Trigger(name.id()), event)],
            blobs: Vec::new(),
            context: Context::of_run(started, self.now),
        });
        let reported = reported.to_string();
        simply(Performer::Memory { reported }, EffectClass::Idempotent)
    }
}
