//! A step's view, frozen: all data that the step gets, under the digests in its record.

use super::context::SessionContext;
use super::driving::Driving;
use crate::history::{SeenHistory, seen_by};
use crate::resolved_config::{ResolvedConfig, Sealed};
use crate::shared::DriverError;
use crate::view::{LastRead, StepView};
use domain::basis::{Basis, Documents, Scene};
use domain::digest::Digest;
use domain::operation::Settlement;
use domain::role::AgentRole;
use domain::run::intake::Intake;
use domain::time::Timestamp;
use runtime::ViewStatic;
use std::sync::Arc;
use store::AgentRow;

/// The end of a run whose session's state is not stored any more.
const STATE_GONE: (&str, &str) = (
    "state-gone",
    "the session's state is missing: the data folder was damaged; `agent-host verify` says more",
);
/// The end of a run whose session's or agent's settings are not stored any more.
const SETTINGS_GONE: (&str, &str) = (
    "settings-gone",
    "what the session was opened with, or the agent's own settings, are gone",
);

/// A step's view, frozen, with the blobs that its basis names.
pub(super) struct Frozen {
    pub(super) basis: Basis,
    pub(super) view: Arc<StepView>,
    pub(super) blobs: Vec<Sealed>,
}

/// The part of a step's view that belongs to its agent and its session alone.
pub(super) struct Own {
    /// The code that takes the step.
    component: Digest,
    /// The session's state.
    state: Vec<u8>,
    /// The prompt and the settings: the definition's, with the overrides over them.
    settings: Sealed,
    /// The configuration that the session was opened with.
    session_config: Option<Sealed>,
    /// The agent's ended structured sessions that all readers of the turn may see.
    history: Option<SeenHistory>,
    /// The user's role with the agent.
    pub(super) role: Option<AgentRole>,
    /// The prompt and settings that are the agent's, the session's or the persona's own.
    overrides: Option<Sealed>,
    /// Number of files of the session.
    files: u64,
}

/// The facts that a step's own part of the view is read for.
#[derive(Clone, Copy)]
pub(super) struct OwnOf<'a> {
    pub(super) driving: &'a Driving,
    pub(super) agent: &'a AgentRow,
    /// The resolved config that the run began with.
    pub(super) config: &'a ResolvedConfig,
    /// The code that takes the step.
    pub(super) code: Digest,
}

impl Own {
    /// Returns whether the history depends on content from outside.
    pub(super) fn history_is_untrusted(&self) -> bool {
        self.history.as_ref().is_some_and(|seen| seen.untrusted)
    }

    /// Returns its blobs that a basis names.
    fn into_blobs(self) -> impl Iterator<Item = Sealed> {
        let some = self
            .session_config
            .into_iter()
            .chain(self.history.map(|seen| seen.sealed))
            .chain(self.overrides);
        std::iter::once(self.settings).chain(some)
    }
}

/// The configuration of a session that was opened without one.
pub(crate) const NOTHING: &str = "{}";
/// The empty history.
pub(crate) const NONE_BEFORE: &str = "[]";

impl SessionContext {
    /// Reads the data of a run's agent and session alone, for a step of this component.
    ///
    /// The inner error names an object that is no longer stored.
    pub(super) async fn own(
        &self,
        of: OwnOf<'_>,
        begun_with: Option<Sealed>,
    ) -> Result<Result<Own, (&'static str, &'static str)>, DriverError> {
        let Some(state) = self.session_state(of.driving.run.session_state).await? else {
            return Ok(Err(STATE_GONE));
        };
        let started = &of.driving.run.started;
        let agent = of.agent.agent.id;
        let overrides = match started.overrides {
            None => None,
            Some(digest) => match begun_with.filter(|sealed| sealed.digest == digest) {
                Some(sealed) => Some(sealed),
                None => match self.store().blob(digest).await? {
                    Some(bytes) => Some(Sealed {
                        digest,
                        bytes: Arc::new(bytes),
                    }),
                    None => return Ok(Err(SETTINGS_GONE)),
                },
            },
        };
        let settings = match &overrides {
            None => of.config.settings.clone(),
            Some(sealed) => match serde_json::from_slice(&sealed.bytes) {
                Ok(overrides) => of.config.settings_with(&overrides),
                Err(_) => return Ok(Err(SETTINGS_GONE)),
            },
        };
        let session_config = match started.session_config {
            None => None,
            Some(digest) => match self.store().blob(digest).await? {
                Some(bytes) => Some(Sealed {
                    digest,
                    bytes: Arc::new(bytes),
                }),
                None => return Ok(Err(SETTINGS_GONE)),
            },
        };
        let role = self.store().role(&started.user_id, agent).await?;
        let history = seen_by(self.store(), started, role).await?;
        let files = self.store().file_count(started.session).await?;
        Ok(Ok(Own {
            component: of.code,
            state,
            settings,
            session_config,
            history,
            role,
            overrides,
            files,
        }))
    }

