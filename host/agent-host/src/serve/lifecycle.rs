//! The checks of a host before it starts, its words when it listens or cannot, and its orderly end.

use super::{http_egress, identity, refuse_errors};
use crate::answer::details;
use crate::config::{Finding, Loaded};
use crate::failure::{Exit, Failure};
use crate::models::gateway;
use crate::terminal::Terminal;
use crate::{config, invocation};
use anyhow::anyhow;
use api::{Api, Clock, Stopper};
use broker::{Broker, Catalogue};
use edge::Edge;
use llm::Gateway;
use serde_json::json;
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// The lines on a host that is ready.
const READY: [(&str, &str); 8] = [
    ("  config", "{/config}"),
    ("  data", "{/data_dir}"),
    ("  token", "{/token_file}"),
    ("  agents", "{/agents:list}"),
    ("  components", "{/components:list}"),
    ("  triggers", "{/triggers:list}"),
    ("  connectors", "{/connectors:list}"),
    ("  overlaid", "{/overlaid:list}"),
];

/// Says where the host is and what it serves.
pub(super) fn announce(
    loaded: &Loaded,
    broker: &Broker,
    address: SocketAddr,
    token_file: &Path,
    terminal: Terminal,
) {
    let agents: Vec<&str> = loaded
        .config
        .agents
        .iter()
        .map(|definition| definition.agent_id.0.as_str())
        .collect();
    let catalogue = broker.catalogue();
    let components: Vec<&str> = catalogue
        .entries()
        .map(|entry| entry.name.as_str())
        .collect();
    let triggers = names(loaded.config.all_triggers().keys());
    let connectors = names(loaded.config.connectors.keys());
    let scripted: Vec<&str> = loaded.config.scripted().collect();
    let document = json!({
        "ready": true, "address": format!("http://{address}"), "config": loaded.file, "data_dir": loaded.data_dir(), "token_file": token_file,
        "agents": agents, "components": components, "triggers": triggers, "connectors": connectors,
        "scripted_providers": scripted, "overlaid": loaded.overlaid,
    });
    terminal.result(&document, || {
        let version = env!("CARGO_PKG_VERSION");
        let mut lines = vec![format!("agent-host {version} is ready at http://{address}")];
        lines.extend(details(&document, &READY));
        lines
    });
    if !scripted.is_empty() {
        terminal.notice(&format!(
            "NOTE: the provider {} answers from a script. No model is asked; configure one under \
             [providers] and [models] for real replies.",
            scripted.join(", ")
        ));
    }
    show_findings(loaded, &catalogue, terminal);
}

fn names<'a, N: ToString + 'a>(names: impl Iterator<Item = &'a N>) -> Vec<String> {
    names.map(ToString::to_string).collect()
}

/// Prints what an operator should look at in the configuration of a host that serves.
fn show_findings(loaded: &Loaded, catalogue: &Catalogue, terminal: Terminal) {
    for finding in warnings(loaded, catalogue) {
        terminal.notice(&finding.to_string());
    }
}

/// Returns what an operator should look at in what is served.
pub(crate) fn warnings(loaded: &Loaded, catalogue: &Catalogue) -> Vec<Finding> {
    let found = config::check(loaded).into_iter();
    found
        .chain(config::about_code(loaded, catalogue))
        .filter(|finding| !finding.key.starts_with("providers."))
        .collect()
}

/// The first port that programs of ordinary users may listen at.
const UNPRIVILEGED_PORT_MIN: u16 = 1_024;

/// Returns the failure of a host that cannot listen at the address of its configuration.
pub(super) fn failure(error: Error, loaded: &Loaded) -> Failure {
    let listen = loaded.config.server.listen;
    let advice = advice(&error, listen, &another_port(loaded));
    let failure = Failure::new(
        Exit::Failed,
        anyhow!(error).context(format!("cannot listen at {listen} (`server.listen`)")),
    );
    match advice {
        Some(advice) => failure.advise(advice),
        None => failure,
    }
}

