//! The catalogue that is served, and the earlier ones that turns began with.
//!
//! A catalogue never changes: another one takes its place as a whole, between two looks of a
//! driver. A turn ends with the code and the tools that it began with, and may do what is granted
//! now. Which catalogue a turn began with follows from what its start records, so nothing else has
//! to be remembered of it.

use crate::catalogue::{Catalogue, Entry};
use crate::engine::Component;
use crate::resolved_config::{ResolvedConfig, ResolvedConfigs};
use domain::digest::Digest;
use domain::event::RunStarted;
use domain::tool::ToolDefinition;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};
use store::{ReadError, Store};

/// Number of replaced catalogues whose code stays in memory. A turn that began before them goes on
/// as it would after a restart.
const EARLIER_MAX: usize = 16;

/// A catalogue with the resolved configs that follow from it.
pub(crate) struct Served {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) resolved_configs: ResolvedConfigs,
}

impl Served {
    pub(crate) fn new(catalogue: Catalogue) -> Arc<Self> {
        Arc::new(Self {
            resolved_configs: ResolvedConfigs::new(&catalogue),
            catalogue: Arc::new(catalogue),
        })
    }

    /// Returns whether a run that started like this began with these configs and this code.
    fn has_begun(&self, started: &RunStarted) -> bool {
        let config = self.resolved_configs.of(&started.definition);
        config.is_some_and(|config| started.resolved_config == Some(config.digests()))
            && self
                .agent_of(started)
                .is_some_and(|entry| entry.component.digest() == started.component)
    }

    /// Returns the component of a run's agent.
    pub(crate) fn agent_of(&self, started: &RunStarted) -> Option<&Arc<Entry>> {
        let definition = self.catalogue.definition(&started.definition)?;
        self.catalogue.entry(&definition.component)
    }
}

/// The catalogue that is served now, and those that it replaced.
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
    /// The code that a new call is meant for.
    pub(crate) component: Arc<Component>,
    /// The definition of the tool by that code.
    pub(crate) definition: Arc<ToolDefinition>,
    /// The catalogue that the definition is from.
    pub(crate) served: Arc<Served>,
}

impl Offering {
    /// Returns the definition, if it is not from what is served now: a turn from before has its
    /// tools as they were.
    pub(crate) fn earlier(&self, present: &Arc<Served>) -> Option<&ToolDefinition> {
        (!Arc::ptr_eq(&self.served, present)).then_some(&*self.definition)
    }
}

impl Serving {
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self(RwLock::new(Generations {
            present: Served::new(catalogue),
            earlier: VecDeque::new(),
        }))
    }

    /// Returns what is served now.
    pub(crate) fn present(&self) -> Arc<Served> {
        let generations = self.0.read().unwrap_or_else(PoisonError::into_inner);
        generations.present.clone()
    }

    /// Puts another catalogue in the place of the present one.
    pub(crate) fn replace(&self, next: Arc<Served>) {
        let mut generations = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = std::mem::replace(&mut generations.present, next);
        generations.earlier.push_front(replaced);
        generations.earlier.truncate(EARLIER_MAX);
    }

    /// Puts a catalogue in the place of the present one that only has more definitions, those of
    /// users. Whatever began with the present one finds all of it in the next.
    pub(crate) fn renew(&self, next: Arc<Served>) {
        let mut generations = self.0.write().unwrap_or_else(PoisonError::into_inner);
        generations.present = next;
    }

    /// Returns what was served when a run began. That is what is served now if the run is from
    /// before this process, or from before all that is remembered.
    pub(crate) fn of_run(&self, started: &RunStarted) -> Arc<Served> {
        let generations = self.0.read().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(&generations.present)
            .chain(&generations.earlier)
            .find(|served| served.has_begun(started))
            .unwrap_or(&generations.present)
            .clone()
    }

    /// Returns the version of a component's code, by its manifest. None of code that is neither
    /// served nor remembered.
    pub(crate) fn version(&self, component: &str, code: Digest) -> Option<String> {
        let generations = self.0.read().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(&generations.present)
            .chain(&generations.earlier)
            .filter_map(|served| served.catalogue.entry(component))
            .find(|entry| entry.component.digest() == code)
            .and_then(|entry| entry.component.version().map(str::to_owned))
    }

    /// Returns the resolved config that a run began with. None when it is not stored any more.
    pub(crate) async fn config_of_run(
        &self,
        store: &Store,
        started: &RunStarted,
    ) -> Result<Option<Arc<ResolvedConfig>>, ReadError> {
        let served = self.of_run(started);
        served.resolved_configs.of_run(store, started).await
    }

    /// Returns the code of a run's agent by which the run began, if other code is served by now.
    /// None where only the present code may run.
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
