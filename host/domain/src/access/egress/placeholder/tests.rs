//! Tests of where a placeholder stands, and where it may.

use super::*;

const PLACEHOLDER: &str = "{{secret.key}}";

fn bound() -> Vec<SecretGrant> {
    let grant = |secret: &str, host: &str, slot, prefix: &str| SecretGrant {
        secret: secret.to_owned(),
        host: host.to_owned(),
        port: host.starts_with("127.").then_some(8080),
        slot,
        prefix: prefix.to_owned(),
    };
    vec![
        grant(
            "key",
            "a.com",
            SecretSlot::Header("Authorization".to_owned()),
            "Bearer ",
        ),
        grant("key", "a.com", SecretSlot::Query("key".to_owned()), ""),
        grant("key", "bots.com", SecretSlot::Path("/bot".to_owned()), ""),
        grant(
            "key",
            "bots.com",
            SecretSlot::Path("/file/bot".to_owned()),
            "",
        ),
        grant(
            "other",
            "a.com",
            SecretSlot::Header("x-other".to_owned()),
            "",
        ),
        grant(
            "key",
            "127.0.0.1",
            SecretSlot::Header("authorization".to_owned()),
            "",
        ),
    ]
}

/// The places of the secrets that go out, or why none does.
fn placed(url: &str, headers: &[(&str, &str)]) -> Result<Vec<String>, Misplaced> {
    let headers: Vec<(&str, &[u8])> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()))
        .collect();
    let bound = bound();
    let placed = placements(url, &headers, &bound)?;
    Ok(placed
        .into_iter()
        .map(|grant| format!("{} {:?}", grant.secret, grant.slot))
        .collect())
}

#[test]
fn a_placeholder_in_a_path_is_a_whole_part_behind_its_beginning() {
    let there = |beginning: &str| Ok(vec![format!("key Path({beginning:?})")]);
    let host = || "bots.com".to_owned();
    let filled = |name: &str| {
        Err(Misplaced::Filled {
            name: name.to_owned(),
            host: host(),
        })
    };
    for (path, expected) in [
        ("/bot{{secret.key}}/getMe", there("/bot")),
        ("/bot{{secret.key}}", there("/bot")),
        ("/bot%7b%7Bsecret.key%7D%7d/getMe", there("/bot")),
        ("/file/bot{{secret.key}}/a.png", there("/file/bot")),
        // The slot takes nothing else: neither a credential of the guest's own nor an escape.
        ("/bot123:abc/getMe", filled("/bot")),
        ("/bots", filled("/bot")),
        ("/bot%257B%257Bsecret.key%257D%257D/getMe", filled("/bot")),
        ("/bot{{secret.other}}/getMe", filled("/bot")),
        ("/bot{{secret.key}}x/getMe", filled("/bot")),
        (
            "/{{secret.key}}/getMe",
            Err(Misplaced::Path { host: host() }),
        ),
        (
            "/bot{{secret.key}}/{{secret.key}}",
            Err(Misplaced::Path { host: host() }),
        ),
        ("/other", Ok(Vec::new())),
    ] {
        let url = format!("https://bots.com{path}");
        assert_eq!(placed(&url, &[]), expected, "{url}");
    }
    let plain = placed("http://bots.com:443/bot{{secret.key}}/x", &[]);
    assert!(plain.is_err(), "{plain:?}");
}

#[test]
fn a_placeholder_is_found_in_the_slot_that_its_secret_is_bound_to() {
    let header = "key Header(\"Authorization\")";
    let query = "key Query(\"key\")";
    for (url, headers, expected) in [
        ("https://a.com/", vec![], vec![]),
        (
            "https://a.com/",
            vec![("authorization", PLACEHOLDER)],
            vec![header],
        ),
        (
            "https://A.com./x?y=1",
            vec![("AUTHORIZATION", "Bearer {{secret.key}}")],
            vec![header],
        ),
        ("https://a.com/?key={{secret.key}}", vec![], vec![query]),
        (
            "https://a.com/?a&key=%7B%7bsecret%2Ekey%7D%7d&b=c",
            vec![],
            vec![query],
        ),
        (
            "https://a.com/?key={{secret.key}}",
            vec![("authorization", PLACEHOLDER), ("accept", "x")],
            vec![query, header],
        ),
        (
            "http://127.0.0.1:8080/",
            vec![("authorization", PLACEHOLDER)],
            vec!["key Header(\"authorization\")"],
        ),
        // Another host's slots are only headers there.
        ("https://b.com/?key=mine", vec![("x-other", "mine")], vec![]),
    ] {
        assert_eq!(
            placed(url, &headers),
            Ok(expected.into_iter().map(str::to_owned).collect()),
            "{url} {headers:?}"
        );
    }
}

