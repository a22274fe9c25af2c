//! A8: what a careless or malicious operator writes: refused with its place and reason, or as
//! little as it says.

use super::super::exhaustion::config;
use super::super::secrets::leaks;
use super::siege::{Siege, repeats_of_slow};
use agent_host_tests::guests::wasm;
use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, tells};
use agent_host_tests::{Setup, World};
use domain::event::{BoundaryDecision, BoundaryVerdict};
use domain::ruling::Rule;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tokio::process::Command;

/// Returns the message of a start about a changed configuration, which the check refuses too.
async fn refused(what: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut config = config();
    change(&mut config);
    let folder = Folder::new(config);
    let mut said = String::new();
    for _ in 0..repeats_of_slow() {
        let checked = folder.run(&["config", "check"]).await;
        assert!(
            !checked.status.success(),
            "{what} passes the check: {checked:?}"
        );
        said = not_started(what, &folder).await;
    }
    said
}

async fn not_started(what: &str, folder: &Folder) -> String {
    let ended = folder.start(None).await.expect_err(what);
    assert!(
        !ended.said.contains("panicked at"),
        "{what}: {}",
        ended.said
    );
    assert!(
        matches!(ended.status.code(), Some(1 | 2)),
        "{what}: {ended:?}"
    );
    ended.said
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_that_cannot_be_meant_are_refused_with_their_place() {
    let network = |grant: Value| {
        move |config: &mut Value| config["components"]["effects"]["network"] = json!([grant])
    };
    for (what, grant) in [
        ("any host, said once", json!({ "host": "*" })),
        (
            "a whole top-level domain, said once",
            json!({ "host": "*.com" }),
        ),
        ("a star inside", json!({ "host": "exa*mple.com" })),
        ("a URL as a host", json!({ "host": "https://example.com/" })),
        ("a host with a user", json!({ "host": "me@example.com" })),
        ("an address in another form", json!({ "host": "0x7f.1" })),
        (
            "no methods",
            json!({ "host": "example.com", "methods": [] }),
        ),
        ("no ports", json!({ "host": "example.com", "ports": [] })),
        (
            "another scheme",
            json!({ "host": "example.com", "schemes": ["file"] }),
        ),
        (
            "a path that climbs",
            json!({ "host": "example.com", "path": "/a/../b" }),
        ),
        (
            "too many redirects",
            json!({ "host": "example.com", "redirects": 6 }),
        ),
        (
            "all of the private addresses",
            json!({ "host": "example.com", "privateAddresses": ["0.0.0.0/0"] }),
        ),
        (
            "a key with a typing error",
            json!({ "host": "example.com", "metods": ["GET"] }),
        ),
    ] {
        let said = refused(what, network(grant)).await;
        assert!(said.contains("network"), "{what}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_hold_the_host_itself_or_lead_elsewhere_are_refused() {
    let directory = |path: &str, at: &str, access: &str| {
        let directory = json!({ "path": path, "at": at, "access": access });
        move |config: &mut Value| {
            config["components"]["effects"]["directories"] = json!([directory])
        }
    };
    for (what, path, at) in [
        ("the whole disk", "/", "/data"),
        ("the folder of the data", "data", "/data"),
        ("the folder around all of it", ".", "/data"),
        ("a folder that is not there", "nowhere", "/data"),
        ("a place that climbs", "files", "/data/../etc"),
        ("a place with a slash too many", "files", "/data/"),
        ("a place that is no path", "files", "data"),
        ("a place of dots", "files", "/./data"),
    ] {
        let said = refused(what, directory(path, at, "read-write")).await;
        assert!(said.contains("directories[0]"), "{what}: {said}");
    }
}

/// A folder that one component is granted.
#[derive(Debug, Clone, Copy)]
struct Mount {
    path: &'static str,
    access: &'static str,
}

impl Mount {
    fn read(path: &'static str) -> Self {
        let access = "read-only";
        Self { path, access }
    }

    fn write(path: &'static str) -> Self {
        let access = "read-write";
        Self { path, access }
    }

    fn grant(self) -> Value {
        json!({ "path": self.path, "at": "/data", "access": self.access })
    }
}

/// Two components, each with one folder.
fn pair(one: Mount, other: Mount) -> Value {
    let mut config = config();
    let program = config["components"]["effects"]["path"]
        .as_str()
        .unwrap()
        .replace("effects.wasm", "burglar.wasm");
    config["components"]["other"] = json!({ "path": program });
    config["components"]["effects"]["directories"] = json!([one.grant()]);
    config["components"]["other"]["directories"] = json!([other.grant()]);
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_below_one_that_a_component_writes_are_refused_for_all() {
    for (one, other, refused) in [
        (
            Mount::write("files"),
            Mount::read("files/in"),
            Some("components.other.directories[0].path"),
        ),
        (
            Mount::write("files"),
            Mount::write("files/in"),
            Some("components.other.directories[0].path"),
        ),
        (
            Mount::read("files/in"),
            Mount::write("files"),
            Some("components.effects.directories[0].path"),
        ),
        (
            Mount::write("files/in"),
            Mount::write("files"),
            Some("components.effects.directories[0].path"),
        ),
        (
            Mount::write("files"),
            Mount::read("to-in"),
            Some("components.other.directories[0].path"),
        ),
        (Mount::read("files"), Mount::write("files/in"), None),
        (Mount::read("files"), Mount::read("files/in"), None),
        (Mount::write("files"), Mount::write("files"), None),
        (Mount::write("files"), Mount::read("to-files"), None),
    ] {
        let folder = Folder::new(pair(one, other));
        std::fs::create_dir(folder.path().join("files/in")).unwrap();
        for (link, target) in [("to-in", "files/in"), ("to-files", "files")] {
            std::os::unix::fs::symlink(target, folder.path().join(link)).unwrap();
        }
        let checked = folder.run(&["config", "check"]).await;
        let said = String::from_utf8_lossy(&checked.stdout).into_owned()
            + &String::from_utf8_lossy(&checked.stderr);
        assert_eq!(
            checked.status.success(),
            refused.is_none(),
            "{one:?} {other:?}: {said}"
        );
        assert!(
            refused.is_none_or(|key| said.contains(key) && said.contains("is reached through")),
            "{one:?} {other:?}: {said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_swapped_for_a_link_is_refused_at_the_next_start() {
    let folder = Folder::new(pair(Mount::write("files"), Mount::read("other")));
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    folder.serve().await.stop().await;
    std::fs::create_dir(folder.path().join("files/in")).unwrap();
    std::os::unix::fs::symlink("../data", folder.path().join("files/out")).unwrap();
    for (target, reported) in [
        ("files/in", "is reached through"),
        ("files/out", "data of the host"),
        ("data", "data of the host"),
    ] {
        let _ = std::fs::remove_dir(&other);
        let _ = std::fs::remove_file(&other);
        std::os::unix::fs::symlink(target, &other).unwrap();
        let said = not_started(target, &folder).await;
        assert!(said.contains(reported), "{target}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn components_without_a_pin_are_refused_where_pins_are_required() {
    let said = refused("no pins", |config| config["requirePins"] = json!(true)).await;
    tells(
        &said,
        &["components.effects.sha256", "components.puppet.sha256"],
    );
    let mut config = config();
    config["requirePins"] = json!(true);
    for name in ["effects", "puppet"] {
        config["components"][name]["sha256"] = json!(domain::digest::Digest::of(&wasm(name)).hex());
    }
    let folder = Folder::new(config.clone());
    folder.succeeds(&["config", "check"]).await;
    // An agent of a built-in component brings that in, and its pin is wanted too.
    config["agents"][0]["component"] = json!("worker");
    folder.configure(config);
    let said = not_started("a built-in component", &folder).await;
    tells(&said, &["components.worker.sha256"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_nobody_knows_and_limits_out_of_range_are_refused() {
    for (what, change, named) in [
        (
            "a list with a typing error",
            json!({ "toolAlowlist": ["*"] }),
            "toolAlowlist",
        ),
        (
            "another list with one",
            json!({ "tool_deny_list": ["*"] }),
            "tool_deny_list",
        ),
        (
            "a list that is none",
            json!({ "toolDenylist": "*" }),
            "toolDenylist",
        ),
        (
            "limits that nobody knows",
            json!({ "limits": { "stepMax": 1 } }),
            "stepMax",
        ),
    ] {
        let said = refused(what, |config| {
            config["agents"][0]
                .as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone())
        })
        .await;
        assert!(said.contains(named), "{what}: {said}");
    }
    for (limit, value) in [
        ("memoryBytesMax", json!(0)),
        ("cpuMsMax", json!(-1)),
        ("wallMsMax", json!(1e30)),
        ("logBytesMax", json!("all")),
        ("cpuMs", json!(1)),
    ] {
        let said = refused(limit, |config| {
            config["components"]["effects"]["limits"] = json!({ limit: value })
        })
        .await;
        assert!(said.contains(limit), "{limit}: {said}");
    }
}

/// An agent whose lists allow and deny the same, and another whose lists are empty.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_is_nothing_and_a_deny_wins_over_what_is_allowed() {
    let mut setup = Setup::default();
    let lists = json!({
        "toolAllowlist": ["*"], "toolDenylist": ["write_*"], "agentAllowlist": ["*"],
        "agentDenylist": ["*ther"],
    });
    setup.definitions[0]
        .as_object_mut()
        .unwrap()
        .extend(lists.as_object().unwrap().clone());
    let lists = json!({ "toolAllowlist": [], "agentAllowlist": [] });
    setup.definitions[1]
        .as_object_mut()
        .unwrap()
        .extend(lists.as_object().unwrap().clone());
    let siege = Siege::alone(World::new(setup).await);
    let write =
        json!({ "key": "t", "tool": "write_file", "args": { "path": "a.txt", "content": "x" } });
    for (who, start, rule) in [
        ("puppet", write, Rule::ToolDenylist),
        (
            "puppet",
            json!({ "key": "t", "agent": "other", "text": "x" }),
            Rule::AgentDenylist,
        ),
        (
            "other",
            json!({ "key": "t", "tool": "list_files", "args": { "path": "/data" } }),
            Rule::ToolAllowlist,
        ),
        (
            "other",
            json!({ "key": "t", "agent": "puppet", "text": "x" }),
            Rule::AgentAllowlist,
        ),
    ] {
        for _ in 0..repeats_of_slow() {
            let (reported, decided) = played(&siege, who, &start).await;
            assert_eq!(reported, "t denied", "{who}: {start}");
            let rules: Vec<(BoundaryVerdict, Rule)> = decided
                .iter()
                .map(|decision| (decision.verdict, decision.rule))
                .collect();
            assert_eq!(rules, [(BoundaryVerdict::Refused, rule)], "{who}: {start}");
        }
    }
    assert!(!siege.world.dir.path().join("files/a.txt").exists());
}

/// Returns the agent's reply about one operation, and the decisions on it.
async fn played(siege: &Siege, who: &str, start: &Value) -> (String, Vec<BoundaryDecision>) {
    let session = siege.world.open(who).await;
    siege
        .world
        .say(
            who,
            session,
            &json!({ "steps": [{ "start": [start] }] }).to_string(),
        )
        .await;
    siege.world.idle(session).await;
    let decided = siege
        .ledger(session)
        .await
        .into_iter()
        .flat_map(|entry| entry.decisions);
    (siege.world.last_reply(session).await, decided.collect())
}

/// A secret that stands in the configuration or in a file for everybody is refused and not shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_the_configuration_or_in_a_file_for_everybody_is_refused_unshown() {
    let inline = "SK-CANARY-INLINE";
    for (what, secret) in [
        ("a value", json!(inline)),
        ("a value with a name", json!({ "value": inline })),
        ("two sources", json!({ "env": "HOME", "file": inline })),
        ("a value for a name", json!({ "env": inline })),
    ] {
        let said = refused(what, |config| {
            config["secrets"] = json!({ "github": secret })
        })
        .await;
        assert!(
            said.contains("secrets") && !said.contains(inline),
            "{what}: {said}"
        );
    }
    let said = refused("a key of a provider", |config| {
        config["providers"]["scripted"]["apiKey"] = json!(inline)
    })
    .await;
    assert!(said.contains("apiKey") && !said.contains(inline), "{said}");
    for mode in [0o644, 0o640, 0o604, 0o660, 0o666, 0o600] {
        let mut config = config();
        config["secrets"] = json!({ "github": { "file": "key" } });
        let folder = Folder::new(config);
        let key = folder.path().join("key");
        std::fs::write(&key, inline).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let checked = folder.run(&["config", "check", "--json"]).await;
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&checked.stdout),
            String::from_utf8_lossy(&checked.stderr)
        );
        assert_eq!(checked.status.success(), mode == 0o600, "{mode:o}: {said}");
        assert!(!leaks(said.as_bytes()), "{mode:o}: {said}");
        if mode != 0o600 {
            let started = not_started("a file for everybody", &folder).await;
            assert!(
                [said, started]
                    .iter()
                    .all(|said| said.contains("chmod 600 ") && !leaks(said.as_bytes())),
                "{mode:o}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_comes_from_a_file_and_from_nowhere_else() {
    for path in [
        "https://example.com/tool.wasm",
        "oci://example.com/tool:latest",
        "nowhere.wasm",
        "script.toml",
        ".",
        "/dev/zero",
        "/proc/self/mem",
        "../../../etc/passwd",
    ] {
        let mut config = config();
        config["components"]["effects"]["path"] = json!(path);
        let said = not_started(path, &Folder::new(config)).await;
        assert!(said.contains("components.effects"), "{path}: {said}");
    }
}

/// Returns the files below a folder that others than their owner may read, write or run.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // One that goes while it is looked at is nobody's.
        let Ok(found) = path.symlink_metadata() else {
            continue;
        };
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            open.push(format!("{} {mode:o}", path.display()));
        }
        if found.is_dir() {
            open.extend(open_to_others(&path));
        }
    }
    open
}

#[tokio::test(flavor = "multi_thread")]
async fn no_host_starts_on_a_data_folder_that_everybody_may_write() {
    let folder = Folder::new(config());
    let data = folder.data();
    std::fs::create_dir_all(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o777)).unwrap();
    let ended = folder.start(None).await.unwrap_err();
    assert_eq!(ended.status.code(), Some(2), "{}", ended.said);
    assert!(ended.said.contains("chmod 700"), "{}", ended.said);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_of_the_data_folder_is_its_owners_alone_whatever_the_umask() {
    let folder = Folder::new(config());
    folder.warm(&["puppet", "effects"]).await;
    let serve = folder.program(&["serve"]);
    let serve = serve.as_std();
    let mut host = Command::new("sh");
    host.args(["-c", "umask 000; exec \"$0\" \"$@\""])
        .arg(serve.get_program())
        .args(serve.get_args())
        .current_dir(folder.path())
        .kill_on_drop(true);
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => host.env(name, value),
            None => host.env_remove(name),
        };
    }
    let mut host = host.spawn().unwrap();
    let data = folder.data();
    // The clock is the last that is written.
    for name in ["proof", "token", "address", "clock"] {
        until(async || data.join(name).exists()).await;
    }
    assert!(folder.run(&["backup", "kept"]).await.status.success());
    assert_eq!(open_to_others(&data), [""; 0]);
    host.kill().await.unwrap();
}
