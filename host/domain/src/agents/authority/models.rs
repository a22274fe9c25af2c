//! The models that an agent may use.
//!
//! The choice of a model is a matter of authority, as that of a tool is: a model costs money, sees
//! its prompt, and may be a program with its own files. Where nobody names a model, the operator's
//! choice applies.

use super::{Caller, Denied};
use crate::access::grant::PatternList;
use crate::access::ruling::Rule;
use crate::agents::definition::Definition;

/// The reason why an agent may use a model, as far as the configuration has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelStatus {
    /// It is the `model` of its definition.
    Own,
    /// It is a fallback of the model of its definition.
    OwnFallback,
    /// The operator chose it for the role of the agent, or it is a fallback of that model.
    OfRole,
    /// It is the host's default model.
    Default,
    /// No such reason.
    Other,
}

/// A model that is requested by name, or used as a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedModel<'a> {
    /// Its alias.
    pub alias: &'a str,
    /// True if it is a program of the operating system.
    pub is_program: bool,
    /// Its status with the agent.
    pub status: ModelStatus,
}

impl Caller<'_> {
    /// Checks whether the agent may use a model.
    ///
    /// The models of its definition, its fallbacks and its role are always allowed. Its
    /// `modelAllowlist` adds others; without a list, the default model is the only other. A program
    /// needs its exact name in the definition, also as a fallback. Permissions of persona and path
    /// have to allow each model.
    ///
    /// # Errors
    /// The rule that decided.
    pub fn may_be_answered_by(&self, model: NamedModel<'_>) -> Result<(), Denied> {
        let agent = self.agent;
        let is_chosen = match model.status {
            ModelStatus::Own | ModelStatus::OwnFallback | ModelStatus::OfRole => true,
            ModelStatus::Default => agent.model_allowlist.is_none() || agent.model.is_none(),
            ModelStatus::Other => false,
        };
        let list = agent.model_allowlist.as_ref();
        let is_listed = list.is_some_and(|list| list.matches(model.alias));
        self.permitted(model, is_chosen || is_listed)
    }

    /// Checks whether a model may be the fallback of another one that the agent may use. The
    /// operator chose the fallback, so the definition's lists are not checked, unless it is a
    /// program.
    ///
    /// # Errors
    /// The rule that decided.
    pub fn may_fall_back_to(&self, model: NamedModel<'_>) -> Result<(), Denied> {
        self.permitted(model, true)
    }

    fn permitted(&self, model: NamedModel<'_>, is_allowed: bool) -> Result<(), Denied> {
        let is_named = model.status == ModelStatus::Own || self.agent.lists_model(model.alias);
        let rule = if !self.permissions.permit_model(model.alias) {
            Rule::Permissions
        } else if !is_allowed || (model.is_program && !is_named) {
            Rule::ModelAllowlist
        } else {
            return Ok(());
        };
        Err(Denied {
            rule,
            what: model.alias.to_owned(),
        })
    }
}

impl Definition {
    /// Returns whether its `modelAllowlist` contains this exact name, and not only a matching
    /// pattern. The list of the definition that it extends has to contain the name too.
    #[must_use]
    pub fn lists_model(&self, alias: &str) -> bool {
        let has = |PatternList(names): &PatternList| names.iter().any(|name| name == alias);
        let base = self.model_names.as_ref();
        self.model_allowlist.as_ref().is_some_and(has) && base.is_none_or(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::authority::{Denies, Permissions};
    use serde_json::{Value, json};
    use std::str::FromStr;

    const FAST: NamedModel<'_> = NamedModel {
        alias: "fast-1",
        is_program: false,
        status: ModelStatus::Other,
    };
    const CODER: NamedModel<'_> = NamedModel {
        alias: "coder-a",
        is_program: true,
        ..FAST
    };

    fn definition(keys: &Value) -> Definition {
        let mut whole = json!({ "agentId": "a", "displayName": "A", "model": "small" });
        let keys = keys.as_object().unwrap().clone();
        whole.as_object_mut().unwrap().extend(keys);
        serde_json::from_value(whole).unwrap()
    }

    fn may(agent: &Definition, permitted: &Value, model: NamedModel<'_>) -> Result<(), Rule> {
        let permissions = Permissions {
            models: serde_json::from_value(permitted.clone()).unwrap(),
            ..Permissions::default()
        };
        let caller = Caller {
            agent,
            denies: &Denies::default(),
            permissions: &permissions,
        };
        caller
            .may_be_answered_by(model)
            .map_err(|denied| denied.rule)
    }

