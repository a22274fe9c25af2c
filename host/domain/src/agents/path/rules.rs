//! Rules on subtrees of paths: which agents may be read and which may be changed.
//!
//! Rules only narrow: without any, everything is allowed. They work as an agent's lists do. Rules
//! that allow (`read`, `write`) form an allow list: as soon as one exists, uncovered paths are not
//! allowed. Rules that deny (`none`) are applied after them and always win, whatever their reach. A
//! more specific rule does not lift a deny, and a deny covers everything below it, with stars or
//! without. Several sets (an operator's, a persona's) apply together: each is checked, and all of
//! them have to allow.

use super::{AgentPath, Subtree};
use crate::access::grant::PatternList;
use crate::access::user::UserId;
use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

// Rules on subtrees of paths, by user: the operator's access rules for each user.

/// One rule, and the users to whom it applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserRule {
    /// The agents of the rule: `/alice/agent/x` for one, `/alice/agent/x/**` for it and all below
    /// it, `/alice/**`, `/system/**`, `/**`.
    pub subtree: Subtree,
    /// The permitted access: `none`, `read` or `write`, which includes reading.
    pub access: PathPermit,
    /// The users of the rule; by default all users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    pub users: Option<Vec<UserId>>,
    /// Models that may answer these users there, and agents that work for them, by their aliases.
    /// Without it, the rule excludes no model.
    #[serde(
        default,
        rename = "modelAllowlist",
        skip_serializing_if = "Option::is_none"
    )]
    pub model_allowlist: Option<PatternList>,
}

impl UserRule {
    fn is_for(&self, user: Option<&UserId>) -> bool {
        let named = self.users.as_ref();
        named.is_none_or(|users| user.is_some_and(|user| users.contains(user)))
    }
}

/// The rules for each user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserRules {
    /// The rules for users without rules of their own.
    others: PathRules,
    /// Users with rules of their own, each with the rules for everybody included.
    named: BTreeMap<UserId, PathRules>,
    /// The rules that limit models.
    of_models: Vec<UserRule>,
}

impl UserRules {
    /// The rules as they are configured.
    ///
    /// # Errors
    /// The number of rules exceeds that of a set.
    pub fn new(rules: &[UserRule]) -> Result<Self, TooManyRules> {
        let of = |user: Option<&UserId>| {
            let fitting = rules.iter().filter(|rule| rule.is_for(user));
            let fitting = fitting.map(|rule| PathRule {
                path: rule.subtree.clone(),
                access: rule.access,
            });
            PathRules::new(fitting.collect())
        };
        let named = rules
            .iter()
            .filter_map(|rule| rule.users.as_ref())
            .flatten();
        let named = named
            .map(|user| Ok((user.clone(), of(Some(user))?)))
            .collect::<Result<_, TooManyRules>>()?;
        Ok(Self {
            others: of(None)?,
            named,
            of_models: rules
                .iter()
                .filter(|rule| rule.model_allowlist.is_some())
                .cloned()
                .collect(),
        })
    }

    /// Returns whether there are no rules for a user.
    #[must_use]
    pub fn is_empty_for(&self, user: &UserId) -> bool {
        self.rules_for(user).rules().is_empty()
    }

    /// Decides whether a user may have this access to the agent at a path.
    #[must_use]
    pub fn allows(&self, user: &UserId, access: PathAccess, path: &str) -> PathVerdict<'_> {
        self.rules_for(user).allows_text(access, path)
    }

    /// Returns the lists of models of the rules that cover the agent at a path, for a user. Each of
    /// them has to allow a model.
    pub fn models(&self, user: &UserId, path: &str) -> impl Iterator<Item = &PatternList> {
        let rules = self.of_models.iter();
        let covering =
            rules.filter(move |it| it.is_for(Some(user)) && it.subtree.covers_text(path));
        covering.filter_map(|rule| rule.model_allowlist.as_ref())
    }

    fn rules_for(&self, user: &UserId) -> &PathRules {
        self.named.get(user).unwrap_or(&self.others)
    }
}

#[cfg(test)]
mod user_rules_tests {
    use super::*;
    use PathAccess::{Read, Write};

    fn rule(subtree: &str, access: PathPermit, users: &[&str]) -> UserRule {
        let users: Vec<UserId> = users.iter().map(|user| user.parse().unwrap()).collect();
        UserRule {
            subtree: subtree.parse().unwrap(),
            access,
            users: (!users.is_empty()).then_some(users),
            model_allowlist: None,
        }
    }

    #[test]
    fn each_user_has_the_rules_for_all_and_those_that_name_them() {
        let rules = UserRules::new(&[
            rule("/alice/agent/diary/**", PathPermit::None, &["bob"]),
            rule("/alice/agent/**", PathPermit::Read, &["bob", "carol"]),
            rule("/system/**", PathPermit::None, &[]),
        ])
        .unwrap();
        for (user, access, path, expected) in [
            ("alice", Write, "/alice/agent/diary", true),
            ("alice", Read, "/system/heartbeat", false),
            ("bob", Read, "/alice/agent/diary", false),
            ("bob", Read, "/alice/agent/diary/sub/0", false),
            ("bob", Read, "/alice/agent/diary.2", true),
            ("bob", Write, "/alice/agent/diary.2", false),
            ("bob", Read, "/bob/agent/own", false),
            ("carol", Read, "/alice/agent/diary", true),
            ("carol", Write, "/alice/agent/diary", false),
            ("carol", Read, "/system/heartbeat", false),
            ("dave", Write, "/alice/agent/x", true),
        ] {
            let verdict = rules.allows(&user.parse().unwrap(), access, path);
            assert_eq!(
                verdict.is_allowed(),
                expected,
                "{user} {access:?} {path}: {verdict}"
            );
        }
        assert!(!rules.is_empty_for(&"dave".parse().unwrap()));
        assert!(UserRules::default().is_empty_for(&"dave".parse().unwrap()));
    }

    #[test]
    fn every_rule_that_covers_a_path_has_to_permit_a_model() {
        let limits = |subtree: &str, users: &[&str], models: &[&str]| UserRule {
            model_allowlist: Some(PatternList(
                models.iter().map(|&it| it.to_owned()).collect(),
            )),
            ..rule(subtree, PathPermit::Write, users)
        };
        let rules = UserRules::new(&[
            limits("/**", &[], &["small", "fast-*"]),
            limits("/bob/agent/kiosk/**", &["bob"], &["small"]),
            rule("/bob/**", PathPermit::Write, &[]),
        ])
        .unwrap();
        for (user, path, model, expected) in [
            ("ada", "/ada/agent/a", "small", true),
            ("ada", "/ada/agent/a", "dear", false),
            ("bob", "/bob/agent/kiosk", "fast-1", false),
            ("bob", "/bob/agent/kiosk/sub/0", "small", true),
            ("bob", "/bob/agent/other", "fast-1", true),
            ("ada", "/bob/agent/kiosk", "fast-1", true),
        ] {
            let user = user.parse().unwrap();
            let permitted = rules.models(&user, path).all(|list| list.matches(model));
            assert_eq!(permitted, expected, "{user} {path} {model}");
        }
    }
}
