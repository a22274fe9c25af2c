//! Capabilities that limit which part of its component's grant a tool may use. A tool names the
//! capabilities that it needs; an agent's lists decide which of them it gets.
//!
//! A bucket adds two of its own: `<bucket>.read` and `<bucket>.write`. Writing without reading is
//! impossible: a tool that asks for `X.write` also asks for `X.read`.

use super::{Access, BucketGrant};

/// Reading in the granted folders.
pub const FILES_READ: &str = "files.read";
/// Writing in the granted folders, if the grant allows it.
pub const FILES_WRITE: &str = "files.write";
/// Sending the granted HTTP requests.
pub const NET_HTTP: &str = "net.http";
/// Reading the granted environment values.
pub const ENV_READ: &str = "env.read";
/// Having the host put granted secrets into requests.
pub const SECRETS_USE: &str = "secrets.use";

/// The capabilities with fixed names. All others are about a bucket.
pub const NAMED: [&str; 5] = [FILES_READ, FILES_WRITE, NET_HTTP, ENV_READ, SECRETS_USE];

/// Edits within which a bucket capability counts as a misspelling of a named one, if the component
/// uses no buckets.
const SLIP_EDITS_MAX: usize = 2;

/// The capability that another implies: `X.write` implies `X.read`.
#[must_use]
pub fn implied(name: &str) -> Option<String> {
    name.strip_suffix(".write").map(|of| format!("{of}.read"))
}

/// Returns the bucket of a capability, and the access that it allows; none for any other name.
#[must_use]
pub fn bucket(name: &str) -> Option<(&str, Access)> {
    let (bucket, verb) = name.rsplit_once('.')?;
    let access = match verb {
        "read" => Access::ReadOnly,
        "write" => Access::ReadWrite,
        _ => return None,
    };
    BucketGrant::check_name(bucket)
        .is_ok()
        .then_some((bucket, access))
}

/// Returns whether a name is a capability: one of [`NAMED`], or one for a bucket.
#[must_use]
pub fn is_capability(name: &str) -> bool {
    NAMED.contains(&name) || bucket(name).is_some()
}

/// A component's possible use of buckets, by its imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buckets {
    /// It imports them.
    Imported,
    /// It has no import for opening one.
    Absent,
}

/// A name that is no capability of this host, as a tool declared it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "has `{name}`, which is no capability of this host; the nearest is `{nearest}`. There are {}, \
     and `<bucket>.read` and `<bucket>.write` for each bucket",
    NAMED.map(|known| format!("`{known}`")).join(", ")
)]
pub struct UnknownCapability {
    /// The name.
    pub name: String,
    /// The capability that was probably meant.
    pub nearest: &'static str,
}

/// Checks that a name is a capability of this host.
///
/// # Errors
/// It is no capability. A bucket capability is invalid too if the component cannot open buckets and
/// the name is a misspelling of a named one, such as `file.read`.
pub fn check(name: &str, buckets: Buckets) -> Result<(), UnknownCapability> {
    if NAMED.contains(&name) {
        return Ok(());
    }
    let edits = |known: &&&str| strsim::damerau_levenshtein(name, known);
    let nearest = NAMED.iter().min_by_key(edits).unwrap_or(&FILES_READ);
    let is_slip = buckets == Buckets::Absent && edits(&nearest) <= SLIP_EDITS_MAX;
    if bucket(name).is_some() && !is_slip {
        return Ok(());
    }
    Err(UnknownCapability {
        name: name.to_owned(),
        nearest,
    })
}

#[cfg(test)]
mod tests {
    use super::{Buckets, NAMED, bucket, check};

    #[test]
    fn a_capability_with_a_name_of_its_own_is_of_no_bucket() {
        assert!(NAMED.into_iter().all(|name| bucket(name).is_none()));
        assert!(bucket("lists.read").is_some());
    }

    #[test]
    fn a_name_that_is_no_capability_is_refused_with_the_nearest() {
        for (name, nearest) in [
            ("net.htp", "net.http"),
            ("http", "net.http"),
            ("files.delete", "files.write"),
            ("env", "env.read"),
            ("secret.use", "secrets.use"),
            ("files", "files.read"),
        ] {
            let wrong = check(name, Buckets::Imported).unwrap_err();
            assert_eq!(wrong.nearest, nearest, "{name}");
            assert!(
                wrong.to_string().contains("`<bucket>.read`"),
                "{name}: {wrong}"
            );
        }
        for name in ["files.read", "net.http", "lists.read", "file.read"] {
            assert_eq!(check(name, Buckets::Imported), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_bucket_that_no_import_opens_and_reads_like_a_capability_is_a_slip() {
        assert_eq!(
            check("file.read", Buckets::Absent).unwrap_err().nearest,
            "files.read"
        );
        assert_eq!(check("lists.write", Buckets::Absent), Ok(()));
    }
}
