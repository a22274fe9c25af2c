//! The announcement of a host that serves, and the warnings about its configuration.

use crate::config::{self, Finding, Loaded};
use crate::terminal::Terminal;
use broker::{Broker, Catalogue};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;

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
        let mut lines = vec![
            format!(
                "agent-host {} is ready at http://{address}",
                env!("CARGO_PKG_VERSION")
            ),
            format!("  config      {}", loaded.file.display()),
            format!("  data        {}", loaded.data_dir().display()),
            format!("  token       {}", token_file.display()),
            format!("  agents      {}", agents.join(", ")),
            format!("  components  {}", components.join(", ")),
        ];
        for (what, names) in [("triggers  ", &triggers), ("connectors", &connectors)] {
            if !names.is_empty() {
                lines.push(format!("  {what}  {}", names.join(", ")));
            }
        }
        if !loaded.overlaid.is_empty() {
            lines.push(format!("  overlaid    {}", loaded.overlaid.join(", ")));
        }
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