    /// Returns the session's state. None if it should be stored but is missing.
    async fn session_state(&self, digest: Digest) -> Result<Option<Vec<u8>>, DriverError> {
        if digest == Digest::of(store::EMPTY_STATE) {
            return Ok(Some(store::EMPTY_STATE.to_vec()));
        }
        Ok(self.store().blob(digest).await?)
    }

    /// Freezes the view of a step.
    pub(super) fn freeze(
        &self,
        of: OwnOf<'_>,
        intake: &Intake,
        own: Own,
        now: Timestamp,
    ) -> Frozen {
        let run = &of.driving.run;
        let agent = &of.agent.agent;
        let user = &run.started.user_id;
        let scene = Scene {
            agent_id: run.started.agent.to_string(),
            path: agent.path.to_string(),
            session_type: run.started.session_type.clone(),
            user: user.clone(),
        };
        let sealed_scene = Sealed::json(&scene);
        let preferences = Sealed::json(&agent.preferences_for(user));
        let history = own.history.as_ref().map(|seen| &seen.sealed);
        let has_own = agent.user_preferences.contains_key(user);
        let shared = has_own.then(|| Sealed::json(&agent.preferences));
        let head = intake.heard.last().map_or(run.head(), |message| message.id);
        let documents = Documents {
            component: own.component,
            scene: sealed_scene.digest,
            settings: own.settings.digest,
            tools: of.config.tools.digest,
            peers: of.config.peers.digest,
            preferences: preferences.digest,
            shared_preferences: shared.as_ref().map(|sealed| sealed.digest),
            session_config: own.session_config.as_ref().map(|sealed| sealed.digest),
            history: history.map(|sealed| sealed.digest),
        };
        let basis = Basis {
            base: run.started.base,
            head,
            documents,
            session_state: run.session_state,
            files: own.files,
            now,
            left: run.limits_left(),
            seed: Basis::seed(run.started.run, run.step),
        };
        let fixed = ViewStatic {
            agent_id: scene.agent_id,
            path: scene.path,
            user: scene.user.into(),
            session_type: scene.session_type,
            session_config: text_or(own.session_config.as_ref(), NOTHING),
            history: text_or(history, NONE_BEFORE),
            settings: own.settings.text(),
            preferences: preferences.text(),
            shared_preferences: shared.as_ref().unwrap_or(&preferences).text(),
            session_state: String::from_utf8_lossy(&own.state).into_owned(),
            head: (head > 0).then_some(head),
            tools: of.config.tool_list.clone(),
            peers: of.config.peer_list.clone(),
            memo: run.memo.clone(),
        };
        let view = Arc::new(self.view(of.driving, intake, own.files, fixed));
        let blobs = [sealed_scene, preferences]
            .into_iter()
            .chain(own.into_blobs())
            .chain(shared)
            .chain(of.config.sealed())
            .collect();
        Frozen { basis, view, blobs }
    }

    /// Returns the view of a step, from the run's data in memory and the stored data.
    fn view(&self, driving: &Driving, intake: &Intake, files: u64, fixed: ViewStatic) -> StepView {
        let run = &driving.run;
        StepView {
            fixed,
            store: self.store().clone(),
            base: run.started.base,
            base_message: run.started.base_message,
            own: run
                .messages
                .iter()
                .cloned()
                .chain(intake.heard.iter().cloned().map(Arc::new))
                .collect(),
            shown: run
                .shown
                .iter()
                .copied()
                .chain(intake.settled.iter().flat_map(Settlement::blobs))
                .collect(),
            fresh: driving
                .blobs()
                .into_iter()
                .map(|blob| (Digest::of(&blob), blob))
                .collect(),
            files: (run.started.session, files),
            last_read: LastRead::default(),
        }
    }
}

/// Returns the text of a document, or its default if there is no document.
fn text_or(sealed: Option<&Sealed>, without: &str) -> String {
    sealed.map_or_else(|| without.to_owned(), Sealed::text)
}
