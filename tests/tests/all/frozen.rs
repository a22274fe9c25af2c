//! Components that were built against released versions of the interface: every later host serves
//! them as the first one did.
//!
//! Guests of languages that bring an interpreter along: they import all of WASI whether they use it
//! or not, and are made of dozens of core instances around one large table. Their toolchains are
//! not needed here: the program `reach`, which imports and calls all of WASI, is given the versions
//! and the shape of what they build.

use super::exhaustion::say;
use agent_host_tests::guests::wasm;
use agent_host_tests::process::{Folder, puppet, scripted, tells};
use agent_host_tests::world::{runtime, target};
use agent_host_tests::{Setup, World, guests};
use domain::grant::{Access, BucketGrant, BucketScope};
use futures::future::join_all;
use serde_json::{Value, json};
use std::fmt::Write;

/// The components that are kept with version 0.1.0.
const COMPONENTS: [&str; 4] = ["assistant", "effects", "puppet", "shelf"];

/// A world of nothing else.
async fn world(version: &str) -> World {
    let kept = |name: &'static str| {
        let file = guests::root()
            .join("wit/frozen")
            .join(version)
            .join("components")
            .join(format!("{name}.wasm"));
        (
            name,
            std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())),
        )
    };
    let definition = |id: &str, component: &str| {
        json!({
            "agentId": id, "displayName": id, "component": component,
        })
    };
    let setup = Setup {
        components: Vec::new(),
        made: COMPONENTS.map(kept).to_vec(),
        definitions: vec![
            definition("puppet", "puppet"),
            definition("other", "puppet"),
            definition("assistant", "assistant"),
        ],
        key_value: vec![BucketGrant {
            scope: BucketScope::Component,
            ..BucketGrant::new("notes", Access::ReadWrite)
        }],
        ..Setup::default()
    };
    World::new(setup).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_0_1_0_does_all_that_an_agent_can_do() {
    let world = world("0.1.0").await;
    let session = world.open_as("puppet", Some("lesson")).await;
    let steps = json!([
        { "until": "all", "start": [
            {
                "key": "agent", "agent": "other",
                "text": r#"{"steps":[{"reply":"from the other"}]}"#,
            },
            { "key": "hidden", "model": "be brief", "hidden": true },
            { "key": "model", "model": "be brief" },
            { "key": "nobody", "tool": "no_such_tool" },
            { "key": "recall", "recall": "zebra" },
            { "key": "timer", "timer": 20 },
            { "key": "tool", "tool": "look" },
        ], "effects": [
            { "say": "working on it" }, { "prefer": { "tone": "dry" } },
            { "prefer_for_user": { "level": 2 } }, { "state": { "n": 1 } },
            { "remember": "the zebra is striped" }, { "emit": "noted" }, { "schedule": 3_600_000 },
        ] },
        { "start": [
            { "key": "long", "timer": 3_600_000 }, { "key": "question", "client": "confirmation" },
        ] },
        { "cancel": ["long"], "effects": [
            { "item": { "prompt": "well?", "response": true, "asked": "question" } },
        ] },
        { "reply": "first" },
    ]);
    world.play_in(session, &steps).await;
    let (call, action) = world.question("puppet", session).await;
    assert_eq!(action.widget, "confirmation");
    world.confirm("puppet", call).await;
    // What it left for later waits still.
    world
        .until(session, |row| {
            row.open_run.is_none()
                && row.waiting == 1
                && row.last_snippet.as_deref() == Some("first")
        })
        .await;
    assert_eq!(world.last_reply(session).await, "first");
    let agent = world
        .broker
        .agents()
        .get(&domain::user::UserId::local(), &target("puppet"))
        .await
        .unwrap()
        .row
        .agent;
    assert_eq!(agent.preferences["tone"], "dry");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_0_1_0_is_told_what_it_was_told_then() {
    let world = world("0.1.0").await;
    let mut reported = world
        .play(json!([{ "until": "all", "start": [
            {
                "key": "agent", "agent": "other",
                "text": r#"{"steps":[{"reply":"from the other"}]}"#,
            },
            { "key": "fails", "agent": "other", "text": r#"{"steps":[{"fail":"no"}]}"# },
            { "key": "hidden", "model": "be brief", "hidden": true },
            { "key": "model", "model": "be brief" },
            { "key": "nobody", "tool": "no_such_tool" },
            { "key": "patient", "tool": "patient" },
            { "key": "recall", "recall": "zebra" },
            { "key": "timer", "timer": 20 },
        ] }]))
        .await;
    reported.sort_unstable();
    // Which tools there are is what may become more.
    let reported: Vec<&str> = reported
        .iter()
        .map(|line| {
            line.split_once("; available are")
                .map_or(line.as_str(), |(line, _)| line)
        })
        .collect();
    assert_eq!(
        reported,
        [
            "agent parts from the other",
            "fails failed agent-failed: no",
            "hidden parts hello from the model",
            "model message hello from the model",
            "nobody failed TOOL_NOT_AVAILABLE: there is no tool `no_such_tool`",
            "patient parts waited",
            r#"recall value {"hits":[]}"#,
            "timer elapsed",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_0_1_0_keeps_what_it_is_told_to_keep() {
    let world = world("0.1.0").await;
    let call = |tool: &str, args: Value| {
        json!([{
            "start": [{ "key": "t", "tool": tool, "args": args }],
        }])
    };
    let reported = world
        .play(call(
            "keep",
            json!({ "do": [["set", "a", "1"], ["get", "a"]] }),
        ))
        .await;
    assert_eq!(reported, ["t parts ok | 1"]);
    let reported = world
        .play(call("peek", json!({ "do": [["get", "a"]] })))
        .await;
    assert_eq!(reported, ["t parts 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_calls_a_tool_of_0_1_0_through_an_agent_of_0_1_0() {
    let world = world("0.1.0").await;
    let session = world.open("assistant").await;
    assert_eq!(
        world.turn("assistant", session, "call:put").await,
        "It says: put done"
    );
    let effects = world.effects();
    assert!(
        effects.len() == 2
            && effects[0].starts_with("put begin ")
            && effects[1].starts_with("put end "),
        "{effects:?}"
    );
}

/// All of WASI 0.2.
const WASI: [&str; 29] = [
    "cli/environment",
    "cli/exit",
    "cli/stderr",
    "cli/stdin",
    "cli/stdout",
    "cli/terminal-input",
    "cli/terminal-output",
    "cli/terminal-stderr",
    "cli/terminal-stdin",
    "cli/terminal-stdout",
    "clocks/monotonic-clock",
    "clocks/wall-clock",
    "filesystem/preopens",
    "filesystem/types",
    "http/outgoing-handler",
    "http/types",
    "io/error",
    "io/poll",
    "io/streams",
    "random/insecure",
    "random/insecure-seed",
    "random/random",
    "sockets/instance-network",
    "sockets/ip-name-lookup",
    "sockets/network",
    "sockets/tcp",
    "sockets/tcp-create-socket",
    "sockets/udp",
    "sockets/udp-create-socket",
];
/// Elements of the table. Python has 5,672 and JavaScript 7,690; the host leaves room for this
/// many.
const TABLE_ELEMENTS: usize = 30_000;
/// Functions that the end of the table holds: as many as in JavaScript's.
const FUNCTIONS: usize = 7_690;
/// Pages of memory, as many as Python begins with.
const PAGES: usize = 199;
/// Core instances beside the program's own. Python has 14 and the program 4.
const INSTANCES: usize = 32;

/// The same component with other versions of WASI in the names of its imports: the digit of each
/// is higher by `shift`, and 0 follows 9. So an interface that is imported at two versions, by the
/// standard library and by bindings, keeps two.
fn with_shifted_versions(component: &[u8], shift: u8) -> Vec<u8> {
    const NAME: &[u8] = b"@0.2.";
    let mut changed = component.to_vec();
    for at in 0..component.len() - NAME.len() {
        let (name, after) = component[at..].split_at(NAME.len());
        // The name's length stands before it, so a digit takes the place of a digit.
        let is_version = name == NAME && after[0].is_ascii_digit();
        if is_version && !after[1..].starts_with(b"-draft") && !is_own(&component[..at]) {
            changed[at + NAME.len()] = b'0' + (after[0] - b'0' + shift) % 10;
        }
    }
    changed
}

/// Returns whether this ends with the name of one of the host's own interfaces.
fn is_own(before: &[u8]) -> bool {
    const PACKAGE: &[u8] = b"agent-host:plugin/";
    let is_name = |byte: &u8| byte.is_ascii_lowercase() || b":/-".contains(byte);
    let length = before.iter().rev().take_while(|byte| is_name(byte)).count();
    before[before.len() - length..]
        .windows(PACKAGE.len())
        .any(|window| window == PACKAGE)
}

/// The same component with the core modules and instances of an interpreter and its libraries,
/// linked with each other. One brings memory and table, one fills the table, and all share both.
fn of_interpreter(component: &[u8]) -> Vec<u8> {
    let modules = count(component, CORE_MODULE, |_| 1);
    let instances = count(component, CORE_INSTANCES, |vector| leb(vector).0);
    let shared = format!(
        r#"(import "env" "memory" (memory {PAGES}))
           (import "env" "table" (table {TABLE_ELEMENTS} funcref))"#
    );
    let mut library = format!("(module {shared} (type $f (func (result i32)))");
    for number in 0..FUNCTIONS {
        write!(library, "(func $f{number} (result i32) i32.const {number})").unwrap();
    }
    write!(
        library,
        "(elem (i32.const {}) func",
        TABLE_ELEMENTS - FUNCTIONS
    )
    .unwrap();
    for number in 0..FUNCTIONS {
        write!(library, " $f{number}").unwrap();
    }
    // It looks by itself whether the last element is there, and the last byte of memory.
    let element = TABLE_ELEMENTS - 1;
    let expected = FUNCTIONS - 1;
    let byte = PAGES * (64 << 10) - 1;
    write!(
        library,
        ") (func $start i32.const {element} call_indirect (type $f) i32.const {expected} i32.ne
           i32.const {byte} i32.load8_u i32.or if unreachable end) (start $start))"
    )
    .unwrap();
    let small = format!("(module {shared} (global (mut i32) (i32.const 1)) (table 8 funcref))");
    let env = format!(
        r#"(module (memory (export "memory") {PAGES})
           (table (export "table") {TABLE_ELEMENTS} funcref))"#
    );

    let mut shaped = component.to_vec();
    for text in [env, library, small] {
        section(&mut shaped, CORE_MODULE, &wat::parse_str(text).unwrap());
    }
    let mut list = encoded(INSTANCES);
    for number in 0..INSTANCES {
        list.push(0);
        list.extend(encoded(modules + number.min(2)));
        match number {
            0 => list.push(0),
            _ => {
                list.extend([1, 3]);
                list.extend(b"env");
                list.push(0x12);
                list.extend(encoded(instances));
            }
        }
    }
    section(&mut shaped, CORE_INSTANCES, &list);
    shaped
}

/// A section of a component that is a core module.
const CORE_MODULE: u8 = 1;
/// A section of a component that lists core instances.
const CORE_INSTANCES: u8 = 2;
/// The bytes before a component's first section.
const PREAMBLE_BYTES: usize = 8;

fn section(component: &mut Vec<u8>, kind: u8, content: &[u8]) {
    component.push(kind);
    component.extend(encoded(content.len()));
    component.extend(content);
}

/// Returns the sum over all sections of a kind.
fn count(component: &[u8], kind: u8, of_section: impl Fn(&[u8]) -> usize) -> usize {
    let mut rest = &component[PREAMBLE_BYTES..];
    let mut counted = 0;
    while let [found, after @ ..] = rest {
        let (length, digits) = leb(after);
        let (content, next) = after[digits..].split_at(length);
        if *found == kind {
            counted += of_section(content);
        }
        rest = next;
    }
    counted
}

/// A number as WebAssembly writes it, and its length.
fn leb(bytes: &[u8]) -> (usize, usize) {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    (
        bytes[..length]
            .iter()
            .rev()
            .fold(0, |number, byte| number << 7 | usize::from(byte & 0x7f)),
        length,
    )
}

fn encoded(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let digit = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(digit);
            return bytes;
        }
        bytes.push(digit | 0x80);
    }
}

/// Calls tools at the same time on a host with its default limits; what each of them said.
async fn called(component: &[u8], tools: &[&str]) -> Vec<String> {
    let interpreter = json!({ "path": "interpreter.wasm" });
    let config = scripted(&json!([puppet()]), &[("interpreter", interpreter)]);
    let folder = Folder::new(config);
    std::fs::write(folder.path().join("interpreter.wasm"), component).unwrap();
    folder.warm(&["puppet"]).await;
    let host = folder.serve().await;
    let loaded = host.get("/api/components").await.body.to_string();
    for interface in WASI {
        assert!(
            loaded.contains(&format!("wasi:{interface}@0.2.")),
            "{interface}: {loaded}"
        );
    }
    let said = join_all(tools.iter().map(async |tool| {
        let session = host.open("puppet").await;
        let call = json!({ "steps": [{ "start": [{ "key": "t", "tool": tool, "args": {} }] }] });
        say(&host, &session, &call.to_string()).await;
        let seen = host.rest(&session).await;
        seen["messages"][1]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }))
    .await;
    assert!(host.stop().await.success(), "{}", folder.log());
    said
}

/// A guest with an interpreter in it loads, is called, and is refused what nobody granted.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_with_an_interpreter_in_it_is_called_and_refused_what_nobody_granted() {
    let interpreter = of_interpreter(&with_shifted_versions(&wasm("reach"), 3));
    let said = called(
        &interpreter,
        &["sense", "reach", "leave", "sense", "reach", "sense"],
    )
    .await;
    for number in [0, 3, 5] {
        assert_eq!(said[number], "t parts [true, true, true, true, true] false");
    }
    for number in [1, 4] {
        let answers: Vec<&str> = said[number].split(" | ").collect();
        let [bucket, stream, datagrams, address, home, folder, request] =
            answers.try_into().unwrap();
        assert_eq!(bucket, "t parts Some(Error::AccessDenied)");
        assert!(
            [stream, datagrams]
                .iter()
                .all(|answer| answer.contains("access-denied")),
            "{stream} {datagrams}"
        );
        tells(&address, &["permanent-resolver-failure"]);
        assert_eq!(
            (home, folder, request),
            ("0", "true", "ErrorCode::HttpRequestDenied")
        );
    }
    assert_eq!(
        said[2],
        "t failed trapped: the tool crashed: the guest ended itself with exit code 1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_may_import_any_version_of_wasi_0_2() {
    let runtime = runtime();
    for shift in 0..10 {
        let component = runtime
            .load(with_shifted_versions(&wasm("reach"), shift))
            .await
            .unwrap_or_else(|error| panic!("versions higher by {shift}: {error:?}"));
        let imports = component.imports();
        for interface in WASI {
            let import = format!("wasi:{interface}@0.2.");
            assert!(
                imports.iter().any(|it| it.starts_with(&import)),
                "{import}: {imports:?}"
            );
        }
    }
}
