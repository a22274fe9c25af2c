//! Placeholders: the places of secrets in a component's request, and the check that each is bound
//! there.
//!
//! A component writes `{{secret.<name>}}`, or the grant's prefix and that, as the whole value of
//! the slot. In a path it is a whole part after the bound beginning. Anywhere else in the URL or
//! the headers, the request is refused: the placeholder would be sent as text, and no grant covers
//! that. A slot accepts only its placeholder. A body is only text.

use super::request_target::{Scheme, Target};
use crate::access::grant::{SecretGrant, SecretSlot};

/// The beginning of every placeholder.
const BEGIN: &[u8] = b"{{secret.";
/// The most layers of encoding that are decoded in a text. The limit applies to placeholders in a
/// URL, and to secrets in a response.
pub(crate) const DECODINGS_MAX: usize = 3;

/// A request with a placeholder where no secret is bound. For the operator; the guest learns only
/// that it was denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// In a URL that is not accepted, such as in its user or host.
    #[error("a placeholder stands in a URL that is not accepted")]
    Url,
    /// In the path, at a place without a bound secret, or not as a whole part of it.
    #[error("a placeholder stands in the path, where no such secret is bound for `{host}`")]
    Path {
        /// The request's host, with its port unless that is the scheme's.
        host: String,
    },
    /// In the fragment.
    #[error("a placeholder stands in the fragment")]
    Fragment,
    /// In a parameter without a bound secret, or not as its whole value.
    #[error(
        "a placeholder stands in the parameter `{name}`, where no such secret is bound for `{host}`"
    )]
    Parameter {
        /// The parameter.
        name: String,
        /// The request's host, with its port unless that is the scheme's.
        host: String,
    },
    /// In a header without a bound secret, or not as its whole value.
    #[error(
        "a placeholder stands in the header `{name}`, where no such secret is bound for `{host}`"
    )]
    Header {
        /// The header.
        name: String,
        /// The request's host, with its port unless that is the scheme's.
        host: String,
    },
    /// A slot has other content, or is filled twice.
    #[error("the slot `{name}` for `{host}` takes its placeholder, once, and nothing else")]
    Filled {
        /// The slot.
        name: String,
        /// The request's host, with its port unless that is the scheme's.
        host: String,
    },
    /// The host has no value for it.
    #[error("there is no secret `{secret}`")]
    Unknown {
        /// Its name.
        secret: String,
    },
    /// The request would send the secret unencrypted.
    #[error("a secret goes to `{host}` over https alone")]
    InTheClear {
        /// The request's host.
        host: String,
    },
}

/// Finds the secrets that a request asks for: each bound to its host and to the slot with its
/// placeholder.
///
/// # Errors
/// A placeholder is where none is bound, or a slot contains something else.
pub fn placements<'a>(
    url: &str,
    headers: &[(&str, &[u8])],
    bound: &'a [SecretGrant],
) -> Result<Vec<&'a SecretGrant>, Misplaced> {
    let Ok(target) = Target::parse(url) else {
        let asked = asks(url.as_bytes()) || headers.iter().any(|(_, value)| asks(value));
        return if asked {
            Err(Misplaced::Url)
        } else {
            Ok(Vec::new())
        };
    };
    if url
        .split_once('#')
        .is_some_and(|(_, fragment)| asks(fragment.as_bytes()))
    {
        return Err(Misplaced::Fragment);
    }
    let here: Vec<&SecretGrant> = bound.iter().filter(|grant| grant.is_for(&target)).collect();
    let mut placing = Placing {
        target: &target,
        here: &here,
        placed: Vec::new(),
    };
    placing.path()?;
    for pair in target
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
    {
        placing.parameter(pair)?;
    }
    for (name, value) in headers {
        placing.header(name, value)?;
    }
    let Placing { placed, .. } = placing;
    let plain = target.scheme() == Scheme::Http && !target.host().is_loopback();
    if plain && !placed.is_empty() {
        Err(Misplaced::InTheClear {
            host: target.host().to_string(),
        })
    } else {
        Ok(placed)
    }
}

