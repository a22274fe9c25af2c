//! Running the host: opening everything in order, and closing it in the reverse.

mod lifecycle;

pub(crate) use lifecycle::{startable, warnings};

use crate::cli::{self, COMPILE_COMMAND};
use crate::config::{self, Config, Finding, LimitsConfig, Loaded, Severity, out_of_range};
use crate::dev::Dev;
use crate::failure::{Exit, Failure};
use crate::log::LogRedaction;
use crate::reload::watch::SourceScan;
use crate::reload::{self, Host, ReloadChannels, Reloading};
use crate::terminal::Terminal;
use crate::{guests, token};
use anyhow::{Context, anyhow};
use api::{Access, Api, Clock, Identity, Server, Stopper};
use broker::{AfterRestore, Broker, Catalogue, Entry};
use domain::error_code::ErrorCode;
use domain::grant::DirectoryGrant;
use domain::secret::Secrets;
use domain::skill::SkillFolder;
use edge::{Edge, EdgeParts, EdgeSettings};
use egress::{Egress, Resolve, SystemResolver};
use lifecycle::{Stopping, announce};
use llm::Gateway;
use runtime::{Compiler, Runtime};
use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::task::TaskTracker;

/// The two ways on for a data folder that was restored with work under way.
const AFTER_RESTORE: &str = "`serve --resume-effects` continues it, and sends again what was sent \
                             after the backup; `serve --settle-unknown` reports these calls to the \
                             agents as of unknown outcome, and turns the inputs into dead letters";
/// The file in the data folder with the address of a running host.
pub(crate) const ADDRESS_FILE: &str = "address";

/// The file in the data folder that carries the host's time from one start to the next.
const CLOCK_FILE: &str = "clock";

/// The options of serving.
pub(crate) struct ServeOptions<'a> {
    pub(crate) options: &'a cli::Serve,
    /// The scan of the file from before it was read.
    pub(crate) file: SourceScan,
    /// The part that takes up changes meanwhile.
    pub(crate) dev: Option<Dev>,
}

impl<'a> ServeOptions<'a> {
    /// Serves what there is at the start, and the changes of the file since this scan of it.
    pub(crate) fn of(options: &'a cli::Serve, file: SourceScan) -> Self {
        Self {
            options,
            file,
            dev: None,
        }
    }
}

/// Runs the host until it is stopped.
///
/// # Errors
/// Any failure to start. Once it serves, it does not fail.
pub(crate) async fn serve(
    mut loaded: Loaded,
    serve_options: ServeOptions<'_>,
    terminal: Terminal,
    redaction: &LogRedaction,
) -> Result<(), Failure> {
    // Before anything else: from now on a terminal that goes away does not end the process.
    let hangups = signal(SignalKind::hangup())?;
    let ServeOptions { options, file, dev } = serve_options;
    let of_file = dev.as_ref().map_or(&loaded.config, |dev| &dev.started_with);
    let start = reload::Start {
        config: of_file.clone(),
        file,
    };
    apply(options, &mut loaded);
    let gateway = startable(&loaded, &config::check(&loaded))?;
    let broker_deps = broker_deps(&loaded, gateway, redaction).await?;
    let data = loaded.data_dir();
    make_private(&data)?;
    let token_file = loaded.token_file();
    let token = token::get_or_make(&token_file)?;
    let proof_key = token::get_or_make(&loaded.proof_file())?;

    let server_config = &loaded.config.server;
    let limits = server_config.limits;
    let server = Server::bind(server_config.listen, limits)
        .map_err(|error| lifecycle::failure(error, &loaded))?;
    let address = server.address()?;
    let stopper = server.stopper();
    let access = access(&loaded, &token, address, broker_deps.clock.clone())?.proving_by(proof_key);
    let api = Api::new(access, limits, data.join("backups"), stopper.stopping());
    let server = server.checked_by(api::checks(&api));
    let serving = TaskTracker::new();
    let channels = ReloadChannels::new(hangups, &api);
    let mut accepting = serving.spawn(server.serve(api::router(&api)));

    let opened = open(&loaded, address, options, &data, broker_deps).await?;
    let address_file = AddressFile::write(&data, address)?;
    // From before anybody is told that it is ready: until then a signal ends the process at once,
    // and nothing is lost by that.
    let mut signals = Signals::listen()?;
    api.open(opened.broker.clone(), opened.edge.clone());
    announce(&loaded, &opened.broker, address, &token_file, terminal);
    check_integrity(&serving, &stopper, opened.broker.store().clone());
    let stopping = Stopping {
        api,
        edge: opened.edge.clone(),
        broker: opened.broker.clone(),
        stopper,
    };
    let host = opened.host(loaded, address, terminal);
    let reloading = Reloading::new(host, start).await;
    tokio::select! {
        () = signals.next() => {}
        () = keep_up(dev, reloading, channels) => {}
        // A host that nobody can reach is worse than one that has ended and is started again.
        ended = &mut accepting => return Err(Failure::from(anyhow!("the HTTP server ended by \
            itself: {ended:?}"))),
    }
    // A second signal ends it at once: nothing is lost by that either.
    tokio::select! {
        () = stopping.shut_down(limits.drain()) => tracing::info!("stopped"),
        () = signals.next() => stopping.stop_at_once().await,
    }
    drop(address_file);
    serving.close();
    serving.wait().await;
    Ok(())
}

