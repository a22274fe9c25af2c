//! Grants: what an operator lets a component do, and what of it one call is bound to.

use crate::egress::EgressGrant;
use crate::wildcard;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Capabilities that bind what a tool may use of its component's grant. A tool names what it needs; an agent's lists say what it may have.
pub mod capability {
    /// Reading in the granted folders.
    pub const FILES_READ: &str = "files.read";
    /// Writing in the granted folders, where the grant allows it.
    pub const FILES_WRITE: &str = "files.write";
    /// Sending the granted HTTP requests.
    pub const NET_HTTP: &str = "net.http";
}

/// A refusal by one of the operator's rules. The guest sees a uniform denial; this is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{what}` is not allowed by `{rule}`")]
pub struct Denied {
    /// The config key that decided.
    pub rule: &'static str,
    /// What was asked for.
    pub what: String,
}

/// A list of names, where `*` stands for any run of characters and everything else for itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct PatternList(pub Vec<String>);

impl PatternList {
    /// Whether any pattern matches the whole name. An empty list matches nothing.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, name))
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    wildcard::matches(&pattern, &name, |wanted| *wanted == '*', |wanted, letter| wanted == letter)
}

/// How a folder may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Files can be read.
    ReadOnly,
    /// Files can also be made, changed and removed.
    ReadWrite,
}

/// A folder that a component may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectoryGrant {
    /// The folder on this machine. A relative path starts from the config file's folder.
    pub path: PathBuf,
    /// Where the component sees it, such as `/workspace`.
    pub at: String,
    /// How it may be used.
    pub access: Access,
}

/// What a guest may use of the machine, per call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GuestLimits {
    /// Bytes of all its memories and tables together.
    #[schemars(range(min = 65_536, max = 268_435_456))]
    pub memory_bytes_max: u64,
    /// Milliseconds of computing.
    #[schemars(range(min = 1, max = 600_000))]
    pub cpu_ms_max: u64,
    /// Milliseconds of wall time, host calls included.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub wall_ms_max: u64,
    /// Calls that run at the same time; more wait.
    #[schemars(range(min = 1, max = 1_000))]
    pub concurrency_max: u32,
}

impl Default for GuestLimits {
    fn default() -> Self {
        Self { memory_bytes_max: 64 << 20, cpu_ms_max: 1_000, wall_ms_max: 30_000, concurrency_max: 16 }
    }
}

/// What an operator grants a component. What is missing is not granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Grant {
    /// Folders that it may use.
    pub directories: Vec<DirectoryGrant>,
    /// Requests that it may send.
    pub network: Vec<EgressGrant>,
    /// What it may use of the machine.
    pub limits: GuestLimits,
}

/// What of a component's grant one call is bound to. Computed by [`Grant::bind`] and by nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bound {
    /// The folders, each with no more access than the caller's capabilities allow.
    pub directories: Vec<DirectoryGrant>,
    /// The requests that it may send: all that are granted, or none.
    pub network: Vec<EgressGrant>,
    /// What it may use of the machine.
    pub limits: GuestLimits,
}

impl Grant {
    /// The grant as far as a caller's capabilities reach: without `files.read` no folders, without `files.write` read-only ones,
    /// without `net.http` no requests.
    /// A tool therefore cannot do for an agent what the agent's lists rule out, however hostile the tool is.
    #[must_use]
    pub fn bind(&self, capabilities: &[String]) -> Bound {
        let has = |name: &str| capabilities.iter().any(|capability| capability == name);
        let (read, write) = (has(capability::FILES_READ), has(capability::FILES_WRITE));
        let directories = self
            .directories
            .iter()
            .filter(|_| read || write)
            .map(|directory| DirectoryGrant { access: if write { directory.access } else { Access::ReadOnly }, ..directory.clone() })
            .collect();
        let network = if has(capability::NET_HTTP) { self.network.clone() } else { Vec::new() };
        Bound { directories, network, limits: self.limits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, name, expected) in [
            ("reading_list_*", "reading_list_add", true),
            ("reading_list_*", "todo_add", false),
            ("*", "", true),
            ("a*b*c", "a__b__c", true),
            ("a*b*c", "a__c", false),
            ("a.b", "aXb", false),
            ("", "a", false),
            ("lists.*", "lists.write", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn an_agent_without_files_write_gets_read_only_folders_from_any_tool() {
        let folder = DirectoryGrant { path: "/data".into(), at: "/data".into(), access: Access::ReadWrite };
        let grant = Grant { directories: vec![folder], ..Grant::default() };
        let access = |capabilities: &[&str]| {
            let capabilities: Vec<String> = capabilities.iter().map(|&c| c.to_owned()).collect();
            grant.bind(&capabilities).directories.first().map(|d| d.access)
        };
        assert_eq!(access(&[]), None);
        assert_eq!(access(&["files.read"]), Some(Access::ReadOnly));
        assert_eq!(access(&["files.read", "files.write"]), Some(Access::ReadWrite));
    }

    #[test]
    fn an_agent_without_net_http_sends_no_request_through_any_tool() {
        let host = crate::egress::HostPattern::parse("example.com").unwrap();
        let grant = Grant { network: vec![EgressGrant::of(host)], ..Grant::default() };
        let requests = |capabilities: &[&str]| {
            let capabilities: Vec<String> = capabilities.iter().map(|&c| c.to_owned()).collect();
            grant.bind(&capabilities).network.len()
        };
        assert_eq!((requests(&[]), requests(&["files.read", "files.write", "net"]), requests(&["net.http"])), (0, 0, 1));
    }
}
