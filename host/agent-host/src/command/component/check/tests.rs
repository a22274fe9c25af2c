//! Lines of the check, for people and for programs.

use super::{
    Admissions, Pin, Place, document, imports, is_missing, missing, never_open, of_tools,
    report_lines,
};
use crate::config::ComponentConfig;
use domain::authority::{CapabilityStatus, Reviewed};
use domain::digest::Digest;
use domain::event::ComponentAdmitted;
use domain::time::Timestamp;
use serde_json::json;

const PIN: &str = "pin it with sha256 = \"feed\"";

/// Returns the lines about the pinning of the component `c`.
fn pin_lines(code: &str, is_pinned: bool, admissions: &Admissions) -> Vec<String> {
    Pin::among("c", code, is_pinned, admissions).lines("feed", true, "the next start")
}

fn assert_reported(lines: &[String], reported: &[&str]) {
    let mut both = lines.iter().zip(reported);
    assert!(
        lines.len() == reported.len() && both.all(|(line, reported)| line.contains(reported)),
        "{reported:?} in {lines:?}"
    );
}

#[test]
fn a_component_that_is_not_what_is_served_is_told_with_the_line_that_pins_it() {
    let served = json!({ "components": [{ "name": "other", "digest": "sha256:00" }, { "name": "c", "digest": "sha256:01" }] });
    let served = Admissions::of_running(&served);
    let other = "the running host gives this grant to sha256:01";
    for (code, is_pinned, reported) in [
        ("sha256:01", true, vec![]),
        ("sha256:01", false, vec![PIN]),
        ("sha256:02", true, vec![other]),
        ("sha256:02", false, vec![other, PIN]),
    ] {
        assert_reported(&pin_lines(code, is_pinned, &served), &reported);
    }
    let unknown = Admissions::default();
    assert_reported(&pin_lines("sha256:02", true, &unknown), &[]);
    let lines =
        Pin::among("c", "sha256:02", false, &unknown).lines("feed", false, "`config apply`");
    assert!(lines[0].ends_with(r#""sha256": "feed""#), "{lines:?}");
}

#[test]
fn code_that_was_replaced_is_told_before_the_start_and_after_it_until_pinned() {
    let digest = |code: &str| Digest::of(code.as_bytes());
    let [old, new] = ["old", "new"].map(|code| digest(code).reference());
    let admitted = |code: &str, replaces: Option<&str>| ComponentAdmitted {
        component: "c".to_owned(),
        code: digest(code),
        version: None,
        grant: digest("grant"),
        described: digest("described"),
        replaces: replaces.map(digest),
        time: Timestamp(0),
    };
    let stopped = |code, replaces| Admissions::of_stopped(&[admitted(code, replaces)]);
    let before = stopped("old", None);
    let reported = format!("the last start gave this grant to {old}");
    assert_reported(&pin_lines(&new, false, &before), &[reported.as_str(), PIN]);
    assert_reported(&pin_lines(&new, true, &before), &[reported.as_str()]);
    assert_reported(&pin_lines(&old, false, &before), &[PIN]);

    let running = json!({ "components": [{ "name": "c", "digest": new.as_str(), "replaces": old.as_str() }] });
    let reported = format!("this grant was given to {old} before");
    for after in [
        stopped("new", Some("old")),
        Admissions::of_running(&running),
    ] {
        assert_reported(&pin_lines(&new, false, &after), &[reported.as_str(), PIN]);
        assert_reported(&pin_lines(&new, true, &after), &[]);
        let pin = Pin::among("c", &new, false, &after);
        assert_eq!(pin.replaces(), Some(old.as_str()));
    }
    let same = stopped("new", Some("new"));
    assert_reported(&pin_lines(&new, false, &same), &[PIN]);
}

fn reviewed(capability: &str, status: CapabilityStatus) -> Reviewed {
    Reviewed {
        capability: capability.to_owned(),
        status,
        tools: vec!["t".to_owned()],
    }
}

#[test]
fn what_is_refused_is_told_with_one_line_for_each_key_and_the_same_for_programs() {
    let statuses = ["lists.read", "lists.write", "net.http"]
        .map(|capability| reviewed(capability, CapabilityStatus::Refused));
    let lines = missing(&statuses).lines(&ComponentConfig::default());
    let imports = imports(
        &[
            "wasi:sockets/tcp@0.2.6".to_owned(),
            "wasi:keyvalue/store".to_owned(),
            "wasi:io/poll".to_owned(),
        ],
        &|_| true,
    );
    assert_eq!(
        report_lines(&Place::in_toml("c"), &statuses, &lines, &imports),
        [
            "  refused  lists.read       asked by t",
            "  refused  lists.write      asked by t",
            "  refused  net.http         asked by t",
            "  import   wasi:sockets/tcp@0.2.6: no grant opens it",
            "  import   wasi:keyvalue/store: open to tools that declare <bucket>.*",
            "  add to components.c:",
            "    keyValue = [{ bucket = \"lists\", scope = \"user\", access = \"read-write\" }]",
            "    network = [{ host = \"example.com\" }]  # choose the hosts",
        ]
    );
    let document = document("c", "sha256:00", &statuses, &lines, &imports, true);
    let line = |index: usize| document["capabilities"][index]["line"].clone();
    assert!(
        line(0) == line(1)
            && line(0)
                == "keyValue = [{ bucket = \"lists\", scope = \"user\", access = \
                    \"read-write\" }]"
    );
    assert_eq!(
        document["imports"][0],
        serde_json::json!({ "interface": "wasi:sockets/tcp@0.2.6", "opened_by": null })
    );
    assert_eq!(
        (
            &document["lines"][0]["change"],
            &document["lines"][1]["choose"]
        ),
        (&"add".into(), &"choose the hosts".into())
    );
}

#[test]
fn imports_that_only_tools_can_use_are_not_told_of_an_agent() {
    let all = ["wasi:filesystem/types@0.2.6", "wasi:sockets/tcp@0.2.6"].map(str::to_owned);
    let reported: Vec<String> = never_open(imports(&all, &|_| true))
        .into_iter()
        .map(|import| import.interface)
        .collect();
    assert_eq!(reported, ["wasi:sockets/tcp@0.2.6"]);
}

#[test]
fn an_agent_without_other_agents_is_told_so_and_gets_no_line_for_them() {
    let by_nature = |capability: &str| Reviewed {
        tools: Vec::new(),
        ..reviewed(capability, CapabilityStatus::Refused)
    };
    let statuses = ["models", "agents"].map(by_nature);
    let lines = missing(&statuses).lines(&ComponentConfig::default());
    let reported = report_lines(&Place::in_toml("c"), &statuses, &lines, &[]);
    let [models, agents, _, line] = reported.as_slice() else {
        panic!("{reported:?}")
    };
    assert!(models.starts_with("  refused  models"), "{models}");
    assert_eq!(
        agents,
        "  not granted: agents (needed only if it hands work to others)"
    );
    assert!(line.starts_with("    models = "), "{line}");
    let document = document("c", "sha256:00", &statuses, &lines, &[], true);
    assert_eq!(document["capabilities"][1]["line"], json!(null));
}

#[test]
fn a_secret_that_no_manifest_wants_is_needed_by_some_services_alone() {
    let statuses = || {
        ["secrets.use", "net.http"]
            .map(|capability| reviewed(capability, CapabilityStatus::Refused))
            .to_vec()
    };
    for (wants_secret, refused) in [(true, 2), (false, 1)] {
        let statuses = of_tools(statuses(), wants_secret);
        assert_eq!(statuses.iter().filter(|it| is_missing(it)).count(), refused);
    }
    let reported = report_lines(&Place::in_toml("c"), &of_tools(statuses(), false), &[], &[]);
    assert_eq!(
        reported.first().map(String::as_str),
        Some("  not granted: secrets.use (needed only if a service that it asks takes a secret)")
    );
    let granted = vec![reviewed("secrets.use", CapabilityStatus::Granted)];
    assert_eq!(of_tools(granted.clone(), false), granted);
}
