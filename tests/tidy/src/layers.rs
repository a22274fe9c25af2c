//! The layer table: which crate of the host may know which, and what each must never link.

use crate::masked::{Masked, words};
use crate::tree::TextFile;
use std::collections::BTreeSet;
use toml::Table;

/// One layer.
#[derive(Debug, Clone, Copy)]
pub struct Layer {
    /// Its folder in `host/`; that of `shapes` is in `sdk/`, because plugins get it along.
    pub folder: &'static str,
    /// The layers that it may know.
    pub knows: &'static [&'static str],
    /// The start of the names of crates that it must not name.
    pub never: &'static [&'static str],
}

impl Layer {
    /// The folder from the repository's root.
    #[must_use]
    pub fn path(&self) -> String {
        let parent = if self.folder == "shapes" {
            "sdk"
        } else {
            "host"
        };
        format!("{parent}/{}", self.folder)
    }
}

/// Every layer, from the one that knows nothing to the one that wires all.
pub const LAYERS: &[Layer] = &[
    Layer {
        folder: "glob",
        knows: &[],
        never: &["serde", "regex"],
    },
    Layer {
        folder: "shapes",
        knows: &[],
        never: &["tokio", "wit-bindgen", "wasip2"],
    },
    Layer {
        folder: "shell",
        knows: &["shapes"],
        never: &["tokio", "wit-bindgen", "wasip2"],
    },
    Layer {
        folder: "domain",
        knows: &["glob", "shapes", "shell"],
        never: &[
            "tokio",
            "async-trait",
            "futures",
            "rusqlite",
            "wasmtime",
            "axum",
            "hyper",
            "reqwest",
            "fastrand",
            "rustix",
        ],
    },
    Layer {
        folder: "store",
        knows: &["domain"],
        never: &["wasmtime", "axum", "hyper", "reqwest"],
    },
    Layer {
        folder: "egress",
        knows: &["domain"],
        never: &["wasmtime", "rusqlite", "axum", "reqwest"],
    },
    Layer {
        folder: "llm",
        knows: &["domain", "egress"],
        never: &["wasmtime", "rusqlite", "axum", "hyper", "reqwest"],
    },
    Layer {
        folder: "runtime",
        knows: &["shapes", "domain", "store", "egress", "llm"],
        never: &["axum", "rusqlite"],
    },
    Layer {
        folder: "broker",
        knows: &["domain", "store", "egress", "shell", "llm", "runtime"],
        never: &["axum", "hyper", "wasmtime", "rusqlite", "reqwest"],
    },
    Layer {
        folder: "edge",
        knows: &["domain", "store", "egress", "llm", "runtime", "broker"],
        never: &["wasmtime", "rusqlite"],
    },
    Layer {
        folder: "api",
        knows: &[
            "domain", "store", "egress", "llm", "runtime", "broker", "edge",
        ],
        never: &["rusqlite", "wasmtime"],
    },
    Layer {
        folder: "agent-host",
        knows: &[
            "domain", "store", "egress", "llm", "runtime", "broker", "edge", "api",
        ],
        never: &["rusqlite", "wasmtime"],
    },
];

/// Everything that a layer's manifest gets wrong.
///
/// # Errors
/// The manifest is not TOML.
pub fn check(layer: &Layer, manifest: &str) -> Result<Vec<String>, toml::de::Error> {
    let manifest: Table = manifest.parse()?;
    let mut findings = Vec::new();
    for name in ["dependencies", "build-dependencies"]
        .into_iter()
        .flat_map(|section| names(&manifest, section))
    {
        let name = name.strip_prefix("agent-host-").unwrap_or(&name);
        if name == layer.folder {
            continue;
        }
        if LAYERS.iter().any(|other| other.folder == name) && !layer.knows.contains(&name) {
            findings.push(format!(
                "{}: it must not know the layer `{name}`",
                layer.path()
            ));
        }
        if layer
            .never
            .iter()
            .any(|never| name == *never || name.starts_with(&format!("{never}-")))
        {
            findings.push(format!("{}: it must not depend on `{name}`", layer.path()));
        }
    }
    let inherits = manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"))
        .and_then(toml::Value::as_bool);
    if inherits != Some(true) {
        findings.push(format!(
            "{}: it must take the workspace's lints",
            layer.path()
        ));
    }
    Ok(findings)
}

