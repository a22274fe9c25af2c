//! A file as a response: uploaded bytes, which no browser may take for a page of this host.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use domain::file::{File, UNKNOWN_MEDIA_TYPE};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use std::fmt::Write as _;

/// The file, or that its reader has it already.
pub(super) fn response(file: &File, content: Vec<u8>, asked: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", file.digest.hex());
    let is_known = asked
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|known| names(known, &tag));
    let shown = |text: &str, otherwise: &'static str| {
        HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(otherwise))
    };
    let headers = [
        (CONTENT_TYPE, shown(&file.media_type, UNKNOWN_MEDIA_TYPE)),
        (
            CONTENT_DISPOSITION,
            shown(&disposition(&file.name), "attachment"),
        ),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; sandbox"),
        ),
        // Whoever may not see it any more is not shown a copy.
        (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (ETAG, shown(&tag, "")),
    ];
    if is_known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, Body::from(content)).into_response()
}

/// Returns whether an `If-None-Match` names a tag. Tags are compared weakly there (RFC 9110,
/// 13.1.2).
fn names(header: &str, tag: &str) -> bool {
    header.trim() == "*"
        || header
            .split(',')
            .any(|one| one.trim().trim_start_matches("W/") == tag)
}

/// `Content-Disposition` (RFC 6266): the name as ASCII for those who know no better, and as it is
/// (RFC 8187).
fn disposition(name: &str) -> String {
    let is_plain =
        |char: char| (char.is_ascii_graphic() || char == ' ') && !matches!(char, '"' | '\\' | '%');
    let plain: String = name
        .chars()
        .map(|char| if is_plain(char) { char } else { '_' })
        .collect();
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_told_in_ascii_and_as_it_is() {
        for (name, expected) in [
            (
                "essay.txt",
                "attachment; filename=\"essay.txt\"; filename*=UTF-8''essay.txt",
            ),
            (
                "a \"b\" 100%.txt",
                "attachment; filename=\"a _b_ 100_.txt\"; \
                 filename*=UTF-8''a%20%22b%22%20100%25.txt",
            ),
            (
                "Größe;x=1.pdf",
                "attachment; filename=\"Gr__e;x=1.pdf\"; \
                 filename*=UTF-8''Gr%C3%B6%C3%9Fe%3Bx%3D1.pdf",
            ),
            (
                "名.png",
                "attachment; filename=\"_.png\"; filename*=UTF-8''%E5%90%8D.png",
            ),
        ] {
            assert_eq!(disposition(name), expected);
        }
    }

    #[test]
    fn a_tag_is_known_alone_among_others_weak_or_as_any() {
        let tag = "\"ab\"";
        for (header, is) in [
            ("\"ab\"", true),
            ("\"x\", \"ab\"", true),
            ("W/\"ab\"", true),
            ("*", true),
            ("\"abc\"", false),
            ("ab", false),
        ] {
            assert_eq!(names(header, tag), is, "{header}");
        }
    }
}
