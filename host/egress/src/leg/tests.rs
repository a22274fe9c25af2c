//! Tests of what goes along on a redirect, and what stays behind.

use super::*;
use domain::secret::Secret;
use http::HeaderValue;
use http::header::AUTHORIZATION;

fn leg(url: &str, method: Method) -> Leg {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("accept", "text/html"),
        ("content-type", "text/plain"),
        ("referer", "https://a.com/x"),
        ("origin", "https://a.com"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let mut bound = Credentials::default();
    bound.header(
        AUTHORIZATION,
        HeaderValue::from_static("Bearer SK-CANARY-1"),
    );
    bound.parameter("key".to_owned(), Secret::parse("SK-CANARY-2").unwrap());
    Leg {
        target: Target::parse(url).unwrap(),
        method,
        headers,
        bound,
        body: Bytes::from_static(b"words"),
        hop: 0,
    }
}

fn next(leg: &Leg, status: u16, location: &str, hops_max: u8) -> Result<Option<Leg>, EgressError> {
    let mut headers = HeaderMap::new();
    headers.insert(
        LOCATION,
        HeaderValue::from_bytes(location.as_bytes()).unwrap(),
    );
    let redactor = Redactor::of(&Secret::parse("SK-CANARY-1").unwrap());
    leg.next(
        &Head {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &headers,
        },
        hops_max,
        &redactor,
    )
}

fn names(headers: &HeaderMap) -> Vec<&str> {
    headers.keys().map(HeaderName::as_str).collect()
}

#[test]
fn a_redirect_is_followed_only_where_it_is_granted() {
    let leg = leg("https://a.com/", Method::Get);
    assert!(next(&leg, 302, "/b", 0).unwrap().is_none());
    assert!(next(&leg, 200, "/b", 5).unwrap().is_none());
    assert!(next(&leg, 304, "/b", 5).unwrap().is_none());
    let nowhere = Head {
        status: StatusCode::FOUND,
        headers: &HeaderMap::new(),
    };
    assert!(
        leg.next(&nowhere, 5, &Redactor::default())
            .unwrap()
            .is_none()
    );
    let next = next(&leg, 302, "/b", 1).unwrap().unwrap();
    assert_eq!(
        (next.target.url().as_str(), next.hop),
        ("https://a.com/b", 1)
    );
}

#[test]
fn a_redirect_over_the_limit_to_http_or_to_no_url_is_refused() {
    let from = leg("https://a.com/", Method::Get);
    let code = |location: &str| next(&from, 302, location, 5).unwrap_err().detail();
    assert_eq!(
        code("http://a.com/"),
        "the server redirects from https to http, to `a.com`"
    );
    assert_eq!(
        code("//user@a.com/"),
        "the server redirects to what is no accepted URL: the URL has a user or password in it"
    );
    for location in [
        "file:///etc/passwd",
        "gopher://a.com/",
        "https://127.1/",
        "https://a.com\\@evil.com/",
        "/\\evil.com/",
        "\\\\evil.com/",
        "https://\u{ff11}27.0.0.1/",
    ] {
        assert!(
            matches!(
                next(&from, 302, location, 5),
                Err(EgressError::Refused(Refused::Location(_)))
            ),
            "{location}"
        );
    }
    let last = Leg {
        hop: 5,
        ..from.clone()
    };
    assert!(matches!(
        next(&last, 302, "/b", 5),
        Err(EgressError::Refused(Refused::Redirects { hops_max: 5 }))
    ));
}

#[test]
fn a_location_is_followed_as_browsers_read_it() {
    let from = leg("https://a.com/b/c?q", Method::Get);
    for (location, expected) in [
        ("/caf\u{e9}-ok", "https://a.com/caf%C3%A9-ok"),
        ("/ok?q=100%", "https://a.com/ok?q=100%25"),
        ("/ok?q=100%&r=%41", "https://a.com/ok?q=100%25&r=A"),
        ("  /a b ", "https://a.com/a%20b"),
        ("/a\\b?c\\d", "https://a.com/a/b?c%5Cd"),
        ("d\u{e9}#caf\u{e9} %", "https://a.com/b/d%C3%A9"),
        ("https://b.com#top", "https://b.com/"),
        ("//b.com?\u{65e5}", "https://b.com/?%E6%97%A5"),
        (
            "https://b\u{fc}cher.de/\u{fc}",
            "https://xn--bcher-kva.de/%C3%BC",
        ),
        ("10:30", "https://a.com/b/10:30"),
        ("../x", "https://a.com/x"),
        ("", "https://a.com/b/c?q"),
    ] {
        let next = next(&from, 302, location, 5).unwrap().unwrap();
        assert_eq!(next.target.url(), expected, "{location}");
    }
}

#[test]
fn credentials_and_what_names_the_origin_stay_with_it() {
    let from = leg("https://a.com/", Method::Get);
    let same = next(&from, 307, "/b", 5).unwrap().unwrap();
    assert_eq!(
        (names(same.bound.headers()), names(&same.headers).len()),
        (vec!["authorization"], 4)
    );
    assert_eq!(
        (
            from.bound.put_into("/", Some("a&key=x")),
            same.bound.put_into("/", None)
        ),
        ("/?a&key=SK-CANARY-2".into(), "/".into())
    );
    for other in [
        "https://b.com/",
        "https://www.a.com/",
        "https://a.com:8443/",
    ] {
        let next = next(&from, 307, other, 5).unwrap().unwrap();
        assert_eq!(
            (names(next.bound.headers()), names(&next.headers)),
            (vec![], vec!["accept", "content-type"]),
            "{other}"
        );
    }
    // Back at the first origin they are not found again.
    let away = next(&from, 307, "https://b.com/", 5).unwrap().unwrap();
    assert!(
        next(&away, 307, "https://a.com/", 5)
            .unwrap()
            .unwrap()
            .bound
            .headers()
            .is_empty()
    );
    // Neither in the words of a server that echoes them.
    let reported = next(&from, 307, "https://b.com/?key=SK%2DCANARY-1", 5)
        .unwrap_err()
        .detail();
    assert_eq!(
        reported,
        "`a.com` redirects to another origin with a secret in the URL"
    );
    assert!(
        next(&from, 307, "/?key=SK%2DCANARY-1", 5)
            .unwrap()
            .is_some()
    );
}

#[test]
fn what_was_handed_over_is_handed_over_again_only_where_the_status_says_so() {
    for (status, method, expected) in [
        (301, Method::Post, Method::Get),
        (302, Method::Post, Method::Get),
        (303, Method::Post, Method::Get),
        (303, Method::Put, Method::Get),
        (303, Method::Head, Method::Head),
        (302, Method::Put, Method::Put),
        (307, Method::Post, Method::Post),
        (308, Method::Post, Method::Post),
    ] {
        let next = next(&leg("https://a.com/", method), status, "/b", 5)
            .unwrap()
            .unwrap();
        assert_eq!(next.method, expected, "{status} {method}");
        assert_eq!(
            next.body.is_empty(),
            method != expected,
            "{status} {method}"
        );
        assert_eq!(
            next.headers.contains_key("content-type"),
            method == expected,
            "{status} {method}"
        );
    }
}