/// Applies the options of the command line to the configuration.
pub(crate) fn apply(options: &cli::Serve, loaded: &mut Loaded) {
    if let Some(listen) = options.listen {
        loaded.config.server.listen = listen;
    }
}

/// Reads the secrets. A finding that is no error leaves them out.
async fn read_secrets(loaded: &Loaded) -> Result<Secrets, Failure> {
    let secrets = config::secrets(loaded).await;
    let secrets =
        secrets.or_else(|finding| refuse_errors(&[finding]).map(|()| Secrets::default()))?;
    // What commands say is known only now.
    refuse_errors(&config::secrets_alike(&loaded.config, &secrets))?;
    Ok(secrets)
}

/// Starts to check the store's integrity. The check ends with the host.
fn check_integrity(serving: &TaskTracker, stopper: &Stopper, store: Store) {
    if !store.needs_integrity_check() {
        return;
    }
    let until_stopped = stopper.stopping();
    serving.spawn(async move { until_stopped.run_until_cancelled(inspect_all(store)).await });
}

/// Returns the rules for who may use the API at this address.
fn access(
    loaded: &Loaded,
    token: &str,
    address: SocketAddr,
    clock: broker::Clock,
) -> Result<Access, Failure> {
    let credentials = Clock::of(move || clock.for_credentials());
    let identity = identity(loaded, credentials.clone())?;
    Ok(Access::new(token, address, &loaded.config.server.hosts)
        .by(credentials)
        .trusting(identity))
}

/// Inputs of a broker besides its data folder.
struct BrokerDeps {
    gateway: Gateway,
    secrets: Secrets,
    clock: broker::Clock,
}

/// Reads the inputs of a broker. From here on the log has no secrets.
async fn broker_deps(
    loaded: &Loaded,
    gateway: Gateway,
    redaction: &LogRedaction,
) -> Result<BrokerDeps, Failure> {
    let secrets = read_secrets(loaded).await?;
    // The keys of providers are nobody's to see either, wherever they come back.
    let secrets = secrets.hiding(gateway.redactor());
    redaction.drop_over(secrets.redactor().clone());
    Ok(BrokerDeps {
        gateway,
        secrets,
        clock: broker::Clock::transferred_by(loaded.data_dir().join(CLOCK_FILE)),
    })
}

/// The broker with the edge before it, and the runtime of the guests of both.
struct Opened {
    broker: Broker,
    runtime: Runtime,
    edge: Edge,
}

