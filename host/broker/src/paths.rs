//! The operator's settings on agents by their paths: access rules, and the models of roles.

use domain::authority::{ModelStatus, NamedModel, Permissions};
use domain::definition::Definition;
use domain::delegate::Target;
use domain::grant::PatternList;
use domain::path::{ModelRole, PathKind, UserRules};
use domain::user::UserId;
use llm::Gateway;
use std::collections::BTreeMap;

/// The operator's settings on agents by their paths. By default everything is allowed, and no role
/// has a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathSettings {
    /// Rules on subtrees, user by user.
    pub rules: UserRules,
    /// The models of the roles that agents have by their paths or as targets of delegations:
    /// aliases. The model of a message or a session takes precedence over them, and they take
    /// precedence over that of a definition.
    pub models: BTreeMap<ModelRole, String>,
    /// The models that may answer agents in a role; a role that is missing limits none.
    pub role_lists: BTreeMap<ModelRole, PatternList>,
}

/// Returns the roles that an agent has: that of a delegation's target, and that of its path.
fn roles_of(kind: PathKind, definition: &Definition) -> impl Iterator<Item = ModelRole> {
    let target = Target::from_word(&definition.agent_id.0).filter(|_| kind == PathKind::Sub);
    let of_target = target.and_then(Target::model_role);
    of_target.into_iter().chain(kind.model_role())
}

impl PathSettings {
    /// Returns the model of an agent's turns where neither message nor session names one; none for
    /// the host's own.
    ///
    /// The first that names one decides: the role of a delegation's target whose definition names
    /// none, the role that the agent has by its path, its definition.
    #[must_use]
    pub fn model_of<'a>(&'a self, kind: PathKind, definition: &'a Definition) -> Option<&'a str> {
        let of_target = || {
            let target = Target::from_word(&definition.agent_id.0)?;
            let is_open = kind == PathKind::Sub && definition.model.is_none();
            let role = target.model_role().filter(|_| is_open)?;
            self.models.get(&role)
        };
        let of_role = || self.models.get(&kind.model_role()?);
        of_target()
            .or_else(of_role)
            .or(definition.model.as_ref())
            .map(String::as_str)
    }

    /// Returns the permissions by rules and roles in turns of the agent at a path, for a user.
    pub(crate) fn permissions(
        &self,
        user: &UserId,
        path: &str,
        kind: PathKind,
        definition: &Definition,
    ) -> Permissions {
        let of_roles = roles_of(kind, definition).filter_map(|role| self.role_lists.get(&role));
        let lists = self.rules.models(user, path).chain(of_roles);
        lists.fold(Permissions::default(), |all, list| {
            all.both(&Permissions {
                models: Some(list.clone()),
                ..Permissions::default()
            })
        })
    }

    /// Returns a model of the gateway in the form that an agent's authority checks. Everybody may
    /// use the model of heartbeats, which the operator chose for those of all agents.
    pub(crate) fn named<'a>(
        &self,
        gateway: &Gateway,
        kind: PathKind,
        definition: &Definition,
        alias: &'a str,
    ) -> NamedModel<'a> {
        let leads = |name: &str| {
            let route = gateway.resolve(Some(name));
            route.is_ok_and(|route| {
                route.alias == alias || route.fallbacks.iter().any(|other| other == alias)
            })
        };
        let of_heartbeats = self.models.get(&ModelRole::Heartbeat).map(String::as_str);
        let mut of_roles = self
            .model_of(kind, definition)
            .into_iter()
            .chain(of_heartbeats);
        let is_model = |name: &str| {
            let route = gateway.resolve(Some(name));
            route.is_ok_and(|route| route.alias == alias)
        };
        let own = definition.model.as_deref();
        let status = if own.is_some_and(is_model) {
            ModelStatus::Own
        } else if own.is_some_and(leads) {
            ModelStatus::OwnFallback
        } else if of_roles.any(leads) {
            ModelStatus::OfRole
        } else if gateway
            .resolve(None)
            .is_ok_and(|route| route.alias == alias)
        {
            ModelStatus::Default
        } else {
            ModelStatus::Other
        };
        NamedModel {
            alias,
            is_program: gateway.is_program(alias),
            status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_lists_of_an_agents_roles_limit_its_models() {
        let list = |names: &[&str]| serde_json::from_value::<PatternList>(json!(names)).unwrap();
        let settings = PathSettings {
            role_lists: [
                (ModelRole::User, list(&["small", "fast-*"])),
                (ModelRole::Subagent, list(&["fast-*", "large"])),
                (ModelRole::Research, list(&["large"])),
            ]
            .into(),
            ..PathSettings::default()
        };
        let definition = |id: &str| -> Definition {
            let given = json!({ "agentId": id, "displayName": id });
            serde_json::from_value(given).unwrap()
        };
        let [plain, researcher] = ["plain", "researcher"].map(definition);
        let user: UserId = "ann".parse().unwrap();
        for (kind, definition, permitted) in [
            (PathKind::Agent, &plain, &["small", "fast-1"][..]),
            (PathKind::Connector, &researcher, &["small", "fast-1"]),
            (PathKind::Sub, &plain, &["fast-1", "large"]),
            (PathKind::Sub, &researcher, &["large"]),
            (PathKind::Memory, &plain, &["small", "fast-1", "large"]),
            (PathKind::System, &plain, &["small", "fast-1", "large"]),
        ] {
            let permissions = settings.permissions(&user, "/ann/agent/a", kind, definition);
            let all = ["small", "fast-1", "large"].into_iter();
            let found: Vec<&str> = all.filter(|it| permissions.permit_model(it)).collect();
            assert_eq!(found, permitted, "{kind:?} {}", definition.agent_id.0);
        }
    }
}
