//! Checks of triggers that are well-formed but may still be wrong. Those that need the component
//! itself are in `connectors.rs`.

use super::document::Config;
use super::finding::{Finding, Severity, error, faults_within, meant, warning};
use super::{agents, hooks, known, patterns, secrets};
use domain::definition::DefinitionId;
use domain::grant::FolderPattern;
use domain::id::AgentId;
use domain::path::{AgentPath, ConnectorName, PathKind, Root};
use domain::persona::PersonaId;
use domain::secret::is_secret_name;
use domain::trigger::{
    Deliver, TRIGGERS_MAX, TriggerKind, TriggerSpec, TriggerTarget, WebhookAuth,
};

/// The built-in component that says the operator's words when a time has come.
const OWN_CLOCK: &str = "schedule";
/// The definition of agents at paths of a trigger's own that are named after none.
const ASSISTANT: &str = "assistant";

/// Finds all faults and oddities of the triggers and of `hooks`.
pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    check_hooks(config, findings);
    let count = config.triggers.len();
    if count > TRIGGERS_MAX {
        let message = format!("there are {count}, and {TRIGGERS_MAX} is the most; take some out");
        findings.push(error("triggers", message));
    }
    for (name, spec) in &config.triggers {
        if hooks::NAMES.contains(&name.as_str()) {
            let message = format!(
                "`/hooks/{name}` belongs to `hooks`; write `[hooks]` for it, or give this trigger \
                 another name"
            );
            findings.push(error(format!("triggers.{name}"), message));
        }
        let section = format!("triggers.{name}");
        Checked {
            config,
            section: &section,
            spec,
        }
        .check(findings);
    }
}

/// Returns what is odd about the targets of a trigger, such as one that nobody hears.
pub(crate) fn odd_targets(config: &Config, spec: &TriggerSpec) -> Vec<String> {
    let mut findings = Vec::new();
    let section = "";
    Checked {
        config,
        section,
        spec,
    }
    .check_targets(&mut findings);
    let odd = findings
        .into_iter()
        .filter(|it| it.severity == Severity::Warning);
    odd.map(|it| it.message).collect()
}

/// A trigger under a section of the configuration.
struct Checked<'a> {
    config: &'a Config,
    section: &'a str,
    spec: &'a TriggerSpec,
}

