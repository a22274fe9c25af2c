//! Requests: what can be built without leaving the guest, and what comes of sending one. The server
//! breaks its answer off, so that there is an error to ask about.

use crate::{NO_HANDLE, Rows, empty, said, with_handle};
use wasip2::filesystem::types::filesystem_error_code;
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    OutgoingResponse, RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::StreamError;

const TYPES: &str = "wasi:http/types.";

pub(crate) fn probe(rows: &mut Rows, url: &str) {
    fields(rows);
    options(rows);
    let (request, body) = request(rows, url);
    response(rows);
    let _ = OutgoingBody::finish(body, None);
    let sent = handle(request, None);
    rows.say("wasi:http/outgoing-handler.handle", said(&sent));
    let sent = sent.ok();
    rows.say(
        &format!("{TYPES}[method]future-incoming-response.subscribe"),
        with_handle(sent.as_ref(), |sent| {
            sent.subscribe().block();
            "answers".to_owned()
        }),
    );
    let answer = sent.as_ref().and_then(|sent| sent.get());
    rows.say(
        &format!("{TYPES}[method]future-incoming-response.get"),
        with_handle(answer.as_ref(), |answer| match answer {
            Ok(answer) => said(answer),
            Err(()) => "twice".to_owned(),
        }),
    );
    let response = answer.and_then(Result::ok).and_then(Result::ok);
    incoming(rows, response.as_ref());
}

fn fields(rows: &mut Rows) {
    let fields = Fields::new();
    rows.say(&format!("{TYPES}[constructor]fields"), "answers");
    let name = "x-probe".to_owned();
    rows.say(
        &format!("{TYPES}[static]fields.from-list"),
        said(&Fields::from_list(&[(name.clone(), b"1".to_vec())])),
    );
    let mut say =
        |function: &str, what: String| rows.say(&format!("{TYPES}[method]fields.{function}"), what);
    say("set", said(&fields.set(&name, &[b"1".to_vec()])));
    say("append", said(&fields.append(&name, b"2")));
    say("get", empty(fields.get(&name).is_empty()).to_owned());
    say("has", empty(!fields.has(&name)).to_owned());
    say("entries", empty(fields.entries().is_empty()).to_owned());
    say(
        "clone",
        empty(fields.clone().entries().is_empty()).to_owned(),
    );
    say("delete", said(&fields.delete(&name)));
}

fn options(rows: &mut Rows) {
    let options = RequestOptions::new();
    rows.say(&format!("{TYPES}[constructor]request-options"), "answers");
    let mut say = |function: &str, what: String| {
        rows.say(&format!("{TYPES}[method]request-options.{function}"), what)
    };
    say(
        "set-connect-timeout",
        said(&options.set_connect_timeout(Some(1))),
    );
    say(
        "set-first-byte-timeout",
        said(&options.set_first_byte_timeout(Some(1))),
    );
    say(
        "set-between-bytes-timeout",
        said(&options.set_between_bytes_timeout(Some(1))),
    );
    say(
        "connect-timeout",
        empty(options.connect_timeout().is_none()).to_owned(),
    );
    say(
        "first-byte-timeout",
        empty(options.first_byte_timeout().is_none()).to_owned(),
    );
    say(
        "between-bytes-timeout",
        empty(options.between_bytes_timeout().is_none()).to_owned(),
    );
}

