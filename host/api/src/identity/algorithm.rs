//! The signature algorithms that an operator can pin. There is no symmetric one and no `none` to
//! choose.

use super::jwk::Material;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A signature algorithm, as the header of a token names it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Algorithm {
    /// RSA, PKCS #1, SHA-256.
    Rs256,
    /// RSA, PKCS #1, SHA-384.
    Rs384,
    /// RSA, PKCS #1, SHA-512.
    Rs512,
    /// RSA, PSS, SHA-256.
    Ps256,
    /// RSA, PSS, SHA-384.
    Ps384,
    /// RSA, PSS, SHA-512.
    Ps512,
    /// ECDSA on P-256, SHA-256.
    Es256,
    /// ECDSA on P-384, SHA-384.
    Es384,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl Algorithm {
    /// The algorithm of a name, in exactly this spelling.
    pub(super) fn named(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Self::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::EdDsa => None,
        }
    }

    /// Returns whether a key is of the kind that this algorithm takes.
    pub(super) fn fits(self, key: &Material) -> bool {
        match key {
            Material::Rsa { .. } => self.rsa().is_some(),
            Material::P256(_) => self == Self::Es256,
            Material::P384(_) => self == Self::Es384,
            Material::Ed25519(_) => self == Self::EdDsa,
        }
    }

    /// Returns whether a signature was made with the key. It is false for a key of another kind.
    pub(super) fn verifies(self, key: &Material, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (key, self, self.rsa()) {
            (Material::Rsa { n, e }, _, Some(parameters)) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Material::P256(point), Self::Es256, _) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Material::P384(point), Self::Es384, _) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
            }
            (Material::Ed25519(point), Self::EdDsa, _) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return false,
        };
        verified.is_ok()
    }
}