impl Checked<'_> {
    fn key(&self, field: &str) -> String {
        format!("{}.{field}", self.section)
    }

    fn check(&self, findings: &mut Vec<Finding>) {
        let Self { config, spec, .. } = self;
        if spec.user.is_none() {
            let message = "a trigger speaks on behalf of a user; write the user's id, such as \
                           \"local\"";
            findings.push(error(self.key("user"), message));
        }
        findings.extend(faults_within(self.section, spec.faults()));
        let no_component = known::no_component(config, spec.component());
        findings.extend(no_component.map(|message| error(self.key("component"), message)));
        let no_model = spec.model.as_ref();
        let no_model = no_model.filter(|model| config.model(model).is_none());
        findings.extend(
            no_model.map(|model| error(self.key("model"), agents::no_model(config, model))),
        );
        self.check_targets(findings);
        self.check_kind(findings);
    }

    fn check_targets(&self, findings: &mut Vec<Finding>) {
        let further = self.spec.targets.iter();
        let further = further.map(|(name, target)| (format!("targets.{name}"), target));
        let all = std::iter::once(("target".to_owned(), &self.spec.target)).chain(further);
        for (field, target) in all {
            let key = |inner: &str| self.key(&format!("{field}.{inner}"));
            match target {
                TriggerTarget::Agent { agent } => {
                    self.check_agent(&key("agent"), agent, findings);
                }
                TriggerTarget::Path { path } => self.check_path(key("path"), path, findings),
                TriggerTarget::Persona { persona } => {
                    self.check_persona(key("persona"), persona, findings);
                }
                TriggerTarget::Smart { smart } => {
                    if let Some(agent) = &smart.agent {
                        self.check_agent(&key("smart.agent"), agent, findings);
                    }
                    if let Some(persona) = &smart.persona {
                        self.check_persona(key("smart.persona"), persona, findings);
                    }
                }
                // Those are in the store, and looked up when the trigger is fired.
                TriggerTarget::Session { .. } | TriggerTarget::Turn { .. } => {}
            }
        }
    }

    /// Checks an agent that is named by the id of a definition, its own id or its path.
    fn check_agent(&self, key: &str, agent: &str, findings: &mut Vec<Finding>) {
        if agent.starts_with('/') {
            match agent.parse::<AgentPath>() {
                Ok(path) => self.check_path(key.to_owned(), &path, findings),
                Err(wrong) => findings.push(error(key, wrong.to_string())),
            }
        } else if agent.parse::<AgentId>().is_err() && !agent.trim().is_empty() {
            let definition = DefinitionId(agent.to_owned());
            let missing = known::no_agent(self.config, &definition);
            findings.extend(missing.map(|message| error(key, message)));
            if let Some(user) = &self.spec.user {
                self.check_subscriber(key, &format!("/{user}/agent/{agent}"), agent, findings);
            }
        }
    }

    /// Finds an agent that talks through no connector where others do: what it replies reaches
    /// nobody. `definition` is its, as far as its path says it.
    fn check_subscriber(
        &self,
        key: &str,
        path: &str,
        definition: &str,
        findings: &mut Vec<Finding>,
    ) {
        let Self { config, spec, .. } = self;
        let Some(user) = spec.user.as_ref().filter(|_| spec.deliver != Deliver::None) else {
            return;
        };
        let talking = || config.connectors.iter().filter(|(_, it)| it.enabled);
        let own = talking().find(|(_, it)| it.agent.0 == definition);
        let Some((connector, _)) = own.or_else(|| talking().next()) else {
            return;
        };
        let why = match own {
            Some(_) => format!(
                "whoever talks with `{definition}` through `{connector}` does so as \
                 `/{user}/{connector}`, and this is another agent, `{path}`, whose replies nobody \
                 is sent"
            ),
            None => format!("`{path}` talks through no connector: nobody is sent what it replies"),
        };
        let message = format!(
            "{why}; write target = {{ path = \"/{user}/{connector}\" }} to be heard there, or \
             `deliver = \"none\"`"
        );
        findings.push(warning(key, message));
    }

    /// Finds a path of a connector that there is not, or that stands still.
    fn check_connector(&self, key: &str, connector: &ConnectorName, findings: &mut Vec<Finding>) {
        let all = &self.config.connectors;
        let message = match all.get(connector) {
            Some(spec) if spec.enabled => return,
            Some(_) => format!("the connector `{connector}` stands still; write enabled = true"),
            None => {
                let known: Vec<&str> = all.keys().map(ConnectorName::as_str).collect();
                let fix = meant(connector.as_str(), &known, || {
                    "add it to `connectors`, or name another".to_owned()
                });
                format!("there is no connector `{connector}`; {fix}")
            }
        };
        findings.push(warning(key, message));
    }

    /// Finds a path of a trigger's own of which nobody can tell which agent is to be made there.
    fn check_own_path(&self, key: &str, path: &AgentPath, findings: &mut Vec<Finding>) {
        let (PathKind::Cron | PathKind::Task, Root::Named { name, .. }) =
            (path.kind(), path.origin())
        else {
            return;
        };
        let agents = &self.config.agents;
        let is_usual = |id: &str| id == name.as_str() || id == ASSISTANT;
        let is_reported = agents.len() == 1 || agents.iter().any(|it| is_usual(&it.agent_id.0));
        if !is_reported {
            let message = format!(
                "it is made when the trigger first fires, and nothing says from which definition: \
                 no `agentId` is `{name}` or `{ASSISTANT}`; call one so, or make the agent over \
                 the API before"
            );
            findings.push(warning(key, message));
        }
    }

    fn check_path(&self, key: String, path: &AgentPath, findings: &mut Vec<Finding>) {
        let Some(user) = &self.spec.user else {
            return;
        };
        self.check_own_path(&key, path, findings);
        if path.user().is_some_and(|owner| owner != user) {
            let message = format!(
                "`{path}` is not an agent of `{user}`, for whom the trigger speaks; it is taken \
                 only if `{user}` has a role there"
            );
            return findings.push(warning(key, message));
        }
        match (path.kind(), path.origin()) {
            (PathKind::Connector, Root::Connector { connector, .. }) => {
                self.check_connector(&key, connector, findings);
            }
            (PathKind::Agent | PathKind::Cron | PathKind::Task, Root::Named { name, .. }) => {
                self.check_subscriber(&key, &path.to_string(), name.as_str(), findings);
            }
            // Apps, and users of a gateway's own, hear what is said there. Others are told of by
            // their rules, or work for those above them.
            _ => {}
        }
    }

    fn check_persona(&self, key: String, persona: &PersonaId, findings: &mut Vec<Finding>) {
        let personas = &self.config.personas;
        let Some(found) = personas.iter().find(|known| known.id == *persona) else {
            let known: Vec<&str> = personas.iter().map(|known| known.id.as_str()).collect();
            let fix = meant(persona.as_str(), &known, || {
                "add it to `personas`, or name another".to_owned()
            });
            let message = format!("there is no persona `{persona}` in `personas`; {fix}");
            return findings.push(error(key, message));
        };
        let (Some(user), Some(users)) = (&self.spec.user, &found.users) else {
            return;
        };
        if users.iter().all(|known| known != user.as_str()) {
            let message = format!(
                "`{user}` may not write to the persona `{persona}`; add `{user}` to its `users`, \
                 or name another"
            );
            findings.push(error(key, message));
        }
    }

    fn check_kind(&self, findings: &mut Vec<Finding>) {
        match &self.spec.on {
            TriggerKind::Webhook(webhook) => {
                let secret = webhook.auth.secret();
                // What is no name is a fault of the trigger alone.
                if is_secret_name(secret) && !self.config.secrets.contains_key(secret) {
                    let kind = auth_key(&webhook.auth);
                    let key = self.key(&format!("webhook.auth.{kind}.secret"));
                    findings.push(error(key, secrets::not_there(self.config)));
                }
            }
            TriggerKind::Files(files) => {
                self.check_folder("files.folder", &files.folder, findings);
            }
            TriggerKind::Heartbeat(heartbeat) => {
                if let Some(checklist) = &heartbeat.checklist {
                    let field = "heartbeat.checklist.componentDirectory";
                    self.check_folder(field, &checklist.component_directory, findings);
                }
            }
            TriggerKind::Schedule(_) => {
                let is_own = self.spec.component() == OWN_CLOCK && !self.is_replaced(OWN_CLOCK);
                if is_own && self.spec.message.is_none() {
                    let message = "there is nothing to say when the time has come; write the \
                                   message, such as \"Good morning.\"";
                    findings.push(error(self.key("message"), message));
                }
            }
            TriggerKind::Events(events) => {
                let agents = self.config.agents.iter();
                let ids = agents.map(|agent| agent.agent_id.0.as_str()).collect();
                let key = self.key("events.agents");
                let listed = events.agents.as_ref();
                findings.extend(patterns::nothing(&key, listed, "agent", &ids));
            }
        }
    }

    /// Returns whether a component of the operator's has the name of one that is built in.
    fn is_replaced(&self, component: &str) -> bool {
        let configured = self.config.components.get(component);
        configured.is_some_and(|it| it.path.is_some())
    }

    /// Checks a folder that the trigger's component has to be granted, as one that all share.
    fn check_folder(&self, field: &str, folder: &str, findings: &mut Vec<Finding>) {
        let component = self.spec.component();
        let granted = self.config.components.get(component);
        let granted = granted.map_or(&[][..], |it| it.directories.as_slice());
        let Some(found) = granted.iter().find(|grant| grant.at == folder) else {
            let known: Vec<&str> = granted.iter().map(|grant| grant.at.as_str()).collect();
            let fix = meant(folder, &known, || {
                format!(
                    "grant it: components.{component}.directories = [{{ path = \"…\", at = \
                     \"{folder}\", access = \"read-only\" }}]"
                )
            });
            let message = format!("`{component}` is granted no folder at `{folder}`; {fix}");
            return findings.push(error(self.key(field), message));
        };
        let pattern = FolderPattern::parse(&found.path).ok();
        if let Some(pattern) = pattern.filter(FolderPattern::is_owned) {
            let message = format!(
                "`{}` is a folder for each {}, and a trigger looks at one that all share; grant it \
                 another",
                found.path.display(),
                pattern.owners_text()
            );
            findings.push(error(self.key(field), message));
        }
    }
}

