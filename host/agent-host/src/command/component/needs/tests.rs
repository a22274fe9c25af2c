//! Tests of the least grant.

use super::Needs;
use crate::command::component::lines::tests::{parsed, pasted};
use crate::config::ComponentConfig;
use domain::egress::{Hop, Method, Scheme, Traffic};
use domain::event::{BoundaryDecision, BoundaryVerdict};
use domain::ruling::Rule;
use serde_json::json;

fn decision(capability: &str, verdict: BoundaryVerdict) -> BoundaryDecision {
    BoundaryDecision {
        capability: capability.to_owned(),
        verdict,
        rule: Rule::Granted,
        times: 1,
        detail: String::new(),
    }
}

fn hop(method: Method, scheme: Scheme, port: u16, path: &str) -> Hop {
    Hop {
        method,
        scheme: Some(scheme),
        host: Some("example.com".to_owned()),
        port: Some(port),
        path: Some(path.to_owned()),
        status: None,
        verdict: "done".to_owned(),
        bytes_in: 0,
        bytes_out: 0,
        ms: 0,
        times: 1,
    }
}

#[test]
fn the_least_grant_has_what_was_done_and_what_was_refused_and_no_more() {
    let mut needs = Needs::default();
    let first = [
        decision("files.read", BoundaryVerdict::Granted),
        decision("lists.read", BoundaryVerdict::Refused),
        decision("tools.call", BoundaryVerdict::Limited),
    ];
    let hops = vec![
        hop(Method::Get, Scheme::Https, 443, "/a"),
        hop(Method::Post, Scheme::Http, 8080, "/b"),
    ];
    assert!(needs.take(&first, &Traffic { hops }));
    assert!(!needs.take(
        &[decision("lists.read", BoundaryVerdict::Granted)],
        &Traffic::default()
    ));
    assert!(needs.take(
        &[decision("lists.write", BoundaryVerdict::Granted)],
        &Traffic::default()
    ));
    let lines = needs.lines(&ComponentConfig::default());
    assert_eq!(
        lines.iter().map(|line| line.text(true)).collect::<Vec<_>>(),
        [
            r#"directories = [{ path = "workspace/{user}", at = "/workspace", access = "read-only" }]  # choose the folder; `{user}` keeps users apart"#,
            r#"network = [{ host = "example.com", schemes = ["http"], ports = [8080], methods = ["POST"], path = "/b" }, { host = "example.com", path = "/a" }]"#,
            r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-write" }]"#,
        ]
    );
    pasted(&[], &lines);
}

#[test]
fn what_is_granted_already_keeps_its_place_its_scope_and_its_limits() {
    let keys = [
        r#"directories = [{ path = "notes", at = "/n", access = "read-write", filesMax = 9 }]"#,
        r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-write" }, { bucket = "b", access = "read-only" }]"#,
        r#"network = [{ host = "*.com", schemes = ["http"], ports = [8080], redirects = 2, anyHost = true }]"#,
    ];
    let mut needs = Needs::default();
    let hops = vec![hop(Method::Get, Scheme::Http, 8080, "/b")];
    needs.take(
        &[
            decision("files.read", BoundaryVerdict::Granted),
            decision("lists.read", BoundaryVerdict::Granted),
        ],
        &Traffic { hops },
    );
    let expected = [
        r#"directories = [{ path = "notes", at = "/n", access = "read-only", filesMax = 9 }]"#,
        r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-only" }]"#,
        r#"network = [{ host = "example.com", schemes = ["http"], ports = [8080], path = "/b", redirects = 2 }]"#,
    ];
    assert_eq!(
        pasted(&keys, &needs.lines(&parsed(&keys.join("\n")))),
        parsed(&expected.join("\n"))
    );
}

#[test]
fn what_users_share_and_calls_write_is_suggested_for_each_user() {
    let keys = [
        r#"directories = [{ path = "notes", at = "/n", access = "read-only", filesMax = 9 }]"#,
        r#"keyValue = [{ bucket = "lists", access = "read-only" }]"#,
    ];
    let mut needs = Needs::default();
    let decisions = [
        decision("files.write", BoundaryVerdict::Refused),
        decision("lists.write", BoundaryVerdict::Refused),
    ];
    needs.take(&decisions, &Traffic::default());
    let expected = [
        r#"directories = [{ path = "notes/{user}", at = "/n", access = "read-write", filesMax = 9 }]"#,
        r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-write" }]"#,
    ];
    let lines = needs.lines(&parsed(&keys.join("\n")));
    assert_eq!(pasted(&keys, &lines), parsed(&expected.join("\n")));
}

