//! Reading the configuration and the components again, and serving what they say by now.
//!
//! All of it is served, or nothing: a configuration that is refused leaves what was served as it
//! was. Only for an author of plugins, a component that cannot be loaded keeps its code and lets
//! the rest go on, where its pin permits that.
//!
//! ## Where things are
//!
//! - looks at files: `reload/watch.rs`
//! - the files that a configuration names, with code that is loaded or kept, and granted folders
//!   in whose places others are: `reload/files.rs`
//! - keeping up with the file, requests and SIGHUP, and changes that the file would make:
//!   `reload/pending.rs`
//! - what is told of a change or a refusal: `reload/report.rs`, `reload/refused.rs`

mod files;
pub(crate) mod pending;
mod refused;
mod report;
pub(crate) mod watch;

pub(crate) use files::no_sources;
pub(crate) use pending::{ReloadChannels, keep_up};
pub(crate) use refused::Refused;

use crate::config::{self, Config, LoadError, Loaded, ReloadMode};
use crate::failure::{Exit, Failure};
use crate::serve::{
    Reach, command_runtime, edge_settings, folders_of, http_egress, open_folders, refuse_errors,
    skill_folders, startable, warnings,
};
use crate::terminal::Terminal;
use crate::{guests, models};
use api::ReloadReport;
use broker::{Broker, Catalogue, Entry, RefusedReload, Reload, Settings};
use domain::definition::DefinitionId;
use domain::difference::{Difference, differences};
use domain::digest::Digest;
use domain::event::ReloadCause;
use domain::skill::SkillFolder;
use domain::user::UserId;
use edge::Edge;
use files::{digests, has_code_of, paths_of, products, scripts};
use runtime::Runtime;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use watch::SourceScan;

/// A host that is serving.
pub(crate) struct Host {
    pub(crate) broker: Broker,
    pub(crate) runtime: Runtime,
    pub(crate) edge: Edge,
    /// The configuration that it serves, with the options of the command line.
    pub(crate) loaded: Loaded,
    /// The address at which it really listens.
    pub(crate) address: SocketAddr,
    pub(crate) terminal: Terminal,
}

/// The request to have the configuration read again.
#[derive(Debug, Clone)]
pub(crate) struct ReloadOrder {
    pub(crate) because: ReloadCause,
    /// The user who asks for it, if somebody does.
    pub(crate) user: Option<UserId>,
    /// True if the code of components stays, as long as their files and pins do.
    pub(crate) holds_code: bool,
    /// True if the file may be half written, so that one is put off which takes served agents
    /// away, or is the beginning of what is served.
    pub(crate) may_be_cut: bool,
}

impl ReloadOrder {
    /// The request of a host whose file has changed a moment ago: it may be half written.
    pub(crate) fn of_changed_file(holds_code: bool) -> Self {
        Self {
            may_be_cut: true,
            ..Self::of_file(holds_code)
        }
    }

    /// The request of a host whose file is to be tried again, and has stayed what it is meanwhile.
    pub(crate) fn of_file(holds_code: bool) -> Self {
        Self {
            because: ReloadCause::File,
            user: None,
            holds_code,
            may_be_cut: false,
        }
    }
}

/// The configuration as it was when the host started.
pub(crate) struct Start {
    /// It, as its file had it.
    pub(crate) config: Config,
    /// The scan of the file.
    pub(crate) file: SourceScan,
}

/// The state of reading again.
pub(crate) struct Reloading {
    host: Host,
    /// True for an author of plugins: changes are told on the terminal and not in the log, and a
    /// component that cannot be loaded keeps its code.
    is_for_author: bool,
    start: Start,
    /// The configuration that was read last, served or not.
    wanted: Loaded,
    /// The last error about each subject, so that it is told once.
    reported: BTreeMap<String, String>,
    /// The warnings that were told.
    warned: BTreeSet<String>,
    /// The keys of which was told that they need a restart.
    needing_restart: Vec<String>,
    /// The rule files of scripted providers as they were when the host started, by their keys.
    scripts: BTreeMap<String, Option<Digest>>,
}

/// The subject of errors about the configuration as a whole.
const CONFIGURATION: &str = "configuration";

