//! The commands, one file each.

mod agents;
mod audit;
mod chat;
mod component;
mod config;
mod connector;
mod dead_letter;
mod doctor;
mod grants;
mod import;
mod key;
mod local;
mod model;
mod pending;
mod record;
mod session;
mod status;
mod store;
mod task;
mod trigger;

pub(crate) use component::{Place, review, wanted};
pub(crate) use config::warnings_of_code;
pub(crate) use grants::{Change, changes};
pub(crate) use local::{compile, confine_program, keep_program};

use crate::cli::{Cli, Command, Serve};
use crate::client::Client;
use crate::config::locations::CONFIG_FILE;
use crate::config::{Config, Loaded, load, locate};
use crate::dev::dev;
use crate::failure::{Exit, Failure};
use crate::reload::watch::SourceScan;
use crate::serve::{ServeOptions, serve};
use crate::terminal::Terminal;
use crate::{invocation, log};
use std::path::Path;

/// Runs what the command line asks for.
pub(crate) async fn run(cli: Cli, terminal: Terminal) -> Result<(), Failure> {
    let Cli {
        config,
        data,
        trust_address,
        command,
        ..
    } = cli;
    let load = || configuration(config.as_deref(), data.as_deref(), trust_address);
    let load_data = || match &data {
        // All that they need is in the folder.
        Some(data) if locate(config.as_deref()).is_err() => of_data_folder(data),
        Some(_) | None => load(),
    };
    let client = || Client::new(&load()?);
    quiet(&command);
    let answer = match command {
        // These go on, and print what happens.
        Command::Serve(what) => {
            return serve_file(&what, config.as_deref(), load, terminal).await;
        }
        Command::Dev(options) => {
            let loaded = load()?;
            let redaction = log::begin(&loaded.config.server.log);
            return Box::pin(dev(loaded, &options, terminal, &redaction)).await;
        }
        Command::Chat(options) => return chat::chat(&load()?, options, terminal).await,
        Command::Events(what) => return record::run(&client()?, what, terminal).await,
        Command::Telemetry(what) => return record::watch(&client()?, what, terminal).await,
        Command::Audit(what) => return audit::run(&client()?, what, terminal).await,
        // Done before anything else is, so that it is limited from its beginning.
        Command::CompileComponent(_) | Command::KeepProgram | Command::ConfineProgram(_) => {
            return Ok(());
        }
        Command::New(what) => crate::new::run(&what)?,
        Command::Init(what) => crate::init::run(&what)?,
        Command::Plugin(what) => crate::plugin::run(what).await?,
        Command::Component(what) => component::run(what, load).await?,
        Command::Session(what) => session::run(&load()?, what).await?,
        Command::Memory(what) => agents::memory(&client()?, what).await?,
        Command::Prompt(what) => agents::prompt(&client()?, what).await?,
        Command::Model(what) => model::run(&client()?, what).await?,
        Command::Usage(what) => record::usage(&client()?, what).await?,
        Command::Grants(what) => grants::run(&load()?, what).await?,
        Command::Verify(options) => store::verify(&load_data()?, &options, terminal).await?,
        Command::Rebuild => store::rebuild(&load_data()?, terminal).await?,
        Command::Vacuum => store::vacuum(&load_data()?).await?,
        Command::Backup(what) => store::back_up(&load_data()?, &what.file).await?,
        Command::Restore(what) => store::restore(&what).await?,
        Command::Task(what) => task::run(&client()?, what).await?,
        Command::DeadLetter(what) => dead_letter::run(&client()?, what).await?,
        Command::Import { file } => import::run(&load()?, &file).await?,
        Command::Clock(what) => status::clock(&client()?, &what).await?,
        Command::Config(what) => config::run(&what, load, terminal).await?,
        Command::Reload => status::reload(&client()?).await?,
        Command::Key(what) => key::run(&client()?, what).await?,
        Command::Agents(what) => agents::run(&client()?, what).await?,
        Command::Trigger(what) => trigger::run(&load()?, what).await?,
        Command::Connector(what) => connector::run(&client()?, what).await?,
        Command::Token(_) => key::token(&load()?)?,
        Command::Status => status::run(&client()?).await?,
        Command::Doctor(options) => doctor::run(&options, load).await?,
        Command::Completions(what) => local::completions(&what),
        Command::Man(what) => local::man(&what)?,
    };
    terminal.answer(answer)
}

/// Begins the log of a command that is over soon. The report of `plugin` says whatever its host
/// warns of.
fn quiet(command: &Command) {
    if !matches!(
        command,
        Command::Serve(_) | Command::Dev(_) | Command::Plugin(_)
    ) {
        log::begin(log::QUIET);
    }
}

/// Runs the host, with the log that its configuration asks for.
async fn serve_file(
    options: &Serve,
    named: Option<&Path>,
    load: impl FnOnce() -> Result<Loaded, Failure>,
    terminal: Terminal,
) -> Result<(), Failure> {
    // Before it is read: what changes from then on is a change.
    let file = inspect(named);
    let loaded = load()?;
    let redaction = log::begin(&loaded.config.server.log);
    let serve_options = ServeOptions::of(options, file);
    Box::pin(serve(loaded, serve_options, terminal, &redaction)).await
}

/// Looks at the file of the configuration. One that is not there is told when it is read.
fn inspect(named: Option<&Path>) -> SourceScan {
    let file = locate(named).ok();
    SourceScan::at(file.and_then(|file| std::path::absolute(file).ok()))
}

/// Returns what there is to say of a data folder without a configuration.
fn of_data_folder(data: &Path) -> Result<Loaded, Failure> {
    let data = std::path::absolute(data)?;
    Ok(Loaded {
        config: Config::default(),
        file: data.join(CONFIG_FILE),
        written: "".into(),
        data: Some(data),
        overlaid: Vec::new(),
        trusts_address: false,
    })
}

/// Reads the configuration of a file, with what else the command line says: the data folder, if it
/// names one, and whether it trusts the host's address.
fn configuration(
    named: Option<&Path>,
    data: Option<&Path>,
    trusts_address: bool,
) -> Result<Loaded, Failure> {
    let file = locate(named).map_err(|error| {
        Failure::new(Exit::Usage, error).advise(invocation::command_with(
            "examples/demo/agent-host.toml",
            "serve",
        ))
    })?;
    let mut loaded = load(
        &file,
        std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    )
    .map_err(|error| Failure::new(Exit::Usage, error))?;
    loaded.data = data.map(std::path::absolute).transpose()?;
    loaded.trusts_address = trusts_address;
    Ok(loaded)
}
