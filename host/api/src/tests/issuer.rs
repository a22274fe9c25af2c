//! An issuer of tokens: its keys, what it signs with them, and the server that publishes them.

use crate::identity::{Algorithm, IssuerConfig};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use domain::time::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

/// Every algorithm.
pub(crate) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::Rs256,
    Algorithm::Rs384,
    Algorithm::Rs512,
    Algorithm::Ps256,
    Algorithm::Ps384,
    Algorithm::Ps512,
    Algorithm::Es256,
    Algorithm::Es384,
    Algorithm::EdDsa,
];

/// The name of an algorithm in headers and keys.
pub(crate) fn name(algorithm: Algorithm) -> String {
    json!(algorithm).as_str().unwrap().to_owned()
}

/// The audience of the tokens.
pub(crate) const AUDIENCE: &str = "agent-host";

/// A clock that shows what it is set to.
#[derive(Clone)]
pub(crate) struct Hands(Arc<AtomicU64>);

impl Hands {
    pub(crate) fn at(ms: u64) -> Self {
        Self(Arc::new(AtomicU64::new(ms)))
    }

    pub(crate) fn clock(&self) -> crate::Clock {
        let hands = self.clone();
        crate::Clock::of(move || hands.now())
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn seconds(&self) -> u64 {
        self.now().0 / 1_000
    }

    pub(crate) fn pass_s(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    pub(crate) fn set_back_s(&self, seconds: u64) {
        self.0.fetch_sub(seconds * 1_000, Ordering::SeqCst);
    }
}

/// Keys of every kind. Each is named by its kind.
pub(crate) struct Mint {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
}

pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Mint {
    pub(crate) fn new() -> Self {
        let pem: String = include_str!("data/rsa.test.key.pem")
            .lines()
            .filter(|line| !line.starts_with('-'))
            .collect();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self {
            rsa: RsaKeyPair::from_pkcs8(&STANDARD.decode(pem).unwrap()).unwrap(),
            p256: ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            p384: ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
        }
    }

    /// The modulus of the RSA key, which everybody knows.
    pub(crate) fn modulus(&self) -> Vec<u8> {
        ring::rsa::PublicKeyComponents::<Vec<u8>>::from(self.rsa.public()).n
    }

    pub(crate) fn jwks(&self) -> Value {
        let exponent = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(self.rsa.public()).e;
        let point = |name: &str, curve: &str, point: &[u8]| {
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({ "kty": "EC", "kid": name, "crv": curve, "x": encoded(x), "y": encoded(y) })
        };
        json!({ "keys": [
            { "kty": "RSA", "kid": "rsa", "use": "sig", "n": encoded(self.modulus()), "e": encoded(exponent) },
            point("p256", "P-256", self.p256.public_key().as_ref()),
            point("p384", "P-384", self.p384.public_key().as_ref()),
            { "kty": "OKP", "kid": "ed25519", "crv": "Ed25519", "x": encoded(self.ed25519.public_key()) },
        ] })
    }

    pub(crate) fn kid(algorithm: Algorithm) -> &'static str {
        match algorithm {
            Algorithm::Es256 => "p256",
            Algorithm::Es384 => "p384",
            Algorithm::EdDsa => "ed25519",
            _ => "rsa",
        }
    }

    fn sign(&self, algorithm: Algorithm, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        let rsa = |encoding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa
                .sign(encoding, &random, message, &mut signature)
                .unwrap();
            signature
        };
        match algorithm {
            Algorithm::Rs256 => rsa(&RSA_PKCS1_SHA256),
            Algorithm::Rs384 => rsa(&RSA_PKCS1_SHA384),
            Algorithm::Rs512 => rsa(&RSA_PKCS1_SHA512),
            Algorithm::Ps256 => rsa(&RSA_PSS_SHA256),
            Algorithm::Ps384 => rsa(&RSA_PSS_SHA384),
            Algorithm::Ps512 => rsa(&RSA_PSS_SHA512),
            Algorithm::Es256 => self.p256.sign(&random, message).unwrap().as_ref().to_vec(),
            Algorithm::Es384 => self.p384.sign(&random, message).unwrap().as_ref().to_vec(),
            Algorithm::EdDsa => self.ed25519.sign(message).as_ref().to_vec(),
        }
    }

    /// Makes a token with any header and claims, signed with this algorithm whatever the header
    /// names.
    pub(crate) fn forged(&self, algorithm: Algorithm, header: &Value, claims: &Value) -> String {
        let signed = format!(
            "{}.{}",
            encoded(header.to_string()),
            encoded(claims.to_string())
        );
        let signature = encoded(self.sign(algorithm, signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// A token as it should be.
    pub(crate) fn token(&self, algorithm: Algorithm, claims: &Value) -> String {
        let header = json!({ "alg": name(algorithm), "typ": "JWT", "kid": Self::kid(algorithm) });
        self.forged(algorithm, &header, claims)
    }
}

/// The behaviour of a server towards a request.
#[derive(Debug, Clone)]
pub(crate) enum Mood {
    /// It answers with the documents that it has, by their paths.
    Well,
    /// It answers with a status and a header.
    Answers(u16, &'static str),
    /// It answers nothing at all.
    Hangs,
}

/// A server that publishes documents.
pub(crate) struct IssuerServer {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
    mood: Arc<Mutex<(Mood, Value)>>,
    _tasks: TaskTracker,
}

impl IssuerServer {
    /// A server with these documents.
    pub(crate) async fn start(documents: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let mood = Arc::new(Mutex::new((Mood::Well, documents)));
        let tasks = TaskTracker::new();
        let count = Arc::clone(&asked);
        let moods = Arc::clone(&mood);
        let serving = tasks.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                let moods = Arc::clone(&moods);
                serving.spawn(async move {
                    count.fetch_add(1, Ordering::SeqCst);
                    let (mood, documents) = moods.lock().unwrap().clone();
                    answer(stream, mood, &documents).await;
                });
            }
        });
        Self {
            url,
            asked,
            mood,
            _tasks: tasks,
        }
    }

    /// A server with the keys of a mint at `/keys`.
    pub(crate) async fn with_keys(mint: &Mint) -> Self {
        Self::start(json!({ "/keys": mint.jwks() })).await
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn is(&self, mood: Mood) {
        self.mood.lock().unwrap().0 = mood;
    }

    pub(crate) fn publish(&self, documents: Value) {
        *self.mood.lock().unwrap() = (Mood::Well, documents);
    }

    /// An issuer whose keys are at `/keys`.
    pub(crate) fn config(&self) -> IssuerConfig {
        serde_json::from_value(json!({
            "issuer": "https://id.example", "audience": [AUDIENCE], "algorithms": ALGORITHMS, "jwksUrl": format!("{}/keys", self.url),
            "refreshS": 600, "hardExpiryS": 3_600,
        }))
        .unwrap()
    }
}

async fn answer(mut stream: TcpStream, mood: Mood, documents: &Value) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let path = String::from_utf8_lossy(&head)
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    let (status, header, body) = match (mood, documents.get(&path)) {
        (Mood::Hangs, _) => return tokio::time::sleep(Duration::from_secs(60)).await,
        (Mood::Answers(status, header), _) => (status, header, String::new()),
        (Mood::Well, Some(document)) => {
            (200, "content-type: application/json", document.to_string())
        }
        (Mood::Well, None) => (404, "content-type: text/plain", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status} Whatever\r\n{header}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}
