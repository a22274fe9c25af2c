//! Advice on components that were built for something else: another version of the interface, or
//! another kind of plugin.

use crate::exports::{Kind, PACKAGE, Version};
use crate::host::link::KNOWN;
use std::collections::BTreeSet;

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
        .filter(|kind| !Kind::ALL.iter().any(|known| known.as_str() == *kind))
        .collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join("`, `");
    match (kinds.as_str(), other_version(names)) {
        ("", Some(version)) => of_another_version(version),
        ("", None) => of_another_kind(names),
        (kinds, version) => {
            let version = version
                .map(|version| {
                    format!(
                        " of version {version}, and this host has {}",
                        own_versions()
                    )
                })
                .unwrap_or_default();
            format!(
                "it is a plugin of the kind `{kinds}`{version}; this host runs agents, tools, \
                 triggers and connectors"
            )
        }
    }
}

fn of_another_kind(names: &[String]) -> String {
    let has = |interface: &str| names.iter().any(|name| split(name).0 == interface);
    let worlds = "build it against the world `agent-plugin`, `tool-plugin`, `trigger-plugin` or \
                  `connector-plugin`";
    if has("wasi:cli/run") {
        format!("it is a program that is run, and no plugin; {worlds}")
    } else if has("wasi:http/incoming-handler") {
        format!("it serves HTTP, which no plugin does; {worlds}")
    } else {
        worlds.to_owned()
    }
}

fn of_another_version(version: &str) -> String {
    let own = own_versions();
    format!(
        "it is built for version {version} of `{PACKAGE}`, and this host has {own}: build it \
         against the WIT files of this host, or run it on a host that has {version}"
    )
}

/// Returns the version of the interface that the first of these names is of, if this host does not
/// have it.
fn other_version(names: &[String]) -> Option<&str> {
    names.iter().find_map(|name| {
        let (interface, version) = split(name);
        let is_ours = interface.starts_with(&format!("{PACKAGE}/"));
        let is_served = Version::ALL.iter().any(|served| served.as_str() == version);
        (is_ours && !version.is_empty() && !is_served).then_some(version)
    })
}

fn own_versions() -> String {
    let mut versions = Version::ALL.map(Version::as_str);
    versions.sort_unstable();
    versions.join(" and ")
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
        let later =
            "built for version 0.3.0 of `agent-host:plugin`, and this host has 0.1.0 and 0.2.0";
        for (reported, expected) in [
            (imports(&names("agent-host:plugin/turn@0.3.0")), later),
            (exports(&names("agent-host:plugin/tools@0.3.0")), later),
            (
                exports(&names("agent-host:plugin/filter@0.3.0")),
                "the kind `filter` of version 0.3.0, and this host has 0.1.0 and 0.2.0; this host \
                 runs agents, tools, triggers and connectors",
            ),
            (
                exports(&names("agent-host:plugin/filter@0.1.0")),
                "the kind `filter`; this host runs",
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
            (
                exports(&[]),
                "the world `agent-plugin`, `tool-plugin`, `trigger-plugin` or `connector-plugin`",
            ),
        ] {
            assert!(reported.contains(expected), "{reported}");
        }
    }
}
