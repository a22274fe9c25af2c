//! The configuration that is served, and the earlier ones that turns began with.
//!
//! It is one whole: the catalogue, the limits, the models, the rules on paths. It never changes; a
//! new one replaces it, between two checks of a driver. A turn keeps the code, the tools, the
//! models and the limits that it began with, and uses the present grants. The record of a turn's
//! start names its configuration.

use crate::catalogue::{Catalogue, Entry};
use crate::core::Limits;
use crate::engine::Component;
use crate::paths::PathSettings;
use crate::resolved_config::{ResolvedConfig, ResolvedConfigs};
use domain::basis::ResolvedConfigDigests;
use domain::definition::Definition;
use domain::digest::Digest;
use domain::event::RunStarted;
use domain::persona::Bounds;
use domain::tool::ToolDefinition;
use domain::user::UserId;
use llm::Gateway;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};
use store::{ReadError, Store};

/// Number of replaced catalogues whose code stays in memory. A turn that began before them
/// continues as after a restart.
const EARLIER_MAX: usize = 16;

/// The settings of a host that are served with a catalogue and replaced with it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Limits.
    pub limits: Limits,
    /// The operator's settings on agents by their paths.
    pub paths: PathSettings,
    /// The models.
    pub gateway: Arc<Gateway>,
}

/// A configuration as a whole: a catalogue with its resolved configs, and the settings.
pub(crate) struct Served {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) resolved_configs: ResolvedConfigs,
    pub(crate) settings: Settings,
    /// The digest by which records name it. Users' definitions are not part of it.
    pub(crate) version: Digest,
}

impl Served {
    pub(crate) fn new(catalogue: Catalogue, settings: Settings) -> Arc<Self> {
        let catalogue = Arc::new(catalogue);
        let resolved_configs = ResolvedConfigs::new(catalogue.clone());
        Arc::new(Self {
            version: version(&catalogue, &resolved_configs),
            resolved_configs,
            catalogue,
            settings,
        })
    }

    /// Returns the same with a catalogue that differs only in this user's definitions.
    pub(crate) fn renewed(&self, catalogue: Catalogue, user: &UserId) -> Arc<Self> {
        let catalogue = Arc::new(catalogue);
        Arc::new(Self {
            resolved_configs: self.resolved_configs.renewed(catalogue.clone(), user),
            catalogue,
            settings: self.settings.clone(),
            version: self.version,
        })
    }

    /// Returns whether a run began under this, whatever users have made since.
    fn is_of(&self, started: &RunStarted) -> bool {
        started.configuration == self.version
    }

    /// Returns whether a run that started like this began with these configs and this code.
    fn has_begun(&self, started: &RunStarted) -> bool {
        self.agent_of(started)
            .is_some_and(|entry| entry.component.digest() == started.component)
            && self
                .resolved_configs
                .of(&started.definition)
                .is_some_and(|config| started.resolved_config == config.digests())
    }

    /// Returns the bounds of a run: those that it began with, minus rights that its persona has
    /// lost since.
    pub(crate) fn bounds_of_run(&self, started: &RunStarted) -> Bounds {
        let began_with = Bounds {
            denies: started.denies.clone(),
            permissions: started.permissions.clone(),
        };
        match &started.persona {
            Some(id) => began_with.within(self.catalogue.persona(id).map(|it| &**it)),
            None => began_with,
        }
    }

    /// Returns the component of a run's agent.
    pub(crate) fn agent_of(&self, started: &RunStarted) -> Option<&Arc<Entry>> {
        let definition = self.catalogue.definition(&started.definition)?;
        self.catalogue.entry(&definition.component)
    }
}

/// Returns the digest of a configuration: of its source, of the components' code and grants, of the
/// folders of skills, and of all texts that agents are shown.
fn version(catalogue: &Catalogue, resolved_configs: &ResolvedConfigs) -> Digest {
    let components: BTreeMap<&str, (Digest, Option<Digest>)> = catalogue
        .entries()
        .map(|entry| {
            let grant = resolved_configs.grant(&entry.name);
            let code = entry.component.digest();
            (entry.name.as_str(), (code, grant.map(|grant| grant.digest)))
        })
        .collect();
    let skills: BTreeMap<&str, Digest> = catalogue
        .skill_folders()
        .iter()
        .map(|folder| (folder.id.as_str(), folder.digest()))
        .collect();
    let shown: BTreeMap<&str, ResolvedConfigDigests> = catalogue
        .definitions()
        .filter(|definition| definition.made_by.is_none())
        .filter_map(|definition| {
            let resolved = resolved_configs.of(&definition.agent_id)?;
            Some((definition.agent_id.0.as_str(), resolved.digests()))
        })
        .collect();
    let whole = serde_json::json!({
        "configured": catalogue.configured(), "components": components, "agents": shown,
        "skills": skills,
    });
    Digest::of(whole.to_string().as_bytes())
}

