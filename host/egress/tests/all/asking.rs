//! Tests of what goes out, what comes back, and what never leaves.

use crate::fixture::{Server, World, grant, ok, say, secret};
use agent_host_egress::{EgressError, GuestError, Limits, Refused};
use domain::egress::{EgressGrant, HostPattern, Method, Scheme};
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderName, HeaderValue};

#[tokio::test]
async fn a_request_goes_out_as_the_host_says_and_its_answer_comes_back() {
    let answer = "HTTP/1.1 201 Created\r\ncontent-length: 5\r\nset-cookie: a=b\r\nproxy-authenticate: \
         x\r\nx-y: z\r\n\r\nhello";
    let server = Server::saying(answer);
    let world = World::new();
    let mut request = world.request(&format!(
        "http://A.test.:{}//b/../c%61?q=1#part",
        server.port
    ));
    request
        .headers
        .insert("accept", HeaderValue::from_static("text/html"));
    request
        .headers
        .insert("accept-encoding", HeaderValue::from_static("br"));
    let response = world.send_to(&server, request).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), response.target.path()),
        (201, "//ca")
    );
    let mut names: Vec<&str> = response.headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "x-y"]);
    assert_eq!(response.body.read_all().await.unwrap(), "hello");

    let head = server.heads().remove(0);
    assert!(head.starts_with("GET //ca?q=1 HTTP/1.1\r\n"), "{head}");
    for line in [
        format!("host: a.test:{}", server.port),
        "accept: text/html".into(),
        "accept-encoding: gzip".into(),
        "connection: close".into(),
    ] {
        assert_eq!(
            head.matches(&format!("\r\n{line}\r\n")).count(),
            1,
            "{line} in {head}"
        );
    }
    assert!(
        head.contains("\r\nuser-agent: agent-host/") && !head.contains("br"),
        "{head}"
    );

    let record = world.records().remove(0);
    assert_eq!(
        (record.outcome, record.status, record.grant, record.hop),
        ("done", Some(201), Some(0), 0)
    );
    assert_eq!(
        (record.host.as_deref(), record.path.as_deref(), record.port),
        (Some("a.test"), Some("//ca"), Some(server.port))
    );
    assert_eq!(record.dialled, Some("127.0.0.1".parse().unwrap()));
    assert_eq!(
        (record.bytes_out, record.bytes_in),
        (head.len() as u64, answer.len() as u64)
    );
    assert!(
        !serde_json::to_string(&record).unwrap().contains("q=1"),
        "the query is on record"
    );
}

#[tokio::test]
async fn a_body_goes_out_with_its_length_and_no_other() {
    let server = Server::saying(ok(""));
    let world = World::new();
    let grants = [EgressGrant {
        methods: vec![Method::Post],
        request_bytes_max: 5,
        ..server.grant()
    }];
    let mut request = world.request(&server.url());
    (request.method, request.body) = (Method::Post, "words".into());
    for (lengths, accepted) in [
        (vec![], true),
        (vec!["5"], true),
        (vec!["4"], false),
        (vec!["5", "5"], false),
        (vec!["5", "6"], false),
        (vec!["+5"], false),
    ] {
        let mut request = request.clone();
        for length in &lengths {
            request
                .headers
                .append("content-length", HeaderValue::from_static(length));
        }
        let sent = world.egress.send(request, &grants).await;
        assert_eq!(sent.is_ok(), accepted, "{lengths:?}");
        assert!(accepted || sent.is_err_and(|error| error.seen() == GuestError::Invalid));
    }
    assert!(
        server
            .heads()
            .iter()
            .all(|head| head.matches("content-length: 5\r\n").count() == 1)
    );
    request.body = "words!".into();
    assert_eq!(
        world
            .egress
            .send(request, &grants)
            .await
            .unwrap_err()
            .code(),
        "request-too-large"
    );
    assert_eq!(server.heads().len(), 2);
}

#[tokio::test]
async fn a_header_that_is_not_the_callers_to_set_refuses_the_request() {
    let server = Server::saying(ok(""));
    let world = World::new();
    for name in [
        "host",
        "connection",
        "transfer-encoding",
        "te",
        "upgrade",
        "proxy-authorization",
        "authorization",
        "cookie",
        "x-forwarded-for",
        "expect",
        "x-http-method-override",
    ] {
        let mut request = world.request(&server.url());
        request.headers.insert(name, HeaderValue::from_static("x"));
        let error = world.send_to(&server, request).await.unwrap_err();
        assert_eq!(
            (error.code(), error.seen()),
            ("header-refused", GuestError::Invalid),
            "{name}"
        );
    }
    for (count, bytes) in [(101, 1), (1, 33 << 10)] {
        let mut request = world.request(&server.url());
        for number in 0..count {
            let name: HeaderName = format!("x-{number}").parse().unwrap();
            request
                .headers
                .insert(name, HeaderValue::try_from("v".repeat(bytes)).unwrap());
        }
        assert_eq!(
            world.send_to(&server, request).await.unwrap_err().code(),
            "request-too-large"
        );
    }
    assert_eq!(server.heads().len(), 0);
}