impl Opened {
    /// Returns what is read again while the host serves.
    fn host(self, loaded: Loaded, address: SocketAddr, terminal: Terminal) -> Host {
        Host {
            broker: self.broker,
            runtime: self.runtime,
            edge: self.edge,
            loaded,
            address,
            terminal,
        }
    }
}

/// Takes up changes for as long as the host serves: those of the configuration, and with `dev`
/// those of code.
async fn keep_up(dev: Option<Dev>, reloading: Reloading, channels: ReloadChannels) {
    match dev {
        Some(dev) => Box::pin(dev.keep_up(reloading, channels)).await,
        None => Box::pin(reload::keep_up(reloading, channels)).await,
    }
}

/// Store, guests, the broker that joins them and the models, and the edge.
async fn open(
    loaded: &Loaded,
    address: SocketAddr,
    options: &cli::Serve,
    data: &Path,
    broker_deps: BrokerDeps,
) -> Result<Opened, Failure> {
    let BrokerDeps {
        gateway,
        secrets,
        clock,
    } = broker_deps;
    // After a crash the store reads its log, and guests take their time at any start: neither waits
    // for the other.
    let (store, guests) = tokio::join!(open_store(data), load_guests(loaded, data, secrets));
    let store = store?;
    let (runtime, entries) = guests?;
    let catalogue = catalogue(loaded, address, entries).await?;
    let after_restore = match (options.resume_effects, options.settle_unknown) {
        (true, _) => AfterRestore::Resume,
        (false, true) => AfterRestore::SettleUnknown,
        (false, false) => AfterRestore::Ask,
    };
    let parts = broker::Parts {
        store,
        runtime: runtime.clone(),
        gateway: Arc::new(gateway),
        catalogue,
        limits: loaded.config.broker(),
        after_restore,
        paths: loaded.config.path_settings(),
        skipped: options.skip.clone(),
        clock,
    };
    let broker = Broker::start(parts).await.map_err(|error| match error {
        broker::Error::Refused(refusal) if refusal.code == ErrorCode::SessionNotFound => {
            Failure::new(Exit::Usage, anyhow!(refusal.message))
                .advise("`--skip` takes the id of a session, as the log and the events name it")
        }
        broker::Error::Refused(refusal) => {
            Failure::new(Exit::Refused, anyhow!(refusal.message)).advise(AFTER_RESTORE)
        }
        error => error.into(),
    })?;
    let parts = EdgeParts {
        broker: broker.clone(),
        runtime: runtime.clone(),
        settings: edge_settings(loaded, &runtime),
    };
    let edge = Edge::start(parts).await?;
    Ok(Opened {
        broker,
        runtime,
        edge,
    })
}

/// The components and agents that are served, with triggers and connectors that fit them.
async fn catalogue(
    loaded: &Loaded,
    address: SocketAddr,
    entries: Vec<Entry>,
) -> Result<Catalogue, Failure> {
    let definitions = loaded.listening_at(address).config.definitions();
    let catalogue = Catalogue::new(definitions, entries)
        .and_then(|catalogue| catalogue.with_personas(loaded.config.personas.clone()))
        .map(|catalogue| catalogue.read_from(loaded.config.digest()))
        .map(|catalogue| catalogue.without_agent_tools(&loaded.config.agent_tools.disabled))
        .map_err(|misfit| Failure::new(Exit::Usage, misfit))?
        .with_skills(skill_folders(loaded)?);
    refuse_errors(&config::unfit(&loaded.config, &catalogue).await)?;
    Ok(catalogue)
}

/// Returns the part of a configuration that the edge serves. Calls from outside are verified with
/// the secrets that were read at the start.
pub(crate) fn edge_settings(loaded: &Loaded, runtime: &Runtime) -> EdgeSettings {
    EdgeSettings {
        triggers: loaded.config.all_triggers(),
        connectors: loaded.config.all_connectors(),
        secrets: runtime.secrets().clone(),
    }
}