/// The configuration that is served now, and those that it replaced.
pub(crate) struct Serving(RwLock<Generations>);

struct Generations {
    present: Arc<Served>,
    /// The replaced ones, the newest first.
    earlier: VecDeque<Arc<Served>>,
}

/// A tool as a run may call it: with the code that the run began with, under the present grant.
pub(crate) struct Offering {
    /// The present entry of the tool's component, with grant, limits and pin.
    pub(crate) entry: Arc<Entry>,
    /// The code that a new call uses.
    pub(crate) component: Arc<Component>,
    /// The definition of the tool by that code.
    pub(crate) definition: Arc<ToolDefinition>,
    /// The catalogue that the definition is from.
    pub(crate) served: Arc<Served>,
}

impl Offering {
    /// Returns the definition, unless it belongs to the present configuration: an earlier turn has
    /// its tools as they were.
    pub(crate) fn earlier(&self, present: &Arc<Served>) -> Option<&ToolDefinition> {
        (!Arc::ptr_eq(&self.served, present)).then_some(&*self.definition)
    }
}

impl Serving {
    pub(crate) fn new(catalogue: Catalogue, settings: Settings) -> Self {
        Self(RwLock::new(Generations {
            present: Served::new(catalogue, settings),
            earlier: VecDeque::new(),
        }))
    }

    /// Returns the present configuration.
    pub(crate) fn present(&self) -> Arc<Served> {
        let generations = self.0.read().unwrap_or_else(PoisonError::into_inner);
        generations.present.clone()
    }

    /// Replaces the present configuration. Of equal ones only the newest is remembered, so a file
    /// that is changed back and forth displaces no other.
    pub(crate) fn replace(&self, next: Arc<Served>) {
        let mut generations = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = std::mem::replace(&mut generations.present, next);
        let present = generations.present.clone();
        // Definitions that turns in progress need are resolved again.
        replaced.resolved_configs.forget_made();
        generations.earlier.push_front(replaced);
        let mut seen = vec![present.version];
        generations.earlier.retain(|served| {
            let is_new = !seen.contains(&served.version);
            seen.push(served.version);
            is_new
        });
        generations.earlier.truncate(EARLIER_MAX);
    }

    /// Replaces the catalogue by one that differs only in users' definitions. Turns that began with
    /// the present one find all they need in the next.
    pub(crate) fn renew(&self, next: Arc<Served>) {
        let mut generations = self.0.write().unwrap_or_else(PoisonError::into_inner);
        generations.present = next;
    }

    /// Returns the configuration that was served when a run began. That is the present one if the
    /// run began before this process, or before all remembered ones.
    pub(crate) fn of_run(&self, started: &RunStarted) -> Arc<Served> {
        let generations = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = std::iter::once(&generations.present).chain(&generations.earlier);
        all.clone()
            .find(|served| served.is_of(started))
            .or_else(|| all.find(|served| served.has_begun(started)))
            .unwrap_or(&generations.present)
            .clone()
    }

    /// Returns the limits of a run: those that it began with, lowered to those in force now.
    pub(crate) fn limits_of_run(&self, started: &RunStarted) -> Limits {
        let began_with = self.of_run(started).settings.limits;
        began_with.within(&self.present().settings.limits)
    }

    /// Returns the window of a model for a run's agent: the smaller of that at its beginning and
    /// the one configured now.
    pub(crate) fn window_of_run(&self, started: &RunStarted, of_model: u64) -> u64 {
        let definitions = self.definitions_of_run(started);
        let all = definitions.iter();
        all.fold(of_model, |window, definition| definition.window(window))
    }

    /// Returns whether a run's models are asked for streams, and its calls are made side by side.
    pub(crate) fn streams(&self, started: &RunStarted) -> bool {
        let definitions = self.definitions_of_run(started);
        definitions.iter().all(|it| it.enable_streaming)
    }