/// Returns whether a text is what was written of another that is not whole yet.
fn is_beginning(text: &str, whole: &str) -> bool {
    text.len() < whole.len() && whole.starts_with(text)
}

/// Returns the first agent, trigger or connector that one configuration has and another one lacks,
/// in words.
fn gone(before: &Config, after: &Config) -> Option<String> {
    let stay: BTreeSet<&DefinitionId> = after.agents.iter().map(|it| &it.agent_id).collect();
    let mut agents = before.agents.iter().map(|it| &it.agent_id);
    let agent = agents.find(|id| !stay.contains(id));
    let triggers = before.all_triggers();
    let stay = after.all_triggers();
    let trigger = triggers.keys().find(|name| !stay.contains_key(*name));
    let mut connectors = before.connectors.keys();
    let connector = connectors.find(|name| !after.connectors.contains_key(*name));
    agent
        .map(|id| format!("the agent `{id}`"))
        .or_else(|| trigger.map(|name| format!("the trigger `{name}`")))
        .or_else(|| connector.map(|name| format!("the connector `{name}`")))
}

impl Reloading {
    /// Begins with what the host serves.
    pub(crate) async fn new(host: Host, start: Start) -> Self {
        let warned = warnings(&host.loaded, &host.broker.catalogue());
        Self {
            is_for_author: false,
            scripts: digests(scripts(&host.loaded)).await,
            wanted: host.loaded.clone(),
            start,
            reported: BTreeMap::new(),
            warned: warned.iter().map(ToString::to_string).collect(),
            needing_restart: Vec::new(),
            host,
        }
    }

    /// Works for an author of plugins from now on.
    pub(crate) fn for_author(self) -> Self {
        Self {
            is_for_author: true,
            ..self
        }
    }

    /// Returns true if a changed file waits until somebody asks for it.
    pub(crate) fn is_manual(&self) -> bool {
        self.host.loaded.config.server.reload == ReloadMode::Manual
    }

    /// Returns the files and folders that are no sources by now.
    pub(crate) fn no_sources(&self) -> Vec<PathBuf> {
        no_sources(&self.wanted)
    }

    /// Looks at the files that a change of would have to be served: the configuration, the
    /// components and the rules of scripted providers.
    pub(crate) async fn inspect(&self) -> SourceScan {
        let mut files = products(&self.wanted);
        files.push(self.wanted.file.clone());
        files.extend(scripts(&self.wanted).into_values());
        // A scan of a few files does not panic.
        tokio::task::spawn_blocking(move || SourceScan::at(files))
            .await
            .unwrap_or_default()
    }

    /// Looks at the file of the configuration alone.
    async fn poll_file(&self) -> SourceScan {
        let file = self.host.loaded.file.clone();
        // A scan of a file does not panic.
        tokio::task::spawn_blocking(move || SourceScan::at([file]))
            .await
            .unwrap_or_default()
    }

    /// Serves what configuration and components say by now, as a whole. A refusal is on record and
    /// told once; the error has it, and when it may pass without a change of a file that is looked
    /// at. What is only put off is neither told nor on record.
    pub(crate) async fn reload(
        &mut self,
        reload_order: &ReloadOrder,
    ) -> Result<ReloadReport, Refused> {
        match self.try_reload(reload_order).await {
            Ok(outcome) => {
                self.reported.remove(CONFIGURATION);
                Ok(outcome)
            }
            Err(refused) if refused.is_put_off() => {
                let reason = refused.reason();
                let says = "a changed file is put off for a while, for it may be half written";
                if reload_order.because == ReloadCause::File {
                    tracing::debug!(reason, "{says}");
                } else {
                    tracing::info!(reason, "{says}");
                }
                Err(refused)
            }
            Err(refused) => {
                self.record(reload_order, &refused).await;
                self.tell(
                    CONFIGURATION,
                    &refused.failure,
                    "nothing of it is served; what was served goes on",
                );
                Err(refused)
            }
        }
    }

