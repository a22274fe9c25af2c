//! The description of the API in the hands of other people's programs: validators that check it,
//! and clients that generators make from it, built and used on a host that runs.
//!
//! The programs stand in registries. They are fetched once for a target folder; where there is no
//! registry, or no tool to ask one, the tests say that they are skipped. A generator for Rust is
//! not among them: `progenitor` reads OpenAPI 3.0 only.
//!
//! Tests that the machine cannot run: skipped when that is known, and failed otherwise.

use agent_host_tests::guests::root;
use agent_host_tests::process::{Folder, Host, puppet, puppets, tells};
use agent_host_tests::skip::found_or_known;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

/// The time in which programs are fetched, or do their work.
const PATIENCE: Duration = Duration::from_secs(300);
/// The errors by which npm and pip say that they reach no registry. A package or version that the
/// registry does not have is none of them.
const UNREACHED: [&str; 11] = [
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ENETUNREACH",
    "ENOTCACHED",
    "ENOTFOUND",
    "ETIMEDOUT",
    "ConnectTimeoutError",
    "NameResolutionError",
    "NewConnectionError",
    "ProxyError",
];

/// Programs of registries, and what they do with the description.
struct Toolchain {
    /// Its folder in `tests/clients`.
    name: &'static str,
    /// The programs that it needs.
    programs: &'static [&'static str],
    /// The files that name its packages.
    packages: &'static [&'static str],
    /// The commands that fetch the packages into the current folder.
    fetch: &'static str,
    /// The commands that use `openapi.json` in the current folder. `$PACKAGES` is where the
    /// packages are.
    work: &'static str,
}

const VALIDATORS: Toolchain = Toolchain {
    name: "validators",
    programs: &["node", "npm", "python3"],
    packages: &["package.json", "requirements.txt"],
    fetch: "npm install --no-audit --no-fund --no-package-lock --ignore-scripts
        python3 -m venv venv
        venv/bin/python -m pip install --quiet --disable-pip-version-check \
            --requirement requirements.txt",
    work: "export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
        NODE_MODULES=\"$PACKAGES/node_modules\"
        \"$PACKAGES/venv/bin/openapi-spec-validator\" openapi.json
        node \"$NODE_MODULES/@seriousme/openapi-schema-validator/bin/validate-api-cli.js\" \
            openapi.json
        node \"$NODE_MODULES/@redocly/cli/bin/cli.js\" lint openapi.json",
};
const TYPESCRIPT: Toolchain = Toolchain {
    name: "typescript",
    programs: &["node", "npm"],
    packages: &["package.json"],
    fetch: "npm install --no-audit --no-fund --no-package-lock --ignore-scripts",
    work: "ln -s \"$PACKAGES/node_modules\" node_modules
        node node_modules/openapi-typescript/bin/cli.js openapi.json --output api.ts
        node node_modules/typescript/bin/tsc --project tsconfig.json
        node out/use.js",
};
const PYTHON: Toolchain = Toolchain {
    name: "python",
    programs: &["python3"],
    packages: &["requirements.txt"],
    fetch: "python3 -m venv venv && venv/bin/python -m pip install --quiet \
        --disable-pip-version-check --requirement requirements.txt",
    work: "export PATH=\"$PACKAGES/venv/bin:$PATH\"
        openapi-python-client generate --path openapi.json --output-path client
        PYTHONPATH=client python use.py",
};

/// Runs commands in a folder, each after the one before it has succeeded.
async fn run(folder: &Path, commands: &str, more: &[(&str, &str)]) -> Output {
    let mut shell = Command::new("bash");
    shell
        .args(["-e", "-c", commands])
        .current_dir(folder)
        .envs(more.iter().copied())
        // The host is on this machine, whatever stands between it and others.
        .env("no_proxy", "127.0.0.1")
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, shell.output()).await;
    output.expect("commands that end in time").unwrap()
}

fn reported(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .concat()
}

/// Returns whether a package manager failed because it reaches no registry, by what it says.
fn reaches_no_registry(reported: &str) -> bool {
    UNREACHED.iter().any(|error| reported.contains(error))
}

#[expect(
    clippy::print_stderr,
    reason = "whoever reads the results is to know what was not tested"
)]
fn skip(name: &str, why: &str) {
    eprintln!("SKIPPED, because {why}: the description in the hands of {name}");
}

impl Toolchain {
    /// Its folder in the repository.
    fn folder(&self) -> PathBuf {
        root().join("tests/clients").join(self.name)
    }

