//! Compiled code on disk, by content and configuration, with what the component said of itself.
//!
//! Compiled code is trusted like the host's own: anyone who can write it can run anything. An entry
//! therefore carries a keyed hash that is checked before the code is looked at, under a key that
//! only this user can read. An entry that does not check is compiled again.

use crate::component::Described;
use domain::digest::Digest;
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wasmtime::Engine;
use wasmtime::component::Component as Code;

/// The first bytes of an entry. Changes with the layout of entries and with what `describe` is
/// asked.
const MAGIC: &[u8; 24] = b"agent-host component 01\n";
/// The points at which a test can make the process die; see [`store::fault`].
pub const CRASH_POINTS: &[&str] = &["runtime.cache.write"];
/// The file of the key.
const KEY_FILE: &str = "key";
/// Bytes of the key, and of a keyed hash.
const KEY_BYTES: usize = 32;
/// The age from which an unfinished file is cleared away: one hour.
const LEFTOVER_AGE: Duration = Duration::from_secs(3_600);

/// The cache folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It cannot be made, read or written.
    #[error("the component cache `{path}` cannot be used")]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Others could put code into it.
    #[error(
        "the component cache `{path}` belongs to another user or can be written by others; \
             run: chmod 700 {path}"
    )]
    Open {
        /// The folder.
        path: PathBuf,
    },
}

/// The cache folder.
pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; KEY_BYTES],
    /// Tells engines apart that cannot run each other's code.
    engine: Digest,
    written: AtomicU64,
}

/// The cache entry of a component.
pub(crate) struct Entry {
    pub(crate) code: Code,
    pub(crate) described: Described,
}

/// The result of looking for an entry.
pub(crate) enum CacheLookup {
    /// It is there and sound.
    Sound(Box<Entry>),
    /// There is none.
    Nothing,
    /// There is one that cannot be used.
    Damaged,
}

impl Cache {
    /// Opens a cache folder, and makes it when it is not there.
    pub(crate) fn open(folder: &Path, engine: &Engine) -> Result<Self, CacheError> {
        let failed = |source| CacheError::Io {
            path: folder.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
        let about = fs::metadata(folder).map_err(failed)?;
        if about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o022 != 0 {
            return Err(CacheError::Open {
                path: folder.to_owned(),
            });
        }
        clear_leftovers(folder);
        let mut hash = Sha256Hasher(Sha256::new());
        // Covers wasmtime's version and every setting of the compiler.
        engine.precompile_compatibility_hash().hash(&mut hash);
        let engine = Digest(hash.0.finalize().into());
        Ok(Self {
            folder: folder.to_owned(),
            key: key(folder).map_err(failed)?,
            engine,
            written: AtomicU64::new(0),
        })
    }

    /// Looks for the code of a component. Blocks.
    pub(crate) fn read(&self, engine: &Engine, wasm: Digest) -> CacheLookup {
        let path = self.folder.join(self.name(wasm));
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return CacheLookup::Nothing,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a compiled component cannot be \
                    read");
                return CacheLookup::Damaged;
            }
        };
        match self
            .checked(wasm, &bytes)
            .and_then(|(described, code)| entry(engine, described, code))
        {
            Some(entry) => CacheLookup::Sound(Box::new(entry)),
            None => {
                tracing::warn!(path = %path.display(), "a compiled component is damaged and will \
                                                        be compiled again");
                CacheLookup::Damaged
            }
        }
    }

    /// Keeps the code of a component. After this returns, a crash loses nothing; before, it leaves
    /// nothing. Blocks.
    pub(crate) fn write(&self, wasm: Digest, code: &Code, described: &Described) -> io::Result<()> {
        let described = serde_json::to_vec(described)?;
        let code = code.serialize().map_err(io::Error::other)?;
        let length = u32::try_from(described.len())
            .map_err(io::Error::other)?
            .to_le_bytes();
        let mac = self.mac(wasm, &[&length, &described, &code]);
        let name = self.name(wasm);
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let unfinished = self
            .folder
            .join(format!("{name}.{}.{number}.tmp", std::process::id()));
        let chunks = [&MAGIC[..], &mac, &length, &described, &code];
        write_unfinished(&unfinished, &chunks)?;
        store::fault::point("runtime.cache.write");
        fs::rename(&unfinished, self.folder.join(name))?;
        File::open(&self.folder)?.sync_all()
    }

    fn name(&self, wasm: Digest) -> String {
        let engine = self.engine.short();
        format!("{}-{engine}", wasm.hex())
    }

    /// Description and code of an entry whose keyed hash is right.
    fn checked<'a>(&self, wasm: Digest, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (mac, rest) = rest.split_first_chunk::<KEY_BYTES>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (described, code) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let expected = self.mac(wasm, &[length, described, code]);
        // Every byte is compared whatever the others are, so that time tells nothing.
        let differing = mac
            .iter()
            .zip(expected)
            .fold(0, |sum, (a, b)| sum | (a ^ b));
        (differing == 0).then_some((described, code))
    }

    /// HMAC-SHA-256 of an entry and of the name that it goes by.
    fn mac(&self, wasm: Digest, chunks: &[&[u8]]) -> [u8; KEY_BYTES] {
        let keyed = |pad: u8| {
            let mut block = [pad; 64];
            block
                .iter_mut()
                .zip(self.key)
                .for_each(|(byte, key)| *byte ^= key);
            Sha256::new_with_prefix(block)
        };
        let mut inner = keyed(0x36);
        inner.update(self.engine.0);
        inner.update(wasm.0);
        chunks.iter().for_each(|chunk| inner.update(chunk));
        let mut outer = keyed(0x5c);
        outer.update(inner.finalize());
        outer.finalize().into()
    }
}

