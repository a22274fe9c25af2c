//! The models of agents: chosen by name, by provider, and programs in their place.

use super::super::Severity;
use super::{config, findings};

/// Two models at one provider, one at another, and one that is scripted.
pub(super) const MODELS: &str = r#"
    [providers.here]
    kind = "openai-compatible"
    baseUrl = "http://127.0.0.1:1/v1"
    [providers.there]
    kind = "anthropic"
    [providers.fixed]
    kind = "scripted"
    script = "s.toml"
    [models]
    small = { provider = "here", model = "s-1" }
    large = { provider = "here", model = "l-1" }
    other = { provider = "there", model = "o-1" }
    fixed = { provider = "fixed", model = "f-1" }
"#;

/// An agent that names a provider, beside [`MODELS`].
fn at_provider(provider: &str, more: &str, default: &str) -> String {
    format!(
        "{default}\n{MODELS}\n[[agents]]\nagentId = \"a\"\ndisplayName = \"x\"\nchat = {{ \
             provider = \"{provider}\" }}\n{more}"
    )
}

#[test]
fn a_chat_provider_chooses_the_model() {
    for (provider, more, default, model) in [
        ("there", "", "", Some("other")),
        ("anthropic", "", "", Some("other")),
        ("here", "", "defaultModel = \"large\"", Some("large")),
        (
            "openai-compatible",
            "",
            "defaultModel = \"here/l-1\"",
            Some("large"),
        ),
        ("there", "", "defaultModel = \"large\"", Some("other")),
        ("here", "model = \"s-1\"", "", Some("s-1")),
    ] {
        let text = at_provider(provider, more, default);
        let config = config(&text);
        assert_eq!(
            config.definitions()[0].model.as_deref(),
            model,
            "{provider} {more} {default}"
        );
        assert!(
            findings(&text)
                .iter()
                .all(|(_, key, _)| !key.starts_with("agents")),
            "{provider} {more} {default}"
        );
    }
}

#[test]
fn a_chat_provider_that_chooses_no_model_is_an_error() {
    for (provider, more, default, message) in [
        (
            "openai",
            "",
            "",
            "no model of `models` is at a provider of the name or kind `openai`; providers are \
             `fixed`, `here`, `there`",
        ),
        (
            "pi-cli",
            "",
            "",
            "no model of `models` is at a provider of the name or kind `pi-cli`; providers are \
             `fixed`, `here`, `there`",
        ),
        (
            "here",
            "",
            "defaultModel = \"other\"",
            "`large`, `small` are at `here`: say which one with `model`",
        ),
        (
            "there",
            "model = \"small\"",
            "",
            "the agent's model `small` is at `here` and not at `there`; leave one of the two out",
        ),
    ] {
        let found = findings(&at_provider(provider, more, default));
        assert!(
            found.contains(&(
                Severity::Error,
                "agents[0].chat.provider".to_owned(),
                message.to_owned()
            )),
            "{found:?}"
        );
    }
}

#[test]
fn a_chat_provider_that_is_a_program_chooses_its_model() {
    let text = "[[agents]]\nagentId = \"a\"\ndisplayName = \"x\"\nchat = { provider = \"pi-cli\" }\n\
        [providers.coder]\nkind = \"pi-cli\"\n[models.m]\nprovider = \"coder\"\nmodel = \"x\"\n\
        [providers.coder.program]\npath = \"/usr/bin/pi\"\nfolder = \"/srv/work\"\n\
        home = \"/srv/homes\"\n";
    let config = config(text);
    let chosen = config.definitions();
    assert_eq!(chosen[0].model.as_deref(), Some("m"));
    let found = findings(text);
    assert!(
        found.iter().any(|(severity, key, message)| {
            *severity == Severity::Warning
                && key == "providers.coder.program.enabled"
                && message.contains("switched off")
        }),
        "{found:?}"
    );
}

#[test]
fn a_program_is_granted_no_folder_of_the_machine_or_the_host() {
    for (folder, home, key) in [
        ("/etc", "/srv/homes", "folder"),
        ("/usr/lib", "/srv/homes", "folder"),
        ("/", "/srv/homes", "folder"),
        ("/srv/work", "/etc/homes", "home"),
    ] {
        let text = format!(
            "[providers.coder]\nkind = \"codex-cli\"\n[providers.coder.program]\n\
             path = \"/usr/bin/codex\"\nfolder = \"{folder}\"\nhome = \"{home}\"\n"
        );
        let found = findings(&text);
        let at = format!("providers.coder.program.{key}");
        assert!(
            found
                .iter()
                .any(|(severity, key, _)| (*severity, key) == (Severity::Error, &at)),
            "{folder} {home}: {found:?}"
        );
    }
}

