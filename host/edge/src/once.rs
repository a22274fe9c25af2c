//! Commands under their user's idempotency key: executed once, with the same answer to each
//! repetition.

use crate::core::Core;
use crate::refusals::{key_malformed, key_reused};
use broker::{By, Error};
use domain::digest::Digest;
use serde_json::Value;
use store::Key;

/// The length of an idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// A request, with the result of looking up its key.
#[derive(Debug)]
pub(crate) enum Once {
    /// It is new, and its commit has this key; none for a request without one.
    New(Option<Key>),
    /// It was made before, with this reply.
    Before(Vec<u8>),
}

/// Looks up whether a request was made before. `asked` describes the whole request, and `reply` is
/// the answer to a repetition.
///
/// # Errors
/// The key is none, or belongs to another request.
pub(crate) async fn once(
    core: &Core,
    by: By<'_>,
    asked: &Value,
    reply: &str,
) -> Result<Once, Error> {
    let Some(key) = by.key else {
        return Ok(Once::New(None));
    };
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(key_malformed(KEY_BYTES_MAX).into());
    }
    let source = format!("user:{}", by.user);
    let request = Digest::of(asked.to_string().as_bytes());
    let before = core
        .store()
        .remembered_request(&source, key, core.now())
        .await?;
    match before {
        Some(before) if before.request == request => Ok(Once::Before(before.reply)),
        Some(_) => Err(key_reused().into()),
        None => Ok(Once::New(Some(Key {
            source,
            key: key.to_owned(),
            request,
            reply: reply.as_bytes().to_vec(),
            about: None,
        }))),
    }
}
