//! The manifests that components carry: what their authors say and would like, read without running
//! anything, shown to the operator, in the ledger, and never in the way of a host.

use agent_host_tests::guests::{root, wasm};
use agent_host_tests::process::{PATIENCE, program};
use agent_host_tests::world::runtime;
use agent_host_tests::{Setup, World};
use domain::event::Event;
use domain::manifest::{BadManifest, MANIFEST_BYTES_MAX, SECTION};
use serde_json::{Value, json};
use std::process::{Output, Stdio};
use tempfile::TempDir;
use tokio::process::Command;

/// A number as WebAssembly writes it.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A component with a manifest behind it, as a tool for any language adds one.
fn carrying(name: &str, manifest: &[u8]) -> Vec<u8> {
    let named = [leb(SECTION.len()), SECTION.as_bytes().to_vec()].concat();
    let size = leb(named.len() + manifest.len());
    [wasm(name), vec![0], size, named, manifest.to_vec()].concat()
}

const SOUND: &str = r#"{"manifest":1,"version":"0.2.0","authors":["Ann"],"licence":"MIT",
"homepage":"https://example.com/","wants":{"folders":[
{"at":"/data","access":"read-write","reason":"keeps a log"}]}}"#;

/// Runs the program in a folder and returns what it printed.
async fn printed(dir: &TempDir, arguments: &[&str]) -> String {
    let output = ended(dir, arguments).await;
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program in a folder, which refuses, and returns what it printed.
async fn refused(dir: &TempDir, arguments: &[&str]) -> String {
    let output = ended(dir, arguments).await;
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program in a folder to its end.
async fn ended(dir: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .current_dir(dir.path())
        .env_remove("AGENT_HOST_CONFIG")
        .env(
            "AGENT_HOST_COMPONENTS",
            root().join("guests/target/wasm32-wasip2/release"),
        )
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    output.expect("an end in time").unwrap()
}

/// The macro of the SDK writes it, and it is still there after linking, stripping and wrapping.
#[tokio::test]
async fn components_made_with_the_sdk_carry_the_facts_of_their_package() {
    for name in ["text-stats", "haiku", "assistant", "lists", "files"] {
        let component = runtime().load(wasm(name)).await.unwrap();
        let manifest = component.manifest().unwrap().unwrap();
        assert_eq!(
            (manifest.version.as_str(), manifest.licence.as_str()),
            ("0.1.0", "Apache-2.0"),
            "{name}"
        );
        let wants = manifest.wants.buckets.len() + manifest.wants.folders.len();
        assert_eq!(
            wants,
            usize::from(matches!(name, "lists" | "files")),
            "{name}"
        );
    }
    let weather = runtime().load(wasm("weather")).await.unwrap();
    let wants = &weather.manifest().unwrap().unwrap().wants;
    assert_eq!(wants.hosts[0].host, "api.open-meteo.com");
    assert_eq!(wants.folders[0].at, "/diary");
}

#[tokio::test]
async fn a_manifest_is_shown_by_inspect_and_check_with_the_lines_that_grant_its_wants() {
    let dir = TempDir::new().unwrap();
    std::fs::write(
        dir.path().join("tool.wasm"),
        carrying("effects", SOUND.as_bytes()),
    )
    .unwrap();
    let line =
        "directories = [{ path = \"data/{user}\", at = \"/data\", access = \"read-write\" }]";
    let inspected = printed(&dir, &["component", "inspect", "tool.wasm"]).await;
    for part in [
        "  version  0.2.0",
        "  author   Ann",
        "  licence  MIT",
        "  homepage https://example.com/",
        "would like a folder at /data (read-write): keeps a log",
        "add to the configuration:",
        "[components.tool]",
        "path = \"/",
        "/tool.wasm\"",
        line,
    ] {
        assert!(inspected.contains(part), "no {part:?} in {inspected}");
    }
    let tested = printed(&dir, &["plugin", "test", "tool.wasm"]).await;
    assert!(
        tested.contains(line) && tested.contains("  version  0.2.0"),
        "{tested}"
    );
    let config = "[components.tool]\npath = \"tool.wasm\"\n";
    std::fs::write(dir.path().join("agent-host.toml"), config).unwrap();
    let check = ["component", "check", "tool", "--config", "agent-host.toml"];
    let checked = refused(&dir, &check).await;
    assert!(
        checked.contains(line) && checked.contains("keeps a log"),
        "{checked}"
    );
    let checked = refused(&dir, &[check.as_slice(), &["--json"]].concat()).await;
    let checked: Value = serde_json::from_str(&checked).unwrap();
    assert_eq!(checked["manifest"]["version"], "0.2.0");
    // Granted, it is not proposed again.
    std::fs::write(
        dir.path().join("agent-host.toml"),
        format!("{config}{line}\n"),
    )
    .unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    let granted = printed(&dir, &check).await;
    assert!(!granted.contains("components.tool:"), "{granted}");
}

/// What is wrong is said by every command, and the component is loaded all the same.
#[tokio::test]
async fn a_manifest_that_is_not_sound_is_a_finding_and_stops_nothing() {
    let hidden = SOUND.replace("keeps", "ke\u{202e}eps");
    let large = [SOUND.as_bytes(), &vec![b' '; MANIFEST_BYTES_MAX]].concat();
    let twice = carrying("effects", SOUND.as_bytes());
    let again = &carrying("effects", SOUND.as_bytes())[wasm("effects").len()..];
    let dir = TempDir::new().unwrap();
    for (code, fault) in [
        (
            carrying("effects", b"\x00garbage"),
            "it is not a manifest of layout 1",
        ),
        (carrying("effects", &large), "16384 at most"),
        (
            carrying("effects", hidden.as_bytes()),
            "has the hidden character U+202E",
        ),
        (carrying("effects", b"{\"manifest\":2}"), "the layout 2"),
        ([twice.as_slice(), again].concat(), "more than one"),
    ] {
        let component = runtime().load(code.clone()).await.unwrap();
        let bad: &BadManifest = component.manifest().unwrap().unwrap_err();
        assert!(bad.to_string().contains(fault), "{bad}");
        assert_eq!(component.version(), None);
        std::fs::write(dir.path().join("tool.wasm"), &code).unwrap();
        let inspected = printed(&dir, &["component", "inspect", "tool.wasm"]).await;
        assert!(inspected.contains("manifest not read: "), "{inspected}");
        let tested = printed(&dir, &["plugin", "test", "tool.wasm"]).await;
        assert!(
            tested.contains("warning  manifest: it is not read: ") && tested.contains(fault),
            "{tested}"
        );
        assert!(!tested.contains('\u{202e}'));
    }
}

/// The component was made with the SDK, whose manifest stands in a module inside.
#[tokio::test]
async fn a_manifest_is_stamped_into_a_component_in_place_of_what_it_carried() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("tool.wasm"), wasm("text-stats")).unwrap();
    let stamp = [
        "plugin",
        "stamp",
        "tool.wasm",
        "--manifest",
        "manifest.json",
    ];
    for version in ["0.2.0", "0.3.0"] {
        let manifest = SOUND.replace("0.2.0", version);
        std::fs::write(at("manifest.json"), manifest).unwrap();
        printed(&dir, &stamp).await;
        let inspected = printed(&dir, &["component", "inspect", "tool.wasm"]).await;
        let version = format!("  version  {version}");
        for part in [
            version.as_str(),
            "  author   Ann",
            "would like a folder at /data (read-write): keeps a log",
            "tool     text_stats",
        ] {
            assert!(inspected.contains(part), "no {part:?} in {inspected}");
        }
    }
    let stamped = std::fs::read(at("tool.wasm")).unwrap();
    printed(&dir, &[stamp.as_slice(), &["--out", "again.wasm"]].concat()).await;
    assert_eq!(std::fs::read(at("again.wasm")).unwrap(), stamped);

    for (file, manifest, reported) in [
        ("tool.wasm", r#"{"manifest":1,"version":3}"#, "`version`"),
        ("manifest.json", SOUND, "not a WebAssembly component"),
    ] {
        std::fs::write(at("manifest.json"), manifest).unwrap();
        let stamp = ["plugin", "stamp", file, "--manifest", "manifest.json"];
        let refused = ended(&dir, &stamp).await;
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(reported), "{said}");
    }
    assert_eq!(std::fs::read(at("tool.wasm")).unwrap(), stamped);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_has_the_version_of_a_component_beside_its_digest() {
    let world = World::new(Setup {
        components: vec!["puppet"],
        made: vec![("effects", carrying("effects", SOUND.as_bytes()))],
        definitions: vec![json!({
            "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
        })],
        ..Setup::default()
    })
    .await;
    let call = json!([{ "start": [{ "key": "t", "tool": "look", "args": {} }] }]);
    world.play(call).await;
    let events = world.recorded().await;
    let mut admitted = Vec::new();
    let mut decided = Vec::new();
    for recorded in events {
        let ledger = recorded.event.iter().flat_map(Event::ledger);
        decided.extend(ledger.map(|it| (it.component.clone(), it.version.clone())));
        if let Some(Event::ComponentAdmitted(it)) = recorded.event {
            admitted.push((it.component, it.version));
        }
    }
    let version = Some("0.2.0".to_owned());
    assert!(
        admitted.contains(&("effects".to_owned(), version.clone())),
        "{admitted:?}"
    );
    assert!(
        admitted.contains(&("puppet".to_owned(), None)),
        "{admitted:?}"
    );
    assert!(
        decided.contains(&(Some("effects".to_owned()), version)),
        "{decided:?}"
    );
}
