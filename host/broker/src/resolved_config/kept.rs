//! Resolved configurations that are kept while there is room for them.

use super::ResolvedConfig;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Resolved configurations by a key, within a number and within bytes of their documents.
#[derive(Clone)]
pub(super) struct Kept<K> {
    configs: HashMap<K, Arc<ResolvedConfig>>,
    bytes: usize,
    configs_max: usize,
    bytes_max: usize,
}

impl<K: Eq + Hash> Kept<K> {
    pub(super) fn at_most(configs_max: usize, bytes_max: usize) -> Self {
        Self {
            configs: HashMap::new(),
            bytes: 0,
            configs_max,
            bytes_max,
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<&Arc<ResolvedConfig>> {
        self.configs.get(key)
    }

    /// Stores one more. If there is no room for it, all others are removed.
    pub(super) fn keep(&mut self, key: K, resolved: Arc<ResolvedConfig>) {
        let bytes = resolved.bytes();
        if self.configs.len() >= self.configs_max || self.bytes + bytes > self.bytes_max {
            self.configs.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some(there) = self.configs.insert(key, resolved) {
            self.bytes -= there.bytes();
        }
    }

    /// Removes those with matching keys.
    pub(super) fn take(&mut self, is_meant: impl Fn(&K) -> bool) -> Vec<Arc<ResolvedConfig>> {
        let taken: Vec<_> = self
            .configs
            .extract_if(|key, _| is_meant(key))
            .map(|(_, resolved)| resolved)
            .collect();
        self.bytes -= taken.iter().map(|resolved| resolved.bytes()).sum::<usize>();
        taken
    }

    /// Returns the number that is kept.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.configs.len()
    }
}
