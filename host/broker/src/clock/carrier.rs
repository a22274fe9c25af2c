//! A file that carries the host's time from one process to the next.
//!
//! It has one line: the boot's id, the host's time at the boot, and a third part if an operator has
//! confirmed a wall clock behind the host's time. That part is the time by which credentials
//! expire, at the boot and when the line was written. All are milliseconds. Elapsed time is counted
//! from the machine's boot, so after another boot only the last of them counts. A start ignores a
//! file with any fault.

use domain::clock::Confirmed;
use domain::time::Timestamp;
use std::io;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;

/// The file with the id of the machine's present boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// The largest error of the written time, in milliseconds.
const OFF_MS_MAX: u64 = 1_000;
/// Extension of the file while it is written.
const NEW: &str = "new";

#[derive(Debug)]
pub(super) struct Carrier {
    file: PathBuf,
    boot: String,
    /// The content of the file; none until this process has written it.
    written: Mutex<Option<Written>>,
}

/// Times that were carried here from another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TransferredTimes {
    /// The host's time; none after another boot.
    pub(super) host: Option<Timestamp>,
    /// The time by which credentials expire; none if it is the host's.
    pub(super) credentials: Option<Timestamp>,
}

/// Times that are carried on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    /// The host's time at the boot, in milliseconds.
    pub(super) base_ms: u64,
    /// The time by which credentials expire, if it differs.
    pub(super) credentials: Option<Confirmed>,
}

impl Written {
    /// Returns whether another one has nearly the same values.
    fn is_near(&self, other: &Self) -> bool {
        let is_near = |one: u64, other: u64| one.abs_diff(other) <= OFF_MS_MAX;
        let are_near = match (&self.credentials, &other.credentials) {
            (Some(one), Some(other)) => is_near(one.base_ms, other.base_ms),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        are_near && is_near(self.base_ms, other.base_ms)
    }

    fn line(&self, boot: &str) -> String {
        let base_ms = self.base_ms;
        match self.credentials {
            Some(Confirmed {
                now,
                base_ms: of_credentials_ms,
            }) => format!("{boot} {base_ms} {of_credentials_ms} {}\n", now.0),
            None => format!("{boot} {base_ms}\n"),
        }
    }
}

impl Carrier {
    /// Creates the carrier of a file.
    ///
    /// # Errors
    /// Boots of this machine cannot be told apart.
    pub(super) fn new(file: PathBuf) -> io::Result<Self> {
        Self::in_boot(file, Path::new(BOOT))
    }

    /// Creates the carrier of a file, in the boot that another file names.
    fn in_boot(file: PathBuf, boot: &Path) -> io::Result<Self> {
        let boot = std::fs::read_to_string(boot)?.trim().to_owned();
        Ok(Self {
            file,
            boot,
            written: Mutex::default(),
        })
    }

    /// The times after so much has passed since the boot, as far as they were carried here.
    pub(super) fn transferred(&self, passed_ms: u64) -> TransferredTimes {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let mut fields = text.split_ascii_whitespace();
        let is_of_this_boot = fields.next() == Some(self.boot.as_str());
        let mut number = || fields.next().and_then(|word| word.parse::<u64>().ok());
        let Some(base_ms) = number() else {
            return TransferredTimes::default();
        };
        let credentials_base_ms = number();
        let credentials_ms = number();
        let since_boot = |base_ms: u64| Timestamp(base_ms).plus_ms(passed_ms);
        match is_of_this_boot {
            true => TransferredTimes {
                host: Some(since_boot(base_ms)),
                credentials: credentials_base_ms.map(since_boot),
            },
            false => TransferredTimes {
                host: None,
                credentials: credentials_ms.map(Timestamp),
            },
        }
    }

    /// Carries the times of this moment on.
    pub(super) async fn carry(&self, now: impl FnOnce() -> Written) {
        // One at a time, so that none is overwritten by an earlier one.
        let mut written = self.written.lock().await;
        let now = now();
        if written.is_some_and(|written| written.is_near(&now)) {
            return;
        }
        *written = Some(now);
        let new = self.file.with_extension(NEW);
        let kept = async {
            let mut options = tokio::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&new).await?;
            file.write_all(now.line(&self.boot).as_bytes()).await?;
            file.flush().await?;
            tokio::fs::rename(&new, &self.file).await
        };
        if let Err(error) = kept.await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the host's time is not carried on to its next start"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_that_cannot_be_read_is_told_and_not_taken_for_one_without_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let boot = folder.path().join("boot_id");
        let carrier = || Carrier::in_boot(folder.path().join("clock"), &boot);
        assert_eq!(carrier().unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&boot, "a\n").unwrap();
        assert_eq!(carrier().unwrap().boot, "a");
    }

    #[tokio::test]
    async fn time_is_carried_on_within_one_boot_and_what_an_operator_confirmed_beyond() {
        let folder =
            std::env::temp_dir().join(format!("agent-host-clock-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&folder).unwrap();
        let carrier = |boot: &str| Carrier {
            file: folder.join("clock"),
            boot: boot.to_owned(),
            written: Mutex::default(),
        };
        let transferred = |host: Option<u64>, credentials: Option<u64>| TransferredTimes {
            host: host.map(Timestamp),
            credentials: credentials.map(Timestamp),
        };
        assert_eq!(carrier("a").transferred(5), TransferredTimes::default());
        let before = Written {
            base_ms: 1_000_000,
            credentials: None,
        };
        let writing = carrier("a");
        writing.carry(|| before).await;
        assert_eq!(
            carrier("a").transferred(5),
            transferred(Some(1_000_005), None)
        );
        assert_eq!(carrier("b").transferred(5), TransferredTimes::default());
        let confirmed = Confirmed {
            now: Timestamp(900_003),
            base_ms: 900_000,
        };
        writing
            .carry(|| Written {
                credentials: Some(confirmed),
                ..before
            })
            .await;
        assert_eq!(
            carrier("a").transferred(5),
            transferred(Some(1_000_005), Some(900_005))
        );
        assert_eq!(
            carrier("b").transferred(5),
            transferred(None, Some(900_003))
        );
        writing.carry(|| before).await;
        assert_eq!(
            carrier("a").transferred(5),
            transferred(Some(1_000_005), None)
        );
        for broken in ["", "a", "a x", "1000000"] {
            std::fs::write(folder.join("clock"), broken).unwrap();
            assert_eq!(
                carrier("a").transferred(5),
                TransferredTimes::default(),
                "{broken}"
            );
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