/// Finds names that `hooks` has and that there are not.
fn check_hooks(config: &Config, findings: &mut Vec<Finding>) {
    let Some(hooks) = &config.hooks else {
        return;
    };
    if !config.secrets.contains_key(&hooks.token) {
        findings.push(error("hooks.token", secrets::not_there(config)));
    }
    let agents = hooks.agents.iter().enumerate();
    let agents = agents.map(|(index, agent)| (format!("hooks.agents[{index}]"), agent));
    for (key, agent) in std::iter::once(("hooks.agent".to_owned(), &hooks.agent)).chain(agents) {
        let missing = known::no_agent(config, agent);
        findings.extend(missing.map(|message| error(key, message)));
    }
}

/// Returns the key under which a proof is written.
fn auth_key(auth: &WebhookAuth) -> &'static str {
    match auth {
        WebhookAuth::Token { .. } => "token",
        WebhookAuth::Hmac { .. } => "hmac",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::super::tests::findings;

    const REST: &str = "[[agents]]\nagentId = \"assistant\"\ndisplayName = \"A\"\n[secrets.hook]\n\
                        command = [\"true\"]\n[[personas]]\nid = \"home\"\ndisplayName = \
                        \"H\"\nagent = \"assistant\"\nusers = [\"bob\"]\n\
                        [components.files-watch]\ndirectories = [{ path = \"in\", at = \"/inbox\", \
                        access = \"read-only\" }, { path = \"{user}\", at = \"/own\", access = \
                        \"read-only\" }]\n";

    /// Returns the findings about a trigger of `ada`'s.
    fn reported(trigger: &str) -> Vec<String> {
        findings(&format!("{REST}[triggers.t]\nuser = \"ada\"\n{trigger}\n"))
            .into_iter()
            .filter(|(_, key, _)| key.starts_with("triggers."))
            .map(|(severity, key, message)| match severity {
                Severity::Error => format!("{key}: {message}"),
                Severity::Warning => format!("warning: {key}: {message}"),
            })
            .collect()
    }

    #[test]
    fn triggers_whose_names_are_all_there_are_fine() {
        for trigger in [
            "schedule = { cron = \"0 9 * * 1-5\", timeZone = \"Europe/Berlin\" }\nmessage = \
             \"Good morning.\"\ntarget = { agent = \"assistant\" }",
            "heartbeat = {}\ntarget = { path = \"/ada/agent/assistant\" }",
            "webhook = { auth = { token = { secret = \"hook\" } } }\ntarget = { agent = \
             \"7b3c2a54-8a75-4c7b-9d7e-0d7f3c1d2e3f\" }",
            "files = { folder = \"/inbox\" }\ntarget = { agent = \"/ada/agent/x\" }",
            "events = { on = [\"session.completed\"] }\ntarget = { smart = {} }",
        ] {
            assert_eq!(reported(trigger), Vec::<String>::new(), "{trigger}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_trigger_is_told_with_its_key_and_the_fix() {
        let to = "target = { agent = \"assistant\" }";
        for (trigger, key, says) in [
            (
                format!("schedule = {{ cron = \"0 9 * *\" }}\nmessage = \"x\"\n{to}"),
                "triggers.t.schedule.cron",
                ";",
            ),
            (
                format!("schedule = {{ every = \"5s\" }}\nmessage = \"x\"\n{to}"),
                "triggers.t.schedule.every",
                "at least `30s`",
            ),
            (
                format!("schedule = {{ every = \"5m\" }}\n{to}"),
                "triggers.t.message",
                "there is nothing to say",
            ),
            (
                "heartbeat = {}\ntarget = { agent = \"asistant\" }".to_owned(),
                "triggers.t.target.agent",
                "did you mean `assistant`?",
            ),
            (
                "heartbeat = {}\ntarget = { persona = \"home\" }".to_owned(),
                "triggers.t.target.persona",
                "add `ada` to its `users`",
            ),
            (
                "heartbeat = {}\ntarget = { persona = \"hone\" }".to_owned(),
                "triggers.t.target.persona",
                "did you mean `home`?",
            ),
            (
                "heartbeat = {}\ntarget = { path = \"/bob/agent/x\" }".to_owned(),
                "warning: triggers.t.target.path",
                "not an agent of `ada`",
            ),
            (
                format!("heartbeat = {{}}\ncomponent = \"heartbaet\"\n{to}"),
                "triggers.t.component",
                "did you mean `heartbeat`?",
            ),
            (
                format!("heartbeat = {{}}\nmodel = \"small\"\n{to}"),
                "triggers.t.model",
                "there is no model `small`",
            ),
            (
                format!("webhook = {{ auth = {{ token = {{ secret = \"hok\" }} }} }}\n{to}"),
                "triggers.t.webhook.auth.token.secret",
                "which has `hook`",
            ),
            (
                format!(
                    "events = {{ on = [\"input.dead\"], agents = [\"asist*\"] }}\nmessage = \
                     \"x\"\n{to}"
                ),
                "warning: triggers.t.events.agents[0]",
                "`asist*` matches no agent",
            ),
            (
                format!("files = {{ folder = \"/inbx\" }}\n{to}"),
                "triggers.t.files.folder",
                "did you mean `/inbox`?",
            ),
            (
                format!("files = {{ folder = \"/own\" }}\n{to}"),
                "triggers.t.files.folder",
                "a folder for each user",
            ),
            (
                format!(
                    "heartbeat = {{ checklist = {{ componentDirectory = \"/notes\", file = \
                     \"HEARTBEAT.md\" }} }}\n{to}"
                ),
                "triggers.t.heartbeat.checklist.componentDirectory",
                "components.heartbeat.directories",
            ),
        ] {
            let found = reported(&trigger);
            let [one] = found.as_slice() else {
                panic!("{trigger}: {found:?}")
            };
            assert!(
                one.starts_with(&format!("{key}: ")) && one.contains(says),
                "{one}"
            );
        }
    }

    #[test]
    fn a_target_that_nobody_talks_with_is_told_with_the_one_that_hears() {
        let connector = "[connectors.chat]\ncomponent = \"telegram\"\nagent = \"assistant\"\n";
        let of = |trigger: &str| {
            reported(&format!("{trigger}\n{connector}"))
                .into_iter()
                .filter(|it| it.contains("triggers.t.target"))
                .collect::<Vec<_>>()
        };
        for (target, says) in [
            (
                "agent = \"assistant\"",
                "whoever talks with `assistant` through `chat`",
            ),
            (
                "path = \"/ada/agent/assistant\"",
                "`/ada/agent/assistant`, whose replies",
            ),
            (
                "path = \"/ada/agent/ops\"",
                "`/ada/agent/ops` talks through no connector",
            ),
            (
                "agent = \"/ada/agent/ops\"",
                "`/ada/agent/ops` talks through no connector",
            ),
            (
                "path = \"/ada/cron/report\"",
                "`/ada/cron/report` talks through no connector",
            ),
        ] {
            let found = of(&format!("heartbeat = {{}}\ntarget = {{ {target} }}"));
            let [one] = found.as_slice() else {
                panic!("{target}: {found:?}")
            };
            let fix = "target = { path = \"/ada/chat\" }";
            assert!(one.contains(says) && one.contains(fix), "{one}");
        }
        for (path, says) in [
            (
                "/ada/chatt",
                "there is no connector `chatt`; did you mean `chat`?",
            ),
            ("/adda/chat", "is not an agent of `ada`"),
        ] {
            let found = of(&format!(
                "heartbeat = {{}}\ntarget = {{ path = \"{path}\" }}"
            ));
            assert!(found.len() == 1 && found[0].contains(says), "{found:?}");
        }
        for heard in [
            "heartbeat = {}\ntarget = { path = \"/ada/chat\" }",
            "heartbeat = {}\ndeliver = \"none\"\ntarget = { agent = \"assistant\" }",
            "heartbeat = {}\ndeliver = \"none\"\ntarget = { path = \"/ada/cron/daily\" }",
            "heartbeat = {}\ntarget = { path = \"/ada/app/pocket\" }",
        ] {
            assert_eq!(of(heard), Vec::<String>::new(), "{heard}");
        }
    }

    #[test]
    fn a_trigger_says_for_whom_it_speaks_and_has_no_name_of_the_hooks() {
        let text = "heartbeat = {}\ntarget = { agent = \"assistant\" }\n";
        let found = findings(&format!(
            "{REST}[triggers.a]\n{text}[triggers.wake]\nuser = \"ada\"\n{text}"
        ));
        let keys: Vec<&str> = found
            .iter()
            .filter(|(severity, _, _)| *severity == Severity::Error)
            .map(|(_, key, _)| key.as_str())
            .filter(|key| key.starts_with("triggers"))
            .collect();
        assert_eq!(keys, ["triggers.a.user", "triggers.wake"]);
    }

    #[test]
    fn names_that_are_not_there_are_told_and_a_secret_is_not_repeated() {
        let reported: Vec<(Severity, String, String)> = findings(
            "[[agents]]\nagentId = \"assistant\"\ndisplayName = \"A\"\n[hooks]\ntoken = \
             \"sk-live-12345\"\nuser = \"ada\"\nagent = \"assistant\"\nagents = [\"tutor\"]\n",
        );
        let reported: Vec<(&str, &str)> = reported
            .iter()
            .filter(|(severity, _, _)| *severity == Severity::Error)
            .map(|(_, key, message)| (key.as_str(), message.as_str()))
            .collect();
        let [(token, of_token), (agents, of_agents)] = reported.as_slice() else {
            panic!("{reported:?}")
        };
        assert_eq!((*token, *agents), ("hooks.token", "hooks.agents[0]"));
        assert!(!of_token.contains("12345"), "{of_token}");
        assert!(
            of_agents.contains("there is no agent `tutor`"),
            "{of_agents}"
        );
    }
}