#[test]
fn a_placeholder_anywhere_else_refuses_the_request_and_says_where_it_stands() {
    for (url, headers, expected) in [
        (
            "https://b.com/",
            vec![("authorization", PLACEHOLDER)],
            "in the header `authorization`",
        ),
        (
            "https://a.com:8443/",
            vec![("authorization", PLACEHOLDER)],
            "is bound for `a.com:8443`",
        ),
        (
            "http://127.0.0.1/",
            vec![("authorization", PLACEHOLDER)],
            "in the header `authorization`",
        ),
        (
            "https://a.com.evil.com/",
            vec![("authorization", PLACEHOLDER)],
            "in the header `authorization`",
        ),
        (
            "https://a.com/",
            vec![("x-mine", PLACEHOLDER)],
            "in the header `x-mine`",
        ),
        (
            "https://a.com/",
            vec![("x-mine", "a {{secret.key}} b")],
            "in the header `x-mine`",
        ),
        (
            "https://a.com/",
            vec![("x-mine", "%7B%7Bsecret.key}}")],
            "in the header `x-mine`",
        ),
        (
            "https://a.com/",
            vec![("x-other", PLACEHOLDER)],
            "the slot `x-other`",
        ),
        (
            "https://a.com/",
            vec![("authorization", "Basic {{secret.key}}")],
            "the slot `authorization`",
        ),
        (
            "https://a.com/",
            vec![("authorization", "{{secret.key}} ")],
            "the slot `authorization`",
        ),
        (
            "https://a.com/",
            vec![("authorization", "{{secret.KEY}}")],
            "the slot `authorization`",
        ),
        (
            "https://a.com/",
            vec![("authorization", "Bearer my-own")],
            "the slot `authorization`",
        ),
        (
            "https://a.com/",
            vec![
                ("authorization", PLACEHOLDER),
                ("authorization", PLACEHOLDER),
            ],
            "the slot `authorization`",
        ),
        ("https://a.com/?key=mine", vec![], "the slot `key`"),
        (
            "https://a.com/?key={{secret.other}}",
            vec![],
            "the slot `key`",
        ),
        (
            "https://a.com/?key={{secret.key}}x",
            vec![],
            "the slot `key`",
        ),
        (
            "https://a.com/?key={{secret.key}}&key={{secret.key}}",
            vec![],
            "the slot `key`",
        ),
        (
            "https://a.com/?q={{secret.key}}",
            vec![],
            "in the parameter `q`",
        ),
        (
            "https://a.com/?q=%257B%257Bsecret.key",
            vec![],
            "in the parameter `q`",
        ),
        ("https://a.com/?{{secret.key}}", vec![], "in the parameter"),
        ("https://a.com/{{secret.key}}", vec![], "in the path"),
        (
            "https://a.com/%7b%7bsecret.key%7d%7d?x",
            vec![],
            "in the path",
        ),
        ("https://a.com/#{{secret.key}}", vec![], "in the fragment"),
        (
            "https://{{secret.key}}@a.com/",
            vec![],
            "in a URL that is not accepted",
        ),
        (
            "https://{{secret.key}}.a.com/",
            vec![],
            "in a URL that is not accepted",
        ),
        (
            "ftp://a.com/",
            vec![("authorization", PLACEHOLDER)],
            "in a URL that is not accepted",
        ),
        (
            "http://a.com/",
            vec![("authorization", PLACEHOLDER)],
            "over https alone",
        ),
    ] {
        let reported = placed(url, &headers).map_err(|error| error.to_string());
        assert!(
            reported
                .as_ref()
                .is_err_and(|reported| reported.contains(expected)),
            "{url} {headers:?}: {reported:?}"
        );
    }
}
