//! Tests of headers: what a guest may send and what it sees.

use super::*;

#[test]
fn a_guest_cannot_say_where_a_request_goes_how_it_is_framed_or_who_sends_it() {
    for (name, expected) in [
        ("accept", RequestHeader::Sent),
        ("content-type", RequestHeader::Sent),
        ("user-agent", RequestHeader::Sent),
        ("x-request-id", RequestHeader::Sent),
        ("accept-encoding", RequestHeader::HostsOwn),
        ("content-length", RequestHeader::HostsOwn),
        ("authorization", RequestHeader::Credential),
        ("Authorization", RequestHeader::Credential),
        ("cookie", RequestHeader::Credential),
        ("x-api-key", RequestHeader::Credential),
        ("host", RequestHeader::Forbidden),
        ("HOST", RequestHeader::Forbidden),
        ("connection", RequestHeader::Forbidden),
        ("transfer-encoding", RequestHeader::Forbidden),
        ("te", RequestHeader::Forbidden),
        ("trailer", RequestHeader::Forbidden),
        ("upgrade", RequestHeader::Forbidden),
        ("expect", RequestHeader::Forbidden),
        ("proxy-authorization", RequestHeader::Forbidden),
        ("proxy-connection", RequestHeader::Forbidden),
        ("x-forwarded-host", RequestHeader::Forbidden),
        ("x-http-method-override", RequestHeader::Forbidden),
        ("x-original-url", RequestHeader::Forbidden),
        ("metadata-flavor", RequestHeader::Forbidden),
        ("true-client-ip", RequestHeader::Forbidden),
        ("x-client-ip", RequestHeader::Forbidden),
        ("cf-connecting-ip", RequestHeader::Forbidden),
        ("x-original-host", RequestHeader::Forbidden),
        ("X_Forwarded_For", RequestHeader::Forbidden),
        ("x_http_method-override", RequestHeader::Forbidden),
        ("transfer_encoding", RequestHeader::Forbidden),
        ("x_api_key", RequestHeader::Credential),
        ("content_length", RequestHeader::HostsOwn),
        ("x_request_id", RequestHeader::Sent),
    ] {
        assert_eq!(request_header(name), expected, "{name}");
    }
}

#[test]
fn a_guest_sees_no_session_token_and_nothing_of_the_connection() {
    for (name, expected) in [
        ("content-type", true),
        ("location", true),
        ("www-authenticate", true),
        ("set-cookie", false),
        ("connection", false),
        ("upgrade", false),
        ("proxy-authenticate", false),
        ("alt-svc", false),
    ] {
        assert_eq!(response_header(name), expected, "{name}");
    }
}

#[test]
fn nothing_hides_in_trailers_that_is_forbidden_in_headers() {
    for (name, expected) in [
        ("server-timing", true),
        ("x-checksum", true),
        ("host", false),
        ("authorization", false),
        ("content-length", false),
        ("transfer-encoding", false),
        ("set-cookie", false),
        ("content-encoding", false),
        ("location", false),
    ] {
        assert_eq!(trailer(name), expected, "{name}");
    }
}

#[test]
fn what_would_divide_or_recode_an_answer_is_known() {
    for (name, expected) in [
        ("range", true),
        ("If-Range", true),
        ("if_range", true),
        ("accept-charset", true),
        ("accept", false),
        ("if-match", false),
    ] {
        assert_eq!(divides_echo(name), expected, "{name}");
    }
    for (content_type, expected) in [
        ("application/json", true),
        ("text/html; charset=utf-8", true),
        ("text/html; charset=\"UTF-8\"", true),
        ("text/html;charset=iso-8859-1", true),
        ("text/html; charset=utf-16", false),
        ("text/html; x=y; CHARSET = utf-16le", false),
        ("text/plain; charset=utf-7", false),
        ("text/plain; charset=ibm037", false),
        ("text/plain; charset=utf-8; charset=utf-32", false),
    ] {
        assert_eq!(shows_ascii(content_type), expected, "{content_type}");
    }
}

#[test]
fn what_names_the_origin_that_was_left_stays_there() {
    for (name, expected) in [
        ("accept", true),
        ("referer", false),
        ("origin", false),
        ("cookie", false),
        ("authorization", false),
    ] {
        assert_eq!(crosses_origins(name), expected, "{name}");
    }
}
