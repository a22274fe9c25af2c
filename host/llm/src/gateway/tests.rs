//! Tests that need another way to look up names: fault 44.

use super::setup::{Surroundings, gateway};
use super::*;
use crate::delta::NoDeltas;
use crate::failure::Reason;
use crate::tests::prompt;
use domain::model::Usage;
use egress::{RequestPermit, Resolve, Resolving};
use serde_json::json;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

type Lookup = dyn Fn(u32) -> Result<Vec<IpAddr>, ()> + Send + Sync;

/// Looks names up as a test says; nothing at all means that no answer ever comes.
struct Names {
    lookup: Box<Lookup>,
    asked: AtomicU32,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names")
    }
}

impl Resolve for Names {
    fn resolve(&self, _name: String, _request_permit: RequestPermit) -> Resolving {
        let answer = (self.lookup)(self.asked.fetch_add(1, Ordering::Relaxed));
        Box::pin(async move {
            match answer {
                Ok(addresses) if addresses.is_empty() => std::future::pending().await,
                Ok(addresses) => Ok(addresses),
                Err(()) => Err(std::io::Error::other("no such host")),
            }
        })
    }
}

fn gateway_at(port: u16, timeouts: &serde_json::Value, lookup: Box<Lookup>) -> Gateway {
    opening(&["127.0.0.1", "::1"], port, timeouts, lookup)
}

/// A gateway whose provider may be at these addresses.
fn opening(
    private: &[&str],
    port: u16,
    timeouts: &serde_json::Value,
    lookup: Box<Lookup>,
) -> Gateway {
    let base_url = format!("http://model.test:{port}/v1");
    let config = json!({
        "providers": {"p": {"kind": "openai-compatible", "baseUrl": base_url, "privateAddresses": private}},
        "models": {"m": {"provider": "p", "model": "m"}},
        "retry": {"baseMs": 1},
        "timeouts": timeouts,
    });
    let resolver: Arc<dyn Resolve> = Arc::new(Names {
        lookup,
        asked: AtomicU32::new(0),
    });
    let surroundings = Surroundings {
        base: Path::new("."),
        env: &|_| None,
        resolver: Some(resolver),
        supervisor: None,
    };
    gateway(serde_json::from_value(config).unwrap(), &surroundings).unwrap()
}

async fn completed(gateway: &Gateway) -> Completion {
    let prompt = prompt(Vec::new());
    gateway.complete(&prompt, &NoDeltas).await
}

fn reason(completion: &Completion) -> Option<Reason> {
    match completion.result {
        Err(Failure::Unavailable { reason, .. }) => Some(reason),
        _ => None,
    }
}

/// The port of a server that says "hi" to everyone.
async fn serving() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    serve(listener);
    port
}

/// A server that says "hi" to everyone.
#[expect(
    clippy::disallowed_methods,
    reason = "the task ends with the test's runtime"
)]
fn serve(listener: TcpListener) {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let body = r#"{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}"#;
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
}

#[tokio::test]
async fn fault_44_names_that_cannot_be_looked_up_for_a_moment_are_looked_up_again() {
    let port = serving().await;
    let flapping = |asked| {
        if asked < 2 {
            Err(())
        } else {
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        }
    };
    let completion = completed(&gateway_at(port, &json!({}), Box::new(flapping))).await;
    assert!(completion.result.is_ok());
    assert_eq!(completion.attempts.len(), 3);
    assert_eq!(
        completion.attempts[0].usage,
        Some(Usage::default()),
        "nothing was asked, so nothing was used"
    );
}

#[tokio::test]
async fn fault_44_a_lookup_that_never_ends_is_bounded() {
    let timeouts = json!({"connectMs": 50, "totalMs": 1_000});
    let started = Instant::now();
    let gateway = gateway_at(1, &timeouts, Box::new(|_| Ok(Vec::new())));
    let completion = completed(&gateway).await;
    assert!(started.elapsed() < Duration::from_millis(900));
    assert_eq!(completion.attempts.len(), 3);
    assert_eq!(reason(&completion), Some(Reason::Connect));
}

/// The variable that lets a test be skipped which needs IPv6.
const WITHOUT_IPV6: &str = "AGENT_HOST_TESTS_WITHOUT_IPV6";

