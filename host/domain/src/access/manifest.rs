//! The manifest of a component: its author's description, and the requested grants.
//!
//! It is a custom section of the component, in JSON, and is read without running any code. It
//! grants nothing and is not trusted: an operator reads it, and the host proposes lines of a
//! configuration.

use super::egress::{HostPattern, Method};
use super::grant::{Access, BucketGrant, BucketScope};
use super::secret::is_secret_name;
use super::tool::wording::{self, BadWording};
use crate::values::json::{self, is_default};
use crate::values::shown::visible;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The name of the custom section.
pub const SECTION: &str = "agent-host:manifest";
/// The layout that this host reads.
pub const LAYOUT: u64 = 1;
/// Bytes of a manifest: 16 KiB.
pub const MANIFEST_BYTES_MAX: usize = 16 << 10;
/// The most authors of a component, and the most requests of one kind.
pub const ENTRIES_MAX: usize = 64;
/// Bytes of a version, a licence and a name.
pub const NAME_BYTES_MAX: usize = 128;
/// Bytes of an author, an address of a page and a reason: 1 KiB.
pub const TEXT_BYTES_MAX: usize = 1 << 10;

/// Characters shown of a fault, which may repeat text of the manifest.
const FAULT_CHARS_MAX: usize = 300;

/// The manifest of a component. Only the layout is required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The number of its layout: [`LAYOUT`].
    #[serde(rename = "manifest")]
    pub layout: u64,
    /// The version of the component, in its author's numbering.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The authors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// The licence, such as `Apache-2.0`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub licence: String,
    /// A page on it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub homepage: String,
    /// The grants that it would like.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wants: Wants,
}

/// The grants that a component requests, each with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wants {
    /// Hosts that it sends requests to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<WantedHost>,
    /// Folders, by the paths at which it expects them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<WantedFolder>,
    /// Buckets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<WantedBucket>,
    /// Secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<WantedSecret>,
}

/// A host to which a component requests access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedHost {
    /// The host, such as `api.example.com` or `*.example.com`.
    pub host: String,
    /// Methods of its requests; GET and HEAD if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<Method>,
    /// The reason.
    pub reason: String,
}

/// A folder that a component requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedFolder {
    /// The path at which it expects the folder, such as `/workspace`.
    pub at: String,
    /// Access to it.
    pub access: Access,
    /// The calls that share it. The default is all calls for one user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<BucketScope>,
    /// The reason.
    pub reason: String,
}

/// A bucket that a component requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedBucket {
    /// The bucket.
    pub bucket: String,
    /// Access to it.
    pub access: Access,
    /// The calls that share its content. The default is all calls for one user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<BucketScope>,
    /// The reason.
    pub reason: String,
}

/// A secret that a component asks the host to put into its requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedSecret {
    /// The component's name for it.
    pub secret: String,
    /// The exact host of the secret.
    pub host: String,
    /// The request header for the secret.
    pub header: String,
    /// Text before it in the header, such as `Bearer `.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The reason.
    pub reason: String,
}

/// The reason why a manifest is not read. Only features that need the manifest are affected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadManifest {
    /// It is too large.
    #[error("it has {0} bytes; {MANIFEST_BYTES_MAX} at most")]
    TooLarge(usize),
    /// The component has more than one manifest.
    #[error("the component has more than one; leave one")]
    Several,
    /// It is no valid manifest.
    #[error("it is not a manifest of layout {LAYOUT}: {0}")]
    Malformed(String),
    /// Its layout is unknown.
    #[error("it has the layout {0}, and this host reads layout {LAYOUT}")]
    Layout(String),
    /// A text in it is too long, or has hidden characters.
    #[error(transparent)]
    Wording(#[from] BadWording),
    /// A text is too long for its place.
    #[error("`{place}` has {bytes} bytes; {max} at most")]
    TooLong {
        /// The place.
        place: String,
        /// Bytes of the text.
        bytes: usize,
        /// The most that it may have.
        max: usize,
    },
    /// A list is too long.
    #[error("`{place}` has {count} entries; {ENTRIES_MAX} at most")]
    TooMany {
        /// The list.
        place: &'static str,
        /// Its entries.
        count: usize,
    },
    /// A value that cannot be granted.
    #[error("`{place}` is {value:?}, which is not {expected}")]
    Unfit {
        /// Its place.
        place: String,
        /// The value.
        value: String,
        /// A valid value.
        expected: &'static str,
    },
}

