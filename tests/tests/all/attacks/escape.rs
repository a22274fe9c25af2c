//! A3: guests that try to get out by lying about what they hand over, and components that should
//! never be loaded.

use super::cpu::call;
use super::siege::{narrow, repeats_of_slow};
use super::wat::{text_of, tool_of};
use agent_host_tests::guests::wasm;
use agent_host_tests::world::runtime;
use domain::grant::GuestLimits;
use runtime::{Config, Described, LoadError, Outcome, Runtime};
use serde_json::json;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TRAPPED: &str = "failed trapped: the tool crashed: ";
const UNKNOWN_HANDLE: &str = "failed trapped: the tool crashed: unknown handle index";

cases! {
    #[test]
    fn a_result_that_is_no_text_is_refused("failed trapped: the tool crashed: invalid utf-8");
    #[test]
    fn a_handle_of_another_kind_is_refused(TRAPPED);
    #[test]
    fn a_handle_that_was_dropped_is_gone(UNKNOWN_HANDLE);
    #[test]
    fn an_exit_ends_the_guest_and_nothing_else(
        "failed trapped: the tool crashed: the guest ended itself with exit code 0"
    );
    #[test]
    fn a_panic_with_control_characters_is_told_without_them(TRAPPED)
        .met("logBytesMax").and_no_reply_has(&["\u{1b}", "\r", "\u{202e}"]);
    #[test]
    fn a_question_nested_without_end_is_refused(
        "failed tool-failed: the tool returned what is not acceptable: `ask.action.props` \
         is nested deeper than 64 levels"
    )
        .breaks_the_contract("`ask.action.props`");
    #[test]
    fn a_clock_is_no_finer_than_a_millisecond("parts true true").under(narrow());
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_handle_that_was_never_given_is_unknown() {
    for index in [0_u32, 4_242, 1 << 28, u32::MAX] {
        case!(a_handle_that_was_never_given_is_unknown, TRAPPED)
            .with(json!({ "index": index }))
            .prove()
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_bucket_that_was_never_opened_lists_nothing() {
    for index in [0, 1, 7] {
        case!(a_bucket_that_was_never_opened_lists_nothing, TRAPPED)
            .with(json!({ "index": index }))
            .prove()
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_question_with_a_schema_elsewhere_fetches_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let here = format!("http://{}/schema.json", listener.local_addr().unwrap());
    for schema in [
        here.as_str(),
        "file:///etc/passwd",
        "http://169.254.169.254/latest/meta-data",
    ] {
        case!(
            a_question_with_a_schema_elsewhere_fetches_nothing,
            "failed "
        )
        .with(json!({ "schema": schema }))
        .prove()
        .await;
    }
    assert!(listener.accept().is_err(), "the schema was fetched");
}

/// A component that comes with the host, with another text of the same length in its
/// self-description.
fn reworded(words: &str, others: &str) -> Vec<u8> {
    assert_eq!(words.len(), others.len());
    let mut component = wasm("files");
    let at = component
        .windows(words.len())
        .position(|window| window == words.as_bytes())
        .unwrap();
    component[at..at + words.len()].copy_from_slice(others.as_bytes());
    component
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_text_in_a_description_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime_of(&folder, |_| ());
    for (words, others, place) in [
        (
            "Reads a text",
            "Read\u{200b} text",
            "`read_file.description` has the hidden character U+200B",
        ),
        (
            "Reads a text",
            "Rea\u{e0041} text",
            "`read_file.description` has the hidden character U+E0041",
        ),
        (
            "Such as `*.md`",
            "Such\u{202e} `*.md`",
            "`list_files.arguments.properties.",
        ),
        (
            "The whole new",
            "The whole\u{1b}new",
            "`write_file.arguments.properties.",
        ),
    ] {
        match runtime.load(reworded(words, others)).await {
            Err(LoadError::DescribeRefused { detail }) => {
                assert!(detail.contains(place), "{detail}")
            }
            other => panic!("{others:?}: {other:?}"),
        }
    }
    runtime
        .load(reworded("Reads a text", "Sings a text"))
        .await
        .unwrap();
}

/// A component that offers the tool `attack`, made of a core module with these fields.
fn with_module(fields: &str) -> String {
    let call = r#"(func (export "call") (param i32) (result i32) i32.const 256)
                  (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 8192)"#;
    format!("(module $attack {fields} {call})")
}

fn runtime_of(folder: &TempDir, change: impl FnOnce(&mut Config)) -> Runtime {
    let mut config = Config {
        cache_dir: folder.path().join("cache"),
        instances_max: 4,
        ..Config::default()
    };
    config.describe.cpu_ms_max = 50;
    change(&mut config);
    Runtime::new(config).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_component_or_uses_what_this_host_leaves_out_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime_of(&folder, |_| ());
    let honest = wasm("echo");
    let of = |fields: &str| tool_of(&with_module(fields));
    // It is not the text around the modules that is refused.
    runtime
        .load(of(
            "(memory 1) (table 1 funcref) (global i64 (i64.const 0))",
        ))
        .await
        .unwrap();
    let many = |count: usize, what: &str| what.repeat(count);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        (
            "machine code",
            [b"\x7fELF\x02\x01\x01".as_slice(), &honest].concat(),
        ),
        (
            "serialized code",
            [
                b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0wasmtime".as_slice(),
                &honest,
            ]
            .concat(),
        ),
        ("half of it", honest[..honest.len() / 2].to_vec()),
        (
            "something behind it",
            [honest.as_slice(), &[0xff; 64]].concat(),
        ),
        ("memory of 64 bits", of("(memory i64 1)")),
        ("shared memory", of("(memory 1 1 shared)")),
        (
            "atomics",
            of("(memory 1) (func (result i32) i32.const 0 i32.const 0 i32.atomic.rmw.add)"),
        ),
        ("structures", of("(type (struct (field i32)))")),
        ("exceptions", of("(tag) (func throw 0)")),
        ("tail calls into nothing", of("(func return_call 99999)")),
        (
            "relaxed vectors",
            of(
                "(func (param v128 v128) (result v128) local.get 0 local.get 1 \
                i8x16.relaxed_swizzle)",
            ),
        ),
        ("a page of one byte", of("(memory 1 (pagesize 1))")),
        ("a hundred memories", of(&many(100, "(memory 1)"))),
        (
            "ten thousand tables",
            of(&many(10_000, "(table 1 funcref)")),
        ),
        ("a table beyond the pool's", of("(table 1000000 funcref)")),
        ("a memory beyond the pool's", of("(memory 65536)")),
        (
            "three hundred thousand globals",
            of(&many(300_000, "(global i64 (i64.const 0))")),
        ),
        ("a million types", of(&many(1_000_001, "(type (func))"))),
        (
            "a function of too many locals",
            of(&format!("(func (local {}))", many(50_001, "i64 "))),
        ),
        (
            "code that is not sound",
            of("(func (result i32) i64.const 0)"),
        ),
    ];
    for (what, code) in cases {
        let error = runtime
            .load(code)
            .await
            .err()
            .unwrap_or_else(|| panic!("{what} was loaded"));
        assert!(
            !matches!(error, LoadError::Faulted { .. } | LoadError::Busy),
            "{what}: {error:?}"
        );
    }
    assert_eq!(runtime.stats().described, 1);
    runtime.load(honest).await.unwrap();
    assert_eq!(runtime.stats().memory_bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_of_ten_thousand_instances_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime_of(&folder, |_| ());
    let many = (0..10_000).fold(String::new(), |mut many, n| {
        write!(many, "(core instance $x{n} (instantiate $small))").unwrap();
        many
    });
    let tool = text_of(&with_module(""));
    let text = tool.replacen(
        "(core instance $i ",
        &format!("(core module $small (memory 1)) {many} (core instance $i "),
        1,
    );
    let error = runtime
        .load(wat::parse_str(text).unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, LoadError::Invalid(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_does_not_come_to_the_end_of_describe_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime_of(&folder, |_| ());
    for (fields, expected) in [
        ("(func $f (loop br 0)) (start $f)", "computes for too long"),
        ("(func $f (call $f)) (start $f)", "call stack exhausted"),
        ("(func $f unreachable) (start $f)", "trapped in `describe`"),
    ] {
        let began = Instant::now();
        let error = runtime
            .load(tool_of(&with_module(fields)))
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{fields}: {error}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
    assert_eq!(runtime.stats().memory_bytes, 0);
}

/// Code that takes ten seconds of a processor to compile: two hundred values that live across as
/// many branches as there can be.
fn bomb() -> Vec<u8> {
    const LOCALS: usize = 200;
    let step = |n: usize| {
        let one = 1 + n % LOCALS;
        let other = 1 + n * 7 % LOCALS;
        let multiplied = format!("local.get {one} local.get {other} i32.mul local.set {one} ");
        multiplied + &format!("local.get 0 if local.get {other} local.set {one} end ")
    };
    let steps: String = (0..5_000).map(step).collect();
    let function = format!(
        "(func (param i32) (local {}) {steps})",
        "i32 ".repeat(LOCALS)
    );
    tool_of(&with_module(&function.repeat(20)))
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_takes_long_to_compile_is_given_up_and_others_are_served_meanwhile() {
    let bomb = bomb();
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        cache_dir: folder.path().join("cache"),
        instances_max: 4,
        ..Config::default()
    };
    let program = agent_host_tests::process::program();
    let arguments = ["compile-component", "--cpu-s-max", "1"]
        .map(Into::into)
        .to_vec();
    let runtime =
        Runtime::with_compiler(config, runtime::Compiler::process(program, arguments)).unwrap();
    let honest = runtime.load(tool_of(&with_module(""))).await.unwrap();
    // It is called without a pause.
    let limits = GuestLimits {
        calls_per_minute_max: 1_000_000,
        ..narrow()
    };
    for _ in 0..repeats_of_slow() {
        let is_over = AtomicBool::new(false);
        let compiling = async {
            let given_up = runtime.load(bomb.clone()).await;
            is_over.store(true, Ordering::Relaxed);
            given_up
        };
        let calls = async {
            let mut served = 0;
            while !is_over.load(Ordering::Relaxed) {
                let called = call(&runtime, &honest, limits, "{}").await;
                assert!(matches!(called.outcome, Outcome::Returned(_)), "{called:?}");
                served += 1;
            }
            served
        };
        let (given_up, served) = tokio::join!(compiling, calls);
        let error = given_up.unwrap_err();
        assert!(
            matches!(error, LoadError::CompilerEnded { .. })
                && error.to_string().contains("(signal: "),
            "{error:?}"
        );
        // A second of a processor is enough for thousands; the first ones may have been before the
        // compiler was there.
        assert!(served > 20, "{served} calls");
    }
    let stats = runtime.stats();
    assert_eq!(
        (stats.in_flight, stats.waiting, stats.memory_bytes),
        (0, 0, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_imports_what_is_not_there_is_not_loaded() {
    let runtime = runtime();
    for import in [
        "wasi:sockets/tcp@0.3.0",
        "wasi:threads/spawn@0.1.0",
        "agent-host:plugin/turn@9.9.9",
        "acme:secrets/read@1.0.0",
        "env",
        "a-b:c/d",
    ] {
        let code =
            wat::parse_str(format!(r#"(component (import "{import}" (instance)))"#)).unwrap();
        let error = runtime.load(code).await.unwrap_err();
        assert!(
            matches!(&error, LoadError::UnknownImports { names } if names == &[import]),
            "{import}: {error:?}"
        );
    }
}

/// Two runtimes of their own ask the same component, which tries to say something else each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_description_is_the_same_whenever_it_is_asked_for() {
    let mut described = Vec::new();
    for _ in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let component = runtime_of(&folder, |config| config.describe.cpu_ms_max = 5_000)
            .load(wasm("hostile"))
            .await
            .unwrap();
        let Described::Tools(tools) = component.describes() else {
            panic!("{component:?}")
        };
        described.push(tools.clone());
    }
    assert_eq!(described[0], described[1]);
    assert!(
        described[0][1].description.ends_with(" 0 0"),
        "its clock stands still: {}",
        described[0][1].description
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_takes_the_name_of_another_is_not_taken_in() {
    let runtime = runtime();
    let hostile = runtime.load(wasm("hostile")).await.unwrap();
    let entry = |name: &str| broker::Entry {
        name: name.to_owned(),
        component: hostile.clone(),
        grant: domain::grant::Grant::default(),
        is_pinned: false,
    };
    let error =
        broker::Catalogue::new(Vec::new(), vec![entry("first"), entry("second")]).unwrap_err();
    assert!(error.to_string().contains("attack"), "{error}");
    // Names of the host's own tools; those that begin with `system_` would pass every allow list.
    let text = text_of(&with_module(""));
    for (data, name) in [
        (r#""delegate{}""#, "delegate"),
        (r#""system_a{}""#, "system_a"),
    ] {
        let shadow = text.replacen(r#""attack\00\00{}""#, data, 1).replacen(
            r"\c0\01\00\00\06",
            r"\c0\01\00\00\08",
            1,
        );
        let shadow = runtime.load(wat::parse_str(shadow).unwrap()).await.unwrap();
        let entry = broker::Entry {
            name: "shadow".to_owned(),
            component: shadow,
            grant: domain::grant::Grant::default(),
            is_pinned: false,
        };
        let error = broker::Catalogue::new(Vec::new(), vec![entry]).unwrap_err();
        assert!(
            error.to_string().contains(&format!(
                "`{name}`, a name that only tools of the host itself have"
            )),
            "{error}"
        );
    }
}