/// Returns the command that serves at another port.
fn another_port(loaded: &Loaded) -> String {
    let listen = SocketAddr::new(loaded.config.server.listen.ip(), 0);
    invocation::command(loaded, &format!("serve --listen {listen}"))
}

fn advice(error: &Error, listen: SocketAddr, another_port: &str) -> Option<String> {
    match error.kind() {
        ErrorKind::AddrInUse => Some(format!(
            "another program listens there, perhaps a host that runs already: stop it, or change \
             `server.listen`, or take any free port with: {another_port}"
        )),
        ErrorKind::AddrNotAvailable => Some(format!(
            "this machine has no address {}: set `server.listen` to 127.0.0.1:{}, or to {}:{} for \
             all of its addresses",
            listen.ip(),
            listen.port(),
            everywhere(listen.ip()),
            listen.port(),
        )),
        ErrorKind::PermissionDenied if listen.port() < UNPRIVILEGED_PORT_MIN => Some(format!(
            "ports below {UNPRIVILEGED_PORT_MIN} are for the administrator: take a higher one in \
             `server.listen`, and put a proxy in front"
        )),
        _ => None,
    }
}

fn everywhere(like: IpAddr) -> &'static str {
    if like.is_ipv4() { "0.0.0.0" } else { "[::]" }
}

/// Checks everything that a start rests on, except its port, its data and its components' code:
/// what was found in the configuration, the way out, the issuers of tokens, and the models with
/// their keys and rule files. Returns the gateway to the models. Blocks.
///
/// # Errors
/// The findings that are errors, or the first thing that cannot be set up.
pub(crate) fn startable(loaded: &Loaded, findings: &[Finding]) -> Result<Gateway, Failure> {
    refuse_errors(findings)?;
    http_egress(loaded)?;
    identity(loaded, Clock::system())?;
    gateway(loaded)
}

/// Seconds that connections get after the last turn has come to a pause.
const CONNECTIONS_DRAIN_S: u64 = 2;

/// The parts of a host that stops.
pub(super) struct Stopping {
    pub(super) api: Api,
    pub(super) edge: Edge,
    pub(super) broker: Broker,
    pub(super) stopper: Stopper,
}

impl Stopping {
    /// Ends commands first, then what comes in and goes out by itself, then work, then requests.
    pub(super) async fn shut_down(&self, drain: Duration) {
        tracing::info!("stopping: turns in progress come to a pause");
        self.api.drain();
        self.edge.stop().await;
        self.broker.shutdown(drain).await;
        self.stopper
            .stop(Duration::from_secs(CONNECTIONS_DRAIN_S))
            .await;
    }

    /// Stops without waiting for turns in progress.
    pub(super) async fn stop_at_once(&self) {
        tracing::warn!(
            "stopped without waiting for turns in progress; they go on at the next start"
        );
        self.broker.note_end().await;
        self.stopper.stop(Duration::ZERO).await;
    }
}

#[cfg(test)]
mod tests {
    use super::advice;
    use std::io::{Error, ErrorKind};

    #[test]
    fn who_cannot_listen_is_told_why_and_what_to_change() {
        for (kind, listen, expected) in [
            (
                ErrorKind::AddrInUse,
                "127.0.0.1:7777",
                "any free port with: COMMAND",
            ),
            (ErrorKind::AddrNotAvailable, "10.9.9.9:80", "127.0.0.1:80"),
            (ErrorKind::PermissionDenied, "127.0.0.1:80", "below 1024"),
        ] {
            let reported = advice(&Error::from(kind), listen.parse().unwrap(), "COMMAND").unwrap();
            assert!(reported.contains(expected), "{reported}");
        }
        let other = Error::from(ErrorKind::PermissionDenied);
        assert_eq!(advice(&other, "127.0.0.1:8080".parse().unwrap(), ""), None);
    }
}
