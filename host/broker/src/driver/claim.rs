//! Claiming an input: a run begins.

use super::{Driver, Driving, Trouble};
use crate::catalogue::Entry;
use crate::command::SYSTEM_PROMPT;
use crate::core::fresh;
use crate::outfit::Sealed;
use domain::agent::Agent;
use domain::basis::Overrides;
use domain::definition::Definition;
use domain::event::{InputAccepted, RunStarted, Source};
use domain::id::SessionId;
use domain::persona::Persona;
use domain::run::Run;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use store::{AgentRow, SessionRow, SessionStatus};

impl Driver {
    /// Begins a run over an input. Nothing is stored yet: the start goes into the first step's commit.
    pub(super) async fn start(&mut self, input: InputAccepted, session: SessionRow) -> Result<(), Trouble> {
        let now = self.core.now();
        let agent = self.core.store.agent(session.agent).await?.ok_or_else(|| missing(self.session))?;
        let Led { definition, entry, persona } = match self.leads(&agent, &session) {
            Ok(led) => led,
            Err(reason) => return self.bury(&input, reason).await,
        };
        let (reply_to, deadline) = match &input.source {
            Source::Dispatch { reply_to, deadline, .. } => (*reply_to, *deadline),
            Source::Api | Source::Opening | Source::LateReply { .. } | Source::Reminder { .. } => (None, None),
        };
        let overrides = self.overrides(&agent.agent, &session, definition, persona).await?;
        let started = RunStarted {
            run: fresh::run(),
            session: self.session,
            agent: session.agent,
            definition: agent.agent.definition.clone(),
            session_type: session.session_type.clone(),
            component: entry.component.digest(),
            outfit: self.core.outfits.of(&definition.agent_id).map(|outfit| outfit.digests()),
            base: session.head,
            base_message: session.head_message,
            revision: session.revision,
            session_state: session.state,
            claimed: vec![input.input],
            collected: false,
            overflow: None,
            limits: definition.limits,
            deadline,
            reply_to,
            depth: input.source.depth(),
            hops: input.source.hops(),
            priority: input.source.priority(),
            denies: persona.map_or_else(|| agent.agent.denies.clone(), |persona| persona.denies(&agent.agent.denies)),
            permissions: persona.map(Persona::permissions).unwrap_or_default(),
            user_id: input.user_id.clone().unwrap_or_else(|| session.user_id.clone()),
            session_config: session.config,
            session_expires_at: session.expires_at,
            overrides: overrides.as_ref().map(|sealed| sealed.digest),
            model: input.model.clone().or(session.model).or_else(|| definition.model.clone()),
            time: now,
        };
        self.driving = Some(Driving {
            run: Run::begin(started),
            version: 0,
            arrived: Vec::new(),
            busy: HashMap::new(),
            entries: Vec::new(),
            continued: Vec::new(),
            opening: vec![input],
            agent: Some(agent),
            wanted: false,
            rests_until: None,
            waits_told: Vec::new(),
            put_off: HashSet::new(),
            overrides,
        });
        self.stale = false;
        Ok(())
    }

    /// What leads a turn of a session; or why nothing can.
    fn leads(&self, agent: &AgentRow, session: &SessionRow) -> Result<Led<'_>, String> {
        let catalogue = &self.core.catalogue;
        if session.status != SessionStatus::Open {
            return Err("the session has ended".to_owned());
        }
        if !agent.active {
            return Err("the agent is archived".to_owned());
        }
        let definition = catalogue.definition(&agent.agent.definition);
        let definition = definition.ok_or_else(|| format!("the definition `{}` is no longer configured", agent.agent.definition))?;
        let entry = catalogue.entry(&definition.component);
        let entry = entry.ok_or_else(|| format!("the component `{}` is no longer configured", definition.component))?;
        let persona = match &session.persona {
            None => None,
            Some(id) => match catalogue.persona(id) {
                Some(persona) if persona.admits(&session.user_id) => Some(&**persona),
                Some(_) => return Err(format!("the persona `{id}` is not for `{}`", session.user_id)),
                None => return Err(format!("the persona `{id}` is no longer configured")),
            },
        };
        Ok(Led { definition, entry, persona })
    }

    /// What of its prompt and settings is an agent's own, its session's or its persona's, sealed; none when nothing is.
    async fn overrides(
        &self,
        agent: &Agent,
        session: &SessionRow,
        definition: &Definition,
        persona: Option<&Persona>,
    ) -> Result<Option<Sealed>, Trouble> {
        let of_session = match session.config {
            None => None,
            Some(digest) => {
                let config: Option<Value> = self.core.store.blob(digest).await?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                config.and_then(|config| config.get(SYSTEM_PROMPT)?.as_str().map(str::to_owned))
            }
        };
        let system_prompt = of_session.or_else(|| agent.system_prompt_override.clone());
        let system_prompt = match persona {
            None => system_prompt,
            Some(persona) => Some(persona.prompt(&system_prompt.unwrap_or_else(|| definition.prompt()))),
        };
        let settings = agent.settings.clone();
        Ok((system_prompt.is_some() || !settings.is_empty()).then(|| Sealed::json(&Overrides { system_prompt, settings })))
    }

    pub(super) async fn session_row(&self) -> Result<SessionRow, Trouble> {
        self.core.store.session(self.session).await?.ok_or_else(|| missing(self.session))
    }
}

/// What leads a turn.
struct Led<'a> {
    definition: &'a Definition,
    entry: &'a Entry,
    /// The persona that its session is led as.
    persona: Option<&'a Persona>,
}

fn missing(session: SessionId) -> Trouble {
    Trouble::Missing(format!("session {session}"))
}
