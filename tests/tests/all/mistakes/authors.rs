//! The first mistakes of authors: files that are no plugin of this host.

use super::{err, folder, run};
use agent_host_tests::guests::wasm;

/// The name of the interface that a component of tools exports, and that of a later version.
const TOOLS: [&[u8]; 2] = [
    b"agent-host:plugin/tools@0.2.0",
    b"agent-host:plugin/tools@0.3.0",
];

/// Returns a program's code with one text in place of another of the same length.
pub(super) fn patched(program: &str, text: &[u8], by: &[u8]) -> Vec<u8> {
    assert_eq!(text.len(), by.len());
    let mut code = wasm(program);
    let found: Vec<usize> = code
        .windows(text.len())
        .enumerate()
        .filter_map(|(at, window)| (window == text).then_some(at))
        .collect();
    assert!(!found.is_empty(), "the text is there");
    for at in found {
        code[at..at + by.len()].copy_from_slice(by);
    }
    code
}

/// Every first mistake of an author is told with what it is instead and with the fix.
#[tokio::test(flavor = "multi_thread")]
async fn every_first_mistake_of_an_author_is_told_with_its_fix() {
    let folder = folder().await;
    let wat = |text: &str| wat::parse_str(text).unwrap();
    let program = r#"(component
        (component $c) (instance $i (instantiate $c))
        (export "wasi:cli/run@0.2.3" (instance $i)))"#;
    let filter = r#"(component
        (component $c) (instance $i (instantiate $c))
        (export "agent-host:plugin/filter@0.3.0" (instance $i)))"#;
    let twofold = r#"(component
        (component $c) (instance $i (instantiate $c))
        (export "agent-host:plugin/tools@0.2.0" (instance $i))
        (export "agent-host:plugin/trigger@0.2.0" (instance $i)))"#;
    for (code, what, fix) in [
        (
            wat("(module)"),
            "a core module",
            "build it with `cargo build --target wasm32-wasip2`",
        ),
        (
            b"\x7fELF\x02\x01\x01".to_vec(),
            "machine code",
            "build it with `cargo build --target wasm32-wasip2`",
        ),
        (
            wat(program),
            "it is a program that is run, and no plugin",
            "the world `agent-plugin`, `tool-plugin`, `trigger-plugin` or `connector-plugin`",
        ),
        (
            wat(filter),
            "the kind `filter` of version 0.3.0",
            "this host has 0.1.0 and 0.2.0; this host runs agents, tools, triggers and connectors",
        ),
        (
            wat(twofold),
            "`agent-host:plugin/tools@0.2.0` and `agent-host:plugin/trigger@0.2.0`",
            "make a component of each",
        ),
        (
            patched("echo", TOOLS[0], TOOLS[1]),
            "built for version 0.3.0 of `agent-host:plugin`",
            "this host has 0.1.0 and 0.2.0: build it against the WIT files of this host",
        ),
        (
            wasm("unknown-import"),
            "what this host does not have: acme:teleport/beam@1.0.0",
            "build it against the WIT files of this host",
        ),
        (
            patched("matrix", b"net.http", b"net.htpp"),
            "`matrix.capabilities` has `net.htpp`, which is no capability",
            "the nearest is `net.http`",
        ),
        (
            patched("effects", b"files.read", b"filed.read"),
            "has `filed.read`, which is no capability",
            "the nearest is `files.read`",
        ),
        (
            wasm("trap-in-describe"),
            "trapped in `describe`",
            "which gets no capability at all",
        ),
        (
            wasm("echo")[..1_000].to_vec(),
            "cut short",
            "build it again",
        ),
    ] {
        std::fs::write(folder.path().join("mine.wasm"), code).unwrap();
        let reported = run(
            &folder,
            &["component", "inspect", "mine.wasm"],
            super::SOUND,
        )
        .await;
        let text = err(&reported);
        assert!(
            reported.status.code() == Some(1) && text.contains(what) && text.contains(fix),
            "{what}\n{fix}\n{text}"
        );
    }
}

/// A file that was inspected once is not compiled again, whether there is a configuration or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_inspected_again_comes_from_the_cache() {
    let folder = folder().await;
    let file = folder.path().join("mine.wasm");
    std::fs::write(&file, wasm("echo")).unwrap();
    let entries = || {
        let cache = std::fs::read_dir(folder.path().join("data/component-cache")).unwrap();
        let named = |name: &str| name.starts_with(&domain::digest::Digest::of(&wasm("echo")).hex());
        cache
            .flatten()
            .filter(|entry| named(&entry.file_name().to_string_lossy()))
            .map(|entry| (entry.path(), entry.metadata().unwrap().modified().unwrap()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let inspect = ["component", "inspect", "mine.wasm"];
    let first = run(&folder, &inspect, super::SOUND).await;
    assert!(first.status.success(), "{}", err(&first));
    let kept = entries();
    assert!(!kept.is_empty());
    let second = run(&folder, &inspect, super::SOUND).await;
    assert_eq!((first.stdout, entries()), (second.stdout, kept));
}
