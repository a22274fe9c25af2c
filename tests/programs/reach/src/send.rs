//! A request as its arguments say, headers and body included. Its whole response is returned,
//! logged and noted and, if asked for, goes into a panic.

use super::bindings::wasi::http::outgoing_handler::handle;
use super::bindings::wasi::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    Scheme,
};
use super::bindings::wasi::io::streams::StreamError;
use plugin::tool::{Progress, ToolError, done};
use serde_json::Value;

/// Bytes of a body that are read at once: few, so that a secret that comes in chunks is read in
/// chunks.
const READ_BYTES: u64 = 7;

/// Sends what the arguments say, and ends as `end` says: `fail`, `trap`, or well.
pub(super) fn send(arguments: &Value) -> Result<Progress, ToolError> {
    let reported = sent(arguments).unwrap_or_else(|error| error);
    println!("answer: {reported}");
    eprintln!("answer: {reported}");
    plugin::tool::agent_host::plugin::progress::note(&reported);
    match arguments["end"].as_str() {
        Some("fail") => Err(ToolError::Failed(reported)),
        Some("trap") => panic!("{reported}"),
        _ => done(reported),
    }
}

fn sent(arguments: &Value) -> Result<String, String> {
    let text = |name: &str| arguments[name].as_str().unwrap_or_default();
    let headers = Fields::new();
    for header in arguments["headers"].as_array().into_iter().flatten() {
        let name = header[0].as_str().unwrap_or_default();
        let value = header[1].as_str().unwrap_or_default();
        headers
            .append(name, value.as_bytes())
            .map_err(|error| format!("header {name}: {error:?}"))?;
    }
    let request = OutgoingRequest::new(headers);
    let invalid = |()| "invalid".to_owned();
    let (scheme, rest) = text("url").split_once("://").ok_or("no url")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    request
        .set_scheme(Some(&if scheme == "http" {
            Scheme::Http
        } else {
            Scheme::Https
        }))
        .map_err(invalid)?;
    request
        .set_authority(Some(authority))
        .map_err(|()| "invalid authority")?;
    request
        .set_path_with_query(Some(if path.is_empty() { "/" } else { path }))
        .map_err(|()| "invalid path")?;
    if !text("body").is_empty() {
        request.set_method(&Method::Post).map_err(invalid)?;
        let body = request.body().map_err(invalid)?;
        let stream = body.write().map_err(invalid)?;
        stream
            .blocking_write_and_flush(text("body").as_bytes())
            .map_err(|error| format!("{error:?}"))?;
        drop(stream);
        OutgoingBody::finish(body, None).map_err(|error| format!("{error:?}"))?;
    }
    let answer = handle(request, None).map_err(|error| format!("{error:?}"))?;
    answer.subscribe().block();
    match answer.get() {
        Some(Ok(Ok(response))) => Ok(read(&response)),
        Some(Ok(Err(error))) => Err(format!("{error:?}")),
        _ => Err(format!("{:?}", ErrorCode::InternalError(None))),
    }
}

/// Status, headers, body and trailers.
fn read(response: &IncomingResponse) -> String {
    let fields = |fields: &Fields| -> String {
        fields
            .entries()
            .iter()
            .map(|(name, value)| format!("{name}: {}; ", String::from_utf8_lossy(value)))
            .collect()
    };
    let mut reported = format!("{} {}", response.status(), fields(&response.headers()));
    let Ok(body) = response.consume() else {
        return reported;
    };
    let Ok(stream) = body.stream() else {
        return reported;
    };
    let mut all = Vec::new();
    loop {
        match stream.blocking_read(READ_BYTES) {
            Ok(bytes) => all.extend(bytes),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(_)) => return format!("{reported} and broke off"),
        }
    }
    drop(stream);
    reported.push_str(&String::from_utf8_lossy(&all));
    let trailers = IncomingBody::finish(body);
    trailers.subscribe().block();
    if let Some(Ok(Ok(Some(trailers)))) = trailers.get() {
        reported.push_str(&fields(&trailers));
    }
    reported
}