impl Manifest {
    /// Reads a manifest from the bytes of its section.
    ///
    /// # Errors
    /// The first fault.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadManifest> {
        if bytes.len() > MANIFEST_BYTES_MAX {
            return Err(BadManifest::TooLarge(bytes.len()));
        }
        let malformed = |error: &dyn fmt::Display| {
            BadManifest::Malformed(visible(&error.to_string(), FAULT_CHARS_MAX))
        };
        let text = std::str::from_utf8(bytes).map_err(|error| malformed(&error))?;
        let document = json::parse(text).map_err(|error| malformed(&error))?;
        match document.get("manifest") {
            Some(layout) if *layout == LAYOUT => {}
            Some(Value::Number(other)) => return Err(BadManifest::Layout(other.to_string())),
            _ => return Err(malformed(&"`manifest` is not a number")),
        }
        let manifest: Self = serde_json::from_value(document).map_err(|error| malformed(&error))?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), BadManifest> {
        line("version", &self.version, NAME_BYTES_MAX)?;
        line("licence", &self.licence, NAME_BYTES_MAX)?;
        line("homepage", &self.homepage, TEXT_BYTES_MAX)?;
        let is_page = ["http://", "https://"]
            .iter()
            .any(|scheme| self.homepage.starts_with(scheme));
        if !self.homepage.is_empty() && !is_page {
            return Err(unfit("homepage", &self.homepage, "a URL of http or https"));
        }
        each("authors", &self.authors, |place, author| {
            line(place, author, TEXT_BYTES_MAX)
        })?;
        self.wants.check()
    }
}

impl Wants {
    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn check(&self) -> Result<(), BadManifest> {
        each("wants.hosts", &self.hosts, |place, want| {
            line(&format!("{place}.reason"), &want.reason, TEXT_BYTES_MAX)?;
            let place = format!("{place}.host");
            line(&place, &want.host, TEXT_BYTES_MAX)?;
            let pattern = HostPattern::parse(&want.host);
            pattern
                .map(drop)
                .map_err(|_| unfit(&place, &want.host, "a host, such as `api.example.com`"))
        })?;
        each("wants.folders", &self.folders, |place, want| {
            line(&format!("{place}.reason"), &want.reason, TEXT_BYTES_MAX)?;
            let place = format!("{place}.at");
            line(&place, &want.at, TEXT_BYTES_MAX)?;
            match want.at.strip_prefix('/') {
                Some(rest) if rest.split('/').all(|step| !matches!(step, "" | "." | "..")) => {
                    Ok(())
                }
                _ => Err(unfit(&place, &want.at, "a path, such as `/workspace`")),
            }
        })?;
        each("wants.buckets", &self.buckets, |place, want| {
            line(&format!("{place}.reason"), &want.reason, TEXT_BYTES_MAX)?;
            let place = format!("{place}.bucket");
            line(&place, &want.bucket, TEXT_BYTES_MAX)?;
            BucketGrant::check_name(&want.bucket)
                .map_err(|_| unfit(&place, &want.bucket, "a name of `a-z`, `0-9`, `-` and `_`"))
        })?;
        each("wants.secrets", &self.secrets, WantedSecret::check)
    }
}

impl WantedSecret {
    fn check(place: &str, want: &Self) -> Result<(), BadManifest> {
        line(&format!("{place}.reason"), &want.reason, TEXT_BYTES_MAX)?;
        line(&format!("{place}.prefix"), &want.prefix, NAME_BYTES_MAX)?;
        let name = format!("{place}.secret");
        line(&name, &want.secret, NAME_BYTES_MAX)?;
        if !is_secret_name(&want.secret) {
            return Err(unfit(&name, &want.secret, "a name that a secret can have"));
        }
        let host = format!("{place}.host");
        line(&host, &want.host, TEXT_BYTES_MAX)?;
        if want.host.contains('*') || HostPattern::parse(&want.host).is_err() {
            return Err(unfit(
                &host,
                &want.host,
                "one plain host, such as `api.example.com`",
            ));
        }
        let header = format!("{place}.header");
        line(&header, &want.header, NAME_BYTES_MAX)?;
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if want.header.is_empty() || !want.header.bytes().all(is_token) {
            return Err(unfit(&header, &want.header, "the name of a header"));
        }
        Ok(())
    }
}

/// Checks each entry of a list, under a name with its index.
fn each<T>(
    place: &'static str,
    list: &[T],
    check: impl Fn(&str, &T) -> Result<(), BadManifest>,
) -> Result<(), BadManifest> {
    if list.len() > ENTRIES_MAX {
        let count = list.len();
        return Err(BadManifest::TooMany { place, count });
    }
    list.iter()
        .enumerate()
        .try_for_each(|(index, entry)| check(&format!("{place}[{index}]"), entry))
}

/// Checks a text of one line, by the rule for component names.
fn line(place: &str, text: &str, max: usize) -> Result<(), BadManifest> {
    wording::check_name(place, text)?;
    if text.len() > max {
        return Err(BadManifest::TooLong {
            place: place.to_owned(),
            bytes: text.len(),
            max,
        });
    }
    Ok(())
}