    /// Returns the folder with its packages, which are fetched unless they are there; none where
    /// that cannot be.
    async fn fetched(&self) -> Option<PathBuf> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |program: &&&str| {
            std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
        };
        if let Some(missing) = self.programs.iter().find(|program| !is_there(program)) {
            skip(self.name, &format!("there is no `{missing}` on the PATH"));
            return None;
        }
        let read = |file: &&str| std::fs::read(self.folder().join(file)).unwrap();
        let named: Vec<Vec<u8>> = self.packages.iter().map(read).collect();
        let packages = named.concat();
        let folder = root().join("target/clients").join(self.name);
        let mark = folder.join("fetched");
        if std::fs::read(&mark).is_ok_and(|fetched| fetched == packages) {
            return Some(folder);
        }
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for (file, content) in self.packages.iter().zip(&named) {
            std::fs::write(folder.join(file), content).unwrap();
        }
        let output = run(&folder, self.fetch, &[]).await;
        if !output.status.success() {
            let reported = reported(&output);
            assert!(reaches_no_registry(&reported), "{reported}");
            skip(self.name, "its packages cannot be fetched");
            return None;
        }
        std::fs::write(mark, packages).unwrap();
        Some(folder)
    }

    /// Does its work with the description of a host; returns what it prints.
    async fn used_on(&self, host: &Host, packages: &Path) -> String {
        let dir = TempDir::new().unwrap();
        for entry in std::fs::read_dir(self.folder()).unwrap() {
            let file = entry.unwrap().path();
            std::fs::copy(&file, dir.path().join(file.file_name().unwrap())).unwrap();
        }
        let description = host.get("/openapi.json").await.body;
        std::fs::write(dir.path().join("openapi.json"), description.to_string()).unwrap();
        let packages = packages.to_str().unwrap();
        let more = [
            ("PACKAGES", packages),
            ("HOST_URL", host.base.as_str()),
            ("HOST_TOKEN", host.token.as_str()),
        ];
        let output = run(dir.path(), self.work, &more).await;
        assert!(output.status.success(), "{}", reported(&output));
        reported(&output)
    }
}

/// Returns what a toolchain prints on a host with a puppet; none where it cannot be fetched.
async fn printed(toolchain: &Toolchain) -> Option<String> {
    let packages = toolchain.fetched().await?;
    let agent = puppet();
    let (_folder, host) = Folder::serving(puppets(&json!([agent])), &["puppet"]).await;
    Some(toolchain.used_on(&host, &packages).await)
}

async fn a_client_is_generated_built_and_used(generator: &Toolchain) {
    let Some(reported) = printed(generator).await else {
        return;
    };
    let last = format!("{}: Hello, client.", generator.name);
    tells(&reported, &[&last]);
    // A part that a generator does not understand is left out with such words.
    assert!(
        !reported.contains("Endpoint will not be generated"),
        "{reported}"
    );
    assert!(!reported.contains("Unable to process schema"), "{reported}");
}

/// Each of them ends with an error at a fault, and with such words without.
#[tokio::test(flavor = "multi_thread")]
async fn three_validators_find_no_fault_in_the_description() {
    let Some(reported) = printed(&VALIDATORS).await else {
        return;
    };
    for passed in [
        "openapi.json: OK",
        "\"valid\": true",
        "Your API description is valid",
    ] {
        tells(&reported, &[passed]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typescript_client_is_generated_compiled_and_used_on_a_host() {
    a_client_is_generated_built_and_used(&TYPESCRIPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_client_is_generated_and_used_on_a_host() {
    a_client_is_generated_built_and_used(&PYTHON).await;
}

#[test]
fn only_a_registry_that_is_not_reached_skips_a_test() {
    for (reported, expected) in [
        (
            "npm error code ENOTFOUND\nnpm error network request to https://a.example failed",
            true,
        ),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by \
             'NewConnectionError('Failed to establish a new connection: [Errno 111]')'",
            true,
        ),
        (
            "npm error code ETARGET\nnpm error No matching version found for a@9.9.9",
            false,
        ),
        (
            "ERROR: No matching distribution found for neural-network==9",
            false,
        ),
    ] {
        assert_eq!(reaches_no_registry(reported), expected, "{reported}");
    }
}

#[test]
fn what_is_missing_is_skipped_only_when_that_is_known() {
    let missing = || Err::<(), _>("no namespaces".to_owned());
    assert_eq!(found_or_known(Ok(1), "A_VARIABLE", false), Some(1));
    assert_eq!(found_or_known(missing(), "A_VARIABLE", true), None);
    let said =
        std::panic::catch_unwind(|| found_or_known(missing(), "A_VARIABLE", false)).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    tells(said, &["no namespaces", "A_VARIABLE=1"]);
}
