//! A tool that reaches for what was not granted, and one that fetches a URL. They report the
//! refusals and the result. The program imports all of WASI, as guests of other languages do.

mod send;

use bindings::wasi::cli::{
    environment, exit, stderr, stdin, stdout, terminal_stderr, terminal_stdin, terminal_stdout,
};
use bindings::wasi::clocks::{monotonic_clock, wall_clock};
use bindings::wasi::filesystem::preopens;
use bindings::wasi::http::outgoing_handler::handle;
use bindings::wasi::http::types::{
    ErrorCode, Fields, IncomingResponse, Method, OutgoingRequest, Scheme,
};
use bindings::wasi::io::streams::StreamError;
use bindings::wasi::random::{insecure, insecure_seed, random};
use bindings::wasi::sockets::instance_network::instance_network;
use bindings::wasi::sockets::ip_name_lookup::resolve_addresses;
use bindings::wasi::sockets::network::IpAddressFamily;
use bindings::wasi::sockets::tcp_create_socket::create_tcp_socket;
use bindings::wasi::sockets::udp_create_socket::create_udp_socket;
use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};
use serde_json::Value;

/// Time that it sleeps, in nanoseconds: longer than the resolution of the clocks.
const SLEEP_NS: u64 = 3_000_000;

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        let fetch = ToolDefinition {
            capabilities: vec!["net.http".into()],
            ..named("fetch")
        };
        let send = ToolDefinition {
            capabilities: vec!["net.http".into(), "secrets.use".into()],
            ..named("send_request")
        };
        let environment = ToolDefinition {
            capabilities: vec!["env.read".into()],
            ..named("environment")
        };
        ["reach", "sense", "leave"]
            .map(named)
            .into_iter()
            .chain([fetch, send, environment])
            .collect()
    }

    fn call(_context: CallContext, name: String, arguments: String) -> Result<Progress, ToolError> {
        let arguments: Value = serde_json::from_str(&arguments)
            .map_err(|error| ToolError::InvalidArguments(error.to_string()))?;
        match name.as_str() {
            "send_request" => send::send(&arguments),
            "fetch" => {
                // So many others before it, each to another port of nobody's.
                for port in 1..=arguments["decoys"].as_u64().unwrap_or(0) {
                    _ = fetched(
                        &serde_json::json!({ "url": format!("http://decoy.invalid:{port}/") }),
                    );
                }
                let first = fetched(&arguments);
                // The second is fetched only after the first was answered.
                let then = &arguments["then"];
                if then.is_string() && first.is_ok() {
                    _ = fetched(&serde_json::json!({ "url": then }));
                }
                done(first.unwrap_or_else(|error| format!("{error:?}")))
            }
            "environment" => done(format!(
                "{:?} {:?} {:?}",
                environment::get_environment(),
                environment::get_arguments(),
                environment::initial_cwd()
            )),
            "sense" => done(format!("{:?} {}", sense(), has_terminal())),
            "leave" => {
                exit::exit(Err(()));
                done("still here")
            }
            _ => reach(),
        }
    }
}

plugin::tool::export!(Program);

fn reach() -> Result<Progress, ToolError> {
    let bucket = bindings::wasi::keyvalue::store::open("secrets").err();
    let socket = create_tcp_socket(IpAddressFamily::Ipv4).err();
    let datagrams = create_udp_socket(IpAddressFamily::Ipv6).err();
    let address = resolve_addresses(&instance_network(), "localhost").err();
    let place = environment::initial_cwd().iter().count();
    let home = environment::get_environment().len()
        + environment::get_arguments().len()
        + place
        + preopens::get_directories().len();
    let folder = std::fs::read_dir("/").is_err();
    done(format!(
        "{bucket:?} | {socket:?} | {datagrams:?} | {address:?} | {home} | {folder} | {}",
        request()
    ))
}

/// Tests the imports that every guest may have: clocks, chance, and streams with nothing at their
/// other end.
fn sense() -> [bool; 5] {
    let began = monotonic_clock::now();
    monotonic_clock::subscribe_duration(SLEEP_NS).block();
    let (low, high) = insecure_seed::insecure_seed();
    [
        monotonic_clock::now() > began,
        wall_clock::now().seconds > 0,
        [
            random::get_random_u64(),
            insecure::get_insecure_random_u64(),
            low,
            high,
        ]
        .iter()
        .any(|number| *number > 0),
        matches!(
            stdin::get_stdin().blocking_read(1),
            Err(StreamError::Closed)
        ),
        stdout::get_stdout()
            .blocking_flush()
            .and(stderr::get_stderr().blocking_flush())
            .is_ok(),
    ]
}

fn has_terminal() -> bool {
    let input = terminal_stdin::get_terminal_stdin().is_some();
    input
        || terminal_stdout::get_terminal_stdout().is_some()
        || terminal_stderr::get_terminal_stderr().is_some()
}

fn request() -> String {
    let request = OutgoingRequest::new(Fields::new());
    let addressed = request
        .set_authority(Some("169.254.169.254"))
        .and(request.set_path_with_query(Some("/")));
    match handle(request, None) {
        Err(error) => format!("not sent: {addressed:?} {error:?}"),
        Ok(response) => {
            response.subscribe().block();
            match response.get() {
                Some(Ok(Err(error))) => format!("{error:?}"),
                other => format!("{}", other.is_some()),
            }
        }
    }
}

/// Fetches `url` by `method`: the status and the body.
fn fetched(arguments: &Value) -> Result<String, ErrorCode> {
    let url = arguments["url"].as_str().unwrap_or_default();
    let (scheme, rest) = url
        .split_once("://")
        .ok_or(ErrorCode::HttpRequestUriInvalid)?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let request = OutgoingRequest::new(Fields::new());
    let addressed = request
        .set_scheme(Some(&if scheme == "http" {
            Scheme::Http
        } else {
            Scheme::Https
        }))
        .and(request.set_authority(Some(authority)))
        .and(request.set_path_with_query(Some(if path.is_empty() { "/" } else { path })))
        .and(request.set_method(&if arguments["method"] == "POST" {
            Method::Post
        } else {
            Method::Get
        }));
    addressed.map_err(|()| ErrorCode::HttpRequestUriInvalid)?;
    let answer = handle(request, None)?;
    answer.subscribe().block();
    let Some(Ok(response)) = answer.get() else {
        return Err(ErrorCode::InternalError(None));
    };
    response.map(|response| read(&response))
}

fn read(response: &IncomingResponse) -> String {
    let Ok(body) = response.consume() else {
        return "no body".into();
    };
    let Ok(stream) = body.stream() else {
        return "no stream".into();
    };
    let mut all = Vec::new();
    let end = loop {
        match stream.blocking_read(4_096) {
            Ok(bytes) => all.extend(bytes),
            Err(StreamError::Closed) => break "",
            Err(StreamError::LastOperationFailed(_)) => break " and broke off",
        }
    };
    format!(
        "{} {}{end}",
        response.status(),
        String::from_utf8_lossy(&all)
    )
}

mod bindings {
    wit_bindgen::generate!({
        path: ["../../../wit/deps/keyvalue", "wit"],
        world: "test:reach/reach",
        generate_all,
    });
}
