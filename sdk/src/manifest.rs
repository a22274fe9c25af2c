//! The manifest of a component: version, authors, licence, homepage, and the grants that it would
//! like, each with the reason.
//!
//! The macros that export a plugin write it into the component, in the custom section
//! `agent-host:manifest`. It is read without running the component, and grants nothing: `component
//! check` shows it to the operator, with the lines of the configuration.
//!
//! ```
//! use agent_host_sdk::{Tool, Tools, export_tools};
//!
//! struct Weather;
//! impl Tools for Weather {
//!     fn tools(&self) -> Vec<Tool> {
//!         Vec::new()
//!     }
//! }
//!
//! export_tools!(Weather, wants: [
//!     host("api.example.com", "reads forecasts"),
//!     folder_to_write("/workspace", "keeps drawings"),
//! ]);
//! ```

/// A grant that a component would like, with the reason. Both are one line of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// The list of the manifest that it stands in.
    list: &'static str,
    /// Keys and values, up to the first empty key.
    fields: [(&'static str, &'static str); FIELDS_MAX],
}

/// Fields of one want.
const FIELDS_MAX: usize = 5;
/// A field that is not there.
const NONE: (&str, &str) = ("", "");
/// The lists of wants, in their order.
const LISTS: [&str; 4] = ["hosts", "folders", "buckets", "secrets"];
/// The key whose value is a list of words.
const METHODS: &str = "methods";

impl Want {
    /// Requests to a host, such as `api.example.com`, that only read: GET and HEAD.
    #[must_use]
    pub const fn host(host: &'static str, reason: &'static str) -> Self {
        let fields = [("host", host), ("reason", reason), NONE, NONE, NONE];
        Self {
            list: "hosts",
            fields,
        }
    }

    /// Requests to a host with these methods, separated by a space: `GET POST`.
    #[must_use]
    pub const fn host_by(host: &'static str, methods: &'static str, reason: &'static str) -> Self {
        let fields = [
            ("host", host),
            (METHODS, methods),
            ("reason", reason),
            NONE,
            NONE,
        ];
        Self {
            list: "hosts",
            fields,
        }
    }

    /// A folder to read, at the path at which the component looks for it.
    #[must_use]
    pub const fn folder(at: &'static str, reason: &'static str) -> Self {
        Self::folder_with(at, "read-only", reason)
    }

    /// A folder to read and write.
    #[must_use]
    pub const fn folder_to_write(at: &'static str, reason: &'static str) -> Self {
        Self::folder_with(at, "read-write", reason)
    }

    /// A folder with an access, `read-only` or `read-write`, and the calls that share it:
    /// `component` for all of them, or those for one `user`, `agent` or `session`. Without a scope,
    /// a folder is proposed for each user.
    #[must_use]
    pub const fn folder_of(
        scope: &'static str,
        at: &'static str,
        access: &'static str,
        reason: &'static str,
    ) -> Self {
        let fields = [
            ("at", at),
            ("access", access),
            ("scope", scope),
            ("reason", reason),
            NONE,
        ];
        Self {
            list: "folders",
            fields,
        }
    }

    const fn folder_with(at: &'static str, access: &'static str, reason: &'static str) -> Self {
        let fields = [
            ("at", at),
            ("access", access),
            ("reason", reason),
            NONE,
            NONE,
        ];
        Self {
            list: "folders",
            fields,
        }
    }

    /// A bucket to read.
    #[must_use]
    pub const fn bucket(bucket: &'static str, reason: &'static str) -> Self {
        Self::bucket_with(bucket, "read-only", reason)
    }

    /// A bucket to read and write.
    #[must_use]
    pub const fn bucket_to_write(bucket: &'static str, reason: &'static str) -> Self {
        Self::bucket_with(bucket, "read-write", reason)
    }

    /// A bucket with an access, `read-only` or `read-write`, and the calls that share its content:
    /// `component` for all of them, or those for one `user`, `agent` or `session`. Without a scope,
    /// one is proposed for each user.
    #[must_use]
    pub const fn bucket_of(
        scope: &'static str,
        bucket: &'static str,
        access: &'static str,
        reason: &'static str,
    ) -> Self {
        let fields = [
            ("bucket", bucket),
            ("access", access),
            ("scope", scope),
            ("reason", reason),
            NONE,
        ];
        Self {
            list: "buckets",
            fields,
        }
    }

    const fn bucket_with(bucket: &'static str, access: &'static str, reason: &'static str) -> Self {
        let fields = [
            ("bucket", bucket),
            ("access", access),
            ("reason", reason),
            NONE,
            NONE,
        ];
        Self {
            list: "buckets",
            fields,
        }
    }

    /// A secret that the host puts into a header of requests to one host.
    #[must_use]
    pub const fn secret(
        secret: &'static str,
        host: &'static str,
        header: &'static str,
        reason: &'static str,
    ) -> Self {
        let fields = [
            ("secret", secret),
            ("host", host),
            ("header", header),
            ("reason", reason),
            NONE,
        ];
        Self {
            list: "secrets",
            fields,
        }
    }

