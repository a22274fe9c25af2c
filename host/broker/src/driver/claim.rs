//! Claiming an input: a run begins.

use super::{Driver, Driving, Trouble};
use crate::core::fresh;
use domain::event::{InputAccepted, RunStarted, Source};
use domain::id::SessionId;
use domain::run::Run;
use std::collections::{HashMap, HashSet};
use store::{SessionRow, SessionStatus};

impl Driver {
    /// Begins a run over an input. Nothing is stored yet: the start goes into the first step's commit.
    pub(super) async fn start(&mut self, input: InputAccepted, session: SessionRow) -> Result<(), Trouble> {
        let now = self.core.now();
        let agent = self.core.store.agent(session.agent).await?.ok_or_else(|| missing(self.session))?;
        if session.status != SessionStatus::Open {
            return self.bury(&input, "the session has ended".to_owned()).await;
        }
        let Some(definition) = self.core.catalogue.definition(&agent.agent.definition) else {
            let reason = format!("the definition `{}` is no longer configured", agent.agent.definition);
            return self.bury(&input, reason).await;
        };
        let Some(entry) = self.core.catalogue.entry(&definition.component) else {
            let reason = format!("the component `{}` is no longer configured", definition.component);
            return self.bury(&input, reason).await;
        };
        let (reply_to, deadline) = match &input.source {
            Source::Dispatch { reply_to, deadline, .. } => (*reply_to, *deadline),
            Source::Api | Source::Opening | Source::LateReply { .. } | Source::Reminder { .. } => (None, None),
        };
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
            limits: definition.limits,
            deadline,
            reply_to,
            depth: input.source.depth(),
            hops: input.source.hops(),
            priority: input.source.priority(),
            denies: agent.agent.denies.clone(),
            user_id: agent.agent.owner_user_id.clone(),
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
        });
        self.stale = false;
        Ok(())
    }

    pub(super) async fn session_row(&self) -> Result<SessionRow, Trouble> {
        self.core.store.session(self.session).await?.ok_or_else(|| missing(self.session))
    }
}

fn missing(session: SessionId) -> Trouble {
    Trouble::Missing(format!("session {session}"))
}
