//! The code of the components when the configuration is read again: loaded, or kept.

use super::Reloading;
use super::refused::Refused;
use crate::config::{ComponentConfig, Loaded};
use crate::guests;
use broker::{Catalogue, Entry};

impl Reloading {
    /// Loads the components. For an author, one that cannot be loaded keeps its code, if it has any
    /// that may run.
    pub(super) async fn entries(
        &mut self,
        next: &Loaded,
        hold_code: bool,
    ) -> Result<Vec<Entry>, Refused> {
        let before = self.host.broker.catalogue();
        let mut entries = Vec::new();
        for (name, config) in guests::served(next) {
            let kept = before
                .entry(&name)
                .and_then(|present| kept(present, next, &config));
            let is_retained = hold_code && self.has_path_of(&name, &config);
            if let Some(kept) = kept.clone().filter(|_| is_retained) {
                entries.push(kept);
                continue;
            }
            let loaded = guests::load_one(next, &self.host.runtime, name.clone(), &config).await;
            match (loaded, kept) {
                (Ok(entry), _) => {
                    self.reported.remove(&name);
                    entries.push(entry);
                }
                (Err(failure), Some(kept)) if self.is_for_author => {
                    self.tell(&name, &failure, "the code that was served goes on");
                    entries.push(kept);
                }
                (Err(failure), _) => return Err(Refused::for_good(failure)),
            }
        }
        Ok(entries)
    }

    /// Returns the components that keep their code though other code is in their files, with that:
    /// a start takes it. An author of plugins has it served as soon as it is right.
    pub(super) async fn other_code(
        &self,
        next: &Loaded,
        hold_code: bool,
    ) -> Result<Vec<Entry>, Refused> {
        let mut other = Vec::new();
        if self.is_for_author || !hold_code {
            return Ok(other);
        }
        let before = self.host.broker.catalogue();
        for (name, config) in guests::served(next) {
            let retained = before
                .entry(&name)
                .filter(|present| kept(present, next, &config).is_some())
                .filter(|_| self.has_path_of(&name, &config));
            let Some(retained) = retained else { continue };
            let in_file = guests::load_one(next, &self.host.runtime, name, &config).await;
            let in_file = in_file.map_err(Refused::for_now)?;
            if in_file.component.digest() != retained.component.digest() {
                other.push(in_file);
            }
        }
        Ok(other)
    }

    /// Returns whether a component is served from the file that is configured for it.
    fn has_path_of(&self, name: &str, config: &ComponentConfig) -> bool {
        let served = guests::served(&self.host.loaded);
        served.get(name).map(|served| &served.path) == Some(&config.path)
    }
}

/// Returns the present code of a component under its next grant; none if another one is pinned.
fn kept(present: &Entry, next: &Loaded, config: &ComponentConfig) -> Option<Entry> {
    let may_run = config
        .sha256
        .is_none_or(|pinned| pinned == present.component.digest());
    may_run.then(|| Entry {
        name: present.name.clone(),
        component: present.component.clone(),
        grant: config.grant(&present.name, next.folder()),
        is_pinned: config.sha256.is_some(),
    })
}

/// Returns the keys of components that are other code in their files.
pub(super) fn paths_of(other_code: &[Entry]) -> impl Iterator<Item = String> {
    other_code
        .iter()
        .map(|entry| format!("components.{}.path", entry.name))
}

/// Returns whether components are the ones that are served, by their code.
pub(super) fn has_code_of(entries: &[Entry], served: &Catalogue) -> bool {
    entries.len() == served.entries().count()
        && entries.iter().all(|entry| {
            served
                .entry(&entry.name)
                .is_some_and(|served| served.component.digest() == entry.component.digest())
        })
}
