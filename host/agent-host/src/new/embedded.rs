//! Files of the repository that the program carries, for projects outside of it, and the names that
//! projects may have.

use crate::config::component::BUILT_INS;
use domain::connector::DIRECT;
use domain::user::RESERVED_WORDS;

/// A file of the repository.
#[derive(Debug, Clone, Copy)]
pub(super) struct EmbeddedFile {
    /// Its path in a project; but for [`WASI`], it is the one from the repository's root.
    pub(super) path: &'static str,
    /// Its content.
    pub(super) text: &'static str,
}

/// Includes files of the repository by their paths from its root.
macro_rules! embedded {
    ($($path:literal,)*) => {
        &[$(EmbeddedFile {
            path: $path,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $path)),
        }),*]
    };
}

/// The interface with plugins.
pub(super) const WIT: &[EmbeddedFile] = embedded![
    "wit/agent.wit",
    "wit/connector.wit",
    "wit/deps/keyvalue/keyvalue.wit",
    "wit/deps/logging/logging.wit",
    "wit/tools.wit",
    "wit/trigger.wit",
    "wit/turn.wit",
    "wit/types.wit",
    "wit/worlds.wit",
];

/// Includes packages of `new/wasi/` by their names.
macro_rules! wasi {
    ($($package:literal),* $(,)?) => {
        &[$(EmbeddedFile {
            path: concat!("wit/deps/", $package, "/", $package, ".wit"),
            text: include_str!(concat!("wasi/", $package, ".wit")),
        }),*]
    };
}

/// The packages of WASI that the host links, for worlds that import them.
pub(super) const WASI: &[EmbeddedFile] = wasi![
    "cli",
    "clocks",
    "filesystem",
    "http",
    "io",
    "random",
    "sockets",
];

/// The licence of those packages, Apache-2.0 WITH LLVM-exception.
pub(super) const WASI_LICENCE: EmbeddedFile = EmbeddedFile {
    path: "wit/deps/WASI-LICENSE",
    text: include_str!("wasi/LICENSE"),
};

/// The SDK, without its own tests.
pub(super) const SDK: &[EmbeddedFile] = embedded![
    "sdk/Cargo.toml",
    "sdk/README.md",
    "sdk/shapes/Cargo.toml",
    "sdk/shapes/src/json.rs",
    "sdk/shapes/src/lib.rs",
    "sdk/shapes/src/limits.rs",
    "sdk/shapes/src/shown.rs",
    "sdk/shapes/src/widget.rs",
    "sdk/src/agent.rs",
    "sdk/src/bindings.rs",
    "sdk/src/client.rs",
    "sdk/src/connector.rs",
    "sdk/src/content.rs",
    "sdk/src/harness.rs",
    "sdk/src/harness/bench.rs",
    "sdk/src/harness/buckets.rs",
    "sdk/src/harness/conversation.rs",
    "sdk/src/harness/conversation/setting.rs",
    "sdk/src/harness/exchange.rs",
    "sdk/src/harness/folders.rs",
    "sdk/src/harness/http.rs",
    "sdk/src/harness/performer.rs",
    "sdk/src/harness/rules.rs",
    "sdk/src/harness/scene.rs",
    "sdk/src/harness/trigger_runs.rs",
    "sdk/src/http.rs",
    "sdk/src/http/error.rs",
    "sdk/src/http/outgoing.rs",
    "sdk/src/http/response.rs",
    "sdk/src/http/url.rs",
    "sdk/src/keyvalue.rs",
    "sdk/src/lib.rs",
    "sdk/src/log.rs",
    "sdk/src/manifest.rs",
    "sdk/src/news.rs",
    "sdk/src/operation.rs",
    "sdk/src/step.rs",
    "sdk/src/tool.rs",
    "sdk/src/tool_loop.rs",
    "sdk/src/trigger.rs",
    "sdk/src/turn.rs",
    "sdk/src/wire.rs",
    "sdk/src/wire/agent.rs",
    "sdk/src/wire/connector.rs",
    "sdk/src/wire/content.rs",
    "sdk/src/wire/http.rs",
    "sdk/src/wire/keyvalue.rs",
    "sdk/src/wire/tools.rs",
    "sdk/src/wire/trigger.rs",
    "sdk/src/wire/view.rs",
];

