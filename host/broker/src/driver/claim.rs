//! The beginning of a run: its inputs are claimed.

use super::budget::{Begins, keep_of_one_message, of_earlier_work};
use super::context::SessionContext;
use super::driving::Driving;
use super::hinting::ToHint;
use super::phase::{Phase, Starting};
use super::queue::Opening;
use super::sectioning::ToSection;
use super::state::Driver;
use crate::catalogue::Entry;
use crate::fresh;
use crate::prompting::{GENERATION, own_base};
use crate::resolved_config::Sealed;
use crate::shared::DriverError;
use domain::account::Accounts;
use domain::agent::Agent;
use domain::authority::{Denies, Permissions};
use domain::basis::Overrides;
use domain::budget::Budget;
use domain::definition::Definition;
use domain::delegate::Priority;
use domain::digest::Digest;
use domain::dispatch::Depth;
use domain::event::{InputAccepted, RunStarted, Source};
use domain::hints::Hint;
use domain::id::TurnId;
use domain::operation::ReplyTo;
use domain::persona::Persona;
use domain::queue::OverflowNotice;
use domain::sampling::{GenerationSettings, SessionGeneration};
use domain::time::Timestamp;
use domain::user::UserId;
use serde::Deserialize;
use serde_json::Value;
use store::{AgentRow, SessionRow, SessionStatus};

impl Driver {
    /// Begins a run over inputs. Nothing is stored yet: the start is part of the first step's
    /// commit.
    pub(super) async fn start(
        &mut self,
        mut opening: Opening,
        session: SessionRow,
    ) -> Result<(), DriverError> {
        keep_of_one_message(&mut opening.inputs);
        let agent = self.context.store().agent(session.agent).await?;
        let agent = agent.ok_or_else(|| self.context.missing())?;
        let led = match self.context.leads(&agent, &session) {
            Ok(led) => led,
            Err(reason) => return self.bury(&opening.inputs, reason).await,
        };
        let config = self.context.opened_with(&session).await?;
        let overrides = overrides(&agent.agent, &led, config.as_ref());
        let generation = config
            .as_ref()
            .map(of_session)
            .unwrap_or_default()
            .over(&led.definition.generation);
        let Begins {
            accounts,
            left,
            guard,
        } = match Box::pin(self.context.begins_with(&opening.inputs)).await? {
            Ok(begins) => begins,
            Err(reason) => return self.bury(&opening.inputs, reason).await,
        };
        let Opening {
            inputs,
            collected,
            notice,
            mut begins_under,
        } = opening;
        begins_under.extend(guard);
        let to_hint = ToHint {
            session: &session,
            definition: led.definition,
            inputs: &inputs,
        };
        let hints = self.context.hints(to_hint, &mut self.hinted).await?;
        let claim = Claim {
            inputs: &inputs,
            hints,
            collected,
            notice,
            accounts,
            left,
            overrides: overrides.as_ref().map(|sealed| sealed.digest),
            generation,
        };
        let started = self.context.started(&session, &agent, &led, claim).await?;
        let to_section = ToSection {
            session: &session,
            definition: led.definition,
            started,
        };
        let with = self.context.with_sections(to_section, &mut self.sectioned);
        let begun = Box::pin(with).await;
        self.phase = Phase::starting(Starting {
            driving: Driving::new(begun.run, begun.entries).heard_by(&inputs),
            inputs,
            agent: Some(agent),
            overrides,
            sections: begun.sections,
            begins_under,
        });
        self.stale = false;
        Ok(())
    }
}

/// The claim with which a run begins.
struct Claim<'a> {
    inputs: &'a [InputAccepted],
    hints: Vec<Hint>,
    /// True if the inputs are one message.
    collected: bool,
    notice: Option<OverflowNotice>,
    accounts: Accounts,
    /// The remaining budget of the accounts.
    left: Budget,
    overrides: Option<Digest>,
    generation: GenerationSettings,
}

