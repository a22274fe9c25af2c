//! The keys that an issuer publishes (JWK, RFC 7517), as far as they can be used.
//!
//! Other keys are passed over, because issuers publish keys for other purposes and of kinds to come
//! beside those for tokens.

use super::algorithm::Algorithm;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

/// Keys of one issuer that are looked at.
const KEYS_MAX: usize = 64;
/// Bits of an RSA modulus, at least and at most: what ring takes, and no less than is safe.
const RSA_BITS: (usize, usize) = (2_048, 8_192);
/// Bytes of the coordinates on P-256, P-384 and Ed25519.
const COORDINATE_BYTES: (usize, usize, usize) = (32, 48, 32);
/// The prefix of a point in uncompressed form.
const UNCOMPRESSED: u8 = 4;

/// The public keys of an issuer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeySet(Vec<PublicKey>);

#[derive(Debug, PartialEq, Eq)]
struct PublicKey {
    kid: Option<String>,
    /// The only algorithm that it is for, if it names one.
    algorithm: Option<Algorithm>,
    material: Material,
}

/// The key itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Material {
    /// Modulus and exponent, big-endian, without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// A point on P-256, written out in full.
    P256(Vec<u8>),
    /// A point on P-384, written out in full.
    P384(Vec<u8>),
    /// A point on Ed25519.
    Ed25519(Vec<u8>),
}

/// A key as it is published. Other fields are ignored.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads what an issuer published; none when it is no key set, or has no key that can be used.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let published: Published = serde_json::from_slice(bytes).ok()?;
        let jwks = published
            .keys
            .into_iter()
            .take(KEYS_MAX)
            .filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let keys: Vec<PublicKey> = jwks.filter_map(public_key).collect();
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// Returns whether there is a key of this name. Without a name, any key will do.
    pub(super) fn has(&self, kid: Option<&str>) -> bool {
        kid.is_none() || self.0.iter().any(|key| key.kid.as_deref() == kid)
    }

    /// Keys for an algorithm: those of the name or, without one, the only one that fits.
    pub(super) fn candidates(&self, kid: Option<&str>, algorithm: Algorithm) -> Vec<&Material> {
        let for_it = |key: &&PublicKey| {
            algorithm.fits(&key.material) && key.algorithm.is_none_or(|only| only == algorithm)
        };
        let fitting = self
            .0
            .iter()
            .filter(for_it)
            .filter(|key| kid.is_none() || key.kid.as_deref() == kid);
        let fitting: Vec<&Material> = fitting.map(|key| &key.material).collect();
        if kid.is_none() && fitting.len() > 1 {
            Vec::new()
        } else {
            fitting
        }
    }
}

fn public_key(jwk: Jwk) -> Option<PublicKey> {
    let verifies = jwk
        .purpose
        .as_deref()
        .is_none_or(|purpose| purpose == "sig")
        && jwk
            .key_ops
            .as_ref()
            .is_none_or(|operations| operations.iter().any(|operation| operation == "verify"));
    // One that is for an algorithm that nobody can pin is for none.
    let algorithm = match &jwk.alg {
        Some(name) => Some(Algorithm::named(name)?),
        None => None,
    };
    let material = material(&jwk).filter(|_| verifies)?;
    Some(PublicKey {
        kid: jwk.kid,
        algorithm,
        material,
    })
}

fn material(jwk: &Jwk) -> Option<Material> {
    let number = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
    let coordinate =
        |text: &Option<String>, bytes: usize| number(text).filter(|number| number.len() == bytes);
    let point = |bytes| {
        Some(
            [
                vec![UNCOMPRESSED],
                coordinate(&jwk.x, bytes)?,
                coordinate(&jwk.y, bytes)?,
            ]
            .concat(),
        )
    };
    match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => {
            let n = plain(number(&jwk.n)?);
            let e = plain(number(&jwk.e)?);
            (RSA_BITS.0..=RSA_BITS.1)
                .contains(&bits(&n))
                .then_some(Material::Rsa { n, e })
        }
        ("EC", Some("P-256")) => point(COORDINATE_BYTES.0).map(Material::P256),
        ("EC", Some("P-384")) => point(COORDINATE_BYTES.1).map(Material::P384),
        ("OKP", Some("Ed25519")) => coordinate(&jwk.x, COORDINATE_BYTES.2).map(Material::Ed25519),
        _ => None,
    }
}

/// A number without leading zeros.
fn plain(number: Vec<u8>) -> Vec<u8> {
    number.into_iter().skip_while(|byte| *byte == 0).collect()
}

/// Bits of a number without leading zeros.
fn bits(number: &[u8]) -> usize {
    number.first().map_or(0, |first| {
        number.len() * 8 - usize::try_from(first.leading_zeros()).unwrap_or_default()
    })
}