fn unfit(place: &str, value: &str, expected: &'static str) -> BadManifest {
    BadManifest::Unfit {
        place: place.to_owned(),
        value: value.to_owned(),
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::{BadManifest, ENTRIES_MAX, MANIFEST_BYTES_MAX, Manifest};
    use serde_json::{Value, json};

    fn parsed(document: &Value) -> Result<Manifest, BadManifest> {
        Manifest::parse(document.to_string().as_bytes())
    }

    fn whole() -> Value {
        json!({
            "manifest": 1,
            "version": "0.2.0",
            "authors": ["Ann <ann@example.com>"],
            "licence": "Apache-2.0",
            "homepage": "https://example.com/planner",
            "wants": {
                "hosts": [{ "host": "api.example.com", "methods": ["POST"], "reason": "plans" }],
                "folders": [{ "at": "/workspace", "access": "read-write", "reason": "drafts" }],
                "buckets": [{ "bucket": "plans", "access": "read-only", "reason": "old plans" }],
                "secrets": [{
                    "secret": "planner", "host": "api.example.com", "header": "authorization",
                    "prefix": "Bearer ", "reason": "signs in"
                }]
            }
        })
    }

    #[test]
    fn a_manifest_is_read_and_written_as_it_was() {
        let manifest = parsed(&whole()).unwrap();
        assert_eq!(manifest.version, "0.2.0");
        assert_eq!(serde_json::to_value(&manifest).unwrap(), whole());
        let least = parsed(&json!({ "manifest": 1 })).unwrap();
        assert!(least.wants.is_empty());
        assert_eq!(
            serde_json::to_value(least).unwrap(),
            json!({ "manifest": 1 })
        );
    }

    #[test]
    fn what_is_no_manifest_is_told_by_what_is_wrong_with_it() {
        for (bytes, reported) in [
            (
                b"\xff".as_slice(),
                "not a manifest of layout 1: invalid utf-8",
            ),
            (b"nonsense", "not a manifest of layout 1"),
            (b"{\"manifest\":1}{\"manifest\":1}", "trailing characters"),
            (b"[]", "`manifest` is not a number"),
            (
                b"{\"manifest\":2}",
                "the layout 2, and this host reads layout 1",
            ),
            (
                b"{\"manifest\":1,\"author\":\"x\"}",
                "unknown field `author`",
            ),
            (b"{\"manifest\":1,\"manifest\":1}", "twice"),
        ] {
            let error = Manifest::parse(bytes).unwrap_err().to_string();
            assert!(error.contains(reported), "{error}");
        }
        let hidden = Manifest::parse("{\"manifest\":1,\"a\u{202e}b\":1}".as_bytes());
        assert!(!hidden.unwrap_err().to_string().contains('\u{202e}'));
        let large = vec![b' '; MANIFEST_BYTES_MAX + 1];
        assert_eq!(
            Manifest::parse(&large),
            Err(BadManifest::TooLarge(MANIFEST_BYTES_MAX + 1))
        );
    }

    /// Texts follow the rule of descriptions: nothing hidden, nothing that turns the direction of
    /// text.
    #[test]
    fn texts_of_a_manifest_have_nothing_hidden_and_no_line_breaks() {
        for (pointer, place) in [
            ("/version", "version"),
            ("/licence", "licence"),
            ("/homepage", "homepage"),
            ("/authors/0", "authors[0]"),
            ("/wants/hosts/0/reason", "wants.hosts[0].reason"),
            ("/wants/folders/0/at", "wants.folders[0].at"),
            ("/wants/buckets/0/reason", "wants.buckets[0].reason"),
            ("/wants/secrets/0/prefix", "wants.secrets[0].prefix"),
        ] {
            for hidden in ["\u{202e}", "\n", "\u{1b}[2J", "\u{200b}"] {
                let mut document = whole();
                let value = document.pointer_mut(pointer).unwrap();
                *value = json!(format!("{}{hidden}x", value.as_str().unwrap()));
                let error = parsed(&document).unwrap_err().to_string();
                assert!(
                    error.contains(&format!("`{place}` has the hidden character")),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn what_nobody_can_grant_is_refused_with_its_place() {
        for (pointer, value, reported) in [
            (
                "/homepage",
                json!("javascript:x"),
                "`homepage` is \"javascript:x\", which is not a URL",
            ),
            ("/wants/hosts/0/host", json!("a b"), "`wants.hosts[0].host`"),
            (
                "/wants/hosts/0/methods",
                json!(["STEAL"]),
                "unknown variant `STEAL`",
            ),
            (
                "/wants/folders/0/at",
                json!("work"),
                "`wants.folders[0].at`",
            ),
            (
                "/wants/folders/0/at",
                json!("/a/../b"),
                "`wants.folders[0].at`",
            ),
            (
                "/wants/buckets/0/bucket",
                json!("A b"),
                "`wants.buckets[0].bucket`",
            ),
            (
                "/wants/secrets/0/host",
                json!("*.example.com"),
                "`wants.secrets[0].host`",
            ),
            (
                "/wants/secrets/0/header",
                json!("a: b"),
                "`wants.secrets[0].header`",
            ),
            (
                "/wants/secrets/0/secret",
                json!(""),
                "`wants.secrets[0].secret`",
            ),
            (
                "/version",
                json!("1".repeat(200)),
                "`version` has 200 bytes; 128 at most",
            ),
            (
                "/authors",
                json!(vec!["a"; ENTRIES_MAX + 1]),
                "`authors` has 65 entries",
            ),
        ] {
            let mut document = whole();
            *document.pointer_mut(pointer).unwrap() = value;
            let error = parsed(&document).unwrap_err().to_string();
            assert!(error.contains(reported), "{error}");
        }
    }
}
