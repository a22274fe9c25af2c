//! Snapshots as they are stored: sealed with the digest of their content, so that a damaged one is
//! ignored.

use domain::digest::Digest;

const DIGEST_BYTES: usize = 32;

/// A state with its digest in front.
pub(crate) fn seal(state: &[u8]) -> Vec<u8> {
    [&Digest::of(state).0, state].concat()
}

/// Returns the state; none if it does not match its digest.
pub(crate) fn unseal(sealed: &[u8]) -> Option<Vec<u8>> {
    let (digest, state) = sealed.split_at_checked(DIGEST_BYTES)?;
    (Digest::of(state).0 == digest).then(|| state.to_vec())
}

#[cfg(test)]
mod tests {
    use super::{seal, unseal};

    #[test]
    fn a_damaged_snapshot_is_passed_over() {
        let sealed = seal(b"state");
        assert_eq!(unseal(&sealed).as_deref(), Some(&b"state"[..]));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 4;
            assert_eq!(unseal(&damaged), None, "byte {at}");
        }
        assert_eq!(unseal(b"short"), None);
    }
}