impl SessionContext {
    /// Returns the start of a run over its inputs.
    async fn started(
        &self,
        session: &SessionRow,
        agent: &AgentRow,
        led: &Led<'_>,
        claim: Claim<'_>,
    ) -> Result<RunStarted, DriverError> {
        let bare = self.bare_start(session, agent, led).await?;
        let begun = Begun::with(claim.inputs);
        let persona = led.persona;
        let own = persona.map_or_else(
            || agent.agent.denies.clone(),
            |persona| persona.denies(&agent.agent.denies),
        );
        let permissions = persona
            .map(Persona::permissions)
            .unwrap_or_default()
            .both(&agent.agent.permissions)
            .both(&begun.permissions);
        let user_id = begun.user_id.unwrap_or_else(|| session.user_id.clone());
        let paths = &self.served.settings.paths;
        let by_path = paths.permissions(
            &user_id,
            agent.agent.path.as_str(),
            agent.kind,
            led.definition,
        );
        let permissions = permissions.both(&by_path);
        let hints = claim.hints;
        Ok(RunStarted {
            claimed: claim.inputs.iter().map(|input| input.input).collect(),
            collected: claim.collected,
            overflow: claim.notice,
            limits: bare.limits.within(begun.budget).within(claim.left),
            accounts: claim.accounts,
            deadline: begun.deadline,
            reply_to: begun.reply_to,
            depth: begun.depth.call,
            spawn_depth: begun.depth.spawn,
            hops: begun.hops,
            priority: begun.priority,
            denies: own.both(&begun.denies),
            permissions,
            untrusted: agent.agent.remembers_untrusted
                || bare.untrusted
                || hints.iter().any(|hint| hint.untrusted),
            hints,
            user_id,
            overrides: claim.overrides,
            generation: claim.generation,
            model: self.model(begun.model.as_ref(), session, agent, led.definition),
            ..bare
        })
    }

    /// Returns the start of a run that claims nothing and is given nothing beyond its session.
    pub(super) async fn bare_start(
        &self,
        session: &SessionRow,
        agent: &AgentRow,
        led: &Led<'_>,
    ) -> Result<RunStarted, DriverError> {
        let definition = led.definition;
        Ok(RunStarted {
            session_type: session.session_type.clone(),
            resolved_config: self.served.resolved_configs.resolved(definition).digests(),
            configuration: self.served.version,
            persona: session.persona.clone(),
            base: session.head,
            base_message: session.head_message,
            revision: session.revision,
            session_state: session.state,
            limits: definition.limits,
            denies: agent.agent.denies.clone(),
            untrusted: self.thread_is_untrusted(session.head).await?,
            user_id: session.user_id.clone(),
            session_config: session.config,
            session_expires_at: session.expires_at,
            compacted: self.compacted(session.head).await?,
            ..RunStarted::of(
                fresh::run(),
                self.session,
                session.agent,
                agent.agent.definition.clone(),
                led.entry.component.digest(),
                self.core.now(),
            )
        })
    }

    /// Returns the definition, component and persona that lead a turn of a session, or why none
    /// can.
    pub(super) fn leads(&self, agent: &AgentRow, session: &SessionRow) -> Result<Led<'_>, String> {
        let catalogue = &self.served.catalogue;
        if session.status != SessionStatus::Open {
            return Err("the session has ended".to_owned());
        }
        if !agent.active {
            return Err("the agent is archived".to_owned());
        }
        let definition = catalogue.definition(&agent.agent.definition);
        let definition = definition.ok_or_else(|| {
            format!(
                "the definition `{}` is no longer configured",
                agent.agent.definition
            )
        })?;
        let entry = catalogue.entry(&definition.component);
        let entry = entry.ok_or_else(|| {
            format!(
                "the component `{}` is no longer configured",
                definition.component
            )
        })?;
        let persona = match &session.persona {
            None => None,
            Some(id) => match catalogue.persona(id) {
                Some(persona) if persona.admits(&session.user_id) => Some(&**persona),
                Some(_) => {
                    return Err(format!(
                        "the persona `{id}` is not for `{}`",
                        session.user_id
                    ));
                }
                None => return Err(format!("the persona `{id}` is no longer configured")),
            },
        };
        Ok(Led {
            definition,
            entry,
            persona,
        })
    }

    /// Returns the configuration with which a session was opened; none if there was none.
    async fn opened_with(&self, session: &SessionRow) -> Result<Option<Value>, DriverError> {
        let Some(digest) = session.config else {
            return Ok(None);
        };
        let bytes = self.store().blob(digest).await?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Returns the model of a turn; none for the host's own.
    ///
    /// The first that names one decides: the message, the session, the operator's settings on the
    /// agent ([`PathSettings::model_of`](crate::PathSettings::model_of)).
    pub(super) fn model(
        &self,
        message: Option<&String>,
        session: &SessionRow,
        agent: &AgentRow,
        definition: &Definition,
    ) -> Option<String> {
        let of_agent = || self.served.settings.paths.model_of(agent.kind, definition);
        message
            .or(session.model.as_ref())
            .map(String::as_str)
            .or_else(of_agent)
            .map(str::to_owned)
    }

    /// Returns whether any part of a thread depends on content from outside.
    pub(super) async fn thread_is_untrusted(
        &self,
        head: Option<TurnId>,
    ) -> Result<bool, DriverError> {
        match head {
            Some(head) => Ok(self.store().is_untrusted(head).await?),
            None => Ok(false),
        }
    }
}

