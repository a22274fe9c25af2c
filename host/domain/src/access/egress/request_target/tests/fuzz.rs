//! Fuzz target: URLs and references of any letters are refused, or have one meaning to all readers.

use super::super::*;
use crate::access::egress::{EgressGrant, HostPattern, PathPattern, permit};

const CHUNKS: [&str; 48] = [
    "http",
    "https",
    "://",
    ":",
    "/",
    "//",
    "?",
    "#",
    "@",
    "[",
    "]",
    "::",
    "1",
    "127.0.0.1",
    "0x7f",
    "0177",
    "localhost",
    "example.com",
    "a",
    "A",
    ".",
    "..",
    "%2e",
    "%2F",
    "%00",
    "%",
    "%61",
    "%25",
    ";",
    "&",
    "=",
    "+",
    "\\",
    " ",
    "\t",
    "\n",
    "\0",
    "ü",
    "ß",
    "xn--",
    "。",
    "80",
    "443",
    "65536",
    "00",
    "_",
    "-",
    "*",
];

fn text(bytes: &[u8]) -> String {
    bytes
        .iter()
        .filter_map(|byte| CHUNKS.get(usize::from(*byte) % CHUNKS.len()))
        .copied()
        .collect()
}

/// Checks the properties of a target on which all its readers have to agree.
fn is_plain(target: &Target) {
    let url = target.url();
    assert_eq!(
        Target::parse(&url).as_ref(),
        Ok(target),
        "it reads as itself again"
    );
    assert!(
        url.bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#'),
        "{url}"
    );
    let second = Url::parse(&url).unwrap();
    assert_eq!(
        (second.as_str(), second.port_or_known_default()),
        (url.as_str(), Some(target.port()))
    );
    assert_eq!(
        (second.username(), second.password(), second.fragment()),
        ("", None, None)
    );
    assert!(
        target
            .path()
            .split('/')
            .all(|name| !matches!(name, "." | "..")),
        "{url}"
    );
    let third: http::Uri = target.path_and_query().parse().unwrap();
    assert_eq!(
        (third.path(), third.query()),
        (target.path(), target.query())
    );
}

#[test]
fn any_url_is_refused_or_means_one_thing_to_everybody() {
    bolero::check!()
        .with_type::<(bool, Vec<u8>, Vec<u8>)>()
        .for_each(|(whole, url, reference)| {
            let url = if *whole {
                text(url)
            } else {
                format!("https://example.com/{}", text(url))
            };
            let Ok(target) = Target::parse(&url) else {
                return;
            };
            is_plain(&target);
            if let Ok(next) = target.join(&text(reference)) {
                is_plain(&next);
            }
        });
}

#[test]
fn any_pattern_of_a_grant_opens_what_it_says_and_nothing_beside_it() {
    bolero::check!()
        .with_type::<[Vec<u8>; 3]>()
        .for_each(|patterns| {
            let [host, path, url] = patterns.each_ref().map(|bytes| text(bytes));
            let (Ok(host), Ok(path)) = (HostPattern::parse(&host), PathPattern::parse(&path))
            else {
                return;
            };
            assert_eq!(
                HostPattern::parse(&host.to_string()).as_ref(),
                Ok(&host),
                "it reads as itself again"
            );
            assert_eq!(
                PathPattern::parse(&path.to_string()).as_ref(),
                Ok(&path),
                "it reads as itself again"
            );
            let grant = EgressGrant {
                path,
                ..EgressGrant::of(host.clone())
            };
            for url in [
                format!("https://{host}{url}"),
                format!("https://{host}/{url}"),
                url,
            ] {
                let Ok(target) = Target::parse(&url) else {
                    continue;
                };
                if permit(&target, Method::Get, std::slice::from_ref(&grant)).is_ok() {
                    assert_eq!((target.scheme(), target.port()), (Scheme::Https, 443));
                    assert!(
                        grant.host.matches(target.host())
                            && grant.path.matches(target.path())
                            && !grant.host.is_boundless(),
                        "{url}"
                    );
                }
            }
        });
}
