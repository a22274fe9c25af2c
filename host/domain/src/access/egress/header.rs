//! Headers: those that a guest may set in a request, those that it sees of a response, and those
//! that must not be in trailers.
//!
//! Names are compared in lower case, as HTTP parsers return them.

/// The treatment of a guest's request header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestHeader {
    /// It is sent unchanged.
    Sent,
    /// The host sets it itself, or leaves it out; the guest's is removed.
    HostsOwn,
    /// A credential: only the host sets it, from a secret that the operator bound.
    Credential,
    /// It would change the destination of the request, its framing, or the facts that a rule
    /// checked: the request is refused.
    Forbidden,
}

/// Headers of one connection only (RFC 9110, section 7.6.1), or of the way to it.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that change the destination of the request or its apparent client. Servers use others in
/// place of the checked method and path.
const MISLEADING: &[&str] = &[
    "cf-connecting-ip",
    "expect",
    "forwarded",
    "host",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
    // Metadata services of clouds answer only requests with these.
    "metadata",
    "metadata-flavor",
    "x-aws-ec2-metadata-token",
    "x-aws-ec2-metadata-token-ttl-seconds",
    "x-google-metadata-request",
];

/// Credentials by their usual names.
pub const CREDENTIALS: &[&str] = &[
    "api-key",
    "authorization",
    "cookie",
    "cookie2",
    "x-amz-security-token",
    "x-api-key",
    "x-auth-token",
    "x-access-token",
    "x-goog-api-key",
    "x-functions-key",
    "x-vault-token",
    "private-token",
    "ocp-apim-subscription-key",
];

/// Headers that the host sets itself: the length that it counts, and the encodings that it can
/// decode within limits.
const HOSTS_OWN: &[&str] = &["accept-encoding", "content-length"];

/// Headers by which a server sends part of its response, or all of it in another form. An echo of a
/// secret would be cut in two, or not be found.
const DIVIDING: &[&str] = &[
    "a-im",
    "accept-charset",
    "if-range",
    "range",
    "request-range",
    "x-range",
];

/// Character sets in which visible ASCII is encoded as ASCII, besides those that begin as
/// [`ASCII_FAMILIES`] say.
const ASCII_CHARSETS: &[&str] = &[
    "utf-8", "utf8", "us-ascii", "ascii", "gb18030", "gbk", "gb2312", "euc-jp", "euc-kr", "koi8-r",
    "koi8-u",
];
const ASCII_FAMILIES: &[&str] = &["iso-8859-", "windows-125"];

/// Headers of a response that a guest does not see, besides those of one connection only. They are
/// session tokens, and alternative routes to the server.
const WITHHELD: &[&str] = &["alt-svc", "clear-site-data", "set-cookie", "set-cookie2"];

/// Fields that must not follow a body because they are needed before it. They are those of RFC
/// 9110, section 6.5.1, in addition to all forbidden ones above.
const NOT_IN_TRAILERS: &[&str] = &[
    "age",
    "cache-control",
    "content-encoding",
    "content-range",
    "content-type",
    "date",
    "expires",
    "location",
    "max-forwards",
    "pragma",
    "range",
    "retry-after",
    "vary",
    "warning",
    "www-authenticate",
];

fn has(list: &[&str], name: &str) -> bool {
    list.iter().any(|entry| name.eq_ignore_ascii_case(entry))
}

fn starts(name: &str, with: &str) -> bool {
    name.get(..with.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(with))
}

/// Returns the treatment of a guest's request header.
#[must_use]
pub fn request_header(name: &str) -> RequestHeader {
    // Servers pass headers to programs as variables, where both characters become the same.
    let name = name.replace('_', "-");
    let name = name.as_str();
    let misleading =
        has(MISLEADING, name) || starts(name, "x-forwarded-") || starts(name, "x-envoy-");
    if misleading || has(HOP_BY_HOP, name) || starts(name, "proxy-") {
        RequestHeader::Forbidden
    } else if has(CREDENTIALS, name) {
        RequestHeader::Credential
    } else if has(HOSTS_OWN, name) {
        RequestHeader::HostsOwn
    } else {
        RequestHeader::Sent
    }
}

/// Returns whether a guest sees a header of a response.
#[must_use]
pub fn response_header(name: &str) -> bool {
    !(has(HOP_BY_HOP, name) || has(WITHHELD, name) || starts(name, "proxy-"))
}

/// Returns whether a field is allowed in trailers, of a request or of a response.
#[must_use]
pub fn trailer(name: &str) -> bool {
    request_header(name) == RequestHeader::Sent
        && response_header(name)
        && !has(NOT_IN_TRAILERS, name)
}

/// Returns whether a header must not be sent together with a secret. Otherwise the response could
/// not be searched for the secret.
#[must_use]
pub fn divides_echo(name: &str) -> bool {
    has(DIVIDING, &name.replace('_', "-"))
}

/// Returns whether a response of this `content-type` can be searched for a secret. It can if it has
/// no character set, or one that contains ASCII unchanged.
#[must_use]
pub fn shows_ascii(content_type: &str) -> bool {
    let parameters = content_type
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='));
    let mut charsets = parameters
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .map(|(_, value)| value);
    charsets.all(|charset| {
        let charset = charset
            .trim()
            .trim_matches(|quote| matches!(quote, '"' | '\''));
        charset.is_empty()
            || has(ASCII_CHARSETS, charset)
            || ASCII_FAMILIES.iter().any(|family| starts(charset, family))
    })
}

/// Returns whether a guest's header is kept when a redirect leads to another origin.
#[must_use]
pub fn crosses_origins(name: &str) -> bool {
    request_header(name) == RequestHeader::Sent && !has(&["origin", "referer"], name)
}

#[cfg(test)]
mod tests {
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
}
