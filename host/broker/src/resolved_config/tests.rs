//! The definitions that are resolved anew when users make and remove some.

use super::kept::Kept;
use super::{ResolvedConfig, ResolvedConfigs};
use crate::catalogue::{Catalogue, Entry};
use crate::engine::scripted::Component;
use domain::compaction::text_tokens;
use domain::definition::{Definition, DefinitionId, OwnDefinition};
use domain::delegate::Presentation;
use domain::grant::Grant;
use domain::step::Toolset;
use domain::tool::ToolDefinition;
use domain::user::UserId;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

/// Definitions of each user but the one under test.
const OF_A_USER: usize = 5;

fn definition(more: Value) -> Definition {
    let mut definition = json!({ "displayName": "X", "component": "puppet" });
    if let (Some(definition), Value::Object(more)) = (definition.as_object_mut(), more) {
        definition.extend(more);
    }
    serde_json::from_value(definition).unwrap()
}

/// A template, and an agent that is none. Both may use the one tool.
fn configured() -> Catalogue {
    let agent = json!({ "kind": "agent", "description": {
        "id": "puppet", "display_name": "Puppet", "summary": "", "session_types": [],
        "wants": [], "memo_formats": [],
    } });
    let tools = json!({ "kind": "tools", "description": [
        { "name": "read", "description": "Reads.", "arguments": {}, "effect": "read-only" },
    ] });
    let entry = |name: &str, described| Entry {
        name: name.to_owned(),
        component: Component::new(described),
        grant: Grant::default(),
        is_pinned: false,
    };
    let definitions = vec![
        definition(json!({
            "agentId": "helper", "templateFor": ["*"], "capabilityAllowlist": ["*"],
        })),
        definition(json!({ "agentId": "plain", "capabilityAllowlist": ["*"] })),
    ];
    let entries = vec![entry("puppet", agent), entry("tools", tools)];
    Catalogue::new(definitions, entries).unwrap()
}

fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

/// The catalogue with one more definition of a user.
fn with(catalogue: &Catalogue, of: &UserId, id: &str) -> Catalogue {
    let own = OwnDefinition {
        display_name: id.to_owned(),
        system_prompt: Some("You help. ".repeat(100)),
        ..OwnDefinition::default()
    };
    let helper = DefinitionId("helper".to_owned());
    let template = catalogue.definition(&helper).unwrap();
    let id = DefinitionId(id.to_owned());
    let made = template.made(id, of, &own).unwrap().definition;
    catalogue.clone().with_made(made)
}

/// A catalogue with three definitions of one user, and so many of others.
fn among(others: usize) -> Catalogue {
    let mut catalogue = configured();
    for number in 0..3 {
        catalogue = with(&catalogue, &user("ada"), &format!("made-of-ada-{number}"));
    }
    for number in 0..others {
        let other = user(&format!("user-{}", number / OF_A_USER));
        catalogue = with(&catalogue, &other, &format!("made-{number}"));
    }
    catalogue
}

/// Resolves everything.
fn all(configs: &ResolvedConfigs, catalogue: &Catalogue) -> Vec<(String, Arc<ResolvedConfig>)> {
    let ids = catalogue.definitions().map(|it| &it.agent_id);
    ids.map(|id| (id.0.clone(), configs.of(id).unwrap()))
        .collect()
}

/// The ids of definitions that were there before and are resolved anew.
fn anew(
    before: &[(String, Arc<ResolvedConfig>)],
    after: &[(String, Arc<ResolvedConfig>)],
) -> BTreeSet<String> {
    let changed = after.iter().filter(|(id, resolved)| {
        before
            .iter()
            .any(|(there, was)| there == id && !Arc::ptr_eq(was, resolved))
    });
    changed.map(|(id, _)| id.clone()).collect()
}

