//! The linker: every interface that this host knows, and their names.

use crate::bindings::agent::agent_host::plugin::{turn, types};
use crate::bindings::agent::wasi::logging::logging;
use crate::bindings::keyvalue::wasi::keyvalue::{atomics, batch, store};
use crate::bindings::tool::agent_host::plugin::progress;
use crate::call::CallState;
use crate::exports::{PACKAGE, Version};
use wasmtime::Engine;
use wasmtime::component::{HasData, Linker};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random, sockets};

/// Lends the whole state of the call to host functions.
pub(crate) struct Lent;

impl HasData for Lent {
    type Data<'a> = &'a mut CallState;
}

/// Interfaces that a component may import: the name before the `@`, and what the version after it
/// has to begin with. What becomes of each of their functions is in `docs/imports.md`. Of each
/// interface between plugins and the host the present version comes first.
pub const KNOWN: &[(&str, &str)] = &[
    ("agent-host:plugin/types", "0.2.0"),
    ("agent-host:plugin/turn", "0.2.0"),
    ("agent-host:plugin/progress", "0.2.0"),
    ("agent-host:plugin/types", "0.1.0"),
    ("agent-host:plugin/turn", "0.1.0"),
    ("agent-host:plugin/progress", "0.1.0"),
    ("wasi:logging/logging", "0.1.0-draft"),
    ("wasi:keyvalue/store", "0.2.0-draft"),
    ("wasi:keyvalue/atomics", "0.2.0-draft"),
    ("wasi:keyvalue/batch", "0.2.0-draft"),
    ("wasi:cli/environment", "0.2."),
    ("wasi:cli/exit", "0.2."),
    ("wasi:cli/stdin", "0.2."),
    ("wasi:cli/stdout", "0.2."),
    ("wasi:cli/stderr", "0.2."),
    ("wasi:cli/terminal-input", "0.2."),
    ("wasi:cli/terminal-output", "0.2."),
    ("wasi:cli/terminal-stdin", "0.2."),
    ("wasi:cli/terminal-stdout", "0.2."),
    ("wasi:cli/terminal-stderr", "0.2."),
    ("wasi:clocks/monotonic-clock", "0.2."),
    ("wasi:clocks/wall-clock", "0.2."),
    ("wasi:filesystem/preopens", "0.2."),
    ("wasi:filesystem/types", "0.2."),
    ("wasi:http/outgoing-handler", "0.2."),
    ("wasi:http/types", "0.2."),
    ("wasi:io/error", "0.2."),
    ("wasi:io/poll", "0.2."),
    ("wasi:io/streams", "0.2."),
    ("wasi:random/insecure", "0.2."),
    ("wasi:random/insecure-seed", "0.2."),
    ("wasi:random/random", "0.2."),
    ("wasi:sockets/instance-network", "0.2."),
    ("wasi:sockets/ip-name-lookup", "0.2."),
    ("wasi:sockets/network", "0.2."),
    ("wasi:sockets/tcp", "0.2."),
    ("wasi:sockets/tcp-create-socket", "0.2."),
    ("wasi:sockets/udp", "0.2."),
    ("wasi:sockets/udp-create-socket", "0.2."),
];

/// Returns true if this host defines an import of this name.
pub(crate) fn is_known(import: &str) -> bool {
    let (name, version) = import.split_once('@').unwrap_or((import, ""));
    let exact = |known: &str| !known.ends_with('.');
    KNOWN.iter().any(|(known, expected)| {
        *known == name
            && if exact(expected) {
                version == *expected
            } else {
                version.starts_with(expected) && !version.contains('-')
            }
    })
}

/// A linker with all of them.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;

    // Ours instead of WASI's: folders are bounded, variables are those of the call, an agent's
    // clock stands still and its randomness repeats, and decisions are noted.
    linker.allow_shadowing(true);
    let l = &mut linker;
    filesystem::preopens::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    filesystem::types::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    cli::environment::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    clocks::wall_clock::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    clocks::monotonic_clock::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    random::random::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    random::insecure::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    random::insecure_seed::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    sockets::tcp_create_socket::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    sockets::ip_name_lookup::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    sockets::udp_create_socket::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    linker.allow_shadowing(false);

    let l = &mut linker;
    logging::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    store::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    atomics::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    batch::add_to_linker::<CallState, Lent>(l, CallState::entered)?;
    for version in Version::ALL {
        add_plugin_imports(l, version)?;
    }
    Ok(linker)
}

/// Adds the interfaces between plugins and the host under the names of one version. They are the
/// same in every version.
fn add_plugin_imports(linker: &mut Linker<CallState>, version: Version) -> wasmtime::Result<()> {
    let entered = CallState::entered;
    let name = |interface: &str| format!("{PACKAGE}/{interface}@{}", version.as_str());
    let instance = linker.instance(&name("types"));
    types::add_to_linker_instance::<CallState, Lent>(&mut instance?, entered)?;
    let instance = linker.instance(&name("turn"));
    turn::add_to_linker_instance::<CallState, Lent>(&mut instance?, entered)?;
    let instance = linker.instance(&name("progress"));
    progress::add_to_linker_instance::<CallState, Lent>(&mut instance?, entered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use wasmtime::component::Component;

    #[test]
    fn every_known_interface_is_linked() {
        let engine = Engine::new(
            &Config {
                instances_max: 4,
                ..Config::default()
            }
            .engine(),
        )
        .unwrap();
        let linker = linker(&engine).unwrap();
        for (name, version) in KNOWN {
            let version = if version.ends_with('.') {
                "0.2.3"
            } else {
                version
            };
            let import = format!("{name}@{version}");
            assert!(is_known(&import), "{import}");
            let text = format!(r#"(component (import "{import}" (instance)))"#);
            let component = Component::new(&engine, wat::parse_str(&text).unwrap()).unwrap();
            linker
                .instantiate_pre(&component)
                .unwrap_or_else(|error| panic!("{import}: {error:?}"));
        }
    }

    #[test]
    fn other_names_and_versions_are_not_known() {
        for import in [
            "wasi:cli/environment@0.3.0",
            "wasi:cli/environment",
            "wasi:clocks/timezone@0.2.0",
            "acme:mail/send@1.0.0",
            "log",
        ] {
            assert!(!is_known(import), "{import}");
        }
    }
}
