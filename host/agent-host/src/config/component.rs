//! Components and their grants.

use domain::egress::EgressGrant;
use domain::grant::{DirectoryGrant, Grant, GuestLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Components that come with the host: the name in the configuration and the name of the file.
pub(crate) const BUILT_INS: [(&str, &str); 4] =
    [("assistant", "assistant.wasm"), ("worker", "worker.wasm"), ("tutor", "tutor.wasm"), ("files", "files.wasm")];

/// A component and what it is granted. What is missing is not granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ComponentConfig {
    /// The WebAssembly file, relative to the config file's folder. Not needed for the built-in components.
    pub(crate) path: Option<PathBuf>,
    /// Folders that it may use.
    pub(crate) directories: Vec<DirectoryGrant>,
    /// HTTP requests that it may send. One of its tools sends them only for an agent that may have the capability `net.http`, and only if
    /// the tool names it. Every request, and every redirect, is put on record with the call.
    pub(crate) network: Vec<EgressGrant>,
    /// What one of its calls may use of the machine.
    pub(crate) limits: GuestLimits,
}

impl ComponentConfig {
    /// The grant, with folders as seen from `folder`.
    pub(crate) fn grant(&self, folder: &Path) -> Grant {
        let directories =
            self.directories.iter().map(|directory| DirectoryGrant { path: folder.join(&directory.path), ..directory.clone() });
        Grant { directories: directories.collect(), network: self.network.clone(), limits: self.limits }
    }
}
