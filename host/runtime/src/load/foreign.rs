//! Advice on components that were built for something else: another version of the interface, or
//! another kind of plugin.

use crate::host::link::KNOWN;
use std::collections::BTreeSet;

/// The package of the interface between plugins and the host.
const PACKAGE: &str = "agent-host:plugin";
/// The kinds of plugins that this host runs, by the interface that they export.
const KINDS: [&str; 2] = ["agent", "tools"];

/// Returns what to do about imports that this host does not have.
pub(super) fn imports(names: &[String]) -> String {
    if let Some(version) = other_version(names) {
        return of_another_version(version);
    }
    let is_later_wasi = |name: &String| {
        let (interface, version) = split(name);
        interface.starts_with("wasi:") && is_known(interface) && version.starts_with("0.3")
    };
    if names.iter().any(is_later_wasi) {
        return "this host has WASI 0.2: build it with `cargo build --target wasm32-wasip2`".into();
    }
    "build it against the WIT files of this host".into()
}

/// Returns what to do about a component that exports no world of this host.
pub(super) fn exports(names: &[String]) -> String {
    let kinds: BTreeSet<&str> = names
        .iter()
        .filter_map(|name| split(name).0.strip_prefix(PACKAGE)?.strip_prefix('/'))
        .filter(|kind| !KINDS.contains(kind))
        .collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join("`, `");
    match (kinds.as_str(), other_version(names)) {
        ("", Some(version)) => of_another_version(version),
        ("", None) => of_another_kind(names),
        (kinds, version) => {
            let version = version
                .filter(|version| *version != own_version())
                .map(|version| {
                    format!(" of version {version}, and this host has {}", own_version())
                })
                .unwrap_or_default();
            format!(
                "it is a plugin of the kind `{kinds}`{version}; this host runs agents and tools \
                 only"
            )
        }
    }
}

fn of_another_kind(names: &[String]) -> String {
    let has = |interface: &str| names.iter().any(|name| split(name).0 == interface);
    let worlds = "build it against the world `agent-plugin` or `tool-plugin`";
    if has("wasi:cli/run") {
        format!("it is a program that is run, and no plugin; {worlds}")
    } else if has("wasi:http/incoming-handler") {
        format!("it serves HTTP, which no plugin does; {worlds}")
    } else {
        worlds.to_owned()
    }
}

fn of_another_version(version: &str) -> String {
    let own = own_version();
    format!(
        "it is built for version {version} of `{PACKAGE}`, and this host has {own}: build it \
         against the WIT files of this host, or run it on a host that has {version}"
    )
}

/// Returns the version of the interface that the first of these names is of, if it is another than
/// this host's.
fn other_version(names: &[String]) -> Option<&str> {
    names.iter().find_map(|name| {
        let (interface, version) = split(name);
        let is_ours = interface.starts_with(&format!("{PACKAGE}/"));
        (is_ours && !version.is_empty() && version != own_version()).then_some(version)
    })
}

fn own_version() -> &'static str {
    KNOWN
        .iter()
        .find(|(name, _)| name.starts_with(PACKAGE))
        .map_or("", |(_, version)| version)
}

fn is_known(interface: &str) -> bool {
    KNOWN.iter().any(|(known, _)| *known == interface)
}

fn split(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, ""))
}

#[cfg(test)]
mod tests {
    use super::{exports, imports};

    fn names(name: &str) -> [String; 1] {
        [name.to_owned()]
    }

    #[test]
    fn a_plugin_of_a_later_version_is_told_what_this_host_has() {
        let later = "built for version 0.2.0 of `agent-host:plugin`, and this host has 0.1.0";
        for (told, expected) in [
            (imports(&names("agent-host:plugin/turn@0.2.0")), later),
            (exports(&names("agent-host:plugin/tools@0.2.0")), later),
            (
                exports(&names("agent-host:plugin/trigger@0.3.0")),
                "the kind `trigger` of version 0.3.0, and this host has 0.1.0; this host runs agents \
                 and tools only",
            ),
            (
                exports(&names("agent-host:plugin/trigger@0.1.0")),
                "the kind `trigger`; this host runs",
            ),
            (imports(&names("wasi:cli/stdout@0.3.0")), "WASI 0.2"),
            (
                imports(&names("acme:teleport/beam@1.0.0")),
                "against the WIT files of this host",
            ),
            (exports(&names("wasi:cli/run@0.2.3")), "no plugin"),
            (
                exports(&names("wasi:http/incoming-handler@0.2.3")),
                "serves HTTP",
            ),
            (exports(&[]), "the world `agent-plugin` or `tool-plugin`"),
        ] {
            assert!(told.contains(expected), "{told}");
        }
    }
}