#[test]
fn a_variable_that_is_not_set_for_a_program_is_told() {
    let found = findings(
        "[providers.coder]\nkind = \"codex-cli\"\n[providers.coder.program]\n\
         enabled = true\npath = \"/usr/bin/codex\"\nfolder = \"/srv/work\"\n\
         home = \"/srv/homes\"\nvariables = { ALSO_SET_BY_NOBODY = \"here\" }\n\
         environment = [\"PATH\", \"A_VARIABLE_THAT_NOBODY_SETS\", \"ALSO_SET_BY_NOBODY\"]\n",
    );
    let reported: Vec<_> = found
        .iter()
        .filter(|(_, key, _)| key.starts_with("providers.coder.program.environment"))
        .collect();
    assert_eq!(reported.len(), 1, "{found:?}");
    let (severity, key, message) = reported[0];
    assert_eq!(*severity, Severity::Warning);
    assert_eq!(key, "providers.coder.program.environment[1]");
    assert!(message.contains("A_VARIABLE_THAT_NOBODY_SETS"), "{message}");
}

#[test]
fn a_key_where_every_program_reads_is_refused() {
    for (key, is_refused) in [
        ("/usr/local/etc/agent-host/key", true),
        ("/etc/agent-host/key", false),
    ] {
        let text = format!(
            "[providers.coder]\nkind = \"codex-cli\"\napiKeyFile = \"{key}\"\n\
             [providers.coder.program]\npath = \"/usr/bin/codex\"\n\
             folder = \"/srv/work\"\nhome = \"/srv/homes\"\n"
        );
        let found = findings(&text);
        let reported = |(_, at, message): &(Severity, String, String)| {
            at == "providers.coder.program" && message.contains("the key of the provider `coder`")
        };
        assert_eq!(found.iter().any(reported), is_refused, "{key}: {found:?}");
    }
}

#[test]
fn what_a_list_of_models_does_not_allow_is_told_by_the_check() {
    let text = "[providers.coder]\nkind = \"pi-cli\"\n[providers.coder.program]\n\
        path = \"/usr/bin/pi\"\nfolder = \"/srv/work\"\nhome = \"/srv/homes\"\n\
        [models.coder-a]\nprovider = \"coder\"\nmodel = \"x\"\n\
        [[agents]]\nagentId = \"bare\"\ndisplayName = \"Bare\"\n\
        [[agents]]\nagentId = \"named\"\ndisplayName = \"Named\"\nmodel = \"coder-a\"\n\
        modelAllowlist = [\"coder-*\", \"slow\", \"\"]\nmodelNames = []\n\
        [[personas]]\nid = \"p\"\ndisplayName = \"P\"\nagent = \"named\"\n\
        modelAllowlist = [\"fast\"]\n\
        [[pathRules]]\nsubtree = \"/**\"\naccess = \"write\"\nmodelAllowlist = [\"fast\"]\n\
        [roles]\nuser = { model = \"coder-a\", modelAllowlist = [\"fast\"] }\n\
        task = { model = \"slow\" }\nheartbeat = { modelAllowlist = [\"coder-a\"] }\n";
    let reported = findings(text);
    for (key, part) in [
        (
            "agents[0].model",
            "the default model `coder-a` is a program",
        ),
        ("agents[1].modelAllowlist[0]", "write its whole name"),
        ("agents[1].modelAllowlist[1]", "slow"),
        ("agents[1].modelAllowlist[2]", "it is empty"),
        ("agents[1].modelNames", "leave it out"),
        ("personas[0].modelAllowlist[0]", "fast"),
        ("pathRules[0].modelAllowlist[0]", "fast"),
        ("roles.user.modelAllowlist[0]", "fast"),
        (
            "roles.user.modelAllowlist",
            "it does not match `coder-a`, the model of the role",
        ),
        ("roles.task", "slow"),
        ("roles.heartbeat.modelAllowlist", "at those roles"),
    ] {
        let is_it =
            |reported: &&(_, String, String)| reported.1 == key && reported.2.contains(part);
        assert!(
            reported.iter().any(|reported| is_it(&reported)),
            "{key}: {reported:#?}"
        );
    }
}
