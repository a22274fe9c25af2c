//! A file that carries the host's time from one process to the next, so that a start can tell downtime from a jump of the wall clock.
//!
//! What passes is counted from the machine's boot on, so the file counts on the same boot only. Whatever is wrong with it, a start does without.

use domain::time::Timestamp;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells one boot of a machine from another.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Milliseconds by which what the file says may be off.
const OFF_MS_MAX: u64 = 1_000;

#[derive(Debug)]
pub(super) struct Carrier {
    file: PathBuf,
    boot: String,
    /// What the file says.
    written_ms: AtomicU64,
}

impl Carrier {
    /// Carries by a file; none where nothing tells boots apart.
    pub(super) fn new(file: PathBuf) -> Option<Self> {
        let boot = std::fs::read_to_string(BOOT).ok()?.trim().to_owned();
        Some(Self { file, boot, written_ms: AtomicU64::new(0) })
    }

    /// The host's time after so much has passed since the boot, if it was carried here.
    pub(super) fn carried(&self, passed_ms: u64) -> Option<Timestamp> {
        let text = std::fs::read_to_string(&self.file).ok()?;
        let (boot, base_ms) = text.trim().split_once(' ')?;
        let base_ms: u64 = base_ms.parse().ok().filter(|_| boot == self.boot)?;
        Some(Timestamp(base_ms).plus_ms(passed_ms))
    }

    /// Carries the host's time on, as it was at the boot.
    pub(super) async fn carry(&self, base_ms: u64) {
        if self.written_ms.load(Ordering::Relaxed).abs_diff(base_ms) <= OFF_MS_MAX {
            return;
        }
        self.written_ms.store(base_ms, Ordering::Relaxed);
        if let Err(error) = tokio::fs::write(&self.file, format!("{} {base_ms}\n", self.boot)).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the host's time is not carried on to its next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn time_is_carried_on_within_one_boot_only() {
        let folder = std::env::temp_dir().join(format!("agent-host-clock-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&folder).unwrap();
        let carrier = |boot: &str| Carrier { file: folder.join("clock"), boot: boot.to_owned(), written_ms: AtomicU64::new(0) };
        assert_eq!(carrier("a").carried(5), None);
        carrier("a").carry(1_000_000).await;
        assert_eq!(carrier("a").carried(5), Some(Timestamp(1_000_005)));
        assert_eq!(carrier("b").carried(5), None);
        for broken in ["", "a", "a x", "1000000"] {
            std::fs::write(folder.join("clock"), broken).unwrap();
            assert_eq!(carrier("a").carried(5), None, "{broken}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