fn refused(needs: &Needs, granted: &str) -> Vec<String> {
    let entries = needs.refused_entries(&parsed(granted));
    entries.iter().map(|entry| entry.text(true)).collect()
}

#[test]
fn requests_to_an_address_that_is_not_public_name_it() {
    let to = |host: &str, verdict: &str| Hop {
        host: Some(host.to_owned()),
        verdict: verdict.to_owned(),
        ..hop(Method::Get, Scheme::Http, 80, "/")
    };
    for (hop, expected) in [
        (
            to("10.1.2.3", "not-granted"),
            r#"{ host = "10.1.2.3", schemes = ["http"], path = "/", privateAddresses = ["10.1.2.3"] }"#,
        ),
        (
            to("localhost", "address-barred"),
            r#"{ host = "localhost", schemes = ["http"], path = "/", privateAddresses = ["127.0.0.1", "::1"] }"#,
        ),
        (
            to("intra.example", "address-barred"),
            r#"{ host = "intra.example", schemes = ["http"], path = "/" }  # name the addresses that are not public in privateAddresses"#,
        ),
        (
            to("1.1.1.1", "not-granted"),
            r#"{ host = "1.1.1.1", schemes = ["http"], path = "/" }"#,
        ),
    ] {
        let mut needs = Needs::default();
        let hops = vec![hop];
        needs.take(&[], &Traffic { hops });
        assert!(needs.lines(&ComponentConfig::default()).is_empty());
        assert_eq!(refused(&needs, ""), [format!("network: {expected}")]);
    }
}