    /// A secret that the host puts behind `Bearer ` into the header `authorization`.
    #[must_use]
    pub const fn bearer(secret: &'static str, host: &'static str, reason: &'static str) -> Self {
        let fields = [
            ("secret", secret),
            ("host", host),
            ("header", "authorization"),
            ("prefix", "Bearer "),
            ("reason", reason),
        ];
        Self {
            list: "secrets",
            fields,
        }
    }
}

/// The content of a manifest: the facts of its package, and its wants.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// The version of the package.
    pub version: &'static str,
    /// Its authors, with a colon between them.
    pub authors: &'static str,
    /// Its licence.
    pub licence: &'static str,
    /// Its homepage, or else its repository.
    pub homepage: &'static str,
    /// The grants that it would like.
    pub wants: &'static [Want],
}

/// A manifest that is being written. All bytes are counted, and those that have room are kept.
#[doc(hidden)]
#[derive(Debug)]
pub struct Written<const N: usize> {
    /// The bytes so far.
    pub bytes: [u8; N],
    /// Their number, also where there was no room for them.
    pub length: usize,
}

impl Facts {
    /// Writes the manifest as JSON. It runs when the component is compiled.
    #[doc(hidden)]
    #[must_use]
    pub const fn write<const N: usize>(&self) -> Written<N> {
        let mut out = Written {
            bytes: [0; N],
            length: 0,
        };
        out.plain("{\"manifest\":1");
        out.field("version", self.version);
        if !self.authors.is_empty() {
            out.plain(",\"authors\":");
            out.words(self.authors, b':');
        }
        out.field("licence", self.licence);
        out.field("homepage", self.homepage);
        if !self.wants.is_empty() {
            out.wants(self.wants);
        }
        out.plain("}");
        out
    }
}

impl<const N: usize> Written<N> {
    const fn byte(&mut self, byte: u8) {
        if let Some((_, rest)) = self.bytes.split_at_mut_checked(self.length)
            && let Some(place) = rest.first_mut()
        {
            *place = byte;
        }
        self.length += 1;
    }

    const fn plain(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let Some((byte, after)) = rest.split_first() {
            self.byte(*byte);
            rest = after;
        }
    }

    /// One byte of a text.
    const fn escaped(&mut self, byte: u8) {
        match byte {
            b'"' | b'\\' => {
                self.byte(b'\\');
                self.byte(byte);
            }
            0..0x20 => {
                self.plain("\\u00");
                self.digit(byte >> 4);
                self.digit(byte & 15);
            }
            _ => self.byte(byte),
        }
    }

    const fn digit(&mut self, value: u8) {
        self.byte(if value < 10 {
            b'0' + value
        } else {
            b'a' + value - 10
        });
    }

    const fn text(&mut self, text: &str) {
        self.byte(b'"');
        let mut rest = text.as_bytes();
        while let Some((byte, after)) = rest.split_first() {
            self.escaped(*byte);
            rest = after;
        }
        self.byte(b'"');
    }

    /// A field after others, unless it is empty.
    const fn field(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.byte(b',');
            self.text(key);
            self.byte(b':');
            self.text(value);
        }
    }

    /// A list of the parts of a text between separators.
    const fn words(&mut self, text: &str, separator: u8) {
        self.plain("[\"");
        let mut rest = text.as_bytes();
        while let Some((byte, after)) = rest.split_first() {
            if *byte == separator {
                self.plain("\",\"");
            } else {
                self.escaped(*byte);
            }
            rest = after;
        }
        self.plain("\"]");
    }

    const fn wants(&mut self, wants: &[Want]) {
        self.plain(",\"wants\":{");
        let mut lists = LISTS.as_slice();
        let mut is_first = true;
        while let Some((list, after)) = lists.split_first() {
            if has(wants, list) {
                if !is_first {
                    self.byte(b',');
                }
                is_first = false;
                self.text(list);
                self.byte(b':');
                self.list(wants, list);
            }
            lists = after;
        }
        self.byte(b'}');
    }

    const fn list(&mut self, wants: &[Want], list: &str) {
        self.byte(b'[');
        let mut rest = wants;
        let mut is_first = true;
        while let Some((want, after)) = rest.split_first() {
            if is_same(want.list, list) {
                if !is_first {
                    self.byte(b',');
                }
                is_first = false;
                self.want(want);
            }
            rest = after;
        }
        self.byte(b']');
    }

    const fn want(&mut self, want: &Want) {
        self.byte(b'{');
        let mut rest = want.fields.as_slice();
        let mut is_first = true;
        while let Some(((key, value), after)) = rest.split_first() {
            if !key.is_empty() {
                if !is_first {
                    self.byte(b',');
                }
                is_first = false;
                self.text(key);
                self.byte(b':');
                if is_same(key, METHODS) {
                    self.words(value, b' ');
                } else {
                    self.text(value);
                }
            }
            rest = after;
        }
        self.byte(b'}');
    }
}