#[tokio::test]
async fn what_the_host_binds_goes_along_and_cannot_be_framing_either() {
    let server = Server::saying(ok(""));
    let world = World::new();
    let mut request = world.request(&server.url());
    request.bound.header(
        AUTHORIZATION,
        HeaderValue::from_static("Bearer SK-CANARY-1"),
    );
    request
        .bound
        .parameter("key".to_owned(), secret("SK-CANARY/2"));
    request.url.push_str("?key=placeholder&q=1");
    world
        .egress
        .send(request.clone(), &[server.grant()])
        .await
        .unwrap();
    let head = server.heads().remove(0);
    assert!(
        head.starts_with("GET /?q=1&key=SK-CANARY%2F2 HTTP/1.1\r\n")
            && head.contains("\r\nauthorization: Bearer SK-CANARY-1\r\n")
    );
    assert!(
        !serde_json::to_string(&world.records())
            .unwrap()
            .contains("SK-CANARY")
    );
    assert!(!format!("{request:?}").contains("SK-CANARY"));
    request
        .bound
        .header(HOST, HeaderValue::from_static("evil.test"));
    assert_eq!(
        world.send_to(&server, request).await.unwrap_err().code(),
        "header-refused"
    );
}

/// A rehearsal answers what no grant allows with a stand-in and sends none of it. The rest goes
/// out.
#[tokio::test]
async fn a_rehearsed_request_is_recorded_as_refused_and_gets_a_stand_in() {
    let server = Server::saying(ok("really"));
    let mut world = World::new();
    world.egress = world.egress.rehearsing();
    let port = server.port;
    let granted = [grant("a.test", port)];
    for (url, grants, expected) in [
        (format!("http://b.test:{port}/"), &granted[..], "{}"),
        (format!("http://a.test:{port}/"), &[], "{}"),
        (format!("http://a.test:{port}/"), &granted, "really"),
    ] {
        let read = world.read(&url, grants).await.unwrap();
        assert_eq!(read, (200, expected.to_owned()), "{url}");
    }
    let outcomes: Vec<&str> = world.records().iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, ["not-granted", "not-granted", "done"]);
    let wrong = world.get("ftp://a.test/", &granted).await.unwrap_err();
    assert_eq!(wrong.code(), "url-refused");
}

