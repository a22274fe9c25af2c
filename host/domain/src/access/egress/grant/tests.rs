//! Tests of a grant's defaults for missing keys, and of what is refused before it is used.

use super::*;
use serde_json::{Value, json};

fn grant(value: Value) -> EgressGrant {
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_is_not_written_is_the_least() {
    let grant = grant(json!({"host": "example.com"}));
    assert_eq!(
        grant,
        EgressGrant::of(HostPattern::parse("example.com").unwrap())
    );
    assert_eq!(
        (grant.schemes.as_slice(), grant.methods.as_slice()),
        (&[Scheme::Https][..], &[Method::Get, Method::Head][..])
    );
    assert_eq!(
        (
            grant.redirects(),
            grant.any_host,
            grant.private_addresses.len()
        ),
        (0, false, 0)
    );
    assert!(
        grant.has_port(443, Scheme::Https)
            && grant.has_port(80, Scheme::Http)
            && !grant.has_port(80, Scheme::Https)
    );
    assert_eq!(grant.check(), Ok(()));
}

#[test]
fn a_grant_reads_as_it_was_written() {
    let written = json!({
        "host": "*.example.com", "anyHost": false, "schemes": ["https", "http"], "ports": [8443], "methods": ["GET", "POST"], "path": "/v1/**",
        "redirects": 5, "privateAddresses": ["10.0.0.0/8", "::1"], "requestBytesMax": 1, "responseBytesMax": 2, "totalMsMax": 3,
    });
    let grant = grant(written.clone());
    assert_eq!(grant.check(), Ok(()));
    assert_eq!(serde_json::to_value(&grant).unwrap(), written);
}

#[test]
fn what_cannot_be_meant_is_refused_with_the_key() {
    for (value, expected) in [
        (
            json!({"host": "*"}),
            "`host = \"*\"` reaches hosts that nobody named: name them; if all are meant, set \
             `anyHost = true` beside it",
        ),
        (
            json!({"host": "*.com"}),
            "`host = \"*.com\"` reaches hosts that nobody named: name them; if all are meant, set \
             `anyHost = true` beside it",
        ),
        (
            json!({"host": "a.com", "anyHost": true}),
            "`anyHost` stands beside `host = \"a.com\"`, which is not any host: take one of them away",
        ),
        (
            json!({"host": "a.com", "methods": []}),
            "`methods` is empty, so this grants nothing: name something or take the grant away",
        ),
        (
            json!({"host": "a.com", "ports": []}),
            "`ports` is empty, so this grants nothing: name something or take the grant away",
        ),
        (
            json!({"host": "a.com", "schemes": ["https", "https"]}),
            "`schemes` names something twice",
        ),
        (
            json!({"host": "a.com", "ports": [0]}),
            "`ports` is 0; it goes from 1 to 65535",
        ),
        (
            json!({"host": "a.com", "redirects": 6}),
            "`redirects` is 6; it goes from 0 to 5",
        ),
        (
            json!({"host": "a.com", "responseBytesMax": 268_435_457}),
            "`responseBytesMax` is 268435457; it goes from 1 to 268435456",
        ),
        (
            json!({"host": "a.com", "totalMsMax": 0}),
            "`totalMsMax` is 0; it goes from 1 to 600000",
        ),
    ] {
        assert_eq!(
            grant(value.clone()).check().unwrap_err().to_string(),
            expected,
            "{value}"
        );
    }
    assert_eq!(grant(json!({"host": "*", "anyHost": true})).check(), Ok(()));
}

#[test]
fn what_does_not_read_is_no_grant() {
    for value in [
        json!({}),
        json!({"host": "a.com", "hosts": ["b.com"]}),
        json!({"host": "https://a.com"}),
        json!({"host": "a.com", "schemes": ["file"]}),
        json!({"host": "a.com", "methods": ["CONNECT"]}),
        json!({"host": "a.com", "methods": ["get"]}),
        json!({"host": "a.com", "ports": [70_000]}),
        json!({"host": "a.com", "path": "v1"}),
        json!({"host": "a.com", "privateAddresses": ["0.0.0.0/0"]}),
        json!({"host": "a.com", "privateAddresses": ["8.8.8.8"]}),
    ] {
        assert!(
            serde_json::from_value::<EgressGrant>(value.clone()).is_err(),
            "{value}"
        );
    }
}

#[test]
fn a_grant_that_nobody_checked_gives_no_more_than_the_ceilings() {
    let mut grant = EgressGrant::of(HostPattern::parse("a.com").unwrap());
    (
        grant.request_bytes_max,
        grant.response_bytes_max,
        grant.total_ms_max,
        grant.redirects,
    ) = (u64::MAX, u64::MAX, u64::MAX, u8::MAX);
    let limits = grant.limits();
    assert_eq!(limits.request_bytes_max, ceiling::REQUEST_BYTES_MAX);
    assert_eq!(limits.response_bytes_max, ceiling::RESPONSE_BYTES_MAX);
    assert_eq!(limits.total_ms_max, ceiling::TOTAL_MS_MAX);
    assert_eq!(grant.redirects(), ceiling::REDIRECTS_MAX);
}

#[test]
fn the_schema_knows_every_key_and_no_other() {
    let schema = serde_json::to_value(schemars::schema_for!(EgressGrant)).unwrap();
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["required"], json!(["host"]));
    assert_eq!(schema["properties"].as_object().unwrap().len(), 11);
}
