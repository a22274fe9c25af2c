//! Compiling: if the compiler fails in any way, the host goes on and reports what happened.

use crate::fixture::{Fixture, config, done, program};
use agent_host_runtime::{Compiler, LoadError, Runtime};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A runtime in the folder of a fixture, whose compiler is a shell command.
fn compiled_by(fixture: &Fixture, command: &str, wall_ms_max: u64) -> Runtime {
    let arguments: Vec<OsString> = vec!["-c".into(), command.into()];
    let compiler = Compiler::process(PathBuf::from("/bin/sh"), arguments)
        .within(Duration::from_millis(wall_ms_max));
    Runtime::with_compiler(config(fixture.folder.path()), compiler).unwrap()
}

#[tokio::test]
async fn a_compiler_that_never_ends_is_killed_and_the_component_refused() {
    let fixture = Fixture::new();
    fixture.load("counter").await;
    // It takes what it is given and then does nothing, or does not even take it.
    for command in ["cat > /dev/null; exec sleep 600", "exec sleep 600"] {
        let runtime = compiled_by(&fixture, command, 300);
        for _ in 0..2 {
            let began = Instant::now();
            let error = runtime.load(program("echo")).await.unwrap_err();
            assert!(
                matches!(error, LoadError::CompileTimedOut { limit_ms: 300 }),
                "{error}"
            );
            assert!(
                began.elapsed() < Duration::from_secs(5),
                "{:?}",
                began.elapsed()
            );
        }
        // What was compiled before is there.
        runtime.load(program("counter")).await.unwrap();
        assert_eq!(
            (runtime.stats().compiled, runtime.stats().loaded_from_cache),
            (0, 1)
        );
    }
}

#[tokio::test]
async fn a_compiler_that_ends_without_code_is_told_by_its_end() {
    let fixture = Fixture::new();
    for (command, expected) in [
        (
            "kill -9 $$",
            "the compiler did not survive the component (signal: 9 (SIGKILL)):",
        ),
        (
            "echo out of luck >&2; exit 1",
            "(exit status: 1: out of luck)",
        ),
        (
            "printf 'a\\033[31m' >&2; exit 1",
            "(exit status: 1: a\\u{1b}[31m)",
        ),
        ("exec cat", "the engine refuses what was compiled"),
        ("exit 0", "the engine refuses what was compiled"),
    ] {
        let error = compiled_by(&fixture, command, 10_000)
            .load(program("echo"))
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{command}: {error}");
    }
    let refused = compiled_by(
        &fixture,
        "cat > /dev/null; echo no such type >&2; exit 3",
        10_000,
    )
    .load(program("echo"))
    .await
    .unwrap_err();
    let LoadError::Invalid(why) = refused else {
        panic!("{refused}")
    };
    assert_eq!(why.to_string(), "no such type");
    let nobody = Compiler::process(fixture.folder.path().join("nobody"), Vec::new());
    let runtime = Runtime::with_compiler(config(fixture.folder.path()), nobody).unwrap();
    let error = runtime.load(program("echo")).await.unwrap_err();
    assert!(
        error.to_string().contains("the compiler could not be run"),
        "{error}"
    );
}

#[tokio::test]
async fn a_thread_that_compiles_for_too_long_is_left_alone_and_the_component_refused() {
    let fixture = Fixture::new();
    fixture.load("counter").await;
    let hasty = Compiler::thread().within(Duration::from_millis(1));
    let runtime = Runtime::with_compiler(config(fixture.folder.path()), hasty).unwrap();
    for _ in 0..2 {
        assert!(matches!(
            runtime.load(program("echo")).await,
            Err(LoadError::CompileTimedOut { limit_ms: 1 })
        ));
    }
    let counter = runtime.load(program("counter")).await.unwrap();
    let again = Fixture {
        runtime,
        folder: fixture.folder,
    };
    assert_eq!(done(&again.call(&counter, "counter", "{}").await), "1");
}