/// Returns the settings of replies in the configuration with which a session was opened. They were
/// checked then.
fn of_session(config: &Value) -> GenerationSettings {
    config
        .get(GENERATION)
        .and_then(|settings| SessionGeneration::deserialize(settings).ok())
        .unwrap_or_default()
        .into()
}

/// Returns the prompt and settings of the agent, the session or the persona, sealed. None if there
/// are none.
fn overrides(agent: &Agent, led: &Led<'_>, config: Option<&Value>) -> Option<Sealed> {
    let system_prompt = own_base(agent, led.definition, led.persona, config);
    let settings = agent.settings.clone();
    (system_prompt.is_some() || !settings.is_empty()).then(|| {
        Sealed::json(&Overrides {
            system_prompt,
            settings,
        })
    })
}

/// The definition, the component and the persona that lead a turn.
pub(super) struct Led<'a> {
    pub(super) definition: &'a Definition,
    pub(super) entry: &'a Entry,
    /// The persona that its session is led as.
    pub(super) persona: Option<&'a Persona>,
}

/// The properties that a run takes over from its inputs.
struct Begun {
    reply_to: Option<ReplyTo>,
    deadline: Option<Timestamp>,
    depth: Depth,
    hops: u32,
    /// The priority of handed-over work. A message's priority only counts within its session's
    /// queue, so that it puts no session before another's.
    priority: Priority,
    budget: Budget,
    /// The denials of those that handed the work over. They hold for the run, too.
    denies: Denies,
    /// The permissions of those that handed the work over. The run is limited to them.
    permissions: Permissions,
    /// The user of the first input.
    user_id: Option<UserId>,
    /// The model of the last input that names one.
    model: Option<String>,
}

impl Begun {
    fn with(inputs: &[InputAccepted]) -> Self {
        // Handed-over work begins a run alone.
        let reply_to = match inputs.first().map(|input| &input.source) {
            Some(Source::Dispatch { reply_to, .. }) => *reply_to,
            Some(
                Source::Api
                | Source::Trigger { .. }
                | Source::Connector { .. }
                | Source::Opening
                | Source::LateReply { .. }
                | Source::Reminder { .. },
            )
            | None => None,
        };
        let deadline = of_earlier_work(inputs).and_then(|input| input.source.deadline());
        let denied = inputs.iter().filter_map(|input| input.source.denies());
        let denies = denied.fold(Denies::default(), |all, denies| all.both(denies));
        let permitted = inputs.iter().filter_map(|input| input.source.permissions());
        let permissions = permitted.fold(Permissions::default(), |all, permissions| {
            all.both(permissions)
        });
        let depths = || inputs.iter().map(|input| input.source.depth());
        Self {
            reply_to,
            deadline,
            depth: Depth {
                call: depths().map(|depth| depth.call).max().unwrap_or_default(),
                spawn: depths().map(|depth| depth.spawn).max().unwrap_or_default(),
            },
            hops: inputs
                .iter()
                .map(|input| input.source.hops())
                .max()
                .unwrap_or_default(),
            priority: inputs
                .iter()
                .map(|input| input.source.priority())
                .max()
                .unwrap_or_default(),
            budget: inputs
                .first()
                .map(|input| input.source.budget())
                .unwrap_or_default(),
            denies,
            permissions,
            user_id: inputs.first().map(|input| input.user_id.clone()),
            model: inputs.iter().rev().find_map(|input| input.model.clone()),
        }
    }
}