struct Placing<'a, 'b> {
    target: &'b Target,
    /// The grants of secrets for the host.
    here: &'b [&'a SecretGrant],
    placed: Vec<&'a SecretGrant>,
}

impl Placing<'_, '_> {
    fn parameter(&mut self, pair: &str) -> Result<(), Misplaced> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let grant = self
            .here
            .iter()
            .find(|grant| matches!(&grant.slot, SecretSlot::Query(slot) if slot == name));
        let value = decoded(value.as_bytes());
        if let Some(grant) = grant {
            return self.fill(grant, name, &value);
        }
        if asks(pair.as_bytes()) {
            return Err(Misplaced::Parameter {
                name: name.to_owned(),
                host: self.host(),
            });
        }
        Ok(())
    }

    fn header(&mut self, name: &str, value: &[u8]) -> Result<(), Misplaced> {
        let grant = self.here.iter().find(|grant| matches!(&grant.slot, SecretSlot::Header(slot) if slot.eq_ignore_ascii_case(name)));
        if let Some(grant) = grant {
            return self.fill(grant, name, value);
        }
        if asks(value) {
            return Err(Misplaced::Header {
                name: name.to_owned(),
                host: self.host(),
            });
        }
        Ok(())
    }

    fn host(&self) -> String {
        self.target.authority()
    }
}

impl<'a> Placing<'a, '_> {
    /// A placeholder in the path directly follows the beginning that its secret is bound to. A path
    /// with such a beginning has its placeholder there, and nothing else.
    fn path(&mut self) -> Result<(), Misplaced> {
        let path = self.target.path();
        let behind = |grant: &&&'a SecretGrant| match &grant.slot {
            SecretSlot::Path(beginning) => path.starts_with(beginning.as_str()),
            SecretSlot::Header(_) | SecretSlot::Query(_) => false,
        };
        let Some(grant) = self
            .here
            .iter()
            .filter(behind)
            .max_by_key(|grant| match &grant.slot {
                SecretSlot::Path(beginning) => beginning.len(),
                SecretSlot::Header(_) | SecretSlot::Query(_) => 0,
            })
        else {
            return self.no_placeholder_in(path);
        };
        let SecretSlot::Path(beginning) = &grant.slot else {
            return Ok(());
        };
        let rest = path
            .strip_prefix(beginning.as_str())
            .and_then(|behind| behind.strip_prefix(grant.placeholder_in_path().as_str()))
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let Some(rest) = rest else {
            return Err(Misplaced::Filled {
                name: beginning.clone(),
                host: self.host(),
            });
        };
        self.no_placeholder_in(rest)?;
        self.placed.push(grant);
        Ok(())
    }

    fn no_placeholder_in(&self, path: &str) -> Result<(), Misplaced> {
        if asks(path.as_bytes()) {
            return Err(Misplaced::Path { host: self.host() });
        }
        Ok(())
    }

    fn fill(&mut self, grant: &'a SecretGrant, name: &str, value: &[u8]) -> Result<(), Misplaced> {
        let placeholder = grant.placeholder();
        let fits = value == placeholder.as_bytes()
            || value == format!("{}{placeholder}", grant.prefix).as_bytes();
        if !fits || self.placed.iter().any(|placed| placed.is_beside(grant)) {
            return Err(Misplaced::Filled {
                name: name.to_owned(),
                host: self.host(),
            });
        }
        self.placed.push(grant);
        Ok(())
    }
}

/// Returns whether it contains a placeholder, however often percent-encoded.
fn asks(text: &[u8]) -> bool {
    let mut text = text.to_vec();
    for _ in 0..DECODINGS_MAX {
        if text
            .windows(BEGIN.len())
            .any(|window| window.eq_ignore_ascii_case(BEGIN))
        {
            return true;
        }
        if !text.contains(&b'%') {
            return false;
        }
        text = decoded(&text);
    }
    false
}