#[tokio::test]
async fn what_no_grant_names_is_not_even_looked_up() {
    let server = Server::saying(ok(""));
    let world = World::new();
    let port = server.port;
    let narrow = [grant("a.test", port)];
    for url in [
        format!("http://secret-in-a-label.b.test:{port}/"),
        format!("http://www.a.test:{port}/"),
        format!("https://a.test:{port}/"),
        "http://a.test/".to_owned(),
    ] {
        let error = world.get(&url, &narrow).await.unwrap_err();
        assert_eq!(
            (error.code(), error.seen()),
            ("not-granted", GuestError::Denied),
            "{url}"
        );
    }
    assert_eq!(
        world
            .get(&format!("http://a.test:{port}/"), &[])
            .await
            .unwrap_err()
            .code(),
        "not-granted"
    );
    for url in [
        "file:///etc/passwd",
        "gopher://a.test/",
        "unix:/run/x",
        "ws://a.test/",
        "http://user@a.test/",
        "http://a.test\\@b.test/",
        "http://0x7f.1/",
    ] {
        let error = world.get(url, &narrow).await.unwrap_err();
        assert_eq!(
            (error.code(), error.seen()),
            ("url-refused", GuestError::Invalid),
            "{url}"
        );
    }
    assert_eq!((world.answers.asked(), server.heads().len()), (0, 0));
    assert_eq!(world.records().len(), 12);
    assert_eq!(
        world.records()[1].detail.as_deref(),
        Some(&*format!(
            "no grant allows the request: GET http://www.a.test:{port}/ is not allowed: the \
             nearest grant, network[0], has another `host`"
        ))
    );
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_what_was_checked_is_dialled() {
    let server = Server::saying(ok("here"));
    let world = World::resolving(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let url = server.url();
    let grants = [server.grant()];
    assert_eq!(
        world.read(&url, &grants).await.unwrap(),
        (200, "here".to_owned())
    );
    assert_eq!(world.answers.asked(), 1);
    let error = world.get(&url, &grants).await.unwrap_err();
    assert_eq!(
        (error.code(), error.seen(), world.answers.asked()),
        ("address-barred", GuestError::Denied, 2)
    );
    assert_eq!(server.heads().len(), 1);
    let record = world.records().remove(1);
    assert_eq!(
        record.detail.as_deref(),
        Some(
            "an address of `a.test` is not open: 169.254.169.254 is cloud metadata and not in \
              `privateAddresses`"
        )
    );
    assert_eq!(
        (record.addresses, record.dialled),
        (vec!["169.254.169.254".parse().unwrap()], None)
    );
}

#[tokio::test]
async fn one_barred_address_bars_the_whole_answer() {
    let server = Server::saying(ok(""));
    for answer in [
        ["127.0.0.1", "10.0.0.1"],
        ["127.0.0.1", "::1"],
        ["127.0.0.1", "fd00:ec2::254"],
        ["127.0.0.1", "::ffff:127.0.0.1"],
        ["127.0.0.1", "64:ff9b::a9fe:a9fe"],
        ["127.0.0.1", "0.0.0.0"],
        ["127.0.0.1", "127.0.0.2"],
        ["169.254.169.254", "127.0.0.1"],
    ] {
        let world = World::resolving(&[&answer]);
        let code = world.code(&server.url(), &[server.grant()]).await;
        assert_eq!(code, "address-barred", "{answer:?}");
    }
    assert_eq!(server.heads().len(), 0);
}

#[tokio::test]
async fn an_address_in_the_url_is_judged_like_one_behind_a_name() {
    let server = Server::saying(ok(""));
    let world = World::new();
    let any = HostPattern::parse("*").unwrap();
    let grants = [EgressGrant {
        any_host: true,
        schemes: vec![Scheme::Http, Scheme::Https],
        ports: Some(vec![server.port, 80, 443]),
        ..EgressGrant::of(any)
    }];
    for host in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[fd00:ec2::254]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ] {
        assert_eq!(
            world
                .code(&format!("http://{host}:{}/", server.port), &grants)
                .await,
            "address-barred",
            "{host}"
        );
    }
    assert_eq!((world.answers.asked(), server.heads().len()), (0, 0));
    let open = [grant("127.0.0.1", server.port)];
    assert_eq!(
        world
            .read(&format!("http://127.0.0.1:{}/", server.port), &open)
            .await
            .unwrap()
            .0,
        200
    );
}

#[tokio::test]
async fn addresses_are_tried_in_their_order_and_none_is_an_error() {
    let server = Server::saying(ok("second"));
    let open = |addresses: &[&str]| EgressGrant {
        private_addresses: addresses
            .iter()
            .map(|text| domain::egress::AddressRange::parse(text).unwrap())
            .collect(),
        ..server.grant()
    };
    let url = server.url();
    // Nobody listens at the first one.
    let world = World::resolving(&[&["127.0.0.9", "127.0.0.1"]]);
    assert_eq!(
        world.read(&url, &[open(&["127.0.0.0/8"])]).await.unwrap().1,
        "second"
    );
    assert_eq!(
        world.records()[0].dialled,
        Some("127.0.0.1".parse().unwrap())
    );
    let world = World::resolving(&[&["127.0.0.9"]]);
    assert_eq!(
        world.code(&url, &[open(&["127.0.0.0/8"])]).await,
        "unreachable"
    );
    let world = World::resolving(&[&[]]);
    assert_eq!(
        world.code(&url, &[open(&["127.0.0.0/8"])]).await,
        "unresolved"
    );
}

#[tokio::test]
async fn the_machines_resolver_answers_and_its_answer_is_judged() {
    let server = Server::saying(ok("local"));
    let tls = crate::fixture::client_tls(rustls::RootCertStore::empty());
    let egress = agent_host_egress::Egress::new(
        std::sync::Arc::new(agent_host_egress::SystemResolver),
        tls,
        Limits::default(),
    );
    let world = World::new();
    let request = world.request(&format!("http://localhost:{}/", server.port));
    let closed = EgressGrant {
        private_addresses: vec![],
        ..grant("localhost", server.port)
    };
    assert!(matches!(
        egress.send(request.clone(), &[closed]).await,
        Err(EgressError::Refused(Refused::Barred { .. }))
    ));
    let open = ["127.0.0.1", "::1"]
        .map(|text| domain::egress::AddressRange::parse(text).unwrap())
        .to_vec();
    let response = egress
        .send(
            request,
            &[EgressGrant {
                private_addresses: open,
                ..grant("localhost", server.port)
            }],
        )
        .await
        .unwrap();
    assert_eq!(response.body.read_all().await.unwrap(), "local");
}

#[tokio::test]
async fn a_head_has_no_body_whatever_its_headers_say() {
    let server = Server::script(|stream, _| {
        say(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\ncontent-encoding: br\r\n\r\n",
        )
    });
    let world = World::new();
    let mut request = world.request(&server.url());
    request.method = Method::Head;
    let response = world.send_to(&server, request).await.unwrap();
    assert_eq!(response.headers["content-length"], "999999999999");
    assert_eq!(response.body.read_all().await.unwrap(), "");
}
