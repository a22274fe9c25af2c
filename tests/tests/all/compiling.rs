//! Components are compiled by processes of the real program, and it survives what becomes of them.

use agent_host_tests::guests::wasm;
use agent_host_tests::patience::until;
use agent_host_tests::process::program;
use runtime::{Compiler, Config, LoadError, Runtime};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Less than any component takes to compile.
const TOO_FEW_BYTES: &str = "70000000";

fn compiled_within(folder: &Path, limits: &[&str]) -> Runtime {
    let arguments = [&["compile-component"], limits]
        .concat()
        .into_iter()
        .map(Into::into)
        .collect();
    let config = Config {
        cache_dir: folder.join("cache"),
        instances_max: 4,
        ..Config::default()
    };
    Runtime::with_compiler(config, Compiler::process(program(), arguments)).unwrap()
}

#[tokio::test]
async fn fault_43_a_compiler_that_reaches_its_limits_takes_nothing_along() {
    let folder = tempfile::tempdir().unwrap();
    for (limits, expected) in [
        (
            vec!["--memory-bytes-max", TOO_FEW_BYTES],
            "it takes more memory or computing time than compiling may take",
        ),
        (vec!["--cpu-s-max", "0"], "(signal: "),
        (vec!["--no-such-limit"], "unexpected argument"),
    ] {
        let error = compiled_within(folder.path(), &limits)
            .load(wasm("files"))
            .await
            .unwrap_err();
        assert!(
            matches!(error, LoadError::CompilerEnded { .. })
                && error.to_string().contains(expected),
            "{limits:?}: {error}"
        );
    }
    let runtime = compiled_within(folder.path(), &[]);
    let files = runtime.load(wasm("files")).await.unwrap();
    assert!(
        files
            .imports()
            .iter()
            .any(|import| import.starts_with("wasi:filesystem/types@0.2."))
    );
    assert_eq!(runtime.stats().compiled, 1);
    // A thread's code and a process's are the same to the cache.
    let by_thread = Runtime::new(Config {
        cache_dir: folder.path().join("cache"),
        instances_max: 4,
        ..Config::default()
    })
    .unwrap();
    by_thread.load(wasm("files")).await.unwrap();
    assert_eq!(
        (
            by_thread.stats().compiled,
            by_thread.stats().loaded_from_cache
        ),
        (0, 1)
    );
}

#[tokio::test]
async fn what_a_compiling_process_refuses_is_refused_in_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let mut broken = wasm("files");
    let middle = broken.len() / 2;
    broken[middle..middle + 64].fill(0xff);
    let by_process = compiled_within(folder.path(), &[])
        .load(broken.clone())
        .await
        .unwrap_err();
    let by_thread = Runtime::new(Config {
        cache_dir: folder.path().join("cache"),
        instances_max: 4,
        ..Config::default()
    })
    .unwrap();
    let by_thread = by_thread.load(broken).await.unwrap_err();
    let (LoadError::Invalid(by_process), LoadError::Invalid(by_thread)) = (by_process, by_thread)
    else {
        panic!("not refused")
    };
    let plain = |error: &wasmtime::Error| {
        format!("{error:#}")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(plain(&by_process), plain(&by_thread));
}

#[tokio::test]
async fn a_component_that_nobody_waits_for_is_compiled_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = compiled_within(folder.path(), &[]);
    let waiting =
        tokio::time::timeout(Duration::from_millis(50), runtime.load(wasm("files"))).await;
    assert!(waiting.is_err());
    // The place is free again at once.
    runtime.load(wasm("files")).await.unwrap();
}

#[tokio::test]
async fn a_compiling_process_whose_parent_has_gone_compiles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let parent = std::process::id().to_string();
    compiled_within(folder.path(), &["--parent", &parent])
        .load(wasm("files"))
        .await
        .unwrap();
    let error = compiled_within(folder.path(), &["--parent", "1"])
        .load(wasm("worker"))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the process is not the child of process 1"),
        "{error}"
    );
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_compiling_process_can_open_nothing() {
    let mut command = Command::new(program());
    let mut child = command
        .arg("compile-component")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let limits = format!("/proc/{}/limits", child.id().unwrap());
    // It reads what it is to compile only after it has limited itself.
    for name in ["Max open files", "Max core file size"] {
        until(async || {
            let limits = std::fs::read_to_string(&limits).unwrap();
            let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
            let mut bounds = line.split_whitespace().rev().skip(1).take(2);
            bounds.all(|bound| bound == "0")
        })
        .await;
    }
    child.kill().await.unwrap();
}