async fn open_store(data: &Path) -> Result<Store, Failure> {
    let dir = data.to_owned();
    tokio::task::spawn_blocking(move || Store::open(&dir, store::Options::default()))
        .await?
        .map_err(|error| {
            let advice = error.advice();
            Failure::from(error).advise(advice)
        })
}

async fn load_guests(
    loaded: &Loaded,
    data: &Path,
    secrets: Secrets,
) -> Result<(Runtime, Vec<Entry>), Failure> {
    let reach = Reach {
        egress: http_egress(loaded)?,
        secrets,
    };
    let runtime = start_runtime(&loaded.config.limits, data, reach).await?;
    let entries = guests::load_all(loaded, &runtime).await?;
    open_folders(&runtime, folders_of(&entries), data).await?;
    Ok((runtime, entries))
}

/// Returns the folders that components are granted.
pub(crate) fn folders_of(entries: &[Entry]) -> Vec<DirectoryGrant> {
    entries
        .iter()
        .flat_map(|entry| entry.grant.directories.clone())
        .collect()
}

/// Opens granted folders, none of which may hold or lie in the data folder.
pub(crate) async fn open_folders(
    runtime: &Runtime,
    folders: Vec<DirectoryGrant>,
    data: &Path,
) -> Result<(), Failure> {
    let data = data.to_owned();
    let opening = runtime.clone();
    let opened =
        tokio::task::spawn_blocking(move || opening.open_folders(&folders, &[&data])).await?;
    opened.map_err(|error| Failure::new(Exit::Usage, error))
}

/// Looks at every page of a store that is too large for that to be done before it is used.
async fn inspect_all(store: Store) {
    match store.damage().await {
        Ok(None) => tracing::info!("the integrity check of the store found no damage"),
        Ok(Some(damage)) => {
            tracing::error!(
                damage,
                "the store is damaged: stop the host, keep the files as they are, and restore the \
                 newest backup"
            );
        }
        Err(error) => tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the integrity of the store could not be checked"
        ),
    }
}

/// The outside access of tools; none by default.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// The way out.
    egress: Option<Arc<Egress>>,
    /// The secrets that are put into outgoing requests.
    secrets: Secrets,
}

impl Reach {
    /// A way out that what is granted of it decides about alone, and no secrets for it.
    pub(crate) fn without_secrets() -> Result<Self, Failure> {
        let tls = egress::system_tls().context("TLS cannot be set up")?;
        Ok(Self {
            egress: Some(Arc::new(egress_through(tls))),
            secrets: Secrets::default(),
        })
    }

    /// The same for trying calls: a request that is not granted gets a stand-in for its answer.
    pub(crate) fn rehearsing() -> Result<Self, Failure> {
        let tls = egress::system_tls().context("TLS cannot be set up")?;
        Ok(Self {
            egress: Some(Arc::new(egress_through(tls).rehearsing())),
            secrets: Secrets::default(),
        })
    }
}

/// The runtime of a command, with its cache in the host's data folder.
pub(crate) async fn command_runtime(loaded: &Loaded, reach: Reach) -> Result<Runtime, Failure> {
    let data = loaded.data_dir();
    make_private(&data)?;
    start_runtime(&loaded.config.limits, &data, reach).await
}

/// The components and agents of the configuration, for a command that looks at them.
pub(crate) async fn load_catalogue(loaded: &Loaded) -> Result<Catalogue, Failure> {
    let runtime = command_runtime(loaded, Reach::default()).await?;
    let entries = guests::load_all(loaded, &runtime).await?;
    let folders = skill_folders(loaded)?;
    Catalogue::new(loaded.config.definitions(), entries)
        .map(|catalogue| catalogue.with_skills(folders))
        .map(|catalogue| catalogue.without_agent_tools(&loaded.config.agent_tools.disabled))
        .map_err(|misfit| Failure::new(Exit::Usage, misfit))
}

