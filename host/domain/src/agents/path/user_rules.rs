//! Rules on subtrees of paths, by user: the operator's access rules for each user.

use super::{PathAccess, PathPermit, PathRule, PathRules, PathVerdict, Subtree, TooManyRules};
use crate::access::grant::PatternList;
use crate::access::user::UserId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
mod tests {
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