/// The number of users' definitions that are resolved.
fn resolved(configs: &ResolvedConfigs) -> usize {
    let made = configs.made.lock();
    made.unwrap_or_else(PoisonError::into_inner).count()
}

#[test]
fn the_least_prompt_has_instructions_tools_and_a_message() {
    let catalogue = configured();
    let configs = ResolvedConfigs::new(Arc::new(catalogue.clone()));
    let least = catalogue.least_prompts(Presentation::One);
    assert_eq!(least.len(), 2);
    for (id, resolved) in all(&configs, &catalogue) {
        let id = DefinitionId(id);
        let tools = resolved.shown(&Toolset::All, Presentation::One);
        let shown: usize = tools.iter().map(ToolDefinition::shown_bytes).sum();
        let instructions = catalogue.definition(&id).unwrap().prompt();
        let known = text_tokens(instructions.len() + shown);
        assert!(shown > 0 && least[&id] > known, "{id:?}: {least:?} {known}");
    }
}

#[test]
fn what_a_user_makes_or_removes_resolves_that_users_own_alone() {
    for others in [10, 400] {
        let ada = user("ada");
        let before = among(others);
        let configs = ResolvedConfigs::new(Arc::new(before.clone()));
        let there = all(&configs, &before);
        let own = ["made-of-ada-0", "made-of-ada-1", "made-of-ada-2"].map(str::to_owned);

        let more = with(&before, &ada, "made-of-ada-3");
        let next = configs.renewed(Arc::new(more.clone()), &ada);
        assert_eq!(resolved(&next), others, "nothing is resolved yet");
        let made = all(&next, &more);
        assert_eq!(anew(&there, &made), BTreeSet::from(own.clone()));
        assert_eq!(made.len(), there.len() + 1);

        let less = more.without_made(&DefinitionId("made-of-ada-3".to_owned()));
        let last = next.renewed(Arc::new(less.clone()), &ada);
        assert_eq!(resolved(&last), others, "nothing is resolved yet");
        let removed = all(&last, &less);
        assert_eq!(anew(&made, &removed), BTreeSet::from(own));
        // It is the same again as before.
        let digests = |all: &[(String, Arc<ResolvedConfig>)]| {
            let digests = all.iter().map(|(_, resolved)| resolved.digests());
            digests.collect::<Vec<_>>()
        };
        assert_eq!(digests(&removed), digests(&there));
    }
}

#[test]
fn what_users_made_is_resolved_when_it_is_asked_for() {
    let catalogue = among(50);
    let configs = ResolvedConfigs::new(Arc::new(catalogue.clone()));
    assert_eq!(resolved(&configs), 0);
    for _ in 0..2 {
        let id = DefinitionId("made-7".to_owned());
        assert!(configs.of(&id).is_some());
        assert_eq!(resolved(&configs), 1);
    }
    assert_eq!(all(&configs, &catalogue).len(), 55);
    configs.forget_made();
    assert_eq!(resolved(&configs), 0);
}

#[test]
fn what_is_kept_stays_within_its_number_and_its_bytes() {
    let catalogue = among(10);
    let configs = ResolvedConfigs::new(Arc::new(catalogue.clone()));
    let all = all(&configs, &catalogue);
    let largest = all.iter().map(|(_, resolved)| resolved.bytes()).max();
    let largest = largest.unwrap();
    for (configs_max, bytes_max) in [(4, usize::MAX), (100, 3 * largest)] {
        let mut kept = Kept::at_most(configs_max, bytes_max);
        for (id, resolved) in &all {
            kept.keep(id.clone(), resolved.clone());
            let ids = all.iter().map(|(id, _)| id);
            let there = ids.filter_map(|id| kept.get(id));
            let bytes: usize = there.map(|resolved| resolved.bytes()).sum();
            assert!(kept.count() <= configs_max, "{}", kept.count());
            assert!(bytes <= bytes_max, "{bytes}");
            assert!(kept.get(id).is_some());
        }
    }
}
