//! Rules that the host and the SDK both check, so that a test with the SDK finds out what the host
//! would refuse: the widgets that every client has, names, JSON, texts that are shown, and the
//! limits of what a plugin returns.

pub mod json;
pub mod limits;
pub mod shown;
pub mod widget;

/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 64;

/// Returns true if a name has 1 to 64 bytes, all of them lower-case letters, digits or from `also`.
#[must_use]
pub fn is_name(name: &str, also: &[u8]) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || also.contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits)
}