    /// Returns the milliseconds without progress after which a run ends, the lower of both values.
    pub(crate) fn message_timeout_ms_of_run(&self, started: &RunStarted) -> u64 {
        let of = |served: &Arc<Served>| {
            let definition = served.catalogue.definition(&started.definition)?;
            let silence_ms_max = served.settings.gateway.silence_ms_max();
            Some(definition.message_timeout_ms_beside(silence_ms_max))
        };
        let all = [self.of_run(started), self.present()];
        all.iter().filter_map(of).min().unwrap_or(u64::MAX)
    }

    /// Returns the definition of a run's agent as it was when the run began, and as it is now, if
    /// it exists.
    fn definitions_of_run(&self, started: &RunStarted) -> Vec<Arc<Definition>> {
        [self.of_run(started), self.present()]
            .into_iter()
            .filter_map(|served| served.catalogue.definition(&started.definition).cloned())
            .collect()
    }

    /// Returns the models for a run's model calls: those that it began with. If that model or one
    /// of its fallbacks was removed since, the present ones.
    pub(crate) fn gateway_of_run(&self, started: &RunStarted, model: Option<&str>) -> Arc<Gateway> {
        let began_with = self.of_run(started).settings.gateway.clone();
        let present = self.present().settings.gateway.clone();
        if Arc::ptr_eq(&began_with, &present) {
            return present;
        }
        let is_taken_away = began_with.resolve(model).is_ok_and(|route| {
            let mut asked = std::iter::once(&route.alias).chain(&route.fallbacks);
            !asked.all(|alias| present.has(alias))
        });
        if is_taken_away { present } else { began_with }
    }

    /// Returns whether a run uses the default model, and the one that was the default when it began
    /// was removed since. A new default does not apply to it.
    pub(crate) fn has_lost_default(&self, started: &RunStarted, model: Option<&str>) -> bool {
        let began_with = self.of_run(started).settings.gateway.clone();
        let default = began_with.resolve(None).ok().filter(|_| model.is_none());
        default.is_some_and(|route| !self.present().settings.gateway.has(&route.alias))
    }

    /// Returns the version of a component's code, by its manifest. None for code that is neither
    /// served nor remembered.
    pub(crate) fn version(&self, component: &str, code: Digest) -> Option<String> {
        let generations = self.0.read().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(&generations.present)
            .chain(&generations.earlier)
            .filter_map(|served| served.catalogue.entry(component))
            .find(|entry| entry.component.digest() == code)
            .and_then(|entry| entry.component.version().map(str::to_owned))
    }

    /// Returns the resolved config that a run began with. None if it is no longer stored.
    pub(crate) async fn config_of_run(
        &self,
        store: &Store,
        started: &RunStarted,
    ) -> Result<Option<Arc<ResolvedConfig>>, ReadError> {
        let served = self.of_run(started);
        served.resolved_configs.of_run(store, started).await
    }

    /// Returns the code of a run's agent at the beginning of the run, if other code is served now.
    /// None if only the present code may run.
    pub(crate) fn earlier_agent(
        &self,
        started: &RunStarted,
        present: &Entry,
    ) -> Option<Arc<Component>> {
        let served = self.of_run(started);
        let began_with = served.agent_of(started)?;
        is_earlier(began_with, present)
            .then(|| began_with.component.in_place_of(&present.component))
    }

    /// Returns a tool of a component as a run may call it, while this is served.
    pub(crate) fn tool(
        &self,
        present: &Arc<Served>,
        started: &RunStarted,
        name: &str,
    ) -> Option<Offering> {
        let served = self.of_run(started);
        if !Arc::ptr_eq(&served, present)
            && let Some((began_with, definition)) = served.catalogue.tool(name)
            && let Some(entry) = present.catalogue.entry(&began_with.name)
            && is_earlier(began_with, entry)
        {
            return Some(Offering {
                entry: entry.clone(),
                component: began_with.component.in_place_of(&entry.component),
                definition: definition.clone(),
                served: served.clone(),
            });
        }
        let (entry, definition) = present.catalogue.tool(name)?;
        Some(Offering {
            entry: entry.clone(),
            component: entry.component.clone(),
            definition: definition.clone(),
            served: present.clone(),
        })
    }
}

/// Returns whether an entry has other code than the present one, and that code may still run.
fn is_earlier(began_with: &Entry, present: &Entry) -> bool {
    began_with.name == present.name
        && began_with.component.digest() != present.component.digest()
        && !present.is_pinned
}
