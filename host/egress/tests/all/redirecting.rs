//! Redirects: off unless granted, and then every hop is a request like any other.

use crate::fixture::{Server, World, grant, ok, say};
use agent_host_egress::GuestError;
use domain::egress::EgressGrant;
use http::HeaderValue;
use http::header::AUTHORIZATION;

fn to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
}

fn following(host: &str, port: u16) -> EgressGrant {
    EgressGrant {
        redirects: 5,
        ..grant(host, port)
    }
}

#[tokio::test]
async fn a_redirect_that_is_not_granted_is_the_answer() {
    let server = Server::saying(to("http://169.254.169.254/latest"));
    let world = World::new();
    let response = world.get_from(&server).await;
    assert_eq!(
        (response.status.as_u16(), &response.headers["location"]),
        (
            302,
            &HeaderValue::from_static("http://169.254.169.254/latest")
        )
    );
    assert_eq!(server.heads().len(), 1);
}

#[tokio::test]
async fn a_granted_redirect_leads_through_every_gate_again() {
    let inside = Server::saying(ok("inside"));
    let port = inside.port;
    for (location, code) in [
        ("http://169.254.169.254/latest".to_owned(), "not-granted"),
        (format!("http://127.0.0.1:{port}/"), "not-granted"),
        (format!("http://b.test:{port}/admin"), "not-granted"),
        (format!("http://b.test.evil.test:{port}/"), "not-granted"),
        ("file:///etc/passwd".to_owned(), "redirect-refused"),
        ("gopher://b.test/".to_owned(), "redirect-refused"),
        (
            format!("http://b.test:{port}@evil.test/"),
            "redirect-refused",
        ),
        (format!("http://2130706433:{port}/"), "redirect-refused"),
        (format!("//b.test:{port}\\@evil.test/"), "redirect-refused"),
    ] {
        let server = Server::saying(to(&location));
        let world = World::new();
        let open = EgressGrant {
            path: domain::egress::PathPattern::parse("/open/**").unwrap(),
            ..grant("b.test", port)
        };
        let error = world
            .read(&server.url(), &[following("a.test", server.port), open])
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.seen()),
            (code, GuestError::Denied),
            "{location}"
        );
        assert_eq!(
            (inside.heads().len(), server.heads().len()),
            (0, 1),
            "{location}"
        );
    }
    let server = Server::saying(to(&format!("http://b.test:{port}/open/x")));
    let world = World::new();
    let read = world
        .read(
            &server.url(),
            &[following("a.test", server.port), grant("b.test", port)],
        )
        .await;
    assert_eq!(read.unwrap(), (200, "inside".to_owned()));
    let hops: Vec<_> = world
        .records()
        .into_iter()
        .map(|record| {
            (
                record.hop,
                record.outcome,
                record.grant,
                record.host.unwrap(),
            )
        })
        .collect();
    assert_eq!(
        hops,
        [
            (0, "redirected", Some(0), "a.test".to_owned()),
            (1, "done", Some(1), "b.test".to_owned())
        ]
    );
}

#[tokio::test]
async fn a_name_that_turns_inward_on_the_second_hop_is_barred_there() {
    let server = Server::saying(to("/again"));
    let world = World::resolving(&[&["127.0.0.1"], &["10.0.0.1"]]);
    assert_eq!(
        world
            .code(&server.url(), &[following("a.test", server.port)])
            .await,
        "address-barred"
    );
    assert_eq!((server.heads().len(), world.records().len()), (1, 2));
}

#[tokio::test]
async fn a_loop_of_redirects_ends_at_the_grants_limit() {
    let server = Server::script(|stream, head| say(stream, to(&format!("/{}", head.len()))));
    for redirects in [1, 5] {
        let world = World::new();
        let before = server.heads().len();
        let grants = [EgressGrant {
            redirects,
            ..server.grant()
        }];
        assert_eq!(world.code(&server.url(), &grants).await, "redirect-refused");
        assert_eq!(server.heads().len() - before, usize::from(redirects) + 1);
        assert_eq!(world.records().len(), usize::from(redirects) + 1);
    }
    // Whatever a grant that nobody checked says, five is the most.
    let world = World::new();
    let grants = [EgressGrant {
        redirects: 50,
        ..server.grant()
    }];
    assert_eq!(world.code(&server.url(), &grants).await, "redirect-refused");
    assert_eq!(world.records().len(), 6);
}

#[tokio::test]
async fn a_credential_does_not_go_along_to_another_origin() {
    let elsewhere = Server::saying(ok(""));
    let server = Server::saying(to(&elsewhere.url()));
    let world = World::new();
    let mut request = world.request(&server.url());
    request
        .bound
        .header(AUTHORIZATION, HeaderValue::from_static("Bearer SK-CANARY"));
    request.headers.insert(
        "referer",
        HeaderValue::from_static("http://a.test/SK-CANARY"),
    );
    request
        .headers
        .insert("accept", HeaderValue::from_static("text/html"));
    world
        .egress
        .send(
            request,
            &[following("a.test", server.port), elsewhere.grant()],
        )
        .await
        .unwrap();
    assert_eq!(server.heads()[0].matches("SK-CANARY").count(), 2);
    assert!(
        elsewhere.heads()[0].contains("accept: text/html")
            && !elsewhere.heads()[0].contains("SK-CANARY")
    );
}

#[tokio::test]
async fn the_time_of_a_request_covers_all_its_hops() {
    let server = Server::script(|stream, _| {
        std::thread::sleep(std::time::Duration::from_millis(150));
        say(stream, to("/again"));
    });
    let world = World::new();
    let grants = [EgressGrant {
        total_ms_max: 400,
        ..following("a.test", server.port)
    }];
    assert_eq!(world.code(&server.url(), &grants).await, "timed-out");
    assert!(server.heads().len() <= 4);
}