/// The text with its percent escapes decoded once.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let digit = |at: usize| {
            after
                .get(at)
                .and_then(|digit| char::from(*digit).to_digit(16))
                .and_then(|digit| u8::try_from(digit).ok())
        };
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACEHOLDER: &str = "{{secret.key}}";

    fn bound() -> Vec<SecretGrant> {
        let grant = |secret: &str, host: &str, slot, prefix: &str| SecretGrant {
            secret: secret.to_owned(),
            host: host.to_owned(),
            port: host.starts_with("127.").then_some(8080),
            slot,
            prefix: prefix.to_owned(),
        };
        vec![
            grant(
                "key",
                "a.com",
                SecretSlot::Header("Authorization".to_owned()),
                "Bearer ",
            ),
            grant("key", "a.com", SecretSlot::Query("key".to_owned()), ""),
            grant("key", "bots.com", SecretSlot::Path("/bot".to_owned()), ""),
            grant(
                "key",
                "bots.com",
                SecretSlot::Path("/file/bot".to_owned()),
                "",
            ),
            grant(
                "other",
                "a.com",
                SecretSlot::Header("x-other".to_owned()),
                "",
            ),
            grant(
                "key",
                "127.0.0.1",
                SecretSlot::Header("authorization".to_owned()),
                "",
            ),
        ]
    }

    /// The places of the secrets that go out, or why none does.
    fn placed(url: &str, headers: &[(&str, &str)]) -> Result<Vec<String>, Misplaced> {
        let headers: Vec<(&str, &[u8])> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect();
        let bound = bound();
        let placed = placements(url, &headers, &bound)?;
        Ok(placed
            .into_iter()
            .map(|grant| format!("{} {:?}", grant.secret, grant.slot))
            .collect())
    }

    #[test]
    fn a_placeholder_in_a_path_is_a_whole_part_behind_its_beginning() {
        let there = |beginning: &str| Ok(vec![format!("key Path({beginning:?})")]);
        let host = || "bots.com".to_owned();
        let filled = |name: &str| {
            Err(Misplaced::Filled {
                name: name.to_owned(),
                host: host(),
            })
        };
        for (path, expected) in [
            ("/bot{{secret.key}}/getMe", there("/bot")),
            ("/bot{{secret.key}}", there("/bot")),
            ("/bot%7b%7Bsecret.key%7D%7d/getMe", there("/bot")),
            ("/file/bot{{secret.key}}/a.png", there("/file/bot")),
            // The slot takes nothing else: neither a credential of the guest's own nor an escape.
            ("/bot123:abc/getMe", filled("/bot")),
            ("/bots", filled("/bot")),
            ("/bot%257B%257Bsecret.key%257D%257D/getMe", filled("/bot")),
            ("/bot{{secret.other}}/getMe", filled("/bot")),
            ("/bot{{secret.key}}x/getMe", filled("/bot")),
            (
                "/{{secret.key}}/getMe",
                Err(Misplaced::Path { host: host() }),
            ),
            (
                "/bot{{secret.key}}/{{secret.key}}",
                Err(Misplaced::Path { host: host() }),
            ),
            ("/other", Ok(Vec::new())),
        ] {
            let url = format!("https://bots.com{path}");
            assert_eq!(placed(&url, &[]), expected, "{url}");
        }
        let plain = placed("http://bots.com:443/bot{{secret.key}}/x", &[]);
        assert!(plain.is_err(), "{plain:?}");
    }

    #[test]
    fn a_placeholder_is_found_in_the_slot_that_its_secret_is_bound_to() {
        let header = "key Header(\"Authorization\")";
        let query = "key Query(\"key\")";
        for (url, headers, expected) in [
            ("https://a.com/", vec![], vec![]),
            (
                "https://a.com/",
                vec![("authorization", PLACEHOLDER)],
                vec![header],
            ),
            (
                "https://A.com./x?y=1",
                vec![("AUTHORIZATION", "Bearer {{secret.key}}")],
                vec![header],
            ),
            ("https://a.com/?key={{secret.key}}", vec![], vec![query]),
            (
                "https://a.com/?a&key=%7B%7bsecret%2Ekey%7D%7d&b=c",
                vec![],
                vec![query],
            ),
            (
                "https://a.com/?key={{secret.key}}",
                vec![("authorization", PLACEHOLDER), ("accept", "x")],
                vec![query, header],
            ),
            (
                "http://127.0.0.1:8080/",
                vec![("authorization", PLACEHOLDER)],
                vec!["key Header(\"authorization\")"],
            ),
            // Another host's slots are only headers there.
            ("https://b.com/?key=mine", vec![("x-other", "mine")], vec![]),
        ] {
            assert_eq!(
                placed(url, &headers),
                Ok(expected.into_iter().map(str::to_owned).collect()),
                "{url} {headers:?}"
            );
        }
    }

    #[test]
    fn a_placeholder_anywhere_else_refuses_the_request_and_says_where_it_stands() {
        for (url, headers, expected) in [
            (
                "https://b.com/",
                vec![("authorization", PLACEHOLDER)],
                "in the header `authorization`",
            ),
            (
                "https://a.com:8443/",
                vec![("authorization", PLACEHOLDER)],
                "is bound for `a.com:8443`",
            ),
            (
                "http://127.0.0.1/",
                vec![("authorization", PLACEHOLDER)],
                "in the header `authorization`",
            ),
            (
                "https://a.com.evil.com/",
                vec![("authorization", PLACEHOLDER)],
                "in the header `authorization`",
            ),
            (
                "https://a.com/",
                vec![("x-mine", PLACEHOLDER)],
                "in the header `x-mine`",
            ),
            (
                "https://a.com/",
                vec![("x-mine", "a {{secret.key}} b")],
                "in the header `x-mine`",
            ),
            (
                "https://a.com/",
                vec![("x-mine", "%7B%7Bsecret.key}}")],
                "in the header `x-mine`",
            ),
            (
                "https://a.com/",
                vec![("x-other", PLACEHOLDER)],
                "the slot `x-other`",
            ),
            (
                "https://a.com/",
                vec![("authorization", "Basic {{secret.key}}")],
                "the slot `authorization`",
            ),
            (
                "https://a.com/",
                vec![("authorization", "{{secret.key}} ")],
                "the slot `authorization`",
            ),
            (
                "https://a.com/",
                vec![("authorization", "{{secret.KEY}}")],
                "the slot `authorization`",
            ),
            (
                "https://a.com/",
                vec![("authorization", "Bearer my-own")],
                "the slot `authorization`",
            ),
            (
                "https://a.com/",
                vec![
                    ("authorization", PLACEHOLDER),
                    ("authorization", PLACEHOLDER),
                ],
                "the slot `authorization`",
            ),
            ("https://a.com/?key=mine", vec![], "the slot `key`"),
            (
                "https://a.com/?key={{secret.other}}",
                vec![],
                "the slot `key`",
            ),
            (
                "https://a.com/?key={{secret.key}}x",
                vec![],
                "the slot `key`",
            ),
            (
                "https://a.com/?key={{secret.key}}&key={{secret.key}}",
                vec![],
                "the slot `key`",
            ),
            (
                "https://a.com/?q={{secret.key}}",
                vec![],
                "in the parameter `q`",
            ),
            (
                "https://a.com/?q=%257B%257Bsecret.key",
                vec![],
                "in the parameter `q`",
            ),
            ("https://a.com/?{{secret.key}}", vec![], "in the parameter"),
            ("https://a.com/{{secret.key}}", vec![], "in the path"),
            (
                "https://a.com/%7b%7bsecret.key%7d%7d?x",
                vec![],
                "in the path",
            ),
            ("https://a.com/#{{secret.key}}", vec![], "in the fragment"),
            (
                "https://{{secret.key}}@a.com/",
                vec![],
                "in a URL that is not accepted",
            ),
            (
                "https://{{secret.key}}.a.com/",
                vec![],
                "in a URL that is not accepted",
            ),
            (
                "ftp://a.com/",
                vec![("authorization", PLACEHOLDER)],
                "in a URL that is not accepted",
            ),
            (
                "http://a.com/",
                vec![("authorization", PLACEHOLDER)],
                "over https alone",
            ),
        ] {
            let reported = placed(url, &headers).map_err(|error| error.to_string());
            assert!(
                reported
                    .as_ref()
                    .is_err_and(|reported| reported.contains(expected)),
                "{url} {headers:?}: {reported:?}"
            );
        }
    }
}
