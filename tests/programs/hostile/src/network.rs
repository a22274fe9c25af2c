//! Guests that send what they may not, where they may not.

use crate::CaseResult;
use crate::bindings::wasi::http::outgoing_handler::handle;
use crate::bindings::wasi::http::types::{
    Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme,
};
use crate::bindings::wasi::io::streams::StreamError;
use crate::bindings::wasi::sockets::{
    instance_network::instance_network, ip_name_lookup::resolve_addresses,
};
use plugin::tool::done;
use serde_json::Value;

/// Addresses that no guest may reach, in the form of an authority.
const BARRED: &[&str] = &[
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[2001::1]",
    "[::169.254.169.254]",
    "localhost",
];
/// The same said otherwise, and hosts that are read differently by different readers.
const SPELLINGS: &[&str] = &[
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "127.1",
    "0",
    "0x7f.1",
    "017700000001",
    "１６９.254.169.254",
    "169。254。169。254",
    "169.254.169.254.",
    "LOCALHOST",
    "localhost.",
    "xn--localhost-",
    "[::FFFF:A9FE:A9FE]",
    "[fe80::1%25lo]",
    "user@169.254.169.254",
    "granted.test@169.254.169.254",
    "granted.test#@169.254.169.254",
    "granted.test\\@169.254.169.254",
    "granted.test:80@169.254.169.254",
    "169.254.169.254%00.granted.test",
    "169.254.169.254\t",
    "169.254.169.254\r\nx: y",
    "%31%36%39.254.169.254",
    "169%2e254.169.254",
    "[169.254.169.254]",
    "::1",
    "grаnted.test",
    "",
];

/// One request; what is not said is as harmless as possible.
#[derive(Default)]
struct NetworkCall<'a> {
    method: Option<Method>,
    scheme: Option<Scheme>,
    authority: &'a str,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    trailers: &'a [(&'a str, &'a str)],
    body_bytes: usize,
}

fn fields(pairs: &[(&str, &str)]) -> Result<Fields, String> {
    let fields = Fields::new();
    for (name, value) in pairs {
        fields
            .append(name, value.as_bytes())
            .map_err(|error| format!("{error:?}"))?;
    }
    Ok(fields)
}

/// Returns the result of a request: a status and the length of its body, or the first thing that
/// was refused.
fn asked(asked: &NetworkCall<'_>) -> Result<(u16, usize), String> {
    let request = OutgoingRequest::new(fields(asked.headers)?);
    let refused = |what: &'static str| move |()| format!("{what} not taken");
    request
        .set_method(asked.method.as_ref().unwrap_or(&Method::Get))
        .map_err(refused("method"))?;
    request
        .set_scheme(Some(asked.scheme.as_ref().unwrap_or(&Scheme::Http)))
        .map_err(refused("scheme"))?;
    request
        .set_authority(Some(asked.authority))
        .map_err(refused("authority"))?;
    request
        .set_path_with_query(Some(if asked.path.is_empty() {
            "/"
        } else {
            asked.path
        }))
        .map_err(refused("path"))?;
    let body = request.body().map_err(refused("body"))?;
    let answer = handle(request, None).map_err(|error| format!("{error:?}"))?;
    send(body, asked)?;
    answer.subscribe().block();
    match answer.get() {
        Some(Ok(Ok(response))) => Ok((response.status(), length(&response)?)),
        Some(Ok(Err(error))) => Err(format!("{error:?}")),
        other => Err(format!("{}", other.is_some())),
    }
}

fn send(body: OutgoingBody, asked: &NetworkCall<'_>) -> Result<(), String> {
    if asked.body_bytes > 0 {
        let stream = body.write().map_err(|()| "no stream".to_owned())?;
        for _ in 0..asked.body_bytes.div_ceil(4_096) {
            if stream.blocking_write_and_flush(&[b'x'; 4_096]).is_err() {
                break;
            }
        }
    }
    let trailers = if asked.trailers.is_empty() {
        None
    } else {
        Some(fields(asked.trailers)?)
    };
    // Whether the body was taken, the answer tells.
    let _ = OutgoingBody::finish(body, trailers);
    Ok(())
}

fn length(response: &IncomingResponse) -> Result<usize, String> {
    // The stream has to go before the body that it is of.
    let Ok(body) = response.consume() else {
        return Err("no body".into());
    };
    let Ok(stream) = body.stream() else {
        return Err("no stream".into());
    };
    let mut bytes = 0;
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(read) => bytes += read.len(),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(StreamError::LastOperationFailed(_)) => {
                return Err(format!("broke off after {bytes}"));
            }
        }
    }
}

/// All that were answered, or refused with another error than the others.
fn answered<'a>(all: impl IntoIterator<Item = NetworkCall<'a>>) -> CaseResult {
    let reported: Vec<String> = all
        .into_iter()
        .filter_map(|one| match asked(&one) {
            Err(why)
                if why.contains("HttpRequestDenied")
                    || why.contains("not taken")
                    || why.contains("HttpProtocolError")
                    || why.contains("UriInvalid") =>
            {
                None
            }
            other => Some(format!("{}{}: {other:?}", one.authority, one.path)),
        })
        .collect();
    done(if reported.is_empty() {
        "all refused".to_owned()
    } else {
        reported.join("; ")
    })
}

