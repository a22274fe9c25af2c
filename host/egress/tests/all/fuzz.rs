//! Fuzz target: whatever a server answers, a request ends in time, within its limits, and is on
//! record once.

use crate::fixture::{World, grant};
use domain::egress::EgressGrant;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::time::timeout;

const CHUNKS: [&[u8]; 40] = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 204 None\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 302 Found\r\n",
    b"HTTP/2 200\r\n",
    b"HTTP/1.1 99999 x\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b": ",
    b"content-length: ",
    b"transfer-encoding: chunked\r\n",
    b"transfer-encoding: gzip, chunked\r\n",
    b"content-encoding: gzip\r\n",
    b"content-encoding: br\r\n",
    b"connection: close\r\n",
    b"connection: keep-alive\r\n",
    b"location: /open\r\n",
    b"location: http://[::1]/\r\n",
    b"location: //elsewhere\r\n",
    b"x: y\r\n",
    b"set-cookie: a=b\r\n",
    b"trailer: x\r\n",
    b"0\r\n",
    b"5\r\nhello\r\n",
    b"ffffffffffffffff\r\n",
    b"-1\r\n",
    b"1",
    b"0",
    b" ",
    b"\t",
    b"\0",
    b"\xff",
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
    b"\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00",
    b"hello",
    b"upgrade: h2c\r\n",
    b"HTTP/1.1 101 Switching\r\n",
    b";x=y\r\n",
];
/// Bytes of an answer that the grant lets through.
const BODY_BYTES_MAX: u64 = 64;
/// The time that a request may take; the server hangs up when it has sent everything.
const PATIENCE: Duration = Duration::from_secs(5);

fn answer(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .filter_map(|byte| CHUNKS.get(usize::from(*byte) % CHUNKS.len()))
        .copied()
        .flatten()
        .copied()
        .collect()
}

#[test]
fn any_answer_ends_in_time_within_its_limits_and_on_record() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime
        .block_on(TcpListener::bind(("127.0.0.1", 0)))
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let grants = [EgressGrant {
        response_bytes_max: BODY_BYTES_MAX,
        redirects: 1,
        ..grant("127.0.0.1", port)
    }];
    let url = format!("http://127.0.0.1:{port}/open");
    // The fuzzer goes on after a panic, with a runtime and a listener that are as before.
    let state = Mutex::new((runtime, listener));
    bolero::check!()
        .with_type::<(bool, Vec<u8>)>()
        .for_each(|(begun, chunks)| {
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let (runtime, listener) = &*state;
            let mut said = if *begun {
                b"HTTP/1.1 200 OK\r\n".to_vec()
            } else {
                Vec::new()
            };
            said.extend(answer(chunks));
            let world = World::resolving(&[&["127.0.0.1"]]);
            let serving = async {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let _ = stream.read(&mut [0; 1_024]).await;
                    let _ = stream.write_all(&said).await;
                }
            };
            let asked = runtime.block_on(async {
                tokio::select! {
                    asked = timeout(PATIENCE, world.read(&url, &grants)) => asked,
                    () = serving => unreachable!("it serves without end"),
                }
            });
            let ended =
                asked.unwrap_or_else(|_| panic!("no end of {:?}", String::from_utf8_lossy(&said)));
            if let Ok((status, body)) = &ended {
                assert!((200..600).contains(status), "{status}");
                // A byte that is no UTF-8 is shown as three.
                assert!(body.len() as u64 <= 3 * BODY_BYTES_MAX, "{body:?}");
            }
            let records = world.records();
            assert!((1..=2).contains(&records.len()), "{records:?}");
            let last = records.last().unwrap();
            assert_eq!(
                ended.is_ok(),
                last.outcome == "done",
                "{ended:?} is on record as {last:?}"
            );
        });
}