/// Returns whether a list has any want.
const fn has(wants: &[Want], list: &str) -> bool {
    let mut rest = wants;
    while let Some((want, after)) = rest.split_first() {
        if is_same(want.list, list) {
            return true;
        }
        rest = after;
    }
    false
}

/// Returns whether two texts are equal, where `==` cannot be used yet.
const fn is_same(one: &str, other: &str) -> bool {
    let mut one = one.as_bytes();
    let mut other = other.as_bytes();
    while let (Some((first, rest)), Some((second, left))) = (one.split_first(), other.split_first())
    {
        if *first != *second {
            return false;
        }
        one = rest;
        other = left;
    }
    one.is_empty() && other.is_empty()
}

/// The homepage of a package, or else its repository.
#[doc(hidden)]
#[must_use]
pub const fn homepage(homepage: &'static str, repository: &'static str) -> &'static str {
    if homepage.is_empty() {
        repository
    } else {
        homepage
    }
}

/// Writes the manifest of the crate that uses it into the component: `export_agent!` and
/// `export_tools!` do so.
#[doc(hidden)]
#[macro_export]
macro_rules! write_manifest {
    ($($want:ident ( $($argument:expr),* $(,)? )),* $(,)?) => {
        const _: () = {
            const FACTS: $crate::manifest::Facts = $crate::manifest::Facts {
                version: ::std::env!("CARGO_PKG_VERSION"),
                authors: ::std::env!("CARGO_PKG_AUTHORS"),
                licence: ::std::env!("CARGO_PKG_LICENSE"),
                homepage: $crate::manifest::homepage(
                    ::std::env!("CARGO_PKG_HOMEPAGE"),
                    ::std::env!("CARGO_PKG_REPOSITORY"),
                ),
                wants: &[$($crate::manifest::Want::$want($($argument),*)),*],
            };
            const LENGTH: usize = FACTS.write::<0>().length;
            #[cfg_attr(target_family = "wasm", unsafe(link_section = "agent-host:manifest"))]
            #[used]
            static MANIFEST: [u8; LENGTH] = FACTS.write::<LENGTH>().bytes;
        };
    };
}

#[cfg(test)]
mod tests {
    use super::{Facts, Want};
    use serde_json::{Value, json};

    const FACTS: Facts = Facts {
        version: "0.2.0",
        authors: "Ann \"the\" Lee <a@example.com>:Bo\\b",
        licence: "Apache-2.0",
        homepage: "https://example.com/\u{1}é",
        wants: &[
            Want::host("api.example.com", "reads"),
            Want::bucket_to_write("plans", "keeps plans"),
            Want::host_by("b.example.com", "GET POST", "writes"),
            Want::folder("/in", "reads"),
            Want::folder_of("component", "/all", "read-only", "shares"),
            Want::bucket_of("agent", "own", "read-write", "keeps apart"),
            Want::secret("key", "api.example.com", "x-key", "signs in"),
            Want::bearer("token", "b.example.com", "signs in"),
        ],
    };
    const LENGTH: usize = FACTS.write::<0>().length;
    const BYTES: [u8; LENGTH] = FACTS.write::<LENGTH>().bytes;

    #[test]
    fn a_manifest_is_written_when_it_is_compiled_and_is_json() {
        let written: Value = serde_json::from_slice(&BYTES).unwrap();
        let expected = json!({
            "manifest": 1,
            "version": "0.2.0",
            "authors": ["Ann \"the\" Lee <a@example.com>", "Bo\\b"],
            "licence": "Apache-2.0",
            "homepage": "https://example.com/\u{1}é",
            "wants": {
                "hosts": [
                    { "host": "api.example.com", "reason": "reads" },
                    { "host": "b.example.com", "methods": ["GET", "POST"], "reason": "writes" }
                ],
                "folders": [
                    { "at": "/in", "access": "read-only", "reason": "reads" },
                    {
                        "at": "/all", "access": "read-only", "scope": "component",
                        "reason": "shares"
                    }
                ],
                "buckets": [
                    { "bucket": "plans", "access": "read-write", "reason": "keeps plans" },
                    {
                        "bucket": "own", "access": "read-write", "scope": "agent",
                        "reason": "keeps apart"
                    }
                ],
                "secrets": [
                    {
                        "secret": "key", "host": "api.example.com", "header": "x-key",
                        "reason": "signs in"
                    },
                    {
                        "secret": "token", "host": "b.example.com", "header": "authorization",
                        "prefix": "Bearer ", "reason": "signs in"
                    }
                ]
            }
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn a_package_that_says_nothing_has_a_manifest_all_the_same() {
        let facts = Facts {
            version: "0.1.0",
            authors: "",
            licence: "",
            homepage: "",
            wants: &[],
        };
        let written = facts.write::<64>();
        let text = std::str::from_utf8(&written.bytes[..written.length]).unwrap();
        assert_eq!(text, r#"{"manifest":1,"version":"0.1.0"}"#);
    }
}
