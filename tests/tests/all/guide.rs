//! The README and the guide: the commands that they give a reader run, against the demo.
//!
//! A block with the info string `sh` is run; one that needs a person, a real model or another
//! terminal has `text`. All blocks of a page run in one shell, in their order, from a folder in
//! which the demo is where it is in the repository. `DEMO_CONFIG` names its config file,
//! `AGENT_HOST` the program, which is on the `PATH` too.

use agent_host_tests::guests::root;
use agent_host_tests::process::{DEMO_COMPONENTS, Folder, program};
use agent_host_tests::skip::{WITHOUT_CURL, needed};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Time limit of one page.
const PAGE: Duration = Duration::from_secs(120);
/// The folder of the guide, from the repository's root.
const GUIDE: &str = "docs/guide";
/// The line with which a block begins that can be run.
const BEGIN: &str = "```sh";
/// The line with which a block ends.
const END: &str = "```";
/// The beginning of the line that is printed before each block, with the number of its first line.
const MARK: &str = "--- the block at line ";

/// One block of a page.
#[derive(Debug, PartialEq)]
struct Block {
    /// The number of its first line.
    line: usize,
    /// Its commands.
    text: String,
}

/// Returns the blocks of a page that can be run.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_within = false;
    for (number, line) in (1..).zip(page.lines()) {
        match (is_within, line) {
            (false, BEGIN) => {
                is_within = true;
                blocks.push(Block {
                    line: number + 1,
                    text: String::new(),
                });
            }
            (true, END) => is_within = false,
            (true, line) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (false, _) => {}
        }
    }
    blocks
}

/// Returns what a shell runs for a page: its blocks, each behind its mark.
fn script(blocks: &[Block]) -> String {
    blocks
        .iter()
        .map(|Block { line, text }| format!("echo '{MARK}{line}'\n{text}\n"))
        .collect()
}

/// Returns the pages with commands, as paths from the repository's root.
fn pages() -> Vec<String> {
    let names = std::fs::read_dir(root().join(GUIDE)).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = names.map(|name| format!("{GUIDE}/{name}")).collect();
    pages.sort();
    pages.insert(0, "README.md".to_owned());
    assert!(pages.len() > 5, "the test has lost its object: {pages:?}");
    pages
}

/// Returns the `PATH` with the program's folder before all others.
fn path() -> OsString {
    let program = program();
    let own = program.parent().map(Path::to_path_buf);
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&others))).unwrap()
}

/// Returns why the machine cannot run the commands of the guide, if it cannot.
fn tools() -> Result<(), String> {
    for tool in ["bash", "curl", "jq"] {
        let mut version = std::process::Command::new(tool);
        version
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if !version.status().is_ok_and(|status| status.success()) {
            return Err(format!(
                "there is no `{tool}`, which the commands of the guide need"
            ));
        }
    }
    Ok(())
}

/// Runs a page.
///
/// # Errors
/// The block that failed, and everything that was printed until then.
async fn run(page: &str, folder: &Folder) -> Result<(), String> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let blocks = blocks(&text);
    if blocks.is_empty() {
        return Err(format!("{page}: there is no block that can be run"));
    }
    let printed = folder.path().join("printed");
    let output = File::create(&printed).unwrap();
    let mut shell = Command::new("bash");
    shell
        .args(["-e", "-o", "pipefail", "-c", &script(&blocks)])
        .current_dir(folder.path())
        .env("DEMO_CONFIG", folder.config_file())
        .env("AGENT_HOST", program())
        .env("PATH", path())
        .env(
            "AGENT_HOST_COMPONENTS",
            root().join("guests/target/wasm32-wasip2/release"),
        )
        // The host is on this machine, whatever stands between it and others.
        .env("no_proxy", "*")
        .env_remove("AGENT_HOST_CONFIG")
        .env_remove("AGENT_HOST_TOKEN")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .kill_on_drop(true);
    let mut shell = shell.spawn().unwrap();
    let how = match tokio::time::timeout(PAGE, shell.wait()).await {
        Ok(status) => {
            let status = status.unwrap();
            if status.success() {
                return Ok(());
            }
            format!("failed ({status})")
        }
        Err(_) => format!("did not end within {PAGE:?}"),
    };
    let printed = String::from_utf8_lossy(&std::fs::read(&printed).unwrap()).into_owned();
    let line = printed
        .lines()
        .filter_map(|line| line.strip_prefix(MARK))
        .next_back();
    Err(format!(
        "{page}: the block at line {} {how}:\n{printed}",
        line.unwrap_or("?")
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_readme_and_the_guide_runs_against_the_demo() {
    if needed(tools(), WITHOUT_CURL).is_none() {
        return;
    }
    let folder = Folder::demo();
    folder.warm(&DEMO_COMPONENTS).await;
    let host = folder
        .start_with(&["--listen", "127.0.0.1:0"], None)
        .await
        .unwrap();
    let mut failures = Vec::new();
    for page in pages() {
        failures.extend(run(&page, &folder).await.err());
    }
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n\n"));
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[test]
fn blocks_that_can_be_run_are_those_of_shell_with_the_number_of_their_first_line() {
    let page = "# A\n\n```sh\nx=1\n\necho $x\n```\n```text\nchat\n```\n```sh\ny\n```\n";
    let block = |line, text: &str| Block {
        line,
        text: text.to_owned(),
    };
    assert_eq!(
        blocks(page),
        [block(4, "x=1\n\necho $x\n"), block(12, "y\n")]
    );
    assert_eq!(
        script(&blocks(page)[1..]),
        format!("echo '{MARK}12'\ny\n\n")
    );
}