fn names(manifest: &Table, section: &str) -> Vec<String> {
    manifest
        .get(section)
        .and_then(toml::Value::as_table)
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

/// The rooms of the broker, each with those that it must not import from.
const ROOMS: &[(&str, &[&str])] = &[
    ("command", &["driver"]),
    ("driver", &["command"]),
    ("shared", &["command", "driver"]),
];

/// Returns the files of the broker that import from a room that theirs must not know.
#[must_use]
pub fn check_rooms(files: &[TextFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !file.is_only_tests()) {
        let Some(inside) = file.path.strip_prefix("host/broker/src/") else {
            continue;
        };
        let room = inside.split(['/', '.']).next().unwrap_or_default();
        let Some((_, never)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            continue;
        };
        let code = Masked::new(&file.text).without_tests();
        let imports = |other: &str| {
            let path = format!("crate::{other}");
            words(&code, &path).next().is_some()
        };
        let known = never.iter().filter(|other| imports(other));
        findings.extend(known.map(|other| format!("{}: imports from `{other}`", file.path)));
    }
    findings
}

/// Returns the files of the API that name the store. They read it through handles of the broker,
/// each of which shows one subject.
#[must_use]
pub fn check_reads(files: &[TextFile]) -> Vec<String> {
    let of_api = files
        .iter()
        .filter(|file| file.path.starts_with("host/api/src/") && !file.is_only_tests());
    let named = of_api.filter(|file| {
        let code = Masked::new(&file.text).without_tests();
        words(&code, "Store").next().is_some()
    });
    named
        .map(|file| format!("{}: names `Store`", file.path))
        .collect()
}

/// The features with which wasmtime is built, and no others: what is left out is code that an
/// attacker cannot reach. Cargo unites the features that any crate asks for, so a new dependency
/// could switch one on without a word.
pub const WASM_FEATURES: &[(&str, &[&str])] = &[
    (
        "wasmtime",
        &[
            "async",
            "backtrace",
            "component-model",
            "cranelift",
            "demangle",
            "once_cell",
            "parallel-compilation",
            "pooling-allocator",
            "runtime",
            "std",
            "wasmtime-jit-icache-coherence",
        ],
    ),
    ("wasmtime-wasi", &["p2"]),
    ("wasmtime-wasi-http", &["p2"]),
];

/// Lists features beyond [`WASM_FEATURES`] and packages that are missing. The input is what `cargo
/// tree --prefix none --format '{p} {f}'` prints.
#[must_use]
pub fn check_features(tree: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (package, wanted) in WASM_FEATURES {
        let lines: Vec<&str> = tree
            .lines()
            .filter(|line| line.split(' ').next() == Some(package))
            .collect();
        if lines.is_empty() {
            findings.push(format!(
                "`{package}` is not in the tree: has the check lost its object?"
            ));
        }
        for feature in lines
            .iter()
            .filter_map(|line| line.split(' ').nth(2))
            .flat_map(|features| features.split(','))
        {
            if !feature.is_empty() && !wanted.contains(&feature) {
                findings.push(format!("`{package}` is built with `{feature}`"));
            }
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

/// Lists packages that the program is built with and the tests are not. The inputs are what `cargo
/// tree` prints for each. The first run of the tests would compile these again, with everything
/// that depends on them.
#[must_use]
pub fn check_shared(program: &str, tests: &str) -> Vec<String> {
    // A star marks what was printed before; a folder marks what is this repository's own.
    let packages = |tree: &str| -> BTreeSet<String> {
        tree.lines()
            .filter(|line| !line.contains("(/"))
            .map(|line| line.trim_end_matches(" (*)").trim_end().to_owned())
            .collect()
    };
    let tests = packages(tests);
    packages(program)
        .difference(&tests)
        .map(|package| format!("the tests do not share `{package}`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINTS: &str = "[lints]\nworkspace = true\n";

    fn layer(folder: &str) -> &'static Layer {
        LAYERS.iter().find(|layer| layer.folder == folder).unwrap()
    }

    #[test]
    fn an_arrow_the_wrong_way_is_found() {
        let check = |folder: &str, dependencies: &str| {
            check(
                layer(folder),
                &format!("{LINTS}[dependencies]\n{dependencies}"),
            )
            .unwrap()
            .len()
        };
        assert_eq!(
            check(
                "store",
                "domain.workspace = true\nrusqlite.workspace = true"
            ),
            0
        );
        assert_eq!(check("store", "llm.workspace = true"), 1);
        assert_eq!(
            check("store", "agent-host-broker = { path = \"../broker\" }"),
            1
        );
        assert_eq!(check("domain", "tokio-util = \"0.7\""), 1);
        assert_eq!(check("api", "wasmtime-wasi.workspace = true"), 1);
        assert_eq!(
            check("api", "broker.workspace = true\naxum.workspace = true"),
            0
        );
    }

    #[test]
    fn a_crate_without_the_lints_of_the_workspace_is_found() {
        assert_eq!(check(layer("domain"), "[dependencies]").unwrap().len(), 1);
    }

    #[test]
    fn a_room_that_imports_from_another_one_is_found() {
        let file =
            |name: &str, text: &str| TextFile::new(&format!("host/broker/src/{name}.rs"), text);
        let found = check_rooms(&[
            file("command", "use crate::shared::Error;"),
            file("command/a", "use crate::driver::Driver;"),
            file("driver/b", "use crate::driver::c::D; // crate::command"),
            file("shared/c", "fn f() { crate::command::g() }"),
            file("start", "use crate::{command, driver};"),
        ]);
        assert_eq!(
            found,
            [
                "host/broker/src/command/a.rs: imports from `driver`",
                "host/broker/src/shared/c.rs: imports from `command`",
            ]
        );
    }

    #[test]
    fn a_route_that_reads_the_store_itself_is_found() {
        let file = |path: &str, text: &str| TextFile::new(&format!("host/{path}.rs"), text);
        let found = check_reads(&[
            file("api/src/routes/a", "async fn list(store: &Store) {}"),
            file(
                "api/src/routes/b",
                "use store::{KeyRow, StoreSize}; // Store",
            ),
            file("api/src/c", "#[cfg(test)]\nmod tests { use store::Store; }"),
            file("edge/src/d", "use store::Store;"),
        ]);
        assert_eq!(found, ["host/api/src/routes/a.rs: names `Store`"]);
    }

    #[test]
    fn a_feature_that_came_in_by_another_way_is_found() {
        let tree = "wasmtime v48.0.8 async,gc,std\nwasmtime-wasi v48.0.8 p2 \
                    (*)\nwasmtime-wasi-http v48.0.8 default-send-request,p2\n";
        assert_eq!(
            check_features(tree),
            [
                "`wasmtime-wasi-http` is built with `default-send-request`",
                "`wasmtime` is built with `gc`"
            ]
        );
        assert_eq!(check_features("").len(), WASM_FEATURES.len());
    }

    #[test]
    fn a_package_that_the_tests_build_in_another_way_is_found() {
        let tests = "tokio v1 net,time (*)\nbytes v1 \nagent-host v0.1.0 (/here) \n";
        assert_eq!(
            check_shared("tokio v1 net,time\nagent-host v0.1.0 (/here) x\n", tests).len(),
            0
        );
        assert_eq!(
            check_shared("tokio v1 net\nbytes v1 (*)\n", tests),
            ["the tests do not share `tokio v1 net`"]
        );
    }
}
