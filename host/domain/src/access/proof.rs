//! The proof of a host: a response that only the host of a data folder can give to a client.
//!
//! A client with read access to the data folder requests a proof before it sends a credential. The
//! proof is made with a key in that folder. It is valid for one address, so that a listener at
//! another address cannot relay it.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Returns the response to a client's challenge, in hexadecimal digits, of the host with this key
/// at this address.
#[must_use]
pub fn proof(key: &str, address: &str, challenge: &str) -> String {
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else {
        // HMAC accepts keys of every length.
        return String::new();
    };
    let mac = mac
        .chain_update(format!("agent-host proof\n{address}\n"))
        .chain_update(challenge);
    let bytes = mac.finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::proof;

    #[test]
    fn a_proof_holds_for_one_key_one_address_and_one_challenge() {
        let there = "127.0.0.1:7777";
        let given = proof("key", there, "a");
        assert_eq!(given, proof("key", there, "a"));
        assert_eq!(given.len(), 64);
        for other in [
            proof("kez", there, "a"),
            proof("", there, "a"),
            proof("key", "127.0.0.1:7778", "a"),
            proof("key", there, "b"),
            proof("key", "127.0.0.1:7777\na", ""),
        ] {
            assert_ne!(other, given);
        }
    }
}