fn entry(engine: &Engine, described: &[u8], code: &[u8]) -> Option<Entry> {
    let described = serde_json::from_slice(described).ok()?;
    match trusted(engine, code) {
        Ok(code) => Some(Entry { code, described }),
        Err(error) => {
            tracing::warn!(%error, "the engine refuses a compiled component");
            None
        }
    }
}

/// Code that this user's runtime wrote: the keyed hash of an entry shows that, or the pipe from a
/// process of the runtime's own.
pub(crate) fn trusted(engine: &Engine, code: &[u8]) -> wasmtime::Result<Code> {
    #[expect(
        unsafe_code,
        reason = "the only way to load compiled code; both callers know that no other program \
                  wrote it"
    )]
    // SAFETY: `code` came out of the compiler of an engine like this one: `Cache::checked` has
    // verified a keyed hash over it, under a key that nobody else can read, or `compile` has read
    // it from the process that it started to compile it. wasmtime itself refuses code of another
    // version or configuration.
    unsafe {
        Code::deserialize(engine, code)
    }
}

/// The key of a folder, made when there is none.
fn key(folder: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = folder.join(KEY_FILE);
    if let Some(key) = existing_key(&path)? {
        return Ok(key);
    }
    let mut key = [0; KEY_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let unfinished = folder.join(format!("{KEY_FILE}.{}.tmp", std::process::id()));
    write_unfinished(&unfinished, &[&key])?;
    fs::rename(&unfinished, &path)?;
    File::open(folder)?.sync_all()?;
    Ok(key)
}

/// Writes a file that is to be renamed once it is whole, to the disk itself. Leaves nothing behind
/// when that fails.
///
/// The file is a new one: what a crash left under its name is removed, and no link is followed.
pub(crate) fn write_unfinished(path: &Path, chunks: &[&[u8]]) -> io::Result<()> {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let written = chunks.iter().try_for_each(|chunk| file.write_all(chunk));
    written.and_then(|()| file.sync_all()).inspect_err(|_| {
        // The error that counts is the one of writing.
        let _ = fs::remove_file(path);
    })
}

/// The key that is there; none when it is missing, cut short, or others could have read it.
fn existing_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    match fs::metadata(path) {
        Ok(about) if about.mode() & 0o077 != 0 => Ok(None),
        Ok(_) => Ok(fs::read(path)?.try_into().ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes what a crash left unfinished. Nothing depends on it.
fn clear_leftovers(folder: &Path) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    for file in files {
        let path = file.path();
        let modified = file.metadata().and_then(|about| about.modified()).ok();
        let age = modified.and_then(|time| time.elapsed().ok());
        if path.extension().is_some_and(|extension| extension == "tmp")
            && age.is_some_and(|age| age > LEFTOVER_AGE)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Lets whatever can be hashed go into SHA-256.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        self.0
            .clone()
            .finalize()
            .first_chunk()
            .map_or(0, |first| u64::from_le_bytes(*first))
    }
}
