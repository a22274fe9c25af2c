//! What an external agent's definition may say, and what its posts and answers become.

use super::*;
use crate::access::egress::{Scheme, permit};
use crate::values::id::OperationId;
use serde_json::json;

fn settings(url: &str) -> ExternalSettings {
    serde_json::from_value(json!({ "inputUrl": url, "secret": "peer" })).unwrap()
}

#[test]
fn an_outbound_message_has_five_seconds_and_is_tried_once_unless_more_is_asked_for() {
    let plain = settings("https://peer.example/in");
    assert_eq!((plain.timeout_ms, plain.retries), (5_000, 0));
    assert_eq!(plain.pause_ms(1, None), None);
    assert_eq!(plain.grant().unwrap().total_ms_max, 5_000);
}

#[test]
fn pauses_between_tries_double_or_are_as_asked_up_to_an_hour_and_end() {
    let patient = ExternalSettings {
        retries: 20,
        retry_base_ms: 1_000,
        ..settings("https://peer.example/in")
    };
    for (tries, pause) in [
        (0, None),
        (1, Some(1_000)),
        (2, Some(2_000)),
        (20, Some(RETRY_MS_MAX)),
        (21, None),
        (u32::MAX, None),
    ] {
        assert_eq!(patient.pause_ms(tries, None), pause, "{tries}");
    }
    for (asked_ms, pause) in [
        (0, 2_000),
        (1_999, 2_000),
        (7_000, 7_000),
        (u64::MAX, RETRY_MS_MAX),
    ] {
        assert_eq!(patient.pause_ms(2, Some(asked_ms)), Some(pause));
    }
    assert_eq!(patient.pause_ms(21, Some(7_000)), None);
}

#[test]
fn the_grant_of_outbound_messages_has_one_url_and_nothing_beside_it() {
    let grants = [settings("https://peer.example:8443/in/box")
        .grant()
        .unwrap()];
    for (url, method, allowed) in [
        ("https://peer.example:8443/in/box", Method::Post, true),
        ("https://peer.example:8443/in/box", Method::Get, false),
        ("https://peer.example:8443/in", Method::Post, false),
        ("https://peer.example:8443/in/box/x", Method::Post, false),
        ("https://peer.example/in/box", Method::Post, false),
        ("http://peer.example:8443/in/box", Method::Post, false),
        ("https://other.example:8443/in/box", Method::Post, false),
    ] {
        let target = Target::parse(url).unwrap();
        assert_eq!(
            permit(&target, method, &grants).is_ok(),
            allowed,
            "{method:?} {url}"
        );
    }
    let [grant] = &grants;
    assert_eq!(
        (grant.redirects, grant.schemes.as_slice()),
        (0, [Scheme::Https].as_slice())
    );
}

#[test]
fn urls_that_cannot_be_meant_are_refused_with_the_reason() {
    for (url, why) in [
        ("peer.example", UnfitUrl::NotAUrl),
        ("ftp://peer.example/", UnfitUrl::NotAUrl),
        ("https://me:secret@peer.example/", UnfitUrl::UserInfo),
        ("https://peer.example/*", UnfitUrl::Path),
    ] {
        assert_eq!(settings(url).grant().map(drop), Err(why), "{url}");
    }
    let with_base = |base: &str| ExternalSettings {
        callback_base: Some(base.to_owned()),
        ..settings("https://peer.example/in")
    };
    assert_eq!(with_base("https://h.example/a/").check_callback(), Ok(()));
    assert_eq!(
        with_base("https://h.example/?x").check_callback(),
        Err(UnfitUrl::Tail)
    );
    assert_eq!(
        with_base("https://h.example/a/").callback_url("s-1", "m"),
        "https://h.example/a/external/sessions/s-1/messages?message=m"
    );
}

#[test]
fn names_of_sessions_are_bounded_as_the_design_bounds_them() {
    for (text, is_one) in [
        ("a", true),
        ("A_z-09", true),
        ("", false),
        ("a b", false),
        ("a/b", false),
        ("a.b", false),
        ("ä", false),
    ] {
        assert_eq!(text.parse::<ExternalName>().is_ok(), is_one, "{text}");
    }
    assert!("x".repeat(128).parse::<ExternalName>().is_ok());
    assert!("x".repeat(129).parse::<ExternalName>().is_err());
}

#[test]
fn a_name_always_means_the_same_session_and_a_uuid_means_itself() {
    let session = |text: &str| text.parse::<ExternalName>().unwrap().session();
    assert_eq!(session("one"), session("one"));
    assert_ne!(session("one"), session("two"));
    assert_ne!(session("one"), session("ONE"));
    let id = "00000000-0000-4000-8000-0000000000b1";
    assert_eq!(session(id).to_string(), id);
}

#[test]
fn what_is_signed_differs_with_way_time_session_message_and_body() {
    let text = |direction, time, session, message, body: &str| {
        signed_text(direction, time, session, message, body.as_bytes())
    };
    let one = text(SignedDirection::ToHost, 1, "s", "m", "b");
    assert_eq!(one, b"host.1.s.m.b");
    for other in [
        text(SignedDirection::ToAgent, 1, "s", "m", "b"),
        text(SignedDirection::ToHost, 2, "s", "m", "b"),
        text(SignedDirection::ToHost, 1, "t", "m", "b"),
        text(SignedDirection::ToHost, 1, "s", "n", "b"),
        text(SignedDirection::ToHost, 1, "s", "", "m.b"),
        text(SignedDirection::ToHost, 1, "s", "m", "c"),
    ] {
        assert_ne!(one, other);
    }
    // Names and ids have no dot, so that nothing else makes the same text.
    assert!("s.m".parse::<ExternalName>().is_err());
    assert!("m.b".parse::<OperationId>().is_err());
}

#[test]
fn a_signature_is_good_for_five_minutes_in_both_directions() {
    for (signed, now, fresh) in [
        (1_000, 1_000, true),
        (1_000, 1_300, true),
        (1_300, 1_000, true),
        (1_000, 1_301, false),
        (1_301, 1_000, false),
        (0, u64::MAX, false),
    ] {
        assert_eq!(is_fresh(signed, now), fresh, "{signed} {now}");
    }
}