/// Reads the operator's folders of skills.
pub(crate) fn skill_folders(loaded: &Loaded) -> Result<Vec<SkillFolder>, Failure> {
    config::skills::read(loaded).map_err(|fault| Failure::new(Exit::Usage, anyhow!(fault)))
}

/// A runtime with its cache in a data folder.
pub(crate) async fn start_runtime(
    limits: &LimitsConfig,
    data: &Path,
    reach: Reach,
) -> Result<Runtime, Failure> {
    let alone = Config {
        limits: *limits,
        ..Config::default()
    };
    refuse_errors(&out_of_range(&alone))?;
    let Reach { egress, secrets } = reach;
    let config = runtime::Config {
        egress,
        secrets,
        ..limits.runtime(data.join("component-cache"))
    };
    let parent = std::process::id().to_string();
    let compiler = Compiler::process(
        std::env::current_exe()?,
        vec![COMPILE_COMMAND.into(), "--parent".into(), parent.into()],
    );
    Ok(tokio::task::spawn_blocking(move || Runtime::with_compiler(config, compiler)).await??)
}

/// A way out, with TLS as it is set up.
fn egress_through(tls: rustls::ClientConfig) -> Egress {
    let resolver = Arc::new(SystemResolver);
    Egress::new(resolver, tls, egress::Limits::default())
}

/// The one way out for the tools of all components. A machine without certificate authorities has
/// none, which matters only to those who were granted requests.
pub(crate) fn http_egress(loaded: &Loaded) -> Result<Option<Arc<Egress>>, Failure> {
    let granted = loaded
        .config
        .components
        .values()
        .any(|component| !component.network.is_empty())
        || loaded
            .config
            .agents
            .iter()
            .any(|agent| agent.program().is_some());
    match egress::system_tls() {
        Ok(tls) => Ok(Some(Arc::new(egress_through(tls)))),
        Err(_) if !granted => Ok(None),
        Err(error) => Err(Failure::from(anyhow!(error).context(
            "components are granted requests or agents are elsewhere, and TLS cannot be set up",
        ))),
    }
}

/// The issuers of tokens that the configuration trusts.
fn identity(loaded: &Loaded, clock: Clock) -> Result<Identity, Failure> {
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver);
    Identity::new(loaded.config.server.identity.clone(), &resolver, clock).map_err(
        |(index, problem)| Failure::new(Exit::Usage, anyhow!("server.identity[{index}].{problem}")),
    )
}

/// Stops at findings that keep a host from starting.
pub(crate) fn refuse_errors(findings: &[Finding]) -> Result<(), Failure> {
    let errors: Vec<String> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(Finding::without_severity)
        .collect();
    match errors.as_slice() {
        [] => Ok(()),
        [error] => Err(Failure::new(Exit::Usage, anyhow!("{error}"))),
        errors => Err(Failure::new(
            Exit::Usage,
            anyhow!(
                "the configuration has {} errors:\n  {}",
                errors.len(),
                errors.join("\n  ")
            ),
        )),
    }
}

/// Makes a folder that only its owner can enter.
pub(crate) fn make_private(folder: &Path) -> Result<(), Failure> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot make the data folder `{}`", folder.display()))?;
    Ok(())
}

/// The file with the address of a running host, for commands that ask it. It is removed when the
/// host ends.
struct AddressFile(PathBuf);

impl AddressFile {
    fn write(data: &Path, address: SocketAddr) -> Result<Self, Failure> {
        let file = data.join(ADDRESS_FILE);
        // One that stayed behind has whatever mode it was made with.
        let _ = std::fs::remove_file(&file);
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file);
        made.and_then(|mut made| writeln!(made, "{address}"))
            .with_context(|| format!("cannot write `{}`", file.display()))?;
        Ok(Self(file))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A file that stays behind names a port at which nobody answers.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The signals that stop a host.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next SIGTERM or SIGINT.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