    /// Has a refusal recorded. That of a file nobody asked about, for the reason that was told
    /// last, is recorded already: such a file is tried again and again.
    async fn record(&self, reload_order: &ReloadOrder, refused: &Refused) {
        let is_asked_for = reload_order.because != ReloadCause::File;
        if !is_asked_for && self.has_reported(CONFIGURATION, &refused.failure) {
            return;
        }
        let record = RefusedReload {
            because: reload_order.because,
            user: reload_order.user.clone(),
            reason: refused.reason(),
        };
        if let Err(error) = self.host.broker.configuration().note_refused(record).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the refusal of a configuration could not be recorded"
            );
        }
    }

    /// Reads the file, for the host's data folder. It must be the same before and after, or it was
    /// still being written and is put off, whoever asked: that it changed is noticed anyhow.
    fn read(&self) -> Result<Loaded, Refused> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let file = &self.host.loaded.file;
        let before = SourceScan::at([file.clone()]);
        let read = config::load(file, variables);
        if SourceScan::at([file.clone()]) != before {
            return Err(Refused::until_it_is_written(file));
        }
        let read = read.map_err(|error| match error {
            // It may be written at the next attempt.
            LoadError::Empty { .. } => Refused::for_now(Failure::new(Exit::Usage, error)),
            other => Refused::for_good(Failure::new(Exit::Usage, other)),
        })?;
        Ok(Loaded {
            data: self.host.loaded.data.clone(),
            ..read
        })
    }

    async fn try_reload(&mut self, reload_order: &ReloadOrder) -> Result<ReloadReport, Refused> {
        let read = self.read()?;
        let next = self.beside_the_rest(read.clone())?;
        self.wanted = next.clone();
        self.check_whole(read.clone()).await?;
        self.check_data_folder(&read).await?;
        let other_code = self.other_code(&next, reload_order.holds_code).await?;
        let other_code = paths_of(&other_code).collect();
        self.name_what_needs_a_restart(&read.config, other_code)
            .await;
        let served = Box::pin(self.serve_next(next, reload_order)).await;
        served.map_err(|refused| refused.beside(&self.needing_restart))
    }

    /// Puts a configuration off that may be half written: it is the beginning of the one that is
    /// served, or lacks an agent, a trigger or a connector. Nothing else is wrong with it.
    fn put_off_if_cut(&self, next: &Loaded) -> Result<(), Refused> {
        if is_beginning(&next.written, &self.host.loaded.written) {
            return Err(Refused::until_it_is_whole());
        }
        match gone(&self.host.loaded.config, &next.config) {
            Some(gone) => Err(Refused::until_it_stayed(&gone)),
            None => Ok(()),
        }
    }

    /// Refuses a file with which no host starts, as a start and `config check` do. Nothing that is
    /// set up for that stays. The code of an author of plugins is looked at chunk by chunk.
    async fn check_whole(&self, read: Loaded) -> Result<(), Refused> {
        let has_whole_code = !self.is_for_author;
        let check = move || -> Result<(), Failure> {
            // What it warns of would be told again and again; a start tells it.
            let silent = tracing::Dispatch::none();
            let set_up = || startable(&read, &config::check(&read));
            drop(tracing::dispatcher::with_default(&silent, set_up)?);
            if has_whole_code {
                guests::check_sizes(&read)?;
            }
            Ok(())
        };
        let checked = tokio::task::spawn_blocking(check).await;
        // The files that it names are not looked at, so that they may be right at the next attempt.
        checked
            .map_err(|error| Refused::for_now(error.into()))?
            .map_err(Refused::for_now)
    }

    /// Refuses another data folder that no host could use, as a start and `config check` do. One
    /// that could be used is there afterwards.
    async fn check_data_folder(&self, read: &Loaded) -> Result<(), Refused> {
        if read.data_dir() == self.host.loaded.data_dir() {
            return Ok(());
        }
        let runtime = command_runtime(read, Reach::default()).await;
        runtime.map(drop).map_err(Refused::for_now)
    }

    /// Serves a configuration whose file a host can start with, if what is read at a start only
    /// permits it.
    async fn serve_next(
        &mut self,
        next: Loaded,
        reload_order: &ReloadOrder,
    ) -> Result<ReloadReport, Refused> {
        refuse_errors(&config::check(&next)).map_err(Refused::for_now)?;
        let alike = config::secrets_alike(&next.config, self.host.runtime.secrets());
        refuse_errors(&alike).map_err(Refused::for_good)?;
        http_egress(&next).map_err(Refused::for_good)?;
        let entries = self.entries(&next, reload_order.holds_code).await?;
        let before = self.host.broker.catalogue();
        // Files of skills are not looked at, so that they may be right at the next attempt.
        let skills = skill_folders(&next).map_err(Refused::for_now)?;
        if next.config == self.host.loaded.config
            && has_code_of(&entries, &before)
            && before.skill_folders() == skills
        {
            return self.keep(next, &entries).await;
        }
        let settings = self.settings(&next)?;
        let folders = folders_of(&entries);
        let catalogue = self.catalogue(&next, entries, skills).await?;
        if reload_order.may_be_cut {
            self.put_off_if_cut(&next)?;
        }
        let differences = differences(&json!(self.host.loaded.config), &json!(next.config));
        let left_behind = self.left_behind(&next).await.by_change;
        let folders_opened = self.moved_folders().await;
        let Host {
            broker, runtime, ..
        } = &self.host;
        let data = next.data_dir();
        open_folders(runtime, folders, &data)
            .await
            .map_err(Refused::for_now)?;
        let reload = Reload {
            catalogue,
            settings,
            because: reload_order.because,
            user: reload_order.user.clone(),
            differences: differences.clone(),
            needs_restart: self.needing_restart.clone(),
        };
        let reloaded = match broker.configuration().reload(reload).await {
            Ok(reloaded) => reloaded,
            Err(error) => {
                // What is still served finds its folders, also after the next attempt.
                let entries: Vec<Entry> =
                    before.entries().map(|entry| Entry::clone(entry)).collect();
                let _ = open_folders(runtime, folders_of(&entries), &data).await;
                return Err(Refused::for_now(error.into()));
            }
        };
        self.replace_edge(&next).await;
        let replaced = std::mem::replace(&mut self.host.loaded, next);
        self.report(&before, &replaced.config);
        Ok(ReloadReport {
            folders_opened,
            left_behind: refused::content(&left_behind),
            ..self.outcome(reloaded, differences)
        })
    }

    /// Goes on with what is served: the next configuration says the same.
    async fn keep(&mut self, next: Loaded, entries: &[Entry]) -> Result<ReloadReport, Refused> {
        let folders_opened = self.open_what_moved(entries).await?;
        self.host.loaded.written = next.written;
        let present = self.host.broker.configuration().digest();
        let unchanged = broker::Reloaded {
            configuration: present,
            replaces: present,
        };
        Ok(ReloadReport {
            folders_opened,
            ..self.outcome(unchanged, Vec::new())
        })
    }

    /// Has the edge serve the triggers and connectors of a configuration. Their components are
    /// served already.
    async fn replace_edge(&self, next: &Loaded) {
        let settings = edge_settings(next, &self.host.runtime);
        if let Err(error) = self.host.edge.replace(settings).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "triggers and connectors are served as configured, but that could not be recorded; \
                 the next start does that"
            );
        }
    }

    fn outcome(&self, reloaded: broker::Reloaded, differences: Vec<Difference>) -> ReloadReport {
        ReloadReport {
            configuration: reloaded.configuration,
            replaces: reloaded.replaces,
            differences,
            needs_restart: self.needing_restart.clone(),
            folders_opened: Vec::new(),
            left_behind: Vec::new(),
            definitions_left_out: self.host.broker.catalogue().left_out().len(),
        }
    }

    /// Returns the settings that are served beside the catalogue of a configuration. Models that
    /// are the same stay what they are.
    fn settings(&self, next: &Loaded) -> Result<Settings, Refused> {
        let served = self.host.broker.configuration().settings();
        let wanted = next.config.gateway();
        let gateway = if wanted == self.host.loaded.config.gateway() {
            served.gateway
        } else {
            let gateway = served.gateway.successor(wanted);
            Arc::new(gateway.map_err(|error| Refused::for_good(Failure::new(Exit::Usage, error)))?)
        };
        models::check_agents(&gateway, &next.config).map_err(Refused::for_good)?;
        Ok(Settings {
            limits: next.config.broker(),
            paths: next.config.path_settings(),
            gateway,
        })
    }

    /// Returns the served configuration with the parts of another one that are read again.
    fn beside_the_rest(&self, read: Loaded) -> Result<Loaded, Refused> {
        let mut next = self.host.loaded.clone();
        next.overlaid = read.overlaid;
        next.written = read.written;
        let config = config::reloaded(&read.config, &next.config);
        next.config = config.map_err(|error| Refused::for_good(error.into()))?;
        Ok(next)
    }

    async fn catalogue(
        &self,
        next: &Loaded,
        entries: Vec<Entry>,
        skills: Vec<SkillFolder>,
    ) -> Result<Catalogue, Refused> {
        let before = self.host.broker.catalogue();
        let definitions = next.listening_at(self.host.address).config.definitions();
        let personas = next.config.personas.clone();
        let digest = next.config.digest();
        let disabled = next.config.agent_tools.disabled.clone();
        // Schemas are compiled, which is waited for.
        let put_together = tokio::task::spawn_blocking(move || {
            before
                .successor(definitions, entries)
                .and_then(|catalogue| catalogue.with_personas(personas))
                .map(|catalogue| catalogue.without_agent_tools(&disabled))
                .map(|catalogue| catalogue.read_from(digest).with_skills(skills))
        });
        let catalogue = put_together
            .await
            .map_err(|error| Refused::for_good(error.into()))?
            .map_err(|misfit| Refused::for_good(Failure::new(Exit::Usage, misfit)))?;
        let unfit = config::unfit(&next.config, &catalogue).await;
        refuse_errors(&unfit).map_err(Refused::for_good)?;
        Ok(catalogue)
    }

    /// Names the changed keys that are read at a start only. That of a rule file or of the file of
    /// a component stands for what is in it.
    async fn name_what_needs_a_restart(&mut self, read: &Config, other_code: Vec<String>) {
        let mut changed = config::read_at_a_start(&json!(self.start.config), &json!(read));
        let scripts = digests(scripts(&self.host.loaded)).await;
        let other = scripts
            .into_iter()
            .filter(|(key, digest)| self.scripts.get(key) != Some(digest));
        changed.extend(other.map(|(key, _)| key));
        changed.extend(other_code);
        if changed == self.needing_restart {
            return;
        }
        self.needing_restart.clone_from(&changed);
        if changed.is_empty() {
            return;
        }
        if !self.is_for_author {
            tracing::warn!(
                keys = changed.join(", "),
                "keys of the configuration were changed that are read at a start only"
            );
            return;
        }
        let document = json!({ "event": "needs_restart", "keys": changed });
        self.host.terminal.result(&document, || {
            vec![format!(
                "changed, and served after a restart only: {}",
                changed.join(", ")
            )]
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{gone, is_beginning};
    use crate::config::Config;
    use serde_json::json;

    #[test]
    fn a_file_that_was_cut_is_the_beginning_of_what_it_was() {
        let whole = "[[agents]]\nagentId = \"a\"\ntoolAllowlist = []\n";
        assert!(is_beginning("[[agents]]\nagentId = \"a\"\n", whole));
        assert!(is_beginning("", whole));
        for other in [whole, "[[agents]]\nagentId = \"b\"\n", "# more\n"] {
            assert!(!is_beginning(other, whole), "{other}");
        }
        assert!(!is_beginning(&format!("{whole}toolDenylist = []\n"), whole));
    }

    #[test]
    fn an_agent_a_trigger_or_a_connector_that_would_go_is_named() {
        let whole = json!({
            "agents": [{ "agentId": "a", "displayName": "A" }],
            "triggers": { "t": { "heartbeat": {}, "target": { "agent": "a" } } },
            "hooks": { "token": "hook", "user": "ada", "agent": "a" },
            "connectors": { "c": { "component": "telegram", "agent": "a" } },
        });
        let config =
            |of: &serde_json::Value| -> Config { serde_json::from_value(of.clone()).unwrap() };
        assert_eq!(gone(&config(&whole), &config(&whole)), None);
        assert_eq!(gone(&Config::default(), &config(&whole)), None);
        for (key, expected) in [
            ("agents", "the agent `a`"),
            ("triggers", "the trigger `t`"),
            ("hooks", "the trigger `agent`"),
            ("connectors", "the connector `c`"),
        ] {
            let mut without = whole.clone();
            without.as_object_mut().unwrap().remove(key);
            let gone = gone(&config(&whole), &config(&without));
            assert_eq!(gone.as_deref(), Some(expected), "{key}");
        }
    }
}