fn port(arguments: &Value) -> u64 {
    arguments["port"].as_u64().unwrap_or(80)
}

fn at_port<'a>(hosts: &[&str], arguments: &Value) -> Vec<String> {
    hosts
        .iter()
        .flat_map(|host| [(*host).to_owned(), format!("{host}:{}", port(arguments))])
        .collect()
}

pub fn every_address_that_nobody_may_dial_is_refused_before_anything_is_dialled(
    arguments: &Value,
) -> CaseResult {
    let all = at_port(BARRED, arguments);
    answered(all.iter().map(|authority| NetworkCall {
        authority,
        ..NetworkCall::default()
    }))
}

pub fn every_odd_spelling_of_an_address_is_refused(arguments: &Value) -> CaseResult {
    let all = at_port(SPELLINGS, arguments);
    answered(all.iter().map(|authority| NetworkCall {
        authority,
        ..NetworkCall::default()
    }))
}

pub fn whatever_differs_from_the_grant_is_refused(arguments: &Value) -> CaseResult {
    let granted = format!("127.0.0.1:{}", port(arguments));
    let other = format!("127.0.0.1:{}", arguments["other"].as_u64().unwrap_or(80));
    let of = |authority| NetworkCall {
        authority,
        path: "/open/a",
        ..NetworkCall::default()
    };
    let paths = [
        "/",
        "/open/../closed",
        "/open/..%2fclosed",
        "/open/%2e%2e/closed",
        "/OPEN/a",
        "//open/a",
        "/open\\a",
        "http://127.0.0.1/open/a",
    ];
    let methods = [
        Method::Post,
        Method::Delete,
        Method::Connect,
        Method::Trace,
        Method::Other("get".into()),
        Method::Other("G ET".into()),
    ];
    let differing = paths.iter().map(|path| NetworkCall {
        path,
        ..of(&granted)
    });
    let differing = differing.chain(methods.into_iter().map(|method| NetworkCall {
        method: Some(method),
        ..of(&granted)
    }));
    answered(differing.chain([
        of(&other),
        of("127.0.0.1"),
        of("evil127.0.0.1"),
        NetworkCall {
            scheme: Some(Scheme::Https),
            ..of(&granted)
        },
    ]))
}

pub fn headers_that_the_host_sets_are_refused_in_headers_and_trailers(
    arguments: &Value,
) -> CaseResult {
    let authority = format!("127.0.0.1:{}", port(arguments));
    let names = [
        "host",
        "authorization",
        "cookie",
        "proxy-authorization",
        "connection",
        "transfer-encoding",
        "upgrade",
        "te",
        "Host",
    ];
    let mut reported = Vec::new();
    for name in names {
        let pair = [(name, "evil")];
        let of = || NetworkCall {
            authority: &authority,
            path: "/open/a",
            ..NetworkCall::default()
        };
        for (place, one) in [
            (
                "headers",
                NetworkCall {
                    headers: &pair,
                    ..of()
                },
            ),
            (
                "trailers",
                NetworkCall {
                    trailers: &pair,
                    body_bytes: 1,
                    ..of()
                },
            ),
        ] {
            match asked(&one) {
                Err(why) if why.contains("Forbidden") => {}
                other => reported.push(format!("{name} in {place}: {other:?}")),
            }
        }
    }
    done(if reported.is_empty() {
        "all refused".to_owned()
    } else {
        reported.join("; ")
    })
}

pub fn other_protocols_and_upgrades_are_refused(arguments: &Value) -> CaseResult {
    let authority = format!("127.0.0.1:{}", port(arguments));
    let schemes = [
        "file",
        "gopher",
        "unix",
        "ftp",
        "ws",
        "wss",
        "data",
        "javascript",
    ]
    .map(|name| Scheme::Other(name.to_owned()));
    let of = |scheme| NetworkCall {
        scheme: Some(scheme),
        authority: &authority,
        path: "/open/a",
        ..NetworkCall::default()
    };
    let connect = NetworkCall {
        method: Some(Method::Connect),
        authority: &authority,
        path: "/open/a",
        ..NetworkCall::default()
    };
    answered(schemes.into_iter().map(of).chain([connect]))
}

pub fn names_are_looked_up_for_nobody(_: &Value) -> CaseResult {
    let network = instance_network();
    let names = [
        "localhost",
        "secret-of-mine.evil.test",
        "169.254.169.254",
        "",
    ];
    done(
        names
            .iter()
            .filter(|name| resolve_addresses(&network, name).is_ok())
            .count()
            .to_string(),
    )
}

pub fn a_server_without_end_is_cut_at_its_grant(arguments: &Value) -> CaseResult {
    let authority = format!("127.0.0.1:{}", port(arguments));
    done(format!(
        "{:?}",
        asked(&NetworkCall {
            authority: &authority,
            path: "/open/a",
            ..NetworkCall::default()
        })
        .is_ok()
    ))
}

pub fn more_than_the_budget_does_not_leave(arguments: &Value) -> CaseResult {
    let authority = format!("127.0.0.1:{}", port(arguments));
    let one = || NetworkCall {
        method: Some(Method::Post),
        authority: &authority,
        path: "/open/a",
        body_bytes: 8 << 10,
        ..NetworkCall::default()
    };
    done(
        (0..20)
            .filter(|_| asked(&one()).is_ok())
            .count()
            .to_string(),
    )
}
