//! Rules on subtrees of paths: which agents may be read and which may be changed.
//!
//! Rules only narrow: without any, everything is allowed. They work as an agent's lists do. Rules
//! that allow (`read`, `write`) form an allow list: as soon as one exists, uncovered paths are not
//! allowed. Rules that deny (`none`) are applied after them and always win, whatever their reach. A
//! more specific rule does not lift a deny, and a deny covers everything below it, with stars or
//! without. Several sets (an operator's, a persona's) apply together: each is checked, and all of
//! them have to allow.

use super::{AgentPath, Subtree};
use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most rules in one set.
pub const PATH_RULES_MAX: usize = 256;

/// An access to the agent at a path, as a rule sees it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PathAccess {
    /// Read it: its description, its sessions, its events.
    Read,
    /// Command it: post to it, change it, end it.
    Write,
}

/// The access that a rule permits.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Permit")]
pub enum PathPermit {
    /// No access: it denies.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// A rule on the agents of a subtree.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathRule {
    /// The agents that it is about.
    pub path: Subtree,
    /// The access that it permits.
    pub access: PathPermit,
}

/// A set of rules: [`PATH_RULES_MAX`] at most. The order decides only which rule is named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<PathRule>")]
#[schemars(extend("maxItems" = PATH_RULES_MAX))]
pub struct PathRules(Vec<PathRule>);

/// More rules than a set may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there are {rules} rules on paths; {PATH_RULES_MAX} is the most, and one with `/**` at its \
         end stands for many"
)]
pub struct TooManyRules {
    /// Number of rules.
    pub rules: usize,
}

/// The decision on an access, with the rule that decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathVerdict<'a> {
    /// Allowed: no rule denies it, and no rule exists that allows, which would make an allow list.
    Unruled,
    /// Allowed by this rule, and no rule denies it.
    Allowed(&'a PathRule),
    /// Denied by this rule.
    Denied(&'a PathRule),
    /// Not allowed to write: this rule, and others that cover the path, permit reading only.
    ReadOnly(&'a PathRule),
    /// Not allowed: rules that allow exist, and none of them covers the path.
    Uncovered,
}

impl PathRules {
    /// A set of rules.
    ///
    /// # Errors
    /// The number of rules exceeds [`PATH_RULES_MAX`].
    pub fn new(rules: Vec<PathRule>) -> Result<Self, TooManyRules> {
        if rules.len() > PATH_RULES_MAX {
            Err(TooManyRules { rules: rules.len() })
        } else {
            Ok(Self(rules))
        }
    }

    /// The rules, as they were written.
    #[must_use]
    pub fn rules(&self) -> &[PathRule] {
        &self.0
    }

    /// Decides whether this access to the agent at the path is allowed, and by which rule. Of
    /// several rules, the first one written is named.
    #[must_use]
    pub fn allows(&self, access: PathAccess, path: &AgentPath) -> PathVerdict<'_> {
        self.allows_text(access, path.as_str())
    }

    /// The same for a path as text.
    #[must_use]
    pub fn allows_text(&self, access: PathAccess, path: &str) -> PathVerdict<'_> {
        let (denying, allowing): (Vec<_>, Vec<_>) = self
            .0
            .iter()
            .partition(|rule| rule.access == PathPermit::None);
        if let Some(rule) = denying
            .into_iter()
            .find(|rule| rule.path.is_over_text(path))
        {
            return PathVerdict::Denied(rule);
        }
        if allowing.is_empty() {
            return PathVerdict::Unruled;
        }
        let covering = || {
            allowing
                .iter()
                .filter(|rule| rule.path.covers_text(path))
                .copied()
        };
        let permitting = covering().find(|rule| rule.access.permits(access));
        match (permitting, covering().next()) {
            (Some(rule), _) => PathVerdict::Allowed(rule),
            (None, Some(rule)) => PathVerdict::ReadOnly(rule),
            (None, None) => PathVerdict::Uncovered,
        }
    }
}

words!(PathPermit { None = "none", Read = "read", Write = "write" });

impl PathPermit {
    fn permits(self, access: PathAccess) -> bool {
        match (self, access) {
            (Self::None, _) | (Self::Read, PathAccess::Write) => false,
            (Self::Read, PathAccess::Read) | (Self::Write, _) => true,
        }
    }
}

impl PathVerdict<'_> {
    /// Returns whether it is allowed.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        match self {
            Self::Unruled | Self::Allowed(_) => true,
            Self::Denied(_) | Self::ReadOnly(_) | Self::Uncovered => false,
        }
    }
}

impl TryFrom<Vec<PathRule>> for PathRules {
    type Error = TooManyRules;

    fn try_from(rules: Vec<PathRule>) -> Result<Self, TooManyRules> {
        Self::new(rules)
    }
}

impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.access.as_str(), self.path)
    }
}

impl fmt::Display for PathVerdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unruled => f.write_str("allowed: no rule is about the path"),
            Self::Allowed(rule) => write!(f, "allowed by `{rule}`"),
            Self::Denied(rule) => write!(f, "denied by `{rule}`"),
            Self::ReadOnly(rule) => write!(f, "not allowed: `{rule}` permits no writing"),
            Self::Uncovered => {
                f.write_str("not allowed: there are rules that allow, and none covers the path")
            }
        }
    }
}