/// One origin, of which one path was read: neither the other paths nor another method are granted.
#[test]
fn requests_that_were_only_ever_refused_are_in_no_line_by_path_and_method() {
    let refused_hop = |method, path: &str| Hop {
        verdict: "not-granted".to_owned(),
        ..hop(method, Scheme::Https, 443, path)
    };
    let mut needs = Needs::default();
    let hops = vec![
        refused_hop(Method::Get, "/notice.txt"),
        hop(Method::Get, Scheme::Https, 443, "/notice.txt"),
        refused_hop(Method::Post, "/notice.txt"),
        refused_hop(Method::Get, "/"),
    ];
    needs.take(&[], &Traffic { hops });
    let none = ComponentConfig::default();
    let lines = needs.lines(&none);
    assert_eq!(
        lines.iter().map(|line| line.text(true)).collect::<Vec<_>>(),
        [r#"network = [{ host = "example.com", path = "/notice.txt" }]"#]
    );
    assert_eq!(
        refused(&needs, ""),
        [
            r#"network: { host = "example.com", path = "/" }"#,
            r#"network: { host = "example.com", methods = ["POST"], path = "/notice.txt" }"#,
        ]
    );
    assert_eq!(
        needs.only_refused(&none),
        [
            "GET https://example.com:443/",
            "POST https://example.com:443/notice.txt"
        ]
    );
    // Calls that are repeated reach no network, and what is granted now is no more than was meant.
    let granted = r#"network = [{ host = "example.com", methods = ["GET", "POST"] }]"#;
    assert!(refused(&needs, granted).is_empty());
    assert_eq!(needs.lines(&parsed(granted)).len(), 1);
}

#[test]
fn the_only_folder_is_moved_to_the_place_at_which_all_calls_look_for_one() {
    let keys = [r#"directories = [{ path = "log", at = "/workspace", access = "read-write" }]"#];
    let suggested = |paths: &[&str]| {
        let mut needs = Needs::with_folders_at(["/workspace".to_owned()]);
        for path in paths {
            let opened = BoundaryDecision {
                detail: (*path).to_owned(),
                ..decision("files.read", BoundaryVerdict::Granted)
            };
            needs.take(&[opened], &Traffic::default());
        }
        pasted(&keys, &needs.lines(&parsed(keys[0]))).directories
    };
    let moved = r#"directories = [{ path = "log", at = "/data", access = "read-only" }]"#;
    assert_eq!(suggested(&["/data/log"]), parsed(moved).directories);
    // What is used stays, and what is missing is added.
    assert_eq!(suggested(&["/data/log", "/workspace/a"]).len(), 2);
    assert_eq!(suggested(&["/data/log", "/more/log"]).len(), 3);
}

/// It may have failed for another reason than a folder.
#[test]
fn a_call_that_opened_nothing_in_its_folders_is_a_note_and_no_need() {
    let mut needs = Needs::with_folders_at(["/workspace".to_owned()]);
    let opened_nothing = BoundaryDecision {
        detail: "nothing was opened in /workspace; a path elsewhere is in no granted folder".into(),
        ..decision("files.read", BoundaryVerdict::Granted)
    };
    needs.take(&[opened_nothing], &Traffic::default());
    assert!(needs.lines(&ComponentConfig::default()).is_empty());
    assert!(needs.only_refused(&ComponentConfig::default()).is_empty());
    assert_eq!(needs.notes().len(), 1, "{:?}", needs.notes());
}

#[test]
fn a_placeholder_needs_a_secret_and_the_request_that_it_goes_into() {
    let detail = "a placeholder stands in the header `authorization`, where no such secret is bound for \
         `api.github.com`";
    let needing = |verdict, detail: &str| {
        let mut needs = Needs::default();
        needs.take(
            &[BoundaryDecision {
                detail: detail.to_owned(),
                ..decision("secrets.use", verdict)
            }],
            &Traffic::default(),
        );
        needs
    };
    let used = needing(
        BoundaryVerdict::Granted,
        "key -> api.github.com header authorization",
    );
    let config = pasted(&[], &used.lines(&ComponentConfig::default()));
    assert_eq!(
        (
            config.secrets[0].host.as_str(),
            config.network[0].host.to_string().as_str()
        ),
        ("api.github.com", "api.github.com")
    );
    assert!(
        config.secrets[0].check(&config.network).is_ok(),
        "{config:?}"
    );
    assert!(config.directories.is_empty());
    assert!(refused(&used, "").is_empty());

    // Where a model put one, and no secret went, is in no line.
    let only_refused = needing(BoundaryVerdict::Refused, detail);
    assert!(only_refused.lines(&ComponentConfig::default()).is_empty());
    let reported = refused(&only_refused, "");
    assert!(
        reported.len() == 2
            && reported[0]
                .starts_with(r#"network: { host = "api.github.com" }  # add the methods"#)
            && reported[1].contains(r#"slot = { header = "authorization" }"#),
        "{reported:?}"
    );
    // The network line is whole, so that the host starts with it.
    let local = needing(
        BoundaryVerdict::Granted,
        "key -> 127.0.0.1:18901 header authorization",
    );
    let keys = r#"network = [{ host = "127.0.0.1", schemes = ["http"], ports = [18901], privateAddresses = ["127.0.0.1"] }]"#;
    let lines = local.lines(&ComponentConfig::default());
    assert!(
        lines[0].text(true).starts_with(keys),
        "{}",
        lines[0].text(true)
    );
    // What is granted at that port is not asked for again.
    let granted = format!(
        "{keys}\nsecrets = [{{ secret = \"key\", host = \"127.0.0.1\", port = 18901, slot = {{ \
         header = \"authorization\" }} }}]"
    );
    let granted = parsed(&granted);
    assert_eq!(
        local.secrets(&granted).unwrap().value,
        json!(granted.secrets)
    );
    let elsewhere = needing(BoundaryVerdict::Refused, "a placeholder stands in the path");
    assert_eq!(refused(&elsewhere, "").len(), 1);
    for (written, expected) in [
        ("a.com", ("a.com", None)),
        ("a.com:8443", ("a.com", Some(8443))),
        ("[::1]:80", ("[::1]", Some(80))),
    ] {
        assert_eq!(super::at_port(written), expected);
    }
    let keys = [
        r#"secrets = [{ secret = "mine", host = "api.github.com", slot = { header = "Authorization" }, prefix = "Bearer " }]"#,
    ];
    let kept = pasted(&keys, &only_refused.lines(&parsed(keys[0])));
    assert_eq!(kept.secrets, parsed(keys[0]).secrets);
}

#[test]
fn who_needs_nothing_is_granted_nothing() {
    assert!(
        Needs::default()
            .lines(&ComponentConfig::default())
            .is_empty()
    );
}

/// Many paths under one grant become the pattern that is granted, and without one they become all
/// paths.
#[test]
fn many_paths_of_one_host_are_put_together() {
    for (granted, expected) in [
        (
            r#"network = [{ host = "example.com", path = "/v1/*" }]"#,
            r#"network = [{ host = "example.com", path = "/v1/*" }]"#,
        ),
        ("", r#"network = [{ host = "example.com" }]"#),
    ] {
        let mut needs = Needs::default();
        let hops = (0..9).map(|n| hop(Method::Get, Scheme::Https, 443, &format!("/v1/{n}")));
        needs.take(
            &[],
            &Traffic {
                hops: hops.collect(),
            },
        );
        let lines = needs.lines(&parsed(granted));
        assert_eq!(lines[0].text(true), expected);
    }
}
