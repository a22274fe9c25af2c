//! A5: a guest that is bound to a secret, and servers that help it, try to get the value to where
//! it can be read.

use super::super::secrets::{CANARY, Echo, PLACEHOLDER, leaks, port_of, slots};
use super::siege::Case;
use agent_host_tests::guests::wasm;
use domain::egress::{EgressGrant, HostPattern};
use domain::event::BoundaryVerdict;
use domain::grant::{Grant, capability};
use domain::ruling::Rule;
use serde_json::{Value, json};

/// The guest's message about every refusal.
const REFUSED: &str = "parts ErrorCode::HttpRequestDenied";

/// An attack by a guest with a secret. The secret belongs into the header `authorization` and the
/// parameter `key` of requests to one host.
fn case(attack: &'static str, reported: &str, network: Vec<EgressGrant>, arguments: Value) -> Case {
    let secrets = slots(port_of(&network));
    let grant = Grant {
        network,
        secrets,
        ..Grant::default()
    };
    Case::of(attack, reported)
        .of_program(wasm("reach"), "send_request", grant)
        .with(arguments)
}

fn used(case: Case, verdict: BoundaryVerdict, rule: Rule, detail: &'static str) -> Case {
    case.line(capability::SECRETS_USE, verdict, rule, detail)
}

/// The ledger's words for the use of the secret in the header of a request to a server.
fn in_header(server: &Echo) -> &'static str {
    let port = port_of(&[server.grant()]);
    format!("github -> 127.0.0.1:{port} header authorization").leak()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_slot_that_it_is_not_bound_to_goes_nowhere() {
    let server = Echo::new();
    let elsewhere = EgressGrant {
        host: HostPattern::parse("localhost").unwrap(),
        ..server.grant()
    };
    let localhost = server.url("/").replace("127.0.0.1", "localhost");
    let plain = json!([]);
    for (url, headers, place) in [
        (
            localhost.clone(),
            json!([["authorization", PLACEHOLDER]]),
            "the header `authorization`",
        ),
        (
            format!("{localhost}?key={PLACEHOLDER}"),
            plain.clone(),
            "the parameter `key`",
        ),
        (
            server.url("/"),
            json!([["x-mine", PLACEHOLDER]]),
            "the header `x-mine`",
        ),
        (
            server.url("/"),
            json!([["authorization", "{{secret.unbound}}"]]),
            "the slot `authorization`",
        ),
        (
            server.url("/%7B%7Bsecret.github%7D%7D"),
            plain.clone(),
            "the path",
        ),
        (
            server.url("/?q=%7B%7Bsecret.github%7D%7D"),
            plain,
            "the parameter `q`",
        ),
    ] {
        let network = vec![server.grant(), elsewhere.clone()];
        let case = case(
            "a wrong slot",
            REFUSED,
            network,
            json!({ "url": url, "headers": headers }),
        );
        used(case, BoundaryVerdict::Refused, Rule::NotGranted, place)
            .prove()
            .await;
    }
    assert_eq!(server.heard(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sends_a_secret_back_is_heard_without_it() {
    let server = Echo::new();
    for (path, end, reported) in [
        ("/raw", "well", "parts 200 "),
        ("/drip", "well", "parts 200 "),
        ("/base64/1", "well", "parts 200 "),
        ("/unauthorized", "fail", "failed tool-failed: 401 "),
        ("/json", "trap", "failed trapped: "),
    ] {
        let arguments = json!({
            "url": server.url(path), "headers": [["Authorization", PLACEHOLDER]], "end": end,
        });
        let case = case("an echo", reported, vec![server.grant()], arguments);
        let attacks = used(
            case,
            BoundaryVerdict::Granted,
            Rule::Granted,
            in_header(&server),
        )
        .prove()
        .await;
        let heard = server.heard();
        assert_eq!(
            heard
                .iter()
                .filter(|request| request.contains(CANARY))
                .count(),
            attacks,
            "{path}: the secret went where it belongs"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_takes_no_secret_along() {
    let thief = Echo::new();
    let server = Echo::leading(thief.url("/raw"));
    for (path, reported) in [("/away", "parts 200 "), ("/carry", REFUSED)] {
        let arguments =
            json!({ "url": server.url(path), "headers": [["authorization", PLACEHOLDER]] });
        let case = case(
            "a redirect",
            reported,
            vec![server.grant(), thief.grant()],
            arguments,
        );
        let attacks = used(
            case,
            BoundaryVerdict::Granted,
            Rule::Granted,
            in_header(&server),
        )
        .prove()
        .await;
        let heard = thief.heard();
        let received = server.heard().len();
        assert_eq!(
            (heard.len(), received),
            (if path == "/away" { attacks } else { 0 }, attacks),
            "{path}"
        );
        assert!(
            heard
                .iter()
                .all(|request| !request.contains("authorization") && !leaks(request.as_bytes())),
            "{path}"
        );
    }
}
