//! Tests of the URLs that are accepted, and of the one spelling in which each comes out. Everything
//! odd is refused.

mod fuzz;

use super::*;
use proptest::prelude::*;

#[test]
fn a_url_comes_out_in_one_spelling() {
    for (text, expected) in [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:443/", "https://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://example.com./x", "https://example.com/x"),
        ("https://example.com?q=1", "https://example.com/?q=1"),
        ("https://example.com/a#part", "https://example.com/a"),
        (
            "https://example.com/?q=a#@evil.com",
            "https://example.com/?q=a",
        ),
        ("https://example.com/a/../b/./c", "https://example.com/b/c"),
        ("https://example.com/../../a", "https://example.com/a"),
        ("https://example.com/a/%2e%2E/b", "https://example.com/b"),
        (
            "https://example.com/%61%2d%c3%a4",
            "https://example.com/a-%C3%A4",
        ),
        ("https://example.com/a%2fb", "https://example.com/a%2Fb"),
        ("https://example.com/x@y:z", "https://example.com/x@y:z"),
        ("https://example.com//a", "https://example.com//a"),
        ("https://[::1]/", "https://[::1]/"),
        (
            "https://[2001:DB8:0:0::1]:8443/",
            "https://[2001:db8::1]:8443/",
        ),
        (
            "https://[::ffff:169.254.169.254]/",
            "https://[::ffff:a9fe:a9fe]/",
        ),
        ("http://192.0.2.1:8080/", "http://192.0.2.1:8080/"),
        (
            "https://xn--bcher-kva.example/",
            "https://xn--bcher-kva.example/",
        ),
        (
            "https://my_bucket.s3.example/",
            "https://my_bucket.s3.example/",
        ),
        ("https://xn--pple-43d.com/", "https://xn--pple-43d.com/"),
        (
            "https://r3---sn-abc.example/",
            "https://r3---sn-abc.example/",
        ),
    ] {
        assert_eq!(
            Target::parse(text).as_ref().map(Target::url),
            Ok(expected.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn whatever_is_odd_is_refused_and_not_interpreted() {
    for (error, urls) in [
        (
            TargetError::Scheme,
            "example.com //example.com/ https:example.com https:/example.com ftp://a.com/ \
             file:///etc/passwd gopher://a.com/ unix:///run/x.sock \
             ws://a.com/ wss://a.com/ data:text/html,x javascript:1 http+unix://a/ \
             view-source:https://a.com/",
        ),
        (
            TargetError::UserInfo,
            "https://user@a.com/ https://user:pw@a.com/ https://a.com@evil.com/ https://@a.com/ \
             https://a.com:443@evil.com/ https://a@b@c.com/",
        ),
        (
            TargetError::Authority,
            "https://a.com#@evil.com/ https://a.com#x https://a%2ecom/ https://%61.com/ \
             https://[fe80::1%25eth0]/ https://a.com%00.evil.com/ \
             https://127.0.0.1%2f/",
        ),
        (
            TargetError::Port,
            "https://a.com:/ https://a.com:0/ https://a.com:65536/ https://a.com:99999999999/ \
             https://a.com:0443/ https://a.com:+443/ \
             https://a.com:443:80/ https://a.com:x/ https://[::1]:/",
        ),
        (
            TargetError::Host(HostError::Empty),
            "https:/// https:///a.com/ https:// https://?a https://:443/ https://::1/",
        ),
        (
            TargetError::Host(HostError::OddIpv4),
            "http://2130706433/ http://017700000001/ http://0x7f000001/ http://0x7F.1/ \
             http://127.1/ http://127.0.1/ http://0177.0.0.1/ \
             http://0x7f.0.0.1/ http://127.0.0.01/ http://127.0.0.1./ http://256.1.1.1/ \
             http://1.2.3.4.5/ http://127.0.0.0x1/ http://a.com.1/ \
             http://0/ http://0x/ http://127.0.0.1.0x/",
        ),
        (
            TargetError::Host(HostError::Ipv6),
            "https://[fe80::1/ https://[::1]x/ https://[]/ https://[127.0.0.1]/ https://[::g]/ \
             https://[1:2:3:4:5:6:7:8:9]/ https://[::1]]/ \
             https://[[::1]/",
        ),
        (
            TargetError::Host(HostError::Character),
            "https://a..com/ https://.a.com/ https://a.com../ https://-a.com/ https://a-.com/ \
             https://a,com/ https://a;b.com/ https://a!b/ \
             https://*.a.com/ https://a<b/ https://a.com]/ https://xn--/",
        ),
        (
            TargetError::Escape,
            "https://a.com/% https://a.com/%2 https://a.com/%zz https://a.com/%2%65 \
             https://a.com/?q=100% https://a.com/%u0041",
        ),
        // Punycode that is none, and that of fullwidth and upper-case characters.
        (
            TargetError::Ambiguous,
            "https://xn--a/ https://xn--zzzzzzzzzz99999.com/ https://xn--8g7ccp/ \
             https://xn--pple-zg0y.com/ https://xn--wca.com/",
        ),
    ] {
        for url in urls.split_whitespace() {
            assert_eq!(Target::parse(url), Err(error), "{url}");
        }
    }
    assert_eq!(Target::parse(""), Err(TargetError::Scheme));
}

#[test]
fn a_character_that_some_reader_skips_maps_or_ends_at_is_refused() {
    for url in [
        "https://a.com\\@evil.com/",
        "https://a.com\\evil",
        "https://a\t.com/",
        "https://a.com/\r\nHost: evil",
        "https://a.com/\n",
        "https://a.com/ b",
        " https://a.com/",
        "https://a.com/\0",
        "https://\u{ff11}27.0.0.1/",
        "https://\u{2488}27.0.0.1/",
        "https://b\u{fc}cher.example/",
        "https://\u{430}pple.com/",
        "https://a\u{3002}com/",
        "https://a\u{ad}.com/",
        "https://a.com/\u{e4}",
    ] {
        assert_eq!(Target::parse(url), Err(TargetError::Character), "{url:?}");
    }
}

#[test]
fn what_is_too_long_is_refused() {
    let path = |n: usize| format!("https://a.com/{}", "a".repeat(n));
    assert!(Target::parse(&path(URL_BYTES_MAX - 14)).is_ok());
    assert_eq!(
        Target::parse(&path(URL_BYTES_MAX)),
        Err(TargetError::TooLong)
    );
    // Escapes that the reader adds count as well.
    assert_eq!(
        Target::parse(&format!("https://a.com/{}", "\"".repeat(URL_BYTES_MAX / 2))),
        Err(TargetError::TooLong)
    );
    for host in ["a".repeat(64) + ".com", "a.".repeat(127) + "com"] {
        assert_eq!(
            Target::parse(&format!("https://{host}/")),
            Err(TargetError::Host(HostError::TooLong)),
            "{host}"
        );
    }
}

#[test]
fn a_reference_leads_where_the_standard_says() {
    let from = Target::parse("https://a.com:8443/b/c/d?q=1").unwrap();
    for (reference, expected) in [
        ("g", Ok("https://a.com:8443/b/c/g")),
        ("./g", Ok("https://a.com:8443/b/c/g")),
        ("../g", Ok("https://a.com:8443/b/g")),
        ("../../../g", Ok("https://a.com:8443/g")),
        ("/g", Ok("https://a.com:8443/g")),
        ("//b.com/g", Ok("https://b.com/g")),
        ("?y", Ok("https://a.com:8443/b/c/d?y")),
        ("#s", Ok("https://a.com:8443/b/c/d?q=1")),
        ("", Ok("https://a.com:8443/b/c/d?q=1")),
        ("g?a:b", Ok("https://a.com:8443/b/c/g?a:b")),
        (
            "http://169.254.169.254/latest",
            Ok("http://169.254.169.254/latest"),
        ),
        ("HTTPS://b.com", Ok("https://b.com/")),
        ("file:///etc/passwd", Err(TargetError::ForeignScheme)),
        ("gopher://b.com/", Err(TargetError::ForeignScheme)),
        ("javascript:alert(1)", Err(TargetError::ForeignScheme)),
        ("https:g", Err(TargetError::ForeignScheme)),
        ("//user@b.com/", Err(TargetError::UserInfo)),
        ("///b.com/", Err(TargetError::Host(HostError::Empty))),
        ("/\\b.com/", Err(TargetError::Character)),
        ("/a b", Err(TargetError::Character)),
        ("//127.1/", Err(TargetError::Host(HostError::OddIpv4))),
    ] {
        assert_eq!(
            from.join(reference).map(|target| target.url()),
            expected.map(ToOwned::to_owned),
            "{reference}"
        );
    }
}

#[test]
fn a_log_line_has_no_query() {
    let target = Target::parse("https://a.com/b?token=hush").unwrap();
    assert_eq!(
        format!("{target} {target:?}"),
        "https://a.com/b Target(https://a.com/b)"
    );
    assert_eq!(target.path_and_query(), "/b?token=hush");
}

#[test]
fn a_method_is_one_of_the_list_as_it_is_written_there() {
    for text in ["CONNECT", "TRACE", "get", "PROPFIND", "", "GET ", "GET\r\n"] {
        assert_eq!(Method::parse(text), Err(NotAMethod), "{text}");
    }
    assert_eq!(Method::parse("PATCH"), Ok(Method::Patch));
}

/// Chunks that URLs and attacks on their readers are made of.
fn url() -> impl Strategy<Value = String> {
    let chunks = [
        "http", "https", "://", ":", "/", "//", "@", "#", "?", "%", "%2e", "%2F", "%00", "\\", ".",
        "..", "a", "com", "xn--", "127", "0x7f", "[::1]", "[", "]", "80", "443", "0", " ", "\t",
        "\u{e4}", "\u{ff11}", "&", ";", "*", "|", "\"", "<", "^", "{", "'",
    ];
    let loose = prop::collection::vec(prop::sample::select(chunks.to_vec()), 0..12)
        .prop_map(|chunks| chunks.concat());
    prop_oneof![
        loose.clone(),
        loose.clone().prop_map(|rest| format!("https://{rest}")),
        ("[a-z0-9._-]{1,20}", loose).prop_map(|(host, rest)| format!("http://{host}/{rest}")),
        "https?://[ -~]{0,30}",
        "https?://[a-zA-Z0-9.:\\[\\]-]{1,20}/[ -~]{0,20}",
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn what_is_accepted_reads_as_itself_again(text in url()) {
        if let Ok(target) = Target::parse(&text) {
            prop_assert_eq!(Target::parse(&target.url()), Ok(target.clone()));
            let url = Url::parse(&target.url()).unwrap();
            prop_assert_eq!(url.as_str(), target.url());
            prop_assert_eq!(url.port_or_known_default(), Some(target.port()));
        }
    }

    #[test]
    fn no_accepted_host_has_a_character_that_some_reader_takes_for_an_end(text in url()) {
        if let Ok(target) = Target::parse(&text) {
            let host = target.host().to_string();
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b);
            match target.host() {
                Host::Name(name) => {
                    prop_assert!(name.bytes().all(plain), "{}", name);
                    prop_assert!(!name.ends_with('.') && !name.contains("..") && name.parse::<std::net::IpAddr>().is_err());
                }
                Host::Address(address) => prop_assert!(host.trim_matches(['[', ']']).parse::<std::net::IpAddr>() == Ok(*address)),
            }
            let rest = target.path_and_query();
            prop_assert!(rest.starts_with('/') && rest.bytes().all(|b| b.is_ascii_graphic() && b != b'\\' && b != b'#'), "{}", rest);
            prop_assert!(!target.path().split('/').any(|part| part == "." || part == ".."), "{}", rest);
        }
    }

    #[test]
    fn a_reference_never_leads_out_of_http(reference in url()) {
        let from = Target::parse("https://a.com/b/c").unwrap();
        if let Ok(target) = from.join(&reference) {
            prop_assert_eq!(Target::parse(&target.url()), Ok(target));
        }
    }
}