/// The versions of packages that the SDK is tested with, for a project in Rust.
pub(super) const LOCK: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/Cargo.lock"));

/// The script that finds or makes a compiler of components.
pub(super) const TOOLCHAIN_SCRIPT: EmbeddedFile = EmbeddedFile {
    path: "scripts/guest-toolchain",
    text: include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scripts/guest-toolchain"
    )),
};

/// The version of the compiler that the SDK is tested with.
pub(super) const TOOLCHAIN_FILE: EmbeddedFile = EmbeddedFile {
    path: "rust-toolchain.toml",
    text: include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../rust-toolchain.toml"
    )),
};

/// The declaration of a file of unit tests, which is not carried.
const TESTS: &str = "#[cfg(test)]\nmod tests;\n";

impl EmbeddedFile {
    /// The file as it stands in a project: without the declaration of tests that are not there.
    pub(super) fn in_project(self) -> String {
        let text = self.text.replace(TESTS, "");
        format!("{}\n", text.trim_end())
    }
}

/// Bytes of a name, as of a component's or a tool's.
const BYTES_MAX: usize = 64;
/// Packages that projects depend on. A package cannot depend on one of its own name.
const PACKAGES: [&str; 5] = [
    "agent-host-sdk",
    "componentize-qjs",
    "schemars",
    "serde",
    "serde_json",
];

/// Returns the fault of a name, or none if a project can have it.
pub(super) fn fault(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let shown: String = name.chars().take(BYTES_MAX).collect();
    if !(1..=BYTES_MAX).contains(&name.len()) || !name.chars().all(fits) {
        return Some(format!(
            "`{shown}` is no name of a project: 1 to {BYTES_MAX} of `a-z`, `0-9`, `-` and `_`"
        ));
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some(format!(
            "`{shown}` is no name of a project: it begins with a letter, as packages do"
        ));
    }
    if BUILT_INS.contains(&name) || name == DIRECT {
        return Some(format!("`{name}` is a component that comes with the host"));
    }
    if RESERVED_WORDS.contains(&name) {
        return Some(format!(
            "`{name}` has a meaning of its own in paths of agents"
        ));
    }
    if PACKAGES.contains(&name) {
        return Some(format!("`{name}` is a package that projects depend on"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, fault};

    #[test]
    fn a_name_that_cannot_be_a_components_or_a_packages_is_refused_with_the_rule() {
        let longest = "a".repeat(BYTES_MAX);
        for name in ["a", "word-count", "word_count2", "fn", "test", &longest] {
            assert_eq!(fault(name), None, "{name}");
        }
        let too_long = "a".repeat(BYTES_MAX + 1);
        for (name, reported) in [
            ("", "1 to 64 of `a-z`, `0-9`, `-` and `_`"),
            (&*too_long, "1 to 64 of"),
            ("Words", "1 to 64 of"),
            ("wörter", "1 to 64 of"),
            ("a b", "1 to 64 of"),
            ("../words", "1 to 64 of"),
            ("a/b", "1 to 64 of"),
            ("2words", "begins with a letter"),
            ("-words", "begins with a letter"),
            ("_", "begins with a letter"),
            ("assistant", "comes with the host"),
            ("direct", "comes with the host"),
            ("agent", "a meaning of its own"),
            ("serde", "a package that projects depend on"),
        ] {
            let fault = fault(name).unwrap_or_else(|| panic!("{name} is refused"));
            assert!(fault.contains(reported), "{name}: {fault}");
        }
    }
}
