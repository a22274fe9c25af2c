//! Findings of a component that a host would not load.

use super::finding::Finding;
use runtime::{IMPORTS, LoadError};
use std::collections::BTreeSet;
use std::error::Error;

/// The package of the interface with plugins.
const PACKAGE: &str = "agent-host:plugin/";
/// The place of everything that is about the file as a whole.
pub(crate) const COMPONENT: &str = "component";
/// The place of everything that is about `describe`.
pub(crate) const DESCRIBE: &str = "describe";
/// The fix of a component that was built against other interfaces.
const BUILD_AGAINST: &str =
    "build it against the WIT files of this host, which `agent-host new` writes into `wit/`";

/// Returns the present version of the interface with plugins, for which new ones are built.
pub(crate) fn wit_version() -> &'static str {
    wit_versions().next().unwrap_or_default()
}

/// The versions of the interface with plugins that this host has, the present one first. Some come
/// more than once.
fn wit_versions() -> impl Iterator<Item = &'static str> {
    let ours = IMPORTS.iter().filter(|(name, _)| name.starts_with(PACKAGE));
    ours.map(|(_, version)| *version)
}

/// Returns a version of the interface with plugins that is among these names and that this host
/// does not have.
fn other_version(names: &[String]) -> Option<&str> {
    let mut versions = names.iter().filter_map(|name| {
        let (_, version) = name.strip_prefix(PACKAGE)?.split_once('@')?;
        Some(version)
    });
    versions.find(|version| !wit_versions().any(|own| own == *version))
}

/// Returns the finding of a component that was not loaded.
pub(crate) fn finding(refused: &LoadError) -> Finding {
    match refused {
        LoadError::UnknownImports { names } => match other_version(names) {
            Some(version) => of_other_version(version),
            None => Finding::error(
                "imports",
                format!("this host does not have {}", names.join(", ")),
                BUILD_AGAINST,
            ),
        },
        LoadError::NoWorld { exports } => match other_version(exports) {
            Some(version) => of_other_version(version),
            None => without_world(exports),
        },
        LoadError::TooLarge { size, max } => Finding::error(
            COMPONENT,
            format!("it has {size} bytes, and a host loads {max} at most"),
            "build it with opt-level `s` and strip it",
        ),
        LoadError::DescribeTrapped { message } => Finding::error(
            DESCRIBE,
            format!("it traps: {message}"),
            "describe from the code alone: nothing is granted then, no file, no variable, no time",
        ),
        LoadError::DescribeStopped { limit } => Finding::error(
            DESCRIBE,
            format!("it {limit}"),
            "describe from constants, and begin other work in the first call or step",
        ),
        LoadError::DescribeRefused { detail } => {
            Finding::error(DESCRIBE, detail.clone(), "change what it returns there")
        }
        _ => said(refused),
    }
}

fn of_other_version(version: &str) -> Finding {
    let own: BTreeSet<&str> = wit_versions().collect();
    let own = own.into_iter().collect::<Vec<_>>().join(" and ");
    Finding::error(
        COMPONENT,
        format!("it is built for WIT {version} of `agent-host:plugin`, and this host has {own}"),
        BUILD_AGAINST,
    )
}

fn without_world(exports: &[String]) -> Finding {
    let exported = if exports.is_empty() {
        "nothing".to_owned()
    } else {
        exports.join(", ")
    };
    Finding::error(
        COMPONENT,
        format!("it exports {exported}, and no plugin that a host runs"),
        format!(
            "build it for the world `agent-plugin`, `tool-plugin`, `trigger-plugin` or \
             `connector-plugin` of WIT {}",
            wit_version()
        ),
    )
}

/// The message of an error that has its fix behind the last colon.
fn said(refused: &LoadError) -> Finding {
    let message = refused.to_string();
    let causes = std::iter::successors(refused.source(), |cause| (*cause).source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    match (causes.is_empty(), message.split_once(": ")) {
        (true, Some((what, fix))) => Finding::error(COMPONENT, what, fix),
        (false, Some((what, fix))) => {
            Finding::error(COMPONENT, format!("{what} ({})", causes.join(": ")), fix)
        }
        (_, None) => Finding::error(
            COMPONENT,
            [vec![message], causes].concat().join(": "),
            "build it with a current toolchain for `wasm32-wasip2`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::finding;
    use runtime::LoadError;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    /// A component of a later version is told which version there is, whichever side shows it.
    #[test]
    fn a_component_of_another_version_is_told_which_this_host_has() {
        let imports = LoadError::UnknownImports {
            names: names(&["wasi:io/poll@0.2.0", "agent-host:plugin/turn@0.3.0"]),
        };
        let exports = LoadError::NoWorld {
            exports: names(&["agent-host:plugin/agent@0.3.0"]),
        };
        for refused in [imports, exports] {
            let line = finding(&refused).line();
            assert!(
                line.contains("built for WIT 0.3.0")
                    && line.contains("this host has 0.1.0 and 0.2.0"),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_named_and_the_fix_stands_apart() {
        let imports = LoadError::UnknownImports {
            names: names(&["acme:teleport/beam@1.0.0"]),
        };
        let line = finding(&imports).line();
        assert!(
            line.starts_with("error    imports: this host does not have acme:teleport/beam@1.0.0;"),
            "{line}"
        );
        let exports = LoadError::NoWorld {
            exports: Vec::new(),
        };
        assert!(finding(&exports).line().contains("it exports nothing"));
        let module = finding(&LoadError::NotAComponent {
            found: "a core module",
        });
        assert_eq!(
            (module.what.as_str(), module.fix.as_str()),
            (
                "this is not a WebAssembly component but a core module",
                "build it with `cargo build --target wasm32-wasip2`"
            )
        );
    }
}