/// An address at which connections are neither accepted nor refused: its queue is full. None where
/// the machine has no IPv6.
async fn blackhole(port: u16) -> Option<(TcpListener, Vec<TcpStream>)> {
    let socket = TcpSocket::new_v6().ok()?;
    socket
        .bind(SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port))
        .ok()?;
    let listener = socket.listen(0).ok()?;
    let address = listener.local_addr().ok()?;
    let mut waiting = Vec::new();
    for _ in 0..64 {
        match tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(address)).await {
            Ok(Ok(stream)) => waiting.push(stream),
            Ok(Err(_)) => return None,
            Err(_) => return Some((listener, waiting)),
        }
    }
    None
}

#[tokio::test]
async fn fault_44_a_silent_ipv6_address_delays_and_does_not_prevent_the_reply() {
    let port = serving().await;
    let Some(_silent) = blackhole(port).await else {
        let is_known = std::env::var_os(WITHOUT_IPV6).is_some_and(|value| value == "1");
        assert!(
            is_known,
            "this machine has no IPv6 on its loopback interface. Set {WITHOUT_IPV6}=1 to do \
             without what this test proves."
        );
        return;
    };
    let both = |_| {
        Ok(vec![
            IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::from([127, 0, 0, 1]),
        ])
    };
    let started = Instant::now();
    let completion = completed(&gateway_at(
        port,
        &json!({"connectMs": 4_000}),
        Box::new(both),
    ))
    .await;
    assert!(completion.result.is_ok(), "{completion:?}");
    assert_eq!(completion.attempts.len(), 1);
    assert!(started.elapsed() < Duration::from_secs(3));
    let only = |_| Ok(vec![IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    let started = Instant::now();
    let timeouts = json!({"connectMs": 4_000, "totalMs": 200});
    let completion = completed(&gateway_at(port, &timeouts, Box::new(only))).await;
    assert_eq!(reason(&completion), Some(Reason::Deadline));
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "the total time bounds it"
    );
}

/// A provider whose name leads inward is asked nothing unless its addresses are open.
#[tokio::test]
async fn a_provider_whose_name_leads_inward_is_asked_nothing() {
    let port = serving().await;
    let inward = || Box::new(|_| Ok(vec![IpAddr::from([127, 0, 0, 1])]));
    for (private, expected) in [
        (vec![], Some("model-barred")),
        (vec!["10.0.0.0/8"], Some("model-barred")),
        (vec!["127.0.0.0/8"], None),
    ] {
        let completion = completed(&opening(&private, port, &json!({}), inward())).await;
        assert_eq!(
            completion.result.as_ref().err().map(Failure::code),
            expected,
            "{private:?}"
        );
        assert_eq!(completion.attempts.len(), 1);
        if let Err(failure) = completion.result {
            assert!(
                failure
                    .report()
                    .contains("`providers.p.privateAddresses`: 127.0.0.1 is loopback"),
                "{}",
                failure.report()
            );
        }
    }
    let metadata = Box::new(|_| Ok(vec![IpAddr::from([169, 254, 169, 254])]));
    let completion = completed(&opening(&["169.254.0.0/16"], port, &json!({}), metadata)).await;
    assert_eq!(completion.result.unwrap_err().code(), "model-barred");
}

#[tokio::test]
async fn calls_of_one_provider_share_a_connection_and_a_name_is_looked_up_for_the_first() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::new(AtomicU32::new(0));
    let asked = Arc::new(AtomicU32::new(0));
    let connections = accepted.clone();
    let lookups = asked.clone();
    let serving = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        connections.fetch_add(1, Ordering::Relaxed);
        loop {
            let mut request = [0; 4096];
            if stream.read(&mut request).await.unwrap() == 0 {
                return;
            }
            let events = "data: \
                 {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: \
                        chunked\r\n\r\n";
            stream
                .write_all(format!("{head}{:x}\r\n{events}\r\n0\r\n\r\n", events.len()).as_bytes())
                .await
                .unwrap();
        }
    };
    let lookup = move |_| {
        lookups.fetch_add(1, Ordering::Relaxed);
        Ok(vec![IpAddr::from([127, 0, 0, 1])])
    };
    let gateway = gateway_at(port, &json!({}), Box::new(lookup));
    let asking = async {
        for _ in 0..5 {
            let completion = completed(&gateway).await;
            assert!(completion.result.is_ok(), "{completion:?}");
        }
    };
    tokio::select! {
        () = asking => {}
        () = serving => panic!("the connection was closed"),
    }
    assert_eq!(
        (
            accepted.load(Ordering::Relaxed),
            asked.load(Ordering::Relaxed)
        ),
        (1, 1)
    );
}
