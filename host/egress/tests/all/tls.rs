//! TLS: the certificate must be the host's, and the host is the one that was checked.

use crate::fixture::{Answers, World, client_tls, grant};
use agent_host_egress::{GuestError, Limits};
use domain::egress::{EgressGrant, Scheme};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

const CERTIFICATE: &[u8] = include_bytes!("../data/tls.test.cert.pem");
const KEY: &[u8] = include_bytes!("../data/tls.test.key.pem");

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(CERTIFICATE).unwrap()
}

/// A server that answers over TLS, and the names that clients asked it for.
fn server(answer: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(
        vec![certificate()],
        PrivateKeyDer::from_pem_slice(KEY).unwrap(),
    )
    .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let names = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&names);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream.unwrap());
            let mut head = [0; 4_096];
            let Ok(read) = stream.read(&mut head) else {
                continue;
            };
            let host = String::from_utf8_lossy(head.get(..read).unwrap_or_default())
                .lines()
                .find(|line| line.starts_with("host: "))
                .unwrap_or_default()
                .to_owned();
            seen.lock().unwrap().push(format!(
                "{} {host}",
                stream.conn.server_name().unwrap_or("no name")
            ));
            _ = stream.write_all(answer.as_bytes());
            stream.conn.send_close_notify();
            _ = stream.flush();
        }
    });
    (port, names)
}

fn world(trusted: bool) -> World {
    let mut roots = rustls::RootCertStore::empty();
    if trusted {
        roots.add(certificate()).unwrap();
    }
    World::over(
        Answers::of(&[&["127.0.0.1"]]),
        Limits::default(),
        client_tls(roots),
    )
}

fn secure(host: &str, port: u16) -> EgressGrant {
    EgressGrant {
        schemes: vec![Scheme::Https],
        redirects: 5,
        ..grant(host, port)
    }
}

#[tokio::test]
async fn the_server_is_asked_for_the_host_that_was_checked() {
    let (port, names) = server("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret");
    let read = world(true)
        .read(
            &format!("https://TLS.test.:{port}/"),
            &[secure("tls.test", port)],
        )
        .await
        .unwrap();
    assert_eq!(read, (200, "secret".to_owned()));
    assert_eq!(
        *names.lock().unwrap(),
        [format!("tls.test host: tls.test:{port}")]
    );
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_or_for_another_host_gets_no_request() {
    let (port, names) = server("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    for (trusted, host) in [
        (false, "tls.test"),
        (true, "other.test"),
        (true, "127.0.0.1"),
    ] {
        let world = world(trusted);
        let error = world
            .get(&format!("https://{host}:{port}/"), &[secure(host, port)])
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.seen()),
            ("tls-failed", GuestError::Unreachable),
            "{host}"
        );
        assert_eq!(world.records()[0].bytes_out, 0);
    }
    assert!(names.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_redirect_never_leads_out_of_tls() {
    let (port, _) =
        server("HTTP/1.1 302 Found\r\nlocation: http://tls.test/\r\ncontent-length: 0\r\n\r\n");
    let grants = [secure("tls.test", port), grant("tls.test", 80)];
    assert_eq!(
        world(true)
            .code(&format!("https://tls.test:{port}/"), &grants)
            .await,
        "redirect-refused"
    );
}