fn request(rows: &mut Rows, url: &str) -> (OutgoingRequest, OutgoingBody) {
    let authority = url.trim_start_matches("http://").trim_end_matches('/');
    let authority = if authority.is_empty() {
        "localhost"
    } else {
        authority
    };
    let request = OutgoingRequest::new(Fields::new());
    rows.say(&format!("{TYPES}[constructor]outgoing-request"), "answers");
    let mut say = |function: &str, what: String| {
        rows.say(&format!("{TYPES}[method]outgoing-request.{function}"), what)
    };
    say("set-method", said(&request.set_method(&Method::Post)));
    say("set-scheme", said(&request.set_scheme(Some(&Scheme::Http))));
    say(
        "set-authority",
        said(&request.set_authority(Some(authority))),
    );
    say(
        "set-path-with-query",
        said(&request.set_path_with_query(Some("/"))),
    );
    request.method();
    say("method", "answers".to_owned());
    say("scheme", empty(request.scheme().is_none()).to_owned());
    say("authority", empty(request.authority().is_none()).to_owned());
    say(
        "path-with-query",
        empty(request.path_with_query().is_none()).to_owned(),
    );
    request.headers();
    say("headers", "answers".to_owned());
    let body = request.body();
    say("body", said(&body));
    let body = body.expect("it was not taken before");
    rows.say(
        &format!("{TYPES}[method]outgoing-body.write"),
        said(&body.write()),
    );
    (request, body)
}

fn response(rows: &mut Rows) {
    let response = OutgoingResponse::new(Fields::new());
    rows.say(&format!("{TYPES}[constructor]outgoing-response"), "answers");
    let mut say = |function: &str, what: String| {
        rows.say(
            &format!("{TYPES}[method]outgoing-response.{function}"),
            what,
        )
    };
    say("set-status-code", said(&response.set_status_code(204)));
    say("status-code", empty(response.status_code() == 0).to_owned());
    response.headers();
    say("headers", "answers".to_owned());
    let body = response.body();
    say("body", said(&body));
    let finished = body.map(|body| said(&OutgoingBody::finish(body, None)));
    rows.say(
        &format!("{TYPES}[static]outgoing-body.finish"),
        finished.unwrap_or_else(|()| NO_HANDLE.to_owned()),
    );
}

fn incoming(rows: &mut Rows, response: Option<&IncomingResponse>) {
    let mut say = |function: &str, what: String| rows.say(&format!("{TYPES}{function}"), what);
    say(
        "[method]incoming-response.status",
        with_handle(response, |response| {
            empty(response.status() == 0).to_owned()
        }),
    );
    say(
        "[method]incoming-response.headers",
        with_handle(response, |response| {
            empty(response.headers().entries().is_empty()).to_owned()
        }),
    );
    let body = response.map(IncomingResponse::consume);
    say(
        "[method]incoming-response.consume",
        with_handle(body.as_ref(), said),
    );
    let body = body.and_then(Result::ok);
    let stream = body.as_ref().map(IncomingBody::stream);
    say(
        "[method]incoming-body.stream",
        with_handle(stream.as_ref(), said),
    );
    let error = stream.and_then(Result::ok).and_then(|stream| {
        loop {
            match stream.blocking_read(64) {
                Ok(_) => {}
                Err(StreamError::LastOperationFailed(error)) => break Some(error),
                Err(StreamError::Closed) => break None,
            }
        }
    });
    say(
        "http-error-code",
        with_handle(error.as_ref(), |error| {
            empty(http_error_code(error).is_none()).to_owned()
        }),
    );
    let trailers = body.map(IncomingBody::finish);
    say(
        "[static]incoming-body.finish",
        with_handle(trailers.as_ref(), |_| "answers".to_owned()),
    );
    say(
        "[method]future-trailers.subscribe",
        with_handle(trailers.as_ref(), |trailers| {
            trailers.subscribe().block();
            "answers".to_owned()
        }),
    );
    say(
        "[method]future-trailers.get",
        with_handle(trailers.as_ref(), |trailers| {
            empty(trailers.get().is_none()).to_owned()
        }),
    );
    let code = with_handle(error.as_ref(), |error| {
        empty(filesystem_error_code(error).is_none()).to_owned()
    });
    rows.say("wasi:filesystem/types.filesystem-error-code", code);
    let text = with_handle(error.as_ref(), |error| {
        empty(error.to_debug_string().is_empty()).to_owned()
    });
    rows.say("wasi:io/error.[method]error.to-debug-string", text);
}