    #[test]
    fn an_agent_is_answered_by_the_models_that_its_definition_allows() {
        let with = |model, status| NamedModel { status, ..model };
        let refused = Err(Rule::ModelAllowlist);
        for (list, model, expected) in [
            // Without a list: its own, its role's and the default, and no other.
            (json!(null), with(FAST, ModelStatus::Own), Ok(())),
            (json!(null), with(FAST, ModelStatus::OwnFallback), Ok(())),
            (json!(null), with(FAST, ModelStatus::OfRole), Ok(())),
            (json!(null), with(FAST, ModelStatus::Default), Ok(())),
            (json!(null), FAST, refused),
            // With one: what it lists, and its own all the same.
            (json!(["fast-*"]), FAST, Ok(())),
            (json!(["*"]), FAST, Ok(())),
            (json!(["slow"]), FAST, refused),
            (json!([]), with(FAST, ModelStatus::Own), Ok(())),
            (json!([]), with(FAST, ModelStatus::Default), refused),
            // A program is named, and no pattern, fallback, role or default is a name.
            (json!(["coder-a"]), CODER, Ok(())),
            (
                json!(["coder-a"]),
                with(CODER, ModelStatus::OwnFallback),
                Ok(()),
            ),
            (json!(null), with(CODER, ModelStatus::OwnFallback), refused),
            (
                json!(["coder-*"]),
                with(CODER, ModelStatus::OwnFallback),
                refused,
            ),
            (json!(null), with(CODER, ModelStatus::Own), Ok(())),
            (json!(["*"]), CODER, refused),
            (json!(["coder-*"]), CODER, refused),
            (json!(["*"]), with(CODER, ModelStatus::Default), refused),
            (json!(null), with(CODER, ModelStatus::OfRole), refused),
            (json!(null), CODER, refused),
        ] {
            let agent = definition(&json!({ "modelAllowlist": list }));
            let found = may(&agent, &json!(null), model);
            assert_eq!(found, expected, "{list} {model:?}");
        }
        // Where it has no model of its own, the default is.
        let bare = definition(&json!({ "model": null, "modelAllowlist": [] }));
        assert_eq!(
            may(&bare, &json!(null), with(FAST, ModelStatus::Default)),
            Ok(())
        );
    }

    #[test]
    fn personas_and_paths_permit_models_and_name_none() {
        let own = NamedModel {
            status: ModelStatus::Own,
            ..FAST
        };
        let agent = definition(&json!({ "modelAllowlist": [] }));
        for (permitted, model, expected) in [
            (json!(null), own, Ok(())),
            (json!(["fast-*"]), own, Ok(())),
            (json!([]), own, Err(Rule::Permissions)),
            (json!(["slow"]), own, Err(Rule::Permissions)),
            (json!(["coder-a"]), CODER, Err(Rule::ModelAllowlist)),
        ] {
            assert_eq!(may(&agent, &permitted, model), expected, "{permitted}");
        }
    }

    #[test]
    fn a_fallback_needs_permission_and_a_program_its_name() {
        let agent = definition(&json!({ "modelAllowlist": ["fast-1"] }));
        let narrow = Permissions {
            models: Some(PatternList(vec!["fast-1".into()])),
            ..Permissions::default()
        };
        let all = Permissions::default();
        let other = NamedModel {
            alias: "other",
            ..FAST
        };
        let own_fallback = NamedModel {
            status: ModelStatus::OwnFallback,
            ..CODER
        };
        for (permissions, model, expected) in [
            (&all, other, Ok(())),
            (&narrow, other, Err(Rule::Permissions)),
            (&all, CODER, Err(Rule::ModelAllowlist)),
            (&all, own_fallback, Err(Rule::ModelAllowlist)),
        ] {
            let caller = Caller {
                agent: &agent,
                denies: &Denies::default(),
                permissions,
            };
            let found = caller.may_fall_back_to(model).map_err(|denied| denied.rule);
            assert_eq!(found, expected, "{model:?}");
        }
    }

    #[test]
    fn a_made_definition_names_no_program_that_its_template_does_not() {
        let made = |template: &Value, own: &Value| {
            let own = json!({ "display_name": "Mine", "lists": { "model_allowlist": own } });
            let own = serde_json::from_value(own).unwrap();
            let user = crate::access::user::UserId::from_str("ada").unwrap();
            let id = crate::agents::definition::DefinitionId("made-mine-0".into());
            definition(template).made(id, &user, &own).unwrap()
        };
        for (template, own, left_out, model, expected) in [
            // Whoever has any model has no program by that.
            (
                json!(["*"]),
                json!(["coder-a"]),
                0,
                CODER,
                Err(Rule::ModelAllowlist),
            ),
            (
                json!(["*", "coder-a"]),
                json!(["coder-a"]),
                0,
                CODER,
                Ok(()),
            ),
            (json!(["*", "coder-a"]), json!(null), 0, CODER, Ok(())),
            (json!(["*"]), json!(["fast-1"]), 0, FAST, Ok(())),
            (
                json!(["slow"]),
                json!(["*"]),
                1,
                FAST,
                Err(Rule::ModelAllowlist),
            ),
            // A missing list is not one of everything.
            (
                json!(null),
                json!(["*"]),
                1,
                FAST,
                Err(Rule::ModelAllowlist),
            ),
            (
                json!(null),
                json!(["coder-a"]),
                1,
                CODER,
                Err(Rule::ModelAllowlist),
            ),
            (
                json!(null),
                json!(["small"]),
                0,
                FAST,
                Err(Rule::ModelAllowlist),
            ),
        ] {
            let found = made(&json!({ "modelAllowlist": template }), &own);
            assert_eq!(found.wider.len(), left_out, "{template} {own}");
            let may = may(&found.definition, &json!(null), model);
            assert_eq!(may, expected, "{template} {own}");
        }
    }
}
